#include "server/query/query_grow_int.h"

#include <string.h>

#include "decoder/base/order.h"
#include "server/base/clock.h"

enum { FEW = 8, SORT_BY_INSERTION = 64, SORT_BY_COUNTING = 2000, MANY = 4096 };
enum { PIECE_BYTES = 64 << 10, SMALL_BYTES = PIECE_BYTES / 8 };

struct tw_group { /* the members [first, first + n), which have the same method */
	struct tw_grow_sums sums;
	uint32_t method, first, n;
};

/* While several threads use the arena, each takes a piece at a time for its small allocations. */
void *tw_grow_alloc(struct tw_grower *g, size_t n, size_t size)
{
	const bool small = n <= SMALL_BYTES / size;
	const size_t bytes = small ? (n * size + 15) / 16 * 16 : 0;
	void *p;

	if (!g->lock)
		return tw_arena_alloc(g->arena, n, size);
	if (!small || bytes > g->piece_left) {
		(void)pthread_mutex_lock(g->lock);
		p = small ? tw_arena_alloc(g->arena, PIECE_BYTES, 1)
		          : tw_arena_alloc(g->arena, n, size);
		(void)pthread_mutex_unlock(g->lock);
		if (!small || !p)
			return p;
		g->piece = p;
		g->piece_left = PIECE_BYTES;
	}
	p = g->piece;
	g->piece += bytes;
	g->piece_left -= bytes;
	return p;
}

static uint32_t highest_method(const struct tw_grow_member *m, uint32_t n)
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
	g->cap_scratch = 0;
	g->scratch = tw_grow_alloc(g, n, sizeof *g->scratch);
	g->keys = tw_grow_alloc(g, n, 2 * sizeof *g->keys);
	g->cap_scratch = g->scratch && g->keys ? n : 0;
	return g->cap_scratch > 0;
}

static void insertion_sort(uint64_t *keys, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint64_t key = keys[i];
		uint32_t at = i;

		for (; at && keys[at - 1] > key; at--)
			keys[at] = keys[at - 1];
		keys[at] = key;
	}
}

/* Sorts by the upper half of the keys, which is at most `most`; stable. */
static const uint64_t *radix_sort(uint64_t *keys, uint64_t *spare, uint32_t n, uint32_t most)
{
	for (unsigned shift = 32; most; shift += 8, most >>= 8) {
		uint32_t starts[257] = {0};
		uint64_t *sorted = spare;

		for (uint32_t i = 0; i < n; i++)
			starts[(keys[i] >> shift & 255) + 1]++;
		for (int i = 1; i < 256; i++)
			starts[i] += starts[i - 1];
		for (uint32_t i = 0; i < n; i++)
			sorted[starts[keys[i] >> shift & 255]++] = keys[i];
		spare = keys;
		keys = sorted;
	}
	return keys;
}

/* Sorts indexes, then moves each member once. */
static bool sort_keys(struct tw_grower *g, struct tw_grow_member *m, uint32_t n)
{
	const uint64_t *sorted = g->keys;

	for (uint32_t i = 0; i < n; i++)
		g->keys[i] = (uint64_t)m[i].method << 32 | i;
	if (n <= SORT_BY_INSERTION)
		insertion_sort(g->keys, n);
	else
		sorted = radix_sort(g->keys, g->keys + n, n, highest_method(m, n));
	memcpy(g->scratch, m, n * sizeof *m);
	for (uint32_t i = 0; i < n; i++)
		m[i] = g->scratch[(uint32_t)sorted[i]];
	return true;
}

static bool is_sorted(const struct tw_grow_member *m, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (m[i].method < m[i - 1].method)
			return false;
	return true;
}

/* Stable. Counting sort takes one pass if every node of a tree is a member. */
static bool sort_by_method(struct tw_grower *g, struct tw_grow_member *m, uint32_t n)
{
	uint32_t most;
	size_t slots;
	uint32_t *starts;

	if (is_sorted(m, n))
		return true;
	if (!reserve_scratch(g, n < SORT_BY_INSERTION ? SORT_BY_INSERTION : n))
		return false;
	if (n <= SORT_BY_COUNTING)
		return sort_keys(g, m, n);
	most = highest_method(m, n);
	slots = (size_t)most + 2;
	if (most / 8 > n)
		return sort_keys(g, m, n);
	starts = tw_mem_zalloc(slots, sizeof *starts);
	if (!starts)
		return false;
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

TW_ORDER_BY(by_value, struct tw_group,
        TW_ORDER(a->method == TW_NO_METHOD, b->method == TW_NO_METHOD), TW_FALLING(sums.value),
        TW_RISING(method))

/* Most nodes have few children. */
static void sort_groups(struct tw_group *groups, uint32_t n)
{
	if (n > FEW) {
		TW_SORT(groups, n, by_value);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct tw_group moved = groups[i];
		uint32_t at = i;

		for (; at && by_value(&groups[at - 1], &moved) > 0; at--)
			groups[at] = groups[at - 1];
		groups[at] = moved;
	}
}

void tw_grow_push(struct tw_grower *g, uint32_t node)
{
	struct tw_heap_entry e = {g->nodes[node].node.value, node};
	uint32_t at = g->n_heap++;

	while (at && tw_grow_is_heavier(e, g->heap[(at - 1) / 2])) {
		g->heap[at] = g->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	g->heap[at] = e;
}

uint32_t tw_grow_pop(struct tw_grower *g)
{
	uint32_t top = g->heap[0].node;
	struct tw_heap_entry last = g->heap[--g->n_heap];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= g->n_heap)
			break;
		if (child + 1 < g->n_heap && tw_grow_is_heavier(g->heap[child + 1], g->heap[child]))
			child++;
		if (!tw_grow_is_heavier(g->heap[child], last))
			break;
		g->heap[at] = g->heap[child];
		at = child;
	}
	g->heap[at] = last;
	return top;
}

bool tw_grow_reserve(struct tw_grower *g, uint32_t more)
{
	uint32_t cap = g->cap ? g->cap : more;
	struct tw_grown *nodes;
	struct tw_heap_entry *heap;

	if (g->n + more < g->n || g->n + more > UINT32_MAX / 4)
		return false;
	if (g->n + more <= g->cap)
		return true;
	/* doubles, except for an addition so large that it will not repeat */
	if (cap < g->n + more)
		cap = more > cap ? g->n + more + more / 8 : 2 * cap;
	nodes = tw_grow_alloc(g, cap, sizeof *nodes);
	heap = tw_grow_alloc(g, cap, sizeof *heap);
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

static struct tw_grow_sums sums_of(const struct tw_grower *g, const struct tw_grow_member *m)
{
	const struct tw_grow_leaf *l;

	if (g->sums)
		return g->sums(g, m);
	l = &g->leaves[m->tree];
	return (struct tw_grow_sums){
	        .value = l->value, .max_ns = l->max_ns, .order = l->value, .count = l->count};
}

static struct tw_grow_sums add_up(
        const struct tw_grower *g, const struct tw_grow_member *m, uint32_t n)
{
	struct tw_grow_sums all = {0};

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_grow_sums one = sums_of(g, &m[i]);

		all.value += one.value;
		all.self += one.self;
		all.order += one.order;
		all.count += one.count;
		all.hidden += one.hidden;
		if (one.max_ns > all.max_ns)
			all.max_ns = one.max_ns;
	}
	return all;
}

/* Groups members sorted by method; groups are sorted by falling value. */
static bool group(struct tw_grower *g, const struct tw_grow_member *m, uint32_t n, uint32_t *ret_n)
{
	uint32_t k = 0;

	if (n > g->cap_groups) {
		uint32_t cap = n < MANY ? 2 * n : n;

		g->groups = tw_grow_alloc(g, cap, sizeof *g->groups);
		g->cap_groups = g->groups ? cap : 0;
	}
	if (n && !g->groups)
		return false;
	for (uint32_t i = 0; i < n; k++) {
		uint32_t end = i + 1;

		while (end < n && m[end].method == m[i].method)
			end++;
		g->groups[k] =
		        (struct tw_group){add_up(g, m + i, end - i), m[i].method, i, end - i};
		i = end;
	}
	sort_groups(g->groups, k);
	*ret_n = k;
	return true;
}

static struct tw_grown grown_of(const struct tw_grow_sums *s, struct tw_grow_member *m, uint32_t n)
{
	return (struct tw_grown){.members = m,
	        .n_members = n,
	        .order = s->order,
	        .node = {.method = TW_NO_METHOD,
	                .value = s->value,
	                .self = s->self,
	                .count = s->count,
	                .max_ns = s->max_ns,
	                .tree_nodes = s->hidden}};
}

static void add_child(
        struct tw_grower *g, uint32_t parent, const struct tw_group *from, struct tw_grow_member *m)
{
	struct tw_grown *k = &g->nodes[g->n++];

	*k = grown_of(&from->sums, m + from->first, from->n);
	k->node.parent = parent;
	k->node.method = from->method;
	k->node.depth = g->nodes[parent].node.depth + 1;
}

bool tw_grow_is_late(struct tw_grower *g, uint32_t n)
{
	g->late = g->late || (n >= MANY && tw_deadline_passed(g->deadline));
	return g->late;
}

/* Groups members by method as children of `parent`, heaviest first. */
static bool add_children(struct tw_grower *g, uint32_t parent, struct tw_grow_member *m, uint32_t n)
{
	uint32_t distinct = 0;
	uint32_t first = g->n;

	if (!sort_by_method(g, m, n) || tw_grow_is_late(g, n) || !group(g, m, n, &distinct) ||
	        tw_grow_is_late(g, n) || !tw_grow_reserve(g, distinct))
		return false;
	for (uint32_t i = 0; i < distinct; i++)
		add_child(g, parent, &g->groups[i], m);
	g->nodes[parent].first_child = first;
	g->nodes[parent].n_children = distinct;
	g->nodes[parent].opened = true;
	for (uint32_t i = first; i < g->n; i++)
		if (g->nodes[i].node.method != TW_NO_METHOD)
			tw_grow_push(g, i);
	return true;
}

bool tw_grow_open(struct tw_grower *g, uint32_t node)
{
	struct tw_grow_member *next = NULL;
	uint32_t n = 0;
	int64_t self = 0;

	if (!g->expand(g, g->nodes[node].members, g->nodes[node].n_members, &next, &n, &self))
		return false;
	if (!add_children(g, node, next, n))
		return false;
	g->nodes[node].node.self += self;
	return true;
}

/* Allocates about the expected number: unused pages cost nothing, copies do. */
static uint32_t first_capacity(const struct tw_grower *g, uint32_t max_nodes)
{
	uint64_t most = g->tree_nodes + 1;

	if (most > 2 * (uint64_t)max_nodes)
		most = 2 * (uint64_t)max_nodes;
	return most < UINT32_MAX / 8 ? (uint32_t)most + 1 : 1;
}

static bool start(
        struct tw_grower *g, struct tw_grow_member *members, uint32_t n, uint32_t max_nodes)
{
	struct tw_grow_sums sums;

	if (!tw_grow_reserve(g, first_capacity(g, max_nodes)))
		return false;
	sums = add_up(g, members, n);
	g->nodes[0] = grown_of(&sums, members, n);
	g->n = 1;
	return tw_grow_open(g, 0);
}

/* Opens nodes along the root path; siblings are dropped. */
static enum tw_status open_root_path(
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
			return tw_fail(err, TW_NOT_FOUND, "root: no such path in this view");
		g->n_heap = 0;
		at = child;
		if (!tw_grow_open(g, at))
			return g->late ? tw_fail_overdue(err) : tw_oom(err);
	}
	*ret = at;
	return TW_OK;
}

/* The rest node for the children [from, end) of a node. */
static struct tw_flame_node rest_of(const struct tw_grower *g, uint32_t from, uint32_t end)
{
	struct tw_flame_node rest = {.method = TW_NO_METHOD};
	uint64_t hidden = 0;

	for (uint32_t i = from; i < end; i++) {
		const struct tw_grown *k = &g->nodes[i];

		hidden += k->node.tree_nodes ? k->node.tree_nodes : 1;
		rest.value += k->node.value;
		rest.count += k->node.count;
		if (k->node.max_ns > rest.max_ns)
			rest.max_ns = k->node.max_ns;
	}
	rest.others = hidden < UINT32_MAX ? (uint32_t)hidden : UINT32_MAX;
	rest.tree_nodes = hidden;
	return rest;
}

/* Reduces the root to its children from `skip` on. */
static enum tw_status skip_children(
        struct tw_grower *g, uint32_t root, uint32_t skip, struct tw_err *err)
{
	struct tw_grown *r = &g->nodes[root];
	uint32_t depth = r->node.depth;

	if (skip == 0)
		return TW_OK;
	if (skip >= r->n_children)
		return tw_fail(err, TW_NOT_FOUND, "skip: the root has %u children", r->n_children);
	r->first_child += skip;
	r->n_children -= skip;
	r->node = rest_of(g, r->first_child, r->first_child + r->n_children);
	r->node.depth = depth;
	g->n_heap = 0;
	for (uint32_t i = r->first_child; i < r->first_child + r->n_children; i++)
		if (g->nodes[i].node.method != TW_NO_METHOD)
			tw_grow_push(g, i);
	return TW_OK;
}

static enum tw_status grow(struct tw_grower *g, uint32_t first, uint32_t max_nodes,
        bool *ret_partial, struct tw_err *err)
{
	while (g->n_heap && g->shown < max_nodes) {
		if (tw_grow_is_divisible(g, max_nodes)) {
			uint32_t shown = g->shown;
			enum tw_status st =
			        tw_grow_by_threads(g, first, max_nodes, ret_partial, err);

			g->by_threads = false;
			if (st != TW_OK || g->shown > shown || *ret_partial)
				return st;
		}
		if (tw_deadline_passed(g->deadline)) {
			*ret_partial = true;
			return TW_OK;
		}
		if (!tw_grow_open(g, tw_grow_pop(g))) {
			*ret_partial = g->late;
			return g->late ? TW_OK : tw_oom(err);
		}
		g->shown++;
	}
	return TW_OK;
}

/* --- output in pre-order --- */

struct todo {
	uint32_t node, out; /* a node of the graph; its parent in the output */
	int64_t order;
	bool rest; /* emit the rest of the node's children after those that are shown */
};

struct layout {
	const struct tw_grower *g;
	struct tw_flame_node *out;
	struct todo *todo;
	uint32_t n, n_todo;
	uint32_t base_depth;
};

/* The stack is last in, first out. */
TW_ORDER_BY(by_order, struct todo, TW_RISING(order), TW_FALLING(rest), TW_FALLING(node))

static uint32_t opened(const struct tw_grower *g, const struct tw_grown *from)
{
	uint32_t n = 0;

	while (n < from->n_children && g->nodes[from->first_child + n].opened)
		n++;
	return n;
}

static struct tw_flame_node rest_below(const struct tw_grower *g, uint32_t node)
{
	const struct tw_grown *from = &g->nodes[node];

	return rest_of(
	        g, from->first_child + opened(g, from), from->first_child + from->n_children);
}

static void put_node(struct layout *l, uint32_t node, uint32_t parent_out)
{
	const struct tw_grown *from = &l->g->nodes[node];
	uint32_t shown = opened(l->g, from);
	uint32_t out = l->n++;
	struct todo *const first = &l->todo[l->n_todo];
	struct todo *next = first;
	bool in_order = true; /* unchanged if they were sorted by the same key */

	l->out[out] = from->node;
	l->out[out].parent = parent_out;
	l->out[out].depth -= l->base_depth;
	if (shown < from->n_children)
		*next++ = (struct todo){node, out,
		        l->g->sorts_rests ? rest_below(l->g, node).value : INT64_MIN, true};
	for (uint32_t i = shown; i-- > 0; next++) {
		uint32_t child = from->first_child + i;

		*next = (struct todo){child, out, l->g->nodes[child].order, false};
		in_order = in_order && (next == first || by_order(next - 1, next) < 0);
	}
	l->n_todo += (uint32_t)(next - first);
	if (!in_order)
		TW_SORT(first, (size_t)(next - first), by_order);
}

static void put_rest(struct layout *l, const struct todo *t)
{
	struct tw_flame_node rest = rest_below(l->g, t->node);

	rest.parent = t->out;
	rest.depth = l->out[t->out].depth + 1;
	rest.self = rest.value;
	l->out[l->n++] = rest;
}

/* At most one rest per displayed node. */
static bool build_layout(struct layout *l, uint32_t root, struct tw_arena *a)
{
	size_t most = 2 * ((size_t)l->g->shown + 1);

	l->todo = tw_arena_alloc(a, most, sizeof *l->todo);
	l->out = tw_arena_alloc(a, most, sizeof *l->out);
	if (!l->todo || !l->out)
		return false;
	put_node(l, root, 0);
	while (l->n_todo) {
		struct todo t = l->todo[--l->n_todo];

		if (t.rest)
			put_rest(l, &t);
		else
			put_node(l, t.node, t.out);
	}
	return true;
}

enum tw_status tw_grow(struct tw_grower *g, const struct tw_flame_query *q,
        struct tw_grow_member *members, uint32_t n, struct tw_flame *ret, struct tw_err *err)
{
	struct layout l = {.g = g};
	bool partial = false;
	uint64_t total;
	uint32_t root = 0;
	enum tw_status st;

	if (!start(g, members, n, q->max_nodes))
		return g->late ? tw_fail_overdue(err) : tw_oom(err);
	st = open_root_path(g, q, &root, err);
	if (st == TW_OK)
		st = skip_children(g, root, q->skip, err);
	if (st != TW_OK)
		return st;
	total = rest_of(g, g->nodes[root].first_child,
	        g->nodes[root].first_child + g->nodes[root].n_children)
	                .tree_nodes;
	st = grow(g, g->nodes[root].first_child, q->max_nodes, &partial, err);
	if (st != TW_OK)
		return st;
	if (!g->knows_total)
		total = g->n - g->nodes[root].first_child;
	l.base_depth = g->nodes[root].node.depth;
	if (!build_layout(&l, root, g->arena))
		return tw_oom(err);
	*ret = (struct tw_flame){
	        .nodes = l.out, .n = l.n, .total_nodes = total, .partial = partial};
	return TW_OK;
}
