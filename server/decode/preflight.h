/*
 * preflight.h - checks the first bytes of an upload in processes that may do nothing else.
 *
 * A preflight process is a limited child (child.h, jail.h) that runs tw_decoder_preflight on the
 * given bytes and answers over a socket; no decoder in the server's own process reads untrusted
 * bytes.  A process checks uploads of only one project, one after the other, and can reach no
 * others: a compromised one can only give wrong results for that project's next uploads, and
 * accepted uploads are checked again by the decoder that reads them completely.  Thread: any; only
 * tw_preflight_end waits.
 */
#ifndef TW_PREFLIGHT_H
#define TW_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/decoder.h"
#include "decoder/formats/format.h"
#include "server/base/config.h"

/* Only this many bytes are checked. */
enum { TW_HEAD_BYTES = TW_DECODER_HEAD_BYTES };

struct tw_preflights;
struct tw_metrics;

struct tw_head {
	const void *bytes;
	size_t n; /* ≤ TW_HEAD_BYTES */
	bool whole;
	const struct tw_format *forced; /* NULL: recognised by content */
	uint32_t window_log;            /* as of tw_limits */
};

/* Starts no process yet.  NULL without memory or threads. */
struct tw_preflights *tw_preflights_new(const struct tw_config *c, struct tw_metrics *metrics);
/* No preflight may be running.  Returns NULL. */
struct tw_preflights *tw_preflights_free(struct tw_preflights *ps);

/* A running preflight. */
struct tw_preflight;

/* The head is copied.  ps NULL: *ret NULL, which the functions below accept. */
enum tw_status tw_preflight_begin(struct tw_preflights *ps, const char *project_id,
        const struct tw_head *head, struct tw_preflight **ret, struct tw_err *err) TW_MUST_USE;
/* True: tw_preflight_end would not wait. */
bool tw_preflight_is_done(const struct tw_preflight *p);
/* The status and message of tw_decoder_preflight; frees `p`.  If no process is available within 2 s
 * or answers within 6, or it died, returns TW_OK and *ret NULL: the decoder of the complete upload
 * decides.  p NULL: the same. */
enum tw_status tw_preflight_end(
        struct tw_preflight *p, const struct tw_format **ret, struct tw_err *err) TW_MUST_USE;
struct tw_preflight *tw_preflight_cancel(struct tw_preflight *p); /* accepts NULL; returns NULL */

/* --- messages between the server and a preflight process --- */

enum { TW_FORMAT_NAME_BYTES = 24 };

struct tw_preflight_request { /* n bytes follow */
	uint32_t n, window_log, whole;
	char forced[TW_FORMAT_NAME_BYTES]; /* "": none */
};

struct tw_preflight_response {
	uint32_t status;
	char format[TW_FORMAT_NAME_BYTES]; /* "": none */
	uint64_t offset;
	char msg[200];
};

#endif
