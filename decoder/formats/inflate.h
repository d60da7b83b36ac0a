/*
 * inflate.h - a zlib or gzip stream inside another format.
 *
 * Compression of a whole upload is undone before a format sees it (base/unzip.h); this is for
 * streams that start after a text.  All memory is in the arena, so nothing has to be freed.  Fails
 * with TW_TOO_LARGE past the limits for decoded bytes and ratio.
 */
#ifndef TW_INFLATE_H
#define TW_INFLATE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/unzip.h"
#include "decoder/limits.h"

enum tw_inflate_state { TW_INFLATE_MORE, TW_INFLATE_DONE, TW_INFLATE_DAMAGED };

struct tw_inflate;

/* NULL: out of memory. */
struct tw_inflate *tw_inflate_new(
        struct tw_arena *a, const struct tw_limits *limits, tw_bytes_fn out, void *arg);
/* Starts another stream of the same input: reuses the memory; the limits apply to all streams
 * together. */
void tw_inflate_restart(struct tw_inflate *z);
/* Bytes after the stream's end or its damage are ignored. */
enum tw_status tw_inflate_push(
        struct tw_inflate *z, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_inflate_state tw_inflate_state(const struct tw_inflate *z);
/* Whether a zlib stream can start with these two bytes. */
bool tw_inflate_is_zlib(const uint8_t head[2]);

#endif
