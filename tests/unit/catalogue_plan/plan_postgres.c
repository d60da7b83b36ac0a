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
#include "server/db/catalogue_postgres_dialect.h"
#include "server/db/catalogue_postgres_int.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/catalogue_plan/plan_literals.h"

/* Whether PostgreSQL runs the statement; SQLite's maintenance statements are excluded. */
static bool is_asked(const char *sql)
{
	struct tw_buf text;
	bool asked;
	int n;

	tw_buf_init(&text, 2 * PLAN_SQL);
	assert_int_equal(tw_postgres_sql(sql, &text, &n), TW_OK);
	sql = (const char *)text.data;
	asked = plan_is_statement(sql) && !strstr(sql, "FROM pragma_") &&
	        !strstr(sql, "FROM sqlite_") &&
	        !strstr(sql, "json_valid(") /* of a check of SQLite's files */;
	tw_buf_done(&text);
	return asked;
}

/* Checks by PREPARE, which resolves names and types without running.  Errors about undetermined or
 * ambiguous parameter types are ignored. */
static bool takes(struct tw_db *db, const char *sql, struct tw_err *err)
{
	char prepare[PLAN_SQL + 20];
	bool fine;

	assert_true(
	        snprintf(prepare, sizeof prepare, "PREPARE s AS %s", sql) < (int)sizeof prepare);
	fine = tw_db_run(db, prepare, err) == TW_OK;
	if (fine)
		catalogue_run(db, "DEALLOCATE s");
	return fine || strstr(err->msg, "(42P08)") || strstr(err->msg, "(42P18)");
}

bool plan_postgres_takes(struct tw_db *db, const char *sql)
{
	struct tw_err err = {.msg = ""};

	return is_asked(sql) && takes(db, sql, &err);
}

/* --- plans over large tables --- */

/* Tables whose rows do not increase with the number of traces: as many as there are people, keys,
 * hooks, days or open tasks.  All others are filled. */
#define BOUNDED                                                                                    \
	"'project','api_key','user','member','identity','session','signin_link','signin_used',"    \
	"'signin_try','audit_last','project_setting','ruleset','saved_filter','mapping_job',"      \
	"'build_rename','resumable','resumable_piece','file_drop','quarantine','job',"             \
	"'count_delta','capture_day','postponed','rollup_tree_later','fleet_engine',"              \
	"'fleet_erase','regression','regression_history','anr_day','anr_state','webhook',"         \
	"'digest_made','alert_rule','alert','ticket','catalogue_schema','catalogue_identity',"     \
	"'catalogue_lead'"

/* Rows with values of their own in each column, all of one project.  States and flags are those of
 * a trace whose work is done.  References are not checked. */
static const char fill[] =
        "DO $do$ DECLARE t text; c text; v text; BEGIN"
        " SET session_replication_role=replica;"
        " FOR t IN SELECT table_name FROM information_schema.tables WHERE"
        " table_schema=current_schema() AND table_name NOT IN (" BOUNDED ") LOOP"
        " SELECT string_agg(quote_ident(column_name),','), string_agg(CASE"
        " WHEN column_name='project_id' THEN $v$'x100'$v$"
        " WHEN data_type='bytea' THEN $v$'\\x01'::bytea$v$"
        " WHEN column_name='state' THEN '2'"
        " WHEN column_name IN ('rollup_state','anr_state','named','detected','keyed','copied',"
        "'rollup_generation','has_upload') THEN '1'"
        " WHEN column_name IN ('pinned','once','pending','due','hidden','attempts') THEN '0'"
        " WHEN data_type='bigint' AND column_name LIKE '%%day' THEN 'i/(1+%ld/90)'"
        " WHEN data_type='bigint' THEN 'i'"
        " WHEN column_name IN ('app','scenario','os','device_class','part','format') THEN"
        " $v$'x'||mod(i/1000,7)$v$"
        " WHEN column_name='label' OR column_name LIKE 'exempt%%' OR column_name LIKE 'error%%'"
        " THEN $v$''$v$"
        " WHEN column_name='version_code' THEN 'i::text'"
        " WHEN column_name='labels' THEN $v$'{}'$v$"
        " ELSE $v$'x'||i$v$ END,',') INTO c, v FROM information_schema.columns"
        " WHERE table_schema=current_schema() AND table_name=t AND is_generated='NEVER';"
        " EXECUTE 'ALTER TABLE '||quote_ident(t)||' SET (autovacuum_enabled=false)';"
        " EXECUTE 'INSERT INTO '||quote_ident(t)||'('||c||') SELECT '||v||"
        "' FROM generate_series(%ld,%ld) i WHERE mod(i,'||CASE WHEN t IN ('trace','part')"
        " THEN 1 ELSE 4 END||')=0 ON CONFLICT DO NOTHING';"
        " END LOOP; END $do$";

enum { FILLED_AT_ONCE = 20000 };

static void fill_tables(struct tw_db *db, long from, long to, long rows)
{
	char sql[sizeof fill + 64];

	for (long at = from; at <= to; at += FILLED_AT_ONCE) {
		const long end = at + FILLED_AT_ONCE - 1;

		(void)snprintf(sql, sizeof sql, fill, rows, at, end < to ? end : to);
		catalogue_run(db, sql);
	}
	catalogue_run(db, "DO $do$ DECLARE t text; BEGIN FOR t IN SELECT table_name FROM"
	                  " information_schema.tables WHERE table_schema=current_schema() LOOP"
	                  " EXECUTE 'ANALYZE '||quote_ident(t); END LOOP; END $do$");
}

/* Statements that read more the more traces there are, and why that is accepted. */
static const struct {
	const char *part, *why;
} growing[] = {
        {"FROM trace_value WHERE", "a search for words: distinct values, and people set titles"},
        {"labels ~~", "a label is searched for in all rows"},
        {"FROM trace_tag WHERE project_id=? GROUP BY", "people set tags"},
        {"rollup_method_by_name WHERE project_id=? ORDER BY name",
                "a search reads all names of methods, whose number depends on the app"},
        {"UNION ALL SELECT recorded_ms/?3, 0 FROM trace", "once per rebuild or native symbols"},
        {"UPDATE trace SET detected=0 WHERE project_id=?1 AND recorded_ms>=?2", "a day's traces"},
        {"UPDATE trace SET rollup_state=0, detected=0 WHERE", "a day's traces"},
        {"INSERT INTO build_rename", "rebuild: every build"},
        {"UPDATE trace SET anr_state=0 WHERE project_id=? AND trace_id>? AND trace_id<=?",
                "a range of 2,000 traces"},
        {"UPDATE webhook SET hold_ms=?1 WHERE hold_ms>?2", "few rows"},
        {"sum(file_bytes), sum(CASE", "once for 512 deletions by number or bytes"},
        {"SELECT (SELECT count(*) FROM trace)+", "a start that found files without a row"},
        {"FROM audit WHERE action='trace.delete' AND target=?",
                "at such a start, at most 64 times"},
        {"DELETE FROM signin_link", "unused links expire in minutes"},
        {"DELETE FROM session", "sessions of people"},
        {"project_id=? AND app=? LIMIT", "one entry per 64 pages"},
        {"project_id=? AND os=? LIMIT", "one entry per 64 pages"},
        {"project_id=? AND scenario=? LIMIT", "one entry per 64 pages"},
        {"IN (SELECT project_id FROM project) AND created_ms>?1-86400000",
                "doctor: traces of the last day"},
        {"FROM build WHERE map_sha256='' AND retrace_sha256=''", "doctor: every build"},
        {"DELETE FROM catalogue_schema", "one row"},
        {"UPDATE catalogue_identity SET", "one row"},
        {"UPDATE audit_last SET", "one row"},
        {"DELETE FROM fleet_engine", "one row"},
        {"DELETE FROM fleet_erase", "change of the fleet store: all rows"},
        {"UPDATE anr_trace SET copied=0 WHERE project_id=?", "change of the fleet store: all rows"},
        {"AND raw<>name AND raw NOT LIKE", "names of an app's methods, as above"},
        {"SELECT (SELECT count(*) FROM project)+", "rebuild of a lost catalogue"},
        {"UPDATE build SET traces=(SELECT count(*)", "rebuild of a lost catalogue"},
        {"UPDATE build SET app=(SELECT app", "rebuild of a lost catalogue"},
};
enum { GROWING = sizeof growing / sizeof *growing };

/* The plan of a statement; none if the types of its values cannot be deduced, those of unused ones
 * apart.  Readers plan with the values, writers without (catalogue_postgres.c). */
static const char plan_of[] =
        "CREATE FUNCTION plan_of(of text, reads boolean) RETURNS SETOF text LANGUAGE plpgsql AS"
        " $f$ DECLARE v text; line text; a_text text; kinds text[] :="
        " array_fill('unknown'::text, ARRAY[(SELECT coalesce(max(m[1]::int), 0) FROM"
        " regexp_matches(of, '[$](\\d+)', 'g') m)]); BEGIN"
        " FOR tries IN 1..100 LOOP BEGIN"
        " EXECUTE 'PREPARE of_plan'||coalesce('('||nullif(array_to_string(kinds,','),'')||')','')"
        "||' AS '||of; EXIT;"
        " EXCEPTION WHEN indeterminate_datatype THEN"
        " kinds[0+(regexp_match(SQLERRM,'[$](\\d+)'))[1]::int]:='text'; END; END LOOP;"
        " PERFORM set_config('enable_seqscan', reads::text, false),"
        " set_config('plan_cache_mode', CASE WHEN reads THEN 'force_custom_plan'"
        " ELSE 'force_generic_plan' END, false);"
        " FOREACH a_text IN ARRAY ARRAY['x100','00'] LOOP BEGIN" /* the second is also bytes */
        " SELECT '('||string_agg(CASE t::regtype::text WHEN 'bigint' THEN '100'"
        " WHEN 'integer' THEN '1' WHEN 'text' THEN quote_literal(a_text) ELSE 'NULL' END,"
        " ',' ORDER BY n)||')' INTO v FROM pg_prepared_statements,"
        " unnest(parameter_types) WITH ORDINALITY u(t,n) WHERE name='of_plan';"
        " FOR line IN EXECUTE 'EXPLAIN EXECUTE of_plan'||coalesce(v,'') LOOP"
        " RETURN NEXT line; END LOOP; EXIT;"
        " EXCEPTION WHEN data_exception THEN END; END LOOP;"
        " DEALLOCATE of_plan;"
        " EXCEPTION WHEN ambiguous_parameter THEN RETURN; END $f$";

/* The tables have fewer rows than those of a large project, so ranges of pages and limits are
 * smaller, too. */
static const char scale_ranges[] =
        "ALTER INDEX trace_ranges SET (pages_per_range=1); REINDEX INDEX trace_ranges";

static void scale_limits(char *sql)
{
	static const char *const limits[] = {"LIMIT 20000)", "LIMIT 10001)", "LIMIT 5000)"};

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		for (char *at; (at = strstr(sql, limits[i]));)
			memcpy(at, "LIMIT  500      ", strlen(limits[i]) - 1);
}

/* What PostgreSQL estimates.  -1: no plan. */
static double cost_of(struct tw_db *db, const char *sql, bool prints)
{
	struct tw_err err = {.msg = ""};
	bool reads;
	struct tw_cat_query q;
	struct tw_buf text;
	double cost = -1;
	int n;

	tw_buf_init(&text, 2 * PLAN_SQL);
	assert_int_equal(tw_postgres_sql(sql, &text, &n), TW_OK);
	scale_limits((char *)text.data);
	reads = strncmp((const char *)text.data, "SELECT", 6) == 0 ||
	        strncmp((const char *)text.data, "WITH", 4) == 0;
	assert_int_equal(
	        tw_cat_query(&q, db, NULL, "SELECT line FROM plan_of(?,?::text='reads') line", "tt",
	                (const char *)text.data, reads ? "reads" : "writes"),
	        TW_OK);
	while (tw_cat_row(&q)) {
		const char *line = tw_cat_str(&q, 0), *at = strstr(line, "..");

		cost = cost < 0 && at ? strtod(at + 2, NULL) : cost;
		if (prints)
			print_message("    %s\n", line);
	}
	if (tw_cat_close(&q, &err) != TW_OK)
		fail_msg("%s in %s", err.msg, sql);
	tw_buf_done(&text);
	return cost;
}

/* True: not one of the accepted statements, of which it notes that it was seen. */
static bool is_new(const char *sql, bool seen[GROWING])
{
	for (size_t i = 0; i < GROWING; i++)
		if (strstr(sql, growing[i].part)) {
			seen[i] = true;
			return false;
		}
	return true;
}

/* With four times as many traces.  Writers avoid scans without an index: these have a cost above
 * any other. */
static bool grows(double few, double many, double least)
{
	return many > 1e9 || (many > least && many > 2 * few);
}

static unsigned count_growing(struct tw_db *db, char (*statements)[PLAN_SQL], size_t n,
        const double *few, bool seen[GROWING], double least)
{
	unsigned bad = 0, unknown = 0;

	for (size_t i = 0; i < n; i++) {
		const double many = is_asked(statements[i]) ? cost_of(db, statements[i], false) : 0;

		unknown += many < 0;
		if (!grows(few[i], many, least) || !is_new(statements[i], seen))
			continue;
		print_message("%.0f -> %.0f  in %s\n", few[i], many, statements[i]);
		(void)cost_of(db, statements[i], true);
		bad++;
	}
	assert_in_range(unknown, 0, 3);
	return bad;
}

/* PLAN_ROWS traces; a million takes minutes. */
static unsigned explain_all(struct tw_db *db, char (*statements)[PLAN_SQL], size_t n)
{
	static const char scan[] = "SELECT count(*) FROM trace WHERE error_status=?";
	const char *text = getenv("PLAN_ROWS");
	const long rows = text ? strtol(text, NULL, 10) : 20000;
	const double least = (double)rows / 400;
	double few[PLAN_STATEMENTS], few_scan;
	bool seen[GROWING] = {false};
	unsigned bad;

	assert_true(n <= PLAN_STATEMENTS);
	/* filling takes longer than a statement of the server may */
	((struct tw_postgres *)db)->patient = true;
	catalogue_run(db, "SET statement_timeout=0");
	catalogue_run(db, plan_of);
	catalogue_run(db, scale_ranges);
	fill_tables(db, 1, rows / 4, rows);
	for (size_t i = 0; i < n; i++)
		few[i] = is_asked(statements[i]) ? cost_of(db, statements[i], false) : 0;
	few_scan = cost_of(db, scan, false);
	fill_tables(db, rows / 4 + 1, rows, rows);
	bad = count_growing(db, statements, n, few, seen, least);
	for (size_t i = 0; i < GROWING; i++)
		if (!seen[i] && !text) { /* in large tables, ranges of pages are cheap */
			print_message("does not grow: %s\n", growing[i].part);
			bad++;
		}
	assert_true(grows(few_scan, cost_of(db, scan, false), least));
	assert_true(grows(0, cost_of(db, "DELETE FROM trace WHERE error_status=?", false), least));
	return bad;
}

void plan_on_postgres(const char *dir, char (*statements)[PLAN_SQL], size_t n)
{
	struct tw_catalogue *c;
	struct tw_db *db;
	unsigned asked = 0, bad = 0;
	struct tw_err err = {.msg = ""};

	if (!catalogue_on_postgres())
		return;
	c = catalogue_in(dir);
	db = catalogue_connect(dir);
	for (size_t i = 0; i < n; i++) {
		if (!is_asked(statements[i]))
			continue;
		asked++;
		if (takes(db, statements[i], &err))
			continue;
		print_message("%s\n  in %s\n", err.msg, statements[i]);
		bad++;
	}
	bad += explain_all(db, statements, n);
	tw_db_close(db);
	(void)tw_catalogue_close(c);
	assert_int_equal(bad, 0);
	assert_true(asked > 200);
}
