/*
 * catalogue_postgres_schema.c - migrates the schema of a catalogue in PostgreSQL.
 *
 * Migrations have the same numbers as SQLite's.  All missing ones are applied in one transaction,
 * by one process at a time, and only while no server uses the catalogue.
 */
#include <stdio.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/db/catalogue_postgres_int.h"

enum { SETTINGS_BYTES = 300 };

/* 0 in an empty database. */
static enum tw_status schema_version(
        struct tw_db *db, const struct tw_embedded *schema, int64_t *ret, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_get_int(
	        db, &there, err, "SELECT to_regclass('catalogue_schema') IS NOT NULL", "");

	*ret = 0;
	if (st != TW_OK || !there)
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
	enum tw_status st = r ? TW_OK : tw_postgres_fail(db, err);

	PQclear(r);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "DELETE FROM catalogue_schema", "");
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "INSERT INTO catalogue_schema VALUES(?)", "i",
		        (int64_t)number);
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
	enum tw_status st = tw_db_run(db,
	        "SET LOCAL statement_timeout=0; SET LOCAL lock_timeout=0;"
	        "SELECT pg_advisory_xact_lock(hashtext('tracewell'))",
	        err);

	if (st == TW_OK)
		st = schema_version(db, schema, &have, err);
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

enum tw_status tw_postgres_upgrade(
        struct tw_db *db, const struct tw_embedded *schema, bool may_migrate, struct tw_err *err)
{
	int64_t have = 0;
	enum tw_status st = schema_version(db, schema, &have, err);

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
