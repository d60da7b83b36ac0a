#include "server/catalogue/fleet/catalogue_rollup_tree.h"

#include <string.h>

#include "server/catalogue/fleet/catalogue_rollup_int.h"

enum { CELLS_AT_ONCE = 64, DELTAS_AT_ONCE = 512 };

/* --- counting --- */

/* Sets `stored` for those whose tree is in its cell. */
static enum tw_status find_stored(struct tw_db *db, const struct tw_in_cell *of, size_t n,
        struct tw_arena *a, bool *stored, struct tw_err *err)
{
	const char **ids = tw_arena_alloc(a, n, sizeof *ids);
	int64_t *cells = tw_arena_alloc(a, n, sizeof *cells);
	struct tw_cat_numbers numbers = {NULL};
	const char *list = NULL;
	struct tw_cat_query q;
	enum tw_status st = ids && cells ? TW_OK : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		ids[i] = of[i].f->trace_id;
		cells[i] = of[i].cell_id;
	}
	if (st == TW_OK)
		st = tw_cat_numbers(db, cells, n, a, &numbers, err);
	if (st == TW_OK)
		list = tw_cat_texts(db, ids, n, a);
	if (st == TW_OK)
		st = list ? tw_cat_query(&q, db, err, /* primary key */
		                    "SELECT cell_id, trace_id FROM rollup_tree_delta WHERE"
		                    " project_id=?1 AND cell_id" TW_CAT_AMONG(
		                            "?2") " AND trace_id" TW_CAT_AMONG_TEXTS("?3"),
		                    "ttt", of[0].f->project_id, numbers.list, list)
		          : tw_oom(err);
	if (st != TW_OK)
		return st;
	while (tw_cat_row(&q))
		for (size_t i = 0; i < n; i++)
			if (of[i].cell_id == tw_cat_int(&q, 0) &&
			        strcmp(of[i].f->trace_id, tw_cat_str(&q, 1)) == 0)
				stored[i] = true;
	return tw_cat_close(&q, err);
}

static enum tw_status add_deltas(struct tw_db *db, const struct tw_in_cell *of, size_t n,
        const bool *stored, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "titb",
	        .sql = "INSERT INTO rollup_tree_delta(project_id,cell_id,trace_id,data) SELECT"
	               " c1,c2,c3,c4 FROM {rows}"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (of[i].f->tree.len && !stored[i])
			st = tw_cat_rows_add(&rows, err, of[i].f->project_id, of[i].cell_id,
			        of[i].f->trace_id, &of[i].f->tree);
	return tw_cat_rows_end(&rows, st, err);
}

/* A cell once, with the number of its new deltas. */
static enum tw_status add_pending(struct tw_db *db, const struct tw_in_cell *of, size_t n,
        const int64_t *pending, struct tw_err *err)
{
	const struct tw_str nothing = {"", 0};
	struct tw_cat_rows rows = {.db = db,
	        .types = "tiiib",
	        .sql = "INSERT INTO rollup_tree(project_id,cell_id,day,pending,data,levels) SELECT"
	               " c1,c2,c3,c4,c5,c5 FROM {rows} WHERE 1=1 ON CONFLICT(project_id,cell_id)"
	               " DO UPDATE SET pending=rollup_tree.pending+excluded.pending"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (pending[i])
			st = tw_cat_rows_add(&rows, err, of[i].f->project_id, of[i].cell_id,
			        of[i].dims->day, pending[i], &nothing);
	return tw_cat_rows_end(&rows, st, err);
}

enum tw_status tw_cat_trees_add(struct tw_db *db, const struct tw_in_cell *of, size_t n,
        struct tw_arena *a, struct tw_err *err)
{
	bool *stored = tw_arena_zalloc(a, n + 1, sizeof *stored);
	int64_t *pending = tw_arena_zalloc(a, n + 1, sizeof *pending);
	size_t trees = 0;
	enum tw_status st = stored && pending ? TW_OK : tw_oom(err);

	for (size_t i = 0; i < n; i++)
		trees += of[i].f->tree.len > 0;
	if (st != TW_OK || !trees)
		return st;
	st = find_stored(db, of, n, a, stored, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		pending[tw_cat_first_in_cell(of, i)] += of[i].f->tree.len && !stored[i];
	if (st == TW_OK)
		st = add_deltas(db, of, n, stored, err);
	return st == TW_OK ? add_pending(db, of, n, pending, err) : st;
}

/* --- reading --- */

struct trees { /* reads trees into an arena */
	struct tw_db *db;
	const char *project_id;
	struct tw_arena *arena;
	size_t max_deltas; /* per cell */
	bool levels;       /* whether to read levels */
	bool reduced;
};

static enum tw_status read_delta(const struct tw_cat_query *q, struct tw_arena *a,
        struct tw_tree_delta *ret, struct tw_err *err)
{
	ret->trace_id = tw_cat_text(q, 1, a);
	return ret->trace_id ? tw_cat_bytes(q, 2, a, &ret->data, err) : tw_tree_fail_too_large(err);
}

/* Reads at most n_deltas of each cell; n_deltas becomes the number read. */
static enum tw_status read_deltas(struct trees *k, const struct tw_cat_numbers *ids,
        struct tw_tree_cell *cells, struct tw_err *err)
{
	struct tw_cat_query q;
	size_t space[CELLS_AT_ONCE];
	uint64_t want = 0;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < ids->n; i++) {
		space[i] = cells[i].n_deltas < k->max_deltas ? cells[i].n_deltas : k->max_deltas;
		want += space[i];
		cells[i].n_deltas = 0;
		if (space[i])
			cells[i].deltas =
			        tw_arena_alloc(k->arena, space[i], sizeof *cells[i].deltas);
		if (space[i] && !cells[i].deltas)
			st = tw_tree_fail_too_large(err);
	}
	if (st == TW_OK && want)
		st = tw_cat_query(&q, k->db, err, /* primary key */
		        "SELECT cell_id, trace_id, data FROM rollup_tree_delta WHERE project_id=?1"
		        " AND cell_id" TW_CAT_AMONG("?2") " ORDER BY cell_id, trace_id LIMIT ?3",
		        "tti", k->project_id, ids->list, (int64_t)want);
	if (st != TW_OK || !want)
		return st;
	while (st == TW_OK && tw_cat_row(&q)) {
		const size_t found = tw_cat_index_of(ids, tw_cat_int(&q, 0));
		const size_t at = found < ids->n ? ids->sorted[found].at : 0;

		if (found < ids->n && cells[at].n_deltas < space[at])
			st = read_delta(&q, k->arena, &cells[at].deltas[cells[at].n_deltas++], err);
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status read_tree(const struct tw_cat_query *q, struct tw_arena *a,
        struct tw_tree_cell *cell, struct tw_err *err)
{
	enum tw_status st;

	cell->version = tw_cat_int(q, 1);
	cell->n_deltas = (size_t)tw_cat_int(q, 2);
	cell->reduced_missing = tw_cat_int(q, 5) != 0;
	st = tw_cat_bytes(q, 3, a, &cell->tree.data, err);
	return st == TW_OK ? tw_cat_bytes(q, 4, a, &cell->tree.levels, err) : st;
}

/* At most CELLS_AT_ONCE, by two statements. */
static enum tw_status read_trees(
        struct trees *k, struct tw_tree_cell *cells, size_t n, struct tw_err *err)
{
	struct tw_cat_numbers ids;
	struct tw_cat_query q;
	int64_t numbers[CELLS_AT_ONCE];
	enum tw_status st;

	for (size_t i = 0; i < n; i++)
		numbers[i] = cells[i].cell_id;
	st = tw_cat_numbers(k->db, numbers, n, k->arena, &ids, err);
	if (st == TW_OK)
		st = tw_cat_query(&q, k->db, err, /* primary keys */
		        "SELECT t.cell_id, t.version, t.pending, CASE WHEN ?4<>0 AND r.data<>x''"
		        " THEN r.data ELSE t.data END, CASE WHEN ?3<>0 THEN t.levels ELSE x'' END,"
		        " r.data=x'' FROM rollup_tree t LEFT JOIN rollup_tree_reduced r ON"
		        " r.project_id=t.project_id AND r.cell_id=t.cell_id WHERE t.project_id=?1"
		        " AND t.cell_id" TW_CAT_AMONG("?2"),
		        "ttii", k->project_id, ids.list, (int64_t)k->levels, (int64_t)k->reduced);
	while (st == TW_OK && tw_cat_row(&q)) {
		const size_t found = tw_cat_index_of(&ids, tw_cat_int(&q, 0));

		if (found < n)
			st = read_tree(&q, k->arena, &cells[ids.sorted[found].at], err);
	}
	st = tw_cat_close_after(&q, st, err);
	return st == TW_OK ? read_deltas(k, &ids, cells, err) : st;
}

static enum tw_status read_all(
        struct trees *k, struct tw_tree_cell *cells, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t from = 0; st == TW_OK && from < n; from += CELLS_AT_ONCE)
		st = read_trees(
		        k, cells + from, n - from < CELLS_AT_ONCE ? n - from : CELLS_AT_ONCE, err);
	return st;
}

static enum tw_status read_some(struct tw_catalogue *c, struct trees *k, const int64_t *cell_ids,
        size_t n, struct tw_tree_cell **ret, struct tw_err *err)
{
	struct tw_tree_cell *cells = tw_arena_zalloc(k->arena, n ? n : 1, sizeof *cells);
	enum tw_status st;

	if (!cells)
		return tw_tree_fail_too_large(err);
	for (size_t i = 0; i < n; i++)
		cells[i].cell_id = cell_ids[i];
	st = tw_cat_snapshot(c, &k->db, err);
	if (st != TW_OK)
		return st;
	st = read_all(k, cells, n, err);
	tw_cat_snapshot_done(c, k->db);
	if (st == TW_OK)
		*ret = cells;
	return st;
}

enum tw_status tw_catalogue_trees_read(struct tw_catalogue *c, const char *project_id,
        const int64_t *cell_ids, size_t n, bool reduced, struct tw_arena *a,
        struct tw_tree_cell **ret, struct tw_err *err)
{
	struct trees k = {
	        .project_id = project_id, .arena = a, .max_deltas = SIZE_MAX, .reduced = reduced};

	return read_some(c, &k, cell_ids, n, ret, err);
}

/* --- adding deltas to trees --- */

static const struct tw_fields due_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_rollup_due, project_id, "project_id", NULL),
                TW_FIELD(struct tw_rollup_due, cell_id, "cell_id", NULL));

enum tw_status tw_catalogue_trees_due(struct tw_catalogue *c, uint32_t deltas, int64_t day,
        int64_t now_ms, uint32_t limit, struct tw_arena *a, struct tw_rollup_due **ret,
        size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &due_fields, ret, ret_n), err,
	        "SELECT {columns} FROM (SELECT project_id, cell_id FROM rollup_tree INDEXED BY "
	        "rollup_tree_pending WHERE pending>0 AND (pending>=min(?1,max(?5,2*version)) OR "
	        "day<?2) AND NOT EXISTS (SELECT 1 FROM rollup_tree_later l WHERE "
	        "l.project_id=rollup_tree.project_id AND l.cell_id=rollup_tree.cell_id AND "
	        "l.again_ms>?3) ORDER BY pending DESC LIMIT ?4) of_deltas UNION ALL SELECT "
	        "project_id, cell_id FROM rollup_tree_reduced r INDEXED BY rollup_tree_unreduced "
	        "WHERE "
	        "data=x'' AND NOT EXISTS (SELECT 1 FROM rollup_tree_later l WHERE "
	        "l.project_id=r.project_id AND l.cell_id=r.cell_id AND l.again_ms>?3) LIMIT ?4",
	        "iiiii", (int64_t)deltas, day, now_ms, (int64_t)limit,
	        (int64_t)TW_ROLLUP_TREE_DELTAS_MIN);
}

enum tw_status tw_catalogue_tree_load(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_tree_cell **ret, struct tw_err *err)
{
	struct trees k = {.project_id = of->project_id,
	        .arena = a,
	        .max_deltas = DELTAS_AT_ONCE,
	        .levels = true};

	return read_some(c, &k, &of->cell_id, 1, ret, err);
}

static enum tw_status forget_postponed(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "DELETE FROM rollup_tree_later WHERE project_id=? AND cell_id=?", "ti", project_id,
	        cell_id);
}

static enum tw_status fail_changed(struct tw_err *err)
{
	return tw_fail(err, TW_CONFLICT, "the tree was changed by another transaction");
}

static enum tw_status take_deltas(struct tw_db *db, const char *project_id,
        const struct tw_tree_cell *was, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "tit",
	        .sql = "DELETE FROM rollup_tree_delta WHERE (project_id,cell_id,trace_id) IN "
	               "(SELECT"
	               " c1,c2,c3 FROM {rows})"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < was->n_deltas; i++)
		st = tw_cat_rows_add(&rows, err, project_id, was->cell_id, was->deltas[i].trace_id);
	st = tw_cat_rows_end(&rows, st, err);
	return st == TW_OK && rows.changed != (int64_t)was->n_deltas ? fail_changed(err) : st;
}

enum tw_status tw_catalogue_tree_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_tree_cell *was, const struct tw_rollup_written *tree,
        const struct tw_str *reduced, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err, /* primary key */
		        "UPDATE rollup_tree SET data=?, levels=?, version=version+1,"
		        " pending=pending-? WHERE project_id=? AND cell_id=? AND version=?",
		        "bbitii", &tree->data, &tree->levels, (int64_t)was->n_deltas, project_id,
		        was->cell_id, was->version);
	if (st == TW_OK && changed == 0)
		st = fail_changed(err);
	if (st == TW_OK)
		st = take_deltas(w, project_id, was, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* primary key */
		        "INSERT INTO rollup_tree_reduced(project_id,cell_id,data) VALUES(?,?,?)"
		        " ON CONFLICT(project_id,cell_id) DO UPDATE SET data=excluded.data",
		        "tib", project_id, was->cell_id, reduced);
	if (st == TW_OK)
		st = forget_postponed(w, project_id, was->cell_id, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_tree_postpone(
        struct tw_catalogue *c, const struct tw_rollup_due *of, int64_t now_ms, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_FLEET, ""},
	        err, /* primary key */
	        "INSERT INTO rollup_tree_later(project_id,cell_id,attempts,again_ms)"
	        " VALUES(?1,?2,1,?3+" TW_POSTPONE_MS(
	                "0") ") ON CONFLICT(project_id,cell_id) DO UPDATE SET"
	                     " attempts=rollup_tree_later.attempts+1, again_ms=?3+" TW_POSTPONE_MS(
	                             "rollup_tree_later.attempts"),
	        "tii", of->project_id, of->cell_id, now_ms);
}

enum tw_status tw_catalogue_trees_postponed(
        struct tw_catalogue *c, uint64_t *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, /* primary key */
	        "SELECT count(*) FROM rollup_tree_later WHERE project_id>''", "");

	*ret = (uint64_t)n;
	return st;
}

/* --- age --- */

enum tw_status tw_cat_tree_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err)
{
	static const char *const sql[] = {/* primary keys */
	        "DELETE FROM rollup_tree_delta WHERE project_id=? AND cell_id=?",
	        "DELETE FROM rollup_tree_reduced WHERE project_id=? AND cell_id=?",
	        "DELETE FROM rollup_tree WHERE project_id=? AND cell_id=?"};
	enum tw_status st = forget_postponed(db, project_id, cell_id, err);

	for (int i = 0; st == TW_OK && i < 3; i++)
		st = tw_cat_exec(db, NULL, err, sql[i], "ti", project_id, cell_id);
	return st;
}
