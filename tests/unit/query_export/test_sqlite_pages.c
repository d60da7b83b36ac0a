/* Databases of random rows, read back by SQLite itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "server/export/sqlite_pages.h"
#include "tests/unit/unit.h"

enum { BIG = 200000 };

static const struct tw_sqlite_table tables[] = {
        {"table", "empty", "CREATE TABLE empty(a)"},
        {"table", "mixed", "CREATE TABLE mixed(id INTEGER PRIMARY KEY, a, b, c)"},
        {"view", "seen", "CREATE VIEW seen AS SELECT a FROM mixed"},
        {"table", "one", "CREATE TABLE one(a)"},
};

static char filler[BIG];
static uint64_t seed;

static void fill(void)
{
	for (size_t i = 0; i < BIG; i++)
		filler[i] = (char)('a' + i % 23);
}

static uint64_t draw(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return seed >> 11;
}

/* A row depends on its number alone, so that both passes and the check make the same. */
static int64_t make_row(uint32_t i, bool large, struct tw_sqlite_value v[4])
{
	seed = i;
	(void)draw();
	v[0] = (struct tw_sqlite_value){.type = TW_SQLITE_NULL};
	v[1] = tw_sqlite_int((int64_t)(draw() << 11) >> draw() % 64);
	v[2] = tw_sqlite_text((struct tw_str){
	        filler + draw() % 100, draw() % (large && draw() % 8 == 0 ? BIG - 100 : 90)});
	v[3] = draw() % 2 ? tw_sqlite_text(TW_STR("")) : v[0];
	return (int64_t)i * (large ? INT64_C(1) << 40 : 3) - 7;
}

static void write_pass(struct tw_sqlite_pages *w, struct tw_buf *out, uint32_t rows, bool large)
{
	const struct tw_sqlite_value one = tw_sqlite_text(TW_STR("only"));
	struct tw_sqlite_value v[4];

	tw_sqlite_begin(w, tables, sizeof tables / sizeof *tables, out);
	tw_sqlite_table_end(w);
	for (uint32_t i = 0; i < rows; i++) {
		int64_t id = make_row(i, large, v);

		tw_sqlite_row(w, id, v, 4);
	}
	tw_sqlite_table_end(w);
	tw_sqlite_table_end(w);
	tw_sqlite_row(w, 1, &one, 1);
	tw_sqlite_table_end(w);
	assert_true(tw_sqlite_end(w));
}

static int64_t number_of(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s;
	int64_t n;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	n = sqlite3_column_int64(s, 0);
	assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
	return n;
}

static void check_rows(sqlite3 *db, uint32_t rows, bool large)
{
	sqlite3_stmt *s;
	struct tw_sqlite_value v[4];

	assert_int_equal(
	        sqlite3_prepare_v2(db, "SELECT id, a, b, c FROM mixed", -1, &s, NULL), SQLITE_OK);
	for (uint32_t i = 0; i < rows; i++) {
		int64_t id = make_row(i, large, v);

		assert_int_equal(sqlite3_step(s), SQLITE_ROW);
		assert_int_equal(sqlite3_column_int64(s, 0), id);
		assert_int_equal(sqlite3_column_int64(s, 1), v[1].number);
		assert_int_equal(sqlite3_column_bytes(s, 2), v[2].text.len);
		if (v[2].text.len)
			assert_memory_equal(
			        sqlite3_column_text(s, 2), v[2].text.ptr, v[2].text.len);
		assert_int_equal(sqlite3_column_type(s, 3),
		        v[3].type == TW_SQLITE_NULL ? SQLITE_NULL : SQLITE_TEXT);
	}
	assert_int_equal(sqlite3_step(s), SQLITE_DONE);
	assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
}

static void check(const struct tw_buf *out, uint32_t rows, bool large)
{
	sqlite3 *db;
	sqlite3_stmt *s;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_deserialize(db, "main", out->data, (sqlite3_int64)out->len,
	                         (sqlite3_int64)out->len, SQLITE_DESERIALIZE_READONLY),
	        SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(s, 0), "ok");
	assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
	check_rows(db, rows, large);
	assert_int_equal(number_of(db, "SELECT count(*) FROM empty"), 0);
	assert_int_equal(number_of(db, "SELECT count(*) FROM one WHERE a='only'"), 1);
	assert_int_equal(number_of(db, "SELECT count(*) FROM seen"), rows);
	if (rows > 5 && !large) /* a search goes down the pages above the leaves */
		assert_int_equal(number_of(db, "SELECT count(*) FROM mixed WHERE id=8"), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_round_trip(void **state)
{
	/* around one leaf, one page of leaves (500 children of some 150 rows), and three levels */
	static const uint32_t sizes[] = {
	        0, 1, 2, 5, 90, 150, 151, 200, 70000, 76000, 80000, 200000};
	struct tw_sqlite_pages *w = calloc(1, sizeof *w);

	(void)state;
	assert_non_null(w);
	fill();
	for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		bool large = i % 2;
		uint32_t rows = large ? sizes[i / 2] % 1000 : sizes[i / 2];
		struct tw_buf out;

		memset(w, 0, sizeof *w);
		tw_buf_init(&out, (size_t)256 << 20);
		write_pass(w, NULL, rows, large);
		write_pass(w, &out, rows, large);
		assert_int_equal(tw_buf_status(&out), TW_OK);
		assert_int_equal(out.len, (size_t)w->counted * TW_SQLITE_PAGE);
		check(&out, rows, large);
		tw_buf_done(&out);
	}
	free(w);
}

/* A file whose second pass has other rows than the first is not passed off as complete. */
static void test_passes_differ(void **state)
{
	const struct tw_sqlite_value one = tw_sqlite_text((struct tw_str){filler, 5000});
	struct tw_sqlite_pages *w = calloc(1, sizeof *w);
	struct tw_buf out;

	(void)state;
	assert_non_null(w);
	tw_buf_init(&out, 1 << 20);
	for (uint32_t pass = 0; pass < 2; pass++) {
		tw_sqlite_begin(w, tables, 1, pass ? &out : NULL);
		for (uint32_t i = 0; i <= 2 * pass; i++)
			tw_sqlite_row(w, i + 1, &one, 1);
		tw_sqlite_table_end(w);
		assert_int_equal(tw_sqlite_end(w), !pass);
	}
	tw_buf_done(&out);
	free(w);
}

/* SQLite's lock page, at 1 GiB, moved to each page of a small file: roots, leaves, pages of values
 * and the one after the last. */
static void test_lock_page(void **state)
{
	enum { ROWS = 60 };
	const int usual = sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, 0);
	struct tw_sqlite_pages *w = calloc(1, sizeof *w);
	uint32_t plain = 0;
	struct tw_buf out;

	(void)state;
	assert_non_null(w);
	assert_int_equal(usual / TW_SQLITE_PAGE + 1, TW_SQLITE_LOCK_PAGE);
	fill();
	tw_buf_init(&out, 64 << 20);
	for (uint32_t lock = 2; plain == 0 || lock <= plain + 1; lock++) {
		memset(w, 0, sizeof *w);
		write_pass(w, NULL, ROWS, true);
		plain = w->pages;
		memset(w, 0, sizeof *w);
		w->lock_page = lock;
		tw_buf_clear(&out);
		write_pass(w, NULL, ROWS, true);
		write_pass(w, &out, ROWS, true);
		assert_int_equal(out.len, (size_t)w->counted * TW_SQLITE_PAGE);
		assert_int_equal(w->counted, plain + (lock <= plain));
		(void)sqlite3_test_control(
		        SQLITE_TESTCTRL_PENDING_BYTE, (lock - 1) * TW_SQLITE_PAGE);
		check(&out, ROWS, true);
		(void)sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, usual);
		for (size_t i = 0; lock <= plain && i < TW_SQLITE_PAGE; i++)
			assert_int_equal(out.data[(size_t)(lock - 1) * TW_SQLITE_PAGE + i], 0);
	}
	/* the pages of several leaves were among them: the root of `mixed` is above them */
	assert_int_equal(out.data[(size_t)(w->roots[1] - 1) * TW_SQLITE_PAGE], 5);
	tw_buf_done(&out);
	free(w);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_passes_differ),
        cmocka_unit_test(test_lock_page),
};

UNIT_TESTS("sqlite_pages", tests)
