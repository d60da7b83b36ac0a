#include "catalogue_found.h"

#include <string.h>

#include "catalogue_internal.h"

/* --- what is to do --- */

struct todo {
	const char *project_id;
	int64_t from, to; /* numbers */
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
	        "SELECT trace_id FROM trace WHERE project_id=? AND state=2 AND detected BETWEEN ?"
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
	        "SELECT count(*) FROM trace WHERE project_id=? AND state=2 AND detected>=0 AND"
	        " detected<?",
	        "ti", project_id, number);
	if (st == TW_OK)
		st = tw_cat_first_int(db, &behind, err, /* trace_detected */
		        "SELECT count(*) FROM trace WHERE project_id=? AND state=2 AND detected>?",
		        "ti", project_id, number);
	tw_cat_done(c, db);
	*ret = (uint64_t)(before + behind);
	return st;
}

/* --- what was found --- */

static enum tw_status mark(struct tw_db *db, const struct tw_named_trace *of, int64_t number,
        int *ret_there, struct tw_err *err)
{
	return tw_cat_exec(db, ret_there, err, /* primary key */
	        "UPDATE trace SET detected=? WHERE project_id=? AND trace_id=? AND state=2", "itt",
	        number, of->project_id, of->trace_id);
}

static enum tw_status insert_all(
        struct tw_db *db, const struct tw_found_trace *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < t->n_cells; i++)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO finding(project_id,cell_id,trace_id,data) VALUES(?,?,?,?)",
		        "titb", t->of.project_id, tw_rollup_cell_id(&t->cells[i]), t->of.trace_id,
		        &t->data);
	return st;
}

/* In the cells it was kept in: labels that are counted by since are not those it was counted by. */
static enum tw_status put(struct tw_db *db, const struct tw_found_trace *t, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_exec(db, &changed, err, /* finding_by_trace */
	        "UPDATE finding SET data=? WHERE project_id=? AND trace_id=?", "btt", &t->data,
	        t->of.project_id, t->of.trace_id);

	return st == TW_OK && changed == 0 ? insert_all(db, t, err) : st;
}

enum tw_status tw_catalogue_found_put(
        struct tw_catalogue *c, const struct tw_found_trace *t, int64_t number, struct tw_err *err)
{
	bool same = false;
	int there = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_is_named_by(c->writer, &t->of, &t->by, &same, err);
	if (st == TW_OK && same)
		st = mark(c->writer, &t->of, number, &there, err);
	if (st == TW_OK && there)
		st = put(c->writer, t, err);
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_found_skip(
        struct tw_catalogue *c, const char *project_id, const char *trace_id, struct tw_err *err)
{
	const struct tw_named_trace of = {project_id, trace_id, "", ""};
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = mark(c->writer, &of, -1, NULL, err);
	return tw_cat_end(c, st, err);
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
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(db, NULL, err, "BEGIN", "");
	for (size_t i = 0; st == TW_OK && i < r->n; i++)
		st = read_cell(db, &kept, r->cells[i]->cell_id, r, err);
	tw_stmt_drop(kept);
	(void)tw_cat_exec(db, NULL, NULL, "COMMIT", "");
	tw_cat_done(c, db);
	return st;
}
