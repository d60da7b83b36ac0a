/*
 * catalogue_rollup_again.c - what cannot be counted now: given up, or put off, longer each time.
 *
 * A trace that is put off is marked folded = 3, so that nobody comes upon it, until
 * its time has come; a cell says itself when it is tried again.
 */
#include "server/catalogue/fleet/catalogue_rollup_int.h"

enum { BACK_AT_ONCE = 64 };

enum tw_status tw_catalogue_rollup_skip(
        struct tw_catalogue *c, const char *project_id, const char *trace_id, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, NULL, err,
	        "UPDATE trace SET folded=2 WHERE project_id=? AND trace_id=? AND folded=0", "tt",
	        project_id, trace_id);
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err, /* primary key */
		        "DELETE FROM rollup_again WHERE project_id=? AND trace_id=?", "tt",
		        project_id, trace_id);
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_rollup_later(
        struct tw_catalogue *c, const struct tw_rollup_todo *t, int64_t now_ms, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, &changed, err,
	        "UPDATE trace SET folded=3 WHERE project_id=? AND trace_id=? AND folded=0", "tt",
	        t->project_id, t->trace_id);
	if (st == TW_OK && changed)
		st = tw_cat_exec(c->writer, NULL, err,
		        "INSERT INTO rollup_again(project_id,trace_id,tries,again_ms)"
		        " VALUES(?1,?2,1,?3+5000) ON CONFLICT(project_id,trace_id) DO UPDATE SET"
		        " tries=rollup_again.tries+1, again_ms=?3+" TW_PUT_OFF_MS(
		                "rollup_again.tries"),
		        "tti", t->project_id, t->trace_id, now_ms);
	return tw_cat_end(c, st, err);
}

static bool read_back(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_rollup_todo *r = ret_row;

	*r = (struct tw_rollup_todo){tw_cat_text(q, 0, a), tw_cat_text(q, 1, a)};
	return r->project_id && r->trace_id;
}

/* Its tries are remembered until it is counted; the row of one that is gone goes too. */
static enum tw_status bring_back(
        struct tw_db *db, const struct tw_rollup_todo *t, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_exec(db, &changed, err, /* primary key */
	        "UPDATE trace SET folded=0 WHERE project_id=? AND trace_id=? AND folded=3", "tt",
	        t->project_id, t->trace_id);

	if (st == TW_OK && changed)
		return tw_cat_exec(db, NULL, err, /* primary key */
		        "UPDATE rollup_again SET again_ms=?3 WHERE project_id=?1 AND trace_id=?2",
		        "tti", t->project_id, t->trace_id, INT64_MAX);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "DELETE FROM rollup_again WHERE project_id=? AND trace_id=?", "tt",
		        t->project_id, t->trace_id);
	return st;
}

enum tw_status tw_catalogue_rollup_back(
        struct tw_catalogue *c, int64_t now_ms, struct tw_arena *a, struct tw_err *err)
{
	struct tw_cat_list list = {
	        a, BACK_AT_ONCE, sizeof(struct tw_rollup_todo), read_back, NULL, 0};
	const struct tw_rollup_todo *rows;
	enum tw_status st = tw_cat_list(c, &list, err, /* rollup_again_by_time */
	        "SELECT project_id, trace_id FROM rollup_again WHERE again_ms<=? LIMIT ?", "ii",
	        now_ms, (int64_t)BACK_AT_ONCE);

	if (st != TW_OK || list.n == 0)
		return st;
	rows = list.rows;
	st = tw_cat_begin(c, err);
	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < list.n; i++)
		st = bring_back(c->writer, &rows[i], err);
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_rollup_put_off(
        struct tw_catalogue *c, const struct tw_rollup_due *of, int64_t now_ms, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, NULL, err, /* primary key */
	        "UPDATE rollup_cell SET tries=tries+1, again_ms=?1+" TW_PUT_OFF_MS(
	                "tries") " WHERE project_id=?2 AND cell_id=?3",
	        "iti", now_ms, of->project_id, of->cell_id);
	return tw_cat_end(c, st, err);
}

/* --- how far it is --- */

static enum tw_status read_waiting(
        struct tw_db *db, struct tw_rollup_waiting *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err,
	        "SELECT count(*), coalesce(min(created_ms),0) FROM trace INDEXED BY trace_unfolded"
	        " WHERE project_id>'' AND state=2 AND folded=0",
	        "");

	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q)) {
		ret->traces = (uint64_t)tw_cat_int(&q, 0);
		ret->oldest_ms = tw_cat_int(&q, 1);
	}
	return tw_cat_close(&q, err);
}

enum tw_status tw_catalogue_rollup_waiting(
        struct tw_catalogue *c, struct tw_rollup_waiting *ret, struct tw_err *err)
{
	int64_t put_off = 0, trees = 0;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	*ret = (struct tw_rollup_waiting){0};
	st = read_waiting(db, ret, err);
	if (st == TW_OK)
		st = tw_cat_first_int(db, &put_off, err, /* rollup_again_by_time */
		        "SELECT count(*) FROM rollup_again WHERE again_ms<?", "i", INT64_MAX);
	if (st == TW_OK)
		st = tw_cat_first_int(db, &trees, err, /* primary key */
		        "SELECT count(*) FROM rollup_tree_later WHERE project_id>''", "");
	ret->put_off = (uint64_t)put_off;
	ret->trees = (uint64_t)trees;
	tw_cat_done(c, db);
	return st;
}
