/* Statements in PostgreSQL's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/db/catalogue_db.h"
#include "server/db/catalogue_postgres.h"
#include "server/db/catalogue_postgres_dialect.h"
#include "tests/unit/unit.h"

static void becomes(const char *sql, const char *wanted, int values)
{
	struct tw_buf out;
	int n = -1;

	tw_buf_init(&out, 4096);
	assert_int_equal(tw_postgres_sql(sql, &out, &n), TW_OK);
	assert_string_equal((const char *)out.data, wanted);
	assert_int_equal(n, values);
	tw_buf_done(&out);
}

static void test_values(void **state)
{
	(void)state;
	becomes("SELECT 1", "SELECT 1", 0);
	becomes("a=? AND b=?", "a=$1 AND b=$2", 2);
	becomes("a=?2 AND b=?1 AND c=?2", "a=$2 AND b=$1 AND c=$2", 2);
	becomes("VALUES(?,?,?12,?12)", "VALUES($1,$2,$12,$12)", 12);
	becomes("a=? AND b=? AND c=?1 AND d=?", "a=$1 AND b=$2 AND c=$1 AND d=$3",
	        3); /* as SQLite counts */
	becomes("'?' \"?\" ?", "'?' \"?\" $1", 1);
	becomes("'it''s ?' ?", "'it''s ?' $1", 1);
	becomes("'open ?", "'open ?", 0);
}

static void test_words(void **state)
{
	(void)state;
	becomes("FROM t INDEXED BY i WHERE x=?", "FROM t  WHERE x=$1", 1);
	becomes("a CROSS JOIN b ON c", "a JOIN b ON c", 0);
	becomes("a CROSS JOIN b WHERE c", "a CROSS JOIN b WHERE c", 0);
	becomes("a CROSS JOIN (SELECT 1 FROM d WHERE e) b ON c CROSS JOIN f",
	        "a JOIN (SELECT 1 FROM d WHERE e) b ON c CROSS JOIN f", 0);
	becomes("max(a) min(b)", "max(a) min(b)", 0);
	becomes("max(a,b)+min(?,f(1,2))", "greatest(a,b)+least($1,f(1,2))", 1);
	becomes("max(f(a,b)) max(max(a,b))", "max(f(a,b)) max(greatest(a,b))", 0);
	becomes("max(',') max(a||'(',b)", "max(',') greatest(a||'(',b)", 0);
	becomes("climax(a,b) xmin(a,b)", "climax(a,b) xmin(a,b)", 0);
	becomes("x'' x'0aff' ax''", "'\\x'::bytea '\\x0aff'::bytea ax''", 0);
	becomes("a LIKE ? ESCAPE '\\'", "a ILIKE $1 ESCAPE '\\'", 1);
	becomes("a||char(10)", "a||chr(10)", 0);
	becomes("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 0);
	becomes("BEGIN IMMEDIATE", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", 0);
	becomes("COMMIT", "COMMIT", 0);
}

static void test_either(void **state)
{
	(void)state;
	becomes("a " TW_EITHER("sqlite(?)", "pg(?)") " b=?", "a pg($1) b=$2", 2);
	becomes(TW_EITHER("", ", id"), ", id", 0);
	becomes("max(" TW_EITHER("a||min(b,1)", "least(b,1)||a") ")", "max(least(b,1)||a)", 0);
	becomes("/*{*/ never ended", "", 0);
}

static void test_addresses(void **state)
{
	struct tw_db *db = NULL;
	struct tw_err err = {.msg = ""};

	(void)state;
	assert_true(tw_db_is_postgres("postgres://a@b/c"));
	assert_true(tw_db_is_postgres("postgresql://a@b/c"));
	assert_false(tw_db_is_postgres("/data/catalogue.db"));
	assert_int_equal(tw_db_postgres_open("postgres://a:b@c/d", &db, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_db_postgres_open("postgres://[", &db, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_db_postgres_open("postgres://a@/b?host=/nowhere", &db, &err), TW_BUSY);
	assert_null(db);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_either),
        cmocka_unit_test(test_addresses),
};

UNIT_TESTS("postgres_dialect", tests)
