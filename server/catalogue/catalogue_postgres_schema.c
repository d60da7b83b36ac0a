/*
 * catalogue_postgres_schema.c - migrations of the catalogue in PostgreSQL.
 *
 * Files are numbered as SQLite's are, and the first is what SQLite's were together by its number.
 * All that are missing are applied in one transaction, by one process at a time.
 */
#include <limits.h>

#include "catalogue_internal.h"
#include "catalogue_postgres_int.h"
#include "embedded.h"

extern const struct tw_embedded tw_catalogue_postgres_schema[];

enum { MAX_VERSION = 9999 };

static int number_of(const struct tw_embedded *file)
{
	struct tw_str rest = tw_str_of(file->name);
	uint64_t n = 0;

	(void)tw_str_u64(tw_str_split(&rest, '_'), MAX_VERSION, &n);
	return (int)n;
}

static int known_schema(void)
{
	int known = 0;

	for (const struct tw_embedded *f = tw_catalogue_postgres_schema; f->name; f++)
		known = number_of(f);
	return known;
}

static enum tw_status schema_version(struct tw_db *db, int64_t *ret, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_first_int(
	        db, &there, err, "SELECT to_regclass('catalogue_schema') IS NOT NULL", "");

	*ret = 0;
	if (st != TW_OK || !there)
		return st;
	return tw_cat_first_int(db, ret, err, "SELECT version FROM catalogue_schema", "");
}

static enum tw_status apply(struct tw_db *db, const struct tw_embedded *file, struct tw_err *err)
{
	PGresult *r =
	        tw_postgres_run((struct tw_postgres *)db, (const char *)file->data, NULL, false);
	enum tw_status st = r ? TW_OK : tw_postgres_fail(db, err);

	PQclear(r);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "DELETE FROM catalogue_schema", "");
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "INSERT INTO catalogue_schema VALUES(?)", "i",
		        (int64_t)number_of(file));
	return st;
}

/* Another process may have been quicker. */
static enum tw_status migrate(struct tw_db *db, struct tw_err *err)
{
	int64_t have = 0;
	enum tw_status st = tw_db_run(db,
	        "SET LOCAL statement_timeout=0; SET LOCAL lock_timeout=0;"
	        "SELECT pg_advisory_xact_lock(hashtext('tracewell'))",
	        err);

	if (st == TW_OK)
		st = schema_version(db, &have, err);
	for (const struct tw_embedded *f = tw_catalogue_postgres_schema; st == TW_OK && f->name;
	        f++)
		if (number_of(f) > have)
			st = apply(db, f, err);
	return st;
}

enum tw_status tw_postgres_upgrade(struct tw_db *db, struct tw_err *err)
{
	int64_t have = 0;
	enum tw_status st = schema_version(db, &have, err);

	if (st == TW_OK && have > known_schema())
		return tw_fail(err, TW_UNSUPPORTED, TW_NO_OFFSET,
		        "the catalogue has schema %d, this program knows up to %d: it was written "
		        "by a newer tracewell",
		        (int)have, known_schema());
	if (st != TW_OK || have == known_schema())
		return st;
	st = tw_db_run(db, "START TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE", err);
	if (st != TW_OK)
		return st;
	((struct tw_postgres *)db)->patient = true;
	st = migrate(db, err);
	((struct tw_postgres *)db)->patient = false;
	if (st == TW_OK)
		return tw_db_run(db, "COMMIT", err);
	(void)tw_db_run(db, "ROLLBACK", NULL);
	return st;
}
