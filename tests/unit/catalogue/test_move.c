/* A project's rows into another catalogue: some traces at a time, each whole, and again without
 * harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/access/catalogue_audit.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_move.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/unit.h"

enum { TURNS = 3, TRACES = (TURNS - 1) * TW_MOVE_AT_ONCE + 1 };

struct world {
	char dir[40], path[64]; /* of the catalogue that is read from */
	struct tw_catalogue *to;
	struct tw_arena *arena;
	char from_id[TW_ID_BYTES], to_id[TW_ID_BYTES];
	int seen, fail_at; /* reported traces; the one to fail at, 0 none */
	int64_t there;     /* rows that others saw at the last of them */
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void arrive(struct tw_catalogue *c, const char *project_id)
{
	struct tw_caller caller = {.scope = TW_SCOPE_INGEST};
	struct tw_trace_meta meta = tw_upload_meta_none();
	const struct tw_part part = {"trace", "aa", "", 1000};
	const struct tw_arrival up = {
	        .caller = &caller, .key = "", .meta = &meta, .parts = &part, .n_parts = 1};
	char id[TW_ID_BYTES];
	bool is_new;

	memcpy(caller.project_id, project_id, sizeof caller.project_id);
	assert_int_equal(tw_catalogue_trace_add(c, &up, id, &is_new, NULL), TW_OK);
}

/* Traces without uploads, whose decoded files are reported one by one. */
static void fill(struct world *w)
{
	struct tw_catalogue *c;
	bool is_new;

	assert_int_equal(tw_catalogue_open(w->path, &c, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project(c, "p", w->from_id, &is_new, NULL), TW_OK);
	for (int i = 0; i < TRACES; i++)
		arrive(c, w->from_id);
	assert_int_equal(
	        tw_cat_exec(c->writers[0].db, NULL, NULL, "UPDATE trace SET has_upload=0", ""),
	        TW_OK);
	(void)tw_catalogue_close(c);
}

static int setup(void **state)
{
	static struct world w;
	char path[64];

	w = (struct world){.to_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"};
	memcpy(w.dir, "/tmp/tw-move-XXXXXX", sizeof "/tmp/tw-move-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	(void)snprintf(w.path, sizeof w.path, "%s/from.db", w.dir);
	(void)snprintf(path, sizeof path, "%s/to.db", w.dir);
	fill(&w);
	assert_int_equal(tw_catalogue_open(path, &w.to, NULL), TW_OK);
	w.arena = tw_arena_new(64 << 20);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	w->to = tw_catalogue_close(w->to);
	w->arena = tw_arena_free(w->arena);
	return nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The view of a concurrent reader. */
static int64_t traces_seen(struct world *w)
{
	struct tw_db *db;
	int64_t n = 0;

	assert_int_equal(tw_cat_reader(w->to, &db, NULL), TW_OK);
	assert_int_equal(tw_cat_get_int(db, &n, NULL, "SELECT count(*) FROM trace", ""), TW_OK);
	tw_cat_done(w->to, db);
	return n;
}

static enum tw_status decoded(void *arg, const char *old_id, const char *new_id, struct tw_err *err)
{
	struct world *w = arg;

	assert_string_equal(old_id, new_id);
	w->there = traces_seen(w);
	if (++w->seen == w->fail_at)
		return tw_fail(err, TW_FULL, "no room");
	return TW_OK;
}

static enum tw_status move(struct world *w, struct tw_project_sums *ret)
{
	w->seen = 0;
	return tw_catalogue_project_move(w->to,
	        &(struct tw_project_move){.path = w->path,
	                .from_id = w->from_id,
	                .to_id = w->to_id,
	                .name = "p",
	                .decode = true,
	                .decoded = decoded,
	                .arg = w},
	        ret, NULL);
}

static size_t entries(struct world *w)
{
	const struct tw_audit_query of = {
	        .action = "project.import", .by = "", .target = "", .limit = 100};
	struct tw_audit_entry *rows;
	size_t n;

	assert_int_equal(tw_catalogue_audit(w->to, &of, w->arena, &rows, &n, NULL), TW_OK);
	return n;
}

/* Each turn is committed, and so others may write, before the next begins. */
static void test_some_at_a_time(void **state)
{
	struct world *w = *state;
	struct tw_project_sums sums;

	assert_int_equal(move(w, &sums), TW_OK);
	assert_int_equal(w->seen, TRACES);
	assert_int_equal(w->there, (TURNS - 1) * TW_MOVE_AT_ONCE); /* at the last trace */
	assert_int_equal(sums.traces, TRACES);
	assert_int_equal(sums.existing, 0);
	assert_int_equal(traces_seen(w), TRACES);
	assert_int_equal(entries(w), TURNS);

	assert_int_equal(move(w, &sums), TW_OK); /* again without harm */
	assert_int_equal(w->seen, 0);
	assert_int_equal(sums.traces, 0);
	assert_int_equal(sums.existing, TRACES);
	assert_int_equal(entries(w), TURNS + 1);
}

/* Turns before a failure remain, the failed turn leaves nothing, and the move resumes from there.
 * */
static void test_a_failure_in_between(void **state)
{
	struct tw_project_sums sums = {.traces = 77};
	struct world *w = *state;

	w->fail_at = TW_MOVE_AT_ONCE / 2;
	assert_int_equal(move(w, &sums), TW_FULL);
	assert_int_equal(traces_seen(w), 0);
	assert_int_equal(entries(w), 0);
	w->fail_at = TW_MOVE_AT_ONCE + 2;
	assert_int_equal(move(w, &sums), TW_FULL);
	assert_int_equal(sums.traces, 77); /* untouched */
	assert_int_equal(traces_seen(w), TW_MOVE_AT_ONCE);
	w->fail_at = 0;
	assert_int_equal(move(w, &sums), TW_OK);
	assert_int_equal(sums.existing, TW_MOVE_AT_ONCE);
	assert_int_equal(sums.traces, TRACES - TW_MOVE_AT_ONCE);
	assert_int_equal(traces_seen(w), TRACES);
}

/* Just as many as go at once, and one more, and none. */
static void test_counts_at_the_edge(void **state)
{
	static const int counts[] = {0, 1, TW_MOVE_AT_ONCE, TW_MOVE_AT_ONCE + 1};
	struct world *w = *state;
	struct tw_project_sums sums;
	struct tw_catalogue *c;

	for (size_t i = sizeof counts / sizeof *counts; i-- > 0;) {
		assert_int_equal(tw_catalogue_open(w->path, &c, NULL), TW_OK);
		assert_int_equal(
		        tw_cat_exec(c->writers[0].db, NULL, NULL,
		                "DELETE FROM part WHERE trace_id NOT IN (SELECT trace_id FROM"
		                " trace ORDER BY trace_id LIMIT ?)",
		                "i", (int64_t)counts[i]),
		        TW_OK);
		assert_int_equal(
		        tw_cat_exec(c->writers[0].db, NULL, NULL, "DELETE FROM job", ""), TW_OK);
		assert_int_equal(tw_cat_exec(c->writers[0].db, NULL, NULL,
		                         "DELETE FROM trace WHERE trace_id NOT IN (SELECT trace_id"
		                         " FROM trace ORDER BY trace_id LIMIT ?)",
		                         "i", (int64_t)counts[i]),
		        TW_OK);
		(void)tw_catalogue_close(c);
		assert_int_equal(move(w, &sums), TW_OK);
		assert_int_equal(sums.traces + sums.existing, counts[i]);
	}
	assert_int_equal(traces_seen(w), TW_MOVE_AT_ONCE + 1);
}

static void put_rules(struct tw_catalogue *c, const char *project_id, const char *kind, int n)
{
	for (int i = 1; i <= n; i++)
		assert_int_equal(tw_cat_exec(c->writers[0].db, NULL, NULL,
		                         "INSERT INTO ruleset(project_id,kind,version,value,author,"
		                         "created_ms) VALUES(?,?,?,?,'',0)",
		                         "ttit", project_id, kind, (int64_t)i, project_id),
		        TW_OK);
}

static int64_t count_rules(struct world *w, const char *sql)
{
	struct tw_db *db;
	int64_t n = 0;

	assert_int_equal(tw_cat_reader(w->to, &db, NULL), TW_OK);
	assert_int_equal(tw_cat_get_int(db, &n, NULL, sql, "t", w->from_id), TW_OK);
	tw_cat_done(w->to, db);
	return n;
}

/* A kind of which there is none comes whole; of one that is there not the later versions either. */
static void test_rules_are_not_mixed(void **state)
{
	struct world *w = *state;
	struct tw_project_sums sums;
	struct tw_catalogue *c;

	assert_int_equal(tw_catalogue_open(w->path, &c, NULL), TW_OK);
	put_rules(c, w->from_id, "detectors", 3);
	put_rules(c, w->from_id, "anr_rules", 2);
	(void)tw_catalogue_close(c);
	assert_int_equal(tw_cat_exec(w->to->writers[0].db, NULL, NULL,
	                         "INSERT INTO project(project_id,name,created_ms) VALUES(?,'p',0)",
	                         "t", w->to_id),
	        TW_OK);
	put_rules(w->to, w->to_id, "detectors", 1);
	assert_int_equal(move(w, &sums), TW_OK);
	assert_int_equal(
	        count_rules(w, "SELECT count(*) FROM ruleset WHERE kind='detectors' AND value<>?"),
	        1);
	assert_int_equal(
	        count_rules(w, "SELECT count(*) FROM ruleset WHERE kind='detectors' AND value=?"),
	        0);
	assert_int_equal(
	        count_rules(w, "SELECT count(*) FROM ruleset WHERE kind='anr_rules' AND value=?"),
	        2);
}

/* A copy of a project does not mail the original's recipients; its own remain. */
static void test_who_gets_digests_stays_behind(void **state)
{
	struct world *w = *state;
	struct tw_project_sums sums;
	struct tw_catalogue *c;
	const char *text;
	int64_t at;

	assert_int_equal(tw_catalogue_open(w->path, &c, NULL), TW_OK);
	assert_int_equal(tw_cat_exec(c->writers[0].db, NULL, NULL,
	                         "INSERT INTO project_setting VALUES(?1,'digest','{}',1),"
	                         "(?1,'tracker','{}',1)",
	                         "t", w->from_id),
	        TW_OK);
	(void)tw_catalogue_close(c);
	assert_int_equal(move(w, &sums), TW_OK);
	assert_int_equal(
	        tw_catalogue_setting_get(w->to, w->to_id, "tracker", w->arena, &text, &at, NULL),
	        TW_OK);
	assert_non_null(text);
	assert_int_equal(
	        tw_catalogue_setting_get(w->to, w->to_id, "digest", w->arena, &text, &at, NULL),
	        TW_OK);
	assert_null(text);
}

#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        WITH_WORLD(test_some_at_a_time),
        WITH_WORLD(test_a_failure_in_between),
        WITH_WORLD(test_counts_at_the_edge),
        WITH_WORLD(test_rules_are_not_mixed),
        WITH_WORLD(test_who_gets_digests_stays_behind),
};

UNIT_TESTS("move", tests)
