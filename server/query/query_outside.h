/*
 * query_outside.h - the call tree of a range as the stored tree without what is outside.
 *
 * Thread: each part of the work on its own arguments.
 */
#ifndef TW_QUERY_OUTSIDE_H
#define TW_QUERY_OUTSIDE_H

#include "server/query/query_slices.h"

/* The chunks of a thread with calls that are outside or cross an end of the range, in the arena.
 * TW_NOT_FOUND: reading them and the stored tree, of `nodes`, takes longer than reading the
 * range. */
enum tw_status tw_outside_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_selection *sel, uint64_t nodes, struct tw_arena *a,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Adds the calls of such a chunk to a tree, as far as they are outside. */
enum tw_status tw_outside_add(struct tw_tree_builder *b, const struct tw_selection *sel,
        const struct tw_chunk *c) TW_MUST_USE;

/* Reduces the stored tree by the linked one of all these chunks.  Siblings remain in their order.
 * max_ns and cpu_ns remain those of the complete thread. */
enum tw_status tw_outside_subtract(
        struct tw_tree *t, const struct tw_tree_builder *outside, struct tw_err *err) TW_MUST_USE;

#endif
