/* Whole catalogues copied: the list of tables is what both engines' schemas are, and rows come over
 * unchanged, also after the source changed.  on_postgres repeats it on PostgreSQL.
 */
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
#include "server/catalogue/catalogue_migrate.h"
#include "server/catalogue/catalogue_tables.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { LINES_MOST = 2000, LINE_BYTES = 120 };

/* --- the list of tables --- */

struct lines {
	char of[LINES_MOST][LINE_BYTES];
	size_t n;
};

static void add_table(struct lines *all, const struct tw_table *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		const struct tw_column *c = &t->columns[i];

		assert_true(all->n < LINES_MOST);
		(void)snprintf(all->of[all->n++], LINE_BYTES, "%s.%s%s%s:%u", t->name, c->name,
		        c->kind == TW_COLUMN_INT     ? ":i"
		        : c->kind == TW_COLUMN_BYTES ? ":b"
		                                     : "",
		        c->may_be_null ? "?" : "", i < t->n_key ? i + 1 : 0);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static const char *as_listed(void)
{
	static char text[LINES_MOST * LINE_BYTES];
	static struct lines all;
	size_t at = 0;

	all.n = 0;
	for (unsigned i = 0; i < tw_tables_n; i++)
		add_table(&all, &tw_tables[i]);
	qsort(all.of, all.n, LINE_BYTES, by_text);
	for (size_t i = 0; i < all.n; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s\n", all.of[i]);
	return text;
}

/* PostgreSQL's index contains hashes, which do not have the order of the rows. */
#define TALLY_KEY                                                                                  \
	"array_position(ARRAY['project_id','what','fine','day','name','app','version_name',"       \
	"'build_id','scenario','device_class','os']::name[], a.attname)"

/* What engines have for themselves is not copied: see schema/catalogue.  Nor are uploads
 * in pieces, which are begun again, as those in the folder are, and sign-ins that are over in
 * minutes, and the values that triggers collect from traces. */
#define NOT_COPIED                                                                                 \
	"('file_drop','resumable','resumable_piece','signin_try','signin_used','small_file',"      \
	"'trace_value')"
static const char of_schema[] =
        TW_EITHER("SELECT group_concat(line, char(10))||char(10) FROM (SELECT m.name||'.'||p.name||"
                  "CASE p.type WHEN 'INTEGER' THEN ':i' WHEN 'BLOB' THEN ':b' ELSE '' END||"
                  "CASE WHEN p.\"notnull\"=0 AND p.pk=0 THEN '?' ELSE '' END||':'||p.pk AS line"
                  " FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type='table'"
                  " AND m.name NOT LIKE 'sqlite%' AND m.name NOT IN " NOT_COPIED " ORDER BY line)",
                "SELECT string_agg(line, chr(10) ORDER BY line COLLATE \"C\")||chr(10) FROM ("
                "SELECT c.relname||'.'||a.attname||CASE t.typname WHEN 'int8' THEN ':i'"
                " WHEN 'bytea' THEN ':b' ELSE '' END||CASE WHEN a.attnotnull THEN '' ELSE '?' END"
                "||':'||coalesce(CASE c.relname WHEN 'anr_rollup' THEN " TALLY_KEY
                " ELSE array_position(x.indkey::int2[], a.attnum)+1 END, 0) AS line"
                " FROM pg_class c JOIN pg_attribute a ON a.attrelid=c.oid AND a.attnum>0 AND NOT"
                " a.attisdropped AND a.attgenerated='' JOIN pg_type t ON t.oid=a.atttypid LEFT "
                "JOIN pg_index x ON"
                " x.indrelid=c.oid AND x.indisprimary WHERE c.relkind='r' AND"
                " c.relnamespace=current_schema()::regnamespace AND c.relname NOT IN"
                " ('catalogue_schema','catalogue_identity','catalogue_lead',"
                "'audit_last','trace_stage') AND c.relname NOT IN " NOT_COPIED ") lines");

static const char *folder(void)
{
	static char path[64];

	(void)snprintf(path, sizeof path, "/tmp/tw-migrate-XXXXXX");
	assert_non_null(mkdtemp(path));
	return path;
}

static void drop_folder(const char *at)
{
	static const char *const files[] = {"catalogue.db", "catalogue.db-wal", "catalogue.db-shm"};
	char path[120];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", at, files[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(at), 0);
}

/* The first line in which they differ, not all of them. */
static void assert_same_lines(const char *a, const char *b)
{
	while (*a && *b) {
		const size_t one = strcspn(a, "\n"), other = strcspn(b, "\n");

		if (one != other || memcmp(a, b, one) != 0)
			break;
		a += one + (a[one] != 0);
		b += other + (b[other] != 0);
	}
	if (*a || *b)
		fail_msg("listed %.*s, in the schema %.*s", (int)strcspn(a, "\n"), a,
		        (int)strcspn(b, "\n"), b);
}

static void test_list_is_the_schema(void **state)
{
	const char *at = folder();
	struct tw_catalogue *c = catalogue_in(at);
	struct tw_db *db = catalogue_connect(at);
	char *schema = catalogue_text(db, of_schema);

	(void)state;
	assert_same_lines(as_listed(), schema);
	free(schema);
	tw_db_close(db);
	(void)tw_catalogue_close(c);
	drop_folder(at);
}

static size_t table_index(const char *name)
{
	for (unsigned i = 0; i < tw_tables_n; i++)
		if (strcmp(tw_tables[i].name, name) == 0)
			return i;
	fail_msg("%s is not listed", name);
	return tw_tables_n;
}

/* Tables follow the tables that they reference. */
static void test_list_is_in_order(void **state)
{
	const char *at = folder();
	struct tw_catalogue *c = catalogue_in(at);
	struct tw_db *db = catalogue_connect(at);
	struct tw_cat_query q;
	unsigned n = 0;

	(void)state;
	assert_int_equal(tw_cat_query(&q, db, NULL,
	                         TW_EITHER("SELECT m.name, f.\"table\" FROM sqlite_master m,"
	                                   " pragma_foreign_key_list(m.name) f WHERE m.name NOT"
	                                   " IN " NOT_COPIED,
	                                 "SELECT c.relname, p.relname FROM pg_constraint f JOIN"
	                                 " pg_class c ON c.oid=f.conrelid JOIN pg_class p ON"
	                                 " p.oid=f.confrelid WHERE f.contype='f' AND"
	                                 " c.relnamespace=current_schema()::regnamespace AND"
	                                 " c.relname NOT IN " NOT_COPIED),
	                         ""),
	        TW_OK);
	while (tw_cat_row(&q)) {
		const size_t child = table_index(tw_cat_str(&q, 0));

		assert_true(table_index(tw_cat_str(&q, 1)) < child);
		n++;
	}
	assert_int_equal(tw_cat_close(&q, NULL), TW_OK);
	assert_true(n > 10);
	tw_db_close(db);
	(void)tw_catalogue_close(c);
	drop_folder(at);
}

/* --- rows --- */

struct pair {
	char from_at[64], to_at[64];
	struct tw_catalogue *from, *to;
	struct tw_db *source, *target; /* separate connections */
	struct tw_migrate_rows rows;
};

static void open_pair(struct pair *p)
{
	(void)snprintf(p->from_at, sizeof p->from_at, "%s", folder());
	(void)snprintf(p->to_at, sizeof p->to_at, "%s", folder());
	p->from = catalogue_in(p->from_at);
	p->to = catalogue_in(p->to_at);
	p->source = catalogue_connect(p->from_at);
	p->target = catalogue_connect(p->to_at);
	p->rows = (struct tw_migrate_rows){.from = p->from, .to = p->to};
	p->rows.n = tw_tables_n;
	p->rows.tables = calloc(p->rows.n, sizeof *p->rows.tables);
}

static void close_pair(struct pair *p)
{
	tw_db_close(p->source);
	tw_db_close(p->target);
	(void)tw_catalogue_close(p->from);
	(void)tw_catalogue_close(p->to);
	drop_folder(p->from_at);
	drop_folder(p->to_at);
	free(p->rows.tables);
}

static const struct tw_migrate_table *table(const struct pair *p, const char *name)
{
	return &p->rows.tables[table_index(name)];
}

static void bring(struct pair *p)
{
	struct tw_err err = {.msg = ""};

	memset(p->rows.tables, 0, p->rows.n * sizeof *p->rows.tables);
	if (tw_catalogue_copy_rows(&p->rows, &err) != TW_OK)
		fail_msg("%s", err.msg);
}

static uint64_t differing(struct pair *p)
{
	struct tw_err err = {.msg = ""};
	uint64_t n = 0;

	if (tw_catalogue_compare(&p->rows, &err) != TW_OK)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < p->rows.n; i++) {
		const struct tw_migrate_table *t = &p->rows.tables[i];

		n += t->differ;
		assert_int_equal(t->differ == 0, strcmp(t->from.sha256, t->to.sha256) == 0);
	}
	return n;
}

/* More rows than are read at once, of every kind of value. */
static void fill(struct tw_db *db)
{
	catalogue_run(db, "INSERT INTO project VALUES('p1','one',1,0),('p2','two',-2,0)");
	catalogue_run(db,
	        "INSERT INTO api_key(project_id,key_id,name,scope,hash,created_ms,old_hash)"
	        " VALUES('p1','k1','a',1,x'00ff27',5,NULL),('p1','k2','b',1,x'0102',5,x'')");
	catalogue_run(
	        db, "INSERT INTO \"user\"(user_id,name,created_ms) VALUES('u1','Zo\u00eb',3)");
	catalogue_run(db,
	        "INSERT INTO session(hash,user_id,project_id,key_id,created_ms,seen_ms,idle_ms,"
	        "expires_ms) VALUES(x'01','u1',NULL,NULL,1,2,3,4),(x'02',NULL,'p1','k1',1,2,3,4)");
	catalogue_run(db,
	        TW_EITHER("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE"
	                  " i<2999) INSERT INTO capture_device SELECT i/7,'p1','r'||(i%5),i FROM n",
	                "INSERT INTO capture_device SELECT i/7,'p1','r'||(i%5),i FROM"
	                " generate_series(0,2999) i"));
	catalogue_run(
	        db, TW_EITHER("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE"
	                      " i<99) INSERT INTO finding SELECT 'p1',-50+i,'t',x'00' FROM n",
	                    "INSERT INTO finding SELECT 'p1',-50+i,'t','\\x00' FROM"
	                    " generate_series(0,99) i"));
}

static void test_brought_and_alike(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p);
	fill(p.source);
	bring(&p);
	assert_int_equal(differing(&p), 0);
	assert_int_equal(table(&p, "capture_device")->to.rows, 3000);
	assert_int_equal(table(&p, "finding")->to.rows, 100);
	assert_int_equal(
	        catalogue_number(p.target, "SELECT count(*) FROM api_key WHERE old_hash IS NULL"),
	        1);
	assert_int_equal(
	        catalogue_number(p.target, "SELECT count(*) FROM session WHERE user_id IS NULL"),
	        1);
	bring(&p);
	for (size_t i = 0; i < p.rows.n; i++)
		assert_int_equal(p.rows.tables[i].put + p.rows.tables[i].dropped, 0);
	close_pair(&p);
}

static void test_again_does_what_is_left(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p);
	fill(p.source);
	bring(&p);
	/* a project goes with what refers to it, its name comes to another; a row changes */
	catalogue_run(p.source, "DELETE FROM session WHERE project_id='p1'");
	catalogue_run(p.source, "DELETE FROM api_key");
	catalogue_run(p.source, "DELETE FROM project WHERE project_id='p1'");
	catalogue_run(p.source, "INSERT INTO project VALUES('p0','one',1,0)");
	catalogue_run(p.source, "UPDATE \"user\" SET is_admin=1");
	catalogue_run(p.source, "DELETE FROM capture_device WHERE device>=2990");
	assert_int_equal(differing(&p), 1 + 2 + 2 + 1 + 10);
	bring(&p);
	assert_int_equal(differing(&p), 0);
	assert_int_equal(table(&p, "capture_device")->dropped, 10);
	assert_int_equal(table(&p, "user")->put, 1);
	assert_int_equal(table(&p, "finding")->put, 0);
	close_pair(&p);
}

static void test_a_difference_is_found(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p);
	fill(p.source);
	bring(&p);
	catalogue_run(p.target, "UPDATE finding SET data=x'01' WHERE cell_id=-3");
	assert_int_equal(differing(&p), 1);
	assert_string_equal(table(&p, "finding")->first, "project_id=p1, cell_id=-3, trace_id=t");
	catalogue_run(p.target, "DELETE FROM finding WHERE cell_id=-3");
	assert_int_equal(differing(&p), 1);
	assert_int_equal(table(&p, "finding")->to.rows, 99);
	close_pair(&p);
}

/* An assigned number is not assigned again, even after its row was deleted. */
static void test_numbers_go_on(void **state)
{
	struct pair p;
	struct tw_err err = {.msg = ""};
	int64_t last;

	(void)state;
	open_pair(&p);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tw_catalogue_note_migration(p.from, "x", &err), TW_OK);
	catalogue_run(p.source, "DELETE FROM audit WHERE entry_id>1");
	bring(&p);
	assert_int_equal(tw_catalogue_note_migration(p.to, "x", &err), TW_OK);
	last = catalogue_number(p.target, "SELECT max(entry_id) FROM audit");
	assert_int_equal(last, 4);
	close_pair(&p);
}

static void test_mark(void **state)
{
	struct pair p;
	struct tw_err err = {.msg = ""};
	bool migrating = true;

	(void)state;
	open_pair(&p);
	assert_int_equal(tw_catalogue_migrating(p.to, &migrating, &err), TW_OK);
	assert_false(migrating);
	assert_int_equal(tw_catalogue_begin_migration(p.to, "a", &err), TW_OK);
	assert_int_equal(tw_catalogue_migrating(p.to, &migrating, &err), TW_OK);
	assert_true(migrating);
	fill(p.target);
	assert_int_equal(tw_catalogue_begin_migration(p.to, "a", &err), TW_OK);
	assert_int_equal(tw_catalogue_begin_migration(p.to, "b", &err), TW_CONFLICT);
	assert_int_equal(tw_catalogue_end_migration(p.to, &err), TW_OK);
	assert_int_equal(tw_catalogue_begin_migration(p.to, "a", &err), TW_CONFLICT);
	assert_non_null(strstr(err.msg, "in use"));
	close_pair(&p);
}

/* While it is held, writers wait and readers continue. */
static void test_held(void **state)
{
	struct pair p;
	struct tw_err err = {.msg = ""};

	(void)state;
	open_pair(&p);
	fill(p.source);
	assert_int_equal(tw_catalogue_block_writers(p.from, &err), TW_OK);
	catalogue_run(p.source, TW_EITHER("PRAGMA busy_timeout=50", "SET lock_timeout='50ms'"));
	if (catalogue_on_postgres())
		assert_int_equal(tw_db_run(p.source, "BEGIN IMMEDIATE", &err), TW_OK);
	assert_int_equal(
	        tw_db_run(p.source, TW_EITHER("BEGIN IMMEDIATE", "UPDATE project SET name='held'"),
	                &err),
	        TW_BUSY);
	(void)tw_db_run(p.source, "ROLLBACK", NULL);
	assert_int_equal(catalogue_number(p.source, "SELECT count(*) FROM project"), 2);
	bring(&p);
	assert_int_equal(tw_catalogue_still_held(p.from, &err), TW_OK);
	assert_int_equal(tw_catalogue_unblock_writers(p.from, &err), TW_OK);
	assert_int_equal(tw_db_run(p.source, "BEGIN IMMEDIATE", &err), TW_OK);
	assert_int_equal(tw_db_run(p.source, "ROLLBACK", &err), TW_OK);
	close_pair(&p);
}

/* Only SQLite can have them. */
static void test_bytes_that_are_no_text(void **state)
{
	struct pair p;
	struct tw_err err = {.msg = ""};
	char *name;

	(void)state;
	unit_needs(!catalogue_on_postgres(), "SQLite");
	open_pair(&p);
	catalogue_run(p.source, "INSERT INTO project VALUES('p1',CAST(x'61ff62' AS TEXT),1,0),"
	                        "('p2',CAST(x'610063' AS TEXT),1,0)");
	bring(&p);
	assert_int_equal(table(&p, "project")->repaired, 2);
	assert_int_equal(differing(&p), 0);
	name = catalogue_text(p.target, "SELECT name FROM project WHERE project_id='p1'");
	assert_string_equal(name, "a\xef\xbf\xbd"
	                          "b");
	free(name);
	/* and an ambiguous key is reported */
	catalogue_run(p.source, "INSERT INTO capture_day VALUES('p1',CAST(x'fe' AS TEXT),1,1,1),"
	                        "('p1',CAST(x'ff' AS TEXT),1,1,1)");
	assert_int_equal(tw_catalogue_copy_rows(&p.rows, &err), TW_CONFLICT);
	assert_non_null(strstr(err.msg, "capture_day"));
	close_pair(&p);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_is_the_schema),
        cmocka_unit_test(test_list_is_in_order),
        cmocka_unit_test(test_brought_and_alike),
        cmocka_unit_test(test_again_does_what_is_left),
        cmocka_unit_test(test_a_difference_is_found),
        cmocka_unit_test(test_numbers_go_on),
        cmocka_unit_test(test_mark),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_bytes_that_are_no_text),
};

UNIT_TESTS("migrate", tests)
