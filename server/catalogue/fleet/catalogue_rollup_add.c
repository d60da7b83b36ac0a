/*
 * catalogue_rollup_add.c - adds deltas of a cell to its parts: due cells, and the replacement.
 *
 * The sums are computed outside any transaction (derive/rollup/rollup_add.c).  The replacement
 * succeeds only if the cell's version and all deltas are unchanged.
 */

#include "server/catalogue/fleet/catalogue_rollup_int.h"

enum { DELTAS_AT_ONCE = 512 };

static const struct tw_fields due_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_rollup_due, project_id, "project_id", NULL),
                TW_FIELD(struct tw_rollup_due, cell_id, "cell_id", NULL));

enum tw_status tw_catalogue_rollup_due(struct tw_catalogue *c, const struct tw_rollup_when *when,
        uint32_t limit, struct tw_arena *a, struct tw_rollup_due **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &due_fields, ret, ret_n), err,
	        "SELECT {columns} FROM rollup_cell INDEXED BY rollup_cell_pending WHERE "
	        "project_id>?1 AND pending>0 AND again_ms<=?2 AND "
	        "(pending>=min(?3,max(?4,(traces-pending)/4)) OR day<?5) ORDER BY project_id, "
	        "pending DESC LIMIT ?6",
	        "tiiiii", when->after_project, when->now_ms, (int64_t)when->most,
	        (int64_t)when->least, when->day, (int64_t)limit);
}

static enum tw_status load(struct tw_db *db, const struct tw_rollup_due *of, struct tw_arena *a,
        struct tw_rollup_cell *ret, struct tw_err *err)
{
	struct tw_cat_cells k = {.db = db,
	        .project_id = of->project_id,
	        .arena = a,
	        .metrics = TW_ROLLUP_ALL,
	        .max_deltas = DELTAS_AT_ONCE};
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT " TW_CELL_COLUMNS " FROM rollup_cell WHERE project_id=? AND cell_id=?",
	        "ti", of->project_id, of->cell_id);

	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q))
		st = tw_cat_cell_row(&q, a, ret, err);
	else if (tw_cat_at_end(&q))
		st = tw_fail(err, TW_NOT_FOUND, "no such cell");
	st = tw_cat_close_after(&q, st, err);
	if (st == TW_OK)
		st = tw_cat_read_cells(&k, &ret, 1, err);
	tw_cat_cells_done(&k);
	return st;
}

enum tw_status tw_catalogue_rollup_load(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_rollup_cell *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_snapshot(c, &db, err);

	if (st != TW_OK)
		return st;
	st = load(db, of, a, ret, err);
	tw_cat_snapshot_done(c, db);
	return st;
}

static enum tw_status fail_changed(struct tw_err *err)
{
	return tw_fail(err, TW_CONFLICT, "the cell was changed by another transaction");
}

static enum tw_status take_deltas(struct tw_db *db, const char *project_id,
        const struct tw_rollup_cell *was, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "tit",
	        .sql = "DELETE FROM rollup_delta WHERE (project_id,cell_id,trace_id) IN (SELECT"
	               " c1,c2,c3 FROM {rows})"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < was->n_deltas; i++)
		st = tw_cat_rows_add(&rows, err, project_id, was->cell_id, was->deltas[i].trace_id);
	st = tw_cat_rows_end(&rows, st, err);
	return st == TW_OK && rows.changed != (int64_t)was->n_deltas ? fail_changed(err) : st;
}

static enum tw_status put_parts(struct tw_db *db, const char *project_id, int64_t cell_id,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "tiib",
	        .sql = "INSERT INTO rollup_part(project_id,cell_id,metric,data) SELECT c1,c2,c3,c4"
	               " FROM {rows} WHERE 1=1 ON CONFLICT(project_id,cell_id,metric) DO UPDATE"
	               " SET data=excluded.data"};
	enum tw_status st = TW_OK;

	for (int m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++)
		if (parts[m].len)
			st = tw_cat_rows_add(
			        &rows, err, project_id, cell_id, (int64_t)m, &parts[m]);
	return tw_cat_rows_end(&rows, st, err);
}

enum tw_status tw_catalogue_rollup_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_cell *was, const struct tw_str *head,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(w, &changed, err, /* primary key */
	        "UPDATE rollup_cell SET head=?, version=version+1, pending=pending-?, attempts=0"
	        " WHERE project_id=? AND cell_id=? AND version=?",
	        "bitii", head, (int64_t)was->n_deltas, project_id, was->cell_id, was->version);
	if (st == TW_OK && changed == 0)
		st = fail_changed(err);
	if (st == TW_OK)
		st = take_deltas(w, project_id, was, err);
	if (st == TW_OK)
		st = put_parts(w, project_id, was->cell_id, parts, err);
	if (st == TW_OK)
		st = tw_cat_wide_due(w, project_id, &was->dims, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_rollup_put_off(
        struct tw_catalogue *c, const struct tw_rollup_due *of, int64_t now_ms, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_alone){TW_ALONE_FLEET, ""}, err, /* primary key */
	        "UPDATE rollup_cell SET attempts=attempts+1, again_ms=?1+" TW_PUT_OFF_MS(
	                "attempts") " WHERE project_id=?2 AND cell_id=?3",
	        "iti", now_ms, of->project_id, of->cell_id);
}
