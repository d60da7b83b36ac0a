#include "server/fleet/regress_detect.h"

#include <math.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/fleet/fleet.h"

static const unsigned percents[TW_TREND_QUANTILES] = {50, 95};

struct work { /* cells of one line */
	const struct tw_regress_found *of;
	const struct tw_deadline *deadline;
	bool late;
	const uint64_t *ids; /* ids of the method, sorted */
	size_t n_ids;
	struct tw_arena *arena;
	struct tw_rollup_head *head;
	struct tw_sketch *sketch;
};

struct tw_trend_quantile tw_trend_quantile_of(const struct tw_sketch *s, unsigned percent)
{
	const double p = percent / 100.0;
	const double n = (double)s->n, middle = n * p;
	const double error = TW_CHANGE_INTERVAL * sqrt(n * p * (1 - p));
	const double low = floor(middle - error), high = ceil(middle + error) + 1;
	struct tw_trend_quantile q = {tw_sketch_quantile(s, percent), -1, -1};

	if (low < 1 || high > n)
		return q;
	q.low = tw_sketch_rank(s, (uint64_t)low);
	q.high = tw_sketch_rank(s, (uint64_t)high);
	return q;
}

/* --- points --- */

static enum tw_status add_lengths(
        struct work *w, const struct tw_fleet_group *g, struct tw_err *err)
{
	struct tw_fleet_lengths lengths;
	enum tw_status st = tw_fleet_lengths(g, w->head, &lengths, err);

	if (st == TW_OK)
		tw_sketch_add_all(w->sketch, &w->head->lengths);
	return st;
}

static enum tw_status add_method(struct work *w, const struct tw_fleet_group *g, struct tw_err *err)
{
	struct tw_rollup r = {.arena = w->arena,
	        .metrics = 1U << TW_ROLLUP_SELF,
	        .only = w->ids,
	        .n_only = w->n_ids};
	struct tw_rollup_worst worst = {0};
	enum tw_status st = tw_fleet_collect(g->cells, g->n, &r, err);

	for (uint32_t i = 0; st == TW_OK && i < r.n; i++)
		st = tw_rollup_sum(&r.methods[i], TW_ROLLUP_SELF, w->sketch, &worst, err);
	return st;
}

static enum tw_status make_point(struct work *w, const struct tw_fleet_group *g,
        struct tw_trend_point *ret, struct tw_err *err)
{
	enum tw_status st;

	tw_sketch_clear(w->sketch);
	st = w->of->method[0] ? add_method(w, g, err) : add_lengths(w, g, err);
	*ret = (struct tw_trend_point){
	        .day = g->cells[0]->dims.day, .of_traces = g->traces, .traces = w->sketch->n};
	for (int i = 0; i < TW_TREND_QUANTILES; i++)
		ret->q[i] = tw_trend_quantile_of(w->sketch, percents[i]);
	return st;
}

static enum tw_status make_line(struct work *w, const struct tw_rollup_cell *cells, size_t n,
        struct tw_trend_line *line, struct tw_err *err)
{
	struct tw_rollup_cell *own = tw_arena_alloc(w->arena, n + 1, sizeof *own);
	struct tw_fleet_group *days = NULL;
	size_t n_own = 0, n_days = 0;
	enum tw_status st;

	if (!own)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++)
		if (!line->version || strcmp(cells[i].dims.version_name, line->version) == 0)
			own[n_own++] = cells[i];
	st = tw_fleet_groups(own, n_own, TW_FLEET_DAY, false, w->arena, &days, &n_days, err);
	if (st != TW_OK)
		return st;
	line->points = tw_arena_alloc(w->arena, n_days + 1, sizeof *line->points);
	if (!line->points)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < n_days; i++) {
		w->late = w->late || tw_deadline_passed(w->deadline);
		if (w->late)
			break;
		st = make_point(w, &days[i], &line->points[line->n], err);
		line->n += st == TW_OK && line->points[line->n].traces > 0;
	}
	return st;
}

/* --- versions --- */

TW_ORDER_BY(by_traces, struct tw_trend_release, TW_FALLING(traces), TW_RISING(version))

TW_ORDER_BY(by_day, struct tw_trend_release, TW_RISING(day), strverscmp(a->version, b->version))

static enum tw_status list_releases(struct work *w, const struct tw_rollup_cell *cells, size_t n,
        struct tw_trend *ret, struct tw_err *err)
{
	struct tw_fleet_group *of = NULL;
	struct tw_trend_release *all;
	size_t n_of = 0;
	enum tw_status st =
	        tw_fleet_groups(cells, n, TW_FLEET_VERSION, false, w->arena, &of, &n_of, err);

	if (st != TW_OK)
		return st;
	all = tw_arena_alloc(w->arena, n_of + 1, sizeof *all);
	if (!all)
		return tw_oom(err);
	for (size_t i = 0; i < n_of; i++) {
		all[i] = (struct tw_trend_release){of[i].key, INT64_MAX, of[i].traces};
		for (size_t k = 0; k < of[i].n; k++)
			if (of[i].cells[k]->dims.day < all[i].day)
				all[i].day = of[i].cells[k]->dims.day;
	}
	ret->versions = n_of;
	ret->n_releases = n_of < TW_TREND_RELEASES ? n_of : TW_TREND_RELEASES;
	TW_SORT(all, n_of, by_traces);
	TW_SORT(all, ret->n_releases, by_day);
	for (size_t i = 0; i < ret->n_releases; i++)
		ret->releases[i] = all[i];
	return TW_OK;
}

/* --- the query --- */

/* Ids of the methods with the name and descriptor of the change. */
static enum tw_status find_method(
        struct tw_catalogue *c, const char *project_id, struct work *w, struct tw_err *err)
{
	struct tw_rollup_naming *names = NULL;
	uint64_t *ids = NULL;
	size_t n = 0;
	enum tw_status st =
	        tw_catalogue_rollup_find(c, project_id, w->of->method, w->arena, &ids, &n, err);

	if (st == TW_OK)
		st = tw_catalogue_rollup_names(c, project_id, ids, n, w->arena, &names, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (strcmp(names[i].descriptor, w->of->descriptor) == 0)
			ids[w->n_ids++] = ids[i];
	w->ids = ids;
	return st;
}

/* "" means the app or scenario without a name, not "any". */
static size_t leave_own(struct tw_rollup_cell *cells, size_t n, const struct tw_regress_found *of)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (strcmp(cells[i].dims.app, of->app) == 0 &&
		        strcmp(cells[i].dims.scenario, of->scenario) == 0)
			cells[kept++] = cells[i];
	return kept;
}

enum tw_status tw_regress_trend(struct tw_fleet_store *store, const char *project_id,
        const struct tw_trend_query *query, struct tw_arena *a, struct tw_trend *ret,
        struct tw_err *err)
{
	const struct tw_regress_found *of = query->of;
	struct work w = {.of = of, .deadline = &query->deadline, .arena = a};
	struct tw_fleet_query of_cells = {.project_id = project_id,
	        .filter = {of->app, "", "", of->scenario, "", "", "", of->day - TW_TREND_BEFORE,
	                of->day + TW_TREND_AFTER},
	        .metrics = of->method[0] ? 1U << TW_ROLLUP_SELF : 0,
	        .dims = TW_DIM_APP | TW_DIM_SCENARIO | TW_DIM_DAY | TW_DIM_VERSION};
	struct tw_rollup_filter *f = &of_cells.filter;
	struct tw_rollup_cell *cells = NULL;
	size_t n = 0;
	enum tw_status st = TW_OK;

	f->last_day = f->last_day < query->today ? f->last_day : query->today;
	*ret = (struct tw_trend){.first_day = f->first_day, .last_day = f->last_day};
	ret->n_lines = 1;
	if (of->head[0]) {
		ret->lines[ret->n_lines++].version = of->base;
		ret->lines[ret->n_lines++].version = of->head;
	}
	w.head = tw_arena_zalloc(a, 1, sizeof *w.head);
	w.sketch = tw_arena_zalloc(a, 1, sizeof *w.sketch);
	if (!w.head || !w.sketch)
		return tw_oom(err);
	if (of->method[0])
		st = find_method(store->catalogue, project_id, &w, err);
	of_cells.only = w.ids;
	of_cells.n_only = w.n_ids;
	if (st == TW_OK)
		st = store->engine->cells(store, &of_cells, a, &cells, &n, err);
	n = st == TW_OK ? leave_own(cells, n, of) : 0;
	for (size_t i = 0; st == TW_OK && i < ret->n_lines; i++)
		st = make_line(&w, cells, n, &ret->lines[i], err);
	ret->cut = w.late;
	return st == TW_OK ? list_releases(&w, cells, n, ret, err) : st;
}
