/* The defaults of retention, and which traces go when the disk is too full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/file/disk.h"
#include "server/catalogue/access/catalogue_capture.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/retention.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { LIMIT = 20, TRACE_BYTES = 1000 };

struct store {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_db *db;
	struct tw_arena *arena;
};

static void open_store(struct store *s)
{
	memcpy(s->dir, "/tmp/tw-keep-XXXXXX", sizeof "/tmp/tw-keep-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->c = catalogue_in(s->dir);
	s->db = catalogue_connect(s->dir);
	s->arena = tw_arena_new(64 << 20);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void close_store(struct store *s)
{
	tw_db_close(s->db);
	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Adds n decoded traces, named PROJECT0 and so on, the first the oldest. */
static void add_traces(struct store *s, const char *project, int n)
{
	struct tw_caller who = {0};
	struct tw_trace_meta meta = tw_upload_meta_none();
	char app[32], id[TW_ID_BYTES], sql[200];
	bool is_new;

	assert_int_equal(tw_catalogue_project(s->c, project, who.project_id, &is_new, NULL), TW_OK);
	for (int i = 0; i < n; i++) {
		const struct tw_part part = {"trace", "aa", "", TRACE_BYTES};

		(void)snprintf(app, sizeof app, "%s%d", project, i);
		meta.app = app;
		assert_int_equal(tw_catalogue_trace_add(s->c,
		                         &(struct tw_arrival){.caller = &who,
		                                 .key = "",
		                                 .meta = &meta,
		                                 .parts = &part,
		                                 .n_parts = 1},
		                         id, &is_new, NULL),
		        TW_OK);
		(void)snprintf(sql, sizeof sql,
		        "UPDATE trace SET state=2, created_ms=%d WHERE trace_id='%s'", 1000 + i,
		        id);
		catalogue_run(s->db, sql);
	}
}

/* The names of traces to be deleted, separated by blanks. */
static void expect_floor(struct store *s, uint64_t over_bytes, const char *names)
{
	struct tw_project_row *projects;
	struct tw_expiry *due;
	char text[400] = "";
	size_t n_projects, n;

	assert_int_equal(
	        tw_catalogue_projects(s->c, s->arena, &projects, &n_projects, NULL), TW_OK);
	assert_int_equal(tw_retention_for_disk(s->c, projects, n_projects, over_bytes, LIMIT,
	                         s->arena, &due, &n, NULL),
	        TW_OK);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(due[i].why, TW_EXPIRY_DISK);
		(void)strncat(text, due[i].name, 40);
		(void)strcat(text, i + 1 < n ? " " : "");
	}
	assert_string_equal(text, names);
}

static void test_the_largest_project_gives_its_oldest(void **state)
{
	struct store s;

	(void)state;
	open_store(&s);
	add_traces(&s, "a", 5);
	add_traces(&s, "b", 2);
	expect_floor(&s, 0, "");
	expect_floor(&s, 1, "a0");
	expect_floor(&s, 3000, "a0 a1 a2");
	expect_floor(&s, 5000, "a0 a1 a2 a3 b0"); /* a and b are equal before the last two */
	expect_floor(&s, 7000, "a0 a1 a2 a3 b0 a4 b1");
	expect_floor(&s, 7001, ""); /* other files fill the disk */
	close_store(&s);
}

static void test_what_is_kept_stays(void **state)
{
	struct store s;

	(void)state;
	open_store(&s);
	add_traces(&s, "a", 9);
	catalogue_run(s.db, "UPDATE trace SET pinned=1 WHERE app='a0'");
	catalogue_run(s.db, "UPDATE trace SET exempt_reason='regression' WHERE app='a1'");
	catalogue_run(
	        s.db, "UPDATE trace SET state=0 WHERE app='a2' OR app='a3'"); /* not decoded */
	catalogue_run(s.db, "UPDATE job SET claimed=1 WHERE trace_id=(SELECT trace_id FROM trace"
	                    " WHERE app='a3')"); /* being decoded */
	catalogue_run(s.db, "UPDATE trace SET title='t' WHERE app='a4'");
	catalogue_run(s.db, "UPDATE trace SET anr='g' WHERE app='a5' OR app='a6'");
	expect_floor(&s, 9000, "a6 a7 a8"); /* a5 is the first of its group */
	close_store(&s);
}

static void test_a_project_has_defaults(void **state)
{
	struct tw_retention r;
	json_t *none = json_pack("{s:n, s:i}", "max_age_days", "uploads_max_age_days", 0);
	struct store s;

	(void)state;
	open_store(&s);
	assert_int_equal(tw_retention_of(s.c, "p", &r, NULL), TW_OK);
	assert_int_equal(r.uploads_max_age_days, 14);
	assert_int_equal(r.max_age_days, 90);
	assert_true(r.keep_annotated && r.keep_first_anr);
	assert_int_equal(tw_retention_read(none, &r, NULL), TW_OK);
	assert_int_equal(r.uploads_max_age_days, 0); /* never */
	assert_int_equal(r.max_age_days, 0);
	json_decref(none);
	close_store(&s);
}

static void test_how_much_is_too_much(void **state)
{
	(void)state;
	assert_int_equal(tw_disk_bytes_above(&(struct tw_disk){1000, 800}, 80), 0);
	assert_int_equal(tw_disk_bytes_above(&(struct tw_disk){1000, 801}, 80), 1);
	assert_int_equal(tw_disk_bytes_above(&(struct tw_disk){UINT64_MAX, UINT64_MAX}, 100), 0);
	assert_int_equal(tw_disk_bytes_above(&(struct tw_disk){0, 0}, 80), 0);
}

/* --- the clock --- */

static const int64_t day = TW_DAY_MS, hour = TW_DAY_MS / 24, start = 20000 * TW_DAY_MS;

static struct tw_age_clock *open_clock(struct store *s, int64_t mono_ms)
{
	struct tw_age_clock *c;

	assert_int_equal(tw_age_clock_open(s->dir, mono_ms, &c, NULL), TW_OK);
	return c;
}

static void test_a_jump_of_the_clock(void **state)
{
	const int64_t far = start + 800 * day;
	struct tw_age_clock *c;
	struct store s;

	(void)state;
	open_store(&s);
	c = open_clock(&s, 0);
	assert_int_equal(tw_age_clock_at(c, start, 0), start);
	assert_int_equal(tw_age_clock_at(c, start + 20 * hour, hour), start + 20 * hour);
	assert_int_equal(tw_age_clock_at(c, start + hour, hour), start + hour);
	assert_int_equal(tw_age_clock_at(c, far, 25 * hour), start + 25 * hour);
	assert_int_equal(tw_age_clock_at(c, far, 26 * hour), start + 26 * hour);
	assert_int_equal(tw_age_clock_at(c, start, 26 * hour), start);
	assert_int_equal(tw_age_clock_at(c, far, 27 * hour), start + hour);
	(void)tw_age_clock_close(c);

	c = open_clock(&s, 500 * day); /* the machine has booted */
	assert_int_equal(tw_age_clock_at(c, far, 500 * day), start + hour);
	assert_int_equal(tw_age_clock_at(c, far + day, 501 * day), far + day);
	assert_int_equal(tw_age_clock_at(c, start, 501 * day), start);
	(void)tw_age_clock_close(c);
	close_store(&s);
}

/* After three days off, a server that is stopped for an hour each night. */
static void test_uptime_counts_over_restarts(void **state)
{
	struct tw_age_clock *c;
	struct store s;

	(void)state;
	open_store(&s);
	c = open_clock(&s, 0);
	assert_int_equal(tw_age_clock_at(c, start, 0), start);
	(void)tw_age_clock_close(c);
	c = open_clock(&s, 0);
	assert_int_equal(tw_age_clock_at(c, start + 3 * day, 0), start);
	assert_int_equal(
	        tw_age_clock_at(c, start + 3 * day + 23 * hour, 23 * hour), start + 23 * hour);
	(void)tw_age_clock_close(c);
	c = open_clock(&s, 0);
	assert_int_equal(tw_age_clock_at(c, start + 4 * day, 0), start + 23 * hour);
	assert_int_equal(tw_age_clock_at(c, start + 4 * day + hour, hour), start + 4 * day + hour);
	(void)tw_age_clock_close(c);
	close_store(&s);
}

/* As a power failure may leave it. */
static void test_an_empty_file_deletes_nothing(void **state)
{
	struct tw_age_clock *c;
	struct store s;
	char path[128];
	FILE *f;

	(void)state;
	open_store(&s);
	(void)snprintf(path, sizeof path, "%s/retention.time", s.dir);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	c = open_clock(&s, 0);
	assert_int_equal(tw_age_clock_at(c, start, 0), 0);
	(void)tw_age_clock_close(c);
	c = open_clock(&s, 0);
	assert_int_equal(tw_age_clock_at(c, start, hour), hour);
	assert_int_equal(tw_age_clock_at(c, start + day, hour + day), start + day);
	(void)tw_age_clock_close(c);
	close_store(&s);
}

enum { DEVICES = 9000, DEVICES_AT_ONCE = 2000 };

/* Uploads wait for a transaction, so none deletes all devices of a day. */
static void test_devices_are_forgotten_in_batches(void **state)
{
	struct store s;
	uint64_t before;

	(void)state;
	open_store(&s);
	catalogue_run(s.db,
	        "INSERT INTO capture_device(day,project_id,rule,device) WITH RECURSIVE n(i) AS"
	        " (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<9001) SELECT CASE WHEN i>9000"
	        " THEN 21 ELSE 20 END,'p','r',i FROM n");
	before = tw_cat_statements();
	assert_int_equal(tw_catalogue_capture_forget(s.c, 21, NULL), TW_OK);
	assert_in_range(tw_cat_statements() - before, DEVICES / DEVICES_AT_ONCE, DEVICES);
	assert_int_equal(catalogue_number(s.db, "SELECT sum(day) FROM capture_device"), 21);
	close_store(&s);
}

enum { ROWS_AT_ONCE = 2000 };

/* Likewise for the rows of a deleted project, whatever the number of tables. */
static void test_rows_of_a_project_go_in_batches(void **state)
{
	static const char rows[] = "SELECT (SELECT count(*) FROM digest_made)+(SELECT count(*) FROM"
	                           " anr_day)+(SELECT count(*) FROM capture_day)";
	struct store s;
	bool any = true;

	(void)state;
	open_store(&s);
#define NUMBERED                                                                                   \
	" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2500) SELECT "
	catalogue_run(s.db, "INSERT INTO digest_made(project_id,until_ms,since_ms,made_ms)" NUMBERED
	                    "'p',i,i,i FROM n");
	catalogue_run(s.db, "INSERT INTO anr_day(project_id,day)" NUMBERED "'p',i FROM n");
	catalogue_run(s.db, "INSERT INTO capture_day(project_id,rule,day,traces,devices)" NUMBERED
	                    "'p','r',i,1,1 FROM n");
#undef NUMBERED
	while (any) {
		const int64_t before = catalogue_number(s.db, rows);

		assert_int_equal(tw_catalogue_project_rows_delete(s.c, "p", &any, NULL), TW_OK);
		assert_in_range(before - catalogue_number(s.db, rows), 0, ROWS_AT_ONCE);
	}
	assert_int_equal(catalogue_number(s.db, rows), 0);
	close_store(&s);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_largest_project_gives_its_oldest),
        cmocka_unit_test(test_what_is_kept_stays),
        cmocka_unit_test(test_a_project_has_defaults),
        cmocka_unit_test(test_how_much_is_too_much),
        cmocka_unit_test(test_a_jump_of_the_clock),
        cmocka_unit_test(test_uptime_counts_over_restarts),
        cmocka_unit_test(test_an_empty_file_deletes_nothing),
        cmocka_unit_test(test_devices_are_forgotten_in_batches),
        cmocka_unit_test(test_rows_of_a_project_go_in_batches),
};

UNIT_TESTS("retention", tests)
