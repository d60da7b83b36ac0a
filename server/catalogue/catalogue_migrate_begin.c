/*
 * catalogue_migrate_begin.c - the record of an unfinished migration, blocking of writers, and
 * number sequences.
 */
#include <stdio.h>
#include <string.h>

#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_migrate_int.h"
#include "server/catalogue/catalogue_tables.h"

enum tw_status tw_catalogue_source_id(
        struct tw_catalogue *c, char ret[TW_SOURCE_ID], struct tw_err *err)
{
	return tw_cat_read_text(c, ret, TW_SOURCE_ID, err,
	        "SELECT project_id FROM project ORDER BY project_id LIMIT 1", "");
}

/* A table that exists only in targets, so that older catalogues need no migration. */
enum tw_status tw_catalogue_migrating(struct tw_catalogue *c, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err,
	        TW_EITHER("SELECT count(*) FROM sqlite_master WHERE name='catalogue_migration'",
	                "SELECT to_regclass('catalogue_migration') IS NOT NULL"),
	        "");

	if (st == TW_OK)
		*ret = n != 0;
	return st;
}

static enum tw_status must_be_empty(struct tw_db *db, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (unsigned i = 0; st == TW_OK && i < tw_tables_n; i++) {
		char sql[96];
		int64_t rows = 0;

		(void)snprintf(sql, sizeof sql, "SELECT 1 FROM \"%s\" LIMIT 1", tw_tables[i].name);
		st = tw_cat_get_int(db, &rows, err, sql, "");
		if (st == TW_OK && rows)
			st = tw_fail(err, TW_CONFLICT,
			        "the target has a catalogue in use (table %s has rows), which "
			        "would be overwritten: use an empty one; if it is a complete, "
			        "unused copy, delete it and start again",
			        tw_tables[i].name);
	}
	return st;
}

static enum tw_status insert_migration(
        struct tw_catalogue *to, const char *source, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(to, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = must_be_empty(w, err);
	if (st == TW_OK)
		st = tw_db_run(w, "CREATE TABLE catalogue_migration(source TEXT NOT NULL)", err);
	if (st == TW_OK)
		st = tw_cat_exec(
		        w, NULL, err, "INSERT INTO catalogue_migration VALUES(?)", "t", source);
	return tw_cat_end(to, w, st, err);
}

enum tw_status tw_catalogue_begin_migration(
        struct tw_catalogue *to, const char *source, struct tw_err *err)
{
	char present[TW_SOURCE_ID] = "";
	bool migrating = false;
	enum tw_status st = tw_catalogue_migrating(to, &migrating, err);

	if (st == TW_OK && !migrating)
		return insert_migration(to, source, err);
	if (st == TW_OK)
		st = tw_cat_read_text(to, present, sizeof present, err,
		        "SELECT source FROM catalogue_migration", "");
	if (st == TW_OK && strcmp(present, source) != 0)
		return tw_fail(err, TW_CONFLICT,
		        "the target has an incomplete copy of another catalogue: name an empty "
		        "one");
	return st;
}

enum tw_status tw_catalogue_end_migration(struct tw_catalogue *to, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(to, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = tw_db_run(w, "DROP TABLE catalogue_migration", err);
	return tw_cat_end(to, w, st, err);
}

enum tw_status tw_catalogue_note_migration(
        struct tw_catalogue *from, const char *to_engine, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(from, TW_SUBJECT_NONE, "", &w, err);

	if (st != TW_OK)
		return st;
	return tw_cat_end_audited(from, w, st,
	        &(struct tw_change){"catalogue.migrate", "", to_engine,
	                .facts = {{"from", tw_catalogue_engine(from)}, {"to", to_engine}}},
	        err);
}

/* --- blocking writers --- */

/* PostgreSQL ends idle transactions unless configured otherwise. */
static enum tw_status disable_idle_timeout(struct tw_db *db, struct tw_err *err)
{
	return tw_db_run(
	        db, TW_EITHER("SELECT 1", "SET LOCAL idle_in_transaction_session_timeout=0"), err);
}

/* Other connections cannot change rows; readers continue.  Locks are taken in the order of the
 * tables, and wait for transactions in progress. */
static enum tw_status lock_tables(struct tw_db *db, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (unsigned i = 0; st == TW_OK && i < tw_tables_n; i++) {
		char sql[128];

		(void)snprintf(sql, sizeof sql,
		        TW_EITHER("SELECT 1", "LOCK TABLE \"%s\" IN EXCLUSIVE MODE"),
		        tw_tables[i].name);
		st = tw_db_run(db, sql, err);
	}
	return st;
}

enum tw_status tw_catalogue_block_writers(struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &c->held, err);

	if (st != TW_OK)
		return st;
	st = disable_idle_timeout(c->held, err);
	if (st == TW_OK && !tw_cat_is_sqlite(c))
		st = lock_tables(c->held, err);
	return st == TW_OK ? TW_OK : tw_cat_end(c, c->held, st, err);
}

enum tw_status tw_catalogue_still_held(struct tw_catalogue *c, struct tw_err *err)
{
	return disable_idle_timeout(c->held, err);
}

enum tw_status tw_catalogue_unblock_writers(struct tw_catalogue *c, struct tw_err *err)
{
	return tw_cat_end(c, c->held, TW_OK, err);
}

static enum tw_status open_side(
        struct tw_catalogue *c, bool still, struct tw_db **ret, struct tw_err *err)
{
	enum tw_status st = tw_cat_reader(c, ret, err);

	if (st == TW_OK && still)
		st = tw_db_run(*ret, "BEGIN", err);
	return st == TW_OK && still ? disable_idle_timeout(*ret, err) : st;
}

enum tw_status tw_cat_sides_open(
        struct tw_migrate_rows *m, bool still, struct tw_cat_sides *ret, struct tw_err *err)
{
	enum tw_status st = open_side(m->from, true, &ret->from, err);

	return st == TW_OK ? open_side(m->to, still, &ret->to, err) : st;
}

void tw_cat_sides_close(struct tw_migrate_rows *m, struct tw_cat_sides *s)
{
	if (s->from)
		tw_cat_done(m->from, s->from);
	if (s->to)
		tw_cat_done(m->to, s->to);
}

/* --- number sequences --- */

struct counter {
	const char *table, *get, *set; /* the last number used */
};

#define SEQUENCE "pg_get_serial_sequence('outbox','delivery_id')"

static const struct counter counters[] = {
        {"audit",
                TW_EITHER("SELECT seq FROM sqlite_sequence WHERE name='audit'",
                        "SELECT entry_id FROM audit_last"),
                TW_EITHER("INSERT INTO sqlite_sequence(name,seq) VALUES('audit',?1)",
                        "UPDATE audit_last SET entry_id=?1")},
        {"outbox",
                TW_EITHER("SELECT seq FROM sqlite_sequence WHERE name='outbox'",
                        "SELECT coalesce(pg_sequence_last_value(" SEQUENCE "),0)"),
                TW_EITHER("INSERT INTO sqlite_sequence(name,seq) VALUES('outbox',?1)",
                        "SELECT setval(" SEQUENCE ",?1)")},
};

enum { COUNTERS = sizeof counters / sizeof *counters };

static enum tw_status set_counter(
        struct tw_catalogue *to, const struct counter *k, int64_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(to, TW_SUBJECT_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	if (tw_cat_is_sqlite(to)) /* sqlite_sequence has no key for ON CONFLICT */
		st = tw_cat_exec(
		        w, NULL, err, "DELETE FROM sqlite_sequence WHERE name=?", "t", k->table);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, k->set, "i", n);
	return tw_cat_end(to, w, st, err);
}

static enum tw_status read_counter(const struct tw_cat_sides *s, const struct counter *k,
        int64_t *ret_from, int64_t *ret_to, struct tw_err *err)
{
	enum tw_status st = tw_cat_get_int(s->from, ret_from, err, k->get, "");

	return st == TW_OK ? tw_cat_get_int(s->to, ret_to, err, k->get, "") : st;
}

enum tw_status tw_cat_copy_sequences(
        struct tw_migrate_rows *m, const struct tw_cat_sides *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (const struct counter *k = counters; st == TW_OK && k < counters + COUNTERS; k++) {
		int64_t present = 0, n = 0;

		st = read_counter(s, k, &n, &present, err);
		if (st == TW_OK && n > 0 && present != n)
			st = set_counter(m->to, k, n, err);
	}
	return st;
}

enum tw_status tw_cat_compare_sequences(const struct tw_cat_sides *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (const struct counter *k = counters; st == TW_OK && k < counters + COUNTERS; k++) {
		int64_t present = 0, n = 0;

		st = read_counter(s, k, &n, &present, err);
		if (st == TW_OK && present < n)
			st = tw_fail(err, TW_CORRUPT, "the target would reuse numbers of table %s",
			        k->table);
	}
	return st;
}
