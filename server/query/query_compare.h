/*
 * query_compare.h - two sides, A and B, of one or more traces each, beside each other.
 *
 * A side is what some selection chose; how it was chosen does not matter here.
 * The methods of all its call trees are numbered in common, so that one number
 * is one method on both sides.  Numbers are sums over a side's traces: whoever
 * shows them divides by how many there are.
 * Thread: one query.
 */
#ifndef TW_QUERY_COMPARE_H
#define TW_QUERY_COMPARE_H

#include "server/query/query.h"

enum { TW_SIDE_A, TW_SIDE_B, TW_SIDES };

struct tw_compare_side {
	const struct tw_forest *traces; /* the call trees of each */
	uint32_t n_traces;              /* at least 1 */
	uint64_t of_traces; /* that the sums are of, when trees are merged already; 0: n_traces */
};

struct tw_compared { /* of one side, over all its traces; all 0: not there */
	int64_t total_ns, self_ns;
	uint64_t count;
};

struct tw_compare_node {
	uint32_t parent; /* index; node 0: 0 */
	uint32_t method; /* TW_NO_METHOD: node 0 of a whole view, or the rest */
	uint32_t depth;
	uint32_t others; /* nodes that this one stands for; 0: a real node */
	struct tw_compared of[TW_SIDES];
};

struct tw_compare_query {
	const uint32_t *root; /* methods from the top to the node to start at */
	size_t n_root;
	uint32_t max_nodes; /* real nodes kept */
};

struct tw_compare {
	/* Pre-order, siblings by the falling greater time a trace of both sides, the rest last.
	 * total_ns = self_ns + those of the children, on each side. */
	struct tw_compare_node *nodes;
	uint32_t n;
	uint64_t total_nodes; /* below the root before cutting */
};

/* TW_DEADLINE, in words. */
enum tw_status tw_compare_late(struct tw_err *err);

/* The merged call trees of both sides as one.  TW_NOT_FOUND when the root path leads nowhere on
 * both; TW_DEADLINE when time is up. */
enum tw_status tw_query_compare(const struct tw_compare_side sides[TW_SIDES],
        const struct tw_compare_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_compare *ret, struct tw_err *err) TW_MUST_USE;

struct tw_compare_method {
	uint32_t method;
	uint32_t traces[TW_SIDES]; /* in how many of each side it was called */
	struct tw_compared of[TW_SIDES];
	double key; /* what it was ranked by */
};

struct tw_compare_methods {
	struct tw_compare_method *list; /* by number */
	uint32_t n;
};

/* Totals of the methods that either side called; recursion counts once in total_ns.  TW_DEADLINE
 * when time is up. */
enum tw_status tw_query_compare_methods(const struct tw_compare_side sides[TW_SIDES],
        uint32_t n_methods, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_compare_methods *ret, struct tw_err *err) TW_MUST_USE;

enum tw_compare_sort {
	TW_BY_SELF_CHANGE, /* of what a trace takes, up or down */
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

/* Falling, or rising; equal ones by number. */
void tw_compare_rank(struct tw_compare_method *m, uint32_t n,
        const struct tw_compare_side sides[TW_SIDES], enum tw_compare_sort sort, bool rising);

/* Self time that a trace of B takes more than one of A, in ns. */
double tw_compare_self_change(
        const struct tw_compare_method *m, const struct tw_compare_side sides[TW_SIDES]);

#endif
