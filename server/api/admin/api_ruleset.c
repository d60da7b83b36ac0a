/*
 * api_ruleset.c - versioned rule documents: get and replace.
 */
#include "server/api/admin/api_ruleset.h"

#include <stdlib.h>

#include "server/base/text/json.h"
#include "server/catalogue/catalogue_row.h"

enum tw_status tw_api_ruleset_load(struct tw_req *r, const struct tw_api_ruleset *of,
        int64_t version, struct tw_ruleset *ret, json_t **ret_doc, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_ruleset(tw_api_catalogue(r), tw_api_project(r),
	        of->setting->key, version, tw_req_arena(r), ret, err);

	if (st == TW_OK)
		st = tw_setting_of_text(tw_api_project(r), of->setting, ret->value, ret_doc, err);
	if (st == TW_OK && !*ret_doc)
		*ret_doc = of->none();
	return st == TW_OK && !*ret_doc ? tw_oom(err) : st;
}

/* Takes ownership of doc. */
static enum tw_status reply(struct tw_req *r, const struct tw_api_ruleset *of,
        const struct tw_ruleset *rules, json_t *doc, json_t *versions, struct tw_err *err)
{
	json_t *head = json_pack("{s:I, s:s, s:I, s:o}", "version", (json_int_t)rules->version,
	        "author", rules->author, "created_ms", (json_int_t)rules->created_ms, "versions",
	        versions);
	bool complete = head && json_object_update(doc, head) == 0 && (!of->more || of->more(doc));

	json_decref(head);
	if (complete)
		return tw_req_reply_json(r, 200, doc, err);
	json_decref(doc);
	return tw_oom(err);
}

static enum tw_status reply_version(
        struct tw_req *r, const struct tw_api_ruleset *of, int64_t version, struct tw_err *err)
{
	struct tw_ruleset *versions = NULL;
	struct tw_ruleset rules;
	json_t *doc = NULL;
	char *tag;
	size_t n = 0;
	enum tw_status st = tw_catalogue_ruleset_versions(tw_api_catalogue(r), tw_api_project(r),
	        of->setting->key, tw_req_arena(r), &versions, &n, err);

	if (st == TW_OK)
		st = tw_api_ruleset_load(r, of, version, &rules, &doc, err);
	if (st != TW_OK)
		return st;
	tag = tw_arena_printf(tw_req_arena(r), "%s-%lld-%lld", TW_VERSION, (long long)rules.version,
	        (long long)(n ? versions[0].version : 0));
	tw_req_set_header(r, "Cache-Control", "private, no-cache");
	if (tag && !tw_req_reply_unchanged(r, tag))
		return reply(r, of, &rules, doc,
		        tw_rows_json(&tw_ruleset_fields, versions, n, sizeof *versions), err);
	json_decref(doc);
	return tag ? TW_OK : tw_oom(err);
}

const struct tw_param tw_api_ruleset_params[] = {
        TW_PARAM_OPTIONAL_NUMBER(
                "version", 1, INT64_MAX / 2, "An earlier version; the last 200 are stored."),
        {0},
};

enum tw_status tw_api_ruleset_get(
        struct tw_req *r, const struct tw_api_ruleset *of, struct tw_err *err)
{
	return reply_version(r, of, tw_req_number_or(r, "version", 0), err);
}

static enum tw_status store(struct tw_req *r, const struct tw_api_ruleset *of, int64_t after,
        const json_t *doc, struct tw_err *err)
{
	char *text = tw_json_dumps(doc, JSON_COMPACT);
	const struct tw_ruleset rules = {.value = text, .author = tw_api_author(r)};
	enum tw_status st;

	if (!text)
		return tw_oom(err);
	st = tw_catalogue_ruleset_put(
	        tw_api_catalogue(r), tw_api_project(r), of->setting->key, after, &rules, err);
	free(text);
	return st;
}

enum tw_status tw_api_ruleset_put(struct tw_req *r, const struct tw_api_ruleset *of,
        const json_t *body, json_t *doc, struct tw_err *err)
{
	const json_t *after = json_object_get(body, "version");
	enum tw_status st;

	if (after && (!json_is_integer(after) || json_integer_value(after) < 0))
		st = tw_fail(
		        err, TW_BAD_REQUEST, "version must be the number of the changed rules");
	else
		st = store(r, of, after ? json_integer_value(after) : -1, doc, err);
	json_decref(doc);
	return st == TW_OK ? reply_version(r, of, 0, err) : st;
}
