/*
 * ahead.h - decompression in a separate thread while the caller parses the output.
 *
 * Wraps a tw_unzip: give tw_ahead_put to the tw_unzip as its output, optionally tw_ahead_space as
 * its memory, which saves a copy, and push input with tw_ahead_push instead of tw_unzip_push.
 * Bytes, order and errors are unchanged; only the boundaries between pieces differ.  A push returns
 * once its input is decompressed, so the thread is idle between pushes; the last pieces are
 * consumed while the next push is decompressed, or by tw_ahead_finish.
 * Thread: call all functions but tw_ahead_put and tw_ahead_space in one thread; `out` is called in
 * that thread only.
 */
#ifndef TW_AHEAD_H
#define TW_AHEAD_H

#include "decoder/base/unzip.h"

struct tw_ahead;

/* NULL if memory or a thread is not available; the caller then decompresses without it. */
struct tw_ahead *tw_ahead_new(tw_bytes_fn out, void *arg);
struct tw_ahead *tw_ahead_free(struct tw_ahead *a);

/* A tw_bytes_fn for the tw_unzip. */
enum tw_status tw_ahead_put(void *ahead, const uint8_t *p, size_t n, struct tw_err *err);

/* A tw_space_fn for the tw_unzip. */
uint8_t *tw_ahead_space(void *ahead);

/* Like tw_unzip_push.  An error of `out` is returned before a decompression error at a later
 * offset, possibly by a later call. */
enum tw_status tw_ahead_push(
        struct tw_ahead *a, struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err);

/* Consumes the rest.  Call before tw_unzip_finish. */
enum tw_status tw_ahead_finish(struct tw_ahead *a, struct tw_err *err);

#endif
