/*
 * catalogue_setting.h - settings of a project, each a JSON document.  Thread: any.
 *
 * A stored document may be invalid: edited by hand, or written by an older version.  Readers then
 * use their defaults, so that one damaged setting does not fail the requests that use it.
 */
#ifndef TW_CATALOGUE_SETTING_H
#define TW_CATALOGUE_SETTING_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;

/* *ret NULL and time 0: unset.  The time rises with every change. */
enum tw_status tw_catalogue_setting_get(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, const char **ret, int64_t *ret_updated_ms,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_setting_set(struct tw_catalogue *c, const char *project_id,
        const char *key, const char *value, struct tw_err *err) TW_MUST_USE;

/* Whether the document can be used.  TW_BAD_REQUEST with the reason. */
typedef enum tw_status tw_setting_check(const json_t *doc, struct tw_err *err);
/* The document in the text, checked; check NULL: any JSON.  Free with json_decref.  TW_BAD_REQUEST
 * with the reason. */
enum tw_status tw_setting_parse(
        const char *text, tw_setting_check *check, json_t **ret, struct tw_err *err) TW_MUST_USE;

struct tw_setting {
	const char *key;
	tw_setting_check *check;
};
/* *ret NULL: unset, or invalid, which is logged once.  Free with json_decref. */
enum tw_status tw_setting_load(struct tw_catalogue *c, const char *project_id,
        const struct tw_setting *of, json_t **ret, int64_t *ret_updated_ms,
        struct tw_err *err) TW_MUST_USE;
/* Likewise, of a text that was read before; NULL: unset. */
enum tw_status tw_setting_of_text(const char *project_id, const struct tw_setting *of,
        const char *text, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* Each setting and each current ruleset; `project` is its name. */
typedef void tw_setting_each(void *arg, const char *project, const char *key, const char *text);
enum tw_status tw_catalogue_settings(struct tw_catalogue *c, const char *project_id,
        tw_setting_each *each, void *arg, struct tw_err *err) TW_MUST_USE;
/* Of all projects, from the catalogue at that path, opened read-only. */
enum tw_status tw_catalogue_read_settings(
        const char *path, tw_setting_each *each, void *arg, struct tw_err *err) TW_MUST_USE;

#endif
