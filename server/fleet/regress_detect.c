/*
 * regress_detect.c - groups cells into buckets (day, version, class), and buckets into series.
 *
 * The versions of a scenario are those with most traces, in the order of their first day. That
 * order defines "the version before", as version names need not be numbers.
 */
#include "server/fleet/regress_detect.h"
#include "server/catalogue/access/catalogue_setting.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/base/file/crash_point.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/fleet/fleet.h"

#define ARENA_MAX ((size_t)512 << 20)

struct version {
	const char *name;
	int64_t first_day;
	uint64_t traces;
};

struct bucket {
	int64_t day;
	uint32_t version, cls;
	const struct tw_rollup_cell **cells;
	size_t n;
	struct tw_sketch *sketch; /* scratch space, reused for each series */
	struct tw_rollup methods;
};

struct scan {
	struct tw_fleet_store *store;
	const char *project_id;
	const struct tw_deadline *deadline;
	uint64_t turn;
	struct tw_regress_rules rules;
	struct tw_regress_scratch *scratch;
	struct tw_arena *arena; /* of the current scenario */
	struct tw_regress_list found;
	struct tw_regress_detected *sums;
	/* the current scenario */
	struct tw_rollup_filter filter;
	struct tw_rollup_cell *cells;
	size_t n_cells;
	const char *versions[TW_REGRESS_VERSIONS];
	size_t n_versions;
	struct bucket *buckets;
	size_t n_buckets;
	struct tw_regress_part *parts;
	struct tw_regress_total *totals;
	struct tw_regress_totals of; /* of the scenario */
	struct tw_regress_list new_methods;
	int64_t median_ns;
};

static enum tw_status in_time(const struct scan *scan, struct tw_err *err)
{
	return tw_deadline_passed(scan->deadline)
	               ? tw_fail(err, TW_DEADLINE, "not all scenarios could be analysed in time")
	               : TW_OK;
}

/* --- versions --- */

TW_ORDER_BY(by_traces, struct version, TW_FALLING(traces))

TW_ORDER_BY(by_first_day, struct version, TW_RISING(first_day), strverscmp(a->name, b->name))

TW_ORDER_BY(by_version_name, struct version, TW_RISING(name))

static enum tw_status find_versions(struct scan *scan, struct tw_err *err)
{
	struct version *all = tw_arena_alloc(scan->arena, scan->n_cells + 1, sizeof *all);
	size_t n = 0;

	if (!all)
		return tw_oom(err);
	for (size_t i = 0; i < scan->n_cells; i++)
		all[i] = (struct version){scan->cells[i].dims.version_name, scan->cells[i].dims.day,
		        scan->cells[i].traces};
	TW_SORT(all, scan->n_cells, by_version_name);
	for (size_t i = 0; i < scan->n_cells; i++) {
		if (n == 0 || strcmp(all[n - 1].name, all[i].name) != 0) {
			all[n++] = all[i];
			continue;
		}
		all[n - 1].traces += all[i].traces;
		if (all[i].first_day < all[n - 1].first_day)
			all[n - 1].first_day = all[i].first_day;
	}
	TW_SORT(all, n, by_traces);
	scan->n_versions = n < TW_REGRESS_VERSIONS ? n : TW_REGRESS_VERSIONS;
	TW_SORT(all, scan->n_versions, by_first_day);
	for (size_t i = 0; i < scan->n_versions; i++)
		scan->versions[i] = all[i].name;
	return TW_OK;
}

/* --- buckets --- */

static uint32_t class_of(const char *word)
{
	static const char *const names[] = {"low", "mid", "high"};

	for (uint32_t i = 0; i < TW_REGRESS_CLASSES - 1; i++)
		if (strcmp(names[i], word) == 0)
			return i;
	return TW_REGRESS_CLASSES - 1;
}

static bool version_at(const struct scan *scan, const char *name, uint32_t *ret)
{
	for (uint32_t i = 0; i < scan->n_versions; i++)
		if (strcmp(scan->versions[i], name) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

struct bucketed { /* a cell and its bucket */
	struct bucket key;
	const struct tw_rollup_cell *cell;
};

TW_ORDER_BY(
        by_bucket, struct bucketed, TW_RISING(key.day), TW_RISING(key.version), TW_RISING(key.cls))

static size_t sort_into_buckets(const struct scan *scan, struct bucketed *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < scan->n_cells; i++) {
		const struct tw_rollup_dims *d = &scan->cells[i].dims;
		struct bucket key = {.day = d->day, .cls = class_of(d->device_class)};

		if (strcmp(d->app, scan->filter.app) == 0 &&
		        strcmp(d->scenario, scan->filter.scenario) == 0 &&
		        version_at(scan, d->version_name, &key.version))
			ret[n++] = (struct bucketed){key, &scan->cells[i]};
	}
	TW_SORT(ret, n, by_bucket);
	return n;
}

static enum tw_status make_buckets(struct scan *scan, struct tw_err *err)
{
	struct bucketed *bucketed =
	        tw_arena_alloc(scan->arena, scan->n_cells + 1, sizeof *bucketed);
	const struct tw_rollup_cell **cells = tw_arena_alloc(
	        scan->arena, scan->n_cells + 1, sizeof(const struct tw_rollup_cell *));
	const size_t n = bucketed ? sort_into_buckets(scan, bucketed) : 0;

	scan->buckets = tw_arena_alloc(scan->arena, n + 1, sizeof *scan->buckets);
	scan->parts = tw_arena_alloc(scan->arena, n + 1, sizeof *scan->parts);
	scan->totals = tw_arena_alloc(scan->arena, n + 1, sizeof *scan->totals);
	scan->n_buckets = 0;
	if (!bucketed || !cells || !scan->buckets || !scan->parts || !scan->totals)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++) {
		cells[i] = bucketed[i].cell;
		if (i == 0 || by_bucket(&bucketed[i - 1], &bucketed[i]) != 0) {
			struct bucket *b = &scan->buckets[scan->n_buckets++];

			*b = bucketed[i].key;
			b->cells = &cells[i];
			b->sketch = tw_arena_zalloc(scan->arena, 1, sizeof *b->sketch);
			if (!b->sketch)
				return tw_oom(err);
		}
		scan->buckets[scan->n_buckets - 1].n++;
	}
	return TW_OK;
}

/* --- series --- */

/* Smaller changes of a method are ignored. */
static int64_t least_change(const struct scan *scan)
{
	return (int64_t)((double)scan->median_ns * scan->rules.min_share);
}

static enum tw_status find(
        struct scan *scan, const struct tw_rollup_naming *of, size_t n_parts, struct tw_err *err)
{
	enum tw_status st;
	const struct tw_regress_series s = {.app = scan->filter.app,
	        .scenario = scan->filter.scenario,
	        .method = of ? of->name : "",
	        .descriptor = of ? of->descriptor : "",
	        .versions = scan->versions,
	        .n_versions = scan->n_versions,
	        .parts = scan->parts,
	        .n_parts = n_parts,
	        .least_ns = of ? least_change(scan) : 0};

	scan->sums->series++;
	st = tw_regress_find(scan->scratch, &s, &scan->rules, &scan->found, err);
	if (st == TW_OK && of)
		st = tw_regress_find_new(&s, &scan->of, &scan->rules, &scan->new_methods, err);
	return st;
}

static struct tw_regress_part part_of(const struct bucket *b, const char *worst)
{
	return (struct tw_regress_part){b->day, b->version, b->cls, b->sketch, worst};
}

static enum tw_status scan_lengths(struct scan *scan, struct tw_err *err)
{
	struct tw_rollup_head *h = tw_arena_zalloc(scan->arena, 1, sizeof *h);
	struct tw_sketch *all = tw_arena_zalloc(scan->arena, 1, sizeof *all);
	enum tw_status st = TW_OK;

	if (!h || !all)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < scan->n_buckets; i++) {
		const struct bucket *b = &scan->buckets[i];
		const struct tw_fleet_group group = {"", "", 0, b->cells, b->n};
		struct tw_fleet_lengths lengths;

		st = tw_fleet_lengths(&group, h, &lengths, err);
		if (st != TW_OK)
			break;
		tw_sketch_add_all(b->sketch, &h->lengths);
		tw_sketch_add_all(all, &h->lengths);
		scan->totals[i] =
		        (struct tw_regress_total){b->day, b->version, b->cls, h->lengths.n};
		scan->parts[i] = part_of(b, tw_arena_printf(scan->arena, "%s", lengths.longest));
	}
	if (st != TW_OK)
		return st;
	scan->median_ns = tw_sketch_quantile(all, 50);
	return find(scan, NULL, scan->n_buckets, err);
}

/* --- methods --- */

struct entry { /* a method in a bucket */
	const struct tw_rollup_naming *naming;
	const struct tw_rollup_method *method;
	struct bucket *bucket;
};

TW_ORDER_BY(same_method, struct entry, TW_RISING(naming->name), TW_RISING(naming->descriptor))

TW_ORDER_BY(by_method, struct entry, same_method(a, b),
        TW_ORDER((uintptr_t)a->bucket, (uintptr_t)b->bucket))

static enum tw_status collect(struct scan *scan, size_t *ret_n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	*ret_n = 0;
	for (size_t i = 0; st == TW_OK && i < scan->n_buckets; i++) {
		struct bucket *b = &scan->buckets[i];

		b->methods =
		        (struct tw_rollup){.arena = scan->arena, .metrics = 1U << TW_ROLLUP_SELF};
		st = tw_fleet_collect(b->cells, b->n, &b->methods, err);
		*ret_n += b->methods.n;
	}
	return st;
}

static enum tw_status name_entries(
        struct scan *scan, struct entry *entries, size_t n, struct tw_err *err)
{
	uint64_t *ids = tw_arena_alloc(scan->arena, n + 1, sizeof *ids);
	struct tw_rollup_naming *names = NULL;
	enum tw_status st = ids ? TW_OK : tw_oom(err);

	if (!ids)
		return st;
	for (size_t i = 0; i < n; i++)
		ids[i] = entries[i].method->id;
	st = tw_catalogue_rollup_names(
	        scan->store->catalogue, scan->project_id, ids, n, scan->arena, &names, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		entries[i].naming = &names[i];
	return st;
}

/* A number without a name denotes another method in each build and cannot be compared. */
static size_t keep_named(struct entry *entries, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (entries[i].naming && entries[i].naming->named &&
		        entries[i].method->id != TW_ROLLUP_OTHER)
			entries[kept++] = entries[i];
	TW_SORT(entries, kept, by_method);
	return kept;
}

/* One method: its entries in all buckets; a bucket has several if builds differ. */
static enum tw_status scan_method(
        struct scan *scan, const struct entry *e, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	int64_t most = 0;
	size_t n_parts = 0;

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		struct bucket *b = e[i].bucket;
		struct tw_rollup_worst worst = {0};

		if (i == 0 || e[i - 1].bucket != b)
			tw_sketch_clear(b->sketch);
		st = tw_rollup_sum(e[i].method, TW_ROLLUP_SELF, b->sketch, &worst, err);
		if (i > 0 && e[i - 1].bucket == b)
			continue;
		most = b->sketch->max > most ? b->sketch->max : most;
		scan->parts[n_parts++] = part_of(b,
		        worst.trace_id
		                ? tw_arena_printf(scan->arena, "%.*s", TW_ROLLUP_ID, worst.trace_id)
		                : NULL);
	}
	return st == TW_OK && most >= least_change(scan) ? find(scan, e[0].naming, n_parts, err)
	                                                 : st;
}

/* Time that may belong to any method: of methods without a name, and of the rest of each trace. */
static enum tw_status find_hidden(
        struct scan *scan, const struct entry *entries, size_t n, struct tw_err *err)
{
	struct tw_sketch *s = tw_arena_zalloc(scan->arena, 1, sizeof *s);
	uint64_t traces[TW_REGRESS_VERSIONS] = {0};
	enum tw_status st = TW_OK;

	if (!s)
		return tw_oom(err);
	scan->of = (struct tw_regress_totals){scan->totals, scan->n_buckets, scan->median_ns, {0}};
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		const uint32_t version = entries[i].bucket->version;
		const struct tw_rollup_naming *of = entries[i].naming;
		struct tw_rollup_worst worst = {0};

		if (!of || (of->named && entries[i].method->id != TW_ROLLUP_OTHER))
			continue;
		tw_sketch_clear(s);
		st = tw_rollup_sum(entries[i].method, TW_ROLLUP_SELF, s, &worst, err);
		scan->of.hidden_ns[version] = tw_sketch_sum(scan->of.hidden_ns[version], s->sum);
	}
	for (size_t i = 0; i < scan->n_buckets; i++)
		traces[scan->totals[i].version] += scan->totals[i].n;
	for (size_t v = 0; v < TW_REGRESS_VERSIONS; v++)
		if (traces[v])
			scan->of.hidden_ns[v] /= (int64_t)traces[v];
	return st;
}

/* Adds new methods to the regressions. */
static enum tw_status take_new(struct scan *scan, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	tw_regress_limit_new(&scan->new_methods);
	for (size_t i = 0; st == TW_OK && i < scan->new_methods.n; i++)
		st = tw_regress_add(&scan->found, &scan->new_methods.of[i], err);
	return st;
}

/* All named methods of all buckets, sorted. Sets scan->of to the totals and the time of the others.
 */
static enum tw_status make_entries(
        struct scan *scan, struct entry **ret, size_t *ret_n, struct tw_err *err)
{
	struct entry *entries;
	size_t n_all = 0, n = 0;
	enum tw_status st = collect(scan, &n_all, err);

	if (st != TW_OK)
		return st;
	entries = tw_arena_alloc(scan->arena, n_all + 1, sizeof *entries);
	if (!entries)
		return tw_oom(err);
	for (size_t i = 0; i < scan->n_buckets; i++)
		for (uint32_t k = 0; k < scan->buckets[i].methods.n; k++)
			entries[n++] = (struct entry){
			        NULL, &scan->buckets[i].methods.methods[k], &scan->buckets[i]};
	st = name_entries(scan, entries, n, err);
	if (st == TW_OK)
		st = find_hidden(scan, entries, n, err);
	if (st != TW_OK)
		return st;
	*ret = entries;
	*ret_n = keep_named(entries, n);
	return TW_OK;
}

static enum tw_status scan_methods(struct scan *scan, struct tw_err *err)
{
	struct entry *entries = NULL;
	size_t n = 0;
	enum tw_status st = make_entries(scan, &entries, &n, err);

	for (size_t i = 0; st == TW_OK && i < n;) {
		size_t end = i + 1;

		while (end < n && same_method(&entries[i], &entries[end]) == 0)
			end++;
		st = in_time(scan, err);
		if (st == TW_OK)
			st = scan_method(scan, &entries[i], end - i, err);
		i = end;
	}
	return st == TW_OK ? take_new(scan, err) : st;
}

/* --- scenarios --- */

static enum tw_status scan_scenario(struct scan *scan, struct tw_err *err)
{
	const struct tw_fleet_query query = {.project_id = scan->project_id,
	        .filter = scan->filter,
	        .metrics = 1U << TW_ROLLUP_SELF,
	        .dims = TW_DIM_APP | TW_DIM_SCENARIO | TW_DIM_DAY | TW_DIM_VERSION | TW_DIM_CLASS};
	enum tw_status st = scan->store->engine->cells(
	        scan->store, &query, scan->arena, &scan->cells, &scan->n_cells, err);

	scan->found = scan->new_methods = (struct tw_regress_list){scan->arena, NULL, 0, 0};
	if (st != TW_OK || scan->n_cells == 0)
		return st;
	st = find_versions(scan, err);
	if (st == TW_OK)
		st = make_buckets(scan, err);
	if (st == TW_OK)
		st = scan_lengths(scan, err);
	if (st == TW_OK)
		st = scan_methods(scan, err);
	if (scan->found.n > 0)
		tw_crash_point("regressions_found");
	if (st == TW_OK)
		st = tw_catalogue_regression_store(scan->store->catalogue, scan->project_id,
		        scan->found.of, scan->found.n, &scan->sums->fresh, err);
	if (scan->found.n > 0)
		tw_crash_point("regressions_stored");
	scan->sums->found += scan->found.n;
	return st;
}

TW_ORDER_BY(by_scenario, struct tw_rollup_cell, TW_RISING(dims.app), TW_RISING(dims.scenario))

struct scenario_range { /* cells of one scenario of one app */
	size_t first;
	uint64_t traces;
};

/* Leaves scenarios with enough traces for a result. */
static size_t find_ranges(const struct scan *scan, const struct tw_rollup_cell *cells, size_t n,
        struct scenario_range *ret)
{
	size_t found = 0;

	for (size_t i = 0; i < n;) {
		struct scenario_range one = {i, 0};

		for (; i < n && by_scenario(&cells[one.first], &cells[i]) == 0; i++)
			one.traces += cells[i].traces;
		if (one.traces >= 2 * (uint64_t)scan->rules.shift.min_traces)
			ret[found++] = one;
	}
	return found;
}

static enum tw_status scan_range(struct scan *scan, const struct tw_rollup_filter *days,
        const struct tw_rollup_cell *of, struct tw_err *err)
{
	enum tw_status st = in_time(scan, err);

	if (st != TW_OK)
		return st;
	tw_arena_reset(scan->arena);
	scan->filter = *days;
	scan->filter.app = of->dims.app;
	scan->filter.scenario = of->dims.scenario;
	return scan_scenario(scan, err);
}

static enum tw_status scan_all(struct scan *scan, const struct tw_rollup_filter *days,
        struct tw_arena *a, struct tw_err *err)
{
	const struct tw_fleet_query query = {.project_id = scan->project_id,
	        .filter = *days,
	        .dims = TW_DIM_APP | TW_DIM_SCENARIO};
	struct tw_rollup_cell *cells = NULL;
	struct scenario_range *all;
	struct tw_err why;
	size_t n = 0;
	enum tw_status one = TW_OK,
	               st = scan->store->engine->cells(scan->store, &query, a, &cells, &n, err);

	if (st != TW_OK || n == 0)
		return st;
	TW_SORT(cells, n, by_scenario);
	all = tw_arena_alloc(a, n, sizeof *all);
	if (!all)
		return tw_oom(err);
	n = find_ranges(scan, cells, n, all);
	for (size_t i = 0; i < n && one != TW_DEADLINE; i++) {
		one = scan_range(scan, days, &cells[all[(scan->turn + i) % n].first], &why);
		if (st == TW_OK && one != TW_OK) { /* a failed scenario does not stop the others */
			st = one;
			tw_err_copy(err, &why);
		}
	}
	return st;
}

static enum tw_status check_rules(const json_t *doc, struct tw_err *err)
{
	struct tw_regress_rules rules = tw_regress_defaults;

	return tw_regress_rules_read(doc, &rules, err);
}

const struct tw_setting tw_regress_setting = {TW_SETTING_REGRESSIONS, check_rules};

enum tw_status tw_regress_rules_of(struct tw_catalogue *c, const char *project_id,
        struct tw_regress_rules *ret, struct tw_err *err)
{
	json_t *doc;
	int64_t changed_ms;
	enum tw_status st =
	        tw_setting_load(c, project_id, &tw_regress_setting, &doc, &changed_ms, err);

	*ret = tw_regress_defaults;
	if (st == TW_OK && doc)
		st = tw_regress_rules_read(doc, ret, err);
	json_decref(doc);
	return st;
}

static enum tw_status detect(struct tw_fleet_store *store, const struct tw_regress_task *of,
        struct tw_regress_detected *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_MAX);
	struct scan scan = {.store = store,
	        .project_id = of->project_id,
	        .deadline = &of->deadline,
	        .turn = of->turn,
	        .sums = ret};
	struct tw_rollup_filter days = tw_rollup_days(0, of->today);
	enum tw_status st;

	*ret = (struct tw_regress_detected){0};
	scan.arena = tw_arena_new(ARENA_MAX);
	scan.scratch = tw_regress_scratch_new();
	st = a && scan.arena && scan.scratch
	             ? tw_regress_rules_of(store->catalogue, of->project_id, &scan.rules, err)
	             : tw_oom(err);
	days.first_day = of->today - (int64_t)scan.rules.window_days + 1;
	if (st == TW_OK)
		st = scan_all(&scan, &days, a, err);
	scan.scratch = tw_regress_scratch_free(scan.scratch);
	tw_arena_free(scan.arena);
	tw_arena_free(a);
	return st;
}

enum tw_status tw_regress_detect(struct tw_fleet_store *store, const struct tw_regress_task *of,
        struct tw_regress_detected *ret, struct tw_err *err)
{
	enum tw_status st;

	if (atomic_exchange(&store->detecting, true))
		return tw_fail(err, TW_BUSY,
		        "the server is already detecting regressions; retry in a moment");
	st = detect(store, of, ret, err);
	atomic_store(&store->detecting, false);
	return st;
}
