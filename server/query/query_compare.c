/*
 * query_compare.c - merges the call trees of two sides, and computes totals of their methods.
 *
 * Each side is merged to one tree.  Both are traversed together from the root, breadth first: a
 * pair represents the nodes with the same path on both sides.  The weight of a pair is the time per
 * trace on its heavier side, which is never more than its parent's weight, so the kept pairs always
 * form a tree.
 */
#include "server/query/query_compare.h"

#include <string.h>

#include "decoder/base/order.h"

#define NOWHERE UINT32_MAX

enum { CHECK_EVERY = 1024 };

struct pair {
	uint32_t at[TW_SIDES]; /* nodes of the sides' trees; NOWHERE: absent */
	uint32_t method;
	uint32_t parent, first_child, n_children;
	uint32_t nodes; /* including descendants */
	bool kept;
	double weight;
};

struct child {
	uint32_t method, at;
	int side;
};

struct both {
	struct tw_tree tree[TW_SIDES];
	double traces[TW_SIDES];
	struct pair *pairs;
	struct child *gathered;
	uint32_t n;
};

enum tw_status tw_compare_late(struct tw_err *err)
{
	return tw_fail(err, TW_DEADLINE,
	        "the time for this comparison ran out; compare one thread, or fewer traces");
}

/* Checks the deadline before each tree, because a side can have thousands. */
static enum tw_status add_trees(struct tw_tree_builder *b, const struct tw_compare_side *s,
        const struct tw_deadline *deadline, struct tw_err *err)
{
	for (uint32_t i = 0; i < s->n_traces; i++)
		for (uint32_t k = 0; k < s->traces[i].n; k++) {
			if (tw_deadline_passed(deadline))
				return tw_compare_late(err);
			if (tw_tree_builder_add_tree(b, &s->traces[i].trees[k]) != TW_OK)
				return tw_oom(err);
		}
	return TW_OK;
}

static enum tw_status merge_side(const struct tw_compare_side *s,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_tree *ret,
        struct tw_err *err)
{
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);
	enum tw_status st;

	if (!b)
		return tw_oom(err);
	st = add_trees(b, s, deadline, err);
	if (st == TW_OK && tw_tree_builder_finish(b, a, ret) != TW_OK)
		st = tw_oom(err);
	tw_tree_builder_free(b);
	return st;
}

/* --- pairs --- */

static struct tw_compared numbers(const struct both *b, const struct pair *p, int side)
{
	const struct tw_tree_node *n;

	if (p->at[side] == NOWHERE)
		return (struct tw_compared){.count = 0};
	n = &b->tree[side].nodes[p->at[side]];
	return (struct tw_compared){n->total_ns, n->self_ns, n->count};
}

static double weight(const struct both *b, const struct pair *p)
{
	double a_ns = (double)numbers(b, p, TW_SIDE_A).total_ns / b->traces[TW_SIDE_A];
	double b_ns = (double)numbers(b, p, TW_SIDE_B).total_ns / b->traces[TW_SIDE_B];

	return a_ns > b_ns ? a_ns : b_ns;
}

TW_ORDER_BY(by_method, struct child, TW_RISING(method), TW_RISING(side))

TW_ORDER_BY(by_weight, struct pair, TW_FALLING(weight), TW_RISING(method))

static uint32_t gather(struct both *b, const struct pair *p, int side, uint32_t n)
{
	const struct tw_tree *t = &b->tree[side];
	uint32_t end;

	if (p->at[side] == NOWHERE)
		return n;
	end = p->at[side] + t->nodes[p->at[side]].subtree;
	for (uint32_t i = p->at[side] + 1; i < end; i += t->nodes[i].subtree)
		b->gathered[n++] = (struct child){t->nodes[i].method, i, side};
	return n;
}

/* A tree has no siblings with the same method, so a method has at most one child per side. */
static void add_children(struct both *b, uint32_t parent)
{
	uint32_t n = gather(b, &b->pairs[parent], TW_SIDE_A, 0);
	uint32_t first = b->n;

	n = gather(b, &b->pairs[parent], TW_SIDE_B, n);
	TW_SORT(b->gathered, n, by_method);
	for (uint32_t i = 0; i < n; i++) {
		const struct child *c = &b->gathered[i];

		if (b->n == first || b->pairs[b->n - 1].method != c->method)
			b->pairs[b->n++] = (struct pair){.at = {NOWHERE, NOWHERE},
			        .method = c->method,
			        .parent = parent,
			        .nodes = 1};
		b->pairs[b->n - 1].at[c->side] = c->at;
	}
	for (uint32_t i = first; i < b->n; i++)
		b->pairs[i].weight = weight(b, &b->pairs[i]);
	TW_SORT(&b->pairs[first], b->n - first, by_weight);
	b->pairs[parent].first_child = first;
	b->pairs[parent].n_children = b->n - first;
}

/* The node of the path in a tree. */
static uint32_t find(const struct tw_tree *t, const uint32_t *root, size_t n)
{
	uint32_t at = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t end = at + t->nodes[at].subtree;
		uint32_t child = at + 1;

		while (child < end && t->nodes[child].method != root[i])
			child += t->nodes[child].subtree;
		if (child >= end)
			return NOWHERE;
		at = child;
	}
	return at;
}

static enum tw_status pair_up(struct both *b, const struct tw_compare_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_err *err)
{
	size_t most = (size_t)b->tree[TW_SIDE_A].n + b->tree[TW_SIDE_B].n;
	struct pair root = {
	        .method = q->n_root ? q->root[q->n_root - 1] : TW_NO_METHOD, .nodes = 1};

	for (int s = 0; s < TW_SIDES; s++)
		root.at[s] = find(&b->tree[s], q->root, q->n_root);
	if (root.at[TW_SIDE_A] == NOWHERE && root.at[TW_SIDE_B] == NOWHERE)
		return tw_fail(err, TW_NOT_FOUND, "neither side has a call with this path");
	b->pairs = tw_arena_alloc(a, most, sizeof *b->pairs);
	b->gathered = tw_arena_alloc(a, most, sizeof *b->gathered);
	if (!b->pairs || !b->gathered)
		return tw_oom(err);
	root.weight = weight(b, &root);
	b->pairs[b->n++] = root;
	for (uint32_t i = 0; i < b->n; i++) {
		if (i % CHECK_EVERY == 0 && tw_deadline_passed(deadline))
			return tw_compare_late(err);
		add_children(b, i);
	}
	for (uint32_t i = b->n; i-- > 1;)
		b->pairs[b->pairs[i].parent].nodes += b->pairs[i].nodes;
	return TW_OK;
}

/* --- truncation --- */

static int falling(const void *pa, const void *pb)
{
	double a = *(const double *)pa;
	double b = *(const double *)pb;

	return a < b ? 1 : a > b ? -1 : 0;
}

/* Keeps the heaviest max_nodes below the root, of equal ones the first: a parent precedes its
 * children. */
static bool keep_heaviest(struct both *b, uint32_t max_nodes, struct tw_arena *a, uint32_t *ret_n)
{
	double *weights = tw_arena_alloc(a, b->n, sizeof *weights);
	double least = -1;
	uint32_t space = max_nodes;
	uint32_t heavier = 0;

	if (!weights)
		return false;
	for (uint32_t i = 1; i < b->n; i++)
		weights[i - 1] = b->pairs[i].weight;
	if (b->n - 1 > max_nodes) {
		TW_SORT(weights, b->n - 1, falling);
		least = weights[max_nodes];
	}
	for (uint32_t i = 1; i < b->n; i++)
		heavier += b->pairs[i].weight > least;
	space -= heavier < space ? heavier : space; /* for pairs with exactly the weight `least` */
	*ret_n = heavier;
	for (uint32_t i = 1; i < b->n; i++) {
		bool tie = b->pairs[i].weight == least && space > 0;

		b->pairs[i].kept = b->pairs[i].weight > least || tie;
		space -= tie;
		*ret_n += tie;
	}
	b->pairs[0].kept = true;
	return true;
}

struct todo {
	uint32_t pair, parent; /* parent: index in the output */
	bool rest;             /* emit the rest of the pair's children */
};

struct layout {
	const struct both *b;
	struct todo *todo;
	uint32_t n_todo;
	struct tw_compare_node *out;
	uint32_t n;
};

static uint32_t depth_below(const struct layout *l, uint32_t parent)
{
	return l->n ? l->out[parent].depth + 1 : 0;
}

static void put_node(struct layout *l, const struct todo *t)
{
	const struct pair *p = &l->b->pairs[t->pair];
	uint32_t own = l->n;
	uint32_t kept = 0;

	l->out[own] = (struct tw_compare_node){
	        .parent = t->parent, .method = p->method, .depth = depth_below(l, t->parent)};
	for (int s = 0; s < TW_SIDES; s++)
		l->out[own].of[s] = numbers(l->b, p, s);
	l->n++;
	for (uint32_t i = 0; i < p->n_children; i++)
		kept += l->b->pairs[p->first_child + i].kept;
	if (kept < p->n_children)
		l->todo[l->n_todo++] = (struct todo){t->pair, own, true};
	for (uint32_t i = p->n_children; i-- > 0;)
		if (l->b->pairs[p->first_child + i].kept)
			l->todo[l->n_todo++] = (struct todo){p->first_child + i, own, false};
}

/* The rest has only self time. */
static void put_rest(struct layout *l, const struct todo *t)
{
	const struct pair *p = &l->b->pairs[t->pair];
	struct tw_compare_node rest = {
	        .parent = t->parent, .method = TW_NO_METHOD, .depth = depth_below(l, t->parent)};

	for (uint32_t i = 0; i < p->n_children; i++) {
		const struct pair *child = &l->b->pairs[p->first_child + i];

		if (child->kept)
			continue;
		rest.others += child->nodes;
		for (int s = 0; s < TW_SIDES; s++) {
			struct tw_compared of = numbers(l->b, child, s);

			rest.of[s].total_ns += of.total_ns;
			rest.of[s].self_ns += of.total_ns;
			rest.of[s].count += of.count;
		}
	}
	l->out[l->n++] = rest;
}

static bool build_layout(
        const struct both *b, uint32_t kept, struct tw_arena *a, struct tw_compare *ret)
{
	size_t most = 2 * ((size_t)kept + 1); /* one rest for each node */
	struct layout l = {.b = b,
	        .todo = tw_arena_alloc(a, most, sizeof *l.todo),
	        .out = tw_arena_alloc(a, most, sizeof *l.out)};

	if (!l.todo || !l.out)
		return false;
	l.todo[l.n_todo++] = (struct todo){0, 0, false};
	while (l.n_todo) {
		struct todo t = l.todo[--l.n_todo];

		if (t.rest)
			put_rest(&l, &t);
		else
			put_node(&l, &t);
	}
	*ret = (struct tw_compare){l.out, l.n, b->n - 1};
	return true;
}

enum tw_status tw_query_compare(const struct tw_compare_side sides[TW_SIDES],
        const struct tw_compare_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_compare *ret, struct tw_err *err)
{
	struct both b = {.n = 0};
	uint32_t kept = 0;
	enum tw_status st = TW_OK;

	for (int s = 0; st == TW_OK && s < TW_SIDES; s++) {
		b.traces[s] = (double)(sides[s].of_traces ? sides[s].of_traces : sides[s].n_traces);
		st = merge_side(&sides[s], deadline, a, &b.tree[s], err);
	}
	if (st == TW_OK)
		st = pair_up(&b, q, deadline, a, err);
	if (st != TW_OK)
		return st;
	if (!keep_heaviest(&b, q->max_nodes, a, &kept) || !build_layout(&b, kept, a, ret))
		return tw_oom(err);
	return TW_OK;
}

/* --- methods --- */

struct sums {
	struct tw_compare_method *all; /* by number */
	struct tw_method_info *rows;   /* of one trace */
	uint32_t *active;
	uint32_t n_methods;
	const struct tw_deadline *deadline;
};

static enum tw_status add_trace(
        struct sums *s, const struct tw_forest *f, int side, struct tw_err *err)
{
	memset(s->rows, 0, s->n_methods * sizeof *s->rows);
	for (uint32_t i = 0; i < f->n; i++) {
		if (tw_deadline_passed(s->deadline))
			return tw_compare_late(err);
		if (!tw_tree_add_methods(&f->trees[i], s->n_methods, s->rows, s->active))
			return tw_fail(err, TW_CORRUPT, "a call tree is damaged");
	}
	for (uint32_t i = 0; i < s->n_methods; i++) {
		struct tw_compared *of = &s->all[i].of[side];

		s->all[i].traces[side] += s->rows[i].count > 0;
		of->total_ns += s->rows[i].total_ns;
		of->self_ns += s->rows[i].self_ns;
		of->count += s->rows[i].count;
	}
	return TW_OK;
}

enum tw_status tw_query_compare_methods(const struct tw_compare_side sides[TW_SIDES],
        uint32_t n_methods, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_compare_methods *ret, struct tw_err *err)
{
	struct sums s = {.all = tw_arena_zalloc(a, (size_t)n_methods + 1, sizeof *s.all),
	        .rows = tw_arena_zalloc(a, (size_t)n_methods + 1, sizeof *s.rows),
	        .active = tw_arena_zalloc(a, (size_t)n_methods + 1, sizeof *s.active),
	        .n_methods = n_methods,
	        .deadline = deadline};
	enum tw_status st = TW_OK;
	uint32_t n = 0;

	if (!s.all || !s.rows || !s.active)
		return tw_oom(err);
	for (int side = 0; side < TW_SIDES; side++)
		for (uint32_t i = 0; st == TW_OK && i < sides[side].n_traces; i++)
			st = add_trace(&s, &sides[side].traces[i], side, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < n_methods; i++) {
		if (!s.all[i].of[TW_SIDE_A].count && !s.all[i].of[TW_SIDE_B].count)
			continue;
		s.all[n] = s.all[i];
		s.all[n++].method = i;
	}
	*ret = (struct tw_compare_methods){s.all, n};
	return TW_OK;
}

static double change(double of_a, double of_b, const struct tw_compare_side sides[TW_SIDES])
{
	return of_b / sides[TW_SIDE_B].n_traces - of_a / sides[TW_SIDE_A].n_traces;
}

double tw_compare_self_change(
        const struct tw_compare_method *m, const struct tw_compare_side sides[TW_SIDES])
{
	return change((double)m->of[TW_SIDE_A].self_ns, (double)m->of[TW_SIDE_B].self_ns, sides);
}

static double distance(double change)
{
	return change < 0 ? -change : change;
}

static double key_of(const struct tw_compare_method *m,
        const struct tw_compare_side sides[TW_SIDES], enum tw_compare_sort sort)
{
	const struct tw_compared *a = &m->of[TW_SIDE_A];
	const struct tw_compared *b = &m->of[TW_SIDE_B];

	switch (sort) {
	case TW_BY_SELF_CHANGE:
		return distance(tw_compare_self_change(m, sides));
	case TW_BY_TOTAL_CHANGE:
		return distance(change((double)a->total_ns, (double)b->total_ns, sides));
	case TW_BY_COUNT_CHANGE:
		return distance(change((double)a->count, (double)b->count, sides));
	case TW_BY_SELF_A:
		return (double)a->self_ns;
	case TW_BY_SELF_B:
		return (double)b->self_ns;
	case TW_BY_TOTAL_A:
		return (double)a->total_ns;
	case TW_BY_TOTAL_B:
		return (double)b->total_ns;
	case TW_BY_COUNT_A:
		return (double)a->count;
	case TW_BY_COUNT_B:
		return (double)b->count;
	case TW_BY_METHOD:
		break;
	}
	return m->method;
}

TW_ORDER_BY(by_key, struct tw_compare_method, TW_RISING(key), TW_RISING(method))

void tw_compare_rank(struct tw_compare_method *m, uint32_t n,
        const struct tw_compare_side sides[TW_SIDES], enum tw_compare_sort sort, bool rising)
{
	for (uint32_t i = 0; i < n; i++)
		m[i].key = rising ? key_of(&m[i], sides, sort) : -key_of(&m[i], sides, sort);
	TW_SORT(m, n, by_key);
}
