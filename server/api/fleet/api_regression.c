/*
 * api_regression.c - regressions: the list, their triage, and the thresholds.
 */
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/base/clock.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/catalogue/notify/catalogue_notify.h"
#include "server/fleet/regress_detect.h"

enum { OWNER_BYTES = 200, NOTE_BYTES = 2000, VERSION_BYTES = 200 };

/* --- the list --- */

static const char *const statuses[] = {
        "live", "all", "open", "acknowledged", "fixed", "returned", NULL};

static const struct tw_param list_params[] = {
        TW_PARAM_ENUM("status", statuses, "`live` is open, acknowledged and returned."),
        TW_PARAM_TEXT("app", 0, "Exactly this app."),
        TW_PARAM_TEXT("scenario", 0, "Exactly this scenario."),
        TW_PARAM_TEXT("method", 0, "Name of the method."),
        TW_PARAM_TEXT("version_name", 0, "The version that became slower."),
        TW_PARAM_TEXT("owner", 0, "Exactly this owner."),
        TW_PARAM_FLAG("muted", false, "Also returns muted ones."),
        TW_PARAM_NUMBER("limit", 100, 1, TW_REGRESSIONS_MAX, ""),
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        {0},
};

static unsigned read_statuses(const struct tw_req *r)
{
	const int which = tw_req_enum(r, "status");

	if (which == 0)
		return 1U << TW_REGRESS_OPEN | 1U << TW_REGRESS_ACKNOWLEDGED |
		       1U << TW_REGRESS_RETURNED;
	return which == 1 ? (1U << TW_REGRESS_STATUSES) - 1 : 1U << (which - 2);
}

static struct tw_regression_query read_query(const struct tw_req *r)
{
	return (struct tw_regression_query){tw_req_text_or_empty(r, "app"),
	        tw_req_text_or_empty(r, "scenario"), tw_req_text_or_empty(r, "method"),
	        tw_req_text_or_empty(r, "version_name"), tw_req_text_or_empty(r, "owner"),
	        read_statuses(r), tw_req_flag(r, "muted") ? 0 : tw_unix_ms()};
}

static enum tw_status list(struct tw_req *r, struct tw_err *err)
{
	const struct tw_regression_query q = read_query(r);
	struct tw_regression *rows = NULL;
	const char *cursor = "";
	size_t n = 0;
	enum tw_status st = tw_catalogue_regressions(tw_api_catalogue(r), tw_api_project(r), &q,
	        (uint32_t)tw_req_number(r, "limit"), tw_req_text_or_empty(r, "cursor"),
	        tw_req_arena(r), &rows, &n, &cursor, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{s:o, s:s?}", "regressions",
	                tw_rows_json(&tw_regression_fields, rows, n, sizeof *rows), "next_cursor",
	                cursor[0] ? cursor : NULL),
	        err);
}

static enum tw_status read_one(struct tw_req *r, struct tw_regression *ret, struct tw_err *err)
{
	return tw_catalogue_regression_get(tw_api_catalogue(r), tw_api_project(r),
	        tw_req_path(r, "regression"), tw_req_arena(r), ret, err);
}

static json_t *entry_json(const struct tw_regression_entry *e)
{
	return json_pack("{s:I, s:I, s:s, s:s, s:s, s:s}", "n", (json_int_t)e->n, "at_ms",
	        (json_int_t)e->at_ms, "author", e->author, "event", tw_hook_event_names[e->event],
	        "status", tw_regress_status_names[e->status], "version", e->version);
}

static enum tw_status get_history(struct tw_req *r, struct tw_err *err)
{
	struct tw_regression_entry *rows = NULL;
	struct tw_regression row;
	json_t *all;
	size_t n = 0;
	enum tw_status st = read_one(r, &row, err);

	if (st == TW_OK)
		st = tw_catalogue_regression_history(tw_api_catalogue(r), tw_api_project(r), row.id,
		        tw_req_arena(r), &rows, &n, err);
	if (st != TW_OK)
		return st;
	all = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, entry_json(&rows[i]));
	return tw_req_reply_json(r, 200, json_pack("{s:o}", "history", all), err);
}

static enum tw_status get_one(struct tw_req *r, struct tw_err *err)
{
	struct tw_regression row;
	enum tw_status st = read_one(r, &row, err);

	return st == TW_OK
	               ? tw_req_reply_json(r, 200, tw_row_json(&tw_regression_fields, &row), err)
	               : st;
}

/* --- triage --- */

static const struct tw_member members[] = {
        TW_MEMBER(TW_MEMBER_ENUM, struct tw_triage, status, .enum_names = tw_regress_status_names),
        TW_MEMBER(TW_MEMBER_TEXT, struct tw_triage, fixed_in, .max = VERSION_BYTES),
        TW_MEMBER(TW_MEMBER_TEXT, struct tw_triage, owner, .max = OWNER_BYTES),
        TW_MEMBER(TW_MEMBER_LINES, struct tw_triage, note, .max = NOTE_BYTES),
        TW_MEMBER(TW_MEMBER_NUMBER, struct tw_triage, muted_until_ms, .max = TW_LAST_MS,
                .form = "milliseconds since 1970, or 0 for not muted"),
        {0},
};

enum tw_status tw_triage_read(const json_t *body, struct tw_triage *io, struct tw_err *err)
{
	return tw_members_read(body, members, io, err);
}

static enum tw_status triage(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_regression row;
	struct tw_triage_item item;
	enum tw_status st = read_one(r, &row, err);

	if (st != TW_OK)
		return st;
	item = (struct tw_triage_item){TW_TRIAGE_REGRESSION, row.id,
	        {row.status, row.of.fixed_in, row.owner, row.note, row.muted_until_ms}};
	st = tw_members_only(body, members, 1, "only ", " of a regression can be changed", err);
	if (st == TW_OK)
		st = tw_triage_read(body, &item.what, err);
	if (st == TW_OK)
		st = tw_catalogue_triage(tw_api_catalogue(r), tw_api_project(r), &item, 1, err);
	return st == TW_OK ? get_one(r, err) : st;
}

/* --- thresholds --- */

static enum tw_status get_rules(struct tw_req *r, struct tw_err *err)
{
	struct tw_regress_rules rules;
	enum tw_status st =
	        tw_regress_rules_of(tw_api_catalogue(r), tw_api_project(r), &rules, err);

	return st == TW_OK ? tw_req_reply_json(r, 200, tw_regress_rules_json(&rules), err) : st;
}

static enum tw_status store_rules(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_regress_rules rules = tw_regress_defaults;
	enum tw_status st = tw_regress_rules_read(body, &rules, err);
	json_t *doc = st == TW_OK ? tw_regress_rules_json(&rules) : NULL;

	if (st == TW_OK)
		st = tw_api_store_setting(r, TW_SETTING_REGRESSIONS, doc, err);
	json_decref(doc);
	return st == TW_OK ? get_rules(r, err) : st;
}

static enum tw_status detect_now(struct tw_req *r, struct tw_err *err)
{
	const struct tw_regress_task task = {tw_api_project(r), tw_unix_ms() / TW_DAY_MS,
	        tw_api_deadline(r), (uint64_t)tw_unix_ms() / 1000};
	struct tw_regress_detected sums;
	enum tw_status st = tw_regress_detect(tw_api_of(r)->fleet, &task, &sums, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{s:I, s:I, s:I}", "series", (json_int_t)sums.series, "found",
	                (json_int_t)sums.found, "new", (json_int_t)sums.fresh),
	        err);
}

/* --- the trend of a method ---
 *
 * The days around a change, for its chart.
 */

#define ARENA_MAX ((size_t)512 << 20)

enum { RESPONSE_MS = 200 };

static json_int_t ms_of(int64_t day)
{
	const int64_t ms = day * TW_DAY_MS;

	return ms;
}

static json_t *known(int64_t ns)
{
	return ns < 0 ? json_null() : json_integer((json_int_t)ns);
}

static json_t *quantile_json(const struct tw_trend_quantile *q)
{
	return json_pack("{s:I, s:o, s:o}", "ns", (json_int_t)q->at, "low_ns", known(q->low),
	        "high_ns", known(q->high));
}

static json_t *line_json(const struct tw_trend_line *l)
{
	json_t *points = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct tw_trend_point *p = &l->points[i];

		(void)json_array_append_new(points,
		        json_pack("{s:I, s:I, s:I, s:o, s:o}", "day_ms", ms_of(p->day), "of_traces",
		                (json_int_t)p->of_traces, "traces", (json_int_t)p->traces, "p50",
		                quantile_json(&p->q[0]), "p95", quantile_json(&p->q[1])));
	}
	return json_pack("{s:s?, s:o}", "version", l->version, "points", points);
}

static json_t *trend_json(const struct tw_regression *r, const struct tw_trend *t)
{
	json_t *lines = json_array(), *releases = json_array();

	for (size_t i = 0; i < t->n_lines; i++)
		(void)json_array_append_new(lines, line_json(&t->lines[i]));
	for (size_t i = 0; i < t->n_releases; i++)
		(void)json_array_append_new(
		        releases, json_pack("{s:s, s:I, s:I}", "version", t->releases[i].version,
		                          "day_ms", ms_of(t->releases[i].day), "traces",
		                          (json_int_t)t->releases[i].traces));
	return json_pack("{s:I, s:I, s:I, s:s, s:o, s:o, s:I, s:b}", "since_ms",
	        ms_of(t->first_day), "until_ms", ms_of(t->last_day + 1), "change_ms",
	        ms_of(r->of.day), "metric", r->of.method[0] ? "self" : "duration", "lines", lines,
	        "versions", releases, "versions_total", (json_int_t)t->versions, "complete",
	        !t->cut);
}

static bool is_late(void *arg)
{
	return tw_req_ms_left(arg) < RESPONSE_MS;
}

static enum tw_status reply(struct tw_req *r, struct tw_arena *a, struct tw_err *err)
{
	struct tw_regression row;
	struct tw_trend trend;
	struct tw_catalogue *c = tw_api_catalogue(r);
	const char *project_id = tw_api_project(r);
	enum tw_status st = tw_catalogue_regression_get(
	        c, project_id, tw_req_path(r, "regression"), a, &row, err);

	if (st == TW_OK)
		st = tw_regress_trend(tw_api_of(r)->fleet, project_id,
		        &(struct tw_trend_query){&row.of, tw_unix_ms() / TW_DAY_MS, {is_late, r}},
		        a, &trend, err);
	return st == TW_OK ? tw_req_reply_json(r, 200, trend_json(&row, &trend), err) : st;
}

static enum tw_status get_trend(struct tw_req *r, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_MAX);
	enum tw_status st = a ? reply(r, a, err) : tw_oom(err);

	tw_arena_free(a);
	return st;
}

const struct tw_route tw_routes_regression[] = {
        TW_ROUTE("GET", "/api/v1/regressions/rules", TW_NEED_READ, "The thresholds of regressions",
                .end = get_rules),
        TW_ROUTE("PUT", "/api/v1/regressions/rules", TW_NEED_WRITE,
                "Sets the thresholds of regressions", .json = store_rules),
        TW_ROUTE("POST", "/api/v1/regressions/detect", TW_NEED_WRITE,
                "Runs regression detection now", .end = detect_now),
        TW_ROUTE("GET", "/api/v1/regressions", TW_NEED_READ, "Regressions",
                .params = TW_PARAMS(list_params), .end = list),
        TW_ROUTE("GET", "/api/v1/regressions/{regression}", TW_NEED_READ, "One regression",
                .end = get_one),
        TW_ROUTE("GET", "/api/v1/regressions/{regression}/history", TW_NEED_READ,
                "A regression's history", .end = get_history),
        TW_ROUTE("GET", "/api/v1/regressions/{regression}/trend", TW_NEED_READ,
                "A regression's values by day, before and after the change", .end = get_trend),
        TW_ROUTE("PATCH", "/api/v1/regressions/{regression}", TW_NEED_WRITE,
                "Sets state, owner, note or mute of a regression", .json = triage),
        {0},
};
