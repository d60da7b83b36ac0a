#include "server/fleet/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/fleet/found.h"
#include "server/fleet/store/fleet_store.h"

enum { DEADLINE_ROWS = 64 };

struct evaluation {
	struct tw_fleet_store *store;
	const struct tw_alert_evaluation *of;
	const struct tw_alert_rule *rule;
	const struct tw_deadline *deadline;
	struct tw_arena *arena;
	struct tw_fleet_query query;
	struct tw_rollup_head *head; /* of the current group */
	struct tw_found found;       /* of the current trace */
	struct tw_sketch *method;    /* of the current group; NULL: the rule is for traces */
	uint64_t rows, traces, frames, bad, worst;
	char worst_trace[TW_ROLLUP_ID + 1];
};

struct group { /* cells of an app and a version */
	const struct tw_rollup_cell **cells;
	size_t n;
	uint64_t traces;
	bool is_over; /* has an alert that has not ended */
};

/* --- known alerts --- */

static bool was_over(const struct evaluation *l, const char *app, const char *subject)
{
	const struct tw_alert *known = l->of->known;

	for (size_t i = 0; i < l->of->n_known && known[i].of.is_over; i++)
		if (strcmp(known[i].of.subject, subject) == 0 && strcmp(known[i].of.app, app) == 0)
			return true;
	return false;
}

static bool has_enough(const struct evaluation *l, uint64_t traces, bool is_over)
{
	return traces >= l->rule->min_traces || (is_over && traces > 0);
}

/* --- groups --- */

TW_ORDER_BY(by_version, struct tw_rollup_cell *, TW_ORDER((*a)->dims.app, (*b)->dims.app),
        TW_ORDER((*a)->dims.version_name, (*b)->dims.version_name))

TW_ORDER_BY(over_first, struct group, TW_FALLING(is_over), TW_FALLING(traces),
        by_version(&a->cells[0], &b->cells[0]))

static enum tw_status make_groups(struct evaluation *l, const struct tw_rollup_cell *cells,
        size_t n, struct group **ret, size_t *ret_n, struct tw_err *err)
{
	enum { POINTER_BYTES = sizeof(const void *) };
	const struct tw_rollup_cell **sorted = tw_arena_alloc(l->arena, n + 1, POINTER_BYTES);
	struct group *groups = tw_arena_zalloc(l->arena, n + 1, sizeof *groups);
	size_t n_groups = 0, n_over = 0;

	if (!sorted || !groups)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++)
		sorted[i] = &cells[i];
	if (n)
		qsort(sorted, n, POINTER_BYTES, by_version);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_version(&sorted[i - 1], &sorted[i]) != 0)
			groups[n_groups++] = (struct group){.cells = &sorted[i],
			        .is_over = was_over(
			                l, sorted[i]->dims.app, sorted[i]->dims.version_name)};
		groups[n_groups - 1].n++;
		groups[n_groups - 1].traces += sorted[i]->traces;
	}
	TW_SORT(groups, n_groups, over_first);
	while (n_over < n_groups && groups[n_over].is_over)
		n_over++;
	*ret = groups;
	*ret_n =
	        n_groups - n_over < TW_ALERT_FIGURES_MAX ? n_groups : n_over + TW_ALERT_FIGURES_MAX;
	return TW_OK;
}

/* --- one group --- */

static void add_frames(struct evaluation *l, const char *trace_id)
{
	const struct tw_found *f = &l->found;
	const uint64_t bad =
	        l->rule->kind == TW_ALERT_slow_frames ? f->slow_frames : f->frozen_frames;

	if (!f->frames)
		return;
	l->traces++;
	l->frames += f->frames;
	l->bad += bad;
	if (bad > l->worst) {
		l->worst = bad;
		memcpy(l->worst_trace, trace_id, TW_ROLLUP_ID);
		l->worst_trace[TW_ROLLUP_ID] = '\0';
	}
}

static void add_display(struct evaluation *l, const char *trace_id)
{
	const int64_t ns =
	        l->rule->kind == TW_ALERT_initial_display ? l->found.initial_ns : l->found.full_ns;

	if (ns == 0)
		return;
	l->traces++;
	tw_rollup_head_add(l->head, trace_id, ns);
}

static enum tw_status take_found(
        void *arg, const char *trace_id, struct tw_str data, struct tw_err *err)
{
	struct evaluation *l = arg;

	if (l->rows++ % DEADLINE_ROWS == 0 && tw_deadline_passed(l->deadline))
		return tw_fail(err, TW_DEADLINE, "a figure could not be computed in time");
	if (tw_found_read((const uint8_t *)data.ptr, data.len, &l->found, NULL) != TW_OK)
		return TW_OK; /* a damaged row is skipped */
	if (l->rule->kind == TW_ALERT_slow_frames || l->rule->kind == TW_ALERT_frozen_frames)
		add_frames(l, trace_id);
	else
		add_display(l, trace_id);
	return TW_OK;
}

static const char *id_of(struct evaluation *l, const char *id)
{
	return id && *id ? tw_arena_str(l->arena, (struct tw_str){id, TW_ROLLUP_ID}) : "";
}

static enum tw_status sum_durations(struct evaluation *l, const struct group *g,
        struct tw_alert_figure *ret, struct tw_err *err)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct tw_rollup_cell *c = g->cells[i];
		enum tw_status st = tw_rollup_head_merge(
		        l->head, (const uint8_t *)c->head.ptr, c->head.len, err);

		if (st != TW_OK)
			return st;
		for (size_t k = 0; k < c->n_deltas; k++)
			tw_rollup_head_add(
			        l->head, c->deltas[k].trace_id, c->deltas[k].duration_ns);
	}
	ret->traces = g->traces;
	return TW_OK;
}

static enum tw_status sum_found(struct evaluation *l, const struct group *g, size_t of_all,
        struct tw_alert_figure *ret, struct tw_err *err)
{
	const struct tw_fleet_cells_of cells = {g->cells, g->n, of_all};
	enum tw_status st;

	l->traces = l->frames = l->bad = l->worst = 0;
	l->worst_trace[0] = '\0';
	st = l->store->engine->found(
	        l->store, &l->query, &cells, &(struct tw_fleet_findings){take_found, l}, err);
	ret->traces = l->traces;
	if (st == TW_OK && l->frames)
		ret->value = (int64_t)((double)l->bad / (double)l->frames * TW_ALERT_MICRO);
	ret->trace_id = id_of(l, l->worst_trace);
	return st == TW_OK && !ret->trace_id ? tw_oom(err) : st;
}

/* Self time of the rule's method, overloads together, in the traces that have it; or its share of
 * the durations of all traces. */
static enum tw_status sum_method(struct evaluation *l, const struct group *g,
        struct tw_alert_figure *ret, struct tw_err *err)
{
	struct tw_rollup r = {.arena = l->arena,
	        .metrics = l->query.metrics,
	        .only = l->query.only,
	        .n_only = l->query.n_only};
	struct tw_rollup_worst worst = {0};
	enum tw_status st = tw_fleet_collect(g->cells, g->n, &r, err);

	tw_sketch_clear(l->method);
	for (uint32_t i = 0; st == TW_OK && i < r.n; i++)
		st = tw_rollup_sum(&r.methods[i], TW_ROLLUP_SELF, l->method, &worst, err);
	if (st == TW_OK && l->rule->kind == TW_ALERT_method_share)
		st = sum_durations(l, g, ret, err);
	if (st != TW_OK)
		return st;
	if (l->rule->kind == TW_ALERT_method_self) {
		ret->traces = l->method->n;
		ret->value = tw_sketch_quantile(l->method, l->rule->percentile);
	} else if (l->head->lengths.sum > 0) {
		ret->value = (int64_t)((double)l->method->sum / (double)l->head->lengths.sum *
		                       TW_ALERT_MICRO);
	}
	ret->trace_id = id_of(l, worst.trace_id);
	return ret->trace_id ? TW_OK : tw_oom(err);
}

static enum tw_status evaluate_group(struct evaluation *l, const struct group *g, size_t of_all,
        struct tw_alert_figure *ret, struct tw_err *err)
{
	enum tw_status st;

	tw_rollup_head_clear(l->head);
	*ret = (struct tw_alert_figure){.app = g->cells[0]->dims.app,
	        .subject = g->cells[0]->dims.version_name,
	        .title = "",
	        .trace_id = ""};
	if (tw_alert_is_of_method(l->rule->kind))
		return sum_method(l, g, ret, err);
	st = l->rule->kind == TW_ALERT_duration ? sum_durations(l, g, ret, err)
	                                        : sum_found(l, g, of_all, ret, err);
	if (st != TW_OK || !tw_alert_is_quantile(l->rule->kind) || !ret->traces)
		return st;
	ret->value = tw_sketch_quantile(&l->head->lengths, l->rule->percentile);
	ret->trace_id = id_of(l, tw_rollup_head_exemplar(l->head, ret->value));
	return ret->trace_id ? TW_OK : tw_oom(err);
}

/* Restricts the query to the rule's method; *ret_any: it exists. */
static enum tw_status find_method(struct evaluation *l, bool *ret_any, struct tw_err *err)
{
	uint64_t *ids = NULL;
	enum tw_status st = tw_catalogue_rollup_find(l->store->catalogue, l->of->project_id,
	        l->rule->method, l->arena, &ids, &l->query.n_only, err);

	l->query.only = ids;
	l->query.metrics = 1U << TW_ROLLUP_SELF;
	*ret_any = l->query.n_only > 0;
	return st;
}

static enum tw_status evaluate_versions(
        struct evaluation *l, struct tw_alert_figure **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_rollup_cell *cells = NULL;
	struct group *groups = NULL;
	size_t n = 0, n_groups = 0;
	bool any = true;
	enum tw_status st = TW_OK;

	if (tw_alert_is_of_method(l->rule->kind))
		st = find_method(l, &any, err);
	if (st == TW_OK && any)
		st = l->store->engine->cells(l->store, &l->query, l->arena, &cells, &n, err);
	if (st == TW_OK)
		st = make_groups(l, cells, n, &groups, &n_groups, err);
	if (st != TW_OK)
		return st;
	l->head = tw_arena_zalloc(l->arena, 1, sizeof *l->head);
	l->method = tw_arena_zalloc(l->arena, 1, sizeof *l->method);
	l->found.rules = tw_arena_alloc(l->arena, TW_DETECT_RULES_MAX, sizeof *l->found.rules);
	*ret = tw_arena_alloc(l->arena, n_groups + 1, sizeof **ret);
	if (!l->head || !l->method || !l->found.rules || !*ret)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < n_groups; i++) {
		if (tw_deadline_passed(l->deadline))
			return tw_fail(err, TW_DEADLINE, "a figure could not be computed in time");
		if (!has_enough(l, groups[i].traces, groups[i].is_over))
			continue;
		st = evaluate_group(l, &groups[i], n, &(*ret)[*ret_n], err);
		if (st == TW_OK && has_enough(l, (*ret)[*ret_n].traces, groups[i].is_over))
			++*ret_n;
	}
	return st;
}

/* --- spikes --- */

/* Compares the last day with the mean per day since the group was first seen. */
static int64_t times_the_mean(const struct tw_anr_spike *s, int64_t now_ms)
{
	const int64_t known_ms = now_ms - TW_DAY_MS - s->first_ms;
	const double days = known_ms > TW_DAY_MS ? (double)known_ms / (double)TW_DAY_MS : 1;

	return (int64_t)((double)s->recent * days / (double)s->before * TW_ALERT_MICRO);
}

static enum tw_status evaluate_spikes(
        struct evaluation *l, struct tw_alert_figure **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_anr_spike *rows = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_anr_spikes(l->store->catalogue, l->of->project_id, l->rule,
	        l->of->now_ms, l->arena, &rows, &n, err);

	if (st != TW_OK)
		return st;
	*ret = tw_arena_alloc(l->arena, n + 1, sizeof **ret);
	if (!*ret)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++)
		if (has_enough(l, (uint64_t)rows[i].recent, was_over(l, l->rule->app, rows[i].key)))
			(*ret)[(*ret_n)++] = (struct tw_alert_figure){.app = l->rule->app,
			        .subject = rows[i].key,
			        .title = rows[i].title,
			        .trace_id = rows[i].trace_id,
			        .value = times_the_mean(&rows[i], l->of->now_ms),
			        .traces = (uint64_t)rows[i].recent};
	return TW_OK;
}

enum tw_status tw_alert_figures(struct tw_fleet_store *store, const struct tw_alert_evaluation *of,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_alert_figure **ret,
        size_t *ret_n, struct tw_err *err)
{
	const struct tw_alert_rule *rule = of->rule;
	const int64_t today = of->now_ms / TW_DAY_MS;
	struct evaluation l = {.store = store,
	        .of = of,
	        .rule = rule,
	        .deadline = deadline,
	        .arena = a,
	        .query = {.project_id = of->project_id,
	                .filter = {rule->app, rule->version_name, "", rule->scenario, "", "", "",
	                        today - rule->days + 1, today},
	                .dims = TW_DIM_APP | TW_DIM_VERSION}};

	enum tw_status st;

	*ret = NULL;
	*ret_n = 0;
	st = rule->kind == TW_ALERT_anr_spike ? evaluate_spikes(&l, ret, ret_n, err)
	                                      : evaluate_versions(&l, ret, ret_n, err);
	for (size_t i = 0; st == TW_OK && i < *ret_n; i++) {
		struct tw_alert_figure *f = &(*ret)[i];

		f->is_over = tw_alert_is_over(
		        was_over(&l, f->app, f->subject), f->value, rule->threshold);
	}
	return st;
}
