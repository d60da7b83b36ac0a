/*
 * catalogue_rollup_tree.h - merged call trees of cells in the catalogue.
 *
 * Stored like the rest of a cell (catalogue_rollup.h): counting a trace adds its tree as a delta,
 * in the same transaction; deltas are added to the cell's tree in one transaction that deletes
 * them.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_ROLLUP_TREE_H
#define TW_CATALOGUE_ROLLUP_TREE_H

#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/stats/rollup_tree.h"

struct tw_tree_delta {
	const char *trace_id;
	struct tw_str data;
};
struct tw_tree_cell {
	int64_t cell_id, version;
	struct tw_rollup_written tree; /* "" before the first update */
	bool reduced_missing;          /* its reduced tree is not made yet */
	struct tw_tree_delta *deltas;
	size_t n_deltas;
};

/* A query's cost depends on the nodes of its cells: for more than TW_ROLLUP_TREES_WHOLE cells it
 * reads reduced trees of at most TW_ROLLUP_REDUCED_NODES. */
enum { TW_ROLLUP_TREES_WHOLE = 64, TW_ROLLUP_REDUCED_NODES = 512 };
/* The trees of the cells, from one snapshot, without levels; reduced if requested and available.
 * Cells without a tree have an empty one.  TW_TOO_LARGE if they do not fit into the arena. */
enum tw_status tw_catalogue_trees_read(struct tw_catalogue *c, const char *project_id,
        const int64_t *cell_ids, size_t n, bool reduced, struct tw_arena *a,
        struct tw_tree_cell **ret, struct tw_err *err) TW_MUST_USE;

/* Cells with at least `deltas` deltas, or twice the number of earlier updates if that is fewer (at
 * least TW_ROLLUP_TREE_DELTAS_MIN); cells of a day before `day` with any; and cells whose reduced
 * tree is missing.  Not those postponed beyond now_ms. */
enum tw_status tw_catalogue_trees_due(struct tw_catalogue *c, uint32_t deltas, int64_t day,
        int64_t now_ms, uint32_t limit, struct tw_arena *a, struct tw_rollup_due **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Postpones a cell whose deltas could not be added, with increasing delays. */
enum tw_status tw_catalogue_tree_postpone(struct tw_catalogue *c, const struct tw_rollup_due *of,
        int64_t now_ms, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_tree_load(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_tree_cell **ret, struct tw_err *err) TW_MUST_USE;
/* Replaces the deltas in `was` with its new tree.  TW_CONFLICT: another server did so already. */
enum tw_status tw_catalogue_tree_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_tree_cell *was, const struct tw_rollup_written *tree,
        const struct tw_str *reduced, struct tw_err *err) TW_MUST_USE;

/* A query reads deltas one by one, each with up to an eighth of a full cell's nodes, so their
 * number is limited.  The more often a tree was rewritten, the more deltas it waits for, so that
 * the cost per trace does not grow with the tree. */
enum { TW_ROLLUP_TREE_DELTAS_MIN = 8, TW_ROLLUP_TREE_DELTAS_MAX = 32 };
/* Updates some of the due cells (rollup_tree_add.c). */
enum tw_status tw_rollup_trees_add(struct tw_catalogue *c, uint32_t deltas, int64_t day,
        bool *ret_more, struct tw_err *err) TW_MUST_USE;
/* The number of trees that could not be merged so far. */
enum tw_status tw_catalogue_trees_postponed(
        struct tw_catalogue *c, uint64_t *ret, struct tw_err *err) TW_MUST_USE;

#endif
