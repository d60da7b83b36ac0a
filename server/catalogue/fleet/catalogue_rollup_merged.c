/*
 * catalogue_rollup_merged.c - merged parts of a day's cells that differ only by scenario, device
 * class and system, for queries without these dimensions.
 *
 * Nothing has to be invalidated when a cell changes: merged parts are used only while their
 * signature equals that of the cells, which is computed from their ids and versions.
 */
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/fleet/catalogue_rollup_int.h"
#include "server/stats/rollup.h"

#define MERGED_KEY   "project_id,day,app,version_name,build_id,mapping_id"
#define MERGED_TYPES "titttt"
#define MERGED_ARGS(project_id, d)                                                                 \
	(project_id), (d)->day, (d)->app, (d)->version_name, (d)->build_id, (d)->mapping_id

/* Of a cell with parts; the signature is the sum over all cells. */
static uint64_t signature_of(const struct tw_rollup_cell *cell)
{
	uint64_t x = (uint64_t)cell->cell_id * UINT64_C(0x9E3779B97F4A7C15) +
	             (uint64_t)cell->version * UINT64_C(0xBF58476D1CE4E5B9);

	if (cell->version == 0)
		return 0;
	x = (x ^ (x >> 29)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 32);
}

/* --- reading --- */

static int by_merged_key(const void *pa, const void *pb)
{
	const struct tw_rollup_dims *a = &(*(struct tw_rollup_cell *const *)pa)->dims;
	const struct tw_rollup_dims *b = &(*(struct tw_rollup_cell *const *)pb)->dims;
	int c = a->day < b->day ? -1 : a->day > b->day;

	c = c ? c : strcmp(a->app, b->app);
	c = c ? c : strcmp(a->version_name, b->version_name);
	c = c ? c : strcmp(a->build_id, b->build_id);
	return c ? c : strcmp(a->mapping_id, b->mapping_id);
}

static enum tw_status read_signature(
        struct tw_cat_cells *k, const struct tw_rollup_dims *d, uint64_t *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_prepared(&q, k->db, &k->signature, err, /* primary key */
	        "SELECT signature FROM rollup_merged WHERE (" MERGED_KEY ")=(?,?,?,?,?,?)",
	        MERGED_TYPES, MERGED_ARGS(k->project_id, d));

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
	enum tw_status st = tw_cat_query_prepared(&q, k->db, &k->merged, err, /* primary key */
	        "SELECT metric, data FROM rollup_merged_part WHERE (" MERGED_KEY ")=(?,?,?,?,?,?)"
	        " AND (1<<CAST(metric AS INTEGER))&?<>0",
	        MERGED_TYPES "i", MERGED_ARGS(k->project_id, &into->dims), (int64_t)k->metrics);

	while (st == TW_OK && tw_cat_row(&q)) {
		const int64_t metric = tw_cat_int(&q, 0);

		if (metric >= 0 && metric < TW_ROLLUP_METRICS)
			st = tw_cat_bytes(&q, 1, k->arena, &into->parts[metric], err);
	}
	return tw_cat_close_after(&q, st, err);
}

/* If all cells are selected, the first gets the parts of all, the others none.  *io_apart: where
 * the cells go whose own parts are to be read. */
static enum tw_status read_merged(struct tw_cat_cells *k, struct tw_rollup_cell **cells, size_t n,
        struct tw_rollup_cell ***io_apart, struct tw_err *err)
{
	uint64_t signature = 0, made = 0;
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < n; i++)
		signature += signature_of(cells[i]);
	if (n > 1 && signature)
		st = read_signature(k, &cells[0]->dims, &made, err);
	if (st == TW_OK && signature && made == signature)
		return read_parts(k, cells[0], err);
	for (size_t i = 0; i < n; i++)
		*(*io_apart)++ = cells[i];
	return st;
}

enum tw_status tw_cat_read_merged(
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
		qsort(sorted, n, sizeof(struct tw_rollup_cell *), by_merged_key);
	for (size_t i = 0, end; st == TW_OK && i < n; i = end) {
		for (end = i + 1; end < n && by_merged_key(&sorted[i], &sorted[end]) == 0;)
			end++;
		st = read_merged(k, sorted + i, end - i, &end_apart, err);
	}
	return st == TW_OK ? tw_cat_read_parts(k, apart, (size_t)(end_apart - apart), err) : st;
}

/* --- merging --- */

enum tw_status tw_cat_merged_due(struct tw_db *db, const char *project_id,
        const struct tw_rollup_dims *d, struct tw_err *err)
{
	return d->label[0]
	               ? TW_OK
	               : tw_cat_exec(db, NULL, err, /* primary key */
	                         "INSERT INTO rollup_merged(" MERGED_KEY ") VALUES(?,?,?,?,?,?) ON"
	                         " CONFLICT (" MERGED_KEY ") DO UPDATE SET due=rollup_merged.due+1",
	                         MERGED_TYPES, MERGED_ARGS(project_id, d));
}

enum tw_status tw_cat_merged_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err)
{
	static const char *const sql[] = {/* primary keys */
	        "DELETE FROM rollup_merged_part WHERE (" MERGED_KEY ")=(SELECT " MERGED_KEY " FROM"
	        " rollup_cell WHERE project_id=? AND cell_id=? AND label='')",
	        "DELETE FROM rollup_merged WHERE (" MERGED_KEY ")=(SELECT " MERGED_KEY " FROM"
	        " rollup_cell WHERE project_id=? AND cell_id=? AND label='')"};
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && i < 2; i++)
		st = tw_cat_exec(db, NULL, err, sql[i], "ti", project_id, cell_id);
	return st;
}

static const struct tw_fields due_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_rollup_merged, project_id, "project_id", NULL),
                TW_FIELD(struct tw_rollup_merged, dims.day, "day", NULL),
                TW_FIELD(struct tw_rollup_merged, dims.app, "app", NULL),
                TW_FIELD(struct tw_rollup_merged, dims.version_name, "version_name", NULL),
                TW_FIELD(struct tw_rollup_merged, dims.build_id, "build_id", NULL),
                TW_FIELD(struct tw_rollup_merged, dims.mapping_id, "mapping_id", NULL),
                TW_FIELD(struct tw_rollup_merged, due, "due", NULL));

enum tw_status tw_catalogue_merged_due(struct tw_catalogue *c, int64_t day, uint32_t limit,
        struct tw_arena *a, struct tw_rollup_merged **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &due_fields, ret, ret_n),
	        err, /* rollup_merged_due */
	        "SELECT {columns} FROM rollup_merged WHERE due>0 AND day<? ORDER BY day DESC LIMIT "
	        "?",
	        "ii", day, (int64_t)limit);
}

static enum tw_status load(struct tw_cat_cells *k, struct tw_rollup_merged *io, struct tw_err *err)
{
	struct tw_rollup_cell *cells[TW_MERGED_CELLS];
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, k->db, err, /* rollup_cell_by_merged */
	        "SELECT " TW_CELL_COLUMNS " FROM rollup_cell WHERE (" MERGED_KEY
	        ")=(?,?,?,?,?,?) AND"
	        " label='' AND version>0 ORDER BY cell_id LIMIT ?",
	        MERGED_TYPES "i", MERGED_ARGS(io->project_id, &io->dims), (int64_t)TW_MERGED_CELLS);

	while (st == TW_OK && io->n < TW_MERGED_CELLS && tw_cat_row(&q)) {
		st = tw_cat_cell_row(&q, k->arena, &io->cells[io->n], err);
		if (st == TW_OK)
			io->signature += signature_of(&io->cells[io->n++]);
	}
	st = tw_cat_close_after(&q, st, err);
	for (size_t i = 0; i < io->n; i++)
		cells[i] = &io->cells[i];
	return st == TW_OK && io->n > 1 ? tw_cat_read_parts(k, cells, io->n, err) : st;
}

enum tw_status tw_catalogue_merged_load(
        struct tw_catalogue *c, struct tw_rollup_merged *io, struct tw_arena *a, struct tw_err *err)
{
	struct tw_cat_cells k = {
	        .project_id = io->project_id, .arena = a, .metrics = TW_ROLLUP_ALL};
	enum tw_status st;

	io->cells = tw_arena_alloc(a, TW_MERGED_CELLS, sizeof *io->cells);
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
static enum tw_status put_parts(struct tw_db *db, const struct tw_rollup_merged *w,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary key */
	        "DELETE FROM rollup_merged_part WHERE (" MERGED_KEY ")=(?,?,?,?,?,?)", MERGED_TYPES,
	        MERGED_ARGS(w->project_id, &w->dims));

	for (int m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++)
		if (parts[m].len)
			st = tw_cat_exec(db, NULL, err,
			        "INSERT INTO rollup_merged_part(" MERGED_KEY ",metric,data)"
			        " VALUES(?,?,?,?,?,?,?,?)",
			        MERGED_TYPES "ib", MERGED_ARGS(w->project_id, &w->dims), (int64_t)m,
			        &parts[m]);
	return st;
}

enum tw_status tw_catalogue_merged_store(struct tw_catalogue *c, const struct tw_rollup_merged *w,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	struct tw_db *db = NULL;
	int there = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &db, err);

	if (st != TW_OK)
		return st;
	/* if it was deleted in the meantime, so were its cells */
	st = tw_cat_exec(db, &there, err, /* primary key */
	        "UPDATE rollup_merged SET signature=?, due=due-? WHERE (" MERGED_KEY
	        ")=(?,?,?,?,?,?)"
	        " AND due>=?",
	        "ii" MERGED_TYPES "i", (int64_t)(w->n > 1 ? w->signature : 0), w->due,
	        MERGED_ARGS(w->project_id, &w->dims), w->due);
	if (st == TW_OK && there)
		st = put_parts(db, w, parts, err);
	return tw_cat_end(c, db, st, err);
}
