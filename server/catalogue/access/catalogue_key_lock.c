/*
 * catalogue_key_lock.c - named locks among several servers, held during work outside the database:
 * PostgreSQL's advisory locks, on a separate connection.
 *
 * No transaction stays open, and a dead server leaves no lock.  A lost connection loses all its
 * locks, and its successor may have taken the same lock for another thread: so a lock is identified
 * by its connection's session.
 */
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"

enum { IDENTITY_BYTES = 80 };

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return h;
}

/* The lock's identity must be the same for all servers, whatever address they use. */
static enum tw_status open_locker(struct tw_catalogue *c, struct tw_err *err)
{
	char identity[IDENTITY_BYTES] = "";
	enum tw_status st = tw_catalogue_identity(c, identity, sizeof identity, err);

	c->locker_seed = hash(UINT64_C(14695981039346656037), identity);
	return st == TW_OK ? tw_cat_reader_new(c, &c->locker, err) : st;
}

/* Names with equal hashes share a lock, and wait for each other.  *session identifies the lock's
 * connection; 0: a new lock, for which it is set.  The result is false for an earlier session. */
static enum tw_status query_lock(struct tw_catalogue *c, const char *sql, const char *name,
        uint64_t *session, bool *ret, struct tw_err *err)
{
	int64_t yes = 0;
	enum tw_status st = TW_OK;

	(void)pthread_mutex_lock(&c->locker_lock);
	if (!c->locker)
		st = open_locker(c, err);
	if (st == TW_OK && (!*session || *session == c->locker->session))
		st = tw_cat_first_int(
		        c->locker, &yes, err, sql, "i", (int64_t)hash(c->locker_seed, name));
	if (st == TW_OK && !*session)
		*session = c->locker->session;
	*ret = st == TW_OK && yes != 0 && *session == c->locker->session;
	(void)pthread_mutex_unlock(&c->locker_lock);
	return st;
}

enum tw_status tw_catalogue_key_lock(struct tw_catalogue *c, const char *name, bool alone,
        uint64_t *ret_session, struct tw_err *err)
{
	bool held = false;
	enum tw_status st;

	*ret_session = 0;
	st = query_lock(c,
	        alone ? "SELECT CASE WHEN pg_try_advisory_lock(?) THEN 1 ELSE 0 END"
	              : "SELECT CASE WHEN pg_try_advisory_lock_shared(?) THEN 1 ELSE 0 END",
	        name, ret_session, &held, err);
	if (!held)
		*ret_session = 0;
	return st;
}

/* pg_locks shows the lock's number in two halves. */
enum tw_status tw_catalogue_key_held(struct tw_catalogue *c, const char *name, uint64_t session,
        bool *ret_held, struct tw_err *err)
{
	return query_lock(c,
	        "SELECT count(*) FROM pg_locks WHERE locktype='advisory' AND granted"
	        " AND pid=pg_backend_pid() AND objsubid=1"
	        " AND (CAST(classid AS BIGINT)<<32|CAST(objid AS BIGINT))=?",
	        name, &session, ret_held, err);
}

enum tw_status tw_catalogue_key_unlock(struct tw_catalogue *c, const char *name, bool alone,
        uint64_t session, bool *ret_held, struct tw_err *err)
{
	return query_lock(c,
	        alone ? "SELECT CASE WHEN pg_advisory_unlock(?) THEN 1 ELSE 0 END"
	              : "SELECT CASE WHEN pg_advisory_unlock_shared(?) THEN 1 ELSE 0 END",
	        name, &session, ret_held, err);
}
