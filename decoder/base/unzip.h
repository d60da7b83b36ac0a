/*
 * unzip.h - a stage that undoes compression found by content, within limits.
 *
 * Push in what came over the wire, get plain bytes out through a callback.
 * zstd and gzip/zlib are recognised by their first bytes, may be nested up to
 * limits.max_nesting, and anything else passes unchanged.  Concatenated zstd
 * frames and gzip members are one stream.  Refuses (TW_TOO_LARGE) past
 * max_decoded_bytes or, beyond 1 MiB decoded, past max_ratio of the bytes that
 * came in, whichever stage of the chain produces them and whether or not they
 * leave it (skippable frames do not), an empty frame counting too; and zstd frames
 * whose window is past max_window_log.  What was pushed may come out as late as
 * in tw_unzip_finish.
 * Damage is not an error here: tw_unzip_finish tells it, and everything before
 * it was delivered.
 * Thread: one at a time.
 */
#ifndef TW_UNZIP_H
#define TW_UNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/limits.h"

struct tw_unzip;

typedef enum tw_status (*tw_bytes_fn)(void *arg, const uint8_t *p, size_t n, struct tw_err *err);

enum tw_unzip_end {
	TW_UNZIP_COMPLETE,
	TW_UNZIP_CUT,    /* the compressed stream ends early */
	TW_UNZIP_DAMAGED /* it is corrupt; bytes after that were ignored */
};

/* After this the arena is left alone, so that another thread may go on with it: library contexts
 * (zstd, zlib) and buffers live outside it, and tw_unzip_free is owed. */
struct tw_unzip *tw_unzip_new(
        struct tw_arena *a, const struct tw_limits *limits, tw_bytes_fn out, void *arg);
struct tw_unzip *tw_unzip_free(struct tw_unzip *z);
enum tw_status tw_unzip_push(struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err);
enum tw_status tw_unzip_finish(struct tw_unzip *z, enum tw_unzip_end *ret, struct tw_err *err);

/* Compressions met so far, outermost first, as "zstd", "gzip,zstd" or "". */
const char *tw_unzip_kinds(const struct tw_unzip *z);
uint64_t tw_unzip_bytes(const struct tw_unzip *z); /* decoded so far */
uint64_t tw_unzip_made(const struct tw_unzip *z);  /* the most that a stage has put out so far */

#endif
