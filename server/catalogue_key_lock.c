/*
 * catalogue_key_lock.c - locks of names that several servers have to agree on, while one of them is
 * at work elsewhere: of PostgreSQL, held by a connection of their own.
 *
 * No transaction is open meanwhile, and a server that dies leaves none behind.  A connection that
 * was lost has lost all of them: giving one back tells.
 */
#include "catalogue_internal.h"

/* Names share a lock where their hashes are equal: they wait for one another then. */
static int64_t number_of(const struct tw_catalogue *c, const char *name)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (const char *at = c->path; *at; at++)
		h = (h ^ (unsigned char)*at) * UINT64_C(1099511628211);
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return (int64_t)h;
}

static enum tw_status ask(
        struct tw_catalogue *c, const char *sql, const char *name, bool *ret, struct tw_err *err)
{
	int64_t yes = 0;
	enum tw_status st = TW_OK;

	(void)pthread_mutex_lock(&c->locker_lock);
	if (!c->locker)
		st = tw_cat_reader_new(c, &c->locker, err);
	if (st == TW_OK)
		st = tw_cat_first_int(c->locker, &yes, err, sql, "i", number_of(c, name));
	(void)pthread_mutex_unlock(&c->locker_lock);
	*ret = yes != 0;
	return st;
}

enum tw_status tw_catalogue_key_lock(
        struct tw_catalogue *c, const char *name, bool alone, bool *ret, struct tw_err *err)
{
	return ask(c,
	        alone ? "SELECT CASE WHEN pg_try_advisory_lock(?) THEN 1 ELSE 0 END"
	              : "SELECT CASE WHEN pg_try_advisory_lock_shared(?) THEN 1 ELSE 0 END",
	        name, ret, err);
}

enum tw_status tw_catalogue_key_unlock(
        struct tw_catalogue *c, const char *name, bool alone, bool *ret_held, struct tw_err *err)
{
	return ask(c,
	        alone ? "SELECT CASE WHEN pg_advisory_unlock(?) THEN 1 ELSE 0 END"
	              : "SELECT CASE WHEN pg_advisory_unlock_shared(?) THEN 1 ELSE 0 END",
	        name, ret_held, err);
}
