/* One statement for many rows, on either engine. */
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

#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { MANY = 10000 }; /* more than one statement takes */

static const char insert[] =
        "INSERT INTO rollup_post(project_id,cell_id,slot,pack,data) SELECT c1,c2,c3,c4,c5"
        " FROM {rows}";
static const char update[] = "UPDATE rollup_post SET data=r.c5 FROM {rows} WHERE"
                             " rollup_post.project_id=r.c1 AND rollup_post.cell_id=r.c2 AND"
                             " rollup_post.slot=r.c3 AND rollup_post.pack=r.c4";
static const char remove_sql[] =
        "DELETE FROM rollup_post WHERE (project_id,cell_id,slot,pack) IN (SELECT c1,c2,c3,c4"
        " FROM {rows} WHERE r.c5=r.c5)";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static const char read_back[] =
        "SELECT p.cell_id, p.data FROM {rows} CROSS JOIN rollup_post p WHERE p.project_id=r.c1"
        " AND p.cell_id=r.c2 AND p.slot=r.c3 AND p.pack=r.c4 AND r.c5<>p.data";

struct work {
	const char *sql, *project;
	int64_t from, to;
	struct tw_str data;
	bool fails;
	int64_t taken, sum; /* rows of the result, and their numbers */
	size_t bytes;
	int64_t most;
	int64_t changed;
	uint64_t statements;
	unsigned runs;
};

static enum tw_status take(void *arg, const struct tw_cat_query *q, struct tw_err *err)
{
	struct work *k = arg;

	if (k->taken == k->most)
		return tw_fail(err, TW_TOO_LARGE, "enough");
	k->taken++;
	k->sum += tw_cat_int(q, 0);
	k->bytes += tw_cat_blob(q, 1).len;
	return TW_OK;
}

static enum tw_status run(struct tw_db *w, void *arg, struct tw_err *err)
{
	struct work *k = arg;
	struct tw_cat_rows rows = {.db = w, .sql = k->sql, .types = "tiiib"};
	const uint64_t before = tw_cat_statements();
	enum tw_status st = TW_OK;

	k->runs++;
	if (k->most) {
		rows.take = take;
		rows.arg = k;
	}
	for (int64_t i = k->from; st == TW_OK && i < k->to; i++)
		st = tw_cat_rows_add(&rows, err, k->project, i, INT64_MIN, INT64_MAX - i, &k->data);
	if (k->fails)
		st = TW_CONFLICT;
	st = tw_cat_rows_end(&rows, st, err);
	k->changed = rows.changed;
	k->statements = tw_cat_statements() - before;
	return st;
}

static void work(struct tw_catalogue *c, struct work *k, enum tw_status want)
{
	struct tw_err err = {.msg = ""};

	k->runs = 0;
	if (tw_cat_transact(c, TW_SUBJECT_FLEET, run, k, &err) != want)
		fail_msg("%s: %s", k->sql, err.msg);
	assert_int_equal(k->runs, 1);
}

static int64_t count(struct tw_catalogue *c, const char *project, const struct tw_str *data)
{
	int64_t n = -1;

	assert_int_equal(tw_cat_read_int(c, &n, NULL,
	                         "SELECT count(*) FROM rollup_post WHERE project_id=? AND slot=?"
	                         " AND pack+cell_id=? AND data=?",
	                         "tiib", project, INT64_MIN, INT64_MAX, data),
	        TW_OK);
	return n;
}

static void test_rows(void **state)
{
	char dir[] = "/tmp/tw-rows-XXXXXX";
	const char odd[] = {'\0', '"', '{', '\\', (char)0xFF, ','};
	const struct tw_str none = {"", 0}, bytes = {odd, sizeof odd};
	/* text of an upload may be anything; PostgreSQL stores only valid UTF-8 */
	const char *const project = "p\"{},\\ NULL ' \xE2\x82\xAC";
	struct work k = {.sql = insert, .project = project, .to = MANY, .data = bytes};
	struct tw_catalogue *c;

	(void)state;
	assert_non_null(mkdtemp(dir));
	c = catalogue_in(dir);
	work(c, &k, TW_OK);
	assert_int_equal(k.changed, MANY);
	assert_int_equal(k.statements, tw_cat_is_sqlite(c) ? MANY : 3);
	assert_int_equal(count(c, project, &bytes), MANY);

	k = (struct work){.sql = read_back, .project = project, .from = 3, .to = MANY + 3};
	k.most = MANY;
	work(c, &k, TW_OK); /* three of these rows are not there */
	assert_int_equal(k.taken, MANY - 3);
	assert_int_equal(k.sum, (int64_t)MANY * (MANY - 1) / 2 - 3);
	assert_int_equal(k.bytes, (MANY - 3) * sizeof odd);
	assert_int_equal(k.statements, tw_cat_is_sqlite(c) ? MANY : 3);
	k = (struct work){.sql = read_back, .project = project, .to = MANY, .most = 5};
	work(c, &k, TW_TOO_LARGE);
	assert_int_equal(k.taken, 5);

	k = (struct work){.sql = update, .project = project, .from = MANY - 3, .to = MANY + 3};
	k.data = none;
	work(c, &k, TW_OK); /* three of these rows are not there */
	assert_int_equal(k.changed, 3);
	assert_int_equal(count(c, project, &none), 3);

	k = (struct work){.sql = remove_sql, .project = project, .to = 10, .data = bytes};
	k.fails = true;
	work(c, &k, TW_CONFLICT); /* nothing is left of it */
	assert_int_equal(count(c, project, &bytes), MANY - 3);
	k.fails = false;
	work(c, &k, TW_OK);
	assert_int_equal(k.changed, 10);
	assert_int_equal(count(c, project, &bytes), MANY - 13);

	k = (struct work){.sql = insert, .project = "bad \xFF utf-8", .to = 2, .data = none};
	work(c, &k, TW_OK);
	assert_int_equal(k.changed, 2);
	k.to = 0;
	work(c, &k, TW_OK); /* no row: no statement */
	assert_int_equal(k.statements, 0);
	(void)tw_catalogue_close(c);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A plan that compares each row with the list would otherwise parse its text for each row. */
static void test_list_is_parsed_once(void **state)
{
	char dir[] = "/tmp/tw-rows-XXXXXX";
	struct tw_catalogue *c;
	struct tw_db *db;
	struct tw_cat_query q;
	int lists = 0;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	assert_non_null(mkdtemp(dir));
	c = catalogue_in(dir);
	db = catalogue_connect(dir);
	assert_int_equal(tw_cat_query(&q, db, NULL,
	                         "EXPLAIN SELECT pack FROM rollup_post WHERE cell_id" TW_CAT_AMONG(
	                                 "?1") " AND project_id" TW_CAT_AMONG_TEXTS("?2"),
	                         "tt", "{7,8}", "{a,b}"),
	        TW_OK);
	while (tw_cat_row(&q)) {
		lists += strstr(tw_cat_str(&q, 0), "cell_id = ANY ('{7,8}'::bigint[])") != NULL;
		lists += strstr(tw_cat_str(&q, 0), "project_id = ANY ('{a,b}'::text[])") != NULL;
	}
	assert_int_equal(tw_cat_close(&q, NULL), TW_OK);
	assert_int_equal(lists, 2);
	tw_db_close(db);
	(void)tw_catalogue_close(c);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_list_is_parsed_once),
};

UNIT_TESTS("catalogue_rows", tests)
