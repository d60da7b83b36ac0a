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
enum { AHEAD = 8 };

/* Moves members to their callers, in place; time of members without a caller becomes self time. */
static bool callers(struct tw_grower *g, const struct tw_member *members, uint32_t n,
        struct tw_member **ret, uint32_t *ret_n, int64_t *ret_self)
{
	struct tw_member *up = (struct tw_member *)(uintptr_t)members; /* of this grower's arena */
	const struct caller *of = g->arg;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct caller caller = of[up[i].at];

		if (i + AHEAD < n)
			__builtin_prefetch(&of[up[i + AHEAD].at]);
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
	for (uint32_t i = 0; i < n; i++) {
		if (members[i].method == TW_NO_METHOD)
			*ret_self += members[i].value;
		else if (k++ < i)
			kept[k - 1] = members[i];
	}
	*ret = kept;
	*ret_n = k;
	return true;
}

/* All nodes of all trees as members, sorted by method if it is below `methods`. */
struct listing {
	const struct tw_forest *forest;
	const struct tw_weights *weights;
	struct tw_member *members;
	struct caller *callers;
	uint32_t *next; /* by method, the last one for all others: index of a member */
	uint32_t methods;
};

static bool is_member(const struct listing *l, uint32_t tree, uint32_t node)
{
	/* methods without self time were called too */
	return node || tw_weight_own(l->weights, l->forest, tree, 0) != 0;
}

static uint32_t slot_of(const struct listing *l, uint32_t method)
{
	return method < l->methods ? method : l->methods;
}

/* Returns the number of members. */
static uint32_t count_members(struct listing *l)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < l->forest->n; k++)
		for (uint32_t i = 0; i < l->forest->trees[k].n; i++)
			if (is_member(l, k, i))
				l->next[slot_of(l, l->forest->trees[k].nodes[i].method)]++;
	for (uint32_t i = 0; i <= l->methods; i++) {
		uint32_t count = l->next[i];

		l->next[i] = n;
		n += count;
	}
	return n;
}

static void add_tree(struct listing *l, uint32_t tree, uint32_t first)
{
	const struct tw_tree_node *nodes = l->forest->trees[tree].nodes;

	for (uint32_t i = 0; i < l->forest->trees[tree].n; i++) {
		uint32_t parent = nodes[i].parent;

		l->callers[first + i] =
		        parent ? (struct caller){first + parent, nodes[parent].method}
		               : (struct caller){NO_CALLER, TW_NO_METHOD};
		if (is_member(l, tree, i))
			l->members[l->next[slot_of(l, nodes[i].method)]++] =
			        (struct tw_member){.at = first + i,
			                .method = nodes[i].method,
			                .value = tw_weight_own(l->weights, l->forest, tree, i),
			                .count = nodes[i].count,
			                .max_ns = nodes[i].max_ns};
	}
}

/* One past the highest method of all nodes. */
static uint32_t count_methods(const struct tw_forest *f)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		for (uint32_t i = 0; i < f->trees[k].n; i++)
			if (f->trees[k].nodes[i].method >= n &&
			        f->trees[k].nodes[i].method != TW_NO_METHOD)
				n = f->trees[k].nodes[i].method + 1;
	return n;
}

enum tw_status tw_query_bottom_up(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct tw_grower g = {
	        .forest = f, .arena = a, .deadline = deadline, .expand = methods_then_callers};
	struct tw_weights w;
	struct listing l = {.forest = f, .weights = &w, .methods = count_methods(f)};
	uint64_t most = 1;
	uint32_t first = 0;
	uint32_t n;
	enum tw_status st = tw_weigh(f, q, a, &w, err);

	if (st != TW_OK)
		return st;
	for (uint32_t k = 0; k < f->n; k++)
		most += f->trees[k].n;
	if (l.methods / 8 > most) /* a damaged file; the members are sorted later */
		l.methods = 0;
	l.members = most < UINT32_MAX ? tw_arena_alloc(a, most, sizeof *l.members) : NULL;
	l.callers = l.members ? tw_arena_alloc(a, most, sizeof *l.callers) : NULL;
	l.next = l.callers ? tw_arena_zalloc(a, (size_t)l.methods + 1, sizeof *l.next) : NULL;
	if (!l.next)
		return tw_oom(err);
	n = count_members(&l);
	for (uint32_t k = 0; k < f->n; k++) {
		add_tree(&l, k, first);
		first += f->trees[k].n;
	}
	g.arg = l.callers;
	return tw_grow(&g, q, l.members, n, ret, err);
}
