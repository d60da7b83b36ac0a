/*
 * query_flame.c - a top-down flame graph from the call trees of the selected threads.
 */
#include <string.h>

#include "server/query/query_grow.h"
#include "server/query/query_weight.h"

enum { CHECK_EVERY = 4096 };

/* Input of tw_grow: call trees, or the summary tree. */
struct flame_input {
	struct tw_weights w;
	const struct tw_summary_tree *summary; /* the summary tree; NULL: threads' trees */
	/* by node of the summary tree: number of call-tree nodes merged into it and its
	 * descendants */
	uint64_t *merged_nodes;
};

static struct tw_member member_of(
        const struct tw_forest *f, const struct flame_input *w, uint32_t tree, uint32_t at)
{
	const struct tw_tree_node *n = &f->trees[tree].nodes[at];
	bool rest = w->summary && n->method == w->summary->rest;

	return (struct tw_member){
	        .tree = tree,
	        .at = at,
	        .method = rest ? TW_NO_METHOD : n->method,
	        .value = tw_weight_all(&w->w, f, tree, at),
	        .count = n->count,
	        .max_ns = n->max_ns,
	};
}

static struct tw_member_more more_of(const struct tw_grower *g, const struct tw_member *m)
{
	const struct flame_input *w = g->arg;
	const struct tw_tree_node *n = &g->forest->trees[m->tree].nodes[m->at];

	return (struct tw_member_more){
	        .hidden = w->summary ? w->merged_nodes[m->at] : n->subtree,
	        .self = tw_weight_own(&w->w, g->forest, m->tree, m->at),
	        .order = n->total_ns,
	};
}

/* Counts first: a node may have a million children, and growing the list by doubling would be the
 * largest allocation of the request. */
static uint32_t count_callees(
        const struct tw_forest *f, const struct tw_member *members, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_tree_node *nodes = f->trees[members[i].tree].nodes;
		uint32_t end = members[i].at + nodes[members[i].at].subtree;

		for (uint32_t child = members[i].at + 1; child < end; child += nodes[child].subtree)
			k++;
	}
	return k;
}

/* NOLINTBEGIN(readability-non-const-parameter) the type is tw_expand_fn */
static bool callees(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self)
/* NOLINTEND(readability-non-const-parameter) */
{
	uint32_t most = count_callees(g->forest, members, n);
	struct tw_member *found = tw_arena_alloc(g->arena, most ? most : 1, sizeof *found);
	uint32_t k = 0;

	(void)ret_self;
	if (!found)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_tree *t = &g->forest->trees[members[i].tree];
		uint32_t end = members[i].at + t->nodes[members[i].at].subtree;

		for (uint32_t child = members[i].at + 1; child < end;
		        child += t->nodes[child].subtree) {
			if (k % CHECK_EVERY == 0 && tw_grow_is_late(g, k))
				return false;
			found[k++] = member_of(g->forest, g->arg, members[i].tree, child);
		}
	}
	*ret = found;
	*ret_n = k;
	return true;
}

static enum tw_status grow_down(const struct tw_forest *f, struct flame_input *w,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	struct tw_grower g = {.forest = f,
	        .arena = a,
	        .deadline = deadline,
	        .expand = callees,
	        .more = more_of,
	        .arg = w,
	        .knows_total = true};
	struct tw_member *roots = tw_arena_alloc(a, f->n ? f->n : 1, sizeof *roots);
	enum tw_status st = tw_weigh(f, q, a, &w->w, err);

	if (st != TW_OK)
		return st;
	if (!roots)
		return tw_oom(err);
	for (uint32_t i = 0; i < f->n; i++)
		roots[i] = member_of(f, w, i, 0);
	return tw_grow(&g, q, roots, f->n, ret, err);
}

enum tw_status tw_query_flame(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct flame_input w = {.summary = NULL};

	return grow_down(f, &w, q, deadline, a, ret, err);
}

enum tw_status tw_query_flame_of_summary(const struct tw_summary_tree *c,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	const struct tw_tree *t = &c->tree;
	struct flame_input w = {
	        .summary = c, .merged_nodes = tw_arena_alloc(a, t->n, sizeof *w.merged_nodes)};
	struct tw_forest one = {t, 1};

	if (!w.merged_nodes)
		return tw_oom(err);
	for (uint32_t i = 0; i < t->n; i++)
		w.merged_nodes[i] = t->nodes[i].cpu_ns > 0 ? (uint64_t)t->nodes[i].cpu_ns : 0;
	for (uint32_t i = t->n; i-- > 1;)
		w.merged_nodes[t->nodes[i].parent] += w.merged_nodes[i];
	return grow_down(&one, &w, q, deadline, a, ret, err);
}
