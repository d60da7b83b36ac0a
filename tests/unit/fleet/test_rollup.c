/* Rollups in the catalogue: a simulated fleet's truth comes back within the stated error, nothing
 * counts twice, adding up changes nothing, and counting again gives the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/fleet/fleet.h"
#include "server/fleet/fleet_tree.h"
#include "server/fleet/store/fleet_store.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { TRACES = 400, DAY0 = 20000 };

static struct sim_trace fleet[TRACES];

struct session {
	char dir[64], project[TW_ID_BYTES];
	struct tw_catalogue *c;
	struct tw_db *db; /* next to it */
	struct tw_arena *arena;
	struct tw_rollup_worker *folder;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct session s;
	struct tw_derive_parts parts = {0};
	bool is_new;

	/* hundreds of small transactions: in memory where that is to be had */
	s = (struct session){.dir = "/dev/shm/tw-rollup-XXXXXX"};
	if (!mkdtemp(s.dir)) {
		(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-rollup-XXXXXX");
		assert_non_null(mkdtemp(s.dir));
	}
	s.c = catalogue_in(s.dir);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.project, &is_new, NULL), TW_OK);
	s.db = catalogue_connect(s.dir);
	s.arena = tw_arena_new(512 << 20);
	parts.catalogue = s.c; /* adding up needs no files */
	s.folder = tw_rollup_worker_new(&parts);
	assert_non_null(s.folder);
	for (uint64_t i = 0; i < TRACES; i++)
		sim_make(s.project, i, DAY0, &fleet[i]);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	(void)tw_rollup_worker_free(s->folder);
	tw_db_close(s->db);
	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static int64_t number(struct session *s, const char *sql)
{
	return catalogue_number(s->db, sql);
}

#define HEX(of) TW_EITHER("hex(" of ")", "encode(" of ",'hex')")

/* All contents of rollups, without the number of merges of cells. */
static char *dump(struct session *s)
{
	static const char sql[] = "SELECT " TW_EITHER("group_concat(line, char(10))",
	        "string_agg(line, chr(10))") " FROM (SELECT 'c'||cell_id||day||version_name||"
	                                     "scenario||device_class||os||traces||':'||pending|"
	                                     "|" HEX("head") " AS line FROM "
	                                                     "rollup_cell UNION ALL SELECT "
	                                                     "'p'||cell_id||':'||metric||" HEX(
	                                                             "data") " FROM rollup_part"
	                                                                     " UNION ALL SELECT "
	                                                                     "'d'||cell_id||trace_"
	                                                                     "id FROM rollup_delta "
	                                                                     "UNION ALL SELECT"
	                                                                     " 't'||cell_id||':'||"
	                                                                     "pending||" HEX("data") "||" HEX(
	                                                                             "levels") " FR"
	                                                                                       "OM "
	                                                                                       "rol"
	                                                                                       "lup"
	                                                                                       "_tr"
	                                                                                       "ee "
	                                                                                       "UNI"
	                                                                                       "ON "
	                                                                                       "ALL"
	                                                                                       " "
	                                                                                       "SEL"
	                                                                                       "ECT"
	                                                                                       " '"
	                                                                                       "r'|"
	                                                                                       "|ce"
	                                                                                       "ll_"
	                                                                                       "id|"
	                                                                                       "|" HEX("data") " FROM rollup_tree_reduced UNION ALL SELECT"
	                                                                                                       " 'e'||cell_id||trace_id||" HEX(
	                                                                                                               "data") " FROM rollup_tree_delta UNION ALL SELECT"
	                                                                                                                       " 'm'||method_id||name FROM rollup_method ORDER BY 1) l";
	return catalogue_text(s->db, sql);
}

static void add_up(struct session *s, uint32_t deltas)
{
	bool more = true;

	while (more)
		assert_int_equal(tw_rollup_worker_add(s->folder, deltas, 0, &more, NULL), TW_OK);
	for (more = true; more;)
		assert_int_equal(tw_rollup_trees_add(s->c, deltas, 0, &more, NULL), TW_OK);
}

static const struct tw_rollup_filter everything = {
        "", "", "", "", "", "", "", DAY0, DAY0 + SIM_DAYS};

static int by_value(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

	return a < b ? -1 : a > b;
}

static void near_truth(int64_t reported, int64_t truth)
{
	double off = ((double)reported - (double)truth) / (double)(truth ? truth : 1);

	if (off > TW_SKETCH_ERROR || off < -TW_SKETCH_ERROR)
		fail_msg("got %lld instead of %lld", (long long)reported, (long long)truth);
}

/* The values of a method's metric in the traces of a version (SIM_VERSIONS: any). */
static size_t truth_of(struct session *s, unsigned method, unsigned version,
        enum tw_rollup_metric metric, int64_t values[TRACES])
{
	size_t n = 0;

	for (uint64_t i = 0; i < TRACES; i++) {
		const struct sim_trace *t = &fleet[i];
		unsigned v = (unsigned)(t->dims.version_name[4] - '0');
		uint64_t id = sim_method(s->project, method, v);

		for (size_t k = 0; (version == SIM_VERSIONS || v == version) && k < t->n_facts; k++)
			if (t->facts[k].method == id && tw_rollup_value(&t->facts[k], metric) >= 0)
				values[n++] = tw_rollup_value(&t->facts[k], metric);
	}
	qsort(values, n, sizeof *values, by_value);
	return n;
}

static struct tw_fleet_stat asked(struct session *s, const struct tw_rollup_filter *f,
        unsigned method, enum tw_rollup_metric metric)
{
	static struct tw_sketch sketch;
	struct tw_rollup r = {.arena = s->arena, .metrics = 1U << metric};
	struct tw_rollup_naming *names;
	struct tw_fleet_method *list;
	struct tw_rollup_cell *cells;
	struct tw_fleet_stat stat = {0};
	uint64_t ids[SIM_METHODS * SIM_VERSIONS];
	char name[32];
	size_t n, n_list;

	tw_arena_reset(s->arena);
	(void)snprintf(name, sizeof name, "com.app.C%u.m%u", method / 10, method);
	assert_int_equal(tw_catalogue_rollup_read(
	                         s->c, s->project, f, 1U << metric, s->arena, &cells, &n, NULL),
	        TW_OK);
	for (size_t i = 0; i < n; i++) {
		const struct tw_rollup_cell *one = &cells[i];

		assert_int_equal(tw_fleet_collect(&one, 1, &r, NULL), TW_OK);
	}
	for (uint32_t i = 0; i < r.n; i++)
		ids[i] = r.methods[i].id;
	assert_int_equal(
	        tw_catalogue_rollup_names(s->c, s->project, ids, r.n, s->arena, &names, NULL),
	        TW_OK);
	assert_int_equal(tw_fleet_methods(&r, names, s->arena, &list, &n_list, NULL), TW_OK);
	assert_true(n_list <= SIM_METHODS); /* one of all versions */
	for (size_t i = 0; i < n_list; i++)
		if (strcmp(list[i].naming.name, name) == 0)
			assert_int_equal(
			        tw_fleet_stat(list[i].of, list[i].n, metric, &sketch, &stat, NULL),
			        TW_OK);
	return stat;
}

static void compare(
        struct session *s, unsigned method, unsigned version, enum tw_rollup_metric metric)
{
	static const char *const versions[] = {"8.3.0", "8.3.1", "8.3.2", ""};
	static int64_t values[TRACES];
	struct tw_rollup_filter f = everything;
	struct tw_fleet_stat reported;
	int64_t sum = 0;
	size_t n = truth_of(s, method, version, metric, values);

	f.version_name = versions[version];
	reported = asked(s, &f, method, metric);
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	assert_int_equal(reported.n, n);
	assert_int_equal(reported.sum, sum);
	if (n == 0)
		return;
	assert_int_equal(reported.max, values[n - 1]);
	for (int q = 0; q < TW_FLEET_QUANTILES; q++)
		near_truth(reported.at[q], values[(n * tw_fleet_percents[q] + 99) / 100 - 1]);
}

static void compare_some(struct session *s)
{
	for (unsigned method = 0; method < 12; method += 5)
		for (unsigned metric = 0; metric < TW_ROLLUP_METRICS; metric++)
			for (unsigned version = 1; version <= SIM_VERSIONS; version += 2)
				compare(s, method, version, metric);
}

static void test_truth(void **state)
{
	struct session *s = *state;

	assert_true(sim_load(s->c, s->db, s->project, 0, TRACES, DAY0));
	assert_int_equal(number(s, "SELECT sum(traces) FROM rollup_cell"), TRACES);
	assert_int_equal(number(s, "SELECT sum(pending) FROM rollup_cell"), TRACES);
	compare_some(s); /* of deltas alone */
	add_up(s, 3);
	assert_in_range(number(s, "SELECT count(*) FROM rollup_delta"), 1, TRACES - 1);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_delta"),
	        number(s, "SELECT sum(pending) FROM rollup_cell"));
	compare_some(s); /* of both */
	add_up(s, 1);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_delta"), 0);
	compare_some(s);
}

static void test_a_known_regression_is_seen(void **state)
{
	struct session *s = *state;
	struct tw_rollup_filter before = everything, after = everything;
	struct tw_fleet_stat was, is, other_was, other_is;

	before.version_name = "8.3.1";
	after.version_name = "8.3.2";
	was = asked(s, &before, SIM_SLOWER, TW_ROLLUP_SELF);
	is = asked(s, &after, SIM_SLOWER, TW_ROLLUP_SELF);
	other_was = asked(s, &before, SIM_SLOWER + 12, TW_ROLLUP_SELF);
	other_is = asked(s, &after, SIM_SLOWER + 12, TW_ROLLUP_SELF);
	assert_in_range(is.at[0] * 100 / was.at[0], 115, 170);
	assert_in_range(other_is.at[0] * 100 / other_was.at[0], 82, 122);
}

static void test_groups(void **state)
{
	static struct tw_rollup_head h;
	struct session *s = *state;
	struct tw_fleet_group *groups;
	struct tw_fleet_lengths l;
	struct tw_rollup_cell *cells;
	uint64_t traces = 0;
	size_t n, n_groups;

	tw_arena_reset(s->arena);
	assert_int_equal(tw_catalogue_rollup_read(
	                         s->c, s->project, &everything, 0, s->arena, &cells, &n, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_fleet_groups(cells, n, TW_FLEET_DAY, true, s->arena, &groups, &n_groups, NULL),
	        TW_OK);
	assert_int_equal(n_groups, 2 * SIM_DAYS);
	assert_string_equal(groups[0].key, "2024-10-04");
	for (size_t i = 0; i < n_groups; i++) {
		assert_int_equal(tw_fleet_lengths(&groups[i], &h, &l, NULL), TW_OK);
		assert_int_equal(l.stat.n, groups[i].traces);
		assert_int_equal(strlen(l.longest), TW_ROLLUP_ID);
		traces += groups[i].traces;
	}
	assert_int_equal(traces, TRACES);
	assert_int_equal(
	        tw_fleet_groups(cells, 0, TW_FLEET_ALL, false, s->arena, &groups, &n_groups, NULL),
	        TW_OK);
	assert_int_equal(n_groups, 0);
}

static void test_nothing_counts_twice(void **state)
{
	struct session *s = *state;
	char *before = dump(s), *after;

	assert_true(sim_fold(s->c, s->project, 0, TRACES, DAY0));
	after = dump(s);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void test_counting_again_is_the_same(void **state)
{
	struct session *s = *state;
	struct tw_rollup_reset sums;
	char *before = dump(s), *after;

	assert_int_equal(tw_catalogue_rollup_reset(s->c, s->project, &sums, NULL), TW_OK);
	assert_int_equal(sums.days, SIM_DAYS);
	assert_int_equal(sums.traces, TRACES);
	assert_int_equal(sums.days_kept, 0);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_cell"), 0);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_part"), 0);
	assert_true(sim_fold(s->c, s->project, TRACES / 2, TRACES, DAY0)); /* another order */
	add_up(s, 5);
	assert_true(sim_fold(s->c, s->project, 0, TRACES / 2, DAY0));
	add_up(s, 1);
	after = dump(s);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* Total time of the threads of all cells, and the number of nodes. */
static int64_t tree_total(struct session *s, bool reduced, uint32_t *ret_nodes)
{
	struct tw_rollup_tree t = {.arena = s->arena};
	struct tw_rollup_cell *cells;
	struct tw_tree_cell *trees;
	int64_t *ids, total = 0;
	size_t n;

	tw_arena_reset(s->arena);
	assert_int_equal(tw_catalogue_rollup_read(
	                         s->c, s->project, &everything, 0, s->arena, &cells, &n, NULL),
	        TW_OK);
	ids = tw_arena_alloc(s->arena, n, sizeof *ids);
	for (size_t i = 0; i < n; i++)
		ids[i] = cells[i].cell_id;
	assert_int_equal(
	        tw_catalogue_trees_read(s->c, s->project, ids, n, reduced, s->arena, &trees, NULL),
	        TW_OK);
	assert_int_equal(tw_fleet_trees(trees, n, &t, NULL), TW_OK);
	for (uint32_t i = 0; i < t.n; i++)
		if (t.nodes[i].parent == TW_ROLLUP_NO_NODE)
			total += tw_rollup_tree_all(&t, i).total_ns;
	*ret_nodes = t.n;
	return total;
}

/* Nodes of all cells by an engine, as the second of two sets.  The first is empty and has no number
 * of cells, as a stratum that is not compared. */
static uint32_t nodes_of_second(struct session *s, size_t of_all)
{
	struct tw_fleet_store *store = tw_fleet_embedded_new(s->c);
	const struct tw_fleet_query query = {.project_id = s->project, .filter = everything};
	struct tw_rollup_tree t[2] = {{.arena = s->arena}, {.arena = s->arena}};
	struct tw_fleet_cells_of sets[2] = {{0}};
	const struct tw_rollup_cell **list;
	struct tw_rollup_cell *cells;
	size_t n;

	tw_arena_reset(s->arena);
	assert_non_null(store);
	assert_int_equal(tw_catalogue_rollup_read(
	                         s->c, s->project, &everything, 0, s->arena, &cells, &n, NULL),
	        TW_OK);
	list = tw_arena_alloc(s->arena, n, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = &cells[i];
	sets[1] = (struct tw_fleet_cells_of){list, n, of_all};
	assert_int_equal(store->engine->trees(store, &query, sets, 2, t, NULL), TW_OK);
	assert_int_equal(t[0].n, 0);
	(void)tw_fleet_store_free(store);
	return t[1].n;
}

/* As an upgrade leaves them: they are made from the trees, alone. */
static void test_reduced_trees_are_built_again(void **state)
{
	struct session *s = *state;
	uint32_t whole, reduced, before;
	char *first = dump(s), *second;

	catalogue_run(s->db, "UPDATE rollup_tree_reduced SET data=x''");
	assert_true(tree_total(s, true, &before) == tree_total(s, false, &whole));
	assert_int_equal(before, whole); /* as long as they are not made */
	add_up(s, TW_ROLLUP_DELTAS_MAX);
	second = dump(s);
	assert_string_equal(first, second);
	assert_true(tree_total(s, true, &reduced) == tree_total(s, false, &whole));
	assert_true(reduced < whole);
	assert_int_equal(nodes_of_second(s, TW_ROLLUP_TREES_WHOLE), whole);
	assert_int_equal(nodes_of_second(s, TW_ROLLUP_TREES_WHOLE + 1), reduced);
	free(first);
	free(second);
}

enum { UNDONE = 1300, UNDONE_AT_ONCE = 512, UNDONE_STATEMENTS = 3 };

/* Uploads wait for a transaction, so none changes all traces of a project. */
static void test_undone_traces_wait_again_in_batches(void **state)
{
	struct session *s = *state;
	struct tw_rollup_reset sums;
	char project[TW_ID_BYTES];
	uint64_t before;
	bool is_new;

	assert_int_equal(tw_catalogue_project(s->c, "undone", project, &is_new, NULL), TW_OK);
	assert_true(sim_rows(s->db, project, 0, UNDONE, DAY0));
	catalogue_run(s->db,
	        "UPDATE trace SET rollup_state=CASE WHEN trace_id<'01SIM000000000000000000700'"
	        " THEN 3 ELSE 1 END, detected=CASE WHEN trace_id<'01SIM000000000000000000700'"
	        " THEN 0 ELSE -2 END WHERE project_id=(SELECT project_id FROM project WHERE"
	        " name='undone')");
	catalogue_run(s->db,
	        "INSERT INTO postponed SELECT project_id, trace_id, CASE rollup_state WHEN 3 THEN"
	        " 'rollup' ELSE 'findings' END, 1, 1, 1, '' FROM trace WHERE rollup_state=3 OR"
	        " detected=-2");
	assert_int_equal(number(s, "SELECT count(*) FROM postponed"), UNDONE);
	before = tw_cat_statements();
	assert_int_equal(tw_catalogue_rollup_reset(s->c, project, &sums, NULL), TW_OK);
	assert_true(tw_cat_statements() - before >=
	            (UNDONE + UNDONE_AT_ONCE - 1) / UNDONE_AT_ONCE * UNDONE_STATEMENTS);
	assert_int_equal(number(s, "SELECT count(*) FROM postponed"), 0);
	assert_int_equal(number(s, "SELECT count(*) FROM trace WHERE rollup_state=3"), 0);
	assert_int_equal(number(s, "SELECT count(*) FROM trace WHERE detected<0"), 0);
	catalogue_run(s->db,
	        "DELETE FROM trace WHERE project_id=(SELECT project_id FROM project WHERE"
	        " name='undone')");
}

static void test_what_is_deleted_stays_counted(void **state)
{
	struct session *s = *state;
	struct tw_rollup_reset sums;
	struct tw_blob_list unused;
	struct sim_trace t;

	sim_make(s->project, 5, DAY0, &t);
	assert_int_equal(
	        tw_catalogue_trace_delete(s->c, s->project, t.id, s->arena, &unused, NULL), TW_OK);
	assert_int_equal(tw_catalogue_rollup_reset(s->c, s->project, &sums, NULL), TW_OK);
	assert_int_equal(sums.days, SIM_DAYS - 1);
	assert_int_equal(sums.days_kept, 1);
	assert_true(sim_fold(s->c, s->project, 0, TRACES, DAY0));
	add_up(s, 1);
	assert_int_equal(number(s, "SELECT sum(traces) FROM rollup_cell"), TRACES);
	compare_some(s);
}

/* Two threads sum the same cell: one of them succeeds. */
static void test_only_one_adds_up(void **state)
{
	struct session *s = *state;
	struct tw_str head, parts[TW_ROLLUP_METRICS] = {{0}};
	struct tw_rollup_cell one, two;
	const struct tw_rollup_when when = {1, 1, 0, INT64_MAX / 2, ""};
	struct tw_rollup_due *due;
	size_t n;
	char *before, *after;

	assert_true(sim_load(s->c, s->db, s->project, TRACES, TRACES + 40, DAY0));
	tw_arena_reset(s->arena);
	assert_int_equal(tw_catalogue_rollup_due(s->c, &when, 1, s->arena, &due, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_rollup_load(s->c, due, s->arena, &one, NULL), TW_OK);
	assert_int_equal(tw_catalogue_rollup_load(s->c, due, s->arena, &two, NULL), TW_OK);
	assert_int_equal(tw_rollup_cell_add(&one, s->arena, &head, parts, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_rollup_store(s->c, s->project, &one, &head, parts, NULL), TW_OK);
	before = dump(s);
	assert_int_equal(
	        tw_catalogue_rollup_store(s->c, s->project, &two, &head, parts, NULL), TW_CONFLICT);
	after = dump(s);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void test_old_rollups_go(void **state)
{
	struct session *s = *state;
	bool more = true;

	while (more)
		assert_int_equal(tw_catalogue_rollup_expire(s->c, DAY0 + 3, &more, NULL), TW_OK);
	assert_int_equal(number(s, "SELECT min(day) FROM rollup_cell"), DAY0 + 3);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_part WHERE cell_id NOT IN"
	                           " (SELECT cell_id FROM rollup_cell)"),
	        0);
}

static void test_cells_of_a_trace(void **state)
{
	static const char *const labels[] = {"device", "flavour", "n", "none"};
	struct session *s = *state;
	struct tw_trace_row row = {
	        .meta = {.recorded_ms = 5 * (int64_t)TW_DAY_MS + 7,
	                .app = "a",
	                .version_name = "not semver",
	                .build_id = "b",
	                .mapping_id = "",
	                .scenario = "",
	                .os = "14",
	                .device = "Pixel 9",
	                .abi = "",
	                .process = "",
	                .version_code = "",
	                .session_id = "",
	                .started_ms = 1, /* a clock that is wrong by years changes nothing */
	                .labels = "{\"flavour\":\"beta\",\"n\":7,\"ram_mb\":3072}"}};
	struct tw_rollup_dims d[TW_ROLLUP_CELLS_MAX];
	size_t n;

	assert_int_equal(tw_rollup_cells(&row, labels, 4, s->arena, d, &n, NULL), TW_OK);
	assert_int_equal(n, 5);
	assert_int_equal(d[0].day, 5);
	assert_string_equal(d[0].device_class, "mid");
	assert_string_equal(d[1].label, "device=Pixel 9");
	assert_string_equal(d[2].label, "flavour=beta");
	assert_string_equal(d[3].label, "n=7");
	assert_string_equal(d[3].device_class, "");
	assert_string_equal(d[4].label, "none="); /* so traces without it are counted */
	assert_string_equal(tw_rollup_device_class("{\"ram_mb\":3071}"), "low");
	assert_string_equal(tw_rollup_device_class("{\"ram_mb\":\"6144\"}"), "high");
	assert_string_equal(
	        tw_rollup_device_class("{\"device_class\":\"low\",\"ram_mb\":9000}"), "low");
	assert_string_equal(tw_rollup_device_class("{\"device_class\":\"x\"}"), "unknown");
	assert_string_equal(tw_rollup_device_class("[1"), "unknown");
	assert_string_equal(tw_rollup_device_class(""), "unknown");
}

static void put_label(struct tw_rollup_cell *c, const char *label, uint64_t traces)
{
	*c = (struct tw_rollup_cell){.traces = traces};
	c->dims.label = label;
}

static void make_labels(struct tw_rollup_cell c[7])
{
	put_label(&c[0], "f=rare", 1);
	put_label(&c[1], "f=big", 5);
	put_label(&c[2], "f=", 100);
	put_label(&c[3], "f=a=b", 4);
	put_label(&c[4], "f=rare", 2);
	put_label(&c[5], "f=small", 1);
	put_label(&c[6], "f=big", 5);
}

/* The largest values are listed, the others are one row with their count; no label is not a value.
 */
static void test_values_of_a_label(void **state)
{
	struct session *s = *state;
	struct tw_fleet_values v;
	struct tw_rollup_cell c[7];

	make_labels(c);
	assert_int_equal(tw_fleet_label_values(c, 7, 2, s->arena, &v, NULL), TW_OK);
	assert_int_equal(v.values, 4);
	assert_int_equal(v.rest, 2);
	assert_string_equal(c[0].dims.label, TW_FLEET_REST);
	assert_string_equal(c[1].dims.label, "big");
	assert_string_equal(c[2].dims.label, "");
	assert_string_equal(c[3].dims.label, "a=b");
	assert_string_equal(c[4].dims.label, TW_FLEET_REST);
	assert_string_equal(c[5].dims.label, TW_FLEET_REST);
	make_labels(c); /* a rest of one value has that value's name */
	assert_int_equal(tw_fleet_label_values(c, 7, 3, s->arena, &v, NULL), TW_OK);
	assert_int_equal(v.rest, 0);
	assert_string_equal(c[5].dims.label, "small");
	assert_int_equal(tw_fleet_label_values(c, 0, 3, s->arena, &v, NULL), TW_OK);
	assert_int_equal(v.values, 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_a_known_regression_is_seen),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_nothing_counts_twice),
        cmocka_unit_test(test_counting_again_is_the_same),
        cmocka_unit_test(test_reduced_trees_are_built_again),
        cmocka_unit_test(test_undone_traces_wait_again_in_batches),
        cmocka_unit_test(test_what_is_deleted_stays_counted),
        cmocka_unit_test(test_only_one_adds_up),
        cmocka_unit_test(test_old_rollups_go),
        cmocka_unit_test(test_cells_of_a_trace),
        cmocka_unit_test(test_values_of_a_label),
};

UNIT_TESTS_WITH("rollup", tests, setup, teardown)
