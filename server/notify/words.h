/*
 * words.h - what happened, said to people: sentences about regressions, ANRs and digests in any
 * markup.
 *
 * They are made of the facts that an event carries (catalogue_tell.c, news.c), so what is told does
 * not change with what happens until it is told.  Pure.  Thread: any.
 */
#ifndef TW_WORDS_H
#define TW_WORDS_H

#include <jansson.h>

#include "server/catalogue/notify/hook.h"
#include "server/notify/prose.h"

struct tw_words {
	struct tw_prose p;
	const char *base;       /* the page's address; "": there are no links */
	const char *project_id; /* links lead into it */
};

enum { TW_WORDS_URL_BYTES = 1200 };
/* base/path?project=..., or NULL without a base.  path is ours, `query` of it (NULL none) too. */
const char *tw_words_url(const struct tw_words *w, const char *path, const char *id,
        const char *query, char out[TW_WORDS_URL_BYTES]);

/* A member, "" where it is no text. */
const char *tw_words_of(const json_t *j, const char *key);

/* "com.app.Repo.load in cold_start", as names. */
void tw_words_regression_name(struct tw_words *w, const json_t *r);
/* "+50 % in 8.3.1 after 8.3.0: 1.2 ms to 1.8 ms at the median, 95 % sure ..." */
void tw_words_regression_change(struct tw_words *w, const json_t *r);
/* Where to look at it; NULL without a base. */
const char *tw_words_regression_url(
        const struct tw_words *w, const json_t *r, char out[TW_WORDS_URL_BYTES]);

/* One paragraph about an event that is no digest. */
void tw_words_event(struct tw_words *w, enum tw_hook_event event, const json_t *facts);
/* Where it leads; NULL without a base. */
const char *tw_words_event_url(const struct tw_words *w, enum tw_hook_event event,
        const json_t *facts, char out[TW_WORDS_URL_BYTES]);

/* A whole digest (words_digest.c), its title first when `title`. */
void tw_words_digest(struct tw_words *w, const json_t *digest, bool title);
void tw_words_digest_title(const json_t *digest, struct tw_buf *out);

#endif
