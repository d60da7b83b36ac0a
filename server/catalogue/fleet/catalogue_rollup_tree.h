/*
 * catalogue_rollup_tree.h - merged call trees of cells, as the catalogue keeps them.
 *
 * Kept like the rest of a cell (catalogue_rollup.h): a trace that is folded leaves
 * its tree as a delta, in the same transaction; deltas are added into the cell's
 * tree in one transaction that deletes them.
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
	struct tw_rollup_written tree; /* "" before anything was added */
	bool unrough;                  /* its rough tree is still to be made */
	struct tw_tree_delta *deltas;
	size_t n_deltas;
};

/* A question's cost is that of its cells' nodes: those of more than TW_ROLLUP_TREES_WHOLE cells are
 * read from rough trees of at most TW_ROLLUP_ROUGH_NODES. */
enum { TW_ROLLUP_TREES_WHOLE = 64, TW_ROLLUP_ROUGH_NODES = 512 };
/* Of each of the cells, as they are at one moment, without levels, rough where that is asked for
 * and made; those without a tree have none of it.
 * TW_TOO_LARGE when they do not fit into the arena. */
enum tw_status tw_catalogue_trees_read(struct tw_catalogue *c, const char *project_id,
        const int64_t *cell_ids, size_t n, bool rough, struct tw_arena *a,
        struct tw_tree_cell **ret, struct tw_err *err) TW_MUST_USE;

/* Cells with so many deltas, or fewer where they are fewer for what was added before, or with any
 * and of a day before `day`; and those whose rough tree is to be made.  Not those that are put off
 * beyond now_ms. */
enum tw_status tw_catalogue_trees_due(struct tw_catalogue *c, uint32_t deltas, int64_t day,
        int64_t now_ms, uint32_t limit, struct tw_arena *a, struct tw_rollup_due **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Its deltas could not be added: it is tried again later, each time later. */
enum tw_status tw_catalogue_tree_put_off(struct tw_catalogue *c, const struct tw_rollup_due *of,
        int64_t now_ms, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_tree_load(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_tree_cell **ret, struct tw_err *err) TW_MUST_USE;
/* Puts what `was` held into its new tree.  TW_CONFLICT: somebody else did meanwhile. */
enum tw_status tw_catalogue_tree_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_tree_cell *was, const struct tw_rollup_written *tree,
        const struct tw_str *rough, struct tw_err *err) TW_MUST_USE;

/* A question reads deltas one by one; each of them has an eighth of a full cell's nodes.  A tree
 * that was made often is made again for more of them, so that counting a trace costs no more when
 * it is large. */
enum { TW_ROLLUP_TREE_LEAST = 8, TW_ROLLUP_TREE_DELTAS = 32 };
/* Adds up some of the cells that are due (rollup_tree_add.c). */
enum tw_status tw_rollup_trees_add(struct tw_catalogue *c, uint32_t deltas, int64_t day,
        bool *ret_more, struct tw_err *err) TW_MUST_USE;
/* How many could not be added up so far. */
enum tw_status tw_catalogue_trees_late(
        struct tw_catalogue *c, uint64_t *ret, struct tw_err *err) TW_MUST_USE;

#endif
