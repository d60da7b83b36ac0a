/*
 * catalogue_rollup_read.c - reads cells with their parts and deltas from one snapshot, and names of
 * methods.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "server/catalogue/fleet/catalogue_rollup_int.h"
#include "server/stats/rollup.h"

enum { CELLS_AT_ONCE = 256, NAMES_AT_ONCE = 16384 };

enum tw_status tw_cat_bytes(const struct tw_cat_query *q, int col, struct tw_arena *a,
        struct tw_str *ret, struct tw_err *err)
{
	const struct tw_str bytes = tw_cat_blob(q, col);
	char *copy = tw_arena_alloc(a, bytes.len ? bytes.len : 1, 1);

	if (!copy)
		return tw_rollup_fail_too_large(err);
	if (bytes.len)
		memcpy(copy, bytes.ptr, bytes.len);
	*ret = (struct tw_str){copy, bytes.len};
	return TW_OK;
}

enum tw_status tw_cat_cell_row(const struct tw_cat_query *q, struct tw_arena *a,
        struct tw_rollup_cell *ret, struct tw_err *err)
{
	struct tw_rollup_dims *d = &ret->dims;
	const char **texts[] = {&d->app, &d->version_name, &d->build_id, &d->mapping_id,
	        &d->scenario, &d->device_class, &d->os, &d->label};

	*ret = (struct tw_rollup_cell){.cell_id = tw_cat_int(q, 0)};
	d->day = tw_cat_int(q, 1);
	for (int i = 0; i < 8; i++) {
		*texts[i] = tw_cat_text(q, 2 + i, a);
		if (!*texts[i])
			return tw_rollup_fail_too_large(err);
	}
	ret->traces = (uint64_t)tw_cat_int(q, 10);
	ret->version = tw_cat_int(q, 11);
	ret->n_deltas = (size_t)tw_cat_int(q, 13);
	return tw_cat_bytes(q, 12, a, &ret->head, err);
}

static enum tw_status read_delta(const struct tw_cat_query *q, bool facts, struct tw_arena *a,
        struct tw_rollup_delta *ret, struct tw_err *err)
{
	*ret = (struct tw_rollup_delta){tw_cat_text(q, 1, a), tw_cat_int(q, 2), {"", 0}};
	if (!ret->trace_id || strlen(ret->trace_id) != TW_ROLLUP_ID)
		return tw_rollup_fail_too_large(err);
	return facts ? tw_cat_bytes(q, 3, a, &ret->facts, err) : TW_OK;
}

/* Ids of the cells that have requested data. */
static enum tw_status numbers_of(struct tw_cat_cells *k, struct tw_rollup_cell *const *cells,
        size_t n, struct tw_cat_numbers *ret, struct tw_err *err)
{
	int64_t *ids = tw_arena_alloc(k->arena, n ? n : 1, sizeof *ids);

	if (!ids)
		return tw_rollup_fail_too_large(err);
	for (size_t i = 0; i < n; i++)
		ids[i] = cells[i]->cell_id;
	return tw_cat_numbers(k->db, ids, n, k->arena, ret, err);
}

static enum tw_status read_parts(
        struct tw_cat_cells *k, struct tw_rollup_cell *const *cells, size_t n, struct tw_err *err)
{
	struct tw_cat_numbers ids;
	struct tw_cat_query q;
	enum tw_status st = numbers_of(k, cells, n, &ids, err);

	if (st == TW_OK)
		st = tw_cat_query_prepared(&q, k->db, &k->part, err, /* primary key */
		        "SELECT cell_id, metric, data FROM rollup_part WHERE project_id=?1 AND"
		        " cell_id" TW_CAT_AMONG("?2") " AND (1<<CAST(metric AS INTEGER))&?3<>0",
		        "tti", k->project_id, ids.list, (int64_t)k->metrics);
	while (st == TW_OK && tw_cat_row(&q)) {
		const size_t found = tw_cat_index_of(&ids, tw_cat_int(&q, 0));
		const int64_t metric = tw_cat_int(&q, 1);

		if (found < n && metric >= 0 && metric < TW_ROLLUP_METRICS)
			st = tw_cat_bytes(
			        &q, 2, k->arena, &cells[ids.sorted[found].at]->parts[metric], err);
	}
	return tw_cat_close_after(&q, st, err);
}

/* Reads at most n_deltas of each cell; n_deltas becomes the number read. */
static enum tw_status read_deltas(
        struct tw_cat_cells *k, struct tw_rollup_cell *const *cells, size_t n, struct tw_err *err)
{
	struct tw_cat_numbers ids;
	struct tw_cat_query q;
	uint64_t want = 0;
	size_t space[CELLS_AT_ONCE];
	enum tw_status st = numbers_of(k, cells, n, &ids, err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		space[i] = cells[i]->n_deltas;
		cells[i]->deltas = tw_arena_alloc(k->arena, space[i], sizeof *cells[i]->deltas);
		if (!cells[i]->deltas)
			st = tw_rollup_fail_too_large(err);
		want += space[i];
	}
	if (st == TW_OK)
		st = tw_cat_query_prepared(&q, k->db, &k->delta, err, /* primary key */
		        "SELECT cell_id, trace_id, duration_ns, CASE WHEN ?3<>0 THEN data ELSE x''"
		        " END FROM rollup_delta WHERE project_id=?1 AND cell_id" TW_CAT_AMONG(
		                "?2") " ORDER BY cell_id, trace_id LIMIT ?4",
		        "ttii", k->project_id, ids.list, (int64_t)k->metrics, (int64_t)want);
	if (st != TW_OK)
		return st;
	for (size_t i = 0; i < n; i++)
		cells[i]->n_deltas = 0;
	while (st == TW_OK && tw_cat_row(&q)) {
		const size_t found = tw_cat_index_of(&ids, tw_cat_int(&q, 0));
		const size_t at = found < n ? ids.sorted[found].at : 0;

		if (found < n && cells[at]->n_deltas < space[at])
			st = read_delta(&q, k->metrics != 0, k->arena,
			        &cells[at]->deltas[cells[at]->n_deltas++], err);
	}
	return tw_cat_close_after(&q, st, err);
}

/* Calls `read` for the chosen cells, in batches: their rows are received together. */
static enum tw_status in_batches(struct tw_cat_cells *k, struct tw_rollup_cell *const *cells,
        size_t n, bool (*chosen)(const struct tw_rollup_cell *),
        enum tw_status (*read)(struct tw_cat_cells *k, struct tw_rollup_cell *const *cells,
                size_t n, struct tw_err *err),
        struct tw_err *err)
{
	struct tw_rollup_cell *batch[CELLS_AT_ONCE];
	size_t in = 0;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		if (chosen(cells[i]))
			batch[in++] = cells[i];
		if (in && (in == CELLS_AT_ONCE || i + 1 == n)) {
			st = read(k, batch, in, err);
			in = 0;
		}
	}
	return st;
}

static bool has_parts(const struct tw_rollup_cell *cell)
{
	return cell->version != 0;
}

static bool has_deltas(const struct tw_rollup_cell *cell)
{
	return cell->n_deltas != 0;
}

enum tw_status tw_cat_read_parts(
        struct tw_cat_cells *k, struct tw_rollup_cell *const *cells, size_t n, struct tw_err *err)
{
	return k->metrics ? in_batches(k, cells, n, has_parts, read_parts, err) : TW_OK;
}

static enum tw_status read_some_deltas(
        struct tw_cat_cells *k, struct tw_rollup_cell *const *cells, size_t n, struct tw_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (cells[i]->n_deltas > k->max_deltas)
			cells[i]->n_deltas = k->max_deltas;
	return in_batches(k, cells, n, has_deltas, read_deltas, err);
}

enum tw_status tw_cat_read_cells(
        struct tw_cat_cells *k, struct tw_rollup_cell *const *cells, size_t n, struct tw_err *err)
{
	enum tw_status st = tw_cat_read_parts(k, cells, n, err);

	return st == TW_OK ? read_some_deltas(k, cells, n, err) : st;
}

void tw_cat_cells_done(struct tw_cat_cells *k)
{
	tw_stmt_drop(k->part);
	tw_stmt_drop(k->delta);
	tw_stmt_drop(k->signature);
	tw_stmt_drop(k->merged);
}

/* --- by filter --- */

struct growing { /* the cells of a result */
	struct tw_arena *arena;
	struct tw_rollup_cell *cells;
	size_t n;
	uint32_t cap;
};

static bool space(struct growing *g)
{
	return g->n < TW_ROLLUP_CELLS_READ && TW_GROW(g->arena, g->cells, g->n, g->cap);
}

/* Cells that match a filter.  Labels are key=value: those of a key sort between the key with = and
 * with the character after =. */
#define OF_LABEL " project_id=?1 AND label=?2"
#define OF_KEY   " project_id=?1 AND label>=?2||'=' AND label<?2||'>'"
#define CELLS_WHERE                                                                                \
	" AND day>=?3 AND day<=?4 AND (?5='' OR app=?5) AND (?6='' OR version_name=?6)"            \
	" AND (?7='' OR build_id=?7) AND (?8='' OR scenario=?8)"                                   \
	" AND (?9='' OR device_class=?9) AND (?10='' OR os=?10)"
#define CELLS_ARGS(project, f)                                                                     \
	(project), (f)->label, (f)->first_day, (f)->last_day, (f)->app, (f)->version_name,         \
	        (f)->build_id, (f)->scenario, (f)->device_class, (f)->os

static bool is_key(const struct tw_rollup_filter *f)
{
	return f->label[0] && !strchr(f->label, '=');
}

static enum tw_status read_rows(struct tw_db *db, const char *project_id,
        const struct tw_rollup_filter *f, struct growing *g, struct tw_err *err)
{
	struct tw_cat_query q;
	const char *const sql =
	        is_key(f) ? "SELECT " TW_CELL_COLUMNS " FROM rollup_cell WHERE" OF_KEY CELLS_WHERE
	                    " ORDER BY day" TW_EITHER("", ", cell_id")
	                  : "SELECT " TW_CELL_COLUMNS " FROM rollup_cell WHERE" OF_LABEL CELLS_WHERE
	                    " ORDER BY day" TW_EITHER("", ", cell_id");
	enum tw_status st = tw_cat_query(/* rollup_cell_by_day */
	        &q, db, err, sql, "ttiitttttt", CELLS_ARGS(project_id, f));

	while (st == TW_OK && tw_cat_row(&q))
		st = space(g) ? tw_cat_cell_row(&q, g->arena, &g->cells[g->n++], err)
		              : tw_rollup_fail_too_large(err);
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status read_all(struct tw_cat_cells *k, const struct tw_rollup_filter *f,
        struct growing *g, struct tw_err *err)
{
	const bool all = !f->scenario[0] && !f->device_class[0] && !f->os[0] && !f->label[0];
	const bool merged = all && (k->metrics & TW_ROLLUP_MERGED);
	struct tw_rollup_cell **cells;
	enum tw_status st = read_rows(k->db, k->project_id, f, g, err);

	if (st != TW_OK)
		return st;
	cells = tw_arena_alloc(k->arena, g->n + 1, sizeof(struct tw_rollup_cell *));
	if (!cells)
		return tw_rollup_fail_too_large(err);
	for (size_t i = 0; i < g->n; i++)
		cells[i] = &g->cells[i];
	if (!merged)
		return tw_cat_read_cells(k, cells, g->n, err);
	st = tw_cat_read_merged(k, g->cells, g->n, err);
	return st == TW_OK ? read_some_deltas(k, cells, g->n, err) : st;
}

enum tw_status tw_catalogue_rollup_read(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, unsigned metrics, struct tw_arena *a,
        struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err)
{
	struct growing g = {.arena = a};
	struct tw_cat_cells k = {
	        .project_id = project_id, .arena = a, .metrics = metrics, .max_deltas = UINT32_MAX};
	/* a delta must not be read twice, before and after it is added to the parts */
	enum tw_status st = tw_cat_snapshot(c, &k.db, err);

	if (st != TW_OK)
		return st;
	st = read_all(&k, f, &g, err);
	tw_cat_cells_done(&k);
	tw_cat_snapshot_done(c, k.db);
	if (st == TW_OK) {
		*ret = g.cells;
		*ret_n = g.n;
	}
	return st;
}

enum tw_status tw_catalogue_rollup_count(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, uint64_t *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, /* rollup_cell_by_day */
	        "SELECT coalesce(sum(traces),0) FROM rollup_cell WHERE" OF_LABEL CELLS_WHERE,
	        "ttiitttttt", CELLS_ARGS(project_id, f));

	*ret = (uint64_t)n;
	return st;
}

/* --- names --- */

static enum tw_status read_names(struct tw_db *db, const char *project_id, const uint64_t *of,
        size_t n, struct tw_arena *a, struct tw_rollup_naming *names, struct tw_err *err)
{
	struct tw_cat_numbers ids;
	struct tw_cat_query q;
	enum tw_status st = tw_cat_numbers(db, (const int64_t *)of, n, a, &ids, err);

	if (st == TW_OK)
		st = tw_cat_query(&q, db, err, /* primary key */
		        "SELECT method_id, name, descriptor, named, build_id FROM rollup_method"
		        " WHERE project_id=?1 AND method_id" TW_CAT_AMONG("?2"),
		        "tt", project_id, ids.list);
	while (st == TW_OK && tw_cat_row(&q)) {
		const int64_t id = tw_cat_int(&q, 0);
		const struct tw_rollup_naming found = {.id = (uint64_t)id,
		        .build_id = tw_cat_text(&q, 4, a),
		        .mapping_id = "",
		        .raw = "",
		        .name = tw_cat_text(&q, 1, a),
		        .descriptor = tw_cat_text(&q, 2, a),
		        .named = tw_cat_int(&q, 3) != 0};

		if (!found.name || !found.descriptor || !found.build_id)
			st = tw_rollup_fail_too_large(err);
		for (size_t i = tw_cat_index_of(&ids, id); i < n && ids.sorted[i].number == id; i++)
			names[ids.sorted[i].at] = found;
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_rollup_names(struct tw_catalogue *c, const char *project_id,
        const uint64_t *ids, size_t n, struct tw_arena *a, struct tw_rollup_naming **ret,
        struct tw_err *err)
{
	struct tw_rollup_naming *names = tw_arena_alloc(a, n ? n : 1, sizeof *names);
	struct tw_db *db;
	enum tw_status st;

	if (!names)
		return tw_rollup_fail_too_large(err);
	for (size_t i = 0; i < n; i++)
		names[i] = (struct tw_rollup_naming){.id = ids[i],
		        .build_id = "",
		        .mapping_id = "",
		        .raw = "",
		        .name = "",
		        .descriptor = ""};
	st = tw_cat_snapshot(c, &db, err);
	if (st != TW_OK)
		return st;
	for (size_t from = 0, of; st == TW_OK && from < n; from += of) {
		of = n - from < NAMES_AT_ONCE ? n - from : NAMES_AT_ONCE;
		st = read_names(db, project_id, ids + from, of, a, names + from, err);
	}
	tw_cat_snapshot_done(c, db);
	if (st == TW_OK)
		*ret = names;
	return st;
}

static enum tw_status read_ids(struct tw_db *db, const char *project_id, const char *name,
        uint64_t *ids, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* rollup_method_by_name */
	        "SELECT method_id FROM rollup_method WHERE project_id=? AND name=?"
	        " ORDER BY method_id LIMIT ?",
	        "tti", project_id, name, (int64_t)TW_ROLLUP_SAME_NAME);

	while (*ret_n < TW_ROLLUP_SAME_NAME && tw_cat_row(&q))
		ids[(*ret_n)++] = (uint64_t)tw_cat_int(&q, 0);
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_rollup_find(struct tw_catalogue *c, const char *project_id,
        const char *name, struct tw_arena *a, uint64_t **ret, size_t *ret_n, struct tw_err *err)
{
	uint64_t *ids = tw_arena_alloc(a, TW_ROLLUP_SAME_NAME, sizeof *ids);
	size_t n = 0;
	struct tw_db *db;
	enum tw_status st;

	if (!ids)
		return tw_rollup_fail_too_large(err);
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = read_ids(db, project_id, name, ids, &n, err);
	tw_cat_done(c, db);
	if (st == TW_OK) {
		*ret = ids;
		*ret_n = n;
	}
	return st;
}
