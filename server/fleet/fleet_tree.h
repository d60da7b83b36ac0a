/*
 * fleet_tree.h - merges call trees of cells, resolves their names, and builds one graph of two
 * sides.
 *
 * Trees of cells are summed, their methods get common numbers by name (of any build), and their
 * values are added to a graph: a tree of paths with values per side.  Independent of HTTP and SQL.
 * All memory is in the passed arena.  Thread: one query, one thread.
 */
#ifndef TW_FLEET_TREE_H
#define TW_FLEET_TREE_H

#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/fleet/fleet.h"
#include "server/query/query_compare.h"
#include "server/stats/rollup_tree.h"

/* Adds all trees of the cells to t, which has an arena. */
enum tw_status tw_fleet_trees(const struct tw_tree_cell *cells, size_t n, struct tw_rollup_tree *t,
        struct tw_err *err) TW_MUST_USE;

/* --- names --- */

struct tw_fleet_names {             /* of methods and threads; a number is an index into names */
	const struct tw_str *names; /* in their order, threads first */
	const char *const *descriptors; /* of methods; "" unknown */
	uint32_t n, n_threads;
	const uint64_t *ids;     /* sorted */
	const uint32_t *numbers; /* of ids */
	size_t n_ids;
};
/* Ids of methods (not threads) in the trees, sorted. */
enum tw_status tw_fleet_tree_ids(const struct tw_rollup_tree *const *trees, size_t n,
        struct tw_arena *a, uint64_t **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* namings belong to those ids, in the same order. Methods with the same name and
 * descriptor are merged. Methods without a mapping are separate for each build. */
enum tw_status tw_fleet_tree_names(const struct tw_rollup_tree *const *trees, size_t n,
        const struct tw_rollup_naming *namings, size_t n_ids, struct tw_arena *a,
        struct tw_fleet_names *ret, struct tw_err *err) TW_MUST_USE;

struct tw_fleet_focus {    /* on one method; its nested calls count with the outer call */
	const uint8_t *on; /* one byte per number, set for the method; NULL: no focus */
	uint32_t number;   /* of the method in the tree that is read */
	bool callers;      /* its callees are merged into it; false: its calls become roots, and
	                      their callers and threads are dropped */
};
struct tw_fleet_reading { /* how trees are read */
	const struct tw_fleet_names *names;
	const uint8_t *foreign; /* one byte per number: its calls are merged into their callers;
	                           NULL none */
	uint32_t thread;        /* a number: only this thread; TW_NO_METHOD: all */
	bool others;            /* all threads but that one */
	struct tw_fleet_focus focus;
};
/* The tree with common numbers (+ 1) for methods. */
enum tw_status tw_fleet_tree_read(const struct tw_rollup_tree *t, const struct tw_fleet_reading *r,
        struct tw_arena *a, struct tw_rollup_tree *ret, struct tw_err *err) TW_MUST_USE;

/* The number of a method; TW_NO_METHOD: the id has no name. */
uint32_t tw_fleet_number(const struct tw_fleet_names *names, uint64_t id);

/* --- callers and callees of a method --- */

struct tw_fleet_near { /* a method, or threads, next to it */
	uint32_t number;
	int64_t total_ns;       /* callers: of calls from there; callees: of calls to there */
	uint64_t calls, traces; /* traces: a lower bound */
};
struct tw_fleet_callers {
	struct tw_fleet_near all; /* its outermost calls; `calls` includes nested ones */
	int64_t self_ns;
	struct tw_fleet_near *callers, *callees; /* longest time first */
	size_t n_callers, n_callees;
};
/* In a tree from tw_fleet_tree_read, of n numbers; wanted has one byte per number, set for the
 * method.  A call inside a call of the same method is reported once, with the outer one's
 * caller. */
enum tw_status tw_fleet_callers(const struct tw_rollup_tree *t, const uint8_t *wanted, uint32_t n,
        struct tw_arena *a, struct tw_fleet_callers *ret, struct tw_err *err) TW_MUST_USE;

/* --- graphs --- */

struct tw_fleet_value {
	double total, self, cpu, cpu_self; /* ns */
	double calls, traces;
	/* Total per trace, not weighted: sum, sum of squares, number of traces with the path.  Set
	 * to zero by the caller between trees of different strata. */
	double sum, squares, in;
};
struct tw_fleet_graph {
	struct tw_rollup_tree paths; /* methods: number + 1 */
	struct tw_fleet_value *of[TW_SIDES];
	uint32_t cap;
	struct tw_fleet_value all[TW_SIDES]; /* all threads together */
};
/* Adds a tree from tw_fleet_tree_read, times weight; of_traces: its number of traces. */
enum tw_status tw_fleet_graph_add(struct tw_fleet_graph *g, int side,
        const struct tw_rollup_tree *t, double weight, uint64_t of_traces,
        struct tw_err *err) TW_MUST_USE;
/* A side as a call tree: total_ns and self_ns of wall or CPU time, count: calls, max_ns: traces,
 * and cpu_ns 1 for each node, as in summary trees.  A node's time in dropped calls is a child of
 * it, of the method `rest`. */
enum tw_status tw_fleet_graph_tree(const struct tw_fleet_graph *g, int side, bool cpu,
        uint32_t rest, struct tw_arena *a, struct tw_tree *ret, struct tw_err *err) TW_MUST_USE;

#endif
