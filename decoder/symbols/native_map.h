/*
 * native_map.h - the functions of a native library: address to name, by its build id.
 *
 * One flat image, stored as a file and memory-mapped by readers; lookups neither copy nor allocate.
 * server/decode/native_write.c makes it of an ELF file.
 *
 * Image, little-endian.  Header, 64 bytes: magic "TWELF1\0\0", u32 functions, u32 segments,
 * u64 bytes of the names, u8 bytes of the build id, 7 zero bytes, 32 bytes of the build id.  Then
 * segments of 24 bytes: u64 address, u64 offset in the file, u64 bytes; functions of 24 bytes,
 * sorted by address and disjoint: u64 address, u64 bytes, u32 name, u32 bytes of the name; then the
 * names.
 * Thread: any.
 */
#ifndef TW_NATIVE_MAP_H
#define TW_NATIVE_MAP_H

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/native_frame.h"

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
