#include "server/catalogue/fleet/catalogue_found.h"
#include "server/catalogue/traces/catalogue_names.h"

#include <string.h>

#include "server/catalogue/catalogue_internal.h"

enum { POSTPONED = -2 }; /* trace.detected */

/* --- pending traces --- */

struct todo {
	const char *project_id;
	int64_t from, to; /* numbers of rules */
	uint32_t limit;
};

static bool read_id(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	const char **id = ret_row;

	*id = tw_cat_text(q, 0, a);
	return *id != NULL;
}

static enum tw_status todo_of(struct tw_catalogue *c, const struct todo *t, struct tw_arena *a,
        struct tw_cat_list *ret, struct tw_err *err)
{
	*ret = (struct tw_cat_list){a, t->limit, sizeof(const char *), read_id, NULL, 0};
	return tw_cat_list(c, ret, err, /* trace_detected */
	        "SELECT trace_id FROM trace WHERE project_id=? AND state=2 AND folded=1 AND "
	        "detected BETWEEN ?"
	        " AND ? ORDER BY detected DESC, trace_id DESC LIMIT ?",
	        "tiii", t->project_id, t->from, t->to, (int64_t)t->limit);
}

enum tw_status tw_catalogue_found_todo(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint32_t limit, struct tw_arena *a, const char ***ret, size_t *ret_n,
        struct tw_err *err)
{
	const struct todo parts[] = {{project_id, 0, 0, limit}, {project_id, 1, number - 1, limit},
	        {project_id, number + 1, INT64_MAX, limit}};
	struct tw_cat_list list = {.n = 0};
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && list.n == 0 && i < 3; i++)
		st = todo_of(c, &parts[i], a, &list, err);
	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}

enum tw_status tw_catalogue_found_waiting(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint64_t *ret, struct tw_err *err)
{
	int64_t before = 0, behind = 0;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_first_int(db, &before, err, /* trace_detected */
	        "SELECT count(*) FROM trace WHERE project_id=?1 AND state=2 AND folded=1 AND"
	        " (detected=?3 OR (detected>=0 AND detected<?2))",
	        "tii", project_id, number, (int64_t)POSTPONED);
	if (st == TW_OK)
		st = tw_cat_first_int(db, &behind, err, /* trace_detected */
		        "SELECT count(*) FROM trace WHERE project_id=? AND state=2 AND folded=1 "
		        "AND detected>?",
		        "ti", project_id, number);
	tw_cat_done(c, db);
	*ret = (uint64_t)(before + behind);
	return st;
}

/* --- findings --- */

/* What rules looked at it; below 0: postponed or unreadable.  *ret_there: it is ready, and counted
 * in rollups: one that is not is looked at when it is, so that what was found has cells to be kept
 * in. */
static enum tw_status mark_of(struct tw_db *db, const struct tw_named_trace *of, int64_t *ret,
        bool *ret_there, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT detected FROM trace WHERE project_id=? AND trace_id=? AND state=2 AND"
	        " folded=1",
	        "tt", of->project_id, of->trace_id);

	if (st != TW_OK)
		return st;
	*ret_there = tw_cat_row(&q);
	*ret = *ret_there ? tw_cat_int(&q, 0) : 0;
	return tw_cat_close(&q, err);
}

static enum tw_status mark(
        struct tw_db *db, const struct tw_named_trace *of, int64_t number, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE trace SET detected=? WHERE project_id=? AND trace_id=? AND state=2 AND"
	        " folded=1",
	        "itt", number, of->project_id, of->trace_id);
}

/* Only in existing cells: labels indexed later have no cell for it, and those of an expired day are
 * deleted. */
static enum tw_status insert_all(
        struct tw_db *db, const struct tw_found_trace *t, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* finding_by_trace */
	        "DELETE FROM finding WHERE project_id=? AND trace_id=?", "tt", t->of.project_id,
	        t->of.trace_id);

	for (size_t i = 0; st == TW_OK && i < t->n_cells; i++)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "INSERT INTO finding(project_id,cell_id,trace_id,data) SELECT project_id,"
		        " cell_id, ?, ? FROM rollup_cell WHERE project_id=? AND cell_id=?",
		        "tbti", t->of.trace_id, &t->data, t->of.project_id,
		        tw_rollup_cell_id(&t->cells[i]));
	return st;
}

/* With other rules it stays in the cells it was stored in, as labels indexed later are not those it
 * was counted by.  The first time, and after its day was counted again, cells are chosen anew. */
static enum tw_status put(
        struct tw_db *db, const struct tw_found_trace *t, int64_t before, struct tw_err *err)
{
	if (before <= 0)
		return insert_all(db, t, err);
	return tw_cat_exec(db, NULL, err, /* finding_by_trace */
	        "UPDATE finding SET data=? WHERE project_id=? AND trace_id=?", "btt", &t->data,
	        t->of.project_id, t->of.trace_id);
}

enum tw_status tw_catalogue_found_put(
        struct tw_catalogue *c, const struct tw_found_trace *t, int64_t number, struct tw_err *err)
{
	struct tw_db *w = NULL;
	bool same = false, there = false;
	int64_t before = 0;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_is_named_by(w, &t->of, &t->by, &same, err);
	if (st == TW_OK && same)
		st = mark_of(w, &t->of, &before, &there, err);
	if (st == TW_OK && there)
		st = mark(w, &t->of, number, err);
	if (st == TW_OK && there)
		st = put(w, t, before, err);
	return tw_cat_end(c, w, st, err);
}

/* --- reading --- */

static enum tw_status read_cell(struct tw_db *db, struct tw_stmt **kept, int64_t cell_id,
        const struct tw_found_reading *r, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_kept(&q, db, kept, err, /* primary key */
	        "SELECT trace_id, data FROM finding WHERE project_id=? AND cell_id=?", "ti",
	        r->project_id, cell_id);

	if (st != TW_OK)
		return st;
	while (st == TW_OK && tw_cat_row(&q)) {
		const char *id = tw_cat_str(&q, 0);

		if (id && strlen(id) == TW_ROLLUP_ID)
			st = r->take(r->arg, id, tw_cat_blob(&q, 1), err);
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_found_read(
        struct tw_catalogue *c, const struct tw_found_reading *r, struct tw_err *err)
{
	struct tw_stmt *kept = NULL;
	struct tw_db *db;
	enum tw_status st = tw_cat_snapshot(c, &db, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < r->n; i++)
		st = read_cell(db, &kept, r->cells[i]->cell_id, r, err);
	tw_stmt_drop(kept);
	tw_cat_snapshot_done(c, db);
	return st;
}
