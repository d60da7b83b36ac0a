/*
 * query_compare.h - comparison of two sides, A and B, of one or more traces each.
 *
 * The callers choose the traces of a side.  The methods of all call trees share one numbering, so
 * that a number is the same method on both sides.  Values are sums over a side's traces; divide by
 * the number of traces to display them. Thread: one query.
 */
#ifndef TW_QUERY_COMPARE_H
#define TW_QUERY_COMPARE_H

#include "server/catalogue/traces/catalogue_list.h"
#include "server/query/query.h"

enum { TW_SIDE_A, TW_SIDE_B, TW_SIDES };

struct tw_compare_side {
	const struct tw_forest *traces; /* the call trees of each */
	uint32_t n_traces;              /* at least 1 */
	uint64_t of_traces; /* number of traces in the sums if trees are already merged; 0: n_traces
	                     */
};

struct tw_compared { /* per side, over all its traces; all 0: absent */
	int64_t total_ns, self_ns;
	uint64_t count;
};

struct tw_compare_node {
	uint32_t parent; /* index; node 0: 0 */
	uint32_t method; /* TW_NO_METHOD: node 0 of a whole view, or the rest */
	uint32_t depth;
	uint32_t others; /* number of nodes merged into this one; 0: a real node */
	struct tw_compared of[TW_SIDES];
};

struct tw_compare_query {
	const uint32_t *root; /* methods from the top to the node to start at */
	size_t n_root;
	uint32_t max_nodes; /* number of real nodes to keep */
};

struct tw_compare {
	/* Pre-order; siblings by the falling greater time per trace of both sides, the rest last.
	 * total_ns = self_ns + total_ns of the children, on each side. */
	struct tw_compare_node *nodes;
	uint32_t n;
	uint64_t total_nodes; /* below the root before truncation */
};

/* Returns TW_DEADLINE with a message. */
enum tw_status tw_compare_late(struct tw_err *err);

/* The merged call trees of both sides as one.  TW_NOT_FOUND if the root path does not exist on
 * either side; TW_DEADLINE after the deadline. */
enum tw_status tw_query_compare(const struct tw_compare_side sides[TW_SIDES],
        const struct tw_compare_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_compare *ret, struct tw_err *err) TW_MUST_USE;

struct tw_compare_method {
	uint32_t method;
	uint32_t traces[TW_SIDES]; /* number of traces per side that called it */
	struct tw_compared of[TW_SIDES];
	double key; /* the sort key */
};

struct tw_compare_methods {
	struct tw_compare_method *list; /* by number */
	uint32_t n;
};

/* Totals of the methods that either side called; recursion counts once in total_ns.  TW_DEADLINE
 * after the deadline. */
enum tw_status tw_query_compare_methods(const struct tw_compare_side sides[TW_SIDES],
        uint32_t n_methods, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_compare_methods *ret, struct tw_err *err) TW_MUST_USE;

enum tw_compare_sort {
	TW_BY_SELF_CHANGE, /* per trace, in either direction */
	TW_BY_TOTAL_CHANGE,
	TW_BY_COUNT_CHANGE,
	TW_BY_SELF_A,
	TW_BY_SELF_B,
	TW_BY_TOTAL_A,
	TW_BY_TOTAL_B,
	TW_BY_COUNT_A,
	TW_BY_COUNT_B,
	TW_BY_METHOD
};

/* Falling, or rising; equal keys by number. */
void tw_compare_rank(struct tw_compare_method *m, uint32_t n,
        const struct tw_compare_side sides[TW_SIDES], enum tw_compare_sort sort, bool rising);

/* Difference of the self time per trace, B minus A, in ns. */
double tw_compare_self_change(
        const struct tw_compare_method *m, const struct tw_compare_side sides[TW_SIDES]);

#endif
