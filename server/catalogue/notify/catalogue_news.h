/*
 * news.h - a project's digest: what is slow and new since the last one, and when the next is due.
 *
 * Thread: any.
 */
#ifndef TW_NEWS_H
#define TW_NEWS_H

#include <jansson.h>

#include "catalogue.h"
#include "hook_mail.h"
#include "query.h"

/* --- what a project wants: TW_SETTING_DIGEST --- */

#define TW_SETTING_DIGEST "digest"

enum tw_news_every { TW_NEWS_OFF, TW_NEWS_DAILY, TW_NEWS_WEEKLY };
struct tw_news_rules {
	enum tw_news_every every;
	unsigned hour, weekday; /* UTC; 0 is Sunday */
	bool webhook;           /* to the hooks that want digests */
	const char *mail[TW_MAILS_MAX];
	size_t n_mail;
};
/* Texts point into doc.  TW_BAD_REQUEST in words. */
enum tw_status tw_news_rules_read(
        const json_t *doc, struct tw_news_rules *ret, struct tw_err *err) TW_MUST_USE;
json_t *tw_news_rules_json(const struct tw_news_rules *r); /* NULL: no memory */

struct tw_news_period {
	int64_t since_ms, until_ms;
};
/* The last one that is over at now_ms; daily when `every` is off. */
struct tw_news_period tw_news_period(const struct tw_news_rules *r, int64_t now_ms);

/* --- the digest --- */

struct tw_news_of {
	const char *project_id, *project;
	struct tw_news_period period;
	struct tw_deadline deadline; /* asked between and within parts; what is left out is said */
};
/* A JSON object as schema/openapi.json says (Digest); lists are cut.  json_decref is owed.
 * It goes on where the last one ended, so that no day is told twice when the hour or the day of the
 * week is another since, and none is left out when the server was down for some. */
enum tw_status tw_news_make(struct tw_catalogue *c, const struct tw_news_of *of, json_t **ret,
        struct tw_err *err) TW_MUST_USE;
/* Likewise, of just that period. */
enum tw_status tw_news_preview(struct tw_catalogue *c, const struct tw_news_of *of, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

/* --- the catalogue's part (catalogue_news.c) --- */

struct tw_news_ingest {
	int64_t accepted, failed, expired;
};
enum tw_status tw_catalogue_news_ingest(struct tw_catalogue *c, const char *project_id,
        struct tw_news_period of, struct tw_news_ingest *ret, struct tw_err *err) TW_MUST_USE;
enum { TW_NEWS_REGRESSIONS_MAX = 200 };
/* Ids of regressions to which that happened (enum tw_hook_event), newest first. */
enum tw_status tw_catalogue_news_regressions(struct tw_catalogue *c, const char *project_id,
        struct tw_news_period of, int event, struct tw_arena *a, const char *const **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum { TW_NEWS_ANRS_MAX = 10 };
struct tw_news_anr {
	const char *key, *name, *title, *verdict;
	int64_t count;
	int64_t total; /* of all such groups */
};
/* Groups whose first report came then, most reports first. */
enum tw_status tw_catalogue_news_anrs(struct tw_catalogue *c, const char *project_id,
        struct tw_news_period of, struct tw_arena *a, struct tw_news_anr **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Was one made whose end is on the day of until_ms (UTC) or later? */
enum tw_status tw_catalogue_news_made(struct tw_catalogue *c, const char *project_id,
        int64_t until_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* The end of the last one before, 0: there is none. */
enum tw_status tw_catalogue_news_last(struct tw_catalogue *c, const char *project_id,
        int64_t before_ms, int64_t *ret, struct tw_err *err) TW_MUST_USE;
/* In one transaction: this period is told, by whoever comes first, and what is to be sent. */
enum tw_status tw_catalogue_news_claim(struct tw_catalogue *c, const struct tw_news_of *of,
        const char *facts, const struct tw_news_rules *to, struct tw_err *err) TW_MUST_USE;
/* Somebody tells one now: no planned one is left out for it. */
enum tw_status tw_catalogue_news_tell(struct tw_catalogue *c, const struct tw_news_of *of,
        const char *facts, const struct tw_news_rules *to, struct tw_err *err) TW_MUST_USE;

#endif
