/*
 * api_capture.c - capture rules: what devices should record.
 *
 * A device receives rules, not counts, so that the response and its ETag change only when a rule
 * starts or stops to apply to it.
 */
#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/file/sha256.h"
#include "server/base/secret.h"
#include "server/base/text/json.h"
#include "server/catalogue/access/capture.h"
#include "server/catalogue/access/catalogue_capture.h"
#include "server/catalogue/access/catalogue_setting.h"

struct counts {
	struct tw_capture_count *rows;
	size_t n;
	int64_t today;
};

/* *ret NULL: no valid rules were stored yet; release with json_decref. */
static enum tw_status load_rules(
        struct tw_req *r, json_t **ret, int64_t *ret_changed_ms, struct tw_err *err)
{
	return tw_setting_load(tw_api_catalogue(r), tw_api_project(r), &tw_capture_setting, ret,
	        ret_changed_ms, err);
}

static enum tw_status load_counts(
        struct tw_req *r, int64_t days, struct counts *ret, struct tw_err *err)
{
	ret->today = tw_unix_ms() / TW_DAY_MS;
	return tw_catalogue_capture_counts(tw_api_catalogue(r), tw_api_project(r),
	        ret->today - days + 1, tw_req_arena(r), &ret->rows, &ret->n, err);
}

static uint64_t taken_today(void *arg, const char *rule)
{
	const struct counts *c = arg;

	for (size_t i = 0; i < c->n; i++)
		if (c->rows[i].day == c->today && strcmp(c->rows[i].rule, rule) == 0)
			return c->rows[i].traces;
	return 0;
}

/* --- for devices --- */

static const struct tw_param device_params[] = {
        TW_PARAM_TEXT("device_id", TW_MAX_TEXT,
                "Id of the installation, chosen by the app; it must not change."),
        TW_PARAM_TEXT("app", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("version_name", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("device", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("os", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("scenario", TW_MAX_TEXT, "Omits rules of other scenarios."),
        {0},
};

static enum tw_status read_device(struct tw_req *r, struct tw_capture_device *d, struct tw_err *err)
{
	const struct {
		const char *name;
		const char **at;
	} texts[] = {
	        {"device_id", &d->id},
	        {"app", &d->app},
	        {"version_name", &d->version_name},
	        {"device", &d->device},
	        {"os", &d->os},
	        {"scenario", &d->scenario},
	};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < sizeof texts / sizeof *texts; i++) {
		*texts[i].at = tw_req_text_or_empty(r, texts[i].name);
		st = tw_check_text(texts[i].name, *texts[i].at, err);
	}
	return st;
}

/* Takes ownership of answer. */
static enum tw_status reply_tagged(struct tw_req *r, json_t *answer, struct tw_err *err)
{
	char *text = tw_json_dumps(answer, JSON_COMPACT);
	json_int_t max_age_s = json_integer_value(json_object_get(answer, "max_age_s"));
	const char *caching = tw_arena_printf(
	        tw_req_arena(r), "private, max-age=%" JSON_INTEGER_FORMAT, max_age_s);
	uint8_t hash[32];
	char tag[TW_SHA256_HEX];
	bool unchanged;

	if (!text || !caching) {
		json_decref(answer);
		free(text);
		return tw_oom(err);
	}
	tw_secret_hash(text, hash);
	tw_sha256_hex(hash, tag);
	free(text);
	tag[32] = '\0';
	tw_req_set_header(r, "Cache-Control", caching);
	unchanged = tw_req_reply_unchanged(r, tag);
	if (!unchanged)
		return tw_req_reply_json(r, 200, answer, err);
	json_decref(answer);
	return TW_OK;
}

static enum tw_status get_capture(struct tw_req *r, struct tw_err *err)
{
	struct tw_capture_device device;
	struct counts counts;
	json_t *rules = NULL;
	json_t *answer;
	int64_t changed_ms;
	enum tw_status st = read_device(r, &device, err);

	if (st == TW_OK)
		st = load_counts(r, 1, &counts, err);
	if (st == TW_OK)
		st = load_rules(r, &rules, &changed_ms, err);
	if (st != TW_OK)
		return st;
	answer = tw_capture_response(rules, &device, taken_today, &counts);
	json_decref(rules);
	return reply_tagged(r, answer, err);
}

/* --- for people --- */

static json_t *count_json(const struct tw_capture_count *c)
{
	const json_int_t day_ms = c->day * TW_DAY_MS;

	return json_pack("{s:s, s:I, s:I, s:I}", "rule", c->rule, "day_ms", day_ms, "traces",
	        (json_int_t)c->traces, "devices", (json_int_t)c->devices);
}

static enum tw_status get_rules(struct tw_req *r, struct tw_err *err)
{
	struct counts counts;
	json_t *doc = NULL;
	json_t *days;
	json_t *answer;
	int64_t changed_ms = 0;
	enum tw_status st = load_counts(r, TW_CAPTURE_DAYS, &counts, err);

	if (st == TW_OK)
		st = load_rules(r, &doc, &changed_ms, err);
	if (st != TW_OK)
		return st;
	days = json_array();
	for (size_t i = 0; i < counts.n; i++)
		(void)json_array_append_new(days, count_json(&counts.rows[i]));
	answer = doc ? doc : json_pack("{s:i, s:[]}", "max_age_s", TW_CAPTURE_VALID_S, "rules");
	answer = tw_json_complete(
	        answer, json_object_set_new(answer, "updated_ms", json_integer(changed_ms)) |
	                        json_object_set_new(answer, "days", days));
	return tw_req_reply_json(r, 200, answer, err);
}

/* Keeps only members of the rules, because the page sends back the whole response. */
static json_t *document_of(const json_t *body)
{
	json_t *valid = json_object_get(body, "max_age_s");

	return json_pack("{s:o, s:O}", "max_age_s",
	        valid ? json_incref(valid) : json_integer(TW_CAPTURE_VALID_S), "rules",
	        json_object_get(body, "rules"));
}

static enum tw_status store(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	enum tw_status st = tw_capture_check(body, err);
	json_t *doc = st == TW_OK ? document_of(body) : NULL;

	if (st == TW_OK)
		st = tw_api_store_setting(r, TW_SETTING_CAPTURE, doc, err);
	json_decref(doc);
	return st == TW_OK ? get_rules(r, err) : st;
}

const struct tw_route tw_routes_capture[] = {
        TW_ROUTE("GET", "/api/v1/capture", TW_NEED_READ_OR_INGEST, "Capture decision for a device",
                .params = TW_PARAMS(device_params), .roles = TW_ROLE_INGEST | TW_ROLE_QUERY,
                .end = get_capture),
        TW_ROUTE("GET", "/api/v1/capture/rules", TW_NEED_READ,
                "The capture rules, and how many traces they produced",
                .roles = TW_ROLE_INGEST | TW_ROLE_QUERY, .end = get_rules),
        TW_ROUTE("PUT", "/api/v1/capture/rules", TW_NEED_ADMIN, "Sets the capture rules",
                .roles = TW_ROLE_INGEST | TW_ROLE_QUERY, .json = store),
        {0},
};
