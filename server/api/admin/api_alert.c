/*
 * api_alert.c - alert rules of a project: limits of figures, and a look at them now.
 */
#include <math.h>
#include <string.h>

#include "server/api/api.h"
#include "server/base/app.h"
#include "server/base/clock.h"
#include "server/base/text/json_memory.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/catalogue_row.h"
#include "server/derive/stage_alerts.h"

enum {
	NAME_BYTES = 100,
	TEXT_BYTES = 200,
	PERCENT = 95,
	DAYS = 7,
	DAYS_MAX = 90,
	LEAST = 20,
	LEAST_MAX = 1000000
};
#define LIMIT_MAX 1e9

static struct tw_catalogue *catalogue(const struct tw_req *r)
{
	return tw_req_app(r)->catalogue;
}

static const char *project(const struct tw_req *r)
{
	return tw_req_caller(r)->project_id;
}

static json_t *rule_json(const struct tw_alert_rule *r)
{
	json_t *j = tw_row_json(&tw_alert_rule_fields, r);

	return tw_json_complete(
	        j, json_object_set_new(j, "unit", json_string(tw_alert_units[r->kind])) |
	                   json_object_set_new(
	                           j, "limit", json_real((double)r->limit / TW_ALERT_MICRO)));
}

static enum tw_status list(struct tw_req *r, struct tw_err *err)
{
	struct tw_alert_rule *rows = NULL;
	json_t *all;
	size_t n = 0;
	enum tw_status st =
	        tw_catalogue_alert_rules(catalogue(r), project(r), tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	all = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, rule_json(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{s:o, s:i, s:b}", "rules", all, "most", (int)TW_ALERT_RULES_MAX, "mail",
	                *tw_req_app(r)->config->smtp_url != '\0'),
	        err);
}

static enum tw_status reply(struct tw_req *r, int http, const char *id, struct tw_err *err)
{
	struct tw_alert_rule row;
	enum tw_status st = tw_catalogue_alert_rule_get(
	        catalogue(r), project(r), id, tw_req_arena(r), &row, err);

	return st == TW_OK ? tw_req_reply_json(r, http, rule_json(&row), err) : st;
}

static enum tw_status get_one(struct tw_req *r, struct tw_err *err)
{
	return reply(r, 200, tw_req_path(r, "rule"), err);
}

/* --- bodies --- */

static enum tw_status refuse_unknown(const json_t *body, bool is_new, struct tw_err *err)
{
	static const char *const known[] = {"name", "limit", "percent", "least", "days", "mail",
	        "kind", "app", "scenario", "version_name"};
	const size_t changeable = 6;
	size_t n = 0;

	for (size_t i = 0; i < (is_new ? sizeof known / sizeof *known : changeable); i++)
		n += json_object_get(body, known[i]) != NULL;
	if (n == json_object_size(body))
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        is_new ? "an alert rule has name, kind, app, scenario, version_name, percent, "
	                 "limit, "
	                 "least, days and mail, nothing else"
	               : "name, percent, limit, least, days and mail of an alert rule can be "
	                 "changed, "
	                 "nothing else: add a rule for another figure");
}

static enum tw_status read_whole(const json_t *body, const char *key, int64_t least, int64_t most,
        int64_t *io, struct tw_err *err)
{
	const json_t *at = json_object_get(body, key);
	const int64_t v = at ? json_integer_value(at) : *io;

	if ((at && !json_is_integer(at)) || v < least || v > most)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a whole number from %d to %d", key,
		        (int)least, (int)most);
	*io = v;
	return TW_OK;
}

static enum tw_status read_limit(const json_t *body, struct tw_alert_rule *io, struct tw_err *err)
{
	const json_t *at = json_object_get(body, "limit");
	const bool share = strcmp(tw_alert_units[io->kind], "share") == 0;
	const double v = json_number_value(at);

	if (!at && io->limit > 0)
		return TW_OK;
	if (!json_is_number(at) || !(v > 0 && v < (share ? 1 : LIMIT_MAX)))
		return tw_fail(err, TW_BAD_REQUEST,
		        share ? "limit must be a share of frames above 0 and below 1"
		              : "limit must be a number above 0, in the unit of its kind");
	io->limit = llround(v * TW_ALERT_MICRO);
	return io->limit > 0 ? TW_OK
	                     : tw_fail(err, TW_BAD_REQUEST, "limit is too small to be stored");
}

static enum tw_status read_numbers(const json_t *body, struct tw_alert_rule *io, struct tw_err *err)
{
	const json_t *mail = json_object_get(body, "mail");
	int64_t percent = io->percent, least = io->least, days = io->days;
	enum tw_status st = read_whole(body, "percent", 1, 99, &percent, err);

	if (st == TW_OK)
		st = read_whole(body, "least", 1, LEAST_MAX, &least, err);
	if (st == TW_OK)
		st = read_whole(body, "days", 1, DAYS_MAX, &days, err);
	if (st == TW_OK && mail && !json_is_boolean(mail))
		st = tw_fail(err, TW_BAD_REQUEST, "mail must be true or false");
	io->percent = (unsigned)percent;
	io->least = (uint32_t)least;
	io->days = (unsigned)days;
	io->mail = mail ? json_is_true(mail) : io->mail;
	return st == TW_OK ? read_limit(body, io, err) : st;
}

static enum tw_status read_texts(const json_t *body, struct tw_alert_rule *io, struct tw_err *err)
{
	const struct {
		const char *key;
		const char **to;
		size_t most;
	} texts[] = {{"name", &io->name, NAME_BYTES}, {"app", &io->app, TEXT_BYTES},
	        {"scenario", &io->scenario, TEXT_BYTES},
	        {"version_name", &io->version_name, TEXT_BYTES}};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < sizeof texts / sizeof *texts; i++)
		if (json_object_get(body, texts[i].key))
			st = tw_api_text(
			        body, texts[i].key, texts[i].most, false, texts[i].to, err);
	if (st == TW_OK && !*io->name)
		st = tw_fail(
		        err, TW_BAD_REQUEST, "name must be a text of 1 to %d bytes", NAME_BYTES);
	return st;
}

static enum tw_status make(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_alert_rule row = {.name = "",
	        .app = "",
	        .scenario = "",
	        .version_name = "",
	        .author = tw_api_author(r),
	        .percent = PERCENT,
	        .days = DAYS,
	        .least = LEAST,
	        .mail = true};
	const char *kind = json_string_value(json_object_get(body, "kind"));
	char id[TW_ID_BYTES];
	unsigned which = 0;
	enum tw_status st = refuse_unknown(body, true, err);

	if (st == TW_OK)
		st = tw_pick_word("kind", kind ? kind : "", tw_alert_kind_names, &which, err);
	row.kind = (enum tw_alert_kind)which;
	if (st == TW_OK)
		st = read_texts(body, &row, err);
	if (st == TW_OK)
		st = read_numbers(body, &row, err);
	if (st == TW_OK)
		st = tw_catalogue_alert_rule_add(catalogue(r), project(r), &row, id, err);
	return st == TW_OK ? reply(r, 201, id, err) : st;
}

static enum tw_status post(struct tw_req *r, struct tw_err *err)
{
	return tw_api_with_body(r, make, err);
}

static enum tw_status change(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_alert_rule row;
	enum tw_status st = tw_catalogue_alert_rule_get(
	        catalogue(r), project(r), tw_req_path(r, "rule"), tw_req_arena(r), &row, err);

	if (st == TW_OK)
		st = refuse_unknown(body, false, err);
	if (st == TW_OK)
		st = read_texts(body, &row, err);
	if (st == TW_OK)
		st = read_numbers(body, &row, err);
	if (st == TW_OK)
		st = tw_catalogue_alert_rule_change(catalogue(r), project(r), &row, err);
	return st == TW_OK ? reply(r, 200, row.id, err) : st;
}

static enum tw_status patch(struct tw_req *r, struct tw_err *err)
{
	return tw_api_with_body(r, change, err);
}

static enum tw_status drop(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_alert_rule_delete(
	        catalogue(r), project(r), tw_req_path(r, "rule"), err);

	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

/* --- a look now --- */

static bool is_late(void *arg)
{
	return tw_req_ms_left(arg) == 0;
}

static void take(void *arg, const struct tw_alert_rule *rule, const struct tw_alert_figure *figures,
        size_t n)
{
	json_t *all = arg;

	for (size_t i = 0; i < n; i++) {
		const bool group = rule->kind == TW_ALERT_anr_spike;

		(void)json_array_append_new(all,
		        json_pack("{s:s, s:s, s:s, s:s, s:f, s:I, s:b, s:s}", "rule", rule->id,
		                "app", figures[i].app, "version", group ? "" : figures[i].subject,
		                "anr", group ? figures[i].subject : "", "value",
		                (double)figures[i].value / TW_ALERT_MICRO, "traces",
		                (json_int_t)figures[i].traces, "over", (int)figures[i].is_over,
		                "trace", figures[i].trace_id));
	}
}

static enum tw_status look(struct tw_req *r, struct tw_err *err)
{
	const struct tw_deadline deadline = {is_late, r};
	json_t *all = json_array();
	const struct tw_alerts_took took = {take, all};
	const struct tw_alerts_how how = {(size_t)tw_monotonic_ms(), &deadline, &took};
	bool partial = false;
	enum tw_status st =
	        all ? tw_alerts_look(tw_req_app(r), project(r), &how, &partial, err) : tw_oom(err);

	if (st != TW_OK) {
		json_decref(all);
		return st;
	}
	tw_periodic_wake(tw_req_app(r)->hooks);
	return tw_req_reply_json(
	        r, 200, json_pack("{s:o, s:b}", "figures", all, "partial", (int)partial), err);
}

#define TAKES_JSON                                                                                 \
	.max_body = tw_api_small_body, .begin = tw_api_collect_begin, .body = tw_api_collect

const struct tw_route tw_routes_alert[] = {
        {.method = "GET",
                .path = "/api/v1/alerts/rules",
                .needs = TW_NEED_READ,
                .end = list,
                .summary = "The project's alert rules"},
        {.method = "POST",
                .path = "/api/v1/alerts/rules",
                .needs = TW_NEED_WRITE,
                TAKES_JSON,
                .end = post,
                .summary = "Adds an alert rule"},
        {.method = "GET",
                .path = "/api/v1/alerts/rules/{rule}",
                .needs = TW_NEED_READ,
                .end = get_one,
                .summary = "One alert rule"},
        {.method = "PATCH",
                .path = "/api/v1/alerts/rules/{rule}",
                .needs = TW_NEED_WRITE,
                TAKES_JSON,
                .end = patch,
                .summary = "Changes an alert rule"},
        {.method = "DELETE",
                .path = "/api/v1/alerts/rules/{rule}",
                .needs = TW_NEED_WRITE,
                .end = drop,
                .summary = "Removes an alert rule with its alerts"},
        {.method = "POST",
                .path = "/api/v1/alerts/look",
                .needs = TW_NEED_WRITE,
                .end = look,
                .summary = "Compares all figures with their limits now"},
        {0},
};
