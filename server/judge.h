/*
 * judge.h - a look at the first bytes of an upload, by processes that may do nothing else.
 *
 * A judge is a limited child (child.h, jail.h) that runs tw_decoder_preflight on what it is given
 * and answers over a socket; strangers' bytes reach no decoder in the server's own process.  It
 * sees heads of uploads, one after the other, and can tell nobody: one that is taken over may only
 * lie about what is looked at next, and what it lets through is judged again by the decoder that
 * reads it all.  Thread: any; who asks waits.
 */
#ifndef TW_JUDGE_H
#define TW_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"
#include "formats/format.h"

/* More than these are not looked at. */
enum { TW_HEAD_BYTES = 64 << 10 };

struct tw_judges;
struct tw_metrics;

struct tw_head {
	const void *bytes;
	size_t n; /* ≤ TW_HEAD_BYTES */
	bool whole;
	const struct tw_format *forced; /* NULL: recognised by content */
	uint32_t window_log;            /* as of tw_limits */
};

/* Starts none yet.  NULL without memory. */
struct tw_judges *tw_judges_new(const struct tw_config *c, struct tw_metrics *metrics);
struct tw_judges *tw_judges_free(struct tw_judges *js);

/* What tw_decoder_preflight says, in its words.  Where no judge can be asked, or it died of the
 * head, TW_OK and *ret NULL: the decoder of the whole will say.  js NULL: the same. */
enum tw_status tw_judges_look(struct tw_judges *js, const struct tw_head *head,
        const struct tw_format **ret, struct tw_err *err) TW_MUST_USE;

#endif
