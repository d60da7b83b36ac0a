/* Unit tests of read connections: one moment, numbers, and one that cannot be ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

static char dir[40];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	memcpy(dir, "/tmp/tw-reader-XXXXXX", sizeof "/tmp/tw-reader-XXXXXX");
	assert_non_null(mkdtemp(dir));
	*state = catalogue_in(dir);
	return 0;
}

static int teardown(void **state)
{
	(void)tw_catalogue_close(*state);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static void add_project(struct tw_catalogue *c)
{
	char id[TW_ID_BYTES];
	bool is_new;

	assert_int_equal(tw_catalogue_project(c, "later", id, &is_new, NULL), TW_OK);
}

static int64_t projects(struct tw_db *db)
{
	int64_t n = -1;

	assert_int_equal(tw_cat_get_int(db, &n, NULL, "SELECT count(*) FROM project", ""), TW_OK);
	return n;
}

static void test_sees_one_moment(void **state)
{
	struct tw_catalogue *c = *state;
	struct tw_db *db;
	int64_t n = -1, before;

	assert_int_equal(tw_cat_snapshot(c, &db, NULL), TW_OK);
	before = projects(db);
	add_project(c);
	assert_int_equal(projects(db), before);
	tw_cat_snapshot_done(c, db);
	assert_int_equal(tw_cat_read_int(c, &n, NULL, "SELECT count(*) FROM project WHERE name=?",
	                         "t", "later"),
	        TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_cat_read_int(c, &n, NULL, "SELECT nothing", ""), TW_BUG);
	assert_int_equal(c->n_out, 0);
}

static enum tw_status run_nothing(struct tw_db *db, const char *sql, struct tw_err *err)
{
	(void)db, (void)sql;
	return tw_oom(err);
}

static enum tw_status prepare_nothing(
        struct tw_db *db, const char *sql, struct tw_stmt **ret, struct tw_err *err)
{
	(void)db, (void)sql, (void)ret;
	return tw_oom(err);
}

/* If COMMIT and ROLLBACK both fail, the connection with its snapshot is not reused. */
static void test_one_that_does_not_end_is_closed(void **state)
{
	struct tw_catalogue *c = *state;
	struct tw_db_engine lacking;
	struct tw_db *db;
	int64_t before;

	assert_int_equal(tw_cat_snapshot(c, &db, NULL), TW_OK);
	before = projects(db);
	lacking = *db->engine;
	lacking.run = run_nothing;
	lacking.prepare = prepare_nothing;
	db->engine = &lacking;
	tw_cat_snapshot_done(c, db);
	assert_int_equal(c->n_idle, 0);
	assert_int_equal(c->n_out, 0);
	add_project(c);
	assert_int_equal(tw_cat_snapshot(c, &db, NULL), TW_OK);
	assert_int_equal(projects(db), before + 1);
	tw_cat_snapshot_done(c, db);
	assert_int_equal(c->n_idle, 1);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sees_one_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_does_not_end_is_closed, setup, teardown),
};

UNIT_TESTS("reader", tests)
