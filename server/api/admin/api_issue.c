#include "server/api/api_shared.h"

#include <string.h>

#include "server/api/api.h"
#include "server/api/fleet/api_fleet_compare.h"
#include "server/base/clock.h"
#include "server/base/text/json.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/fleet/store/fleet_store.h"
#include "server/notify/ticket.h"

enum { ANR_DAYS = 400, EVIDENCE_DAYS = 60 };
#define ARENA_MAX ((size_t)256 << 20)

/* --- the tracker --- */

enum tw_status tw_api_tracker(struct tw_req *r, json_t **ret, struct tw_err *err)
{
	int64_t changed_ms;
	enum tw_status st = tw_setting_load(
	        tw_api_catalogue(r), tw_api_project(r), &tw_tracker_setting, ret, &changed_ms, err);

	if (st == TW_OK && !*ret)
		*ret = json_pack("{s:s, s:s}", "for", "github", "template", "");
	return st == TW_OK && !*ret ? tw_oom(err) : st;
}

/* --- the text --- */

static json_t *address_of(const json_t *tracker, unsigned which, const struct tw_buf *title,
        const struct tw_buf *body)
{
	const char *template = tw_json_text(tracker, "template");
	const struct tw_str texts[] = {
	        {(const char *)title->data, title->len}, {(const char *)body->data, body->len}};
	struct tw_buf out;
	json_t *url = json_null();

	if (!*template || strcmp(tw_json_text(tracker, "for"), tw_tracker_names[which]) != 0)
		return url;
	tw_buf_init(&out, TW_ISSUE_BYTES);
	tw_issue_address(template, texts[0], texts[1], &out);
	if (tw_buf_status(&out) == TW_OK)
		url = json_stringn((const char *)out.data, out.len);
	tw_buf_done(&out);
	return url;
}

static enum tw_status reply(
        struct tw_req *r, const struct tw_issue *i, void *arg, struct tw_err *err)
{
	struct tw_buf title, body;
	json_t *tracker = NULL, *answer = NULL;
	enum tw_status st = tw_api_tracker(r, &tracker, err);

	(void)arg;
	tw_buf_init(&title, TW_ISSUE_BYTES);
	tw_buf_init(&body, TW_ISSUE_BYTES);
	tw_issue_title(i, &title);
	tw_issue_body(i, &body);
	if (st == TW_OK && tw_buf_status(&title) == TW_OK && tw_buf_status(&body) == TW_OK)
		answer = json_pack("{s:s, s:s%, s:s%, s:o}", "for", tw_tracker_names[i->tracker],
		        "title", title.data, title.len, "body", body.data, body.len, "url",
		        address_of(tracker, i->tracker, &title, &body));
	tw_buf_done(&body);
	tw_buf_done(&title);
	json_decref(tracker);
	return st == TW_OK ? tw_req_reply_json(r, 200, answer, err) : st;
}

static const struct tw_param for_params[] = {
        TW_PARAM_ENUM("for", tw_tracker_names, ""),
        {0},
};

static struct tw_issue begin(struct tw_req *r, enum tw_tracker tracker)
{
	return (struct tw_issue){
	        .tracker = tracker, .base = tw_req_base(r), .project_id = tw_api_project(r)};
}

/* --- of a regression --- */

struct side { /* traces of a version, by device class */
	struct tw_fleet_group *groups;
	size_t n;
};

/* The cells of a version around the regression's day.  A filter without a scenario matches all, so
 * the other cells are dropped.  Half of the request's time remains for the text. */
static enum tw_status read_cells(struct tw_req *r, const struct tw_regress_found *of,
        const char *version, unsigned metrics, struct tw_arena *a, struct tw_rollup_cell **ret,
        size_t *ret_n, struct tw_err *err)
{
	const struct tw_fleet_query query = {.project_id = tw_api_project(r),
	        .filter = {of->app, version, "", of->scenario, "", "", "", of->day - EVIDENCE_DAYS,
	                of->day + EVIDENCE_DAYS},
	        .metrics = metrics,
	        .dims = TW_DIM_SCENARIO | TW_DIM_CLASS,
	        .until_ms = tw_monotonic_ms() + (int64_t)tw_req_ms_left(r) / 2};
	struct tw_fleet_store *store = tw_api_of(r)->fleet;
	struct tw_rollup_cell *cells = NULL;
	size_t n = 0, kept = 0;
	enum tw_status st = store->engine->cells(store, &query, a, &cells, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (strcmp(cells[i].dims.scenario, of->scenario) == 0)
			cells[kept++] = cells[i];
	*ret = cells;
	*ret_n = kept;
	return st;
}

static enum tw_status read_side(struct tw_req *r, const struct tw_regress_found *of,
        const char *version, struct tw_arena *a, struct side *ret, struct tw_err *err)
{
	struct tw_rollup_cell *cells = NULL;
	size_t n = 0;
	enum tw_status st = read_cells(r, of, version, 0, a, &cells, &n, err);

	*ret = (struct side){NULL, 0};
	if (st == TW_OK && n)
		st = tw_fleet_groups(
		        cells, n, TW_FLEET_CLASS, false, a, &ret->groups, &ret->n, err);
	return st;
}

static enum tw_status median(
        const struct tw_fleet_group *g, struct tw_arena *a, int64_t *ret, struct tw_err *err)
{
	struct tw_rollup_head *h = tw_arena_zalloc(a, 1, sizeof *h);
	struct tw_fleet_lengths l = {.stat = {.n = 0}};
	enum tw_status st = h ? tw_fleet_lengths(g, h, &l, err) : tw_oom(err);

	if (st == TW_OK)
		*ret = l.stat.at[0];
	return st;
}

/* Classes that exist in both versions. */
static enum tw_status compare(const struct side *before, const struct side *after,
        struct tw_arena *a, struct tw_issue *io, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < before->n; i++)
		for (size_t k = 0; st == TW_OK && k < after->n; k++) {
			const struct tw_fleet_group *b = &before->groups[i], *g = &after->groups[k];
			struct tw_issue_class *c = &io->classes[io->n_classes];

			if (strcmp(b->key, g->key) != 0 || io->n_classes == TW_ISSUE_CLASSES)
				continue;
			*c = (struct tw_issue_class){b->key, b->traces, g->traces, 0, 0};
			st = median(b, a, &c->before_ns, err);
			if (st == TW_OK)
				st = median(g, a, &c->after_ns, err);
			io->n_classes++;
		}
	return st;
}

static enum tw_status add_classes(struct tw_req *r, const struct tw_regress_found *of,
        struct tw_arena *a, struct tw_issue *io, struct tw_err *err)
{
	struct side before, after;
	enum tw_status st;

	if (!of->base[0] || !of->head[0])
		return TW_OK;
	st = read_side(r, of, of->base, a, &before, err);
	if (st == TW_OK)
		st = read_side(r, of, of->head, a, &after, err);
	return st == TW_OK ? compare(&before, &after, a, io, err) : st;
}

/* --- the methods that changed --- */

static enum tw_status read_compared(struct tw_req *r, const struct tw_regress_found *of,
        const char *version, struct tw_arena *a, struct tw_fleet_cells *ret, struct tw_err *err)
{
	struct tw_rollup_cell *cells = NULL;
	size_t n = 0;
	enum tw_status st = read_cells(r, of, version, TW_COMPARED_METRICS, a, &cells, &n, err);

	if (st != TW_OK)
		return st;
	*ret = (struct tw_fleet_cells){tw_arena_alloc(a, n + 1, sizeof *ret->list), n, 0};
	if (!ret->list)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++) {
		ret->list[i] = &cells[i];
		ret->traces += cells[i].traces;
	}
	return TW_OK;
}

/* Names are copied to the request's memory, as `a` ends before the text is written. */
static enum tw_status take_methods(
        struct tw_req *r, const struct tw_comparison *c, struct tw_issue *io, struct tw_err *err)
{
	for (size_t i = 0; i < c->n_methods && io->n_methods < TW_ISSUE_METHODS; i++) {
		const struct tw_compared_method *m = &c->methods[i];
		const double *self = m->self.of;
		const char *name;

		if (!m->sure || self[TW_SIDE_B] <= self[TW_SIDE_A])
			continue;
		name = tw_arena_str(tw_req_arena(r), m->name);
		if (!name)
			return tw_oom(err);
		io->methods[io->n_methods++] =
		        (struct tw_issue_method){name, (int64_t)self[TW_SIDE_A],
		                (int64_t)self[TW_SIDE_B], m->share.of[TW_SIDE_A] <= 0};
	}
	return TW_OK;
}

static enum tw_status compare_methods(struct tw_req *r, const struct tw_regress_found *of,
        struct tw_arena *a, struct tw_issue *io, struct tw_err *err)
{
	struct tw_fleet_request q = {.req = r, .arena = a, .label_key = ""};
	struct tw_comparison c = {.q = &q, .method = ""};
	struct tw_fleet_cells sides[TW_SIDES] = {{NULL, 0, 0}};
	enum tw_status st = read_compared(r, of, of->base, a, &sides[TW_SIDE_A], err);

	if (st == TW_OK)
		st = read_compared(r, of, of->head, a, &sides[TW_SIDE_B], err);
	if (st == TW_OK)
		st = tw_fleet_mix(sides, NULL, true, a, &c.mix, err);
	if (st == TW_OK)
		st = tw_comparison_methods(&c, err);
	return st == TW_OK ? take_methods(r, &c, io, err) : st;
}

/* Of a scenario's duration.  A comparison that exceeds its time or memory leaves only the link to
 * it. */
static enum tw_status add_methods(struct tw_req *r, const struct tw_regress_found *of,
        struct tw_issue *io, struct tw_err *err)
{
	struct tw_arena *a;
	enum tw_status st;

	if (of->method[0] || !of->base[0] || !of->head[0])
		return TW_OK;
	a = tw_arena_new(ARENA_MAX);
	st = a ? compare_methods(r, of, a, io, err) : tw_oom(err);
	tw_arena_free(a);
	return st == TW_TOO_LARGE || st == TW_NOMEM || st == TW_DEADLINE ? TW_OK : st;
}

enum tw_status tw_api_issue_regression(struct tw_req *r, enum tw_tracker tracker,
        tw_api_issue_fn *fn, void *arg, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_MAX);
	json_t *blame = NULL;
	struct tw_regression row;
	struct tw_issue i = begin(r, tracker);
	json_t *j = NULL;
	enum tw_status st = a ? TW_OK : tw_oom(err);

	if (st == TW_OK)
		st = tw_catalogue_regression_get(tw_api_catalogue(r), tw_api_project(r),
		        tw_req_path(r, "regression"), tw_req_arena(r), &row, err);
	if (st == TW_OK)
		st = add_classes(r, &row.of, a, &i, err);
	if (st == TW_OK)
		st = add_methods(r, &row.of, &i, err);
	if (st == TW_OK && row.of.method[0])
		st = tw_api_blame(r,
		        &(struct tw_blame_query){
		                row.of.method, row.of.app, row.of.base, row.of.head},
		        &blame, err);
	if (st == TW_OK) {
		j = tw_row_json(&tw_regression_fields, &row);
		i.regression = j;
		i.blame = blame;
		st = j ? fn(r, &i, arg, err) : tw_oom(err);
	}
	json_decref(blame);
	json_decref(j);
	tw_arena_free(a);
	return st;
}

/* --- of a group of ANRs --- */

static json_t *group_json(const struct tw_anr_group *g)
{
	json_t *detail = json_loads(g->detail, 0, NULL);
	json_t *frames = json_object_get(detail, "frames");
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:O}", "key", g->key,
	        "name", g->name, "title", g->title, "verdict", g->verdict, "count",
	        (json_int_t)g->count, "users", (json_int_t)g->users, "versions",
	        (json_int_t)g->versions, "devices", (json_int_t)g->devices, "frames",
	        frames ? frames : json_null());

	json_decref(detail);
	return j;
}

static void add_exemplars(struct tw_issue *io, const struct tw_anr_exemplar *of, size_t n)
{
	for (size_t i = 0; i < n && io->n_traces < TW_ISSUE_EXEMPLARS; i++)
		if (of[i].there)
			io->traces[io->n_traces++] = (struct tw_issue_trace){
			        of[i].trace_id, of[i].version_name, of[i].device, of[i].os};
}

/* Blames the frame that identifies the group, in the newest known version. */
static enum tw_status add_blame(struct tw_req *r, struct tw_issue *io, struct tw_err *err)
{
	const char *frame =
	        json_string_value(json_array_get(json_object_get(io->anr, "frames"), 0));
	json_t *blame = NULL;
	enum tw_status st;

	if (!frame || !*frame)
		return TW_OK;
	st = tw_api_blame(r,
	        &(struct tw_blame_query){frame, "", "", io->n_traces ? io->traces[0].version : ""},
	        &blame, err);
	io->blame = blame;
	return st == TW_BAD_REQUEST ? TW_OK : st; /* not a method of Java or Kotlin */
}

enum tw_status tw_api_issue_group(struct tw_req *r, enum tw_tracker tracker, tw_api_issue_fn *fn,
        void *arg, struct tw_err *err)
{
	const int64_t today = tw_unix_ms() / TW_DAY_MS;
	const struct tw_rollup_filter all = tw_rollup_days(today - ANR_DAYS, today);
	const char *key = tw_req_path(r, "key");
	struct tw_anr_group group;
	struct tw_anr_exemplar *traces = NULL;
	struct tw_issue i = begin(r, tracker);
	json_t *j = NULL;
	size_t n_traces = 0;
	enum tw_status st = tw_catalogue_anr_group(
	        tw_api_catalogue(r), tw_api_project(r), &all, key, tw_req_arena(r), &group, err);

	if (st == TW_OK)
		st = tw_catalogue_anr_exemplars(tw_api_catalogue(r), tw_api_project(r), &all, key,
		        tw_req_arena(r), &traces, &n_traces, err);
	if (st != TW_OK)
		return st;
	add_exemplars(&i, traces, n_traces);
	j = group_json(&group);
	i.anr = j;
	st = j ? add_blame(r, &i, err) : tw_oom(err);
	if (st == TW_OK)
		st = fn(r, &i, arg, err);
	json_decref((json_t *)(uintptr_t)i.blame);
	json_decref(j);
	return st;
}

static enum tw_status of_regression(struct tw_req *r, struct tw_err *err)
{
	return tw_api_issue_regression(r, (enum tw_tracker)tw_req_enum(r, "for"), reply, NULL, err);
}

static enum tw_status of_group(struct tw_req *r, struct tw_err *err)
{
	return tw_api_issue_group(r, (enum tw_tracker)tw_req_enum(r, "for"), reply, NULL, err);
}

const struct tw_route tw_routes_issue[] = {
        TW_ROUTE("GET", "/api/v1/regressions/{regression}/issue", TW_NEED_READ,
                "A regression as an issue for another tracker", .by_child = true,
                .params = TW_PARAMS(for_params), .end = of_regression),
        TW_ROUTE("GET", "/api/v1/anr/groups/{key}/issue", TW_NEED_READ,
                "A group of ANRs as an issue for another tracker", .by_child = true,
                .params = TW_PARAMS(for_params), .end = of_group),
        {0},
};
