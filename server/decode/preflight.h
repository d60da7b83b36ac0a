/*
 * preflight.h - a look at the first bytes of an upload, by processes that may do nothing else.
 *
 * A judge is a limited child (child.h, jail.h) that runs tw_decoder_preflight on what it is given
 * and answers over a socket; strangers' bytes reach no decoder in the server's own process.  It
 * sees heads of one project's uploads, one after the other, and can tell nobody else: one that is
 * taken over may only lie about what that project sends next, and what it lets through is judged
 * again by the decoder that reads it all.  Thread: any; only tw_look_end waits.
 */
#ifndef TW_PREFLIGHT_H
#define TW_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/decoder.h"
#include "decoder/formats/format.h"
#include "server/base/config.h"

/* More than these are not looked at. */
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

/* Starts no judge yet.  NULL without memory or threads. */
struct tw_preflights *tw_preflights_new(const struct tw_config *c, struct tw_metrics *metrics);
struct tw_preflights *tw_preflights_free(
        struct tw_preflights *js); /* no look is left; returns NULL */

/* A head that is being looked at. */
struct tw_look;

/* The head is copied.  js NULL: *ret NULL, about which all that follows has nothing to say. */
enum tw_status tw_look_begin(struct tw_preflights *js, const char *project_id,
        const struct tw_head *head, struct tw_look **ret, struct tw_err *err) TW_MUST_USE;
/* tw_look_end would not wait. */
bool tw_look_is_over(const struct tw_look *l);
/* What tw_decoder_preflight says, in its words; `l` is gone.  Where no judge can be asked within
 * 2 s or answers within 6, or it died of the head, TW_OK and *ret NULL: the decoder of the whole
 * will say.  NULL: the same. */
enum tw_status tw_look_end(
        struct tw_look *l, const struct tw_format **ret, struct tw_err *err) TW_MUST_USE;
struct tw_look *tw_look_drop(struct tw_look *l); /* NULL is fine; returns NULL */

#endif
