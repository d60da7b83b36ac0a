/*
 * query_bottom_up.c - bottom-up graph: methods by self time, and their callers.
 *
 * Level one holds the methods by their self time (or calls); below a method are its callers, each
 * with the part of that time that came through them.  The complete inverted tree can be far larger
 * than the call trees, so only the grown part of it is computed.
 */
#include "server/query/query_grow.h"
#include "server/query/query_weight.h"

/* One step towards the callers, in place; members at the top of their stack become self. */
static bool callers(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self)
{
	struct tw_member *up = (struct tw_member *)(uintptr_t)members; /* of this grower's arena */
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_tree_node *nodes = g->forest->trees[up[i].tree].nodes;
		uint32_t caller = nodes[up[i].at].parent;

		if (caller == 0) {
			*ret_self += up[i].value;
			continue;
		}
		up[kept] = up[i];
		up[kept].at = caller;
		up[kept++].method = nodes[caller].method;
	}
	*ret = up;
	*ret_n = kept;
	return true;
}

/* The first step goes from the root to the methods themselves.  A thread's own time, which
 * reshaping may leave, has no method. */
static bool methods_then_callers(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self)
{
	struct tw_member *kept =
	        (struct tw_member *)(uintptr_t)members; /* of this grower's arena */
	uint32_t k = 0;

	g->expand = callers;
	for (uint32_t i = 0; i < n; i++)
		if (members[i].at == 0)
			*ret_self += members[i].value;
		else
			kept[k++] = members[i];
	*ret = kept;
	*ret_n = k;
	return true;
}

static struct tw_member member_of(
        const struct tw_forest *f, const struct tw_weights *w, uint32_t tree, uint32_t at)
{
	const struct tw_tree_node *n = &f->trees[tree].nodes[at];
	int64_t own = tw_weight_own(w, f, tree, at);

	return (struct tw_member){.tree = tree,
	        .at = at,
	        .method = n->method,
	        .value = own,
	        .order = own,
	        .count = n->count,
	        .max_ns = n->max_ns};
}

enum tw_status tw_query_bottom_up(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct tw_grower g = {
	        .forest = f, .arena = a, .deadline = deadline, .expand = methods_then_callers};
	struct tw_weights w;
	struct tw_member *all;
	uint64_t most = 1;
	uint32_t n = 0;
	enum tw_status st = tw_weigh(f, q, a, &w, err);

	if (st != TW_OK)
		return st;
	for (uint32_t k = 0; k < f->n; k++)
		most += f->trees[k].n;
	all = most < UINT32_MAX ? tw_arena_alloc(a, most, sizeof *all) : NULL;
	if (!all)
		return tw_oom(err);
	for (uint32_t k = 0; k < f->n; k++)
		/* methods without self time were called nevertheless */
		for (uint32_t i = 0; i < f->trees[k].n; i++)
			if (i || tw_weight_own(&w, f, k, 0))
				all[n++] = member_of(f, &w, k, i);
	return tw_grow(&g, q, all, n, ret, err);
}
