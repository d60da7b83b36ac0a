/*
 * api_alert.c - alert rules of a project: thresholds of figures, a preview of a rule, and
 * evaluation of all rules on request.
 */
#include <math.h>
#include <string.h>

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/text/json.h"
#include "server/catalogue/catalogue_row.h"
#include "server/derive/jobs_hook.h"
#include "server/derive/stages.h"

enum {
	NAME_BYTES = 100,
	TEXT_BYTES = 200,
	PERCENTILE = 95,
	DAYS = 7,
	DAYS_MAX = 90,
	MIN_TRACES = 20,
	MIN_TRACES_MAX = 1000000
};
#define THRESHOLD_MAX 1e9

static json_t *rule_json(const struct tw_alert_rule *r)
{
	json_t *j = tw_row_json(&tw_alert_rule_fields, r);

	return tw_json_complete(
	        j, json_object_set_new(j, "unit", json_string(tw_alert_units[r->kind])) |
	                   json_object_set_new(j, "threshold",
	                           json_real((double)r->threshold / TW_ALERT_MICRO)));
}

static enum tw_status list(struct tw_req *r, struct tw_err *err)
{
	struct tw_alert_rule *rows = NULL;
	json_t *all;
	size_t n = 0;
	enum tw_status st = tw_catalogue_alert_rules(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	all = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, rule_json(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{s:o, s:i, s:b}", "rules", all, "max_rules", (int)TW_ALERT_RULES_MAX,
	                "mail", *tw_api_of(r)->config->smtp_url != '\0'),
	        err);
}

static enum tw_status reply(struct tw_req *r, int http, const char *id, struct tw_err *err)
{
	struct tw_alert_rule row;
	enum tw_status st = tw_catalogue_alert_rule_get(
	        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &row, err);

	return st == TW_OK ? tw_req_reply_json(r, http, rule_json(&row), err) : st;
}

static enum tw_status get_one(struct tw_req *r, struct tw_err *err)
{
	return reply(r, 200, tw_req_path(r, "rule"), err);
}

/* --- bodies --- */

#define NUMBER(member, max_)                                                                       \
	TW_MEMBER(TW_MEMBER_NUMBER, struct tw_alert_rule, member, .min = 1, .max = (max_))
#define TEXT(member, max_) TW_MEMBER(TW_MEMBER_TEXT, struct tw_alert_rule, member, .max = (max_))
#define NUMBERS                                                                                    \
	NUMBER(percentile, 99), {.name = "threshold", .kind = TW_MEMBER_OTHER},                    \
	        NUMBER(min_traces, MIN_TRACES_MAX), NUMBER(days, DAYS_MAX),                        \
	        TW_MEMBER(TW_MEMBER_FLAG, struct tw_alert_rule, mail),                             \
	{                                                                                          \
		0                                                                                  \
	}

static const struct tw_member members[] = {
        TEXT(name, NAME_BYTES),
        TW_MEMBER(TW_MEMBER_ENUM, struct tw_alert_rule, kind, .required = true,
                .enum_names = tw_alert_kind_names),
        TEXT(app, TEXT_BYTES),
        TEXT(scenario, TEXT_BYTES),
        TEXT(version_name, TEXT_BYTES),
        TEXT(method, TW_ROLLUP_NAME_BYTES),
        NUMBERS,
};
static const struct tw_member changeable[] = {TEXT(name, NAME_BYTES), NUMBERS};

static enum tw_status read_threshold(
        const json_t *body, struct tw_alert_rule *io, struct tw_err *err)
{
	const json_t *at = json_object_get(body, "threshold");
	const bool share = strcmp(tw_alert_units[io->kind], "share") == 0;
	const double v = json_number_value(at);

	if (!at && io->threshold > 0)
		return TW_OK;
	if (!json_is_number(at) || !(v > 0 && v < (share ? 1 : THRESHOLD_MAX)))
		return tw_fail(err, TW_BAD_REQUEST,
		        share ? "threshold must be a share above 0 and below 1"
		              : "threshold must be a number above 0 and below 1000000000, in the "
		                "unit of the kind of alert");
	io->threshold = llround(v * TW_ALERT_MICRO);
	return io->threshold > 0
	               ? TW_OK
	               : tw_fail(err, TW_BAD_REQUEST, "threshold is too small to be stored");
}

static enum tw_status need_name(const struct tw_alert_rule *rule, struct tw_err *err)
{
	return *rule->name ? TW_OK
	                   : tw_fail(err, TW_BAD_REQUEST, "name must be a text of 1 to %d bytes",
	                             NAME_BYTES);
}

static enum tw_status read_new(
        struct tw_req *r, const json_t *body, struct tw_alert_rule *ret, struct tw_err *err)
{
	enum tw_status st =
	        tw_members_only(body, members, 0, "the only fields of an alert rule are ", "", err);

	*ret = (struct tw_alert_rule){.id = "",
	        .name = "",
	        .app = "",
	        .scenario = "",
	        .version_name = "",
	        .method = "",
	        .author = tw_api_author(r),
	        .percentile = PERCENTILE,
	        .days = DAYS,
	        .min_traces = MIN_TRACES,
	        .mail = true};
	if (st == TW_OK)
		st = tw_members_read(body, members, ret, err);
	if (st == TW_OK && tw_alert_is_of_method(ret->kind) != (*ret->method != '\0'))
		return tw_fail(err, TW_BAD_REQUEST,
		        "method_self and method_share need a method, and other kinds have none");
	return st == TW_OK ? read_threshold(body, ret, err) : st;
}

static enum tw_status read_changes(const json_t *body, struct tw_alert_rule *io, struct tw_err *err)
{
	enum tw_status st = tw_members_only(body, changeable, 0, "only ",
	        " of an alert rule can be changed: add a rule for another figure", err);

	if (st == TW_OK)
		st = tw_members_read(body, changeable, io, err);
	return st == TW_OK ? read_threshold(body, io, err) : st;
}

static enum tw_status make(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_alert_rule row;
	char id[TW_ID_BYTES];
	enum tw_status st = read_new(r, body, &row, err);

	if (st == TW_OK)
		st = need_name(&row, err);
	if (st == TW_OK)
		st = tw_catalogue_alert_rule_add(
		        tw_api_catalogue(r), tw_api_project(r), &row, id, err);
	return st == TW_OK ? reply(r, 201, id, err) : st;
}

static enum tw_status change(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_alert_rule row;
	enum tw_status st = tw_catalogue_alert_rule_get(tw_api_catalogue(r), tw_api_project(r),
	        tw_req_path(r, "rule"), tw_req_arena(r), &row, err);

	if (st == TW_OK)
		st = read_changes(body, &row, err);
	if (st == TW_OK)
		st = need_name(&row, err);
	if (st == TW_OK)
		st = tw_catalogue_alert_rule_change(
		        tw_api_catalogue(r), tw_api_project(r), &row, err);
	return st == TW_OK ? reply(r, 200, row.id, err) : st;
}

static enum tw_status drop(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_alert_rule_delete(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_path(r, "rule"), err);

	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

/* --- figures --- */

static json_t *figure_json(const struct tw_alert_rule *rule, const struct tw_alert_figure *f)
{
	const bool group = rule->kind == TW_ALERT_anr_spike;

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:I, s:b, s:s}", "rule", rule->id, "app",
	        f->app, "version", group ? "" : f->subject, "anr", group ? f->subject : "", "title",
	        f->title, "value", (double)f->value / TW_ALERT_MICRO, "traces",
	        (json_int_t)f->traces, "exceeded", (int)f->is_over, "trace", f->trace_id);
}

static void take_result(void *arg, const struct tw_alert_rule *rule,
        const struct tw_alert_figure *figures, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(arg, figure_json(rule, &figures[i]));
}

/* A new rule, or the stored one with the id `rule` and these changes. */
static enum tw_status read_preview(
        struct tw_req *r, const json_t *body, struct tw_alert_rule *ret, struct tw_err *err)
{
	const json_t *at = json_object_get(body, "rule");
	json_t *changes;
	enum tw_status st;

	if (!at)
		return read_new(r, body, ret, err);
	if (!json_is_string(at))
		return tw_fail(err, TW_BAD_REQUEST, "rule is the id of an alert rule");
	st = tw_catalogue_alert_rule_get(tw_api_catalogue(r), tw_api_project(r),
	        json_string_value(at), tw_req_arena(r), ret, err);
	if (st != TW_OK)
		return st;
	changes = json_copy((json_t *)(uintptr_t)body); /* shares the texts of body */
	if (!changes || json_object_del(changes, "rule") != 0)
		st = tw_oom(err);
	if (st == TW_OK)
		st = read_changes(changes, ret, err);
	json_decref(changes);
	return st;
}

static enum tw_status preview_rule(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const struct tw_deadline deadline = tw_api_deadline(r);
	struct tw_arena *a = tw_arena_new(TW_ALERTS_ARENA_MAX);
	struct tw_alert_figure *figures = NULL;
	struct tw_alert_rule rule;
	json_t *all = json_array();
	size_t n = 0;
	enum tw_status st = a && all ? read_preview(r, body, &rule, err) : tw_oom(err);

	if (st == TW_OK)
		st = tw_alerts_try(tw_api_of(r)->fleet, tw_api_project(r), &rule, &deadline, a,
		        &figures, &n, err);
	if (st == TW_OK)
		take_result(all, &rule, figures, n);
	tw_arena_free(a);
	if (st == TW_OK)
		return tw_req_reply_json(r, 200, json_pack("{s:o}", "figures", all), err);
	json_decref(all);
	return st;
}

static enum tw_status evaluate_all(struct tw_req *r, struct tw_err *err)
{
	const struct tw_deadline deadline = tw_api_deadline(r);
	json_t *all = json_array();
	const struct tw_alerts_listener listener = {take_result, all};
	const struct tw_alerts_how how = {(size_t)tw_monotonic_ms(), &deadline, &listener,
	        *tw_api_of(r)->config->smtp_url != '\0'};
	bool partial = false;
	enum tw_status st = all ? tw_alerts_evaluate(tw_api_of(r)->fleet, tw_api_project(r), &how,
	                                  &partial, err)
	                        : tw_oom(err);

	if (st != TW_OK) {
		json_decref(all);
		return st;
	}
	tw_hook_runner_wake(tw_api_of(r)->hooks);
	return tw_req_reply_json(
	        r, 200, json_pack("{s:o, s:b}", "figures", all, "partial", (int)partial), err);
}

const struct tw_route tw_routes_alert[] = {
        TW_ROUTE("GET", "/api/v1/alerts/rules", TW_NEED_READ, "The project's alert rules",
                .end = list),
        TW_ROUTE("POST", "/api/v1/alerts/rules", TW_NEED_WRITE, "Adds an alert rule", .json = make),
        TW_ROUTE("GET", "/api/v1/alerts/rules/{rule}", TW_NEED_READ, "One alert rule",
                .end = get_one),
        TW_ROUTE("PATCH", "/api/v1/alerts/rules/{rule}", TW_NEED_WRITE, "Changes an alert rule",
                .json = change),
        TW_ROUTE("DELETE", "/api/v1/alerts/rules/{rule}", TW_NEED_WRITE,
                "Removes an alert rule with its alerts", .end = drop),
        TW_ROUTE("POST", "/api/v1/alerts/preview", TW_NEED_READ,
                "Evaluates an alert rule without saving it", .read_only = true,
                .json = preview_rule),
        TW_ROUTE("POST", "/api/v1/alerts/evaluate", TW_NEED_WRITE,
                "Compares all figures with their thresholds now", .end = evaluate_all),
        {0},
};
