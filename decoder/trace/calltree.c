/*
 * calltree.c - builds a merged call tree from slices, and sorts it.
 *
 * While building, a node with two siblings or more is found by (parent, method) in an
 * open-addressing hash, any other one from its parent; the path of the open slices is a stack of
 * nodes.  Finishing sorts the children of each node by falling total time and lays the nodes out in
 * pre-order.  A full tree takes no new nodes: a call without a node counts as its caller's self
 * time, and is counted as clipped.  The stored form is in calltree_store.c.
 */
#include "decoder/trace/calltree.h"

#include <string.h>

#include "decoder/base/order.h"
#include "decoder/base/sum.h"

#define NODE_MAX (UINT32_MAX >> 1)
enum { FIRST_SLOTS = 1024 };

/* The part of a node that every call accesses: half a cache line. The rest is in parallel
 * arrays. */
struct grown {
	uint32_t method;
	uint32_t last_child : 31; /* most calls repeat the previous child; 0: none */
	uint32_t several : 1;     /* has three children or more, which are in the hash; an only
	                           * child is last_child, of two the other one is its follower */
	uint32_t follower; /* or the order repeats: the sibling called after this one last time */
	uint32_t count;    /* the low half */
	int64_t total_ns, max_ns;
};

struct slot {          /* includes the method, so that most non-matching nodes need not be read */
	uint32_t node; /* 0: free, as node 0 is never looked up */
	uint32_t method;
};

struct tw_tree_builder {
	uint64_t max_nodes;
	struct grown *nodes;
	uint32_t *parents;
	int64_t *cpu_plus_1;  /* 0: unknown; NULL: unknown for all nodes */
	uint32_t *count_high; /* NULL: all 0 */
	uint32_t n, cap;
	struct slot *slots; /* node by hash of parent and method */
	uint32_t n_slots;   /* in use: power of two, at least twice n_hashed */
	uint32_t cap_slots;
	uint32_t n_hashed;
	uint32_t n_pairs; /* nodes with two children */
	uint32_t *path;   /* node of the open slice at each depth */
	uint32_t depth, cap_path;
	uint64_t clipped; /* slices without a node */
	enum tw_status status;
};

void tw_tree_builder_reset(struct tw_tree_builder *b, uint64_t max_nodes)
{
	b->max_nodes = max_nodes < NODE_MAX / 2 ? max_nodes : NODE_MAX / 2;
	b->nodes[0] = (struct grown){.method = TW_NO_METHOD};
	b->parents[0] = 0;
	b->n = 1;
	tw_mem_free(b->cpu_plus_1);
	b->cpu_plus_1 = NULL;
	tw_mem_free(b->count_high);
	b->count_high = NULL;
	b->n_slots = FIRST_SLOTS;
	memset(b->slots, 0, b->n_slots * sizeof *b->slots);
	b->n_hashed = 0;
	b->n_pairs = 0;
	b->depth = 0;
	b->clipped = 0;
	b->status = TW_OK;
}

struct tw_tree_builder *tw_tree_builder_new(uint64_t max_nodes)
{
	struct tw_tree_builder *b = tw_mem_zalloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->cap = 256;
	b->cap_slots = FIRST_SLOTS;
	b->cap_path = 64;
	b->nodes = tw_mem_alloc(b->cap, sizeof *b->nodes);
	b->parents = tw_mem_alloc(b->cap, sizeof *b->parents);
	b->slots = tw_mem_alloc(b->cap_slots, sizeof *b->slots);
	b->path = tw_mem_alloc(b->cap_path, sizeof *b->path);
	if (!b->nodes || !b->parents || !b->slots || !b->path)
		return tw_tree_builder_free(b);
	tw_tree_builder_reset(b, max_nodes);
	return b;
}

struct tw_tree_builder *tw_tree_builder_free(struct tw_tree_builder *b)
{
	if (!b)
		return NULL;
	tw_mem_free(b->nodes);
	tw_mem_free(b->parents);
	tw_mem_free(b->cpu_plus_1);
	tw_mem_free(b->count_high);
	tw_mem_free(b->slots);
	tw_mem_free(b->path);
	tw_mem_free(b);
	return NULL;
}

/* The slot of the child, or the one where it belongs. */
static struct slot *slot_of(const struct tw_tree_builder *b, uint32_t parent, uint32_t method)
{
	uint64_t h = ((uint64_t)parent << 32 | method) * 0x9E3779B97F4A7C15u;
	uint32_t at = (uint32_t)(h >> 32) & (b->n_slots - 1);
	struct slot *s;

	for (s = &b->slots[at]; s->node; s = &b->slots[at]) {
		if (s->method == method && b->parents[s->node] == parent)
			break;
		at = (at + 1) & (b->n_slots - 1);
	}
	return s;
}

static void hash(struct tw_tree_builder *b, uint32_t node)
{
	uint32_t method = b->nodes[node].method;

	*slot_of(b, b->parents[node], method) = (struct slot){node, method};
}

static bool rehash(struct tw_tree_builder *b)
{
	uint32_t n_slots = b->n_slots * (b->n_slots < 1 << 18 ? 4 : 2);

	if (n_slots > b->cap_slots) {
		struct slot *slots = tw_mem_zalloc(n_slots, sizeof *slots);

		if (!slots)
			return false;
		tw_mem_free(b->slots);
		b->slots = slots;
		b->cap_slots = n_slots;
	} else {
		memset(b->slots, 0, n_slots * sizeof *b->slots);
	}
	b->n_slots = n_slots;
	for (uint32_t i = 1; i < b->n; i++)
		if (b->nodes[b->parents[i]].several)
			hash(b, i);
	return true;
}

static bool resize(void **p, uint32_t cap, size_t size)
{
	void *q = tw_mem_resize(*p, cap, size);

	tw_mem_will_fill(q, cap * size);
	if (q)
		*p = q;
	return q != NULL;
}

/* Resizes an array parallel to the nodes; new elements are zero. */
static bool resize_zeros(void **p, uint32_t from, uint32_t cap, size_t size)
{
	if (!*p)
		return true;
	if (!resize(p, cap, size))
		return false;
	memset((char *)*p + from * size, 0, (cap - from) * size);
	return true;
}

static uint32_t next_cap(const struct tw_tree_builder *b)
{
	const size_t bytes = tw_mem_fill_pages((size_t)b->cap * 2 * sizeof *b->nodes);

	return (uint32_t)(bytes / sizeof *b->nodes);
}

/* Ensures capacity for one more node, and for it and its two siblings in the hash. */
static bool make_room(struct tw_tree_builder *b)
{
	if (b->n == b->cap) {
		uint32_t cap = next_cap(b);

		if (!resize((void **)&b->nodes, cap, sizeof *b->nodes) ||
		        !resize((void **)&b->parents, cap, sizeof *b->parents) ||
		        !resize_zeros(
		                (void **)&b->cpu_plus_1, b->cap, cap, sizeof *b->cpu_plus_1) ||
		        !resize_zeros((void **)&b->count_high, b->cap, cap, sizeof *b->count_high))
			return false;
		b->cap = cap;
	}
	return b->n_hashed + 3 < b->n_slots / 2 || rehash(b);
}

static uint32_t remember(struct tw_tree_builder *b, uint32_t parent, uint32_t node)
{
	uint32_t last = b->nodes[parent].last_child;

	if (last)
		b->nodes[last].follower = node;
	b->nodes[parent].last_child = node & NODE_MAX;
	return node;
}

/* Predicts the child without the hash, whose slots are seldom in the cache; 0: no prediction. */
static uint32_t expected_child(struct tw_tree_builder *b, uint32_t parent, uint32_t method)
{
	uint32_t last = b->nodes[parent].last_child;
	uint32_t next;

	if (last == 0 || b->nodes[last].method == method)
		return last;
	next = b->nodes[last].follower;
	if (next == 0 || b->nodes[next].method != method)
		return 0;
	b->nodes[parent].last_child = next & NODE_MAX;
	return next;
}

/* One or two children are found by prediction and need no hash entry, and most nodes have no
 * more. */
static uint32_t new_child(struct tw_tree_builder *b, uint32_t parent, uint32_t method)
{
	struct grown *p = &b->nodes[parent];
	uint32_t last = p->last_child;
	uint32_t node = b->n++;

	b->nodes[node] = (struct grown){.method = method};
	b->parents[node] = parent;
	if (last && !p->several) {
		uint32_t other = b->nodes[last].follower;

		if (!other) {
			b->nodes[node].follower = last;
			b->n_pairs++;
			return node;
		}
		p->several = 1;
		hash(b, last);
		hash(b, other);
		b->n_hashed += 2;
		b->n_pairs--;
	}
	if (p->several) {
		hash(b, node);
		b->n_hashed++;
	}
	return node;
}

/* The child of `parent` for the method, created if missing; 0 at the limit, or on failure, which is
 * stored in status. */
static uint32_t child_of(struct tw_tree_builder *b, uint32_t parent, uint32_t method)
{
	uint32_t node = expected_child(b, parent, method);

	if (node)
		return node;
	if (b->nodes[parent].several)
		node = slot_of(b, parent, method)->node;
	if (node)
		return remember(b, parent, node);
	if (b->n >= b->max_nodes)
		return 0;
	if (!make_room(b)) {
		b->status = TW_NOMEM;
		return 0;
	}
	return remember(b, parent, new_child(b, parent, method));
}

static bool reserve_path(struct tw_tree_builder *b)
{
	uint32_t *p;

	if (b->depth < b->cap_path)
		return true;
	p = tw_mem_resize(b->path, (size_t)b->cap_path * 2, sizeof *p);
	if (!p)
		return false;
	b->path = p;
	b->cap_path *= 2;
	return true;
}

/* Enters the node at `depth` below the open ones; 0 if the tree is full, or on failure. */
static uint32_t enter(struct tw_tree_builder *b, uint32_t depth, uint32_t method)
{
	uint32_t node;

	if (depth > b->depth && b->clipped == 0) {
		b->status = TW_BUG;
		return 0;
	}
	if (depth > b->depth) /* below a call without a node */
		return 0;
	b->depth = depth;
	if (!reserve_path(b)) {
		b->status = TW_NOMEM;
		return 0;
	}
	node = child_of(b, depth ? b->path[depth - 1] : 0, method);
	if (node)
		b->path[b->depth++] = node;
	return node;
}

static void add_cpu(struct tw_tree_builder *b, uint32_t node, int64_t cpu_ns)
{
	if (cpu_ns < 0)
		return;
	if (!b->cpu_plus_1)
		b->cpu_plus_1 = tw_mem_zalloc(b->cap, sizeof *b->cpu_plus_1);
	if (b->cpu_plus_1)
		b->cpu_plus_1[node] =
		        tw_sum_ns(b->cpu_plus_1[node] ? b->cpu_plus_1[node] : 1, cpu_ns);
	else
		b->status = TW_NOMEM;
}

static int64_t cpu_of(const struct tw_tree_builder *b, uint32_t node)
{
	return b->cpu_plus_1 ? b->cpu_plus_1[node] - 1 : -1;
}

static uint64_t count_of(const struct tw_tree_builder *b, uint32_t node)
{
	uint64_t high = b->count_high ? b->count_high[node] : 0;

	return high << 32 | b->nodes[node].count;
}

/* Calls of other trees, of which there may be more than a thread has. */
static void add_count(struct tw_tree_builder *b, uint32_t node, uint64_t count)
{
	uint64_t sum = count_of(b, node) + count;

	b->nodes[node].count = (uint32_t)sum;
	if (sum >> 32 && !b->count_high)
		b->count_high = tw_mem_zalloc(b->cap, sizeof *b->count_high);
	if (b->count_high)
		b->count_high[node] = (uint32_t)(sum >> 32);
	else if (sum >> 32)
		b->status = TW_NOMEM;
}

/* The low half of a count overflowed to 0. */
static void carry(struct tw_tree_builder *b, uint32_t node)
{
	b->nodes[node].count = UINT32_MAX;
	add_count(b, node, 1);
}

static void add_numbers(struct tw_tree_builder *b, uint32_t node, uint64_t count, int64_t total_ns,
        int64_t cpu_ns, int64_t max_ns)
{
	struct grown *g = &b->nodes[node];

	add_count(b, node, count);
	g->total_ns = tw_sum_ns(g->total_ns, total_ns);
	if (max_ns > g->max_ns)
		g->max_ns = max_ns;
	add_cpu(b, node, cpu_ns);
}

/* A root call without a node counts as time of node 0. */
static void add_rootless(struct tw_tree_builder *b, int64_t ns)
{
	b->nodes[0].total_ns = tw_sum_ns(b->nodes[0].total_ns, ns);
}

enum tw_status tw_tree_builder_add(struct tw_tree_builder *b, const struct tw_slice *s, size_t n)
{
	for (size_t i = 0; i < n && b->status == TW_OK; i++) {
		uint32_t node = enter(b, s[i].depth, s[i].method);
		struct grown *g = &b->nodes[node];

		if (node == 0) {
			b->clipped++;
			if (s[i].depth == 0)
				add_rootless(b, s[i].dur_ns);
			continue;
		}
		/* probably the next one on this level, while those below are added */
		__builtin_prefetch(&b->nodes[g->follower]);
		if (++g->count == 0)
			carry(b, node);
		g->total_ns = tw_sum_ns(g->total_ns, s[i].dur_ns);
		if (s[i].dur_ns > g->max_ns)
			g->max_ns = s[i].dur_ns;
		if (s[i].cpu_ns >= 0)
			add_cpu(b, node, s[i].cpu_ns);
	}
	return b->status;
}

enum tw_status tw_tree_builder_add_tree(struct tw_tree_builder *b, const struct tw_tree *t)
{
	b->depth = 0;
	add_rootless(b, t->nodes[0].self_ns);
	for (uint32_t i = 1; i < t->n && b->status == TW_OK; i++) {
		uint32_t node = enter(b, t->nodes[i].depth - 1, t->nodes[i].method);

		if (node) {
			add_numbers(b, node, t->nodes[i].count, t->nodes[i].total_ns,
			        t->nodes[i].cpu_ns, t->nodes[i].max_ns);
			continue;
		}
		b->clipped += t->nodes[i].count;
		if (t->nodes[i].depth == 1)
			add_rootless(b, t->nodes[i].total_ns);
	}
	b->depth = 0;
	return b->status;
}

enum tw_status tw_tree_builder_enter(struct tw_tree_builder *b, const struct tw_slice *s, size_t n)
{
	for (size_t i = 0; i < n && b->status == TW_OK; i++)
		(void)enter(b, s[i].depth, s[i].method);
	return b->status;
}

/* A caller is created before its callees, so one pass finds the node for each; 0 for those that do
 * not fit. */
static void add_all_grown(
        struct tw_tree_builder *b, const struct tw_tree_builder *from, uint32_t *node_of)
{
	node_of[0] = 0;
	for (uint32_t i = 1; i < from->n && b->status == TW_OK; i++) {
		const struct grown *g = &from->nodes[i];
		uint32_t parent = node_of[from->parents[i]];

		node_of[i] = parent || from->parents[i] == 0 ? child_of(b, parent, g->method) : 0;
		if (node_of[i]) {
			add_numbers(b, node_of[i], count_of(from, i), g->total_ns, cpu_of(from, i),
			        g->max_ns);
			continue;
		}
		b->clipped += count_of(from, i);
		if (from->parents[i] == 0)
			add_rootless(b, g->total_ns);
	}
}

enum tw_status tw_tree_builder_add_grown(
        struct tw_tree_builder *b, const struct tw_tree_builder *from)
{
	uint32_t *node_of = tw_mem_alloc(from->n, sizeof *node_of);

	if (!node_of)
		return b->status = TW_NOMEM;
	b->depth = 0;
	add_rootless(b, from->nodes[0].total_ns);
	add_all_grown(b, from, node_of);
	tw_mem_free(node_of);
	return b->status;
}

uint32_t tw_tree_builder_nodes(const struct tw_tree_builder *b)
{
	return b->n;
}

uint64_t tw_tree_builder_clipped(const struct tw_tree_builder *b)
{
	return b->clipped;
}

/* Children of the nodes that have several, gathered per parent: those of node i are
 * list[first[i] .. first[i + 1]). */
struct kids {
	uint32_t *first;
	struct kid {
		int64_t total_ns;
		uint32_t node, method;
	} * list;
};

TW_ORDER_BY(by_falling_total, struct kid, TW_FALLING(total_ns), TW_RISING(method))

static struct kid kid_of(const struct tw_tree_builder *b, uint32_t node)
{
	return (struct kid){b->nodes[node].total_ns, node, b->nodes[node].method};
}

/* Insertion sort for few children, as most nodes have. */
static void sort_kids(struct kid *k, uint32_t n)
{
	if (n > 16) {
		TW_SORT(k, n, by_falling_total);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct kid at = k[i];
		uint32_t to = i;

		for (; to > 0 && by_falling_total(&k[to - 1], &at) > 0; to--)
			k[to] = k[to - 1];
		k[to] = at;
	}
}

/* The list takes the place of the hash, which has at least 16 bytes per child. */
static bool gather(struct tw_tree_builder *b, struct kids *k)
{
	k->first = tw_mem_zalloc((size_t)b->n + 2, sizeof *k->first);
	k->list = (struct kid *)(void *)b->slots;
	if (!k->first)
		return false;
	for (uint32_t i = 1; i < b->n; i++)
		k->first[b->parents[i] + 2] += b->nodes[b->parents[i]].several;
	for (uint32_t i = 2; i < b->n + 2; i++)
		k->first[i] += k->first[i - 1];
	for (uint32_t i = 1; i < b->n; i++)
		if (b->nodes[b->parents[i]].several)
			k->list[k->first[b->parents[i] + 1]++] = kid_of(b, i);
	for (uint32_t i = 0; i < b->n; i++)
		if (b->nodes[i].several)
			sort_kids(k->list + k->first[i], k->first[i + 1] - k->first[i]);
	return true;
}

static void place(struct tw_tree_node *out, const struct tw_tree_builder *b, uint32_t node,
        uint32_t parent, uint32_t depth)
{
	const struct grown *g = &b->nodes[node];

	*out = (struct tw_tree_node){
	        .parent = parent,
	        .method = g->method,
	        .subtree = 1,
	        .depth = depth,
	        .count = count_of(b, node),
	        .total_ns = g->total_ns,
	        .self_ns = g->total_ns,
	        .cpu_ns = cpu_of(b, node),
	        .max_ns = g->max_ns,
	};
}

/* `todo` is the stack of siblings still to visit, with the placed parent of each. */
static void lay_out(const struct tw_tree_builder *b, const struct kids *k, struct tw_tree_node *out,
        uint32_t (*todo)[2])
{
	uint32_t n_todo = 0;
	uint32_t n = 0;
	uint32_t node = 0;
	uint32_t parent = 0;

	for (;;) {
		const struct grown *g = &b->nodes[node];
		uint32_t at = n++;

		place(&out[at], b, node, parent, at ? out[parent].depth + 1 : 0);
		node = g->last_child;
		parent = at;
		if (g->several) {
			const struct kid *kids = &k->list[k->first[g - b->nodes]];
			uint32_t i = k->first[g - b->nodes + 1] - k->first[g - b->nodes];

			for (node = kids[0].node; --i > 0;) {
				todo[n_todo][0] = kids[i].node;
				todo[n_todo++][1] = at;
			}
		} else if (node && b->nodes[node].follower) {
			struct kid pair[] = {kid_of(b, node), kid_of(b, b->nodes[node].follower)};
			uint32_t second = by_falling_total(&pair[0], &pair[1]) < 0;

			node = pair[!second].node;
			todo[n_todo][0] = pair[second].node;
			todo[n_todo++][1] = at;
		}
		if (node && n_todo) /* the next sibling, once the first child's subtree is done */
			__builtin_prefetch(&b->nodes[todo[n_todo - 1][0]]);
		if (node)
			continue;
		if (n_todo == 0)
			break;
		node = todo[--n_todo][0];
		parent = todo[n_todo][1];
		if (n_todo)
			__builtin_prefetch(&b->nodes[todo[n_todo - 1][0]]);
	}
	while (--n > 0) {
		struct tw_tree_node *caller = &out[out[n].parent];

		caller->subtree += out[n].subtree;
		caller->self_ns = tw_sum_ns(caller->self_ns, -out[n].total_ns);
	}
}

enum tw_status tw_tree_builder_finish_into(struct tw_tree_builder *b, struct tw_tree_node *nodes)
{
	struct kids k = {0};
	uint32_t(*todo)[2] = NULL;

	if (b->status != TW_OK)
		return b->status;
	for (uint32_t i = 1; i < b->n; i++)
		if (b->parents[i] == 0)
			b->nodes[0].total_ns =
			        tw_sum_ns(b->nodes[0].total_ns, b->nodes[i].total_ns);
	if (gather(b, &k))
		todo = tw_mem_alloc((size_t)b->n_hashed + b->n_pairs + 1, sizeof *todo);
	if (todo)
		lay_out(b, &k, nodes, todo);
	else
		b->status = TW_NOMEM;
	tw_mem_free(k.first);
	tw_mem_free(todo);
	return b->status;
}

enum tw_status tw_tree_builder_finish(
        struct tw_tree_builder *b, struct tw_arena *a, struct tw_tree *ret)
{
	struct tw_tree_node *nodes;
	enum tw_status st;

	if (b->status != TW_OK)
		return b->status;
	nodes = tw_arena_alloc(a, b->n, sizeof *nodes);
	st = nodes ? tw_tree_builder_finish_into(b, nodes) : TW_NOMEM;
	if (st == TW_OK)
		*ret = (struct tw_tree){nodes, b->n};
	return st;
}
