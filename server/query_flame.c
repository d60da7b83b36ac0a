/*
 * query_flame.c - a top-down flame graph out of the call trees of the selected threads.
 */
#include <string.h>

#include "query_grow.h"

struct weights {
	int64_t **calls; /* per tree and node: its own and all below it; NULL: wall time counts */
};

static struct tw_member member_of(
        const struct tw_forest *f, const struct weights *w, uint32_t tree, uint32_t at)
{
	const struct tw_tree_node *n = &f->trees[tree].nodes[at];

	return (struct tw_member){
	        .tree = tree,
	        .at = at,
	        .method = n->method,
	        .hidden = n->subtree,
	        .value = w->calls ? w->calls[tree][at] : n->total_ns,
	        .self = w->calls ? (int64_t)n->count : n->self_ns,
	        .order = n->total_ns,
	        .count = n->count,
	        .max_ns = n->max_ns,
	};
}

/* NOLINTBEGIN(readability-non-const-parameter) the type is tw_expand_fn */
static bool callees(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self)
/* NOLINTEND(readability-non-const-parameter) */
{
	uint32_t k = 0;

	(void)ret_self;
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_tree *t = &g->forest->trees[members[i].tree];
		uint32_t end = members[i].at + t->nodes[members[i].at].subtree;

		for (uint32_t child = members[i].at + 1; child < end;
		        child += t->nodes[child].subtree) {
			if (!tw_grow_room(g, k))
				return false;
			g->gathered[k++] = member_of(g->forest, g->arg, members[i].tree, child);
		}
	}
	*ret = tw_arena_alloc(g->arena, k ? k : 1, sizeof **ret);
	if (!*ret)
		return false;
	if (k)
		memcpy(*ret, g->gathered, k * sizeof **ret);
	*ret_n = k;
	return true;
}

/* Calls add up like time does. */
static bool weigh(const struct tw_forest *f, struct tw_arena *a, struct weights *w)
{
	w->calls = tw_arena_alloc(a, f->n ? f->n : 1, sizeof *w->calls);
	for (uint32_t k = 0; w->calls && k < f->n; k++) {
		const struct tw_tree *t = &f->trees[k];

		w->calls[k] = tw_arena_alloc(a, t->n, sizeof **w->calls);
		if (!w->calls[k])
			return false;
		for (uint32_t i = 0; i < t->n; i++)
			w->calls[k][i] = (int64_t)t->nodes[i].count;
		for (uint32_t i = t->n; i-- > 1;)
			w->calls[k][t->nodes[i].parent] += w->calls[k][i];
	}
	return w->calls != NULL;
}

enum tw_status tw_query_flame(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct weights w = {NULL};
	struct tw_grower g = {.forest = f,
	        .arena = a,
	        .deadline = deadline,
	        .expand = callees,
	        .arg = &w,
	        .knows_total = true};
	struct tw_member *roots = tw_arena_alloc(a, f->n ? f->n : 1, sizeof *roots);

	if (!roots || (q->metric == TW_METRIC_COUNT && !weigh(f, a, &w)))
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a flame graph");
	for (uint32_t i = 0; i < f->n; i++)
		roots[i] = member_of(f, &w, i, 0);
	return tw_grow(&g, q, roots, f->n, ret, err);
}
