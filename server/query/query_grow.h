/*
 * query_grow.h - a flame graph grown best first over the call trees of several threads.
 *
 * A node of the graph stands for members: nodes of the call trees that share it.
 * Opening a node gathers its members' neighbours (callees top down, callers
 * bottom up) and groups them by method, so threads are merged only where it is
 * looked.  The heaviest unopened node is opened next, until enough are shown;
 * what is not opened stands as `(other)` below its node, so every sum holds.
 * Thread: one query.
 */
#ifndef TW_QUERY_GROW_H
#define TW_QUERY_GROW_H

#include "server/query/query.h"

struct tw_member { /* a call-tree node that a node of the graph stands for */
	uint32_t tree, at;
	uint32_t method; /* TW_NO_METHOD: a rest, which is never opened and stands last */
	uint64_t hidden; /* nodes that stay unseen while it is not opened; 0: not known, counts once
	                  */
	int64_t value, self;
	int64_t order; /* siblings fall by it */
	uint64_t count;
	int64_t max_ns;
};

struct tw_grower;

/* The members next to those of an opened node; *ret may be those of the node, changed.  What
 * has no neighbour any more is added to *ret_self.  False: no memory, or late. */
typedef bool (*tw_expand_fn)(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self);

struct tw_grower {
	const struct tw_forest *forest;
	struct tw_arena *arena;
	const struct tw_deadline *deadline;
	bool late; /* it passed while a node was opened, which stays closed */
	tw_expand_fn expand;
	void *arg;        /* of expand */
	bool knows_total; /* members tell all that is hidden */
	struct tw_grown *nodes;
	uint32_t n, cap, shown;
	struct tw_heap_entry *heap; /* unopened nodes, heaviest on top */
	uint32_t n_heap;
	struct tw_member *scratch; /* for sorting */
	uint32_t cap_scratch;
	struct tw_group *groups; /* children to be */
	uint32_t cap_groups;
};

/* True once the deadline has passed while n members, and not just a few, are worked on. */
bool tw_grow_is_late(struct tw_grower *g, uint32_t n);

/* Answers q from the members of the graph's first node. */
enum tw_status tw_grow(struct tw_grower *g, const struct tw_flame_query *q,
        struct tw_member *members, uint32_t n, struct tw_flame *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
