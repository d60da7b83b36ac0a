#include "tests/unit/catalogue_plan/plan_postgres.h"
#include "server/catalogue/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/catalogue_fixture.h"

/* What looks after SQLite's file is SQLite's alone. */
static bool is_asked(const char *sql)
{
	static const char *const kinds[] = {"SELECT", "UPDATE", "DELETE", "INSERT", "WITH"};

	if (strstr(sql, "FROM pragma_") && !strstr(sql, "/*|"))
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strncmp(sql, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return false;
}

/* It is parsed and its tables, columns, functions and operators are found; it is not run.  Kinds of
 * values are guessed: where two guesses differ, which the kinds that are told do not, it says so.
 */
static bool takes(struct tw_db *db, const char *sql)
{
	char prepare[PLAN_SQL + 20];
	struct tw_err err = {.msg = ""};
	bool fine;

	assert_true(
	        snprintf(prepare, sizeof prepare, "PREPARE s AS %s", sql) < (int)sizeof prepare);
	fine = tw_db_run(db, prepare, &err) == TW_OK;
	if (fine)
		catalogue_run(db, "DEALLOCATE s");
	fine = fine || strstr(err.msg, "(42P08)");
	if (!fine)
		print_message("%s\n  in %s\n", err.msg, sql);
	return fine;
}

void plan_on_postgres(const char *dir, char (*statements)[PLAN_SQL], size_t n)
{
	struct tw_catalogue *c;
	struct tw_db *db;
	unsigned asked = 0, bad = 0;

	if (!catalogue_on_postgres())
		return;
	c = catalogue_in(dir);
	db = catalogue_beside(dir);
	for (size_t i = 0; i < n; i++) {
		if (!is_asked(statements[i]))
			continue;
		asked++;
		bad += !takes(db, statements[i]);
	}
	tw_db_close(db);
	(void)tw_catalogue_close(c);
	assert_int_equal(bad, 0);
	assert_true(asked > 200);
}
