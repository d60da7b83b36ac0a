/*
 * api_regression_trend.c - the days around a change, for its chart.
 */
#include "server/api/api.h"
#include "server/api/fleet/api_regression.h"
#include "server/base/clock.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/fleet/regress/regress_trend.h"

#define ARENA_MAX ((size_t)512 << 20)

enum { MS_TO_TELL = 200 };

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
	json_t *lines = json_array(), *marks = json_array();

	for (size_t i = 0; i < t->n_lines; i++)
		(void)json_array_append_new(lines, line_json(&t->lines[i]));
	for (size_t i = 0; i < t->n_marks; i++)
		(void)json_array_append_new(marks,
		        json_pack("{s:s, s:I, s:I}", "version", t->marks[i].version, "day_ms",
		                ms_of(t->marks[i].day), "traces", (json_int_t)t->marks[i].traces));
	return json_pack("{s:I, s:I, s:I, s:s, s:o, s:o, s:I, s:b}", "since_ms",
	        ms_of(t->first_day), "until_ms", ms_of(t->last_day + 1), "change_ms",
	        ms_of(r->of.day), "metric", r->of.method[0] ? "self" : "duration", "lines", lines,
	        "versions", marks, "versions_total", (json_int_t)t->versions, "complete", !t->cut);
}

static bool is_late(void *arg)
{
	return tw_req_ms_left(arg) < MS_TO_TELL;
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

enum tw_status tw_regression_get_trend(struct tw_req *r, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_MAX);
	enum tw_status st = a ? reply(r, a, err) : tw_oom(err);

	tw_arena_free(a);
	return st;
}
