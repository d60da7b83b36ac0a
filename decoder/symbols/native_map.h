/*
 * native_map.h - the functions of a native library: address to name, by its build id.
 *
 * tw_native_writer reads an ELF file, pushed in pieces of any size: a library with its symbol table
 * (.symtab, otherwise .dynsym), or a file of symbols split from it.  The result is one flat image
 * that is stored as a file and memory-mapped by readers; lookups neither copy nor allocate.  Names
 * are demangled (C++, Rust).  Functions that the compiler inlined, and lines, are not in the image.
 *
 * Image, little-endian.  Header, 64 bytes: magic "TWELF1\0\0", u32 functions, u32 segments,
 * u64 bytes of the names, u8 bytes of the build id, 7 zero bytes, 32 bytes of the build id.  Then
 * segments of 24 bytes: u64 address, u64 offset in the file, u64 bytes; functions of 24 bytes,
 * sorted by address and disjoint: u64 address, u64 bytes, u32 name, u32 bytes of the name; then the
 * names.
 * Thread: a writer one at a time; a map any.
 */
#ifndef TW_NATIVE_MAP_H
#define TW_NATIVE_MAP_H

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/native_frame.h"

struct tw_native_writer;

struct tw_native_stats {
	uint64_t functions;
	char build_id[TW_BUILD_ID_HEX];
	char name[64]; /* SONAME; "" none */
};

/* max_bytes limits the file. */
struct tw_native_writer *tw_native_writer_new(uint64_t max_bytes);
struct tw_native_writer *tw_native_writer_free(struct tw_native_writer *w);
enum tw_status tw_native_writer_push(
        struct tw_native_writer *w, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* Appends the image to *out.  TW_CORRUPT: not an ELF file; TW_UNSUPPORTED: one without a build id
 * or without functions. */
enum tw_status tw_native_writer_finish(struct tw_native_writer *w, struct tw_buf *out,
        struct tw_native_stats *ret, struct tw_err *err) TW_MUST_USE;

/* Whether a file begins like an ELF file. */
bool tw_native_is_elf(struct tw_str head);
/* The build id of an ELF file in memory, without its symbols.  False: it has none. */
bool tw_native_build_id(struct tw_str file, char out[TW_BUILD_ID_HEX]);

struct tw_native_map { /* a view of an image; the caller keeps the bytes valid */
	const uint8_t *segments, *functions;
	const char *names;
	size_t names_len;
	uint32_t n_segments, n_functions;
	char build_id[TW_BUILD_ID_HEX];
};

/* Checks the image's header and bounds; tw_native_find checks the entries that it reads. */
enum tw_status tw_native_open(
        const void *data, size_t len, struct tw_native_map *ret, struct tw_err *err) TW_MUST_USE;

struct tw_natives { /* the maps of a trace's modules */
	const struct tw_native_map *maps;
	size_t n;
};
/* The function of a frame; false: no map has its build id and address.  `n` may be NULL. */
bool tw_native_find(
        const struct tw_natives *n, const struct tw_native_frame *frame, struct tw_str *ret);

#endif
