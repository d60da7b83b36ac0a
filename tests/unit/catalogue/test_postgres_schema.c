/* Both engines' migrations create the same tables, in a schema of any name: columns by name, kind
 * and order of texts, and indexes by name. Skipped without PostgreSQL (tests/unit/on_postgres). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/catalogue/catalogue.h"
#include "server/db/catalogue_sqlite.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

struct both {
	char dir[64], path[100];
	struct tw_catalogue *file, *server;
	struct tw_db *of_file, *of_server;
};

static void set_up(struct both *b)
{
	int room = 0;

	(void)snprintf(b->dir, sizeof b->dir, "/tmp/tw-schema-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	(void)snprintf(b->path, sizeof b->path, "%s/catalogue.db", b->dir);
	assert_int_equal(tw_catalogue_open(b->path, &b->file, NULL), TW_OK);
	assert_int_equal(tw_db_sqlite_open(b->path, TW_DB_WRITE, &b->of_file, &room, NULL), TW_OK);
	b->server = catalogue_in(b->dir);
	b->of_server = catalogue_connect(b->dir);
}

static void tear_down(struct both *b)
{
	static const char *const files[] = {"", "-wal", "-shm"};
	char path[120];

	tw_db_close(b->of_file);
	tw_db_close(b->of_server);
	(void)tw_catalogue_close(b->file);
	(void)tw_catalogue_close(b->server);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(path, sizeof path, "%s%s", b->path, files[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(b->dir), 0);
}

/* Row by row, so that the first missing one is reported. */
static void same(const struct both *b, const char *of_file, const char *of_server, int least)
{
	struct tw_cat_query file, server;
	int n = 0;

	assert_int_equal(tw_cat_query(&file, b->of_file, NULL, of_file, ""), TW_OK);
	assert_int_equal(tw_cat_query(&server, b->of_server, NULL, of_server, ""), TW_OK);
	for (;; n++) {
		const bool more = tw_cat_row(&file);

		assert_int_equal(tw_cat_row(&server), more);
		if (!more)
			break;
		assert_string_equal(tw_cat_str(&server, 0), tw_cat_str(&file, 0));
	}
	assert_int_equal(tw_cat_close(&file, NULL), TW_OK);
	assert_int_equal(tw_cat_close(&server, NULL), TW_OK);
	assert_true(n >= least);
}

static void test_same_tables(void **state)
{
	struct both b = {.file = NULL};

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	set_up(&b);
	same(&b,
	        "SELECT m.name||'.'||p.name||CASE p.type WHEN 'INTEGER' THEN ' bigint' WHEN 'TEXT'"
	        " THEN ' text C' ELSE ' bytea' END||CASE WHEN p.\"notnull\" OR p.pk THEN"
	        " ' not null' ELSE '' END FROM sqlite_master m, pragma_table_info(m.name) p WHERE"
	        " m.type='table' AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY 1",
	        "SELECT table_name||'.'||column_name||' '||data_type||coalesce(' '||collation_name,"
	        "'')||CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END COLLATE \"C\" FROM"
	        " information_schema.columns WHERE table_schema=current_schema() AND"
	        " is_generated='NEVER' AND table_name NOT IN ('catalogue_schema',"
	        "'catalogue_identity','catalogue_lead','audit_last','trace_stage') ORDER BY 1",
	        200);
	tear_down(&b);
}

static void test_same_indexes(void **state)
{
	struct both b = {.file = NULL};

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	set_up(&b);
	same(&b,
	        "SELECT name||CASE WHEN sql LIKE '%WHERE %' THEN ' of some' ELSE '' END FROM"
	        " sqlite_master WHERE type='index' AND sql IS NOT NULL AND name NOT LIKE"
	        " 'trace_stage_%' ORDER BY 1", /* a table, trace_stage, in PostgreSQL */
	        "SELECT (indexname||CASE WHEN indexdef LIKE '% WHERE %' THEN ' of some' ELSE ''"
	        " END) COLLATE \"C\" FROM pg_indexes WHERE schemaname=current_schema() AND"
	        " indexname NOT IN ('job_by_owner','trace_ranges','regression_by_status',"
	        "'alert_by_status') AND indexname NOT IN (SELECT conname FROM pg_constraint)"
	        " ORDER BY 1",
	        40);
	tear_down(&b);
}

/* Names that SQL must quote. */
static void test_any_name_of_a_schema(void **state)
{
	char address[CATALOGUE_ADDRESS];
	struct both b = {.file = NULL};
	struct tw_catalogue *c = NULL;
	struct tw_err err = {.msg = ""};

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	set_up(&b);
	catalogue_address(b.dir, address);
	(void)snprintf(strstr(address, "search_path"), 40, "search_path%%3D%%22My-App%%22");
	catalogue_run(b.of_server, "CREATE SCHEMA \"My-App\"");
	if (tw_catalogue_open(address, &c, &err) != TW_OK)
		fail_msg("%s", err.msg);
	(void)tw_catalogue_close(c);
	catalogue_run(b.of_server, "DROP SCHEMA \"My-App\" CASCADE");
	tear_down(&b);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_tables),
        cmocka_unit_test(test_same_indexes),
        cmocka_unit_test(test_any_name_of_a_schema),
};

UNIT_TESTS("postgres_schema", tests)
