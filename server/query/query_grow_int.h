/*
 * query_grow_int.h - the nodes of a growing graph, which query_grow.c opens on one thread and
 * query_grow_threads.c on several.
 */
#ifndef TW_QUERY_GROW_INT_H
#define TW_QUERY_GROW_INT_H

#include "server/query/query_grow.h"

struct tw_grown {
	struct tw_flame_node node;
	int64_t order;
	struct tw_grow_member *members;
	uint32_t n_members;
	uint32_t first_child, n_children; /* set when opened: heaviest first */
	bool opened;
};

struct tw_heap_entry { /* a node with its sort key */
	int64_t value;
	uint32_t node;
};

/* Of equal nodes the one found first, so the opened children of a node are always its first. */
static inline bool tw_grow_is_heavier(struct tw_heap_entry a, struct tw_heap_entry b)
{
	return a.value != b.value ? a.value > b.value : a.node < b.node;
}

/* Adds a node to the unopened ones. */
void tw_grow_push(struct tw_grower *g, uint32_t node);

/* Removes the heaviest unopened node. */
uint32_t tw_grow_pop(struct tw_grower *g);

/* Makes room for `more` nodes. */
bool tw_grow_reserve(struct tw_grower *g, uint32_t more);

/* Adds the children of a node, heaviest first, and pushes those that can be opened. */
bool tw_grow_open(struct tw_grower *g, uint32_t node);

/* Whether threads take less time to start than they save, and their shares can be alike. */
bool tw_grow_is_divisible(const struct tw_grower *g, uint32_t max_nodes);

/* Opens the remaining nodes. `first`: the root's first child, as nodes before it are not part of
 * the result. Changes nothing if no core is free. */
enum tw_status tw_grow_by_threads(struct tw_grower *g, uint32_t first, uint32_t max_nodes,
        bool *ret_partial, struct tw_err *err) TW_MUST_USE;

#endif
