/*
 * naive_tree.h - call trees of made-up traces by the plainest means.
 *
 * Methods in a naive tree are method ids, not indexes; nodes are in no order.
 */
#ifndef TW_NAIVE_TREE_H
#define TW_NAIVE_TREE_H

#include "trace_model.h"

/* Does the call overlap [from, to), and what called it too? */
bool naive_in_range(const struct model *m, const struct model_slice *s, int64_t from, int64_t to);

/* Of the calls that overlap [from, to), cut to it, of all threads or of one (tid not 0). */
struct tw_tree naive_tree(
        struct tw_arena *a, const struct model *m, uint64_t tid, int64_t from, int64_t to);

/* NULL when got (method indexes into methods) is equal and in the promised order, else what is
 * wrong. */
const char *naive_differs(const struct tw_tree *got, struct tw_tree *want,
        const struct tw_method_info *methods, struct tw_arena *a);

#endif
