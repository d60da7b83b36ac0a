/*
 * api_fleet.c - figures of many traces, by version, device class, day and other dimensions.
 *
 * Each response has the number of traces and cells it was computed from, and the error bound of
 * quantiles. Exemplars that were deleted are null.
 */
#include <stdio.h>
#include <string.h>

#include "server/api/api.h"
#include "server/api/fleet/api_fleet.h"
#include "server/api/fleet/api_fleet_tree.h"
#include "server/base/clock.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_stage.h"
#include "server/derive/pipeline.h"
#include "server/derive/rollup/rollup_writer.h"

#define BODY_MAX  ((size_t)64 << 20)
#define ARENA_MAX ((size_t)512 << 20)

#define TIME_MAX (INT64_MAX / 2)

enum { DEFAULT_DAYS = 30, NAME_BYTES = 32 };

/* --- the filter --- */

static const char *const classes[] = {"low", "mid", "high", "unknown", NULL};

#define FILTER_PARAMS(of, label_about)                                                             \
	TW_PARAM_TEXT(of "app", 0, "Only this app."),                                              \
	        TW_PARAM_TEXT(of "version_name", 0, "Only this version."),                         \
	        TW_PARAM_TEXT(of "build_id", 0, "Only this build."),                               \
	        TW_PARAM_TEXT(of "scenario", 0, "Only this scenario."),                            \
	        TW_PARAM_OPTIONAL_ENUM(of "class", classes, "Only devices of this class."),        \
	        TW_PARAM_TEXT(of "os", 0, "Only this system version."),                            \
	        {.name = of "label",                                                               \
	                .kind = TW_PARAM_IS_TEXT,                                                  \
	                .repeated = true,                                                          \
	                .about = (label_about)},                                                   \
	        TW_PARAM_OPTIONAL_NUMBER(of "since", 0, TIME_MAX,                                  \
	                "Start, Unix ms. Traces are selected by whole days (UTC) of their "        \
	                "recording time. Absent: 30 days before until."),                          \
	        TW_PARAM_OPTIONAL_NUMBER(of "until", 0, TIME_MAX,                                  \
	                "End, Unix ms; its day is included. Absent: now.")
#define INDEXED_LABEL                                                                              \
	"An indexed label as key=value, without class and os; key= selects traces without that "   \
	"label.  With ClickHouse any label, also several, and with class and os."
#define ANY_LABEL "Any label as key=value, or device=NAME, without class and os."

static const struct tw_param filter_params[] = {FILTER_PARAMS("", INDEXED_LABEL), {0}};
const struct tw_param tw_fleet_any_label_params[] = {FILTER_PARAMS("", ANY_LABEL), {0}};
static const struct tw_param sides_params[] = {
        FILTER_PARAMS("a.", INDEXED_LABEL), FILTER_PARAMS("b.", INDEXED_LABEL), {0}};

/* The parameter's name, prefixed with the side of the query if it has sides. */
static const char *name_of(const struct tw_fleet_request *q, const char *name, char own[NAME_BYTES])
{
	if (!q->side)
		return name;
	(void)snprintf(own, NAME_BYTES, "%s.%s", q->side, name);
	return tw_req_text(q->req, own) ? own : name;
}

static const char *text_of(const struct tw_fleet_request *q, const char *name)
{
	char own[NAME_BYTES];

	return tw_req_text_or_empty(q->req, name_of(q, name, own));
}

struct tw_fleet_store *tw_fleet_store_of(const struct tw_fleet_request *q)
{
	return tw_api_of(q->req)->fleet;
}

struct labels {
	struct tw_fleet_request *q;
	const char *word;
	size_t n; /* read so far */
};

static enum tw_status take_label(void *arg, const char *name, const char *value, struct tw_err *err)
{
	struct labels *l = arg;

	if (strcmp(name, l->word) != 0 || !value || !value[0])
		return TW_OK;
	if (!strchr(value, '='))
		return tw_fail(err, TW_BAD_REQUEST,
		        "label must be KEY=VALUE; an empty VALUE selects traces without the label");
	if (l->n++ == 0)
		return TW_OK; /* belongs to the filter */
	if (!tw_fleet_store_of(l->q)->engine->any_label)
		return tw_fail(err, TW_BAD_REQUEST,
		        "traces are counted by one label at a time: omit label= or use by=label: "
		        "with the same key");
	if (l->q->n_labels == TW_FLEET_LABELS_MAX)
		return tw_fail(
		        err, TW_BAD_REQUEST, "at most %d label parameters", TW_FLEET_LABELS_MAX);
	l->q->labels[l->q->n_labels++] = value;
	return TW_OK;
}

static enum tw_status read_labels(struct tw_fleet_request *q, struct tw_err *err)
{
	char own[NAME_BYTES];
	struct labels l = {q, name_of(q, "label", own), 0};

	q->n_labels = 0;
	return tw_req_each_query(q->req, take_label, &l, err);
}

enum tw_status tw_fleet_read_filter(struct tw_fleet_request *q, struct tw_err *err)
{
	char own[NAME_BYTES];
	enum tw_status st = TW_OK;
	int64_t until, since;

	until = tw_req_number_or(q->req, name_of(q, "until", own), tw_unix_ms());
	since = until - (int64_t)(DEFAULT_DAYS - 1) * TW_DAY_MS;
	since = tw_req_number_or(q->req, name_of(q, "since", own), since < 0 ? 0 : since);
	if (since > until)
		st = tw_fail(err, TW_BAD_REQUEST, "since is after until");
	q->filter = (struct tw_rollup_filter){text_of(q, "app"), text_of(q, "version_name"),
	        text_of(q, "build_id"), text_of(q, "scenario"), text_of(q, "class"),
	        text_of(q, "os"), text_of(q, "label"), since / TW_DAY_MS, until / TW_DAY_MS};
	if (st == TW_OK && !tw_fleet_store_of(q)->engine->any_label && q->filter.label[0] &&
	        (q->filter.device_class[0] || q->filter.os[0]))
		st = tw_fail(err, TW_BAD_REQUEST, TW_FLEET_LABEL_CONFLICT);
	return st == TW_OK ? read_labels(q, err) : st;
}

enum tw_status tw_fleet_read_only(
        struct tw_fleet_request *q, const struct tw_fleet_query *of, struct tw_err *err)
{
	struct tw_fleet_store *store = tw_fleet_store_of(q);
	const char **labels = tw_arena_alloc(q->arena, TW_FLEET_LABELS_MAX, sizeof(const char *));

	q->query = *of;
	q->query.project_id = tw_api_project(q->req);
	q->query.filter = q->filter;
	q->query.label_key = q->label_key;
	q->query.thread = q->thread;
	q->query.labels = labels;
	q->query.n_labels = q->n_labels;
	if (!labels)
		return tw_oom(err);
	memcpy(labels, q->labels, sizeof q->labels);
	q->query.until_ms = tw_monotonic_ms() + (int64_t)tw_req_ms_left(q->req);
	return store->engine->cells(store, &q->query, q->arena, &q->cells, &q->n_cells, err);
}

enum tw_status tw_fleet_read(
        struct tw_fleet_request *q, unsigned metrics, unsigned dims, struct tw_err *err)
{
	return tw_fleet_read_only(
	        q, &(struct tw_fleet_query){.metrics = metrics, .dims = dims}, err);
}

/* --- responses --- */

enum tw_status tw_fleet_handle(struct tw_req *r, struct tw_err *err)
{
	struct tw_fleet_request q = {.req = r, .arena = tw_arena_new(ARENA_MAX), .label_key = ""};
	enum tw_status st = TW_OK;

	tw_buf_init(&q.out, BODY_MAX);
	q.j = tw_json_to(&q.out);
	q.sketch = q.arena ? tw_arena_zalloc(q.arena, 1, sizeof *q.sketch) : NULL;
	if (st == TW_OK && !q.sketch)
		st = tw_oom(err);
	if (st == TW_OK)
		st = tw_fleet_read_filter(&q, err);
	if (st == TW_OK)
		st = tw_req_route(r)->fleet_query(&q, err);
	if (st == TW_OK && tw_buf_status(&q.out) != TW_OK)
		st = tw_fail(err, TW_TOO_LARGE, "the response is too large");
	if (st == TW_OK)
		st = tw_req_reply_buf(
		        r, 200, q.type ? q.type : "application/json", true, &q.out, err);
	if (st != TW_OK)
		tw_buf_done(&q.out);
	tw_arena_free(q.arena);
	return st;
}

/* The trace's id if it still exists, otherwise null. */
void tw_fleet_put_trace(struct tw_fleet_request *q, const char *key, const char *id)
{
	char text[TW_ID_BYTES] = "";
	bool there = false;

	if (id && id[0])
		memcpy(text, id, TW_ROLLUP_ID);
	tw_json_key(&q->j, key);
	if (text[0] &&
	        tw_catalogue_has_trace(tw_api_catalogue(q->req), text, &there, NULL) == TW_OK &&
	        there)
		tw_json_str(&q->j, tw_str_of(text));
	else
		tw_json_null(&q->j);
}

uint64_t tw_fleet_traces(const struct tw_fleet_request *q)
{
	uint64_t n = 0;

	for (size_t i = 0; i < q->n_cells; i++)
		n += q->cells[i].traces;
	return n;
}

/* The first members of every response. */
void tw_fleet_put_head(struct tw_fleet_request *q)
{
	tw_json_open(&q->j, '{');
	tw_json_key_int(&q->j, "since_ms", q->filter.first_day * TW_DAY_MS);
	tw_json_key_int(&q->j, "until_ms", (q->filter.last_day + 1) * TW_DAY_MS);
	tw_json_key_int(&q->j, "traces", (int64_t)tw_fleet_traces(q));
	tw_json_key_int(&q->j, "cells", (int64_t)q->n_cells);
	tw_json_key(&q->j, "error");
	tw_json_double(&q->j, TW_SKETCH_ERROR);
}

void tw_fleet_put_stat(struct tw_fleet_request *q, const struct tw_fleet_stat *s)
{
	char key[8];

	tw_json_key_int(&q->j, "traces", (int64_t)s->n);
	TW_JSON_MEMBERS(&q->j, s, sum, mean);
	for (int i = 0; i < TW_FLEET_QUANTILES; i++) {
		(void)snprintf(key, sizeof key, "p%u", tw_fleet_percents[i]);
		tw_json_key_int(&q->j, key, s->at[i]);
	}
	tw_json_key_int(&q->j, "max", s->max);
}

/* --- scenarios --- */

static void put_lengths(struct tw_fleet_request *q, const struct tw_fleet_lengths *l)
{
	char key[8];

	tw_json_key_open(&q->j, "duration_ns", '{');
	tw_fleet_put_stat(q, &l->stat);
	tw_json_close(&q->j, '}');
	tw_json_key_open(&q->j, "exemplars", '{');
	for (int i = 0; i < TW_FLEET_QUANTILES; i++) {
		(void)snprintf(key, sizeof key, "p%u", tw_fleet_percents[i]);
		tw_fleet_put_trace(q, key, l->at[i]);
	}
	tw_fleet_put_trace(q, "max", l->longest);
	tw_json_close(&q->j, '}');
}

static enum tw_status put_groups(struct tw_fleet_request *q, const struct tw_fleet_group *groups,
        size_t n, struct tw_err *err)
{
	struct tw_rollup_head *h = tw_arena_zalloc(q->arena, 1, sizeof *h);
	struct tw_fleet_lengths lengths;
	enum tw_status st = TW_OK;

	if (!h)
		return tw_oom(err);
	tw_json_key_open(&q->j, "groups", '[');
	for (size_t i = 0; st == TW_OK && i < n && i < TW_FLEET_GROUPS_MAX; i++) {
		st = tw_fleet_lengths(&groups[i], h, &lengths, err);
		if (st != TW_OK)
			break;
		tw_json_open(&q->j, '{');
		tw_json_key_text(&q->j, "scenario", groups[i].scenario);
		tw_fleet_put_key(q, groups[i].key);
		put_lengths(q, &lengths);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
	return st;
}

static enum tw_status answer_scenarios(struct tw_fleet_request *q, struct tw_err *err)
{
	struct tw_fleet_group *groups = NULL;
	enum tw_fleet_by by;
	size_t n = 0;
	enum tw_status st = tw_fleet_read_by(q, "version", &by, err);

	if (st == TW_OK)
		st = tw_fleet_read(q, 0, tw_fleet_by_dims(by) | TW_DIM_SCENARIO, err);
	if (st == TW_OK)
		st = tw_fleet_sum_label_values(q, err);
	if (st == TW_OK)
		st = tw_fleet_groups(q->cells, q->n_cells, by, true, q->arena, &groups, &n, err);
	if (st != TW_OK)
		return st;
	tw_fleet_put_head(q);
	tw_fleet_put_by(q, by);
	tw_json_key_int(&q->j, "total", (int64_t)n);
	st = put_groups(q, groups, n, err);
	tw_json_close(&q->j, '}');
	return st;
}

/* The number of the project's traces that wait for each stage of derived data, and the reasons. */
static json_t *raised_by(unsigned bits)
{
	static const char *const names[] = {"decoder", "mapping", "rules", "rollup"};
	json_t *list = json_array();

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (bits & 1U << i)
			(void)json_array_append_new(list, json_string(names[i]));
	return list;
}

static const char *message_of(const char *reason)
{
	static const char *const messages[TW_FULL + 1] = {
	        [TW_NOT_FOUND] = "the trace file is missing",
	        [TW_IO] = "the trace file cannot be read",
	        [TW_BUSY] = "the catalogue or storage is busy",
	        [TW_FULL] = "the disk is full",
	};
	const char *message = messages[tw_status_of_name(reason)];

	return message ? message : "the work failed";
}

static json_t *stage_json(const struct tw_stage *s, const struct tw_stage_waiting *w)
{
	json_t *postponed = json_array();

	for (size_t i = 0; i < w->n_why; i++)
		(void)json_array_append_new(
		        postponed, json_pack("{s:s, s:s, s:I}", "reason", w->why[i].reason,
		                           "message", message_of(w->why[i].reason), "traces",
		                           (json_int_t)w->why[i].traces));
	return json_pack("{s:s, s:o, s:I, s:I, s:o}", "stage", s->name, "depends",
	        raised_by(s->depends), "waiting", (json_int_t)w->traces, "oldest_ms",
	        (json_int_t)w->oldest_ms, "postponed", postponed);
}

static enum tw_status get_stages(struct tw_req *r, struct tw_err *err)
{
	json_t *list = json_array();
	struct tw_stage_waiting w;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && tw_stages[i]; i++) {
		if (!tw_stages[i]->sql)
			continue;
		st = tw_catalogue_stage_waiting(
		        tw_api_catalogue(r), tw_stages[i]->sql, tw_api_project(r), &w, err);
		if (st == TW_OK)
			(void)json_array_append_new(list, stage_json(tw_stages[i], &w));
	}
	if (st == TW_OK)
		return tw_req_reply_json(r, 200, json_pack("{s:o}", "stages", list), err);
	json_decref(list);
	return st;
}

/* --- labels --- */

enum { LABEL_BYTES = 64 };

static enum tw_status get_labels(struct tw_req *r, struct tw_err *err)
{
	const char *labels[TW_ROLLUP_LABELS_MAX];
	json_t *list;
	size_t n = 0;
	enum tw_status st = tw_rollup_labels(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), labels, &n, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_string(labels[i]));
	return tw_req_reply_json(r, 200, json_pack("{so}", "labels", list), err);
}

static enum tw_status check_label(const json_t *label, struct tw_err *err)
{
	const char *text = json_string_value(label);

	if (!text || !*text || strlen(text) > LABEL_BYTES || strchr(text, '='))
		return tw_fail(err, TW_BAD_REQUEST,
		        "the name of a label must have 1 to %d bytes and no =", LABEL_BYTES);
	return tw_check_text("a label", text, err);
}

static enum tw_status check_labels(const json_t *labels, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (!json_is_array(labels) || json_array_size(labels) > TW_ROLLUP_LABELS_MAX)
		return tw_fail(err, TW_BAD_REQUEST,
		        "labels must be a list of at most %d names, as in "
		        "{\"labels\":[\"device\"]}",
		        TW_ROLLUP_LABELS_MAX);
	for (size_t i = 0; st == TW_OK && i < json_array_size(labels); i++) {
		st = check_label(json_array_get(labels, i), err);
		for (size_t k = 0; st == TW_OK && k < i; k++)
			if (json_equal(json_array_get(labels, i), json_array_get(labels, k)))
				st = tw_fail(err, TW_BAD_REQUEST, "a label is listed twice");
	}
	return st;
}

static enum tw_status set_labels(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const json_t *labels = json_object_get(body, "labels");
	json_t *value;
	enum tw_status st = check_labels(labels, err);

	if (st != TW_OK)
		return st;
	value = json_pack("{sO}", "labels", labels);
	st = tw_api_store_setting(r, TW_SETTING_ROLLUPS, value, err);
	json_decref(value);
	return st == TW_OK ? get_labels(r, err) : st;
}

const struct tw_route tw_routes_fleet[] = {
        TW_ROUTE("GET", "/api/v1/fleet/scenarios", TW_NEED_READ, "Durations of traces",
                .params = TW_PARAMS(tw_fleet_by_params, filter_params),
                .fleet_query = answer_scenarios),
        TW_ROUTE("GET", "/api/v1/fleet/methods", TW_NEED_READ, "Methods of many traces",
                .params = TW_PARAMS(tw_fleet_methods_params, filter_params),
                .fleet_query = tw_fleet_write_methods),
        TW_ROUTE("GET", "/api/v1/fleet/method", TW_NEED_READ, "One method over versions or days",
                .params = TW_PARAMS(tw_fleet_method_params, tw_fleet_by_params, filter_params),
                .fleet_query = tw_fleet_write_method),
        TW_ROUTE("GET", "/api/v1/fleet/callers", TW_NEED_READ, "Callers and callees of a method",
                .params = TW_PARAMS(tw_fleet_callers_params, tw_fleet_taking_params, filter_params),
                .fleet_query = tw_fleet_write_callers),
        TW_ROUTE("GET", "/api/v1/fleet/flame", TW_NEED_READ, "One flame graph of many traces",
                .params = TW_PARAMS(tw_fleet_flame_params, tw_fleet_taking_params,
                        tw_fleet_root_params, filter_params),
                .fleet_query = tw_fleet_write_flame),
        TW_ROUTE("GET", "/api/v1/fleet/compare", TW_NEED_READ,
                "Two sides of the fleet side by side",
                .params = TW_PARAMS(tw_fleet_compare_params, tw_fleet_taking_params,
                        tw_fleet_root_params, sides_params, filter_params),
                .fleet_query = tw_fleet_write_compare),
        TW_ROUTE("GET", "/api/v1/fleet/findings", TW_NEED_READ, "Detector findings in many traces",
                .params = TW_PARAMS(tw_fleet_findings_params, tw_fleet_by_params, filter_params),
                .fleet_query = tw_fleet_write_findings),
        TW_ROUTE("GET", "/api/v1/fleet/search", TW_NEED_READ,
                "Calls in many traces that exceed a duration",
                .params = TW_PARAMS(tw_fleet_search_params, filter_params),
                .fleet_query = tw_fleet_write_search),
        TW_ROUTE("GET", "/api/v1/fleet/stages", TW_NEED_READ,
                "Traces waiting for derived data, with the reasons", .end = get_stages),
        TW_ROUTE("GET", "/api/v1/fleet/labels", TW_NEED_READ, "Labels by which traces are counted",
                .end = get_labels),
        TW_ROUTE("PUT", "/api/v1/fleet/labels", TW_NEED_WRITE,
                "Sets the labels by which traces are counted", .json = set_labels),
        {0},
};
