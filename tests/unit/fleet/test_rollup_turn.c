/* What blocks counting, and what does not: cells and traces that fail, projects that wait, names
 * that nothing uses, long names, mappings that come at once, days without cells. */
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

#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/derive/pipeline.h"
#include "server/derive/rollup/rollup_writer.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { TRACES = 40, DAY0 = 20000 };
#define LATE (INT64_MAX / 2)

struct session {
	char dir[64], project[TW_ID_BYTES], other[TW_ID_BYTES];
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

	s = (struct session){.dir = "/tmp/tw-rollup-turn-XXXXXX"};
	assert_non_null(mkdtemp(s.dir));
	s.c = catalogue_in(s.dir);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.project, &is_new, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project(s.c, "q", s.other, &is_new, NULL), TW_OK);
	s.db = catalogue_connect(s.dir);
	s.arena = tw_arena_new(256 << 20);
	parts.catalogue = s.c;
	s.folder = tw_rollup_worker_new(&parts);
	assert_non_null(s.folder);
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

static void run(struct session *s, const char *sql)
{
	catalogue_run(s->db, sql);
}

static int64_t number(struct session *s, const char *sql)
{
	return catalogue_number(s->db, sql);
}

static void text(struct session *s, const char *sql, char out[200])
{
	char *found = catalogue_text(s->db, sql);

	(void)snprintf(out, 200, "%s", found);
	free(found);
}

/* --- cells --- */

/* A damaged cell fails, is postponed and counted, and all others are merged. */
static void test_a_poisoned_cell_is_put_off(void **state)
{
	struct session *s = *state;
	struct tw_rollup_worker_counts n;
	bool more = true;

	assert_true(sim_load(s->c, s->db, s->project, 0, TRACES, DAY0));
	run(s, "UPDATE rollup_delta SET data=x'ff' WHERE (cell_id,trace_id)=(SELECT"
	       " cell_id,trace_id FROM rollup_delta ORDER BY trace_id, cell_id LIMIT 1)");
	while (more)
		assert_int_equal(tw_rollup_worker_add(s->folder, 1, 0, &more, NULL), TW_OK);
	n = tw_rollup_worker_counts(s->folder);
	assert_int_equal(n.cells_failed, 1);
	assert_true(n.cells > 1);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_cell WHERE pending>0"), 1);
	assert_int_equal(number(s, "SELECT attempts FROM rollup_cell WHERE pending>0"), 1);
	assert_true(number(s, "SELECT again_ms FROM rollup_cell WHERE pending>0") > tw_unix_ms());

	/* its time comes, it fails again, and waits longer */
	run(s, "UPDATE rollup_cell SET again_ms=0");
	more = true;
	while (more)
		assert_int_equal(tw_rollup_worker_add(s->folder, 1, 0, &more, NULL), TW_OK);
	assert_int_equal(number(s, "SELECT attempts FROM rollup_cell WHERE pending>0"), 2);
	assert_true(number(s, "SELECT again_ms FROM rollup_cell WHERE pending>0") >
	            tw_unix_ms() + 5000);

	/* once repaired, it is merged, and its attempts are reset */
	run(s, "UPDATE rollup_cell SET again_ms=0; UPDATE rollup_delta SET data=x'00'");
	more = true;
	while (more)
		assert_int_equal(tw_rollup_worker_add(s->folder, 1, 0, &more, NULL), TW_OK);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_cell WHERE pending>0"), 0);
	assert_int_equal(number(s, "SELECT max(attempts) FROM rollup_cell"), 0);
}

static void add_trees(struct session *s)
{
	bool more = true;

	while (more)
		assert_int_equal(tw_rollup_trees_add(s->c, 1, 0, &more, NULL), TW_OK);
}

/* More failing trees than a turn takes: they are postponed, and the rest continues. */
static void test_poisoned_trees_are_put_off(void **state)
{
	struct session *s = *state;
	uint64_t late;
	int64_t all;

	assert_true(sim_load(s->c, s->db, s->project, 300, 300 + TRACES, DAY0));
	run(s, "INSERT INTO rollup_tree(project_id,cell_id,day,pending,data,levels) SELECT"
	       " project_id,-c,1,99,x'',x'' FROM (SELECT project_id FROM rollup_tree LIMIT 1) p,"
	       " (WITH RECURSIVE n(c) AS (SELECT 1 UNION ALL SELECT c+1 FROM n WHERE c<40) SELECT"
	       " c FROM n) k; INSERT INTO rollup_tree_delta(project_id,cell_id,trace_id,data) "
	       "SELECT"
	       " project_id,cell_id,'t',x'ff' FROM rollup_tree WHERE cell_id<0");
	all = number(s, "SELECT count(*) FROM rollup_tree WHERE cell_id>0 AND pending>0");
	assert_true(all > 0);
	add_trees(s);
	assert_int_equal(
	        number(s, "SELECT count(*) FROM rollup_tree WHERE cell_id>0 AND pending>0"), 0);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_tree_later WHERE attempts=1"), 40);

	/* their time comes: some are whole by then, the others wait longer */
	run(s, "UPDATE rollup_tree_later SET again_ms=0; UPDATE rollup_tree SET pending=1 WHERE "
	       "cell_id BETWEEN -20 AND -1; DELETE FROM rollup_tree_delta WHERE"
	       " cell_id BETWEEN -20 AND -1");
	run(s, "INSERT INTO rollup_tree_delta SELECT t.project_id,t.cell_id,'t',d.data FROM"
	       " rollup_tree t, (SELECT data FROM rollup_tree WHERE cell_id>0 AND"
	       " length(data)>0 ORDER BY cell_id LIMIT 1) d WHERE t.cell_id BETWEEN -20 AND -1");
	add_trees(s);
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_tree_later"), 20);
	assert_int_equal(tw_catalogue_trees_postponed(s->c, &late, NULL), TW_OK);
	assert_int_equal(late, 20);
	assert_int_equal(number(s, "SELECT min(attempts) FROM rollup_tree_later"), 2);
	assert_true(number(s, "SELECT min(again_ms) FROM rollup_tree_later") > tw_unix_ms() + 5000);
	run(s, "DELETE FROM rollup_tree WHERE cell_id<0; DELETE FROM rollup_tree_delta WHERE"
	       " cell_id<0; DELETE FROM rollup_tree_later");
}

static struct tw_rollup_due *due_of(struct session *s, struct tw_rollup_when when, size_t *ret_n)
{
	struct tw_rollup_due *due;

	when.now_ms = LATE;
	if (!when.after_project)
		when.after_project = "";
	assert_int_equal(
	        tw_catalogue_rollup_due(s->c, &when, 1000, s->arena, &due, ret_n, NULL), TW_OK);
	return due;
}

/* The more a cell holds, the more deltas it waits for, up to a limit. */
static void test_what_is_due_grows_with_the_cell(void **state)
{
	static const struct {
		int traces, pending;
		bool due;
	} cases[] = {{7, 7, false}, {8, 8, true}, {39, 7, false}, {40, 8, true}, {48, 8, false},
	        {44, 9, true}, {300, 59, false}, {300, 60, true}, {9000, 63, false},
	        {9000, 64, true}};
	struct session *s = *state;
	char sql[200];
	size_t n;

	run(s, "DELETE FROM rollup_cell; DELETE FROM rollup_delta");
	assert_true(sim_load(s->c, s->db, s->project, 100, 101, DAY0));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		(void)snprintf(sql, sizeof sql, "UPDATE rollup_cell SET traces=%d, pending=%d",
		        cases[i].traces, cases[i].pending);
		run(s, sql);
		(void)due_of(s, (struct tw_rollup_when){.least = 8, .most = 64}, &n);
		if ((n == 1) != cases[i].due)
			fail_msg("%d of %d", cases[i].pending, cases[i].traces);
	}
	run(s, "UPDATE rollup_cell SET traces=9000, pending=1");
	(void)due_of(
	        s, (struct tw_rollup_when){.least = 8, .most = 64, .day = DAY0 + SIM_DAYS}, &n);
	assert_int_equal(n, 1);
}

/* --- projects --- */

static const char *next_of(struct session *s, const struct tw_stage *stage, const char *after)
{
	static char id[TW_ID_BYTES];

	assert_int_equal(tw_catalogue_stage_next(s->c, stage->sql, after, id, NULL), TW_OK);
	return id;
}

static const char *next_project(struct session *s, const char *after)
{
	return next_of(s, &tw_stage_rollup, after);
}

/* Only what waits: traces, and past days with uncounted reports. */
static void test_projects_with_waiting_rows_are_served(void **state)
{
	struct session *s = *state;
	char sql[200];

	run(s, "DELETE FROM trace; DELETE FROM anr_day");
	assert_true(sim_rows(s->db, s->project, 0, 3, DAY0));
	assert_string_equal(next_of(s, &tw_stage_findings, ""), "");
	run(s, "UPDATE trace SET rollup_state=1, detected=0, anr_state=1");
	assert_string_equal(next_of(s, &tw_stage_findings, ""), s->project);
	assert_string_equal(next_of(s, &tw_stage_findings, s->project), "");
	run(s, "UPDATE trace SET detected=7");
	assert_string_equal(next_of(s, &tw_stage_findings, ""), "");
	assert_string_equal(next_of(s, &tw_stage_rollup, ""), "");
	assert_string_equal(next_of(s, &tw_stage_anr, ""), "");
	(void)snprintf(sql, sizeof sql,
	        "INSERT INTO anr_day(project_id,day) VALUES('%s',%d),('%s',99999)", s->project,
	        DAY0, s->other);
	run(s, sql);
	assert_string_equal(next_of(s, &tw_stage_anr, ""), s->project);
	assert_string_equal(next_of(s, &tw_stage_anr, s->project), "");
	run(s, "UPDATE anr_day SET waiting=0");
	assert_string_equal(next_of(s, &tw_stage_anr, ""), "");
}

static void test_projects_with_rows_and_changed_rules_are_listed(void **state)
{
	struct session *s = *state;
	const char *const *ids;
	int64_t entry = INT64_MAX;
	size_t n;

	run(s, "DELETE FROM trace");
	assert_true(sim_rows(s->db, s->project, 0, 3, DAY0));
	assert_int_equal(
	        tw_catalogue_stage_projects(s->c, "trace", s->arena, &ids, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(ids[0], s->project);
	assert_int_equal(tw_catalogue_stage_changed(s->c, &entry, s->arena, &ids, &n, NULL), TW_OK);
	assert_int_equal(n, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
		        tw_catalogue_setting_set(s->c, s->other, "frames", "{}", NULL), TW_OK);
	assert_int_equal(tw_catalogue_stage_changed(s->c, &entry, s->arena, &ids, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(ids[0], s->other);
	assert_int_equal(tw_catalogue_stage_changed(s->c, &entry, s->arena, &ids, &n, NULL), TW_OK);
	assert_int_equal(n, 0);
}

static void test_projects_take_turns(void **state)
{
	struct session *s = *state;
	const char *first = strcmp(s->project, s->other) < 0 ? s->project : s->other;
	const char *second = first == s->project ? s->other : s->project;
	struct tw_rollup_due *due;
	size_t n;

	run(s, "DELETE FROM trace; DELETE FROM rollup_cell; DELETE FROM rollup_delta");
	assert_true(sim_rows(s->db, first, 0, 50, DAY0));
	assert_true(sim_rows(s->db, second, 50, 53, DAY0));
	assert_string_equal(next_project(s, ""), first);
	assert_string_equal(next_project(s, first), second);
	assert_string_equal(next_project(s, second), "");

	assert_true(sim_fold(s->c, first, 0, 50, DAY0));
	assert_true(sim_fold(s->c, second, 50, 53, DAY0));
	due = due_of(s, (struct tw_rollup_when){.least = 1, .most = 1, .after_project = first}, &n);
	assert_int_equal(n, 3);
	assert_string_equal(due[0].project_id, second);
}

/* --- traces that cannot be read --- */

static struct tw_named_trace first_waiting(struct session *s)
{
	struct tw_named_trace *todo;
	size_t n;

	assert_int_equal(tw_catalogue_stage_todo(s->c, tw_stage_rollup.sql, s->project, 1, s->arena,
	                         &todo, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 1);
	return todo[0];
}

static void postpone(struct session *s, const struct tw_named_trace *t)
{
	assert_int_equal(
	        tw_catalogue_stage_postpone(s->c, tw_stage_rollup.sql, t, "io_error", 1000, NULL),
	        TW_OK);
}

static void resume(struct session *s, int64_t now_ms)
{
	bool more;

	assert_int_equal(
	        tw_catalogue_stage_resume(s->c, tw_stage_rollup.sql, now_ms, &more, NULL), TW_OK);
}

static void test_what_may_pass_is_tried_again(void **state)
{
	struct session *s = *state;
	struct tw_stage_waiting w;
	struct tw_named_trace t;

	run(s, "DELETE FROM trace; DELETE FROM rollup_cell; DELETE FROM rollup_delta");
	assert_true(sim_rows(s->db, s->project, 0, 2, DAY0));
	t = first_waiting(s);
	for (int attempts = 1; attempts <= 3; attempts++) {
		postpone(s, &t);
		assert_int_equal(number(s, "SELECT attempts FROM postponed"), attempts);
		for (int all = 0; all < 2; all++) {
			assert_int_equal(tw_catalogue_stage_waiting(s->c, tw_stage_rollup.sql,
			                         all ? "" : s->project, &w, NULL),
			        TW_OK);
			assert_int_equal(w.traces, 1);
			assert_int_equal(w.postponed, 1);
			assert_int_equal(w.n_why, 1);
			assert_string_equal(w.why[0].reason, "io_error");
			assert_true(w.oldest_ms > 0);
		}
		assert_int_equal(
		        tw_catalogue_stage_waiting(s->c, tw_stage_rollup.sql, s->other, &w, NULL),
		        TW_OK);
		assert_int_equal(w.traces + w.postponed, 0);
		resume(s, 1001);
		assert_int_equal(number(s, "SELECT count(*) FROM trace WHERE rollup_state=3"), 1);
		resume(s, 1000 + 21600000);
		assert_int_equal(number(s, "SELECT count(*) FROM trace WHERE rollup_state=0"), 2);
	}
	assert_true(sim_fold(s->c, s->project, 0, 2, DAY0));
	assert_int_equal(
	        tw_catalogue_stage_waiting(s->c, tw_stage_rollup.sql, "", &w, NULL), TW_OK);
	assert_int_equal(w.traces + w.postponed, 0);

	/* its attempts are remembered for a day */
	resume(s, 1000 + 21600000 + TW_DAY_MS - 1);
	assert_int_equal(number(s, "SELECT attempts FROM postponed"), 3);
	resume(s, 1000 + 21600000 + TW_DAY_MS);
	assert_int_equal(number(s, "SELECT count(*) FROM postponed"), 0);

	/* deleted while it waits */
	assert_true(sim_rows(s->db, s->project, 2, 3, DAY0));
	t = first_waiting(s);
	postpone(s, &t);
	run(s, "DELETE FROM trace WHERE rollup_state=3");
	resume(s, LATE);
	assert_int_equal(number(s, "SELECT count(*) FROM postponed"), 0);
}

/* A folder without a file for any trace gives each of them up, one after the other. */
static void test_rebuild_finds_traces_of_no_cell(void **state)
{
	struct session *s = *state;
	struct tw_rollup_reset sums;

	run(s, "DELETE FROM trace; DELETE FROM rollup_cell; DELETE FROM rollup_delta");
	assert_true(sim_load(s->c, s->db, s->project, 0, TRACES, DAY0));
	run(s, "UPDATE trace SET rollup_state=2 WHERE trace_id=(SELECT min(trace_id) FROM trace)");
	run(s, "UPDATE rollup_cell SET traces=traces-1, pending=pending-1 WHERE cell_id=(SELECT"
	       " cell_id FROM rollup_delta ORDER BY trace_id LIMIT 1)");
	run(s, "DELETE FROM rollup_delta WHERE trace_id=(SELECT min(trace_id) FROM trace)");
	run(s, "DELETE FROM rollup_cell WHERE day=20003");
	run(s, "DELETE FROM rollup_delta WHERE cell_id NOT IN (SELECT cell_id FROM rollup_cell)");
	assert_int_equal(tw_catalogue_rollup_reset(s->c, s->project, &sums, NULL), TW_OK);
	assert_int_equal(sums.days, SIM_DAYS);
	assert_int_equal(sums.days_kept, 0);
	assert_int_equal(number(s, "SELECT count(*) FROM trace WHERE rollup_state<>0"), 0);
	assert_true(sim_fold(s->c, s->project, 0, TRACES, DAY0));
	assert_int_equal(number(s, "SELECT sum(traces) FROM rollup_cell"), TRACES);
}

/* --- names --- */

static void test_names_that_nothing_uses_go(void **state)
{
	struct session *s = *state;
	bool more = true;

	assert_int_equal(
	        number(s, "SELECT count(*) FROM rollup_method"), SIM_METHODS * SIM_VERSIONS);
	run(s, "UPDATE rollup_method SET seen_day=19000 WHERE build_id='b830'");
	while (more)
		assert_int_equal(tw_catalogue_rollup_expire(s->c, 19000, &more, NULL), TW_OK);
	assert_int_equal(
	        number(s, "SELECT count(*) FROM rollup_method"), SIM_METHODS * SIM_VERSIONS);
	more = true;
	while (more)
		assert_int_equal(tw_catalogue_rollup_expire(s->c, 19001, &more, NULL), TW_OK);
	assert_int_equal(
	        number(s, "SELECT count(*) FROM rollup_method"), SIM_METHODS * (SIM_VERSIONS - 1));
	assert_int_equal(number(s, "SELECT count(*) FROM rollup_method WHERE build_id='b830'"), 0);
}

static void test_long_names_are_bounded_and_apart(void **state)
{
	char a[TW_ROLLUP_NAME_BYTES], b[TW_ROLLUP_NAME_BYTES], name[5000];

	(void)state;
	memset(name, 'x', sizeof name);
	assert_false(tw_rollup_bound_name((struct tw_str){name, TW_ROLLUP_NAME_BYTES - 5}, a));
	assert_int_equal(strlen(a), TW_ROLLUP_NAME_BYTES - 5);
	assert_false(tw_rollup_is_cut(a));
	assert_true(tw_rollup_bound_name((struct tw_str){name, sizeof name}, a));
	assert_true(tw_rollup_is_cut(a));
	name[sizeof name - 1] = 'y';
	assert_true(tw_rollup_bound_name((struct tw_str){name, sizeof name}, b));
	assert_string_not_equal(a, b);
	assert_memory_equal(a, b, 900);
	memset(name, 0xff, sizeof name); /* each becomes three bytes */
	assert_true(tw_rollup_bound_name((struct tw_str){name, 400}, a));
	assert_true(strlen(a) < TW_ROLLUP_NAME_BYTES);
	assert_false(tw_rollup_bound_name((struct tw_str){"", 0}, a));
	assert_string_equal(a, "");
}

static void give(struct session *s, const char *map_sha256)
{
	struct tw_build_row row = {"b831", "", "", "", .entries = 1, .retrace = {"", "", ""}};

	row.map_sha256 = map_sha256;
	catalogue_set_mapping(s->c, s->project, TW_MAPPING_METHODS, &row, s->arena);
}

/* Names by the first mapping are not kept when the second one came before the first batch ended. */
static void test_two_mappings_at_once(void **state)
{
	struct session *s = *state;
	struct tw_rollup_naming *methods;
	struct tw_rename old, new;
	char name[200];
	size_t n;

	run(s, "DELETE FROM build_rename");
	give(s, "one");
	assert_int_equal(
	        tw_catalogue_rollup_renames(s->c, NULL, s->arena, &old, &methods, &n, NULL), TW_OK);
	assert_int_equal(n, SIM_METHODS);
	give(s, "two");
	for (size_t i = 0; i < n; i++)
		methods[i].name = "by.the.first";
	assert_int_equal(tw_catalogue_rollup_renamed(s->c, &old, methods, n, NULL), TW_OK);
	assert_int_equal(
	        number(s, "SELECT count(*) FROM rollup_method WHERE name='by.the.first'"), 0);
	assert_int_equal(
	        number(s, "SELECT count(*) FROM build_rename WHERE stage='rollup' AND after_id=''"),
	        1);
	assert_int_equal(tw_catalogue_rollup_renamed(s->c, &old, NULL, 0, NULL), TW_OK);
	assert_int_equal(number(s, "SELECT count(*) FROM build_rename WHERE stage='rollup'"), 1);

	assert_int_equal(
	        tw_catalogue_rollup_renames(s->c, NULL, s->arena, &new, &methods, &n, NULL), TW_OK);
	assert_int_not_equal(new.generation, old.generation);
	for (size_t i = 0; i < n; i++)
		methods[i].name = "by.the.second";
	assert_int_equal(tw_catalogue_rollup_renamed(s->c, &new, methods, n, NULL), TW_OK);
	text(s, "SELECT DISTINCT name FROM rollup_method WHERE build_id='b831'", name);
	assert_string_equal(name, "by.the.second");
}

/* Who counts a trace read the mapping; another came, and has named all there was. */
static void test_names_of_a_deleted_mapping_are_reused(void **state)
{
	struct session *s = *state;
	const struct tw_rollup_naming late = {77, "b831", "", "#77", "old.name", "", true};
	struct tw_rollup_names names = {s->project, &late, 1, DAY0, {"two", ""}};

	run(s, "DELETE FROM build_rename");
	assert_int_equal(tw_catalogue_rollup_name(s->c, &names, NULL), TW_OK);
	assert_int_equal(number(s, "SELECT count(*) FROM build_rename WHERE stage='rollup'"), 0);
	give(s, "three");
	run(s, "DELETE FROM build_rename");
	assert_int_equal(tw_catalogue_rollup_name(s->c, &names, NULL), TW_OK);
	assert_int_equal(number(s, "SELECT count(*) FROM build_rename WHERE stage='rollup' AND "
	                           "build_id='b831'"),
	        1);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_poisoned_cell_is_put_off),
        cmocka_unit_test(test_poisoned_trees_are_put_off),
        cmocka_unit_test(test_what_is_due_grows_with_the_cell),
        cmocka_unit_test(test_projects_take_turns),
        cmocka_unit_test(test_projects_with_waiting_rows_are_served),
        cmocka_unit_test(test_projects_with_rows_and_changed_rules_are_listed),
        cmocka_unit_test(test_what_may_pass_is_tried_again),
        cmocka_unit_test(test_rebuild_finds_traces_of_no_cell),
        cmocka_unit_test(test_names_that_nothing_uses_go),
        cmocka_unit_test(test_long_names_are_bounded_and_apart),
        cmocka_unit_test(test_two_mappings_at_once),
        cmocka_unit_test(test_names_of_a_deleted_mapping_are_reused),
};

UNIT_TESTS_WITH("rollup_turn", tests, setup, teardown)
