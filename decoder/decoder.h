/*
 * decoder.h - bytes as they came over the wire to events in a sink.
 *
 * Chain: unzip (base/unzip.h), then the format that fits the first decoded
 * bytes (or the one that was named), then the sink.  A failure is sticky: every
 * later push gives the same status.
 * Thread: one decode job.
 */
#ifndef TW_DECODER_H
#define TW_DECODER_H

#include "decoder/formats/format.h"

/* Goes up whenever the same input may give another trace; stored with each trace. */
enum { TW_DECODER_VERSION = 5 };

struct tw_decoder;

/* `forced` NULL: recognise by content, among the formats of multipart part `part` when that is
 * not NULL.  tw_decoder_free is owed. */
struct tw_decoder *tw_decoder_new(struct tw_arena *a, const struct tw_limits *limits,
        const struct tw_format *forced, const char *part, struct tw_sink *sink);
struct tw_decoder *tw_decoder_free(struct tw_decoder *d);
/* Calls fn when the format is known, before it is given a byte. */
void tw_decoder_on_format(
        struct tw_decoder *d, void (*fn)(void *arg, const struct tw_format *format), void *arg);
/* Compressed input is unzipped in a thread of its own from the second push on, while the caller's
 * parses: for one large input pushed in pieces of a megabyte or so.  Nothing else changes. */
void tw_decoder_read_ahead(struct tw_decoder *d);
enum tw_status tw_decoder_push(
        struct tw_decoder *d, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_decoder_finish(struct tw_decoder *d, struct tw_err *err) TW_MUST_USE;

/* The format in use, NULL before enough bytes came to tell. */
const struct tw_format *tw_decoder_format(const struct tw_decoder *d);
uint64_t tw_decoder_bytes(const struct tw_decoder *d); /* decoded so far */

/* So many first bytes show what an upload is: zstd gives nothing out before its first block is
 * whole, which takes up to 128 KiB. */
enum { TW_DECODER_HEAD_BYTES = (128 << 10) + (4 << 10) };

/* A look at the first bytes of an upload, before it is accepted: runs the chain on them with a
 * sink that keeps nothing.  Refuses what no format knows (TW_UNSUPPORTED), a known format in a
 * version that cannot be read (TW_UNSUPPORTED), and a stream whose head already breaks a limit.
 * `whole`: head is all there is. */
enum tw_status tw_decoder_preflight(const void *head, size_t n, bool whole,
        const struct tw_format *forced, const struct tw_limits *limits,
        const struct tw_format **ret_format, struct tw_err *err) TW_MUST_USE;

#endif
