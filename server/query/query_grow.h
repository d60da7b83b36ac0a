/*
 * query_grow.h - builds a flame graph best first from the call trees of several threads.
 *
 * A node of the graph has members: the call-tree nodes merged into it. Opening a node collects its
 * members' neighbours (callees top down, callers bottom up) and groups them by method, so threads
 * are merged only where the graph is opened. The heaviest unopened node is opened next, until
 * enough are shown. The unopened remainder becomes `(other)` below its node, so every sum is
 * correct.
 *
 * Large graphs are opened by several threads. The unopened nodes are divided between them, and each
 * thread opens its share best first. As the next node of the graph is always the next node of one
 * share, their sequences are merged into the one that a single thread would have opened.
 * Thread: one query.
 */
#ifndef TW_QUERY_GROW_H
#define TW_QUERY_GROW_H

#include <pthread.h>

#include "server/query/query.h"

/* A call-tree node merged into a node of the graph. Large graphs move millions of members, so their
 * numbers are stored elsewhere. */
struct tw_grow_member {
	uint32_t tree, at; /* in the numbering of the members' source; with leaves, `tree` is the
	                    * index of a leaf */
	uint32_t method;   /* TW_NO_METHOD: a rest, which is never opened and comes last */
};

/* The values that a member adds to its node. */
struct tw_grow_sums {
	int64_t value, self, max_ns;
	int64_t order; /* sort key of siblings, falling */
	uint64_t count;
	uint64_t hidden; /* number of nodes hidden below it while it is closed; 0: unknown, counts
	                  * as one */
};

/* The same, for members that keep their numbers while they move to other nodes. */
struct tw_grow_leaf {
	int64_t value, max_ns;
	uint64_t count;
};

struct tw_grower;

/* Collects the neighbours of an opened node's members; *ret may reuse the node's array. The
 * value of members without a neighbour is added to *ret_self. False: out of memory, or past the
 * deadline. */
typedef bool (*tw_expand_fn)(struct tw_grower *g, const struct tw_grow_member *members, uint32_t n,
        struct tw_grow_member **ret, uint32_t *ret_n, int64_t *ret_self);

typedef struct tw_grow_sums (*tw_sums_fn)(
        const struct tw_grower *g, const struct tw_grow_member *m);

struct tw_grower {
	const struct tw_forest *forest; /* NULL: expand and sums use other trees */
	uint64_t tree_nodes;            /* in all trees */
	struct tw_arena *arena;
	const struct tw_deadline *deadline;
	bool late; /* the deadline passed while a node was opened; that node stays closed */
	tw_expand_fn expand;
	tw_sums_fn sums; /* NULL: the members' numbers are leaves, and their order is the value */
	const struct tw_grow_leaf *leaves;
	const void *arg;  /* of expand and sums */
	bool knows_total; /* members have the number of all hidden nodes */
	bool sorts_rests; /* a rest is among its siblings by its value, not after them */
	struct tw_grown *nodes;
	uint32_t n, cap, shown;
	struct tw_heap_entry *heap; /* unopened nodes, heaviest on top */
	uint32_t n_heap;
	struct tw_grow_member *scratch; /* for sorting */
	uint64_t *keys;
	uint32_t cap_scratch;
	struct tw_group *groups; /* children being built */
	uint32_t cap_groups;
	bool by_threads;       /* free cores may help */
	pthread_mutex_t *lock; /* of the arena while they do; otherwise NULL */
	char *piece;           /* of the arena, for this thread's next allocations */
	size_t piece_left;
};

/* Memory of the arena. */
void *tw_grow_alloc(struct tw_grower *g, size_t n, size_t size);

/* True once the deadline has passed; checked only if n, the number of members, is not small. */
bool tw_grow_is_late(struct tw_grower *g, uint32_t n);

/* Builds the result of q from the members of the graph's first node. */
enum tw_status tw_grow(struct tw_grower *g, const struct tw_flame_query *q,
        struct tw_grow_member *members, uint32_t n, struct tw_flame *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
