/*
 * catalogue_rollup_int.h - reading a cell, shared by those who answer and those who add up.
 */
#ifndef TW_CATALOGUE_ROLLUP_INT_H
#define TW_CATALOGUE_ROLLUP_INT_H

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_rollup.h"

/* SQL: milliseconds until something that failed so often is tried again: five seconds, doubled with
 * each try, at most six hours. */
#define TW_PUT_OFF_MS(tries) "min(21600000,5000*(1<<CAST(min(" tries ",13) AS INTEGER)))"

/* Cells of a project on their way into an arena; statements stay prepared, and are NULL at first.
 */
struct tw_cat_cells {
	struct tw_db *db;
	const char *project_id;
	struct tw_arena *arena;
	unsigned metrics;    /* parts that are wanted, a bit each; with any, facts of deltas too */
	uint32_t max_deltas; /* of a cell */
	struct tw_stmt *part, *delta, *sign, *wide;
};
void tw_cat_cells_done(struct tw_cat_cells *k);

/* Adds to *cell, whose row is read, its parts and deltas. */
enum tw_status tw_cat_read_cell(
        struct tw_cat_cells *k, struct tw_rollup_cell *cell, struct tw_err *err);
/* The same without deltas. */
enum tw_status tw_cat_read_parts(
        struct tw_cat_cells *k, struct tw_rollup_cell *cell, struct tw_err *err);
/* Parts of all that a filter let through, for TW_ROLLUP_WIDE (catalogue_rollup_wide.c). */
enum tw_status tw_cat_read_wide(
        struct tw_cat_cells *k, struct tw_rollup_cell *cells, size_t n, struct tw_err *err);
/* Within the transaction that changes the parts of a cell, or deletes it. */
enum tw_status tw_cat_wide_due(struct tw_db *db, const char *project_id,
        const struct tw_rollup_dims *d, struct tw_err *err);
enum tw_status tw_cat_wide_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err);
/* A copy of a column's bytes in the arena; TW_TOO_LARGE when it is full. */
enum tw_status tw_cat_bytes(const struct tw_cat_query *q, int col, struct tw_arena *a,
        struct tw_str *ret, struct tw_err *err);

/* Merged call trees (catalogue_rollup_tree.c), within the transaction that folds or deletes. */
struct tw_tree_place {
	int64_t cell_id, day;
};
enum tw_status tw_cat_tree_add(struct tw_db *db, struct tw_stmt *kept[2],
        const struct tw_rollup_folding *f, const struct tw_tree_place *at, struct tw_err *err);
enum tw_status tw_cat_tree_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err);

#define TW_CELL_COLUMNS                                                                            \
	"cell_id,day,app,version_name,build_id,mapping_id,scenario,device_class,os,label,traces,"  \
	"version,head,pending"
/* The current row of a query of TW_CELL_COLUMNS; n_deltas is as many as there were. */
enum tw_status tw_cat_cell_row(const struct tw_cat_query *q, struct tw_arena *a,
        struct tw_rollup_cell *ret, struct tw_err *err);

/* Postings of a trace in a cell, and of a cell (catalogue_post.c). */
enum tw_status tw_cat_post_add(struct tw_db *db, struct tw_stmt **kept,
        const struct tw_rollup_folding *f, int64_t cell_id, struct tw_err *err);
enum tw_status tw_cat_post_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err);

#endif
