/* rollup_tree_add.c - merges deltas of cells into their call trees, a few cells at a time. */

#include "server/base/age_clock.h"
#include "server/base/log.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/stats/rollup_tree.h"

enum { ADDED_AT_ONCE = 32, TREE_BYTES = 64 << 20, ARENA_BYTES = 512 << 20 };

static enum tw_status merge_all(
        const struct tw_tree_cell *cell, struct tw_rollup_tree *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (cell->tree.data.len)
		st = tw_rollup_tree_resume(t, &cell->tree, err);
	for (size_t i = 0; st == TW_OK && i < cell->n_deltas; i++) {
		const struct tw_rollup_written one = {cell->deltas[i].data, {"", 0}};

		st = tw_rollup_tree_merge(t, &one, err);
	}
	tw_rollup_tree_bound(t, TW_ROLLUP_CELL_NODES);
	return st;
}

struct made { /* a cell's tree, serialized exact and rounded */
	struct tw_buf data, levels, reduced;
};

/* The rounded tree is never merged further, so its levels are not stored. */
static enum tw_status write_both(struct tw_rollup_tree *t, struct made *ret, struct tw_err *err)
{
	struct tw_buf levels;
	enum tw_status st = tw_rollup_tree_write(t, &ret->data, &ret->levels, err);

	if (st != TW_OK)
		return st;
	tw_buf_init(&levels, TREE_BYTES);
	tw_rollup_tree_bound(t, TW_ROLLUP_REDUCED_NODES);
	st = tw_rollup_tree_write(t, &ret->reduced, &levels, err);
	tw_buf_done(&levels);
	return st;
}

static struct tw_str text_of(const struct tw_buf *b)
{
	return tw_buf_str(b);
}

static enum tw_status add_one(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_err *err)
{
	struct tw_rollup_tree t = {.arena = a};
	struct tw_tree_cell *cell = NULL;
	struct made made;
	enum tw_status st = tw_catalogue_tree_load(c, of, a, &cell, err);

	if (st != TW_OK)
		return st;
	if (cell->n_deltas == 0 &&
	        !cell->reduced_missing) /* merged by another process, or lost: no immediate retry */
		return tw_fail(err, TW_CONFLICT, "there is nothing to add");
	tw_buf_init(&made.data, TREE_BYTES);
	tw_buf_init(&made.levels, TREE_BYTES);
	tw_buf_init(&made.reduced, TREE_BYTES);
	st = merge_all(cell, &t, err);
	if (st == TW_OK)
		st = write_both(&t, &made, err);
	if (st == TW_OK) {
		const struct tw_rollup_written tree = {text_of(&made.data), text_of(&made.levels)};
		const struct tw_str reduced = text_of(&made.reduced);

		st = tw_catalogue_tree_store(c, of->project_id, cell, &tree, &reduced, err);
	}
	tw_buf_done(&made.data);
	tw_buf_done(&made.levels);
	tw_buf_done(&made.reduced);
	return st;
}

/* A cell that fails is postponed, so that the others are processed. */
static enum tw_status add_or_postpone(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_err *err)
{
	struct tw_err why;
	const enum tw_status st = add_one(c, of, a, &why);

	if (st == TW_OK)
		return TW_OK;
	if (st != TW_CONFLICT)
		tw_log_err(TW_LOG_ERROR, "rollup_tree_not_merged", of->project_id, &why);
	return tw_catalogue_tree_postpone(c, of, tw_wait_ms(), err);
}

enum tw_status tw_rollup_trees_add(
        struct tw_catalogue *c, uint32_t deltas, int64_t day, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_arena *list = tw_arena_new(1 << 20);
	struct tw_rollup_due *due = NULL;
	size_t n = 0;
	enum tw_status st = a && list ? tw_catalogue_trees_due(c, deltas, day, tw_wait_ms(),
	                                        ADDED_AT_ONCE, list, &due, &n, err)
	                              : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		tw_arena_reset(a);
		st = add_or_postpone(c, &due[i], a, err);
	}
	tw_arena_free(list);
	tw_arena_free(a);
	*ret_more = st == TW_OK && n > 0;
	return st;
}
