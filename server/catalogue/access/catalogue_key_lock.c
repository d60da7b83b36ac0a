/*
 * catalogue_key_lock.c - named locks among several servers, held during work outside the database:
 * PostgreSQL's advisory locks, on a separate connection.
 *
 * No transaction stays open, and a dead server leaves no lock.  A lost connection loses all its
 * locks, and its successor may have taken the same lock for another thread: so a lock is identified
 * by its connection's session.
 *
 * Threads that arrive while a statement runs share the next one, and while locks are held, others
 * are about to arrive: a statement waits for them for GATHER_MS, a fraction of a store's response.
 */
#include "decoder/base/hash.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"

#include <stdio.h>

#include "server/base/clock.h"
#include "server/base/thread/cond.h"

enum { IDENTITY_BYTES = 80, TOGETHER = 32, LIST_BYTES = TOGETHER * 24, GATHER_MS = 3 };

/* Unlocks run first: on a new connection they then release none of the statement's locks. */
enum action { UNLOCK_EXCLUSIVE, UNLOCK, LOCK_EXCLUSIVE, LOCK, HELD };

struct tw_cat_lock_request {
	enum action action;
	const char *name;
	uint64_t session; /* of the lock's connection; 0: a new lock, for which it is set */
	bool granted;     /* false also if the session has ended */
	bool done;
	enum tw_status status;
	struct tw_err err;
	struct tw_cat_lock_request *next;
};

/* The lock's identity must be the same for all servers, whatever address they use. */
static enum tw_status open_locker(struct tw_catalogue *c, struct tw_err *err)
{
	char identity[IDENTITY_BYTES] = "";
	enum tw_status st = tw_catalogue_identity(c, identity, sizeof identity, err);

	c->locker.seed = tw_fnv64(TW_FNV64_BASIS, tw_str_of(identity));
	return st == TW_OK ? tw_cat_reader_new(c, &c->locker.db, err) : st;
}

/* pg_locks shows the lock's number in two halves. */
#define ACT                                                                                        \
	"SELECT r.n, CAST(CASE r.action WHEN 0 THEN pg_advisory_unlock(r.key)"                     \
	" WHEN 1 THEN pg_advisory_unlock_shared(r.key) WHEN 2 THEN pg_try_advisory_lock(r.key)"    \
	" WHEN 3 THEN pg_try_advisory_lock_shared(r.key) ELSE EXISTS(SELECT 1 FROM pg_locks WHERE" \
	" locktype='advisory' AND granted AND pid=pg_backend_pid() AND objsubid=1 AND"             \
	" (CAST(classid AS BIGINT)<<32|CAST(objid AS BIGINT))=r.key) END AS INT)"                  \
	" FROM unnest(CAST(? AS INT[]),CAST(? AS BIGINT[])) WITH ORDINALITY r(action,key,n)"

/* Names with equal hashes share a lock, and wait for each other. */
static enum tw_status act(
        struct tw_catalogue *c, struct tw_cat_lock_request *const *of, size_t n, struct tw_err *err)
{
	char actions[LIST_BYTES] = "{", keys[LIST_BYTES] = "{";
	size_t at_action = 1, at_key = 1;
	struct tw_cat_query q;
	enum tw_status st;

	for (size_t i = 0; i < n; i++) {
		const char end = i + 1 < n ? ',' : '}';

		at_action += (size_t)snprintf(actions + at_action, sizeof actions - at_action,
		        "%d%c", (int)of[i]->action, end);
		at_key += (size_t)snprintf(keys + at_key, sizeof keys - at_key, "%lld%c",
		        (long long)tw_fnv64(c->locker.seed, tw_str_of(of[i]->name)), end);
	}
	st = tw_cat_query(&q, c->locker.db, err, ACT, "tt", actions, keys);
	while (tw_cat_row(&q)) {
		const int64_t i = tw_cat_int(&q, 0) - 1;

		if (i >= 0 && (size_t)i < n)
			of[i]->granted = tw_cat_int(&q, 1) != 0;
	}
	return tw_cat_close_after(&q, st, err);
}

/* Skips requests for locks of an earlier session: those are lost. */
static void run(struct tw_catalogue *c, struct tw_cat_lock_request *first)
{
	struct tw_cat_lock_request *of[TOGETHER];
	struct tw_err why;
	size_t n = 0;
	enum tw_status st = c->locker.db ? TW_OK : open_locker(c, &why);

	for (enum action action = 0; st == TW_OK && action <= HELD; action++)
		for (struct tw_cat_lock_request *r = first; r; r = r->next)
			if (r->action == action &&
			        (!r->session || r->session == c->locker.db->session))
				of[n++] = r;
	if (n)
		st = act(c, of, n, &why);
	for (struct tw_cat_lock_request *r = first; r; r = r->next) {
		r->status = st;
		if (st != TW_OK)
			tw_err_copy(&r->err, &why);
		else if (!r->session)
			r->session = c->locker.db->session;
		r->granted = r->granted && st == TW_OK && r->session == c->locker.db->session;
	}
}

/* Call with the lock held.  Waits up to GATHER_MS for more requests while locks are held that the
 * queue does not release. */
static void gather(struct tw_cat_locker *l)
{
	const int64_t until_ms = tw_monotonic_ms() + GATHER_MS;
	unsigned held = l->held;

	for (const struct tw_cat_lock_request *r = l->first; r && held; r = r->next)
		held -= r->action == UNLOCK || r->action == UNLOCK_EXCLUSIVE;
	while (held && tw_monotonic_ms() < until_ms)
		(void)tw_cond_wait_until(&l->changed, &l->lock, until_ms);
}

/* Call with the lock held.  Removes up to TOGETHER requests from the queue. */
static struct tw_cat_lock_request *take(struct tw_cat_locker *l)
{
	struct tw_cat_lock_request *first = l->first, **end = &l->first;

	for (size_t n = 0; n < TOGETHER && *end; n++)
		end = &(*end)->next;
	l->first = *end;
	if (!l->first)
		l->last = &l->first;
	*end = NULL;
	return first;
}

static enum tw_status request(
        struct tw_catalogue *c, struct tw_cat_lock_request *io, bool *ret, struct tw_err *err)
{
	struct tw_cat_locker *l = &c->locker;

	(void)pthread_mutex_lock(&l->lock);
	*l->last = io;
	l->last = &io->next;
	while (!io->done) {
		struct tw_cat_lock_request *of, *next;

		if (l->running) {
			(void)pthread_cond_wait(&l->changed, &l->lock);
			continue;
		}
		l->running = true;
		gather(l);
		of = take(l);
		(void)pthread_mutex_unlock(&l->lock);
		run(c, of);
		(void)pthread_mutex_lock(&l->lock);
		for (; of; of = next) {
			next = of->next; /* its thread may end */
			l->held +=
			        of->granted && (of->action == LOCK || of->action == LOCK_EXCLUSIVE);
			l->held -= of->action == UNLOCK || of->action == UNLOCK_EXCLUSIVE;
			of->done = true;
		}
		l->running = false;
		(void)pthread_cond_broadcast(&l->changed);
	}
	(void)pthread_mutex_unlock(&l->lock);
	*ret = io->granted;
	if (io->status != TW_OK)
		tw_err_copy(err, &io->err);
	return io->status;
}

enum tw_status tw_catalogue_key_lock(struct tw_catalogue *c, const char *name, bool exclusive,
        uint64_t *ret_session, struct tw_err *err)
{
	struct tw_cat_lock_request r = {.action = exclusive ? LOCK_EXCLUSIVE : LOCK, .name = name};
	bool held = false;
	enum tw_status st = request(c, &r, &held, err);

	*ret_session = held ? r.session : 0;
	return st;
}

enum tw_status tw_catalogue_key_held(struct tw_catalogue *c, const char *name, uint64_t session,
        bool *ret_held, struct tw_err *err)
{
	struct tw_cat_lock_request r = {.action = HELD, .name = name, .session = session};

	return request(c, &r, ret_held, err);
}

enum tw_status tw_catalogue_key_unlock(struct tw_catalogue *c, const char *name, bool exclusive,
        uint64_t session, bool *ret_held, struct tw_err *err)
{
	struct tw_cat_lock_request r = {
	        .action = exclusive ? UNLOCK_EXCLUSIVE : UNLOCK, .name = name, .session = session};

	return request(c, &r, ret_held, err);
}
