/*
 * rollup_tree.h - call trees of many traces as one: what a trace brings, and sums of it.
 *
 * A trace brings its call trees, those of threads of one kind as one, down to the
 * calls that took long enough that not too many nodes are left.  Trees add up: a
 * node is the same when the path of methods to it is.  What a trace spent in a
 * node is kept by its order of size (its level: bits of the time in ns), so that
 * a tree that grows too large can drop what is small, whenever that turns out:
 * the same traces give the same bytes in whatever order and grouping they come.
 * Time of calls that were dropped is still in the total of their caller; nothing
 * else is told of it.  Methods are numbered as in rollup.h.
 * No files, no SQL.  Thread: one at a time.
 */
#ifndef TW_ROLLUP_TREE_H
#define TW_ROLLUP_TREE_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

/* A trace brings at most so many nodes, a cell keeps at most so many; calls deeper than that are
 * their callers'. */
enum { TW_ROLLUP_TRACE_NODES = 1024, TW_ROLLUP_CELL_NODES = 4096, TW_ROLLUP_DEPTH_MAX = 1024 };
enum { TW_ROLLUP_THREAD_BYTES = 64 };
#define TW_ROLLUP_NO_NODE UINT32_MAX

struct tw_rollup_tree_sum { /* of the traces in which the node took a time of that level */
	uint32_t next;      /* index + 1 of that of the next higher level; 0: none */
	uint32_t level;     /* 0 to 63 */
	uint64_t traces, calls;
	int64_t total_ns, self_ns;
	int64_t cpu_ns, cpu_self_ns; /* of those whose CPU time is known */
	double square; /* of the times of the traces, added up; known in a coarse tree */
};

struct tw_rollup_tree_node {
	uint64_t method; /* of a thread: tw_rollup_thread_id of its kind */
	uint32_t parent; /* TW_ROLLUP_NO_NODE: a thread.  Parents come before children */
	uint32_t first;  /* index + 1 of its sum of the lowest level */
	uint32_t top;    /* the highest level it has */
};

struct tw_rollup_thread { /* threads of one kind */
	uint64_t id;
	struct tw_str name;
};

struct tw_rollup_tree {
	struct tw_arena *arena;
	bool coarse; /* what is merged is not told apart by level: faster, and not to be written */
	uint64_t traces;
	unsigned drop; /* sums of lower levels are not kept */
	unsigned told; /* what took less than 2^told ns in a trace may be missing in its node */
	struct tw_rollup_tree_node *nodes;
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 by hash of parent and method; 0 free */
	uint32_t n_slots;
	struct tw_rollup_tree_sum *sums;
	uint32_t n_sums, cap_sums;
	struct tw_rollup_thread *threads;
	uint32_t n_threads, cap_threads;
};

/* "main", or the name with each run of digits as #: "pool-#-thread-#". */
void tw_rollup_thread_name(struct tw_str name, bool is_main, char out[TW_ROLLUP_THREAD_BYTES]);
uint64_t tw_rollup_thread_id(const char *name);

/* The node of threads of that name; TW_ROLLUP_NO_NODE: the arena is full. */
uint32_t tw_rollup_tree_thread(struct tw_rollup_tree *t, struct tw_str name);
/* The node of a method below another; the same at each call. */
uint32_t tw_rollup_tree_child(struct tw_rollup_tree *t, uint32_t parent, uint64_t method);
/* Adds to what the node has of s->level.  False: the arena is full. */
bool tw_rollup_tree_add(
        struct tw_rollup_tree *t, uint32_t node, const struct tw_rollup_tree_sum *s);
/* The level of a time. */
unsigned tw_rollup_tree_level(int64_t ns);

/* Drops what is small, until no more than max nodes are left to be written. */
void tw_rollup_tree_bound(struct tw_rollup_tree *t, uint32_t max);
static inline bool tw_rollup_tree_keeps(
        const struct tw_rollup_tree *t, const struct tw_rollup_tree_node *n)
{
	return n->first && n->top >= t->drop;
}

/* Appends the tree, siblings by their numbers; to levels what coarse trees need not read, nothing
 * for the tree of one trace.  TW_NOMEM. */
enum tw_status tw_rollup_tree_write(const struct tw_rollup_tree *t, struct tw_buf *out,
        struct tw_buf *levels, struct tw_err *err) TW_MUST_USE;

struct tw_rollup_written {
	struct tw_str data, levels;
};
/* Adds what was written, but for what is below t->drop.  TW_CORRUPT when the bytes are damaged,
 * TW_NOMEM when the arena is full. */
enum tw_status tw_rollup_tree_merge(struct tw_rollup_tree *t, const struct tw_rollup_written *w,
        struct tw_err *err) TW_MUST_USE;
/* The same into an empty tree, to go on with what was written: what it dropped stays dropped. */
enum tw_status tw_rollup_tree_resume(struct tw_rollup_tree *t, const struct tw_rollup_written *w,
        struct tw_err *err) TW_MUST_USE;

/* All levels of a node as one; level is the highest. */
struct tw_rollup_tree_sum tw_rollup_tree_all(const struct tw_rollup_tree *t, uint32_t node);

#endif
