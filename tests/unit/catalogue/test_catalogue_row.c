/* Rows as tables of fields: statements, values, JSON. */
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

#include "decoder/base/buf.h"
#include "server/base/clock.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum level { LOW, HIGH };
static const char *const level_words[] = {"low", "high", NULL};

struct inner {
	int64_t ns;
	bool fits;
};
struct outer {
	const char *name, *list;
	enum level level;
	int signal;
	uint32_t small;
	struct inner inner;
	double share;
	int64_t day;
};

static const struct tw_field inner_list[] = {
        TW_FIELD(struct inner, ns, "ns", "ns", .shape = TW_SHAPE_OR_NULL),
        TW_FIELD(struct inner, fits, "fits", "fits"),
};
static const struct tw_fields inner_fields = TW_FIELDS(inner_list);
static const struct tw_field outer_list[] = {
        TW_FIELD(struct outer, name, "name", "title", .shape = TW_SHAPE_OR_NULL),
        TW_FIELD(struct outer, list, "list", "list", .shape = TW_SHAPE_LIST),
        TW_FIELD(struct outer, level, "level", "level", .names = level_words),
        TW_FIELD(struct outer, signal, "signal", "signal"),
        TW_FIELD(struct outer, small, "small", NULL),
        TW_FIELD_OF_GROUP(struct outer, inner, &inner_fields, "inner"),
        TW_FIELD(struct outer, share, "share_ppm", "share", .scale = 1e6),
        TW_FIELD(struct outer, day, "day", "day_ms", .shape = TW_SHAPE_DAY),
};
static const struct tw_fields outer_fields = TW_FIELDS(outer_list);

static void assert_statement(const char *sql, size_t own, const char *expected)
{
	struct tw_buf text;

	tw_buf_init(&text, 4096);
	assert_int_equal(tw_row_statement(sql, &outer_fields, own, &text, NULL), TW_OK);
	assert_string_equal((const char *)text.data, expected);
	tw_buf_done(&text);
}

static void test_placeholders(void **state)
{
	(void)state;
	assert_statement("SELECT {columns},x FROM t WHERE j='{}'", 0,
	        "SELECT name,list,level,signal,small,ns,fits,share_ppm,day,x FROM t WHERE j='{}'");
	assert_statement("INSERT INTO t(id,{columns}) VALUES(?1,{values})", 1,
	        "INSERT INTO t(id,name,list,level,signal,small,ns,fits,share_ppm,day)"
	        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)");
	assert_statement("SET {sets}", 2,
	        "SET name=?3,list=?4,level=?5,signal=?6,small=?7,ns=?8,fits=?9,share_ppm=?10,"
	        "day=?11");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void write_row(struct tw_catalogue *c, const char *id, const struct outer *o)
{
	struct tw_db *w = tw_cat_writer_take(c);

	assert_int_equal(tw_cat_write(w, &(struct tw_cat_written){&outer_fields, o, NULL}, NULL,
	                         "INSERT INTO row_test(id,{columns}) VALUES(?1,{values})", "t", id),
	        TW_OK);
	tw_cat_writer_give(c, w);
}

/* A row is read as it was written; a missing text is empty. */
static void test_round_trip(void **state)
{
	char dir[] = "/tmp/tw-row-XXXXXX";
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_catalogue *c;
	struct tw_db *db;
	const struct outer full = {"a", "[1]", HIGH, -6, 4000000000U, {INT64_MIN, true}, -0.25, 3};
	struct tw_cat_list l = {
	        .arena = a, .limit = 9, .row_bytes = sizeof full, .fields = &outer_fields};
	const struct outer *rows;

	(void)state;
	assert_non_null(mkdtemp(dir));
	c = catalogue_in(dir);
	db = catalogue_connect(dir);
	catalogue_run(db, "CREATE TABLE row_test(id TEXT PRIMARY KEY, name TEXT, list TEXT,"
	                  " level BIGINT, signal BIGINT, small BIGINT, ns BIGINT, fits BIGINT,"
	                  " share_ppm BIGINT, day BIGINT)");
	tw_db_close(db);
	write_row(c, "1", &full);
	write_row(c, "2", &(struct outer){.name = NULL});
	assert_int_equal(
	        tw_cat_list(c, &l, NULL, "SELECT {columns} FROM row_test ORDER BY id", ""), TW_OK);
	rows = l.rows;
	assert_int_equal(l.n, 2);
	assert_string_equal(rows[0].name, "a");
	assert_string_equal(rows[0].list, "[1]");
	assert_int_equal(rows[0].level, HIGH);
	assert_int_equal(rows[0].signal, -6);
	assert_int_equal(rows[0].small, 4000000000U);
	assert_int_equal(rows[0].inner.ns, INT64_MIN);
	assert_true(rows[0].inner.fits);
	assert_true(rows[0].share == -0.25);
	assert_int_equal(rows[0].day, 3);
	assert_string_equal(rows[1].name, "");
	assert_int_equal(rows[1].inner.ns, 0);
	(void)tw_catalogue_close(c);
	tw_arena_free(a);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void assert_json(const struct outer *o, const char *expected)
{
	json_t *j = tw_row_json(&outer_fields, o);
	char *text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);

	assert_string_equal(text, expected);
	free(text);
	json_decref(j);
}

static void test_json(void **state)
{
	(void)state;
	assert_json(&(struct outer){"a", "[1]", HIGH, -6, 1, {-1, true}, 0.5, 2},
	        "{\"day_ms\":172800000,\"inner\":{\"fits\":true,\"ns\":null},\"level\":\"high\","
	        "\"list\":[1],\"share\":0.5,\"signal\":-6,\"title\":\"a\"}");
	/* a value without a word, and texts that are not there */
	assert_json(&(struct outer){.level = (enum level)7},
	        "{\"day_ms\":0,\"inner\":{\"fits\":false,\"ns\":0},\"level\":\"\",\"list\":[],"
	        "\"share\":0.0,\"signal\":0,\"title\":null}");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placeholders),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_json),
};

UNIT_TESTS("catalogue_row", tests)
