/* catalogue_check.c - verifies and copies a catalogue in SQLite. */
#include <inttypes.h>
#include <stdio.h>

#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/db/catalogue_sqlite.h"
#include "server/db/catalogue_sums.h"

static enum tw_status run_check(struct tw_db *db, const char *sql,
        void (*wrong)(void *arg, const char *text), void *arg, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_cat_query q;
	enum tw_status st = a ? tw_cat_query(&q, db, err, sql, "") : tw_oom(err);

	if (st == TW_OK) {
		while (tw_cat_row(&q)) {
			const char *text = tw_cat_text(&q, 0, a);

			if (text && text[0])
				wrong(arg, text);
		}
		st = tw_cat_close(&q, err);
	}
	tw_arena_free(a);
	return st;
}

struct page_reporter {
	void (*wrong)(void *arg, const char *text);
	void *arg;
};

static void report_page(void *arg, uint64_t page)
{
	const struct page_reporter *t = arg;
	char text[160];

	(void)snprintf(text, sizeof text,
	        "page %" PRIu64 " of the catalogue has a wrong checksum: "
	        "restore a backup, unless another program wrote to it",
	        page);
	t->wrong(t->arg, text);
}

enum tw_status tw_catalogue_verify(struct tw_catalogue *c,
        void (*wrong)(void *arg, const char *text), void *arg, struct tw_err *err)
{
	struct page_reporter reporter = {wrong, arg};
	struct tw_db *db;
	enum tw_status st;

	if (!tw_cat_is_sqlite(c)) /* its pages belong to its server: use pg_amcheck */
		return TW_OK;
	st = tw_cat_reader_new(c, &db, err); /* with an empty page cache */
	if (st != TW_OK)
		return st;
	st = run_check(db, "SELECT nullif(integrity_check, 'ok') FROM pragma_integrity_check(100)",
	        wrong, arg, err);
	(void)tw_sums_noted(sqlite3_db_filename(tw_db_sqlite(db), NULL), report_page, &reporter);
	if (st == TW_OK)
		st = run_check(db,
		        "SELECT 'a row of ' || \"table\" || ' refers to a missing ' || parent"
		        " FROM pragma_foreign_key_check",
		        wrong, arg, err);
	if (st == TW_OK) /* they become file names, also those of an imported catalogue */
		st = run_check(db,
		        "SELECT 'invalid trace id: ' || trace_id FROM trace WHERE"
		        " length(trace_id)<>26 OR "
		        "trim(trace_id,'0123456789ABCDEFGHJKMNPQRSTVWXYZ')<>''"
		        " LIMIT 100",
		        wrong, arg, err);
	if (st == TW_OK) /* requests that read them would fail */
		st = run_check(db,
		        "SELECT 'setting ' || key || ' of project ' || project_id || ' is not "
		        "valid JSON'"
		        " FROM project_setting WHERE value<>'' AND value NOT LIKE 'sealed:%'"
		        " AND NOT json_valid(value) UNION ALL"
		        " SELECT 'labels of trace ' || trace_id || ' are not valid JSON' FROM "
		        "trace WHERE"
		        " labels<>'' AND NOT json_valid(labels) LIMIT 100",
		        wrong, arg, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_copy(struct tw_catalogue *c, const char *path, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st;

	if (!tw_cat_is_sqlite(c))
		return tw_fail(err, TW_UNSUPPORTED,
		        "the catalogue is in PostgreSQL: back it up with pg_dump, and after that"
		        " copy blobs/ and traces/ of the data folder");
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = tw_cat_exec(db, NULL, err, "VACUUM INTO ?", "t", path);
	tw_cat_done(c, db);
	return st;
}
