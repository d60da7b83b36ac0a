/*
 * text.h - sentences about regressions, ANRs and digests, in any markup, and the bodies of webhooks
 * made of them.
 *
 * They use only the facts stored with an event (catalogue_notify.c, digest.c), so that a text is
 * the same whenever it is sent.  Pure.  Thread: any.
 */
#ifndef TW_TEXT_H
#define TW_TEXT_H

#include <jansson.h>

#include "server/catalogue/notify/hook.h"
#include "server/notify/markup.h"

struct tw_text_links {
	struct tw_markup_out p;
	const char *base;       /* the page's address; "": no links */
	const char *project_id; /* for links */
};

enum { TW_TEXT_URL_BYTES = 1200 };
/* base/path?project=..., or NULL without a base.  path and `query` (NULL none) are not escaped:
 * pass only our own. */
const char *tw_text_url(const struct tw_text_links *w, const char *path, const char *id,
        const char *query, char out[TW_TEXT_URL_BYTES]);

/* "com.app.Repo.load in cold_start", as names. */
void tw_text_regression_name(struct tw_text_links *w, const json_t *r);
/* "+50 % in 8.3.1 after 8.3.0: 1.2 ms to 1.8 ms at the median, 95 % confidence interval ..." */
void tw_text_regression_change(struct tw_text_links *w, const json_t *r);
/* The address of its page; NULL without a base. */
const char *tw_text_regression_url(
        const struct tw_text_links *w, const json_t *r, char out[TW_TEXT_URL_BYTES]);

/* One paragraph about an event other than a digest. */
void tw_text_event(struct tw_text_links *w, enum tw_hook_event event, const json_t *facts);
/* The subject of an alert's mail. */
void tw_text_alert_title(enum tw_hook_event event, const json_t *facts, struct tw_buf *out);
/* The address of the event's page; NULL without a base. */
const char *tw_text_event_url(const struct tw_text_links *w, enum tw_hook_event event,
        const json_t *facts, char out[TW_TEXT_URL_BYTES]);

/* A complete digest (text_digest.c), with its title first. */
void tw_text_digest(struct tw_text_links *w, const json_t *digest);
void tw_text_digest_title(const json_t *digest, struct tw_buf *out);

/* --- the body of a webhook, in the format of its receiver (hook_body.c) --- */

enum { TW_HOOK_BODY_BYTES = 256 << 10 };

struct tw_delivery;
/* JSON of the delivery's event for the kind of its hook; base "": without links. */
enum tw_status tw_hook_body(const struct tw_delivery *d, const char *base, struct tw_buf *out,
        struct tw_err *err) TW_MUST_USE;

#endif
