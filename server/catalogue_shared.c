/*
 * catalogue_shared.c - a catalogue in which several servers are at work.
 */
#include <stdio.h>

#include "catalogue_internal.h"

enum tw_status tw_catalogue_identity(
        struct tw_catalogue *c, char *ret, size_t cap, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, "SELECT identity FROM catalogue_identity", "");
	if (st == TW_OK) {
		(void)snprintf(ret, cap, "%s", tw_cat_row(&q) ? tw_cat_str(&q, 0) : "");
		st = tw_cat_close(&q, err);
	}
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_take_folder(struct tw_catalogue *c, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, &changed, err,
	        "UPDATE catalogue_identity SET has_folder=1 WHERE has_folder=0", "");
	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_CONFLICT, TW_NO_OFFSET,
		        "this catalogue's files are in another data folder, with a catalogue.url: "
		        "all "
		        "of its servers share that one");
	return tw_cat_end(c, st, err);
}

/* It goes over when its time has run out. */
static enum tw_status lead(struct tw_db *db, const char *what, const char *owner, int64_t lease_ms,
        int *ret, struct tw_err *err)
{
	const int64_t now = tw_unix_ms();

	return tw_cat_exec(db, ret, err, /* primary key */
	        "INSERT INTO catalogue_lead(what,owner,until_ms) VALUES(?1,?2,?3) ON CONFLICT(what)"
	        " DO UPDATE SET owner=excluded.owner, until_ms=excluded.until_ms WHERE"
	        " catalogue_lead.owner=?2 OR catalogue_lead.until_ms<=?4",
	        "ttii", what, owner, now + lease_ms, now);
}

enum tw_status tw_catalogue_lead(struct tw_catalogue *c, const char *what, const char *owner,
        int64_t lease_ms, bool *ret, struct tw_err *err)
{
	int mine = 0;
	enum tw_status st;

	*ret = true;
	if (!tw_catalogue_is_shared(c))
		return TW_OK;
	st = tw_cat_begin(c, err);
	if (st != TW_OK)
		return st;
	st = lead(c->writer, what, owner, lease_ms, &mine, err);
	*ret = mine > 0;
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_unless_used(struct tw_catalogue *c, const char *sha256,
        enum tw_status (*drop)(void *arg, const char *sha256, struct tw_err *err), void *arg,
        struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 12);
	const char **unused = NULL;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_cat_begin(c, err) : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");

	if (st == TW_OK) {
		st = tw_cat_unused_blobs(c->writer, &sha256, 1, a, &unused, &n, err);
		if (st == TW_OK && n)
			st = drop(arg, sha256, err);
		st = tw_cat_end(c, st, err);
	}
	tw_arena_free(a);
	return st;
}
