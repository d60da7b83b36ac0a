/*
 * api_fleet_compare.c - compares two sides of the fleet.
 *
 * A side is a version (a=8.3.0), one trace (a=trace:ID) or a filter (a.os=13); parameters without
 * a. or b. apply to both.
 */
#include "server/api/fleet/api_fleet_compare.h"

#include <math.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum { LIMIT_MAX = 1000, SCENARIOS_MAX = 50 };

static const char *const sides[TW_SIDES] = {"a", "b"};

/* --- the sides --- */

static const char *label_of(struct tw_fleet_request *q, const struct tw_compared_side *s)
{
	const struct tw_rollup_filter *f = &s->filter;
	const struct {
		const char *word, *value;
	} parts[] = {{"", f->version_name}, {"app ", f->app}, {"build ", f->build_id},
	        {"class ", f->device_class}, {"OS ", f->os}, {"", f->label}};
	const char *label = "";

	if (s->trace_id)
		return tw_arena_printf(q->arena, "trace %s", s->trace_id);
	for (size_t i = 0; label && i < sizeof parts / sizeof *parts; i++)
		if (parts[i].value[0])
			label = tw_arena_printf(q->arena, "%s%s%s%s", label, label[0] ? ", " : "",
			        parts[i].word, parts[i].value);
	return label && !label[0] ? "all" : label;
}

/* One trace as a cell that has only its delta. */
static enum tw_status make_cell(
        struct tw_fleet_request *q, struct tw_compared_side *s, struct tw_err *err)
{
	struct tw_rollup_cell *cell = tw_arena_zalloc(q->arena, 1, sizeof *cell);
	struct tw_rollup_delta *delta = tw_arena_alloc(q->arena, 1, sizeof *delta);
	const struct tw_rollup_reading *f = &s->folding;

	s->cells.list = tw_arena_alloc(q->arena, 1, sizeof(const struct tw_rollup_cell *));
	if (!cell || !delta || !s->cells.list)
		return tw_oom(err);
	*delta = (struct tw_rollup_delta){s->trace_id, f->duration_ns, f->facts};
	*cell = (struct tw_rollup_cell){
	        .dims = f->cells[0], .traces = 1, .deltas = delta, .n_deltas = 1};
	s->cells.list[0] = cell;
	s->cells.n = 1;
	s->cells.traces = 1;
	return TW_OK;
}

static enum tw_status read_trace(
        struct tw_fleet_request *q, struct tw_compared_side *s, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(q->req);
	const struct tw_derive_parts parts = {.catalogue = api->catalogue,
	        .blobs = api->blobs,
	        .symbols = api->symbols,
	        .fleet = api->fleet};
	struct tw_trace_row row;
	enum tw_status st = tw_catalogue_trace_get(
	        api->catalogue, tw_api_project(q->req), s->trace_id, q->arena, &row, err);

	if (st != TW_OK)
		return st;
	if (row.state != TW_TRACE_READY)
		return tw_fail(err, TW_CONFLICT,
		        "trace %s is not decoded: it can be compared once it is ready",
		        s->trace_id);
	s->folder = tw_rollup_worker_new(&parts);
	st = s->folder ? tw_rollup_worker_read(s->folder, &row, &s->folding, err) : tw_oom(err);
	if (st == TW_OK && s->folding.n_cells == 0)
		return tw_fail(err, TW_CONFLICT, "trace %s has no times to compare", s->trace_id);
	return st == TW_OK ? make_cell(q, s, err) : st;
}

static enum tw_status read_cells(
        struct tw_fleet_request *q, struct tw_compared_side *s, struct tw_err *err)
{
	enum tw_status st =
	        tw_fleet_read(q, TW_COMPARED_METRICS, TW_DIM_SCENARIO | TW_DIM_CLASS, err);

	s->query = q->query;
	if (st != TW_OK)
		return st;
	s->cells = (struct tw_fleet_cells){
	        tw_arena_alloc(q->arena, q->n_cells + 1, sizeof(const struct tw_rollup_cell *)),
	        q->n_cells, tw_fleet_traces(q)};
	for (size_t i = 0; s->cells.list && i < q->n_cells; i++)
		s->cells.list[i] = &q->cells[i];
	return s->cells.list ? TW_OK : tw_oom(err);
}

static enum tw_status open_side(struct tw_comparison *c, int side, struct tw_err *err)
{
	struct tw_compared_side *s = &c->sides[side];
	const char *given = tw_req_text(c->q->req, sides[side]);
	enum tw_status st;

	c->q->side = sides[side];
	st = tw_fleet_read_filter(c->q, err);
	if (st != TW_OK)
		return st;
	if (given && strncmp(given, "trace:", 6) == 0)
		s->trace_id = given + 6;
	else if (given && given[0])
		c->q->filter.version_name = given;
	s->filter = c->q->filter;
	s->label = label_of(c->q, s);
	if (!s->label)
		return tw_oom(err);
	return s->trace_id ? read_trace(c->q, s, err) : read_cells(c->q, s, err);
}

static bool same_filter(const struct tw_rollup_filter *a, const struct tw_rollup_filter *b)
{
	return strcmp(a->app, b->app) == 0 && strcmp(a->version_name, b->version_name) == 0 &&
	       strcmp(a->build_id, b->build_id) == 0 && strcmp(a->scenario, b->scenario) == 0 &&
	       strcmp(a->device_class, b->device_class) == 0 && strcmp(a->os, b->os) == 0 &&
	       strcmp(a->label, b->label) == 0 && a->first_day == b->first_day &&
	       a->last_day == b->last_day;
}

static enum tw_status open_sides(struct tw_comparison *c, struct tw_err *err)
{
	const struct tw_compared_side *a = &c->sides[TW_SIDE_A], *b = &c->sides[TW_SIDE_B];
	enum tw_status st = open_side(c, TW_SIDE_A, err);

	if (st == TW_OK)
		st = open_side(c, TW_SIDE_B, err);
	if (st == TW_OK && !a->trace_id && !b->trace_id && !a->query.n_labels &&
	        !b->query.n_labels && same_filter(&a->filter, &b->filter))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "A and B are the same: set what differs, as in a=8.3.0&b=8.3.1, "
		        "a.os=13&b.os=14 or a=trace:ID");
	return st;
}

/* --- the sides --- */

static enum tw_status list_scenarios(
        struct tw_comparison *c, const char ***ret, size_t *ret_n, struct tw_err *err)
{
	size_t all = c->sides[0].cells.n + c->sides[1].cells.n, n = 0, kept = 0;
	const char **list = tw_arena_alloc(c->q->arena, all + 1, sizeof(const char *));

	if (!list)
		return tw_oom(err);
	for (int side = 0; side < TW_SIDES; side++)
		for (size_t i = 0; i < c->sides[side].cells.n; i++)
			list[n++] = c->sides[side].cells.list[i]->dims.scenario;
	TW_SORT(list, n, tw_by_text);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || strcmp(list[kept - 1], list[i]) != 0)
			list[kept++] = list[i];
	*ret = list;
	*ret_n = kept < SCENARIOS_MAX ? kept : SCENARIOS_MAX;
	return TW_OK;
}

static enum tw_status compare_scenario(struct tw_comparison *c, const char *name,
        const struct tw_fleet_cells cells[TW_SIDES], bool correct, struct tw_err *err)
{
	struct tw_compared_scenario *s = &c->scenarios[c->n_scenarios++];
	struct tw_stratum_values *lengths = NULL;
	enum tw_status st;

	s->name = name;
	st = tw_fleet_mix(cells, name, correct, c->q->arena, &s->mix, err);
	if (st == TW_OK)
		st = tw_fleet_mix_lengths(&s->mix, c->q->arena, &lengths, err);
	return st == TW_OK ? tw_fleet_compare_stats(&s->mix, lengths, c->q->arena, s->stats, err)
	                   : st;
}

static enum tw_status compare_scenarios(struct tw_comparison *c,
        const struct tw_fleet_cells cells[TW_SIDES], bool correct, struct tw_err *err)
{
	const char **names = NULL;
	size_t n = 0;
	enum tw_status st = list_scenarios(c, &names, &n, err);

	if (st != TW_OK)
		return st;
	c->scenarios = tw_arena_zalloc(c->q->arena, n + 1, sizeof *c->scenarios);
	if (!c->scenarios)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = compare_scenario(c, names[i], cells, correct, err);
	return st;
}

/* The names of all strata's methods, by one statement. */
static enum tw_status read_names(struct tw_comparison *c, size_t n, struct tw_err *err)
{
	struct tw_rollup_naming *names = NULL;
	uint64_t *ids = tw_arena_alloc(c->q->arena, n + 1, sizeof *ids);
	size_t at = 0;
	enum tw_status st;

	if (!ids)
		return tw_oom(err);
	for (size_t k = 0; k < TW_SIDES * c->mix.n; k++) {
		const struct tw_rollup *r = &c->rollups[k / TW_SIDES].of[k % TW_SIDES];

		for (uint32_t i = 0; i < r->n; i++)
			ids[at++] = r->methods[i].id;
	}
	st = tw_catalogue_rollup_names(tw_api_catalogue(c->q->req), tw_api_project(c->q->req), ids,
	        n, c->q->arena, &names, err);
	for (size_t k = 0; st == TW_OK && k < TW_SIDES * c->mix.n; k++) {
		struct tw_stratum_rollup *r = &c->rollups[k / TW_SIDES];

		r->names[k % TW_SIDES] = names;
		names += r->of[k % TW_SIDES].n;
	}
	return st;
}

enum tw_status tw_comparison_methods(struct tw_comparison *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	size_t n = 0;

	c->rollups = tw_arena_zalloc(c->q->arena, c->mix.n + 1, sizeof *c->rollups);
	if (!c->rollups)
		return tw_oom(err);
	for (size_t k = 0; st == TW_OK && k < TW_SIDES * c->mix.n; k++) {
		const struct tw_stratum *s = &c->mix.strata[k / TW_SIDES];
		const struct tw_fleet_cells *cells = &s->of[k % TW_SIDES];
		struct tw_rollup *to = &c->rollups[k / TW_SIDES].of[k % TW_SIDES];

		*to = (struct tw_rollup){.arena = c->q->arena, .metrics = TW_COMPARED_METRICS};
		if (!s->left_out)
			st = tw_fleet_collect(cells->list, cells->n, to, err);
		n += to->n;
	}
	if (st == TW_OK)
		st = read_names(c, n, err);
	return st == TW_OK ? tw_fleet_compare_methods(&c->mix, c->rollups, c->q->arena, &c->methods,
	                             &c->n_methods, err)
	                   : st;
}

/* The method with this name and descriptor; of a name alone, otherwise its first overload. */
static const struct tw_compared_method *find_method(
        const struct tw_comparison *c, struct tw_str text)
{
	const struct tw_compared_method *overload = NULL;

	for (size_t i = 0; i < c->n_methods; i++) {
		const struct tw_compared_method *m = &c->methods[i];
		struct tw_str rest;

		if (!tw_str_starts(text, m->name))
			continue;
		rest = tw_str_from(text, m->name.len);
		if (tw_str_eq(rest, tw_str_of(m->naming->descriptor)))
			return m;
		if (rest.len == 0 && !overload)
			overload = m;
	}
	return overload;
}

/* Quantiles of wall time in the traces that have the method. */
static enum tw_status compare_one(struct tw_comparison *c, struct tw_err *err)
{
	struct tw_stratum_values *s = tw_arena_zalloc(c->q->arena, c->mix.compared + 1, sizeof *s);
	enum tw_status st;

	if (!s)
		return tw_oom(err);
	c->one = find_method(c, tw_str_of(c->method));
	if (!c->one)
		return TW_OK;
	st = tw_compared_values(&c->mix, c->one, s, err);
	return st == TW_OK ? tw_fleet_compare_stats(&c->mix, s, c->q->arena, c->one_stats, err)
	                   : st;
}

static const char *const mixes[] = {"a", "none", NULL};
static const char *const formats[] = {"json", "markdown", NULL};
static const char *const kinds[] = {
        "all", "slower", "faster", "new", "removed", "significant", NULL};

const struct tw_param tw_fleet_compare_params[] = {
        TW_PARAM_TEXT("a", 0,
                "A version, or trace:ID. Parameters of the filter with a. or b. before them apply "
                "to one side, as in a.os=13."),
        TW_PARAM_TEXT("b", 0, "The same for B."),
        TW_PARAM_ENUM("mix", mixes, ""),
        TW_PARAM_ENUM("format", formats, ""),
        TW_PARAM_ENUM("only", kinds,
                "Methods that became slower or faster, that one side lacks, or whose change is "
                "significant."),
        TW_PARAM_NUMBER("limit", 50, 1, LIMIT_MAX,
                "Methods in the response, largest change of self time first."),
        TW_API_OFFSET,
        TW_PARAM_TEXT("method", 0,
                "Also returns the wall time percentiles of this method, over the traces that have "
                "it: a name, with a descriptor for one of several overloads."),
        TW_PARAM_FLAG("tree", true, ""),
        {0},
};

static enum tw_status compare_all(struct tw_comparison *c, struct tw_err *err)
{
	const bool mix = tw_req_enum(c->q->req, "mix") == 0;
	const struct tw_fleet_cells cells[TW_SIDES] = {c->sides[0].cells, c->sides[1].cells};
	enum tw_status st = tw_fleet_mix(cells, NULL, mix, c->q->arena, &c->mix, err);

	if (st == TW_OK)
		st = compare_scenarios(c, cells, mix, err);
	if (st == TW_OK)
		st = tw_comparison_methods(c, err);
	if (st == TW_OK && c->method[0])
		st = compare_one(c, err);
	return st == TW_OK ? tw_comparison_describe(c, err) : st;
}

/* --- the response --- */

static void put_number(struct tw_json *j, const char *key, double v)
{
	tw_json_key(j, key);
	tw_json_double(j, v);
}

static void put_mix(struct tw_fleet_request *q, const struct tw_mix *m)
{
	tw_json_key_open(&q->j, "mix", '{');
	TW_JSON_MEMBERS(&q->j, m, corrected, note);
	tw_json_key_open(&q->j, "strata", '[');
	for (size_t k = 0; k < m->n; k++) {
		const struct tw_stratum *s = &m->strata[k];

		tw_json_open(&q->j, '{');
		tw_json_key_text(&q->j, "scenario", s->scenario);
		tw_json_key_text(&q->j, "class", s->device_class);
		tw_json_key_int(&q->j, "a_traces", (int64_t)s->of[TW_SIDE_A].traces);
		tw_json_key_int(&q->j, "b_traces", (int64_t)s->of[TW_SIDE_B].traces);
		put_number(&q->j, "a_weight", s->weight[TW_SIDE_A]);
		put_number(&q->j, "b_weight", s->weight[TW_SIDE_B]);
		tw_json_key_bool(&q->j, "excluded", s->left_out);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
	tw_json_close(&q->j, '}');
}

static void put_interval(struct tw_json *j, const char *key, double v, double low, double high)
{
	tw_json_key_open(j, key, '{');
	put_number(j, "value", v);
	put_number(j, "low", low);
	put_number(j, "high", high);
	tw_json_close(j, '}');
}

static void put_stats(
        struct tw_fleet_request *q, const struct tw_compared_stat stats[TW_COMPARE_STATS])
{
	tw_json_key_open(&q->j, "stats", '{');
	for (int k = 0; k < TW_COMPARE_STATS; k++) {
		const struct tw_compared_stat *s = &stats[k];
		double none = s->enough ? 0 : NAN;

		tw_json_key_open(&q->j, tw_compare_stat_names[k], '{');
		for (int side = 0; side < TW_SIDES; side++)
			put_interval(&q->j, sides[side], s->of[side], s->low[side] + none,
			        s->high[side] + none);
		put_interval(&q->j, "change", s->of[TW_SIDE_A] > 0 ? s->change : NAN,
		        s->change_low + none, s->change_high + none);
		tw_json_key_bool(&q->j, "enough_traces", s->enough);
		tw_json_key_bool(&q->j, "significant", s->sure);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, '}');
}

static void put_scenario(struct tw_fleet_request *q, const struct tw_compared_scenario *s)
{
	tw_json_open(&q->j, '{');
	tw_json_key_text(&q->j, "scenario", s->name);
	tw_json_key_int(&q->j, "a_traces", (int64_t)s->mix.traces[TW_SIDE_A]);
	tw_json_key_int(&q->j, "b_traces", (int64_t)s->mix.traces[TW_SIDE_B]);
	put_mix(q, &s->mix);
	put_stats(q, s->stats);
	tw_json_close(&q->j, '}');
}

static void put_mean(struct tw_json *j, const char *key, const struct tw_compared_mean *m)
{
	double change = m->of[TW_SIDE_B] - m->of[TW_SIDE_A];
	double margin = tw_compare_margin(m);

	tw_json_key_open(j, key, '{');
	put_number(j, "a", m->of[TW_SIDE_A]);
	put_number(j, "b", m->of[TW_SIDE_B]);
	put_interval(j, "change", change, change - margin, change + margin);
	tw_json_close(j, '}');
}

static const char *state_of(const struct tw_compared_method *m)
{
	return m->share.of[TW_SIDE_A] <= 0   ? "new"
	       : m->share.of[TW_SIDE_B] <= 0 ? "removed"
	                                     : "both";
}

static void put_method(struct tw_fleet_request *q, const struct tw_compared_method *m)
{
	tw_json_open(&q->j, '{');
	tw_json_key_str(&q->j, "name", m->name);
	tw_json_key_text(&q->j, "descriptor", m->naming->descriptor);
	tw_json_key_bool(&q->j, "resolved", m->naming->named);
	tw_json_key_text(&q->j, "state", state_of(m));
	put_mean(&q->j, "self_ns", &m->self);
	put_mean(&q->j, "total_ns", &m->total);
	put_mean(&q->j, "calls", &m->calls);
	put_number(&q->j, "a_share", m->share.of[TW_SIDE_A]);
	put_number(&q->j, "b_share", m->share.of[TW_SIDE_B]);
	tw_json_key_text(&q->j, "scenario", m->scenario);
	if (m->scenario) {
		put_mean(&q->j, "scenario_self_ns", &m->in);
	} else {
		tw_json_key(&q->j, "scenario_self_ns");
		tw_json_null(&q->j);
	}
	put_number(&q->j, "p", m->p);
	tw_json_key_bool(&q->j, "significant", m->sure);
	tw_json_close(&q->j, '}');
}

enum only { ALL, SLOWER, FASTER, NEW, GONE, SURE };

static bool is_requested(const struct tw_compared_method *m, enum only only)
{
	double change = m->self.of[TW_SIDE_B] - m->self.of[TW_SIDE_A];

	switch (only) {
	case SLOWER:
		return change > 0;
	case FASTER:
		return change < 0;
	case NEW:
		return m->share.of[TW_SIDE_A] <= 0;
	case GONE:
		return m->share.of[TW_SIDE_B] <= 0;
	case SURE:
		return m->sure;
	case ALL:
		break;
	}
	return true;
}

static void put_methods(const struct tw_comparison *c)
{
	struct tw_fleet_request *q = c->q;
	const enum only only = (enum only)tw_req_enum(q->req, "only");
	const int64_t limit = tw_req_number(q->req, "limit");
	const int64_t offset = tw_req_number(q->req, "offset");
	int64_t meant = 0, counts[SURE + 1] = {0};

	tw_json_key_open(&q->j, "methods", '[');
	for (size_t i = 0; i < c->n_methods; i++) {
		for (int k = 0; k <= SURE; k++)
			counts[k] += is_requested(&c->methods[i], (enum only)k);
		if (!is_requested(&c->methods[i], only))
			continue;
		if (meant >= offset && meant < offset + limit)
			put_method(q, &c->methods[i]);
		meant++;
	}
	tw_json_close(&q->j, ']');
	tw_json_key_open(&q->j, "counts", '{');
	for (int k = 0; k <= SURE; k++)
		tw_json_key_int(&q->j, kinds[k], counts[k]);
	tw_json_close(&q->j, '}');
}

static void put_side(const struct tw_comparison *c, int side)
{
	const struct tw_compared_side *s = &c->sides[side];
	struct tw_json *j = &c->q->j;

	tw_json_key_open(j, sides[side], '{');
	tw_json_key_text(&c->q->j, "label", s->label);
	tw_json_key_int(j, "traces", (int64_t)s->cells.traces);
	tw_json_key_int(j, "compared", (int64_t)c->mix.traces[side]);
	tw_json_key_int(j, "since_ms", s->filter.first_day * TW_DAY_MS);
	tw_json_key_int(j, "until_ms", (s->filter.last_day + 1) * TW_DAY_MS);
	tw_json_key_text(j, "trace", s->trace_id);
	tw_json_close(j, '}');
}

static void put_one(const struct tw_comparison *c)
{
	tw_json_key(&c->q->j, "method");
	if (!c->one) {
		tw_json_null(&c->q->j);
		return;
	}
	tw_json_open(&c->q->j, '{');
	tw_json_key_str(&c->q->j, "name", c->one->name);
	put_number(&c->q->j, "a_share", c->one->share.of[TW_SIDE_A]);
	put_number(&c->q->j, "b_share", c->one->share.of[TW_SIDE_B]);
	put_number(&c->q->j, "share_margin",
	        c->mix.traces[TW_SIDE_A] < TW_COMPARE_ENOUGH ||
	                        c->mix.traces[TW_SIDE_B] < TW_COMPARE_ENOUGH
	                ? NAN
	                : tw_compare_margin(&c->one->share));
	put_stats(c->q, c->one_stats);
	tw_json_close(&c->q->j, '}');
}

static enum tw_status put_json(struct tw_comparison *c, struct tw_err *err)
{
	struct tw_json *j = &c->q->j;
	enum tw_status st = TW_OK;

	tw_json_open(j, '{');
	tw_json_key_text(&c->q->j, "summary", c->sentence);
	tw_json_key_bool(j, "comparable", c->mix.traces[0] && c->mix.traces[1]);
	put_number(j, "error", TW_SKETCH_ERROR);
	put_side(c, TW_SIDE_A);
	put_side(c, TW_SIDE_B);
	put_mix(c->q, &c->mix);
	tw_json_key_open(j, "scenarios", '[');
	for (size_t i = 0; i < c->n_scenarios; i++)
		put_scenario(c->q, &c->scenarios[i]);
	tw_json_close(j, ']');
	put_one(c);
	put_methods(c);
	if (tw_req_flag(c->q->req, "tree"))
		st = tw_comparison_put_tree(c, err);
	tw_json_close(j, '}');
	return st;
}

static enum tw_status put_answer(struct tw_comparison *c, struct tw_err *err)
{
	if (tw_req_enum(c->q->req, "format") == 0)
		return put_json(c, err);
	c->q->type = "text/markdown; charset=utf-8";
	tw_comparison_markdown(c, &c->q->out);
	return TW_OK;
}

enum tw_status tw_fleet_write_compare(struct tw_fleet_request *q, struct tw_err *err)
{
	struct tw_comparison *c = tw_arena_zalloc(q->arena, 1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	c->q = q;
	c->method = tw_req_text_or_empty(q->req, "method");
	st = open_sides(c, err);
	if (st == TW_OK)
		st = compare_all(c, err);
	if (st == TW_OK)
		st = put_answer(c, err);
	for (int side = 0; side < TW_SIDES; side++)
		(void)tw_rollup_worker_free(c->sides[side].folder);
	return st;
}
