#include "tests/unit/catalogue_plan/plan_postgres.h"
#include "server/catalogue/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/catalogue_internal.h"
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

/* --- plans over large tables --- */

/* Rows with values of their own in each column, all of one project; states and flags are the same
 * in all.  References are not checked. */
static const char fill[] =
        "DO $do$ DECLARE t text; c text; v text; BEGIN"
        " SET session_replication_role=replica;"
        " FOR t IN SELECT table_name FROM information_schema.tables WHERE"
        " table_schema=current_schema() AND table_name NOT IN ('project','job','quarantine',"
        "'catalogue_identity','fleet_engine','schema_version') LOOP"
        " SELECT string_agg(quote_ident(column_name),','), string_agg(CASE"
        " WHEN column_name='project_id' THEN $v$'p'$v$"
        " WHEN data_type='bytea' THEN $v$''::bytea$v$"
        " WHEN data_type='bigint' AND (column_name LIKE '%%state' OR column_name IN"
        " ('detected','named','pinned')) THEN '2'"
        " WHEN data_type='bigint' THEN 'i'"
        " WHEN column_name IN ('app','scenario','os','device_class','part','format') THEN"
        " $v$'x'||mod(i,7)$v$"
        " ELSE $v$'x'||i$v$ END,',') INTO c, v FROM information_schema.columns"
        " WHERE table_schema=current_schema() AND table_name=t;"
        " BEGIN EXECUTE 'INSERT INTO '||quote_ident(t)||'('||c||') SELECT '||v||"
        "' FROM generate_series(%ld,%ld) i WHERE mod(i,'||CASE WHEN t IN ('trace','part')"
        " THEN 1 ELSE 20 END||')=0 ON CONFLICT DO NOTHING';"
        " EXCEPTION WHEN OTHERS THEN NULL; END;"
        " END LOOP; END $do$";

enum { FILLED_AT_ONCE = 20000 }; /* a statement has limits */

static int64_t number_of(struct tw_db *db, const char *sql, const char *text)
{
	int64_t n = 0;

	assert_int_equal(tw_cat_first_int(db, &n, NULL, sql, "t", text), TW_OK);
	return n;
}

static int64_t rows_of(struct tw_db *db, const char *table)
{
	return number_of(db,
	        "SELECT coalesce(max(reltuples),0)::bigint FROM pg_class WHERE oid=to_regclass(?)",
	        table);
}

/* Prints each scan of a table that grows with `rows` traces, in the plan for any values; their
 * number. */
static unsigned explain(struct tw_db *db, const char *sql, int64_t rows)
{
	char prepare[PLAN_SQL + 20], execute[1024] = "EXPLAIN EXECUTE s";
	struct tw_cat_query q;
	unsigned bad = 0;
	int64_t n;

	(void)snprintf(prepare, sizeof prepare, "PREPARE s AS %s", sql);
	if (tw_db_run(db, prepare, NULL) != TW_OK) /* it needs the types of its values */
		return 0;
	n = number_of(db,
	        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name=?",
	        "s");
	for (int64_t i = 0; i < n; i++)
		(void)strcat(execute, i ? ",NULL" : "(NULL");
	(void)strcat(execute, n ? ")" : "");
	assert_int_equal(tw_cat_query(&q, db, NULL, execute, ""), TW_OK);
	while (tw_cat_row(&q)) {
		const char *at = strstr(tw_cat_str(&q, 0), "Seq Scan on ");
		char table[64];

		if (!at || sscanf(at, "Seq Scan on %63[a-z_]", table) != 1 ||
		        rows_of(db, table) < rows / 40)
			continue;
		print_message("%s\n  in %s\n", at, sql);
		bad++;
	}
	assert_int_equal(tw_cat_close(&q, NULL), TW_OK);
	catalogue_run(db, "DEALLOCATE s");
	return bad;
}

/* PLAN_ROWS: the number of traces; a million takes minutes. */
static void explain_all(struct tw_db *db, char (*statements)[PLAN_SQL], size_t n, const char *rows)
{
	char sql[sizeof fill + 32];
	unsigned bad = 0, large = 0;

	for (long at = 1; at <= strtol(rows, NULL, 10); at += FILLED_AT_ONCE) {
		(void)snprintf(sql, sizeof sql, fill, at, at + FILLED_AT_ONCE - 1);
		catalogue_run(db, sql);
	}
	catalogue_run(db, "ANALYZE");
	catalogue_run(db, "SET plan_cache_mode=force_generic_plan");
	large = (unsigned)number_of(db,
	        "SELECT count(*) FROM pg_class WHERE relnamespace=current_schema()::regnamespace"
	        " AND relkind='r' AND reltuples>1000 AND ?<>''",
	        "x");
	for (size_t i = 0; i < n; i++)
		if (is_asked(statements[i]))
			bad += explain(db, statements[i], strtol(rows, NULL, 10));
	print_message("%u scans of %u tables with %s traces\n", bad, large, rows);
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
	if (getenv("PLAN_ROWS"))
		explain_all(db, statements, n, getenv("PLAN_ROWS"));
	tw_db_close(db);
	(void)tw_catalogue_close(c);
	assert_int_equal(bad, 0);
	assert_true(asked > 200);
}
