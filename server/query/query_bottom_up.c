/*
 * query_bottom_up.c - bottom-up graph: methods by self time, and their callers.
 *
 * Level one contains the methods by self time (or calls). Below a method are its callers, each
 * with the part of that time spent in calls from it. The complete inverted tree can be far larger
 * than the call trees, so only the displayed part is computed.
 */
#include "server/query/query_grow.h"
#include "server/query/query_weight.h"

/* The caller of a node, in half a word: steps towards the callers visit nodes at random, and call
 * trees are far larger than a cache.  Nodes are numbered through all trees. */
struct caller {
	uint32_t at; /* NO_CALLER: the thread */
	uint32_t method;
};

#define NO_CALLER UINT32_MAX

/* Moves members to their callers, in place; time of members without a caller becomes self time. */
static bool callers(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self)
{
	struct tw_member *up = (struct tw_member *)(uintptr_t)members; /* of this grower's arena */
	const struct caller *of = g->arg;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct caller caller = of[up[i].at];

		if (caller.at == NO_CALLER) {
			*ret_self += up[i].value;
			continue;
		}
		up[kept] = up[i];
		up[kept].at = caller.at;
		up[kept++].method = caller.method;
	}
	*ret = up;
	*ret_n = kept;
	return true;
}

/* The first step leads from the root to the methods themselves. A thread's own time, which
 * reshaping may leave, has no method. */
static bool methods_then_callers(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self)
{
	struct tw_member *kept =
	        (struct tw_member *)(uintptr_t)members; /* of this grower's arena */
	uint32_t k = 0;

	g->expand = callers;
	for (uint32_t i = 0; i < n; i++)
		if (members[i].method == TW_NO_METHOD)
			*ret_self += members[i].value;
		else
			kept[k++] = members[i];
	*ret = kept;
	*ret_n = k;
	return true;
}

/* Adds the nodes of a tree; returns the number of members. */
static uint32_t add_tree(const struct tw_forest *f, const struct tw_weights *w, uint32_t tree,
        uint32_t first, struct caller *of, struct tw_member *to)
{
	const struct tw_tree_node *nodes = f->trees[tree].nodes;
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->trees[tree].n; i++) {
		uint32_t parent = nodes[i].parent;

		of[first + i] = parent ? (struct caller){first + parent, nodes[parent].method}
		                       : (struct caller){NO_CALLER, TW_NO_METHOD};
		/* methods without self time were called too */
		if (i == 0 && tw_weight_own(w, f, tree, 0) == 0)
			continue;
		to[n++] = (struct tw_member){.at = first + i,
		        .method = i ? nodes[i].method : TW_NO_METHOD,
		        .value = tw_weight_own(w, f, tree, i),
		        .count = nodes[i].count,
		        .max_ns = nodes[i].max_ns};
	}
	return n;
}

enum tw_status tw_query_bottom_up(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct tw_grower g = {
	        .forest = f, .arena = a, .deadline = deadline, .expand = methods_then_callers};
	struct tw_weights w;
	struct tw_member *all;
	struct caller *of;
	uint64_t most = 1;
	uint32_t first = 0;
	uint32_t n = 0;
	enum tw_status st = tw_weigh(f, q, a, &w, err);

	if (st != TW_OK)
		return st;
	for (uint32_t k = 0; k < f->n; k++)
		most += f->trees[k].n;
	all = most < UINT32_MAX ? tw_arena_alloc(a, most, sizeof *all) : NULL;
	of = all ? tw_arena_alloc(a, most, sizeof *of) : NULL;
	if (!of)
		return tw_oom(err);
	for (uint32_t k = 0; k < f->n; k++) {
		n += add_tree(f, &w, k, first, of, all + n);
		first += f->trees[k].n;
	}
	g.arg = of;
	return tw_grow(&g, q, all, n, ret, err);
}
