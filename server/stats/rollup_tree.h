/*
 * rollup_tree.h - rollups of call trees of many traces.
 *
 * A trace contributes its call trees, merged by kind of thread, reduced to the calls with enough
 * time to limit the number of nodes.  Trees are summed: nodes with the same path of methods are
 * one.  The times of a node are stored by order of magnitude (level: bits of the time in ns), so
 * that a tree that grows too large can drop small times at any point: the same traces give the same
 * bytes in any order and grouping.  The time of dropped calls remains in the total of their caller,
 * without further detail.  Methods are numbered as in rollup.h.  No files, no SQL.
 * Thread: one at a time.
 */
#ifndef TW_ROLLUP_TREE_H
#define TW_ROLLUP_TREE_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

/* Limits of nodes per trace and per cell; deeper calls count as their caller's time. */
enum { TW_ROLLUP_TRACE_NODES = 1024, TW_ROLLUP_CELL_NODES = 4096, TW_ROLLUP_DEPTH_MAX = 1024 };
enum { TW_ROLLUP_THREAD_BYTES = 64 };
#define TW_ROLLUP_NO_NODE UINT32_MAX

struct tw_rollup_tree_sum { /* of the traces in which the node has a time of that level */
	uint32_t next;      /* index + 1 of the sum of the next higher level; 0: none */
	uint32_t level;     /* 0 to 63 */
	uint64_t traces, calls;
	int64_t total_ns, self_ns;
	int64_t cpu_ns, cpu_self_ns; /* of calls with known CPU time */
	double square; /* sum of squares of the traces' times; only in a coarse tree */
};

struct tw_rollup_tree_node {
	uint64_t method; /* of a thread: the id of its kind */
	uint32_t parent; /* TW_ROLLUP_NO_NODE: a thread.  Parents come before children */
	uint32_t first;  /* index + 1 of its sum of the lowest level */
	uint32_t top;    /* its highest level */
};

struct tw_rollup_thread { /* threads of one kind */
	uint64_t id;
	struct tw_str name;
};

struct tw_rollup_tree {
	struct tw_arena *arena;
	bool coarse; /* levels are merged: faster, but cannot be written */
	uint64_t traces;
	unsigned drop;          /* sums of lower levels are not kept */
	unsigned omitted_level; /* times below 2^omitted_level ns per trace may be missing in their
	                           nodes */
	struct tw_rollup_tree_node *nodes;
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 by hash of parent and method; 0 free */
	struct tw_rollup_tree_sum *sums;
	uint32_t n_sums, cap_sums;
	struct tw_rollup_thread *threads;
	uint32_t n_threads, cap_threads;
};

/* "main", or the name with each run of digits as #: "pool-#-thread-#". */
void tw_rollup_thread_name(struct tw_str name, bool is_main, char out[TW_ROLLUP_THREAD_BYTES]);

/* The node of the threads with that name; TW_ROLLUP_NO_NODE: the arena is full. */
uint32_t tw_rollup_tree_thread(struct tw_rollup_tree *t, struct tw_str name);
/* The node of a method below another, created if missing. */
uint32_t tw_rollup_tree_child(struct tw_rollup_tree *t, uint32_t parent, uint64_t method);
/* Adds *s to the node's sum of s->level.  False: the arena is full. */
bool tw_rollup_tree_add(
        struct tw_rollup_tree *t, uint32_t node, const struct tw_rollup_tree_sum *s);
/* The level of a time. */
unsigned tw_rollup_tree_level(int64_t ns);

/* Drops the lowest levels until at most max nodes are left to write. */
void tw_rollup_tree_bound(struct tw_rollup_tree *t, uint32_t max);
static inline bool tw_rollup_tree_keeps(
        const struct tw_rollup_tree *t, const struct tw_rollup_tree_node *n)
{
	return n->first && n->top >= t->drop;
}

/* Appends the tree, siblings by id.  `levels` receives the data that coarse readers skip, none for
 * the tree of one trace.  TW_NOMEM. */
enum tw_status tw_rollup_tree_write(const struct tw_rollup_tree *t, struct tw_buf *out,
        struct tw_buf *levels, struct tw_err *err) TW_MUST_USE;

struct tw_rollup_written {
	struct tw_str data, levels;
};
/* Adds a written tree, except levels below t->drop.  TW_CORRUPT if the bytes are damaged, TW_NOMEM
 * if the arena is full. */
enum tw_status tw_rollup_tree_merge(struct tw_rollup_tree *t, const struct tw_rollup_written *w,
        struct tw_err *err) TW_MUST_USE;
/* The same into an empty tree, to continue a written one: dropped levels stay dropped. */
enum tw_status tw_rollup_tree_resume(struct tw_rollup_tree *t, const struct tw_rollup_written *w,
        struct tw_err *err) TW_MUST_USE;

/* The sum of all levels of a node; `level` is the highest. */
struct tw_rollup_tree_sum tw_rollup_tree_all(const struct tw_rollup_tree *t, uint32_t node);

/* TW_TOO_LARGE: the trees of a query exceed its memory. */
enum tw_status tw_tree_fail_too_large(struct tw_err *err);

#endif
