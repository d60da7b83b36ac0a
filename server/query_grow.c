#include "query_grow.h"

#include <stdlib.h>
#include <string.h>

enum { SORT_BY_COUNTING = 2000 };

struct tw_grown {
	struct tw_flame_node node;
	int64_t order;
	uint64_t hidden; /* nodes that are unseen while it is not opened */
	struct tw_member *members;
	uint32_t n_members;
	uint32_t first_child, n_children; /* once opened: heaviest first */
	bool opened;
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a flame graph");
}

static int by_method(const void *pa, const void *pb)
{
	const struct tw_member *a = pa;
	const struct tw_member *b = pb;

	if (a->method != b->method)
		return a->method < b->method ? -1 : 1;
	if (a->tree != b->tree)
		return a->tree < b->tree ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static uint32_t highest_method(const struct tw_member *m, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++)
		if (m[i].method > most)
			most = m[i].method;
	return most;
}

static bool reserve_scratch(struct tw_grower *g, uint32_t n)
{
	if (n <= g->cap_scratch)
		return true;
	g->scratch = tw_arena_alloc(g->arena, n, sizeof *g->scratch);
	g->cap_scratch = g->scratch ? n : 0;
	return g->scratch != NULL;
}

/* Members come in the order of trees and places: a stable sort by counting keeps that, and takes
 * one pass where a tree's every node is a member. */
static bool sort_by_method(struct tw_grower *g, struct tw_member *m, uint32_t n)
{
	uint32_t most = n > SORT_BY_COUNTING ? highest_method(m, n) : 0;
	size_t slots = (size_t)most + 2;
	uint32_t *starts;

	if (n <= SORT_BY_COUNTING || most / 8 > n) {
		if (n > 1)
			qsort(m, n, sizeof *m, by_method);
		return true;
	}
	starts = tw_mem_zalloc(slots, sizeof *starts);
	if (!starts || !reserve_scratch(g, n)) {
		tw_mem_free(starts);
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		starts[m[i].method + 1]++;
	for (size_t i = 1; i < slots; i++)
		starts[i] += starts[i - 1];
	for (uint32_t i = 0; i < n; i++)
		g->scratch[starts[m[i].method]++] = m[i];
	memcpy(m, g->scratch, n * sizeof *m);
	tw_mem_free(starts);
	return true;
}

static int by_value(const void *pa, const void *pb)
{
	const struct tw_grown *a = pa;
	const struct tw_grown *b = pb;

	if (a->node.value != b->node.value)
		return a->node.value < b->node.value ? 1 : -1;
	return a->node.method < b->node.method ? -1 : a->node.method > b->node.method;
}

/* Of equal ones the one that was found first: so the opened children of a node are always its
 * first. */
static bool heavier(const struct tw_grower *g, uint32_t a, uint32_t b)
{
	int64_t va = g->nodes[a].node.value;
	int64_t vb = g->nodes[b].node.value;

	return va != vb ? va > vb : a < b;
}

static void heap_push(struct tw_grower *g, uint32_t node)
{
	uint32_t at = g->n_heap++;

	while (at && heavier(g, node, g->heap[(at - 1) / 2])) {
		g->heap[at] = g->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	g->heap[at] = node;
}

static uint32_t heap_pop(struct tw_grower *g)
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

static bool reserve(struct tw_grower *g, uint32_t more)
{
	uint32_t cap = g->cap ? g->cap : 1024;
	struct tw_grown *nodes;
	uint32_t *heap;

	if (g->n + more < g->n || g->n + more > UINT32_MAX / 4)
		return false;
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

static void add_member(struct tw_grown *to, const struct tw_member *m)
{
	to->n_members++;
	to->node.value += m->value;
	to->node.self += m->self;
	to->node.count += m->count;
	to->order += m->order;
	to->hidden += m->hidden;
	if (m->max_ns > to->node.max_ns)
		to->node.max_ns = m->max_ns;
}

/* Members sorted by method become children of `parent`, one per method, heaviest first. */
static bool add_children(struct tw_grower *g, uint32_t parent, struct tw_member *m, uint32_t n)
{
	uint32_t distinct = 0;
	uint32_t first = g->n;

	if (!sort_by_method(g, m, n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		distinct += i == 0 || m[i].method != m[i - 1].method;
	if (!reserve(g, distinct))
		return false;
	for (uint32_t i = 0; i < n;) {
		struct tw_grown *k = &g->nodes[g->n++];

		*k = (struct tw_grown){
		        .members = m + i, .node = {.parent = parent, .method = m[i].method}};
		k->node.depth = g->nodes[parent].node.depth + 1;
		while (i < n && m[i].method == k->node.method)
			add_member(k, &m[i++]);
	}
	if (distinct > 1)
		qsort(g->nodes + first, distinct, sizeof *g->nodes, by_value);
	g->nodes[parent].first_child = first;
	g->nodes[parent].n_children = distinct;
	g->nodes[parent].opened = true;
	for (uint32_t i = first; i < g->n; i++)
		heap_push(g, i);
	return true;
}

static bool open_node(struct tw_grower *g, uint32_t node)
{
	struct tw_member *next = NULL;
	uint32_t n = 0;
	int64_t self = 0;

	if (!g->expand(g, g->nodes[node].members, g->nodes[node].n_members, &next, &n, &self))
		return false;
	g->nodes[node].node.self += self;
	return add_children(g, node, next, n);
}

static bool start(struct tw_grower *g, struct tw_member *members, uint32_t n)
{
	if (!reserve(g, 1))
		return false;
	g->nodes[0] = (struct tw_grown){.members = members, .node = {.method = TW_NO_METHOD}};
	g->n = 1;
	for (uint32_t i = 0; i < n; i++)
		add_member(&g->nodes[0], &members[i]);
	return open_node(g, 0);
}

/* Opens along the root path; what lies beside it is forgotten. */
static enum tw_status go_to_root(
        struct tw_grower *g, const struct tw_flame_query *q, uint32_t *ret, struct tw_err *err)
{
	uint32_t at = 0;

	for (size_t i = 0; i < q->n_root; i++) {
		const struct tw_grown *n = &g->nodes[at];
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

/* What stands for the children [from, end) of a node. */
static struct tw_flame_node rest_of(const struct tw_grower *g, uint32_t from, uint32_t end)
{
	struct tw_flame_node rest = {.method = TW_NO_METHOD};
	uint64_t hidden = 0;

	for (uint32_t i = from; i < end; i++) {
		const struct tw_grown *k = &g->nodes[i];

		hidden += k->hidden ? k->hidden : 1;
		rest.value += k->node.value;
		rest.count += k->node.count;
		if (k->node.max_ns > rest.max_ns)
			rest.max_ns = k->node.max_ns;
	}
	rest.others = hidden < UINT32_MAX ? (uint32_t)hidden : UINT32_MAX;
	return rest;
}

/* The root becomes the rest that its children from `skip` on are. */
static enum tw_status skip_children(
        struct tw_grower *g, uint32_t root, uint32_t skip, struct tw_err *err)
{
	struct tw_grown *r = &g->nodes[root];
	uint32_t depth = r->node.depth;

	if (skip == 0)
		return TW_OK;
	if (skip >= r->n_children)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "skip: the root has %u children",
		        r->n_children);
	r->first_child += skip;
	r->n_children -= skip;
	r->node = rest_of(g, r->first_child, r->first_child + r->n_children);
	r->node.depth = depth;
	g->n_heap = 0;
	for (uint32_t i = r->first_child; i < r->first_child + r->n_children; i++)
		heap_push(g, i);
	return TW_OK;
}

static enum tw_status grow(
        struct tw_grower *g, uint32_t max_nodes, bool *ret_partial, struct tw_err *err)
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

/* --- in pre-order --- */

struct todo {
	uint32_t node, out; /* of the graph; its parent in the answer */
	int64_t order;
	bool rest; /* of the node's children, when all that are shown are placed */
};

struct layout {
	const struct tw_grower *g;
	struct tw_flame_node *out;
	struct todo *todo;
	uint32_t n, n_todo;
	uint32_t base_depth;
};

static int by_order(const void *pa, const void *pb)
{
	const struct todo *a = pa;
	const struct todo *b = pb;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1; /* the last on the stack comes first */
	return a->node < b->node ? 1 : a->node > b->node ? -1 : 0;
}

static uint32_t opened(const struct tw_grower *g, const struct tw_grown *from)
{
	uint32_t n = 0;

	while (n < from->n_children && g->nodes[from->first_child + n].opened)
		n++;
	return n;
}

static void place(struct layout *l, uint32_t node, uint32_t parent_out)
{
	const struct tw_grown *from = &l->g->nodes[node];
	uint32_t shown = opened(l->g, from);
	uint32_t out = l->n++;

	l->out[out] = from->node;
	l->out[out].parent = parent_out;
	l->out[out].depth -= l->base_depth;
	if (shown < from->n_children)
		l->todo[l->n_todo++] = (struct todo){.node = node, .out = out, .rest = true};
	for (uint32_t i = 0; i < shown; i++) {
		uint32_t child = from->first_child + i;

		l->todo[l->n_todo++] = (struct todo){child, out, l->g->nodes[child].order, false};
	}
	if (shown > 1)
		qsort(&l->todo[l->n_todo - shown], shown, sizeof *l->todo, by_order);
}

static void place_rest(struct layout *l, const struct todo *t)
{
	const struct tw_grown *from = &l->g->nodes[t->node];
	struct tw_flame_node rest = rest_of(
	        l->g, from->first_child + opened(l->g, from), from->first_child + from->n_children);

	rest.parent = t->out;
	rest.depth = l->out[t->out].depth + 1;
	rest.self = rest.value;
	l->out[l->n++] = rest;
}

/* A rest per shown node at most. */
static bool lay_out(struct layout *l, uint32_t root, struct tw_arena *a)
{
	size_t most = 2 * ((size_t)l->g->shown + 1);

	l->todo = tw_arena_alloc(a, most, sizeof *l->todo);
	l->out = tw_arena_alloc(a, most, sizeof *l->out);
	if (!l->todo || !l->out)
		return false;
	place(l, root, 0);
	while (l->n_todo) {
		struct todo t = l->todo[--l->n_todo];

		if (t.rest)
			place_rest(l, &t);
		else
			place(l, t.node, t.out);
	}
	return true;
}

enum tw_status tw_grow(struct tw_grower *g, const struct tw_flame_query *q,
        struct tw_member *members, uint32_t n, struct tw_flame *ret, struct tw_err *err)
{
	struct layout l = {.g = g};
	bool partial = false;
	uint64_t total;
	uint32_t root = 0;
	enum tw_status st;

	if (!start(g, members, n))
		return no_memory(err);
	st = go_to_root(g, q, &root, err);
	if (st == TW_OK)
		st = skip_children(g, root, q->skip, err);
	if (st != TW_OK)
		return st;
	total = rest_of(g, g->nodes[root].first_child,
	        g->nodes[root].first_child + g->nodes[root].n_children)
	                .others;
	st = grow(g, q->max_nodes, &partial, err);
	if (st != TW_OK)
		return st;
	if (!g->knows_total)
		total = g->n - g->nodes[root].first_child;
	l.base_depth = g->nodes[root].node.depth;
	if (!lay_out(&l, root, g->arena))
		return no_memory(err);
	*ret = (struct tw_flame){
	        .nodes = l.out, .n = l.n, .total_nodes = total, .partial = partial};
	return TW_OK;
}
