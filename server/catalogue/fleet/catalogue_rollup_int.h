/* catalogue_rollup_int.h - reads a cell, shared by queries and updates. */
#ifndef TW_CATALOGUE_ROLLUP_INT_H
#define TW_CATALOGUE_ROLLUP_INT_H

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_rollup.h"

/* SQL: delay in milliseconds after this many failures: five seconds, doubled each time, at most six
 * hours. */
#define TW_POSTPONE_MS(attempts) "min(21600000,5000*(1<<CAST(min(" attempts ",13) AS INTEGER)))"

/* Reads cells of a project into an arena; statements stay prepared, and are initially NULL. */
struct tw_cat_cells {
	struct tw_db *db;
	const char *project_id;
	struct tw_arena *arena;
	unsigned metrics;    /* requested parts, a bit each; with any, also facts of deltas */
	uint32_t max_deltas; /* per cell */
	struct tw_stmt *part, *delta, *signature, *merged;
};
void tw_cat_cells_done(struct tw_cat_cells *k);

/* Adds parts and deltas to cells whose rows have been read: two statements for up to 256 cells. */
enum tw_status tw_cat_read_cells(
        struct tw_cat_cells *k, struct tw_rollup_cell *const *cells, size_t n, struct tw_err *err);
/* The same without deltas. */
enum tw_status tw_cat_read_parts(
        struct tw_cat_cells *k, struct tw_rollup_cell *const *cells, size_t n, struct tw_err *err);
/* Parts of all cells of a filter, for TW_ROLLUP_MERGED (catalogue_rollup_merged.c). */
enum tw_status tw_cat_read_merged(
        struct tw_cat_cells *k, struct tw_rollup_cell *cells, size_t n, struct tw_err *err);
/* Call in the transaction that changes the parts of a cell, or deletes it. */
enum tw_status tw_cat_merged_due(struct tw_db *db, const char *project_id,
        const struct tw_rollup_dims *d, struct tw_err *err);
enum tw_status tw_cat_merged_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err);
/* A copy of a column's bytes in the arena; TW_TOO_LARGE if it is full. */
enum tw_status tw_cat_bytes(const struct tw_cat_query *q, int col, struct tw_arena *a,
        struct tw_str *ret, struct tw_err *err);

struct tw_in_cell { /* a trace in one of its cells */
	const struct tw_rollup_reading *f;
	const struct tw_rollup_dims *dims;
	int64_t cell_id;
};
/* The first one of the cell of the i-th. */
size_t tw_cat_first_in_cell(const struct tw_in_cell *of, size_t i);

/* Merged call trees (catalogue_rollup_tree.c), in the transaction that counts or deletes. */
enum tw_status tw_cat_trees_add(struct tw_db *db, const struct tw_in_cell *of, size_t n,
        struct tw_arena *a, struct tw_err *err);
enum tw_status tw_cat_tree_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err);

#define TW_CELL_COLUMNS                                                                            \
	"cell_id,day,app,version_name,build_id,mapping_id,scenario,device_class,os,label,traces,"  \
	"version,head,pending"
/* The current row of a query of TW_CELL_COLUMNS; n_deltas is their total number. */
enum tw_status tw_cat_cell_row(const struct tw_cat_query *q, struct tw_arena *a,
        struct tw_rollup_cell *ret, struct tw_err *err);

/* Search index entries of traces in cells, and of a cell (catalogue_search_index.c). */
enum tw_status tw_cat_index_add(
        struct tw_db *db, const struct tw_in_cell *of, size_t n, struct tw_err *err);
enum tw_status tw_cat_index_delete(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err);

#endif
