/*
 * inflate.h - a zlib or gzip stream that stands inside another format.
 *
 * What wraps a whole upload is undone before a format sees it (base/unzip.h);
 * this is for streams that begin behind a text.  All memory is the arena's, so
 * nothing needs to be given back.  Refuses (TW_TOO_LARGE) past the limits for
 * decoded bytes and ratio.
 */
#ifndef TW_INFLATE_H
#define TW_INFLATE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/unzip.h"
#include "decoder/limits.h"

enum tw_inflate_state { TW_INFLATE_MORE, TW_INFLATE_DONE, TW_INFLATE_DAMAGED };

struct tw_inflate;

/* NULL: no memory. */
struct tw_inflate *tw_inflate_new(
        struct tw_arena *a, const struct tw_limits *limits, tw_bytes_fn out, void *arg);
/* Another stream of the same input begins: no more memory is taken, and limits are of all of them.
 */
void tw_inflate_restart(struct tw_inflate *z);
/* Bytes past the stream's end or its damage are ignored. */
enum tw_status tw_inflate_push(
        struct tw_inflate *z, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_inflate_state tw_inflate_state(const struct tw_inflate *z);
/* Could a zlib stream begin with these two bytes? */
bool tw_inflate_is_zlib(const uint8_t head[2]);

#endif
