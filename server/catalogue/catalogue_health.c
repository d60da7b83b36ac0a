/*
 * catalogue_health.c - whether the catalogue can be read and written, for /readyz.
 *
 * Reading is probed.  Writing is not: a probe that writes would wait for the lock of all writers,
 * and each server and each load balancer would add to its queue.  Every write transaction reports
 * its result here instead.
 */
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"

#include <stdio.h>

#include "server/db/catalogue_sqlite.h"

/* A failed transaction counts for HOLD_MS if no other follows.  STALL_MS is more than any
 * transaction of a healthy server takes. */
enum { HOLD_MS = 10000, STALL_MS = 5000, CHECKPOINT_WAIT_MS = 100 };

/* Statements can fail for their own reasons, such as TW_CONFLICT.  These are the database's. */
static bool is_common(enum tw_status st)
{
	return st == TW_FULL || st == TW_IO;
}

void tw_cat_write_ended(
        struct tw_catalogue *c, enum tw_status st, bool by_engine, const struct tw_err *err)
{
	(void)pthread_mutex_lock(&c->writes.lock);
	if (by_engine || is_common(st)) {
		c->writes.ended_ms = tw_monotonic_ms();
		c->writes.last = (struct tw_err){.code = st};
		if (st != TW_OK && err)
			(void)snprintf(
			        c->writes.last.msg, sizeof c->writes.last.msg, "%s", err->msg);
	}
	(void)pthread_mutex_unlock(&c->writes.lock);
}

/* Monotonic, of the transaction that has been in progress longest; 0: there is none. */
static int64_t oldest_began_ms(struct tw_catalogue *c)
{
	int64_t oldest = 0;

	(void)pthread_mutex_lock(&c->writers_lock);
	for (unsigned i = 0; i < c->n_writers; i++) {
		const int64_t began = c->writers[i].began_ms;

		if (began && (!oldest || began < oldest))
			oldest = began;
	}
	(void)pthread_mutex_unlock(&c->writers_lock);
	return oldest;
}

enum tw_status tw_catalogue_writes(struct tw_catalogue *c, struct tw_err *err)
{
	const int64_t now = tw_monotonic_ms(), began = oldest_began_ms(c);
	struct tw_cat_writes w;

	(void)pthread_mutex_lock(&c->writes.lock);
	w = c->writes;
	(void)pthread_mutex_unlock(&c->writes.lock);
	if (began && now - began > STALL_MS)
		return tw_fail(err, TW_BUSY,
		        "a write transaction has been in progress for %lld seconds",
		        (long long)((now - began) / 1000));
	if (!w.ended_ms || w.last.code == TW_OK ||
	        (!tw_cat_is_sqlite(c) && now - w.ended_ms > HOLD_MS))
		return TW_OK;
	return tw_fail(err, w.last.code, "the last write failed: %.180s", w.last.msg);
}

enum tw_status tw_catalogue_ping(struct tw_catalogue *c, struct tw_err *err)
{
	int64_t version = 0;
	char sql[48];
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	if (st != TW_OK)
		return st;
	if (!tw_cat_is_sqlite(c)) {
		st = tw_cat_exec(
		        w, NULL, err, "UPDATE project SET name=name WHERE project_id=''", "");
		return tw_cat_end(c, w, st, err);
	}
	/* the same value, but page 1 is still written */
	st = tw_cat_get_int(w, &version, err, "PRAGMA user_version", "");
	(void)snprintf(sql, sizeof sql, "PRAGMA user_version=%lld", (long long)version);
	if (st == TW_OK)
		st = tw_db_run(w, sql, err);
	return tw_cat_end(c, w, st, err);
}

void tw_catalogue_write_again(struct tw_catalogue *c)
{
	bool failed;

	(void)pthread_mutex_lock(&c->writes.lock);
	failed = c->writes.ended_ms && c->writes.last.code != TW_OK;
	(void)pthread_mutex_unlock(&c->writes.lock);
	if (failed && tw_cat_is_sqlite(c) && !oldest_began_ms(c))
		(void)tw_catalogue_ping(c, NULL); /* reports its result like any other */
}

enum tw_status tw_catalogue_probe(struct tw_catalogue *c, bool *ret_writable, struct tw_err *err)
{
	int64_t only_read = 0;
	enum tw_status st;

	tw_catalogue_shorten_timeout(true);
	st = tw_cat_read_int(c, &only_read, err, /* trace_by_id */
	        TW_EITHER("SELECT 0*count(*) FROM trace WHERE trace_id=''",
	                "SELECT CASE WHEN pg_is_in_recovery() OR"
	                " current_setting('default_transaction_read_only')='on' THEN 1 ELSE 0 END"
	                " FROM (SELECT count(*) FROM trace WHERE trace_id='') t"),
	        "");
	tw_catalogue_shorten_timeout(false);
	*ret_writable = st == TW_OK && !only_read;
	return st;
}

void tw_catalogue_checkpoint(struct tw_catalogue *c)
{
	struct tw_db *w;

	if (!tw_cat_is_sqlite(c))
		return;
	w = tw_cat_writer_take(c);
	tw_db_sqlite_wait(w, CHECKPOINT_WAIT_MS); /* for readers */
	(void)tw_db_run(w, "PRAGMA wal_checkpoint(RESTART)", NULL);
	tw_db_sqlite_wait(w, TW_DB_WAIT_MS);
	tw_cat_writer_give(c, w);
}

static void keep_log_of(struct tw_db *db)
{
	int on = 1;

	if (db)
		(void)sqlite3_file_control(tw_db_sqlite(db), NULL, SQLITE_FCNTL_PERSIST_WAL, &on);
}

void tw_catalogue_keep_log(struct tw_catalogue *c)
{
	if (!tw_cat_is_sqlite(c))
		return;
	(void)pthread_mutex_lock(&c->pool_lock);
	for (unsigned i = 0; i < c->n_idle; i++)
		keep_log_of(c->idle[i]);
	(void)pthread_mutex_unlock(&c->pool_lock);
	keep_log_of(c->writers[0].db);
	keep_log_of(c->renewer);
	keep_log_of(c->locker.db);
}
