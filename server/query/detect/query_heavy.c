/*
 * query_heavy.c - the path of calls with most of the time in a range of a thread.
 */
#include "decoder/base/sum.h"
#include "server/query/detect/query_detect.h"
#include "server/query/query_slices.h"

/* Nodes are in pre-order; a child begins after its parent, its sibling after its subtree. */
static uint32_t heaviest_child(const struct tw_tree *t, uint32_t at)
{
	const uint32_t end = at + t->nodes[at].subtree;
	uint32_t best = 0;

	for (uint32_t i = at + 1; i < end; i += t->nodes[i].subtree)
		if (!best || t->nodes[i].total_ns > t->nodes[best].total_ns)
			best = i;
	return best;
}

static void follow(
        const struct tw_tree *t, int64_t least_ns, const uint8_t *is_app, struct tw_heavy *ret)
{
	bool app = false;

	for (uint32_t at = heaviest_child(t, 0); at && t->nodes[at].total_ns >= least_ns;
	        at = heaviest_child(t, at)) {
		const struct tw_tree_node *node = &t->nodes[at];

		ret->leaf = node->method;
		ret->leaf_ns = node->total_ns;
		ret->leaf_self_ns = node->self_ns;
		if (app && !is_app[node->method])
			continue;
		app = app || is_app[node->method];
		ret->method = node->method;
		ret->ns = node->total_ns;
	}
}

/* A partially read range gives no result: another call may have half of the complete range. */
enum tw_status tw_query_heavy(struct tw_trace_file *f, const struct tw_heavy_query *query,
        struct tw_arena *a, struct tw_heavy *ret, bool *ret_partial, struct tw_err *err)
{
	const int64_t range_ns = query->to_ns - query->from_ns;
	const struct tw_selection sel = {.all_threads = true,
	        .ranged = true,
	        .from_ns = query->from_ns,
	        .to_ns = range_ns > 0 ? query->to_ns : tw_sum_ns(query->from_ns, 1)};
	const struct tw_range_scan scan = {.file = f,
	        .only = query->thread,
	        .sel = &sel,
	        .deadline = query->deadline,
	        .arena = a};
	struct tw_forest one;
	enum tw_status st = tw_range_trees(&scan, &one, ret_partial, err);

	*ret = (struct tw_heavy){.method = TW_NO_METHOD, .leaf = TW_NO_METHOD};
	if (st == TW_OK && !*ret_partial && one.n && one.trees[0].n > 1)
		follow(&one.trees[0], range_ns / 2 + range_ns % 2, query->is_app, ret);
	return st;
}
