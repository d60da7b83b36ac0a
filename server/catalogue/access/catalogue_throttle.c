#include "server/catalogue/access/catalogue_throttle.h"

#include "server/catalogue/catalogue_internal.h"

/* Limits a bucket to its capacity: a larger value was written before the database's clock was set
 * back. */
static enum tw_status pull_back(
        struct tw_db *db, const struct tw_throttle_cost *cost, int64_t now, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < cost->n; i++)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "UPDATE signin_try SET empty_ms=?2 WHERE what=?1 AND empty_ms>?2", "ii",
		        (int64_t)cost->buckets[i].key, now + cost->buckets[i].most_ms);
	return st;
}

/* *ret_over: a bucket must be limited. */
static enum tw_status longest_wait(struct tw_db *db, const struct tw_throttle_cost *cost,
        int64_t now, int64_t *ret, bool *ret_over, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	*ret = 0;
	*ret_over = false;
	for (size_t i = 0; st == TW_OK && i < cost->n; i++) {
		const struct tw_throttle_bucket *b = &cost->buckets[i];
		int64_t empty = 0, over;

		st = tw_cat_get_int(db, &empty, err, /* primary key */
		        "SELECT empty_ms FROM signin_try WHERE what=?", "i", (int64_t)b->key);
		*ret_over = *ret_over || empty > now + b->most_ms;
		if (empty > now + b->most_ms)
			empty = now + b->most_ms;
		over = (empty > now ? empty - now : 0) + b->cost_ms - b->most_ms;
		if (over > *ret)
			*ret = over;
	}
	return st;
}

static enum tw_status reserve_space(struct tw_db *db, int64_t now, size_t n, struct tw_err *err)
{
	int64_t rows = 0;
	enum tw_status st = tw_cat_exec(db, NULL, err, /* signin_try_by_end */
	        "DELETE FROM signin_try WHERE empty_ms<=?", "i", now);

	if (st == TW_OK)
		st = tw_cat_get_int(
		        db, &rows, err, "SELECT count(*) FROM signin_try", ""); /* few */
	if (st == TW_OK && rows + (int64_t)n > TW_THROTTLE_ROWS)
		st = tw_cat_exec(db, NULL, err, /* signin_try_by_end */
		        "DELETE FROM signin_try WHERE what IN (SELECT what FROM signin_try"
		        " ORDER BY empty_ms LIMIT ?)",
		        "i", (int64_t)n);
	return st;
}

static enum tw_status take(
        struct tw_db *db, const struct tw_throttle_cost *cost, int64_t now, struct tw_err *err)
{
	enum tw_status st = reserve_space(db, now, cost->n, err);

	for (size_t i = 0; st == TW_OK && i < cost->n; i++) /* empty buckets were deleted above */
		st = tw_cat_exec(db, NULL, err,             /* primary key */
		        "INSERT INTO signin_try(what,empty_ms) VALUES(?1,?2) ON CONFLICT (what) DO"
		        " UPDATE SET empty_ms=signin_try.empty_ms+?3",
		        "iii", (int64_t)cost->buckets[i].key, now + cost->buckets[i].cost_ms,
		        cost->buckets[i].cost_ms);
	return st;
}

static enum tw_status read_wait(struct tw_catalogue *c, const struct tw_throttle_cost *cost,
        int64_t *ret_wait_ms, bool *ret_over, struct tw_err *err)
{
	int64_t now = 0;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = tw_cat_now(db, &now, err);
	if (st == TW_OK)
		st = longest_wait(db, cost, now, ret_wait_ms, ret_over, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_throttle(struct tw_catalogue *c, const struct tw_throttle_cost *cost,
        bool count, int64_t *ret_wait_ms, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t now = 0;
	bool over = false;
	enum tw_status st = read_wait(c, cost, ret_wait_ms, &over, err);

	if (st != TW_OK || (!over && (*ret_wait_ms || !count)))
		return st; /* a refusal needs no write */
	st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);
	if (st != TW_OK)
		return st;
	st = tw_cat_now(w, &now, err);
	if (st == TW_OK && over)
		st = pull_back(w, cost, now, err);
	if (st == TW_OK)
		st = longest_wait(w, cost, now, ret_wait_ms, &over, err);
	if (st == TW_OK && *ret_wait_ms == 0 && count)
		st = take(w, cost, now, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_throttle_back(
        struct tw_catalogue *c, const struct tw_throttle_cost *cost, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	for (size_t i = 0; st == TW_OK && i < cost->n; i++)
		st = tw_cat_exec(w, NULL, err, /* primary key */
		        "UPDATE signin_try SET empty_ms=empty_ms-? WHERE what=?", "ii",
		        cost->buckets[i].cost_ms, (int64_t)cost->buckets[i].key);
	return tw_cat_end(c, w, st, err);
}
