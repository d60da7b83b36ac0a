/*
 * method_map.h - methodMapping.txt of a build: method id to class, method, descriptor.
 *
 * Text grammar (of btrace's Gradle plugin): `#` lines are comments, the first is the mapping's
 * version;
 * `<id>,<access flags>,<class> <method>[ <descriptor>]`. If an id occurs twice, the last line wins.
 * Lines that do not parse are counted, with the offset of the first.
 *
 * tw_map_writer converts the text, pushed in pieces of any size, into one flat image that is stored
 * as a file and memory-mapped by readers; tw_map looks names up in the image without copying or
 * allocating.
 *
 * Image, little-endian.  Header, 64 bytes: magic "TWMAP1\0\0", u32 entries, u32 zero, u64 bytes of
 * the strings, u64 lines, u64 malformed lines, u64 duplicate ids, 16 zero bytes.  Then `entries`
 * records of 24 bytes, sorted by id:
 *    0 u32 id          4 u32 access flags
 *    8 u32 class      12 u32 method      16 u32 descriptor   (offsets into the strings)
 *   20 u16 class bytes 22 u16 method bytes
 * then the strings.  A descriptor ends with NUL; the others have a stored length.
 * Thread: a writer one at a time; a map any.
 */
#ifndef TW_METHOD_MAP_H
#define TW_METHOD_MAP_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"

struct tw_map_writer;

struct tw_map_stats {
	uint64_t lines;   /* mapping lines without comments and blank lines */
	uint64_t entries; /* distinct ids */
	uint64_t duplicates;
	uint64_t malformed;
	uint64_t first_malformed; /* offset; TW_NO_OFFSET if none */
	char version[64];         /* text of the first comment line; "" if none */
};

/* max_bytes limits the text and the image each. */
struct tw_map_writer *tw_map_writer_new(uint64_t max_bytes, uint32_t max_entries);
struct tw_map_writer *tw_map_writer_free(struct tw_map_writer *w);
enum tw_status tw_map_writer_push(
        struct tw_map_writer *w, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* Appends the image to *out.  TW_CORRUPT if no line is a mapping line (binary, HTML, an R8
 * mapping), with the offset of the first line that is not one. */
enum tw_status tw_map_writer_finish(struct tw_map_writer *w, struct tw_buf *out,
        struct tw_map_stats *ret, struct tw_err *err) TW_MUST_USE;

struct tw_map { /* a view of an image; the caller keeps the bytes valid */
	const uint8_t *data;
	size_t len;
	uint32_t entries;
};

struct tw_method_name {
	struct tw_str class_name; /* dotted, inner classes with $ */
	struct tw_str method;
	struct tw_str descriptor; /* "" if the line has none */
	uint32_t access_flags;    /* JVM ACC_* bits */
};

/* Checks the image's header and bounds, not each entry; tw_map_find checks the entries it reads. */
enum tw_status tw_map_open(
        const void *data, size_t len, struct tw_map *ret, struct tw_err *err) TW_MUST_USE;
bool tw_map_find(const struct tw_map *m, uint64_t id, struct tw_method_name *ret);

/* "package.Class.method" if m (may be NULL) has the id, otherwise "unknown:<id>".  Valid UTF-8,
 * truncated to cap.  Returns whether the id is known. */
bool tw_map_display(const struct tw_map *m, uint64_t id, char *out, size_t cap);

#endif
