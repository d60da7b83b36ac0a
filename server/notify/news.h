/*
 * news.h - a project's digest: what is slow and new since the last one, and when the next is due.
 *
 * Thread: any.
 */
#ifndef TW_NEWS_H
#define TW_NEWS_H

#include <jansson.h>

#include "server/catalogue/notify/catalogue_news.h"
#include "server/notify/hook_mail.h"

/* --- what a project wants: TW_SETTING_DIGEST --- */

/* Texts point into doc.  TW_BAD_REQUEST in words. */
enum tw_status tw_news_rules_read(
        const json_t *doc, struct tw_news_rules *ret, struct tw_err *err) TW_MUST_USE;
json_t *tw_news_rules_json(const struct tw_news_rules *r); /* NULL: no memory */

/* The last one that is over at now_ms; daily when `every` is off. */
struct tw_news_period tw_news_period(const struct tw_news_rules *r, int64_t now_ms);

/* --- the digest --- */

/* A JSON object as schema/openapi.json says (Digest); lists are cut.  json_decref is owed.
 * It goes on where the last one ended, so that no day is told twice when the hour or the day of the
 * week is another since, and none is left out when the server was down for some. */
enum tw_status tw_news_make(struct tw_catalogue *c, const struct tw_news_of *of, json_t **ret,
        struct tw_err *err) TW_MUST_USE;
/* Likewise, of just that period. */
enum tw_status tw_news_preview(struct tw_catalogue *c, const struct tw_news_of *of, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

#endif
