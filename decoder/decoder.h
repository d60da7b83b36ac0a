/*
 * decoder.h - converts uploaded bytes into events for a sink.
 *
 * Stages: unzip (base/unzip.h), the format recognised by the first decoded bytes (or the one
 * requested), the sink.  A failure is sticky: every later push returns the same status.
 * Thread: one decode job.
 */
#ifndef TW_DECODER_H
#define TW_DECODER_H

#include "decoder/formats/format.h"

/* Raise it whenever the same input may give a different trace; stored with each trace. */
enum { TW_DECODER_VERSION = 6 };

struct tw_decoder;

/* `forced` NULL: recognise the format by content, restricted to the formats of multipart part
 * `part` if that is not NULL.  Free with tw_decoder_free. */
struct tw_decoder *tw_decoder_new(struct tw_arena *a, const struct tw_limits *limits,
        const struct tw_format *forced, const char *part, struct tw_sink *sink);
struct tw_decoder *tw_decoder_free(struct tw_decoder *d);
/* Calls fn once the format is known, before the format receives data. */
void tw_decoder_on_format(
        struct tw_decoder *d, void (*fn)(void *arg, const struct tw_format *format), void *arg);
/* Decompresses in a separate thread from the second push on, while the caller's thread parses.  For
 * one large input pushed in pieces of about a megabyte.  The output does not change. */
void tw_decoder_read_ahead(struct tw_decoder *d);
enum tw_status tw_decoder_push(
        struct tw_decoder *d, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_decoder_finish(struct tw_decoder *d, struct tw_err *err) TW_MUST_USE;

/* The format in use; NULL until it is recognised. */
const struct tw_format *tw_decoder_format(const struct tw_decoder *d);
uint64_t tw_decoder_bytes(const struct tw_decoder *d); /* decoded so far */

/* Number of first bytes that suffice to recognise an upload: zstd outputs nothing before its first
 * block is complete, which can take 128 KiB. */
enum { TW_DECODER_HEAD_BYTES = (128 << 10) + (4 << 10) };

/* Preflight: runs the stages on an upload's first bytes, with a sink that stores nothing, before
 * the upload is accepted.  TW_UNSUPPORTED for an unknown format or an unreadable version of a known
 * one; also fails if the head already exceeds a limit.  `whole`: head is the complete upload. */
enum tw_status tw_decoder_preflight(const void *head, size_t n, bool whole,
        const struct tw_format *forced, const struct tw_limits *limits,
        const struct tw_format **ret_format, struct tw_err *err) TW_MUST_USE;

#endif
