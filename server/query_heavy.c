/*
 * query_heavy.c - the path of calls on which most of a stretch of a thread's time went.
 */
#include "query_detect.h"

/* Nodes are in pre-order; a child begins behind its parent, the next one behind its subtree. */
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

enum tw_status tw_query_heavy(struct tw_trace_file *f, const struct tw_thread_info *t,
        int64_t from_ns, int64_t to_ns, const uint8_t *is_app, struct tw_arena *a,
        struct tw_heavy *ret, struct tw_err *err)
{
	const struct tw_selection sel = {.all_threads = true,
	        .ranged = true,
	        .from_ns = from_ns,
	        .to_ns = to_ns > from_ns ? to_ns : from_ns + 1};
	struct tw_tree tree;
	enum tw_status st = tw_query_thread_tree(f, t, &sel, a, &tree, err);

	*ret = (struct tw_heavy){.method = TW_NO_METHOD, .leaf = TW_NO_METHOD};
	if (st == TW_OK && tree.n > 1)
		follow(&tree, (to_ns - from_ns + 1) / 2, is_app, ret);
	return st;
}
