/*
 * unzip.h - a stage that decompresses, within limits.
 *
 * Compressed bytes are pushed in; plain bytes are delivered through a callback, possibly only in
 * tw_unzip_finish.  zstd and gzip/zlib are recognised by their first bytes and may be nested up to
 * limits.max_nesting; all other input passes unchanged.  Concatenated zstd frames and gzip members
 * are one stream.
 * Fails with TW_TOO_LARGE past max_decoded_bytes, past max_ratio of the input (from 1 MiB decoded
 * on), and for zstd frames whose window exceeds max_window_log.  The output of every stage of a
 * nested chain counts, including bytes that do not leave it (skippable frames); an empty frame
 * counts too.
 * Damage is not an error: everything before it is delivered, and tw_unzip_finish reports it.
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

/* Returns memory for TW_UNZIP_PIECE bytes, or NULL. */
typedef uint8_t *(*tw_space_fn)(void *arg);
enum { TW_UNZIP_PIECE = 128 << 10 };

enum tw_unzip_end {
	TW_UNZIP_COMPLETE,
	TW_UNZIP_CUT,    /* the compressed stream is truncated */
	TW_UNZIP_DAMAGED /* the stream is corrupt; the bytes after that point were ignored */
};

/* The arena is not used after this call, so another thread may use it: library contexts (zstd,
 * zlib) and buffers are allocated outside it; free them with tw_unzip_free. */
struct tw_unzip *tw_unzip_new(
        struct tw_arena *a, const struct tw_limits *limits, tw_bytes_fn out, void *arg);
/* From now on writes decompressed bytes to memory that `space` returns, and then delivers them; if
 * it returns NULL, to its own. */
void tw_unzip_write_to(struct tw_unzip *z, tw_space_fn space, void *arg);
struct tw_unzip *tw_unzip_free(struct tw_unzip *z);
enum tw_status tw_unzip_push(struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err);
enum tw_status tw_unzip_finish(struct tw_unzip *z, enum tw_unzip_end *ret, struct tw_err *err);

/* Whether bytes that begin with these are a zstd frame, which may be skippable. */
bool tw_unzip_is_zstd(const uint8_t p[4]);

/* Compressions found so far, outermost first: "zstd", "gzip,zstd" or "". */
const char *tw_unzip_kinds(const struct tw_unzip *z);
uint64_t tw_unzip_bytes(const struct tw_unzip *z); /* decoded so far */
uint64_t tw_unzip_made(const struct tw_unzip *z);  /* the largest output of any stage so far */

#endif
