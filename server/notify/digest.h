/*
 * digest.h - a project's digest: slow and new things since the last one, and when the next is due.
 *
 * Thread: any.
 */
#ifndef TW_DIGEST_H
#define TW_DIGEST_H

#include <jansson.h>

#include "server/catalogue/notify/catalogue_digest.h"
#include "server/fleet/store/fleet_store.h"
#include "server/notify/hook_mail.h"

/* --- settings: TW_SETTING_DIGEST --- */

/* Texts point into doc.  TW_BAD_REQUEST with a message. */
enum tw_status tw_digest_rules_read(
        const json_t *doc, struct tw_digest_rules *ret, struct tw_err *err) TW_MUST_USE;
/* Of a stored text, NULL if none is stored: otherwise as tw_digest_rules_of. */
enum tw_status tw_digest_rules_parse(const char *project_id, const char *text, json_t **ret_doc,
        struct tw_digest_rules *ret, struct tw_err *err) TW_MUST_USE;
/* The project's rules, by default none.  Texts point into *ret_doc; release it with json_decref. */
enum tw_status tw_digest_rules_of(struct tw_catalogue *c, const char *project_id, json_t **ret_doc,
        struct tw_digest_rules *ret, int64_t *ret_changed_ms, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_digest_setting;              /* catalogue_setting.h */
json_t *tw_digest_rules_json(const struct tw_digest_rules *r); /* NULL: out of memory */

/* The last period that ended by now_ms; daily if `every` is off. */
struct tw_digest_period tw_digest_period(const struct tw_digest_rules *r, int64_t now_ms);

/* --- the digest --- */

/* A JSON object (Digest in schema/openapi.json); lists are truncated.  The caller frees with
 * json_decref. It begins where the last digest ended, so that no day is repeated after the hour or
 * the weekday was changed, and none is omitted after an outage of the server. */
enum tw_status tw_digest_make(struct tw_fleet_store *store, const struct tw_digest_of *of,
        json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Likewise, for exactly that period. */
enum tw_status tw_digest_preview(struct tw_fleet_store *store, const struct tw_digest_of *of,
        json_t **ret, struct tw_err *err) TW_MUST_USE;

#endif
