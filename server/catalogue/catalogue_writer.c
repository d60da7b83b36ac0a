/*
 * catalogue_writer.c - writing connections and transactions.
 *
 * SQLite has one writer.  In PostgreSQL no lock is common to all: a transaction locks the rows that
 * it changes, and first, with an advisory lock, the subject that it must have to itself.  So a
 * server that stalls in a transaction blocks only transactions of the same subject or rows, until
 * PostgreSQL ends its session (TW_POSTGRES_IDLE).
 *
 * Several locks are taken in this order, so that two transactions rarely wait for each other: the
 * subject, a job, its trace, its build, rollups.  PostgreSQL ends one of two that do; who can run
 * the transaction again does so (tw_cat_again).
 */
#include "decoder/base/hash.h"
#include "server/base/clock.h"
#include "server/catalogue/catalogue_internal.h"

#include <stdio.h>

#include "server/base/thread/pool.h"
#include "server/base/thread/turn_lock.h"
#include "server/db/catalogue_postgres.h"
#include "server/db/catalogue_sqlite.h"

enum { SOON_MS = 100, TAKE_WAIT_MS = 10000, AGAIN_MOST = 8, AGAIN_MS = 4, SQL_BYTES = 512 };

/* Whether the last transaction of the thread failed because another one changed the same rows. */
static _Thread_local bool conflicted;

void tw_cat_writers_init(struct tw_catalogue *c)
{
	tw_turn_lock_init(&c->write_lock);
	(void)pthread_mutex_init(&c->writers_lock, NULL);
	c->n_writers = 1;
}

void tw_cat_writers_widen(struct tw_catalogue *c)
{
	c->n_writers = TW_CATALOGUE_WRITERS;
	tw_turn_lock_widen(&c->write_lock, TW_CATALOGUE_WRITERS);
}

void tw_cat_writers_close(struct tw_catalogue *c)
{
	for (int i = 0; i < TW_CATALOGUE_WRITERS; i++) {
		for (int k = 0; k < TW_PREPARED_N; k++)
			tw_stmt_drop(c->writers[i].prepared[k]);
		tw_db_close(c->writers[i].db);
	}
	(void)pthread_mutex_destroy(&c->writers_lock);
	tw_turn_lock_done(&c->write_lock);
}

/* A rollback may itself run out of memory; a transaction left open would make every later change
 * fail. */
enum tw_status tw_cat_undo(struct tw_db *db, struct tw_err *err)
{
	return db->engine->in_transaction(db) ? tw_db_run(db, "ROLLBACK", err) : TW_OK;
}

/* --- connections --- */

static struct tw_cat_writer *writer_of(struct tw_catalogue *c, const struct tw_db *db)
{
	unsigned i = 0;

	while (i + 1 < TW_CATALOGUE_WRITERS && c->writers[i].db != db)
		i++;
	return &c->writers[i];
}

/* Returns the first free writer, so that few are connected.  Called with a slot of write_lock. */
static struct tw_cat_writer *take_free(struct tw_catalogue *c)
{
	struct tw_cat_writer *w;
	unsigned i = 0;

	(void)pthread_mutex_lock(&c->writers_lock);
	while (i + 1 < c->n_writers && c->writers[i].taken)
		i++;
	w = &c->writers[i];
	w->taken = true;
	w->began_ms = tw_monotonic_ms();
	(void)pthread_mutex_unlock(&c->writers_lock);
	return w;
}

static void give(struct tw_catalogue *c, struct tw_cat_writer *w)
{
	(void)pthread_mutex_lock(&c->writers_lock);
	w->taken = false;
	w->began_ms = 0;
	(void)pthread_mutex_unlock(&c->writers_lock);
	tw_turn_unlock(&c->write_lock);
}

static enum tw_status connect(
        struct tw_cat_writer *w, const struct tw_catalogue *c, struct tw_err *err)
{
	struct tw_db *db = NULL;
	enum tw_status st = tw_db_postgres_open(c->path, &db, err);

	if (st == TW_OK)
		st = tw_cat_postgres_hold(db, false, err);
	if (st == TW_OK)
		w->db = db;
	else
		tw_db_close(db);
	return st;
}

struct tw_db *tw_cat_writer_take(struct tw_catalogue *c)
{
	tw_turn_lock(&c->write_lock, tw_pool_owner());
	return take_free(c)->db;
}

void tw_cat_writer_give(struct tw_catalogue *c, struct tw_db *w)
{
	give(c, writer_of(c, w));
}

struct tw_stmt **tw_cat_writer_prepared(struct tw_catalogue *c, const struct tw_db *w)
{
	return writer_of(c, w)->prepared;
}

/* --- beginning --- */

/* sql NULL: the next statement is a transaction.  `patient`: a failure indicates a problem of the
 * database, not only that another transaction is in progress. */
static enum tw_status begin(struct tw_catalogue *c, struct tw_cat_writer *w, const char *sql,
        bool patient, struct tw_db **ret, struct tw_err *err)
{
	struct tw_err why = {.msg = ""};
	enum tw_status st = w->db ? TW_OK : connect(w, c, &why);

	conflicted = false;
	if (st == TW_OK)
		st = tw_cat_undo(w->db, &why);
	w->one = !sql;
	if (w->db)
		w->db->adds_drops = c->adds_drops;
	if (st == TW_OK && sql)
		st = tw_db_run(w->db, sql, &why);
	if (st == TW_OK) {
		*ret = w->db;
		return TW_OK;
	}
	if (w->db) {
		conflicted = w->db->engine->conflicts(w->db);
		(void)tw_cat_undo(w->db, NULL); /* the server may have begun it although the reply
		                                 * was lost */
	}
	tw_cat_write_ended(c, st, patient, &why);
	give(c, w);
	tw_err_copy(err, &why);
	return st;
}

/* SQLite's one is given back soon; of PostgreSQL's all may hang. */
static enum tw_status begin_as(struct tw_catalogue *c, const char *owner, const char *sql,
        struct tw_db **ret, struct tw_err *err)
{
	*ret = NULL;
	if (tw_cat_is_sqlite(c))
		tw_turn_lock(&c->write_lock, owner);
	else if (!tw_turn_lock_within(&c->write_lock, owner, TAKE_WAIT_MS))
		return tw_fail(err, TW_BUSY, "catalogue: all %u writing connections are in use",
		        c->n_writers);
	return begin(c, take_free(c), sql, true, ret, err);
}

enum tw_status tw_cat_begin_as(
        struct tw_catalogue *c, const char *sql, struct tw_db **ret, struct tw_err *err)
{
	return begin_as(c, tw_pool_owner(), sql, ret, err);
}

enum tw_status tw_cat_begin_uploads(
        struct tw_catalogue *c, bool one, struct tw_db **ret, struct tw_err *err)
{
	return begin_as(c, "uploads", one ? NULL : "BEGIN IMMEDIATE", ret, err);
}

enum tw_status tw_cat_begin_one(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err)
{
	return tw_cat_begin_as(c, tw_cat_is_sqlite(c) ? "BEGIN IMMEDIATE" : NULL, ret, err);
}

/* The same number on all servers. */
int64_t tw_cat_lock_number(enum tw_cat_subject of, const char *id)
{
	struct tw_str with_end = {id, strlen(id) + 1};

	return (int64_t)tw_fnv64(TW_FNV64_BASIS ^ (uint64_t)of, with_end);
}

#define LOCK_SUBJECT                                                                               \
	"SELECT pg_advisory_xact_lock(hashtextextended(identity,%lld)) FROM catalogue_identity"

enum tw_status tw_cat_begin(struct tw_catalogue *c, enum tw_cat_subject subject, const char *id,
        struct tw_db **ret, struct tw_err *err)
{
	char sql[SQL_BYTES];

	if (tw_cat_is_sqlite(c) || subject == TW_SUBJECT_NONE)
		return tw_cat_begin_as(c, "BEGIN IMMEDIATE", ret, err);
	(void)snprintf(sql, sizeof sql,
	        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; " LOCK_SUBJECT,
	        (long long)tw_cat_lock_number(subject, id));
	return tw_cat_begin_as(c, sql, ret, err);
}

enum tw_status tw_cat_lock(
        struct tw_db *w, enum tw_cat_subject of, const char *id, bool exclusive, struct tw_err *err)
{
	if (!w->engine->is_shared) /* one writer */
		return TW_OK;
	return tw_cat_exec(w, NULL, err,
	        exclusive ? "SELECT pg_advisory_xact_lock(hashtextextended(identity,?)) FROM"
	                    " catalogue_identity"
	                  : "SELECT pg_advisory_xact_lock_shared(hashtextextended(identity,?)) FROM"
	                    " catalogue_identity",
	        "i", tw_cat_lock_number(of, id));
}

enum tw_status tw_cat_begin_soon(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err)
{
	struct tw_cat_writer *w;
	enum tw_status st;

	*ret = NULL;
	if (!tw_turn_lock_within(&c->write_lock, tw_pool_owner(), SOON_MS))
		return tw_fail(
		        err, TW_BUSY, "the catalogue is busy: another transaction is writing");
	w = take_free(c);
	if (tw_cat_is_sqlite(c))
		tw_db_sqlite_wait(w->db, SOON_MS);
	st = begin(c, w,
	        TW_EITHER("BEGIN IMMEDIATE", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
	                                     " SET LOCAL lock_timeout='100ms'"),
	        false, ret, err);
	if (tw_cat_is_sqlite(c))
		tw_db_sqlite_wait(c->writers[0].db, TW_DB_WAIT_MS);
	return st;
}

/* --- ending --- */

enum tw_status tw_cat_end(
        struct tw_catalogue *c, struct tw_db *db, enum tw_status st, struct tw_err *err)
{
	const bool commits = st == TW_OK, one = db && writer_of(c, db)->one;
	struct tw_err why = {.msg = ""};

	if (!db)
		return st;
	if (commits && !one)
		st = tw_db_run(db, "COMMIT", &why);
	conflicted = st != TW_OK && db->engine->conflicts(db);
	if (st != TW_OK && tw_cat_undo(db, NULL) != TW_OK)
		(void)tw_cat_undo(db, NULL);
	/* the one statement begins and commits too */
	tw_cat_write_ended(
	        c, st, commits || (one && st == TW_BUSY && !conflicted), commits ? &why : err);
	give(c, writer_of(c, db));
	if (commits && st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

enum tw_status tw_cat_may_idle(struct tw_db *w, struct tw_err *err)
{
	return w->engine->is_shared
	               ? tw_db_run(w,
	                         "SET LOCAL "
	                         "idle_in_transaction_session_timeout='" TW_POSTGRES_FILE_IDLE "'",
	                         err)
	               : TW_OK;
}

bool tw_cat_again(enum tw_status st, unsigned *io_tries)
{
	const unsigned n = ++*io_tries;

	if (st == TW_OK || !conflicted || n >= AGAIN_MOST)
		return false;
	tw_sleep_ms((int64_t)(1 + (uint64_t)tw_cat_random() % ((uint64_t)AGAIN_MS << n)));
	return true;
}

enum tw_status tw_cat_transact(struct tw_catalogue *c, enum tw_cat_subject subject,
        tw_cat_work work, void *arg, struct tw_err *err)
{
	unsigned attempts = 0;
	enum tw_status st;

	do {
		struct tw_db *w = NULL;

		st = tw_cat_begin(c, subject, "", &w, err);
		if (st == TW_OK)
			st = tw_cat_end(c, w, work(w, arg, err), err);
	} while (tw_cat_again(st, &attempts));
	return st;
}
