/*
 * tree_sums.h - the part of a call tree that merging the trees of several threads requires.
 *
 * A node takes 24 bytes instead of 72.
 * Thread: one at a time.
 */
#ifndef TW_TREE_SUMS_H
#define TW_TREE_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/trace/calltree.h"

struct tw_node_sums {
	uint32_t method, subtree; /* as in struct tw_tree_node */
	int64_t total_ns;
	uint32_t count, max_ns; /* TW_WIDE_SUMS in both: see tw_tree_sums_wide */
};
#define TW_WIDE_SUMS UINT32_MAX

struct tw_wide_sums { /* of a node whose numbers need more than 32 bits */
	uint64_t count;
	int64_t max_ns;
	uint32_t node;
};

struct tw_tree_sums {
	struct tw_node_sums *nodes; /* in pre-order */
	uint32_t n;
	struct tw_wide_sums *wide; /* by rising node */
	uint32_t n_wide, cap_wide;
	uint32_t *open; /* while nodes are added: the last node at each depth */
	uint32_t depth, cap_open;
};

/* False, here and below: out of memory. */
bool tw_tree_sums_begin(struct tw_tree_sums *s, uint32_t max_nodes);
/* The next nodes in pre-order; `parent` and `subtree` are not used. */
bool tw_tree_sums_add(struct tw_tree_sums *s, const struct tw_tree_node *nodes, uint32_t n);
/* After the last node. */
void tw_tree_sums_end(struct tw_tree_sums *s);
void tw_tree_sums_done(struct tw_tree_sums *s);

const struct tw_wide_sums *tw_tree_sums_wide(const struct tw_tree_sums *s, uint32_t node);

#endif
