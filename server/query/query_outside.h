/*
 * query_outside.h - computes the call tree of a range by subtracting the calls outside of
 * it from the stored tree.
 *
 * Thread: each part of the work on its own arguments.
 */
#ifndef TW_QUERY_OUTSIDE_H
#define TW_QUERY_OUTSIDE_H

#include "server/query/query_slices.h"

/* Finds the chunks of a thread with calls that are outside the range or cross one of its ends.
 * TW_NOT_FOUND: reading them and the stored tree, of `nodes`, takes longer than reading the
 * range. */
enum tw_status tw_outside_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_selection *sel, uint64_t nodes, struct tw_arena *a,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Adds the parts of a chunk's calls that are outside the range to a tree. */
enum tw_status tw_outside_add(struct tw_tree_builder *b, const struct tw_selection *sel,
        const struct tw_chunk *c) TW_MUST_USE;

/* Subtracts the linked tree of all these chunks from the stored tree.  Siblings keep their order.
 * max_ns and cpu_ns remain those of the complete thread.  `n_methods`: those of the trace; a
 * call of any other is TW_CORRUPT. */
enum tw_status tw_outside_subtract(struct tw_tree *t, const struct tw_tree_builder *outside,
        uint32_t n_methods, struct tw_err *err) TW_MUST_USE;

#endif
