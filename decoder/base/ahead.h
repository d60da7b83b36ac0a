/*
 * ahead.h - decompressing in a thread of its own while the caller reads what came out.
 *
 * Stands behind a tw_unzip: that one's output goes to tw_ahead_put, and input is pushed through
 * tw_ahead_push instead of tw_unzip_push.  What comes out is the same, in the same order, with the
 * same errors; only where it is cut differs.  A push returns when all that it gave was read:
 * between pushes the thread rests. Thread: tw_ahead_push and tw_ahead_free in one thread; `out` is
 * called in that one alone.
 */
#ifndef TW_AHEAD_H
#define TW_AHEAD_H

#include "decoder/base/unzip.h"

struct tw_ahead;

/* NULL without memory or thread: then nothing is lost but speed. */
struct tw_ahead *tw_ahead_new(tw_bytes_fn out, void *arg);
struct tw_ahead *tw_ahead_free(struct tw_ahead *a);

/* A tw_bytes_fn for the tw_unzip. */
enum tw_status tw_ahead_put(void *ahead, const uint8_t *p, size_t n, struct tw_err *err);

/* As tw_unzip_push.  An error of `out` comes before one that unzipping met behind those bytes. */
enum tw_status tw_ahead_push(
        struct tw_ahead *a, struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err);

#endif
