/*
 * test_fleet_engines.c - the same simulated traces in the catalogue and in ClickHouse give the same
 * answers: counts, sums, sketches, trees, searches, findings and regressions, by any dimension and
 * filter; also after traces were written twice, and with rows of attempts that did not end.
 *
 * FLEET_TRACES: how many (240).  Skipped without TRACEWELL_TEST_CLICKHOUSE
 * (tests/unit/on_clickhouse).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/fleet/fleet_tree.h"
#include "server/fleet/found.h"
#include "server/fleet/regress_detect.h"
#include "server/fleet/store/clickhouse/clickhouse_int.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { DAY0 = 20000, TODAY = DAY0 + SIM_DAYS - 1, ENGINES = 2 };
#define ARENA ((size_t)1 << 30)

struct session {
	char dir[64], project[TW_ID_BYTES];
	struct tw_catalogue *c;
	struct tw_db *db;
	struct tw_fleet_store *of[ENGINES]; /* the catalogue, ClickHouse */
	struct tw_clickhouse *at;
	struct tw_arena *arena;
	uint64_t traces;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void load(struct session *s)
{
	sim_labels = true;
	sim_per_day = s->traces / SIM_DAYS + 1;
	assert_true(sim_rows(s->db, s->project, 0, s->traces, DAY0));
	for (int i = 0; i < ENGINES; i++)
		assert_true(sim_put(s->of[i], s->project, 0, s->traces, DAY0));
}

static int setup(void **state)
{
	static struct session s;
	const char *host = getenv("TRACEWELL_TEST_CLICKHOUSE"), *n = getenv("FLEET_TRACES");
	struct tw_err err;
	char url[256];
	bool is_new;

	*state = &s;
	s = (struct session){
	        .dir = "/dev/shm/tw-engines-XXXXXX", .traces = n ? strtoul(n, NULL, 10) : 240};
	if (!host)
		return 0;
	if (!mkdtemp(s.dir)) {
		(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-engines-XXXXXX");
		assert_non_null(mkdtemp(s.dir));
	}
	s.c = catalogue_in(s.dir);
	s.db = catalogue_connect(s.dir);
	s.arena = tw_arena_new(ARENA);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.project, &is_new, NULL), TW_OK);
	(void)snprintf(url, sizeof url, "clickhouse://%s/engines_%d", host, (int)getpid());
	s.of[0] = tw_fleet_embedded_new(s.c);
	if (tw_fleet_clickhouse_new(
	            s.c, &(struct tw_clickhouse_at){url, "", "", ""}, &s.of[1], &err) != TW_OK ||
	        tw_clickhouse_new(&(struct tw_clickhouse_at){url, "", "", ""}, &s.at, &err) !=
	                TW_OK)
		fail_msg("%s", err.msg);
	load(&s);
	return 0;
}

static void run_sql(struct session *s, const char *sql)
{
	const struct tw_clickhouse_query q = {.sql = tw_str_of(sql), .ms = 60000};
	struct tw_err err;

	if (tw_clickhouse_request(s->at, &q, NULL, &err) != TW_OK)
		fail_msg("%s", err.msg);
}

static int teardown(void **state)
{
	struct session *s = *state;
	char sql[128];

	if (!s->c)
		return 0;
	(void)snprintf(sql, sizeof sql, "DROP DATABASE %s", tw_clickhouse_database(s->at));
	run_sql(s, sql);
	for (int i = 0; i < ENGINES; i++)
		s->of[i] = tw_fleet_store_free(s->of[i]);
	s->at = tw_clickhouse_free(s->at);
	tw_db_close(s->db);
	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* --- cells --- */

static struct tw_fleet_query ask_of(
        struct session *s, const struct tw_rollup_filter *f, unsigned dims)
{
	struct tw_fleet_query query = {.project_id = s->project, .filter = *f, .dims = dims};

	if (!query.filter.last_day)
		query.filter.last_day = TODAY;
	return query;
}

struct read {
	struct tw_rollup_cell *cells;
	size_t n;
};

static struct read read_cells(struct session *s, int engine, const struct tw_fleet_query *query)
{
	struct tw_fleet_store *store = s->of[engine];
	struct read r = {NULL, 0};
	struct tw_err err;

	if (store->engine->cells(store, query, s->arena, &r.cells, &r.n, &err) != TW_OK)
		fail_msg("%s: %s", store->engine->name, err.msg);
	return r;
}

static void check_exemplars(const struct tw_fleet_lengths *a, const struct tw_fleet_lengths *b)
{
	for (int i = 0; i < TW_FLEET_QUANTILES; i++) {
		assert_int_equal(a->stat.at[i], b->stat.at[i]);
		assert_string_equal(a->at[i], b->at[i]);
	}
	assert_string_equal(a->longest, b->longest);
}

static void check_stats(const struct tw_fleet_stat *a, const struct tw_fleet_stat *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->sum, b->sum);
	assert_int_equal(a->mean, b->mean);
	assert_int_equal(a->max, b->max);
	for (int i = 0; i < TW_FLEET_QUANTILES; i++)
		assert_int_equal(a->at[i], b->at[i]);
}

static int by_id(const void *a, const void *b)
{
	const uint64_t x = ((const struct tw_rollup_method *)a)->id;
	const uint64_t y = ((const struct tw_rollup_method *)b)->id;

	return x < y ? -1 : x > y;
}

static struct tw_rollup collect(struct session *s, const struct tw_fleet_group *g, unsigned metrics)
{
	struct tw_rollup r = {.arena = s->arena, .metrics = metrics};

	assert_int_equal(tw_fleet_collect(g->cells, g->n, &r, NULL), TW_OK);
	if (r.n)
		qsort(r.methods, r.n, sizeof *r.methods, by_id);
	return r;
}

static void check_rollups(const struct tw_rollup *a, const struct tw_rollup *b)
{
	static struct tw_sketch sketch;

	assert_int_equal(a->n, b->n);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct tw_rollup_method *const of[ENGINES] = {&a->methods[i], &b->methods[i]};

		assert_int_equal(of[0]->id, of[1]->id);
		for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++) {
			struct tw_fleet_stat stats[ENGINES];

			for (int e = 0; e < ENGINES; e++)
				assert_int_equal(
				        tw_fleet_stat(&of[e], 1, m, &sketch, &stats[e], NULL),
				        TW_OK);
			check_stats(&stats[0], &stats[1]);
			assert_true(!stats[0].worst == !stats[1].worst);
			if (stats[0].worst)
				assert_memory_equal(stats[0].worst, stats[1].worst, TW_ROLLUP_ID);
		}
	}
}

static void check_methods(
        struct session *s, const struct tw_fleet_group g[ENGINES], unsigned metrics)
{
	const struct tw_rollup a = collect(s, &g[0], metrics), b = collect(s, &g[1], metrics);

	check_rollups(&a, &b);
}

/* By that dimension, with that filter. */
static void check_by(
        struct session *s, const struct tw_rollup_filter *f, enum tw_fleet_by by, unsigned metrics)
{
	struct tw_fleet_query query = ask_of(s, f, tw_fleet_by_dims(by) | TW_DIM_SCENARIO);
	static struct tw_rollup_head h;
	struct tw_fleet_group *groups[ENGINES];
	size_t n[ENGINES];

	tw_arena_reset(s->arena);
	query.metrics = metrics;
	for (int e = 0; e < ENGINES; e++) {
		const struct read r = read_cells(s, e, &query);

		assert_int_equal(
		        tw_fleet_groups(r.cells, r.n, by, true, s->arena, &groups[e], &n[e], NULL),
		        TW_OK);
	}
	assert_int_equal(n[0], n[1]);
	for (size_t i = 0; i < n[0]; i++) {
		const struct tw_fleet_group pair[ENGINES] = {groups[0][i], groups[1][i]};
		struct tw_fleet_lengths lengths[ENGINES];

		assert_string_equal(pair[0].key, pair[1].key);
		assert_string_equal(pair[0].scenario, pair[1].scenario);
		assert_int_equal(pair[0].traces, pair[1].traces);
		for (int e = 0; e < ENGINES; e++)
			assert_int_equal(tw_fleet_lengths(&pair[e], &h, &lengths[e], NULL), TW_OK);
		check_stats(&lengths[0].stat, &lengths[1].stat);
		check_exemplars(&lengths[0], &lengths[1]);
		check_methods(s, pair, query.metrics);
	}
}

static const struct tw_rollup_filter filters[] = {
        {"", "", "", "", "", "", "", 0, 0},
        {"app", "8.3.1", "", "page", "", "", "", 0, 0},
        {"", "", "b832", "", "low", "14", "", 0, 0},
        {"", "", "", "", "", "", "", DAY0 + 3, DAY0 + 5},
        {"no'such", "", "", "", "", "", "", 0, 0},
        {"", "8.3.2", "", "", "", "", "flavour=it's", 0, 0},
        {"", "", "", "", "", "", "flavour=a\\b", 0, 0},
        {"", "", "", "", "", "", "flavour=", 0, 0},
};
enum { FILTERS = sizeof filters / sizeof *filters };

/* Cells of a label have no class and no system where they are counted in the catalogue. */
static bool is_lost(const struct tw_rollup_filter *f, enum tw_fleet_by by)
{
	return f->label[0] && (by == TW_FLEET_CLASS || by == TW_FLEET_OS);
}

static struct session *session_of(void **state)
{
	struct session *s = *state;

	unit_needs(s->c != NULL, "a fleet engine");
	return s;
}

/* Each dimension and each filter, not all pairs of them. */
static void check_all(struct session *s)
{
	for (int by = 0; by < TW_FLEET_LABEL; by++)
		check_by(s, &filters[0], by,
		        by == TW_FLEET_VERSION ? TW_ROLLUP_ALL : 1U << TW_ROLLUP_SELF);
	for (size_t i = 1; i < FILTERS; i++) {
		const enum tw_fleet_by by = (enum tw_fleet_by)(i % TW_FLEET_LABEL);

		check_by(s, &filters[i], is_lost(&filters[i], by) ? TW_FLEET_ALL : by,
		        1U << TW_ROLLUP_SELF | 1U << TW_ROLLUP_CALL);
	}
}

static void test_cells(void **state)
{
	struct session *s = session_of(state);

	check_all(s);
	for (size_t i = 0; i < FILTERS; i++) {
		const struct tw_fleet_query query = ask_of(s, &filters[i], 0);
		uint64_t n[ENGINES];

		for (int e = 0; e < ENGINES; e++)
			assert_int_equal(
			        s->of[e]->engine->count(s->of[e], &query, &n[e], NULL), TW_OK);
		assert_int_equal(n[0], n[1]);
	}
}

/* By the values of a label, with a rest. */
static void test_labels(void **state)
{
	struct session *s = session_of(state);
	const struct tw_rollup_filter f = {"", "8.3.1", "", "", "", "", "flavour", 0, 0};
	struct tw_fleet_query query = ask_of(s, &f, TW_DIM_LABEL);
	struct tw_fleet_group *groups[ENGINES];
	size_t n[ENGINES];

	tw_arena_reset(s->arena);
	query.label_key = "flavour";
	query.metrics = 1U << TW_ROLLUP_SELF | 1U << TW_ROLLUP_WAITING;
	for (int e = 0; e < ENGINES; e++) {
		const struct read r = read_cells(s, e, &query);
		struct tw_fleet_values values;

		assert_int_equal(
		        tw_fleet_label_values(r.cells, r.n, 2, s->arena, &values, NULL), TW_OK);
		assert_int_equal(values.values, 4);
		assert_int_equal(values.rest, 2);
		assert_int_equal(tw_fleet_groups(r.cells, r.n, TW_FLEET_LABEL, false, s->arena,
		                         &groups[e], &n[e], NULL),
		        TW_OK);
	}
	assert_int_equal(n[0], 4);
	assert_int_equal(n[0], n[1]);
	for (size_t i = 0; i < n[0]; i++) {
		const struct tw_fleet_group pair[ENGINES] = {groups[0][i], groups[1][i]};

		assert_string_equal(pair[0].key, pair[1].key);
		assert_int_equal(pair[0].traces, pair[1].traces);
		check_methods(s, pair, query.metrics);
	}
}

/* A query that the catalogue cannot answer, against the truth: a label with a class and a system.
 */
static void test_any_label(void **state)
{
	struct session *s = session_of(state);
	const struct tw_rollup_filter f = {"", "", "", "", "low", "14", "", 0, 0};
	static const char *const labels[] = {"device=phone", "flavour=it's"};
	struct tw_fleet_query query = ask_of(s, &f, 0);
	static struct sim_trace t;
	uint64_t n, truth = 0;

	query.labels = labels;
	query.n_labels = 2;
	for (uint64_t i = 1; i < s->traces; i += 5) {
		sim_make(s->project, i, DAY0, &t);
		truth += strcmp(t.dims.device_class, "low") == 0 && strcmp(t.dims.os, "14") == 0;
	}
	assert_int_equal(s->of[1]->engine->count(s->of[1], &query, &n, NULL), TW_OK);
	assert_int_equal(n, truth);
	assert_true(n > 0);
}

/* --- methods by thread --- */

/* The catalogue stores none: expects the sums over the traces, computed as it does. */
static struct tw_rollup sum_of(
        struct session *s, const struct tw_rollup_filter *f, int kind, unsigned metrics)
{
	struct tw_rollup r = {.arena = s->arena, .metrics = metrics};
	static struct sim_trace t;

	for (uint64_t i = 0; i < s->traces; i++) {
		struct tw_rollup_fact facts[SIM_METHODS];
		struct tw_buf out;
		const char *bytes;

		sim_make(s->project, i, DAY0, &t);
		if ((f->version_name[0] && strcmp(f->version_name, t.dims.version_name) != 0) ||
		        (f->scenario[0] && strcmp(f->scenario, t.dims.scenario) != 0))
			continue;
		tw_buf_init(&out, 1 << 20);
		tw_rollup_write_facts(facts, sim_kind(&t, kind, facts), &out);
		bytes = tw_arena_str(s->arena, (struct tw_str){(const char *)out.data, out.len});
		assert_int_equal(tw_rollup_add_facts(&r, tw_arena_str(s->arena, tw_str_of(t.id)),
		                         (const uint8_t *)bytes, out.len, NULL),
		        TW_OK);
		tw_buf_done(&out);
	}
	if (r.n)
		qsort(r.methods, r.n, sizeof *r.methods, by_id);
	return r;
}

static void check_threads(struct session *s)
{
	static const struct tw_rollup_filter of[] = {
	        {"", "", "", "", "", "", "", 0, 0}, {"", "8.3.1", "", "page", "", "", "", 0, 0}};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		for (int kind = 0; kind < SIM_KINDS; kind++) {
			struct tw_fleet_query query = ask_of(s, &of[i], 0);
			struct tw_fleet_group *group;
			struct tw_rollup a, b;
			struct read r;
			size_t n = 0;

			tw_arena_reset(s->arena);
			query.metrics = TW_ROLLUP_ALL;
			query.thread = sim_kinds[kind];
			a = sum_of(s, &of[i], kind, query.metrics);
			r = read_cells(s, 1, &query);
			assert_int_equal(tw_fleet_groups(r.cells, r.n, TW_FLEET_ALL, false,
			                         s->arena, &group, &n, NULL),
			        TW_OK);
			b = collect(s, group, query.metrics);
			assert_true(a.n > 0);
			check_rollups(&a, &b);
		}
}

static void test_threads(void **state)
{
	struct session *s = session_of(state);
	const struct tw_rollup_filter all = tw_rollup_days(0, 0);
	struct tw_fleet_query query = ask_of(s, &all, 0);
	struct read r;

	check_threads(s);
	query.metrics = 1U << TW_ROLLUP_SELF;
	query.thread = "it's none";
	r = read_cells(s, 1, &query);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.cells[0].traces, s->traces);
	assert_int_equal(r.cells[0].parts[TW_ROLLUP_SELF].len, 0);
}

/* --- trees --- */

static struct tw_rollup_tree read_tree(
        struct session *s, int engine, const struct tw_fleet_query *query)
{
	const struct read r = read_cells(s, engine, query);
	const struct tw_rollup_cell **list = tw_arena_alloc(s->arena, r.n + 1, sizeof(*list));
	struct tw_rollup_tree t = {.arena = s->arena};
	struct tw_err err;

	for (size_t i = 0; i < r.n; i++)
		list[i] = &r.cells[i];
	if (s->of[engine]->engine->trees(s->of[engine], query,
	            &(struct tw_fleet_cells_of){list, r.n, r.n}, 1, &t, &err) != TW_OK)
		fail_msg("%s", err.msg);
	return t;
}

/* Each node of the first is in the second, and equal; *ret_n: nodes with a sum. */
static void check_nodes(const struct tw_rollup_tree *a, struct tw_rollup_tree *b)
{
	uint32_t *map = calloc(a->n + 1, sizeof *map);
	const uint32_t n = b->n;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct tw_rollup_tree_node *node = &a->nodes[i];
		const bool is_thread = node->parent == TW_ROLLUP_NO_NODE;
		struct tw_rollup_tree_sum x, y;

		map[i] = tw_rollup_tree_child(
		        b, is_thread ? TW_ROLLUP_NO_NODE : map[node->parent], node->method);
		assert_true(map[i] < n);
		x = tw_rollup_tree_all(a, i);
		y = tw_rollup_tree_all(b, map[i]);
		assert_int_equal(x.traces, y.traces);
		assert_int_equal(x.calls, y.calls);
		assert_int_equal(x.total_ns, y.total_ns);
		assert_int_equal(x.self_ns, y.self_ns);
		assert_int_equal(x.cpu_ns, y.cpu_ns);
		assert_int_equal(x.cpu_self_ns, y.cpu_self_ns);
		assert_true(fabs(x.square - y.square) <= 1e-9 * x.square);
	}
	free(map);
}

static void test_trees(void **state)
{
	struct session *s = session_of(state);
	/* of few traces, so that the catalogue dropped nothing */
	const struct tw_rollup_filter few = {"", "8.3.1", "", "page", "low", "13", "", DAY0, DAY0};
	const struct tw_fleet_query query = ask_of(s, &few, TW_DIM_SCENARIO | TW_DIM_CLASS);
	struct tw_rollup_tree a, b;

	tw_arena_reset(s->arena);
	a = read_tree(s, 0, &query);
	b = read_tree(s, 1, &query);
	assert_int_equal(a.traces, b.traces);
	assert_int_equal(a.omitted_level, b.omitted_level);
	assert_int_equal(a.n, b.n);
	assert_int_equal(a.n_threads, b.n_threads);
	check_nodes(&a, &b);
	for (size_t i = 0; i < FILTERS; i++) { /* of all, threads: their sums are never dropped */
		const struct tw_fleet_query all = ask_of(s, &filters[i], 0);

		tw_arena_reset(s->arena);
		a = read_tree(s, 0, &all);
		b = read_tree(s, 1, &all);
		assert_int_equal(a.traces, b.traces);
		for (uint32_t k = 0; k < a.n; k++)
			if (a.nodes[k].parent == TW_ROLLUP_NO_NODE) {
				const uint32_t at = tw_rollup_tree_child(
				        &b, TW_ROLLUP_NO_NODE, a.nodes[k].method);

				assert_int_equal(tw_rollup_tree_all(&a, k).total_ns,
				        tw_rollup_tree_all(&b, at).total_ns);
			}
	}
}

/* --- searches --- */

static struct tw_search search(struct session *s, int engine, const struct tw_fleet_query *query,
        const uint64_t *numbers, size_t n, const char *thread)
{
	const struct read r = read_cells(s, engine, query);
	struct tw_search k = {
	        .numbers = numbers, .n_methods = n, .thread = thread, .over_ns = 3000};
	struct tw_err err;

	k.found = tw_arena_alloc(s->arena, 2 * (size_t)TW_SEARCH_HITS_MAX, sizeof *k.found);
	k.results_arena = s->arena;
	if (s->of[engine]->engine->search(s->of[engine], query, r.cells, r.n, &k, &err) != TW_OK)
		fail_msg("%s", err.msg);
	return k;
}

static void test_searches(void **state)
{
	struct session *s = session_of(state);
	static const char *const threads[] = {NULL, "main", "pool-1", "pool'"};
	uint64_t numbers[3];

	for (unsigned v = 0; v < 3; v++)
		numbers[v] = sim_method(s->project, 11, v);
	for (int i = 0; i < 3; i++)
		for (int k = i + 1; k < 3; k++)
			if (numbers[k] < numbers[i]) {
				const uint64_t x = numbers[i];

				numbers[i] = numbers[k];
				numbers[k] = x;
			}
	for (size_t i = 0; i < FILTERS; i++)
		for (int t = 0; t < 4; t++) {
			const struct tw_fleet_query query = ask_of(s, &filters[i], 0);
			struct tw_search k[ENGINES];

			tw_arena_reset(s->arena);
			for (int e = 0; e < ENGINES; e++)
				k[e] = search(s, e, &query, numbers, 3, threads[t]);
			assert_int_equal(k[0].matches, k[1].matches);
			assert_int_equal(k[0].n, k[1].n);
			for (size_t x = 0; x < k[0].n; x++) {
				const struct tw_search_found *a = &k[0].found[x],
				                             *b = &k[1].found[x];

				assert_string_equal(a->trace_id, b->trace_id);
				assert_string_equal(a->thread, b->thread);
				assert_int_equal(a->which, b->which);
				assert_int_equal(a->max_ns, b->max_ns);
				assert_int_equal(a->is_main, b->is_main);
				assert_string_equal(a->dims->version_name, b->dims->version_name);
				assert_int_equal(a->dims->day, b->dims->day);
			}
		}
}

/* --- findings --- */

struct sums {
	uint64_t traces, found, ns, callers;
};

static enum tw_status take(void *arg, const char *trace_id, struct tw_str data, struct tw_err *err)
{
	static struct tw_found_rule rules[TW_DETECT_RULES_MAX];
	struct tw_found f = {.rules = rules};
	struct sums *to = arg;

	assert_int_equal(strlen(trace_id), TW_ROLLUP_ID);
	assert_int_equal(tw_found_read((const uint8_t *)data.ptr, data.len, &f, err), TW_OK);
	to->traces++;
	for (uint32_t i = 0; i < f.n; i++) {
		to->found += f.rules[i].found;
		to->ns += (uint64_t)f.rules[i].ns;
		for (uint32_t k = 0; k < f.rules[i].n; k++)
			to->callers += f.rules[i].callers[k].method % 1000;
	}
	return TW_OK;
}

static void put_found(struct session *s, uint64_t i, int64_t number, struct tw_found *found)
{
	static struct sim_trace t;
	struct tw_found_trace of = {.cells = &t.dims, .n_cells = 1, .by = {"", ""}};
	struct tw_buf out;

	sim_make(s->project, i, DAY0, &t);
	of.of = (struct tw_named_trace){s->project, t.id, t.dims.build_id, ""};
	tw_buf_init(&out, 1 << 20);
	tw_found_write(found, &out);
	of.data = (struct tw_str){(const char *)out.data, out.len};
	for (int e = 0; e < ENGINES; e++) {
		struct tw_err err;

		if (s->of[e]->engine->put_found(s->of[e], &of, 1, number, &err) != TW_OK)
			fail_msg("%s", err.msg);
	}
	tw_buf_done(&out);
}

static void check_found(struct session *s, uint64_t traces)
{
	for (size_t i = 0; i < 4; i++) {
		const struct tw_fleet_query query = ask_of(s, &filters[i], TW_DIM_VERSION);
		struct sums sums[ENGINES] = {{0, 0, 0, 0}};

		tw_arena_reset(s->arena);
		for (int e = 0; e < ENGINES; e++) {
			const struct read r = read_cells(s, e, &query);
			const struct tw_rollup_cell **list =
			        tw_arena_alloc(s->arena, r.n + 1, sizeof(*list));

			for (size_t k = 0; k < r.n; k++)
				list[k] = &r.cells[k];
			assert_int_equal(s->of[e]->engine->found(s->of[e], &query,
			                         &(struct tw_fleet_cells_of){list, r.n, r.n},
			                         &(struct tw_fleet_findings){take, &sums[e]}, NULL),
			        TW_OK);
		}
		assert_memory_equal(&sums[0], &sums[1], sizeof sums[0]);
		assert_true(i > 0 || sums[0].traces == traces);
	}
}

static void test_findings(void **state)
{
	struct session *s = session_of(state);
	struct tw_found_rule rules[2] = {{.id = {"json", 4},
	                                         .found = 3,
	                                         .ns = 5000,
	                                         .max_ns = 4000,
	                                         .n = 1,
	                                         .callers = {{77, 3, 5000, 4000}}},
	        {.id = {"it's", 4}, .found = 1, .ns = 100, .main_ns = 100, .max_ns = 100}};

	for (uint64_t i = 0; i < 60; i++) {
		struct tw_found f = {.n = (uint32_t)(i % 3), .rules = rules};

		rules[0].ns = (int64_t)(1000 * i);
		put_found(s, i, 1, &f);
	}
	check_found(s, 60);
	for (uint64_t i = 0; i < 30; i++) { /* by other rules */
		struct tw_found f = {.n = 1, .rules = rules};

		put_found(s, i, 2, &f);
	}
	check_found(s, 60);
}

/* --- regressions --- */

static void test_regressions(void **state)
{
	struct session *s = session_of(state);
	const struct tw_regress_task task = {s->project, TODAY, {NULL, NULL}, 0};
	struct tw_regress_detected sums[ENGINES];

	assert_int_equal(tw_catalogue_setting_set(s->c, s->project, TW_SETTING_REGRESSIONS,
	                         "{\"min_share\": 0}", NULL),
	        TW_OK);
	for (int e = 0; e < ENGINES; e++)
		assert_int_equal(tw_regress_detect(s->of[e], &task, &sums[e], NULL), TW_OK);
	assert_int_equal(sums[0].series, sums[1].series);
	assert_int_equal(sums[0].found, sums[1].found);
	assert_int_equal(sums[1].fresh, 0);
}

/* --- written twice --- */

static int64_t number_of(struct session *s, const char *sql)
{
	const struct tw_clickhouse_query q = {.sql = tw_str_of(sql), .ms = 60000};
	struct tw_clickhouse_reader r;
	struct tw_err err;
	int64_t n;

	if (tw_clickhouse_read(s->at, &q, 1 << 16, &r, &err) != TW_OK)
		fail_msg("%s", err.msg);
	n = (int64_t)tw_clickhouse_u64(&r);
	assert_int_equal(tw_clickhouse_end(&r, TW_OK, NULL), TW_OK);
	return n;
}

static void wait_for_mutations(struct session *s)
{
	while (number_of(s, "SELECT count() FROM system.mutations WHERE is_done=0 AND"
	                    " database=currentDatabase()") > 0)
		;
}

/* Rows of earlier and of unfinished attempts are deleted; an attempt that may still be written
 * keeps its rows. */
static void test_purge(struct session *s)
{
	static const char replaced[] =
	        "SELECT count() FROM method_times WHERE attempt NOT IN (SELECT max(attempt) FROM"
	        " traces GROUP BY trace)";
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s->of[1];
	const int64_t before = number_of(s, replaced);

	assert_true(before > 0);
	assert_int_equal(s->of[1]->engine->purge(s->of[1], NULL), TW_OK);
	wait_for_mutations(s);
	assert_int_equal(number_of(s, replaced), before);
	assert_int_equal(
	        tw_clickhouse_purge(f, tw_clickhouse_attempt_before(-3600000), NULL), TW_OK);
	wait_for_mutations(s);
	assert_int_equal(number_of(s, replaced), 0);
	assert_int_equal(number_of(s, "SELECT count() FROM traces") -
	                         number_of(s, "SELECT uniqExact(trace) FROM traces"),
	        0);
}

/* As after a kill between an insert and the catalogue's mark, and before the last insert. */
static void test_twice(void **state)
{
	struct session *s = session_of(state);

	assert_true(sim_put(s->of[1], s->project, 0, s->traces / 3, DAY0));
	run_sql(s,
	        "INSERT INTO method_times SELECT project,day,app,version_name,build_id,scenario,"
	        "device_class,os,trace,attempt+1,method,calls*7,total_ns*7,self_ns*7,sum_ns,cpu_ns,"
	        "threads,thread_calls,thread_total_ns,thread_self_ns,thread_sum_ns,thread_cpu_ns"
	        " FROM method_times WHERE method%3=0");
	run_sql(s, "INSERT INTO call_trees SELECT project,day,app,version_name,build_id,scenario,"
	           "device_class,os,trace,attempt+1,path,parent,depth,method,thread,calls*7,total_"
	           "ns*7,"
	           "self_ns,cpu_ns,cpu_self_ns FROM call_trees WHERE depth<2");
	run_sql(s, "OPTIMIZE TABLE method_times FINAL"); /* merges replace nothing */
	run_sql(s, "OPTIMIZE TABLE call_trees FINAL");
	check_all(s);
	test_trees(state);
	test_searches(state);
	test_purge(s);
	check_all(s);
	check_threads(s);
	test_trees(state);
	test_searches(state);
}

/* --- texts and results --- */

/* A literal ends where it should, whatever the text. */
static void test_quotes(void **state)
{
	char text[256];
	struct tw_buf out;

	(void)state;
	for (int i = 1; i < 256; i++)
		text[i - 1] = (char)i;
	text[255] = '\0';
	tw_buf_init(&out, 4096);
	tw_clickhouse_quote(&out, text);
	assert_int_equal(out.data[0], '\'');
	assert_int_equal(out.data[out.len - 1], '\'');
	for (size_t i = 1; i + 1 < out.len; i++) {
		assert_true(out.data[i] >= ' ' && out.data[i] != '\'' && out.data[i] != 0x7f);
		if (out.data[i] == '\\')
			assert_int_equal(out.data[i + 1], 'x');
	}
	tw_buf_done(&out);
}

/* A result that is truncated or consists of any bytes is detected; nothing beyond it is read. */
static void test_damaged(void **state)
{
	uint64_t random = 88172645463325252U;

	(void)state;
	for (int run = 0; run < 20000; run++) {
		uint8_t bytes[24];
		struct tw_clickhouse_reader r;
		size_t n = (size_t)run % sizeof bytes;

		for (size_t i = 0; i < n; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			bytes[sizeof bytes - n + i] = (uint8_t)random;
		}
		r = (struct tw_clickhouse_reader){
		        .p = bytes + sizeof bytes - n, .end = bytes + sizeof bytes};
		for (int reads = 0; reads < 30 && tw_clickhouse_more(&r); reads++) {
			const struct tw_str s = tw_clickhouse_text(&r);

			assert_true(s.len <= n);
			if (reads % 3 == 0)
				(void)tw_clickhouse_u64(&r);
			assert_true(r.p <= r.end);
		}
		for (int i = 0; i < 3; i++)
			(void)tw_clickhouse_fixed(&r, 25);
		assert_true(r.damaged);
		assert_int_equal(tw_clickhouse_u64(&r), 0);
	}
}

static void test_addresses(void **state)
{
	static const char *const good[] = {
	        "clickhouse://h/d", "clickhouse://h:1,g,[::1]:2/d_1", "clickhouse+https://h/d"};
	static const char *const bad[] = {"", "clickhouse://", "clickhouse://h", "clickhouse:///d",
	        "clickhouse://h/d;x", "clickhouse://h/a/b", "http://h/d", "clickhouse://u@h/d",
	        "clickhouse://h h/d", "clickhouse://h/d?x=1"};
	struct tw_clickhouse *c = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(tw_clickhouse_new(
		                         &(struct tw_clickhouse_at){good[i], "", "", ""}, &c, NULL),
		        TW_OK);
		c = tw_clickhouse_free(c);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(
		        tw_clickhouse_new(&(struct tw_clickhouse_at){bad[i], "", "", ""}, &c, NULL),
		        TW_BAD_REQUEST);
}

/* --- tables of a later version --- */

static void open_again(struct session *s)
{
	char url[256];
	struct tw_err err;

	s->of[1] = tw_fleet_store_free(s->of[1]);
	(void)snprintf(url, sizeof url, "clickhouse://%s/%s", getenv("TRACEWELL_TEST_CLICKHOUSE"),
	        tw_clickhouse_database(s->at));
	if (tw_fleet_clickhouse_new(
	            s->c, &(struct tw_clickhouse_at){url, "", "", ""}, &s->of[1], &err) != TW_OK)
		fail_msg("%s", err.msg);
}

static void test_later_tables(void **state)
{
	struct session *s = session_of(state);
	const struct tw_fleet_query query = ask_of(s, &filters[0], 0);
	struct tw_err err = {.msg = ""};
	uint64_t n = 0;

	run_sql(s, "INSERT INTO tracewell VALUES (1000, 1)");
	open_again(s);
	assert_int_equal(s->of[1]->engine->count(s->of[1], &query, &n, &err), TW_CONFLICT);
	assert_non_null(strstr(err.msg, "later tracewell (version 1000"));
	run_sql(s, "DROP TABLE tracewell");
	open_again(s);
	assert_int_equal(s->of[1]->engine->count(s->of[1], &query, &n, NULL), TW_OK);
	assert_true(n > 0);
}

/* --- decoded again, and deleted --- */

static uint64_t count_all(struct session *s, int engine)
{
	const struct tw_fleet_query query = ask_of(s, &filters[0], 0);
	uint64_t n = 0;

	assert_int_equal(s->of[engine]->engine->count(s->of[engine], &query, &n, NULL), TW_OK);
	return n;
}

static int64_t counted(struct session *s, const char *trace_id)
{
	int64_t n = -1;

	assert_int_equal(tw_cat_get_int(s->db, &n, NULL,
	                         "SELECT rollup_state FROM trace WHERE project_id=? AND trace_id=?",
	                         "tt", s->project, trace_id),
	        TW_OK);
	return n;
}

/* Where rows of a trace can be replaced it is counted again, otherwise it stays counted. */
static void test_decoded_again(void **state)
{
	struct session *s = session_of(state);
	static struct sim_trace t;

	sim_make(s->project, 5, DAY0, &t);
	assert_int_equal(counted(s, t.id), 1);
	assert_int_equal(tw_catalogue_trace_requeue(s->c, s->project, t.id, NULL), TW_OK);
	assert_int_equal(counted(s, t.id), 1);
	assert_int_equal(tw_catalogue_engine_set(s->c, "clickhouse", NULL), TW_OK);
	assert_int_equal(tw_catalogue_engine_set(s->c, "clickhouse", NULL), TW_OK);
	assert_int_equal(tw_catalogue_trace_requeue(s->c, s->project, t.id, NULL), TW_OK);
	assert_int_equal(counted(s, t.id), 0);
	assert_int_equal(tw_catalogue_engine_set(s->c, "", NULL), TW_OK);
}

/* A trace noted as deleted is hidden, also if the note was not marked; then its rows are deleted.
 */
static void test_deleted(void **state)
{
	enum { GONE = 7 };
	struct session *s = session_of(state);
	const uint64_t before = count_all(s, 1);
	struct tw_blob_list unused;
	struct tw_erased *of;
	size_t n;

	tw_arena_reset(s->arena);
	assert_int_equal(tw_catalogue_engine_set(s->c, "clickhouse", NULL), TW_OK);
	for (uint64_t i = 0; i < GONE + 1; i++) {
		static struct sim_trace t;

		sim_make(s->project, 10 + i, DAY0, &t);
		if (i < GONE)
			assert_int_equal(tw_catalogue_trace_erase(
			                         s->c, s->project, t.id, s->arena, &unused, NULL),
			        TW_OK);
		else /* as retention does: its sums remain */
			assert_int_equal(tw_catalogue_trace_delete(
			                         s->c, s->project, t.id, s->arena, &unused, NULL),
			        TW_OK);
	}
	for (int k = 0; k < 2; k++) {
		assert_int_equal(
		        tw_catalogue_erased(s->c, false, 100, s->arena, &of, &n, NULL), TW_OK);
		assert_int_equal(n, GONE);
		assert_int_equal(s->of[1]->engine->hide(s->of[1], of, n, NULL), TW_OK);
		assert_int_equal(count_all(s, 1), before - GONE);
	}
	assert_int_equal(tw_catalogue_erased_done(s->c, false, of, n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_erased(s->c, false, 100, s->arena, &of, &n, NULL), TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(tw_catalogue_erased(s->c, true, 100, s->arena, &of, &n, NULL), TW_OK);
	assert_int_equal(n, GONE);
	assert_true(number_of(s, "SELECT count() FROM call_trees WHERE attempt NOT IN (SELECT"
	                         " max(attempt) FROM traces GROUP BY trace)") > 0);
	assert_int_equal(s->of[1]->engine->erase(s->of[1], of, n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_erased_done(s->c, true, of, n, NULL), TW_OK);
	wait_for_mutations(s);
	assert_int_equal(number_of(s, "SELECT count() FROM traces WHERE trace IN (SELECT trace FROM"
	                              " traces WHERE deleted=1) AND deleted=0"),
	        0);
	assert_int_equal(number_of(s, "SELECT count() FROM method_times WHERE trace IN (SELECT"
	                              " trace FROM traces WHERE deleted=1)"),
	        0);
	assert_int_equal(count_all(s, 1), before - GONE);
	assert_int_equal(tw_catalogue_engine_set(s->c, "", NULL), TW_OK);
}

/* --- copies of ANRs --- */

static void put_anr(struct session *s, uint64_t i, bool anr, size_t n_locks)
{
	static struct sim_trace t;
	struct tw_trace_row row;
	struct tw_lock_wait locks[2] = {{.is_main = true,
	                                        .raw_monitor = "a",
	                                        .raw_owner = "b",
	                                        .source = "",
	                                        .monitor = "it's.Cart",
	                                        .owner = "Dao.insert",
	                                        .holder = "db",
	                                        .waits = 3,
	                                        .timed = 2,
	                                        .total_ns = 50,
	                                        .max_ns = 40},
	        {.raw_monitor = "",
	                .raw_owner = "",
	                .source = "",
	                .monitor = "",
	                .owner = "",
	                .holder = ""}};
	struct tw_anr_entry e = {.row = &row,
	        .device_class = "low",
	        .user = "u",
	        .anr = anr,
	        .brief = {"{}", 2},
	        .locks = locks,
	        .n_locks = n_locks};

	sim_make(s->project, i, DAY0, &t);
	if (tw_catalogue_trace_get(s->c, s->project, t.id, s->arena, &row, NULL) != TW_OK)
		fail_msg("%s", t.id);
	assert_int_equal(tw_catalogue_anr_put(s->c, &e, 1, NULL), TW_OK);
}

static void key_all(struct session *s, const char *title)
{
	struct tw_anr_stale *stale;
	size_t n;

	assert_int_equal(
	        tw_catalogue_anr_stale(s->c, s->project, 1, 100, s->arena, &stale, &n, NULL),
	        TW_OK);
	for (size_t i = 0; i < n; i++) {
		const struct tw_anr_cause cause = {
		        "0123456789abcdef", "0123456789abcdef", "lock", "", title, "waits", "{}"};

		assert_int_equal(tw_catalogue_anr_keyed(
		                         s->c, &stale[i], 1, stale[i].anr ? &cause : NULL, NULL),
		        TW_OK);
	}
}

static size_t copy_all(struct session *s)
{
	struct tw_anr_copy *of;
	size_t n;

	assert_int_equal(tw_catalogue_anr_uncopied(s->c, 100, s->arena, &of, &n, NULL), TW_OK);
	if (n)
		assert_int_equal(s->of[1]->engine->put_anrs(s->of[1], of, n, NULL), TW_OK);
	return n;
}

#define LAST_ANRS "attempt IN (SELECT max(attempt) FROM anrs GROUP BY trace)"
static void test_anrs(void **state)
{
	struct session *s = session_of(state);

	tw_arena_reset(s->arena);
	for (uint64_t i = 30; i < 34; i++)
		put_anr(s, i, i != 33, 2);
	assert_int_equal(copy_all(s), 0); /* not named yet */
	key_all(s, "before");
	assert_int_equal(copy_all(s), 4);
	assert_int_equal(copy_all(s), 0);
	assert_int_equal(
	        number_of(s, "SELECT count() FROM anrs WHERE kind='lock' AND title='before'"
	                     " AND device_class='low' AND user<>0 AND " LAST_ANRS),
	        3);
	assert_int_equal(number_of(s, "SELECT sum(total_ns) FROM lock_waits WHERE main=1 AND"
	                              " monitor='it\\'s.Cart' AND " LAST_ANRS),
	        200);
	assert_int_equal(tw_catalogue_anr_reset(s->c, s->project, NULL), TW_OK);
	key_all(s, "after");
	assert_int_equal(copy_all(s), 4);
	assert_int_equal(
	        number_of(s, "SELECT count() FROM anrs WHERE title='after' AND " LAST_ANRS), 3);
	assert_int_equal(
	        number_of(s, "SELECT count() FROM anrs WHERE title='before' AND " LAST_ANRS), 0);
	assert_int_equal(tw_catalogue_anr_copy_again(s->c, s->project, NULL), TW_OK);
	assert_int_equal(copy_all(s), 4);
	assert_int_equal(
	        number_of(s, "SELECT toUInt64(sum(waits)) FROM lock_waits WHERE " LAST_ANRS), 12);
	/* decoded again, without them */
	assert_int_equal(tw_catalogue_engine_set(s->c, "clickhouse", NULL), TW_OK);
	put_anr(s, 30, false, 0);
	put_anr(s, 31, false, 1);
	put_anr(s, 40, false, 0); /* it never had any */
	key_all(s, "after");
	assert_int_equal(copy_all(s), 2);
	assert_int_equal(number_of(s, "SELECT count() FROM anrs WHERE kind<>'' AND " LAST_ANRS), 1);
	assert_int_equal(
	        number_of(s, "SELECT toUInt64(sum(waits)) FROM lock_waits WHERE " LAST_ANRS), 9);
	assert_int_equal(number_of(s, "SELECT uniqExact(trace) FROM anrs"), 4);
	assert_int_equal(tw_catalogue_engine_set(s->c, "", NULL), TW_OK);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_cells), cmocka_unit_test(test_labels),
        cmocka_unit_test(test_any_label), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_trees), cmocka_unit_test(test_searches),
        cmocka_unit_test(test_findings), cmocka_unit_test(test_regressions),
        cmocka_unit_test(test_twice), cmocka_unit_test(test_later_tables),
        cmocka_unit_test(test_anrs), cmocka_unit_test(test_decoded_again),
        cmocka_unit_test(test_deleted)};

UNIT_TESTS_WITH("fleet_engines", tests, setup, teardown)
