/*
 * query_bottom_up.c - who spends the time, and who called them.
 *
 * Level one holds the methods by their self time (or calls); below a method
 * stand its callers, each with the part of that time that came through them.
 * The whole inverted tree can be far larger than the call tree, so it is grown
 * best first: a node holds the call-tree nodes it stands for, and the heaviest
 * unopened node is opened next, until max_nodes are shown.  What is not opened
 * stands as `(other)` below its node, so every sum holds.
 */
#include "query.h"

#include <stdlib.h>
#include <string.h>

struct member {      /* a call-tree node whose weight this node shares */
	uint32_t at; /* where the walk towards the callers has come to */
	uint32_t method;
	int64_t weight;
	uint64_t count;
	int64_t max_ns;
};

struct grown {
	struct tw_flame_node node;
	struct member *members; /* in the arena */
	uint32_t n_members;
	uint32_t first_child, n_children; /* in grower.kids once opened */
	bool opened;
};

struct grower {
	const struct tw_tree *tree;
	struct tw_arena *arena;
	struct grown *nodes;
	uint32_t n, cap, shown;
	uint32_t *heap; /* unopened nodes, heaviest on top */
	uint32_t n_heap;
	const struct tw_deadline *deadline;
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a flame graph");
}

static int by_method(const void *pa, const void *pb)
{
	const struct member *a = pa;
	const struct member *b = pb;

	if (a->method != b->method)
		return a->method < b->method ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static int by_value(const void *pa, const void *pb)
{
	const struct grown *a = pa;
	const struct grown *b = pb;

	if (a->node.value != b->node.value)
		return a->node.value < b->node.value ? 1 : -1;
	return a->node.method < b->node.method ? -1 : a->node.method > b->node.method;
}

/* Of equal ones the first: what is opened of a node's children is a prefix of them. */
static bool heavier(const struct grower *g, uint32_t a, uint32_t b)
{
	int64_t va = g->nodes[a].node.value;
	int64_t vb = g->nodes[b].node.value;

	return va > vb || (va == vb && a < b);
}

static void heap_push(struct grower *g, uint32_t node)
{
	uint32_t at = g->n_heap++;

	while (at && heavier(g, node, g->heap[(at - 1) / 2])) {
		g->heap[at] = g->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	g->heap[at] = node;
}

static uint32_t heap_pop(struct grower *g)
{
	uint32_t top = g->heap[0];
	uint32_t last = g->heap[--g->n_heap];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= g->n_heap)
			break;
		if (child + 1 < g->n_heap && heavier(g, g->heap[child + 1], g->heap[child]))
			child++;
		if (!heavier(g, g->heap[child], last))
			break;
		g->heap[at] = g->heap[child];
		at = child;
	}
	g->heap[at] = last;
	return top;
}

static bool reserve(struct grower *g, uint32_t more)
{
	uint32_t cap = g->cap ? g->cap : 1024;
	struct grown *nodes;
	uint32_t *heap;

	while (cap < g->n + more)
		cap *= 2;
	if (cap == g->cap)
		return true;
	nodes = tw_arena_alloc(g->arena, cap, sizeof *nodes);
	heap = tw_arena_alloc(g->arena, cap, sizeof *heap);
	if (!nodes || !heap)
		return false;
	if (g->n) {
		memcpy(nodes, g->nodes, g->n * sizeof *nodes);
		memcpy(heap, g->heap, g->n_heap * sizeof *heap);
	}
	g->nodes = nodes;
	g->heap = heap;
	g->cap = cap;
	return true;
}

/* Members sorted by method become children of `parent`, one per method. */
static bool add_children(struct grower *g, uint32_t parent, struct member *m, uint32_t n)
{
	uint32_t distinct = 0;
	uint32_t first = g->n;

	qsort(m, n, sizeof *m, by_method);
	for (uint32_t i = 0; i < n; i++)
		distinct += i == 0 || m[i].method != m[i - 1].method;
	if (!reserve(g, distinct))
		return false;
	for (uint32_t i = 0; i < n;) {
		struct grown *k = &g->nodes[g->n++];

		*k = (struct grown){
		        .members = m + i, .node = {.parent = parent, .method = m[i].method}};
		k->node.depth = g->nodes[parent].node.depth + 1;
		for (; i < n && m[i].method == k->node.method; i++) {
			k->n_members++;
			k->node.value += m[i].weight;
			k->node.count += m[i].count;
			if (m[i].max_ns > k->node.max_ns)
				k->node.max_ns = m[i].max_ns;
		}
	}
	qsort(g->nodes + first, distinct, sizeof *g->nodes, by_value);
	g->nodes[parent].first_child = first;
	g->nodes[parent].n_children = distinct;
	g->nodes[parent].opened = true;
	for (uint32_t i = first; i < g->n; i++)
		heap_push(g, i);
	return true;
}

/* One step towards the callers, in place; members at the top of their stack stay as self. */
static bool open_node(struct grower *g, uint32_t node)
{
	struct member *up = g->nodes[node].members;
	uint32_t n_members = g->nodes[node].n_members;
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_members; i++) {
		uint32_t caller = g->tree->nodes[up[i].at].parent;

		if (caller == 0) {
			g->nodes[node].node.self += up[i].weight;
			continue;
		}
		up[n] = up[i];
		up[n].at = caller;
		up[n++].method = g->tree->nodes[caller].method;
	}
	g->nodes[node].n_members = n;
	return add_children(g, node, up, n);
}

static bool start(struct grower *g, enum tw_flame_metric metric)
{
	const struct tw_tree *t = g->tree;
	struct member *all = tw_arena_alloc(g->arena, t->n, sizeof *all);
	uint32_t n = 0;

	if (!all || !reserve(g, 1))
		return false;
	for (uint32_t i = 1; i < t->n; i++) {
		const struct tw_tree_node *s = &t->nodes[i];
		int64_t weight = metric == TW_METRIC_WALL ? s->self_ns : (int64_t)s->count;

		if (weight > 0)
			all[n++] = (struct member){i, s->method, weight, s->count, s->max_ns};
	}
	g->nodes[0] = (struct grown){.node = {.method = TW_NO_METHOD}};
	g->n = 1;
	for (uint32_t i = 0; i < n; i++) {
		g->nodes[0].node.value += all[i].weight;
		g->nodes[0].node.count += all[i].count;
	}
	return add_children(g, 0, all, n);
}

/* Opens along the root path; what lies beside it is forgotten. */
static enum tw_status go_to_root(
        struct grower *g, const struct tw_flame_query *q, uint32_t *ret, struct tw_err *err)
{
	uint32_t at = 0;

	for (size_t i = 0; i < q->n_root; i++) {
		const struct grown *n = &g->nodes[at];
		uint32_t child = n->first_child;
		uint32_t end = n->first_child + n->n_children;

		while (child < end && g->nodes[child].node.method != q->root[i])
			child++;
		if (child == end)
			return tw_fail(
			        err, TW_NOT_FOUND, TW_NO_OFFSET, "root: the view has no such path");
		g->n_heap = 0;
		at = child;
		if (!open_node(g, at))
			return no_memory(err);
	}
	*ret = at;
	return TW_OK;
}

/* The root becomes the rest that its children from `skip` on are. */
static enum tw_status skip_children(
        struct grower *g, uint32_t root, uint32_t skip, struct tw_err *err)
{
	struct grown *r = &g->nodes[root];

	if (skip == 0)
		return TW_OK;
	if (skip >= r->n_children)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "skip: the root has %u children",
		        r->n_children);
	r->first_child += skip;
	r->n_children -= skip;
	r->node = (struct tw_flame_node){
	        .method = TW_NO_METHOD, .depth = r->node.depth, .others = r->n_children};
	g->n_heap = 0;
	for (uint32_t i = r->first_child; i < r->first_child + r->n_children; i++) {
		r->node.value += g->nodes[i].node.value;
		r->node.count += g->nodes[i].node.count;
		heap_push(g, i);
	}
	return TW_OK;
}

static enum tw_status grow(
        struct grower *g, uint32_t max_nodes, bool *ret_partial, struct tw_err *err)
{
	while (g->n_heap && g->shown < max_nodes) {
		if (tw_deadline_passed(g->deadline)) {
			*ret_partial = true;
			return TW_OK;
		}
		g->shown++;
		if (!open_node(g, heap_pop(g)))
			return no_memory(err);
	}
	return TW_OK;
}

struct layout {
	const struct grower *g;
	struct tw_flame_node *out;
	uint32_t n;
	uint32_t base_depth;
};

static void place_rest(struct layout *l, uint32_t parent_out, uint32_t depth, int64_t value,
        uint32_t others, uint64_t count)
{
	l->out[l->n++] = (struct tw_flame_node){.parent = parent_out,
	        .method = TW_NO_METHOD,
	        .depth = depth,
	        .others = others,
	        .value = value,
	        .self = value,
	        .count = count};
}

/* Shown: opened nodes.  Their unopened children are one rest. */
static void place_children(
        struct layout *l, uint32_t node, uint32_t out, uint32_t (*todo)[2], uint32_t *n_todo)
{
	const struct grown *from = &l->g->nodes[node];

	for (uint32_t i = from->n_children; i-- > 0;) {
		uint32_t child = from->first_child + i;

		if (l->g->nodes[child].opened) {
			todo[*n_todo][0] = child;
			todo[(*n_todo)++][1] = out;
		}
	}
}

static void place_node(struct layout *l, uint32_t node, uint32_t parent_out)
{
	struct tw_flame_node n = l->g->nodes[node].node;

	n.parent = parent_out;
	n.depth -= l->base_depth;
	l->out[l->n++] = n;
}

static void unopened(const struct grower *g, uint32_t node, struct tw_flame_node *ret)
{
	const struct grown *from = &g->nodes[node];

	*ret = (struct tw_flame_node){0};
	for (uint32_t i = 0; i < from->n_children; i++) {
		const struct grown *child = &g->nodes[from->first_child + i];

		if (child->opened)
			continue;
		ret->others++;
		ret->value += child->node.value;
		ret->count += child->node.count;
	}
}

/* Pre-order; a rest is placed when its siblings are done, by a marker on the stack. */
static bool lay_out(struct layout *l, uint32_t root, struct tw_arena *a)
{
	const uint32_t rest = UINT32_C(1) << 31;
	uint32_t(*todo)[2] = tw_arena_alloc(a, 2 * (size_t)l->g->n + 2, sizeof *todo);
	uint32_t n_todo = 0;

	l->out = tw_arena_alloc(a, 2 * (size_t)l->g->n + 2, sizeof *l->out);
	if (!todo || !l->out)
		return false;
	todo[n_todo][0] = root;
	todo[n_todo++][1] = 0;
	while (n_todo) {
		uint32_t node = todo[--n_todo][0];
		uint32_t parent = todo[n_todo][1];
		struct tw_flame_node left;

		if (node & rest) {
			unopened(l->g, node & ~rest, &left);
			if (left.others)
				place_rest(l, parent, l->out[parent].depth + 1, left.value,
				        left.others, left.count);
			continue;
		}
		place_node(l, node, parent);
		todo[n_todo][0] = node | rest;
		todo[n_todo++][1] = l->n - 1;
		place_children(l, node, l->n - 1, todo, &n_todo);
	}
	return true;
}

enum tw_status tw_query_bottom_up(const struct tw_tree *t, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct grower g = {.tree = t, .arena = a, .deadline = deadline};
	struct layout l = {.g = &g};
	bool partial = false;
	uint32_t root = 0;
	enum tw_status st;

	if (!start(&g, q->metric))
		return no_memory(err);
	st = go_to_root(&g, q, &root, err);
	if (st == TW_OK)
		st = skip_children(&g, root, q->skip, err);
	if (st == TW_OK)
		st = grow(&g, q->max_nodes, &partial, err);
	if (st != TW_OK)
		return st;
	l.base_depth = g.nodes[root].node.depth;
	if (!lay_out(&l, root, a))
		return no_memory(err);
	*ret = (struct tw_flame){.nodes = l.out,
	        .n = l.n,
	        .total_nodes = g.n - g.nodes[root].first_child,
	        .partial = partial};
	return TW_OK;
}
