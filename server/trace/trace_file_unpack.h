/*
 * trace_file_unpack.h - decompresses frames and decodes chunks of trace files.
 *
 * Needs no file: one thread can read while others unpack, each with its own unpacker.
 * Thread: one at a time.
 */
#ifndef TW_TRACE_FILE_UNPACK_H
#define TW_TRACE_FILE_UNPACK_H

#include "server/trace/trace_file.h"

struct tw_unpacker;

/* NULL: out of memory. */
struct tw_unpacker *tw_unpacker_new(void);
struct tw_unpacker *tw_unpacker_free(struct tw_unpacker *u);

/* The content of a zstd frame, which states its decoded size; valid until the next call.
 * TW_CORRUPT if damaged or larger than max_bytes. */
enum tw_status tw_unpacker_frame(struct tw_unpacker *u, struct tw_str frame, uint64_t max_bytes,
        struct tw_str *ret, struct tw_err *err) TW_MUST_USE;

/* Decodes the stored bytes of a chunk into *c. */
enum tw_status tw_unpacker_chunk(struct tw_unpacker *u, struct tw_str frame,
        const struct tw_chunk_row *row, struct tw_chunk *c, struct tw_err *err) TW_MUST_USE;

#endif
