/*
 * catalogue_rollup_wide.c - merged parts of a day's cells that differ only by scenario, device
 * class and system, for queries without these dimensions.
 *
 * Nothing has to be invalidated when a cell changes: merged parts are used only while their
 * signature equals that of the cells, which is computed from their ids and versions.
 */
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/fleet/catalogue_rollup_int.h"
#include "server/stats/rollup.h"

#define WIDE_KEY   "project_id,day,app,version_name,build_id,mapping_id"
#define WIDE_TYPES "titttt"
#define WIDE_ARGS(project_id, d)                                                                   \
	(project_id), (d)->day, (d)->app, (d)->version_name, (d)->build_id, (d)->mapping_id

/* Of a cell with parts; the signature is the sum over all cells. */
static uint64_t sign_of(const struct tw_rollup_cell *cell)
{
	uint64_t x = (uint64_t)cell->cell_id * UINT64_C(0x9E3779B97F4A7C15) +
	             (uint64_t)cell->version * UINT64_C(0xBF58476D1CE4E5B9);

	if (cell->version == 0)
		return 0;
	x = (x ^ (x >> 29)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 32);
}

/* --- reading --- */

static int by_place(const void *pa, const void *pb)
{
	const struct tw_rollup_dims *a = &(*(struct tw_rollup_cell *const *)pa)->dims;
	const struct tw_rollup_dims *b = &(*(struct tw_rollup_cell *const *)pb)->dims;
	int c = a->day < b->day ? -1 : a->day > b->day;

	c = c ? c : strcmp(a->app, b->app);
	c = c ? c : strcmp(a->version_name, b->version_name);
	c = c ? c : strcmp(a->build_id, b->build_id);
	return c ? c : strcmp(a->mapping_id, b->mapping_id);
}

static enum tw_status read_sign(
        struct tw_cat_cells *k, const struct tw_rollup_dims *d, uint64_t *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_kept(&q, k->db, &k->sign, err, /* primary key */
	        "SELECT sign FROM rollup_wide WHERE (" WIDE_KEY ")=(?,?,?,?,?,?)", WIDE_TYPES,
	        WIDE_ARGS(k->project_id, d));

	*ret = 0;
	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q))
		*ret = (uint64_t)tw_cat_int(&q, 0);
	return tw_cat_close(&q, err);
}

static enum tw_status read_parts(
        struct tw_cat_cells *k, struct tw_rollup_cell *into, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_kept(&q, k->db, &k->wide, err, /* primary key */
	        "SELECT metric, data FROM rollup_wide_part WHERE (" WIDE_KEY ")=(?,?,?,?,?,?)"
	        " AND (1<<CAST(metric AS INTEGER))&?<>0",
	        WIDE_TYPES "i", WIDE_ARGS(k->project_id, &into->dims), (int64_t)k->metrics);

	while (st == TW_OK && tw_cat_row(&q)) {
		const int64_t metric = tw_cat_int(&q, 0);

		if (metric >= 0 && metric < TW_ROLLUP_METRICS)
			st = tw_cat_bytes(&q, 1, k->arena, &into->parts[metric], err);
	}
	return tw_cat_close_after(&q, st, err);
}

/* If all cells are selected, the first gets the parts of all, the others none.  *io_apart: where
 * the cells go whose own parts are to be read. */
static enum tw_status read_wide(struct tw_cat_cells *k, struct tw_rollup_cell **cells, size_t n,
        struct tw_rollup_cell ***io_apart, struct tw_err *err)
{
	uint64_t sign = 0, made = 0;
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < n; i++)
		sign += sign_of(cells[i]);
	if (n > 1 && sign)
		st = read_sign(k, &cells[0]->dims, &made, err);
	if (st == TW_OK && sign && made == sign)
		return read_parts(k, cells[0], err);
	for (size_t i = 0; i < n; i++)
		*(*io_apart)++ = cells[i];
	return st;
}

enum tw_status tw_cat_read_wide(
        struct tw_cat_cells *k, struct tw_rollup_cell *cells, size_t n, struct tw_err *err)
{
	struct tw_rollup_cell **sorted =
	        tw_arena_alloc(k->arena, n + 1, sizeof(struct tw_rollup_cell *));
	struct tw_rollup_cell **apart =
	        tw_arena_alloc(k->arena, n + 1, sizeof(struct tw_rollup_cell *));
	struct tw_rollup_cell **end_apart = apart;
	enum tw_status st = TW_OK;

	if (!sorted || !apart)
		return tw_rollup_fail_too_large(err);
	for (size_t i = 0; i < n; i++)
		sorted[i] = &cells[i];
	if (n)
		qsort(sorted, n, sizeof(struct tw_rollup_cell *), by_place);
	for (size_t i = 0, end; st == TW_OK && i < n; i = end) {
		for (end = i + 1; end < n && by_place(&sorted[i], &sorted[end]) == 0;)
			end++;
		st = read_wide(k, sorted + i, end - i, &end_apart, err);
	}
	return st == TW_OK ? tw_cat_read_parts(k, apart, (size_t)(end_apart - apart), err) : st;
}

/* --- merging --- */

enum tw_status tw_cat_wide_due(struct tw_db *db, const char *project_id,
        const struct tw_rollup_dims *d, struct tw_err *err)
{
	return d->label[0] ? TW_OK
	                   : tw_cat_exec(db, NULL, err, /* primary key */
	                             "INSERT INTO rollup_wide(" WIDE_KEY ") VALUES(?,?,?,?,?,?) ON"
	                             " CONFLICT (" WIDE_KEY ") DO UPDATE SET due=rollup_wide.due+1",
	                             WIDE_TYPES, WIDE_ARGS(project_id, d));
}

enum tw_status tw_cat_wide_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err)
{
	static const char *const sql[] = {/* primary keys */
	        "DELETE FROM rollup_wide_part WHERE (" WIDE_KEY ")=(SELECT " WIDE_KEY " FROM"
	        " rollup_cell WHERE project_id=? AND cell_id=? AND label='')",
	        "DELETE FROM rollup_wide WHERE (" WIDE_KEY ")=(SELECT " WIDE_KEY " FROM"
	        " rollup_cell WHERE project_id=? AND cell_id=? AND label='')"};
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && i < 2; i++)
		st = tw_cat_exec(db, NULL, err, sql[i], "ti", project_id, cell_id);
	return st;
}

static const struct tw_fields due_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_rollup_wide, project_id, "project_id", NULL),
                TW_FIELD(struct tw_rollup_wide, dims.day, "day", NULL),
                TW_FIELD(struct tw_rollup_wide, dims.app, "app", NULL),
                TW_FIELD(struct tw_rollup_wide, dims.version_name, "version_name", NULL),
                TW_FIELD(struct tw_rollup_wide, dims.build_id, "build_id", NULL),
                TW_FIELD(struct tw_rollup_wide, dims.mapping_id, "mapping_id", NULL),
                TW_FIELD(struct tw_rollup_wide, due, "due", NULL));

enum tw_status tw_catalogue_wides_due(struct tw_catalogue *c, int64_t day, uint32_t limit,
        struct tw_arena *a, struct tw_rollup_wide **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &due_fields, ret, ret_n),
	        err, /* rollup_wide_due */
	        "SELECT {columns} FROM rollup_wide WHERE due>0 AND day<? ORDER BY day DESC LIMIT ?",
	        "ii", day, (int64_t)limit);
}

static enum tw_status load(struct tw_cat_cells *k, struct tw_rollup_wide *io, struct tw_err *err)
{
	struct tw_rollup_cell *cells[TW_WIDE_CELLS];
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, k->db, err, /* rollup_cell_by_wide */
	        "SELECT " TW_CELL_COLUMNS " FROM rollup_cell WHERE (" WIDE_KEY ")=(?,?,?,?,?,?) AND"
	        " label='' AND version>0 ORDER BY cell_id LIMIT ?",
	        WIDE_TYPES "i", WIDE_ARGS(io->project_id, &io->dims), (int64_t)TW_WIDE_CELLS);

	while (st == TW_OK && io->n < TW_WIDE_CELLS && tw_cat_row(&q)) {
		st = tw_cat_cell_row(&q, k->arena, &io->cells[io->n], err);
		if (st == TW_OK)
			io->sign += sign_of(&io->cells[io->n++]);
	}
	st = tw_cat_close_after(&q, st, err);
	for (size_t i = 0; i < io->n; i++)
		cells[i] = &io->cells[i];
	return st == TW_OK && io->n > 1 ? tw_cat_read_parts(k, cells, io->n, err) : st;
}

enum tw_status tw_catalogue_wide_load(
        struct tw_catalogue *c, struct tw_rollup_wide *io, struct tw_arena *a, struct tw_err *err)
{
	struct tw_cat_cells k = {
	        .project_id = io->project_id, .arena = a, .metrics = TW_ROLLUP_ALL};
	enum tw_status st;

	io->cells = tw_arena_alloc(a, TW_WIDE_CELLS, sizeof *io->cells);
	if (!io->cells)
		return tw_rollup_fail_too_large(err);
	st = tw_cat_snapshot(c, &k.db, err);
	if (st != TW_OK)
		return st;
	st = load(&k, io, err);
	tw_cat_cells_done(&k);
	tw_cat_snapshot_done(c, k.db);
	return st;
}

/* A metric that no method has any longer has no part. */
static enum tw_status put_parts(struct tw_db *db, const struct tw_rollup_wide *w,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary key */
	        "DELETE FROM rollup_wide_part WHERE (" WIDE_KEY ")=(?,?,?,?,?,?)", WIDE_TYPES,
	        WIDE_ARGS(w->project_id, &w->dims));

	for (int m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++)
		if (parts[m].len)
			st = tw_cat_exec(db, NULL, err,
			        "INSERT INTO rollup_wide_part(" WIDE_KEY ",metric,data)"
			        " VALUES(?,?,?,?,?,?,?,?)",
			        WIDE_TYPES "ib", WIDE_ARGS(w->project_id, &w->dims), (int64_t)m,
			        &parts[m]);
	return st;
}

enum tw_status tw_catalogue_wide_store(struct tw_catalogue *c, const struct tw_rollup_wide *w,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	struct tw_db *db = NULL;
	int there = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &db, err);

	if (st != TW_OK)
		return st;
	/* if it was deleted in the meantime, so were its cells */
	st = tw_cat_exec(db, &there, err, /* primary key */
	        "UPDATE rollup_wide SET sign=?, due=due-? WHERE (" WIDE_KEY ")=(?,?,?,?,?,?)"
	        " AND due>=?",
	        "ii" WIDE_TYPES "i", (int64_t)(w->n > 1 ? w->sign : 0), w->due,
	        WIDE_ARGS(w->project_id, &w->dims), w->due);
	if (st == TW_OK && there)
		st = put_parts(db, w, parts, err);
	return tw_cat_end(c, db, st, err);
}
