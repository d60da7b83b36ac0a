/*
 * words.h - sentences about regressions, ANRs and digests, in any markup.
 *
 * They use only the facts stored with an event (catalogue_tell.c, digest.c), so that a text is the
 * same whenever it is sent.  Pure.  Thread: any.
 */
#ifndef TW_WORDS_H
#define TW_WORDS_H

#include <jansson.h>

#include "server/catalogue/notify/hook.h"
#include "server/notify/prose.h"

struct tw_words {
	struct tw_prose p;
	const char *base;       /* the page's address; "": no links */
	const char *project_id; /* for links */
};

enum { TW_WORDS_URL_BYTES = 1200 };
/* base/path?project=..., or NULL without a base.  path and `query` (NULL none) are not escaped:
 * pass only our own. */
const char *tw_words_url(const struct tw_words *w, const char *path, const char *id,
        const char *query, char out[TW_WORDS_URL_BYTES]);

/* A member, "" if it is not a text. */
const char *tw_words_of(const json_t *j, const char *key);

/* "com.app.Repo.load in cold_start", as names. */
void tw_words_regression_name(struct tw_words *w, const json_t *r);
/* "+50 % in 8.3.1 after 8.3.0: 1.2 ms to 1.8 ms at the median, 95 % sure ..." */
void tw_words_regression_change(struct tw_words *w, const json_t *r);
/* The address of its page; NULL without a base. */
const char *tw_words_regression_url(
        const struct tw_words *w, const json_t *r, char out[TW_WORDS_URL_BYTES]);

/* One paragraph about an event other than a digest. */
void tw_words_event(struct tw_words *w, enum tw_hook_event event, const json_t *facts);
/* The address of the event's page; NULL without a base. */
const char *tw_words_event_url(const struct tw_words *w, enum tw_hook_event event,
        const json_t *facts, char out[TW_WORDS_URL_BYTES]);

/* A complete digest (words_digest.c), with its title first if `title`. */
void tw_words_digest(struct tw_words *w, const json_t *digest, bool title);
void tw_words_digest_title(const json_t *digest, struct tw_buf *out);

#endif
