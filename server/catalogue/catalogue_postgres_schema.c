/*
 * catalogue_postgres_schema.c - migrates the schema of a catalogue in PostgreSQL.
 *
 * Migrations have the same numbers as SQLite's.  All missing ones are applied in one transaction,
 * by one process at a time, and only while no server uses the catalogue.
 */
#include <stdio.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_tables.h"
#include "server/db/catalogue_postgres_int.h"

enum { SETTINGS_BYTES = 300 };

enum { NO_CATALOGUE, OTHER_COLUMNS, SAME_COLUMNS };

/* 0 in an empty database.  *ret_same: a program with the same columns created the tables. */
static enum tw_status schema_version(struct tw_db *db, const struct tw_embedded *schema,
        int64_t *ret, bool *ret_same, struct tw_err *err)
{
	char sum[TW_COLUMNS_SUM_BYTES];
	int64_t found = NO_CATALOGUE;
	enum tw_status st;

	tw_cat_columns_sum(sum);
	st = tw_cat_get_int(db, &found, err,
	        "SELECT CASE WHEN to_regclass('catalogue_schema') IS NULL THEN 0 WHEN"
	        " obj_description(to_regclass('catalogue_schema'),'pg_class')=? THEN 2 ELSE 1 END",
	        "t", sum);
	*ret = 0;
	*ret_same = found == SAME_COLUMNS;
	if (st != TW_OK || found == NO_CATALOGUE)
		return st;
	st = tw_cat_get_int(db, ret, err, "SELECT version FROM catalogue_schema", "");
	if (st == TW_OK && (*ret < 1 || *ret > tw_cat_last_schema(schema)))
		st = tw_cat_unknown_schema((int)*ret, schema, err);
	return st;
}

static enum tw_status apply(
        struct tw_db *db, const struct tw_embedded *file, int number, struct tw_err *err)
{
	PGresult *r = tw_postgres_run((struct tw_postgres *)db, (const char *)file->data, NULL);
	char sum[TW_COLUMNS_SUM_BYTES], comment[SETTINGS_BYTES];
	enum tw_status st = r ? TW_OK : tw_postgres_fail(db, err);

	PQclear(r);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "DELETE FROM catalogue_schema", "");
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "INSERT INTO catalogue_schema VALUES(?)", "i",
		        (int64_t)number);
	if (st == TW_OK) {
		tw_cat_columns_sum(sum);
		(void)snprintf(
		        comment, sizeof comment, "COMMENT ON TABLE catalogue_schema IS '%s'", sum);
		st = tw_db_run(db, comment, err);
	}
	return st;
}

static enum tw_status exclude_servers(struct tw_db *db, struct tw_err *err)
{
	struct tw_err why;
	enum tw_status st = tw_postgres_exclude_servers(db, &why);

	if (st == TW_BUSY)
		return tw_fail(err, TW_BUSY,
		        "the catalogue must be migrated while no server of the earlier version "
		        "uses it: stop all of them, then start this one (%.120s)",
		        why.msg);
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

/* Another process may have done it already. */
static enum tw_status migrate(
        struct tw_db *db, const struct tw_embedded *schema, struct tw_err *err)
{
	const int last = tw_cat_last_schema(schema);
	int64_t have = 0;
	bool same;
	enum tw_status st = tw_db_run(db,
	        "SET LOCAL statement_timeout=0; SET LOCAL lock_timeout=0;"
	        "SELECT pg_advisory_xact_lock(hashtext('tracewell'))",
	        err);

	if (st == TW_OK)
		st = schema_version(db, schema, &have, &same, err);
	if (st == TW_OK && have > 0 && have < last)
		st = exclude_servers(db, err);
	for (int i = (int)have; st == TW_OK && i < last; i++)
		st = apply(db, &schema[i], i + 1, err);
	return st;
}

enum tw_status tw_cat_postgres_hold(struct tw_db *db, bool exclusive, struct tw_err *err)
{
	return tw_postgres_hold(
	        db, exclusive, tw_cat_last_schema(tw_catalogue_postgres_schema), err);
}

enum tw_status tw_cat_postgres_begin_unlocked(struct tw_db *db, const char *set, struct tw_err *err)
{
	char sql[SETTINGS_BYTES];
	int64_t schema = 0;
	enum tw_status st;

	(void)snprintf(sql, sizeof sql,
	        "START TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL"
	        " idle_in_transaction_session_timeout='" TW_POSTGRES_IDLE "';%s",
	        set);
	st = tw_db_run(db, sql, err);
	if (st == TW_OK)
		st = tw_cat_get_int(
		        db, &schema, err, "SELECT version FROM catalogue_schema" /* one row */, "");
	if (st == TW_OK && schema != tw_cat_last_schema(tw_catalogue_postgres_schema))
		st = tw_fail(err, TW_BUSY, "catalogue: " TW_POSTGRES_MIGRATED);
	return st;
}

enum tw_status tw_postgres_upgrade(struct tw_db *db, const struct tw_embedded *schema,
        bool may_migrate, bool *ret_same, struct tw_err *err)
{
	int64_t have = 0;
	enum tw_status st = schema_version(db, schema, &have, ret_same, err);

	if (st != TW_OK || have == tw_cat_last_schema(schema))
		return st;
	if (have > 0 && !may_migrate)
		return tw_cat_old_schema((int)have, schema, err);
	st = tw_db_run(db, "START TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE", err);
	if (st != TW_OK)
		return st;
	((struct tw_postgres *)db)->patient = true;
	st = migrate(db, schema, err);
	((struct tw_postgres *)db)->patient = false;
	if (st == TW_OK)
		return tw_db_run(db, "COMMIT", err);
	(void)tw_db_run(db, "ROLLBACK", NULL);
	return st;
}
