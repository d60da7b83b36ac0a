/*
 * http_encode.h - negotiates and applies Content-Encoding.
 *
 * Thread: a stream one at a time.
 */
#ifndef TW_HTTP_ENCODE_H
#define TW_HTTP_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum tw_coding { TW_CODING_IDENTITY, TW_CODING_GZIP, TW_CODING_ZSTD };

/* "identity", "gzip", "zstd". */
const char *tw_coding_name(enum tw_coding c);

/* The coding of an Accept-Encoding header (NULL: absent) with the highest weight; for equal weights
 * zstd, then gzip, then identity.  Parts that do not parse are ignored. */
enum tw_coding tw_coding_choose(const char *accept);
/* Whether this coding is acceptable (weight above 0, by name or by *). */
bool tw_coding_accepted(const char *accept, enum tw_coding c);

struct tw_encoder;
/* NULL if memory is short. */
struct tw_encoder *tw_encoder_new(enum tw_coding c);
struct tw_encoder *tw_encoder_free(struct tw_encoder *e);
/* Consumes p; appends available output to *out.  `end`: the last input. */
enum tw_status tw_encoder_push(struct tw_encoder *e, const void *p, size_t n, bool end,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif
