#include "server/catalogue/fleet/catalogue_search_index.h"

#include <string.h>

#include "decoder/base/order.h"
#include "server/catalogue/fleet/catalogue_rollup_int.h"

#define INSERT_INDEX                                                                               \
	"INSERT INTO rollup_post(project_id,cell_id,slot,pack,data) SELECT c1,c2,c3,c4,c5 FROM"    \
	" {rows}"

enum tw_status tw_cat_index_add(
        struct tw_db *db, const struct tw_in_cell *of, size_t n, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db, .types = "tiiib", .sql = INSERT_INDEX};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (of[i].f->posts.len)
			st = tw_cat_rows_add(&rows, err, of[i].f->project_id, of[i].cell_id,
			        (int64_t)TW_INDEX_ONE, tw_cat_random(), &of[i].f->posts);
	return tw_cat_rows_end(&rows, st, err);
}

enum tw_status tw_cat_index_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "DELETE FROM rollup_post WHERE project_id=? AND cell_id=?", "ti", project_id,
	        cell_id);
}

/* --- packing --- */

static bool read_row(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_index_row *r = ret_row;

	r->pack = tw_cat_int(q, 0);
	return tw_cat_bytes(q, 1, a, &r->data, NULL) == TW_OK;
}

enum tw_status tw_catalogue_index_loose(struct tw_catalogue *c, const struct tw_rollup_due *of,
        uint32_t limit, struct tw_arena *a, struct tw_index_row **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c,
	        &(struct tw_cat_list){.arena = a,
	                .limit = limit,
	                .row_bytes = sizeof **ret,
	                .read = read_row,
	                .ret = ret,
	                .ret_n = ret_n},
	        err, /* primary key */
	        "SELECT pack, data FROM rollup_post WHERE project_id=?1 AND cell_id=?2 AND"
	        " slot=?3 AND pack IN (SELECT pack FROM (SELECT pack, sum(length(data)) OVER"
	        " (ORDER BY pack) AS upto FROM rollup_post WHERE project_id=?1 AND cell_id=?2"
	        " AND slot=?3 LIMIT ?4) of_cell WHERE upto<=?5) ORDER BY pack",
	        "tiiii", of->project_id, of->cell_id, (int64_t)TW_INDEX_ONE, (int64_t)limit,
	        (int64_t)TW_INDEX_PACK_BYTES);
}

static enum tw_status take_loose(struct tw_db *db, const struct tw_rollup_due *of,
        const struct tw_index_row *loose, size_t n, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "tiii",
	        .sql = "DELETE FROM rollup_post WHERE (project_id,cell_id,slot,pack) IN (SELECT"
	               " c1,c2,c3,c4 FROM {rows})"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_cat_rows_add(&rows, err, of->project_id, of->cell_id, (int64_t)TW_INDEX_ONE,
		        loose[i].pack);
	st = tw_cat_rows_end(&rows, st, err);
	return st == TW_OK && rows.changed != (int64_t)n
	               ? tw_fail(err, TW_CONFLICT, "they were packed by another transaction")
	               : st;
}

static enum tw_status put_rows(struct tw_db *db, const struct tw_rollup_due *of, int64_t pack,
        const struct tw_str packed[TW_INDEX_ROWS], struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db, .types = "tiiib", .sql = INSERT_INDEX};
	enum tw_status st = TW_OK;

	for (int slot = 0; st == TW_OK && slot < TW_INDEX_ROWS; slot++)
		if (packed[slot].len)
			st = tw_cat_rows_add(&rows, err, of->project_id, of->cell_id, (int64_t)slot,
			        pack, &packed[slot]);
	return tw_cat_rows_end(&rows, st, err);
}

/* A pack gets the number of its first row. */
enum tw_status tw_catalogue_index_pack(struct tw_catalogue *c, const struct tw_rollup_due *of,
        const struct tw_index_row *loose, size_t n, const struct tw_str rows[TW_INDEX_ROWS],
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st == TW_OK)
		st = take_loose(w, of, loose, n, err);
	if (st == TW_OK)
		st = put_rows(w, of, loose[0].pack, rows, err);
	return tw_cat_end(c, w, st, err);
}

/* --- reading --- */

static enum tw_status read_slot(struct tw_db *db, struct tw_stmt **prepared,
        const struct tw_index_query *query, size_t cell, unsigned slot, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_prepared(&q, db, prepared, err, /* primary key */
	        "SELECT pack, data FROM rollup_post WHERE project_id=? AND cell_id=? AND slot=?"
	        " ORDER BY pack",
	        "tii", query->project_id, query->cells[cell].cell_id, (int64_t)slot);

	while (st == TW_OK && tw_cat_row(&q)) {
		const struct tw_index_row row = {tw_cat_int(&q, 0), tw_cat_blob(&q, 1)};

		st = query->each(query->arg, cell, slot, &row, err);
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status read_cell(struct tw_db *db, struct tw_stmt **prepared,
        const struct tw_index_query *query, size_t cell, struct tw_err *err)
{
	enum tw_status st = read_slot(db, prepared, query, cell, TW_INDEX_HEAD, err);

	if (st == TW_OK)
		st = read_slot(db, prepared, query, cell, TW_INDEX_ONE, err);
	for (unsigned slot = 0; st == TW_OK && slot < TW_INDEX_SLOTS; slot++)
		if (query->slots >> slot & 1)
			st = read_slot(db, prepared, query, cell, slot, err);
	return st;
}

enum tw_status tw_catalogue_index_read(
        struct tw_catalogue *c, const struct tw_index_query *query, struct tw_err *err)
{
	struct tw_stmt *prepared = NULL;
	struct tw_db *db;
	enum tw_status st = tw_cat_snapshot(c, &db, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < query->n_cells; i++)
		st = read_cell(db, &prepared, query, i, err);
	tw_stmt_drop(prepared);
	tw_cat_snapshot_done(c, db);
	return st;
}

/* --- names --- */

struct choosing {
	const struct tw_index_names *of;
	struct tw_arena *arena;
	struct tw_rollup_naming *rows;
	size_t n;
	bool all;
};

/* Adds a method whose name fits. */
static void choose(struct choosing *k, const struct tw_cat_query *q, const char *name)
{
	k->all = k->rows && k->n < k->of->limit;
	if (k->all)
		k->rows[k->n++] =
		        (struct tw_rollup_naming){.id = (uint64_t)tw_cat_int(q, 0), .name = name};
}

static enum tw_status check_name(
        const struct choosing *k, const char *name, bool *ret_fits, struct tw_err *err)
{
	*ret_fits = true;
	return k->of->fits ? k->of->fits(k->of->arg, name, ret_fits, err) : TW_OK;
}

/* Names are sorted: each is checked once for all its methods. */
static enum tw_status choose_names(struct choosing *k, struct tw_cat_query *q, struct tw_err *err)
{
	const char *last = ""; /* the last one that fits */
	enum tw_status st = TW_OK;
	bool fits = false;

	while (st == TW_OK && k->all && last && tw_cat_row(q)) {
		const char *name = tw_cat_str(q, 1);

		if (strcmp(last, name) != 0) {
			st = check_name(k, name, &fits, err);
			last = fits ? tw_arena_str(k->arena, tw_str_of(name)) : "";
		}
		if (st == TW_OK && !last)
			st = tw_oom(err);
		if (st == TW_OK && fits)
			choose(k, q, last);
	}
	return st;
}

static enum tw_status read_chosen(struct tw_db *db, struct choosing *k, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st =
	        k->of->name ? tw_cat_query(&q, db, err, /* rollup_method_by_name */
	                              "SELECT method_id, name FROM rollup_method WHERE project_id=?"
	                              " AND name=?",
	                              "tt", k->of->project_id, k->of->name)
	                    : tw_cat_query(&q, db, err, /* rollup_method_by_name */
	                              "SELECT method_id, name FROM rollup_method INDEXED BY"
	                              " rollup_method_by_name WHERE project_id=? ORDER BY name",
	                              "t", k->of->project_id);

	if (st != TW_OK)
		return st;
	st = choose_names(k, &q, err);
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status read_rest(struct tw_db *db, struct tw_stmt **prepared, struct choosing *k,
        struct tw_rollup_naming *m, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_prepared(&q, db, prepared, err, /* primary key */
	        "SELECT build_id, mapping_id, raw, descriptor, named FROM rollup_method"
	        " WHERE project_id=? AND method_id=?",
	        "ti", k->of->project_id, (int64_t)m->id);

	if (st != TW_OK)
		return st;
	m->build_id = m->mapping_id = m->raw = m->descriptor = "";
	if (tw_cat_row(&q)) {
		m->build_id = tw_cat_text(&q, 0, k->arena);
		m->mapping_id = tw_cat_text(&q, 1, k->arena);
		m->raw = tw_cat_text(&q, 2, k->arena);
		m->descriptor = tw_cat_text(&q, 3, k->arena);
		m->named = tw_cat_int(&q, 4) != 0;
		if (!m->build_id || !m->mapping_id || !m->raw || !m->descriptor)
			st = tw_oom(err);
	}
	return tw_cat_close_after(&q, st, err);
}

TW_ORDER_BY(by_id, struct tw_rollup_naming, TW_RISING(id))

enum tw_status tw_catalogue_index_names(struct tw_catalogue *c, const struct tw_index_names *of,
        struct tw_arena *a, struct tw_rollup_naming **ret, size_t *ret_n, bool *ret_all,
        struct tw_err *err)
{
	struct choosing k = {.of = of,
	        .arena = a,
	        .rows = tw_arena_alloc(a, (size_t)of->limit + 1, sizeof *k.rows),
	        .all = true};
	struct tw_stmt *prepared = NULL;
	struct tw_db *db = NULL;
	enum tw_status st = k.rows ? tw_cat_reader(c, &db, err) : tw_oom(err);

	if (st != TW_OK)
		return st;
	st = read_chosen(db, &k, err);
	for (size_t i = 0; st == TW_OK && i < k.n; i++)
		st = read_rest(db, &prepared, &k, &k.rows[i], err);
	tw_stmt_drop(prepared);
	tw_cat_done(c, db);
	if (st != TW_OK)
		return st;
	TW_SORT(k.rows, k.n, by_id);
	*ret = k.rows;
	*ret_n = k.n;
	*ret_all = k.all;
	return TW_OK;
}

static enum tw_status each_name(struct tw_db *db, const struct tw_method_names *of, bool raw,
        bool *io_more, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st =
	        raw ? tw_cat_query(&q, db, err, /* primary key */
	                      "SELECT name, raw FROM rollup_method WHERE project_id=? AND"
	                      " raw<>name AND raw NOT LIKE '#%'",
	                      "t", of->project_id)
	            : tw_cat_query(&q, db, err, /* rollup_method_by_name */
	                      "SELECT DISTINCT name FROM rollup_method INDEXED BY"
	                      " rollup_method_by_name WHERE project_id=? ORDER BY name",
	                      "t", of->project_id);

	if (st != TW_OK)
		return st;
	while (st == TW_OK && *io_more && tw_cat_row(&q))
		st = of->each(
		        of->arg, tw_cat_str(&q, 0), raw ? tw_cat_str(&q, 1) : "", io_more, err);
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_method_names(
        struct tw_catalogue *c, const struct tw_method_names *of, struct tw_err *err)
{
	struct tw_db *db = NULL;
	bool more = true;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = each_name(db, of, false, &more, err);
	if (st == TW_OK && of->raw && more)
		st = each_name(db, of, true, &more, err);
	tw_cat_done(c, db);
	return st;
}
