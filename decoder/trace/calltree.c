/*
 * calltree.c - builds a merged call tree from slices, and sorts it.
 *
 * While building, a node with two siblings or more is found by (parent, method) in an
 * open-addressing hash, any other one from its parent; the path of the open slices is a stack of
 * nodes.  A finished tree is read in pre-order, with the children of each node sorted by falling
 * total time when the node is read.  A linked tree is not sorted, and its nodes are read in any
 * order: each has a list of its children and the size of its subtree.  A full tree takes no new
 * nodes: a call without a node counts as its caller's self time, and is counted as clipped.  The
 * stored form is in calltree_store.c.
 */
#include "decoder/trace/calltree.h"

#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/base/sum.h"

#define NODE_MAX (UINT32_MAX >> 1)
enum { FIRST_SLOTS = 1024 };

/* Half a cache line, which every call on the node accesses. */
struct grown {
	uint32_t method, parent;
	uint32_t last_child : 31; /* most calls repeat the previous child; 0: none */
	uint32_t several : 1;     /* has three children or more, which are in the hash; an only
	                           * child is last_child, of two the other one is its follower */
	uint32_t follower : 31;   /* or the order repeats: the sibling called after this one last
	                           * time */
	uint32_t is_wide : 1;     /* max_ns is an index of `wide` */
	uint32_t count;           /* the low half */
	uint32_t max_ns;
	int64_t total_ns;
};

struct todo { /* a node still to be read, copied when its caller is read */
	uint32_t node, method, depth;
	uint32_t callees : 31; /* the first one; 0: none */
	uint32_t is_wide : 1;
	uint32_t count, max_ns;
	int64_t total_ns;
};

struct slot {          /* includes the method, so that most non-matching nodes need not be read */
	uint32_t node; /* 0: free, as node 0 is never looked up */
	uint32_t method;
};

struct tw_tree_builder {
	uint64_t max_nodes;
	struct grown *nodes;
	int64_t *cpu_plus_1;  /* 0: unknown; NULL: unknown for all nodes */
	uint32_t *count_high; /* NULL: all 0 */
	int64_t *wide;        /* longest calls of 2^32 ns or more */
	uint32_t n_wide, cap_wide;
	uint32_t n, cap;
	struct slot *slots; /* node by hash of parent and method */
	uint32_t n_slots;   /* in use: power of two, at least twice n_hashed */
	uint32_t cap_slots;
	uint32_t n_hashed;
	uint32_t *path; /* node of the open slice at each depth, from index 1 on; first node 0.
	                 * When the tree is laid out: the same of the output */
	uint32_t depth, cap_path;
	struct todo *todo; /* while the tree is read: a stack, the next node on top */
	uint32_t n_todo, cap_todo;
	uint32_t *children; /* of a linked tree: of one node after the other */
	uint64_t clipped;   /* slices without a node */
	enum tw_status status;
};

void tw_tree_builder_reset(struct tw_tree_builder *b, uint64_t max_nodes)
{
	b->max_nodes = max_nodes < NODE_MAX / 2 ? max_nodes : NODE_MAX / 2;
	b->nodes[0] = (struct grown){.method = TW_NO_METHOD};
	b->n = 1;
	b->n_wide = 0;
	tw_mem_free(b->cpu_plus_1);
	b->cpu_plus_1 = NULL;
	tw_mem_free(b->count_high);
	b->count_high = NULL;
	b->n_slots = FIRST_SLOTS;
	memset(b->slots, 0, b->n_slots * sizeof *b->slots);
	b->n_hashed = 0;
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
	b->slots = tw_mem_alloc(b->cap_slots, sizeof *b->slots);
	b->path = tw_mem_alloc(b->cap_path, sizeof *b->path);
	if (!b->nodes || !b->slots || !b->path)
		return tw_tree_builder_free(b);
	b->path[0] = 0;
	tw_tree_builder_reset(b, max_nodes);
	return b;
}

bool tw_tree_builder_reserve(struct tw_tree_builder *b, uint64_t nodes)
{
	const uint32_t cap = (uint32_t)(nodes < b->max_nodes ? nodes : b->max_nodes);
	struct grown *space;

	if (cap <= b->cap)
		return true;
	space = tw_mem_alloc_to_grow(cap * sizeof *space);
	if (!space)
		return false;
	space[0] = b->nodes[0];
	tw_mem_free(b->nodes);
	b->nodes = space;
	b->cap = cap;
	return true;
}

struct tw_tree_builder *tw_tree_builder_free(struct tw_tree_builder *b)
{
	if (!b)
		return NULL;
	tw_mem_free(b->nodes);
	tw_mem_free(b->cpu_plus_1);
	tw_mem_free(b->count_high);
	tw_mem_free(b->wide);
	tw_mem_free(b->slots);
	tw_mem_free(b->path);
	tw_mem_free(b->todo);
	tw_mem_free(b->children);
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
		if (s->method == method && b->nodes[s->node].parent == parent)
			break;
		at = (at + 1) & (b->n_slots - 1);
	}
	return s;
}

static void hash(struct tw_tree_builder *b, uint32_t node)
{
	uint32_t method = b->nodes[node].method;

	*slot_of(b, b->nodes[node].parent, method) = (struct slot){node, method};
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
		if (b->nodes[b->nodes[i].parent].several)
			hash(b, i);
	return true;
}

/* Resizes an array with an element per node, if there is one. */
static bool resize(void **p, uint32_t cap, size_t size)
{
	void *q;

	if (!*p)
		return true;
	q = tw_mem_resize(*p, cap, size);
	tw_mem_will_fill(q, cap * size);
	if (q)
		*p = q;
	return q != NULL;
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
		        !resize((void **)&b->cpu_plus_1, cap, sizeof *b->cpu_plus_1) ||
		        !resize((void **)&b->count_high, cap, sizeof *b->count_high))
			return false;
		b->cap = cap;
	}
	return b->n_hashed + 3 < b->n_slots / 2 || rehash(b);
}

static uint32_t remember(struct tw_tree_builder *b, uint32_t parent, uint32_t node)
{
	uint32_t last = b->nodes[parent].last_child;

	if (last)
		b->nodes[last].follower = node & NODE_MAX;
	b->nodes[parent].last_child = node & NODE_MAX;
	return node;
}

/* Predicts the child without the hash, whose slots are seldom in the cache; 0: no prediction.
 * `last` needs no check, as node 0 has no method and no follower. */
static inline uint32_t expected_child(struct grown *nodes, uint32_t parent, uint32_t method)
{
	uint32_t last = nodes[parent].last_child;
	uint32_t next;

	if (nodes[last].method == method)
		return last;
	next = nodes[last].follower;
	if (next == 0 || nodes[next].method != method)
		return 0;
	nodes[parent].last_child = next & NODE_MAX;
	return next;
}

/* One or two children are found by prediction and need no hash entry, and most nodes have no
 * more. */
static uint32_t new_child(struct tw_tree_builder *b, uint32_t parent, uint32_t method)
{
	struct grown *p = &b->nodes[parent];
	uint32_t last = p->last_child;
	uint32_t node = b->n++;

	b->nodes[node] = (struct grown){.method = method, .parent = parent};
	if (b->cpu_plus_1)
		b->cpu_plus_1[node] = 0;
	if (b->count_high)
		b->count_high[node] = 0;
	if (last && !p->several) {
		uint32_t other = b->nodes[last].follower;

		if (!other) {
			b->nodes[node].follower = last & NODE_MAX;
			return node;
		}
		p->several = 1;
		hash(b, last);
		hash(b, other);
		b->n_hashed += 2;
	}
	if (p->several) {
		hash(b, node);
		b->n_hashed++;
	}
	return node;
}

/* The child of `parent` for the method, which was not predicted; created if missing. */
static uint32_t other_child(struct tw_tree_builder *b, uint32_t parent, uint32_t method)
{
	uint32_t node = 0;

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

/* 0 at the limit, or on failure, which is stored in status. */
static uint32_t child_of(struct tw_tree_builder *b, uint32_t parent, uint32_t method)
{
	uint32_t node = expected_child(b->nodes, parent, method);

	return node ? node : other_child(b, parent, method);
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
	if (!TW_GROW_MEM(b->path, depth + 1, b->cap_path)) {
		b->status = TW_NOMEM;
		return 0;
	}
	node = child_of(b, b->path[depth], method);
	if (node)
		b->path[++b->depth] = node;
	return node;
}

/* An array parallel to the nodes, 0 for those so far: the rest is not touched, as it may not be
 * needed. */
static void *zeros(const struct tw_tree_builder *b, size_t size)
{
	void *p = tw_mem_alloc(b->cap, size);

	if (p)
		memset(p, 0, b->n * size);
	return p;
}

static void add_cpu(struct tw_tree_builder *b, uint32_t node, int64_t cpu_ns)
{
	if (cpu_ns < 0)
		return;
	if (!b->cpu_plus_1)
		b->cpu_plus_1 = zeros(b, sizeof *b->cpu_plus_1);
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

static uint32_t count_high(const struct tw_tree_builder *b, uint32_t node)
{
	return b->count_high ? b->count_high[node] : 0;
}

static uint64_t count_of(const struct tw_tree_builder *b, uint32_t node)
{
	return (uint64_t)count_high(b, node) << 32 | b->nodes[node].count;
}

/* Calls of other trees, of which there may be more than a thread has. */
static void add_count(struct tw_tree_builder *b, uint32_t node, uint64_t count)
{
	uint64_t sum = count_of(b, node) + count;

	b->nodes[node].count = (uint32_t)sum;
	if (sum >> 32 && !b->count_high)
		b->count_high = zeros(b, sizeof *b->count_high);
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

static int64_t longest_of(const struct tw_tree_builder *b, bool is_wide, uint32_t max_ns)
{
	return is_wide ? b->wide[max_ns] : max_ns;
}

static void raise_wide(struct tw_tree_builder *b, struct grown *g, int64_t max_ns)
{
	if (g->is_wide) {
		if (max_ns > b->wide[g->max_ns])
			b->wide[g->max_ns] = max_ns;
	} else if (TW_GROW_MEM(b->wide, b->n_wide, b->cap_wide)) {
		b->wide[b->n_wide] = max_ns;
		g->max_ns = b->n_wide++;
		g->is_wide = 1;
	} else {
		b->status = TW_NOMEM;
	}
}

/* If max_ns is an index, it is less than any longer call. */
static inline void raise_longest(struct tw_tree_builder *b, struct grown *g, int64_t max_ns)
{
	if (max_ns <= g->max_ns)
		return;
	if (max_ns <= UINT32_MAX && !g->is_wide)
		g->max_ns = (uint32_t)max_ns;
	else
		raise_wide(b, g, max_ns);
}

static void add_numbers(struct tw_tree_builder *b, uint32_t node, uint64_t count, int64_t total_ns,
        int64_t cpu_ns, int64_t max_ns)
{
	struct grown *g = &b->nodes[node];

	add_count(b, node, count);
	g->total_ns = tw_sum_ns(g->total_ns, total_ns);
	raise_longest(b, g, max_ns);
	add_cpu(b, node, cpu_ns);
}

/* A root call without a node counts as time of node 0. */
static void add_rootless(struct tw_tree_builder *b, int64_t ns)
{
	b->nodes[0].total_ns = tw_sum_ns(b->nodes[0].total_ns, ns);
}

static inline void add_call(struct tw_tree_builder *b, uint32_t node, const struct tw_slice *s)
{
	struct grown *g = &b->nodes[node];

	/* probably the next one on this level, while those below are added */
	__builtin_prefetch(&b->nodes[g->follower]);
	if (++g->count == 0)
		carry(b, node);
	g->total_ns = tw_sum_ns(g->total_ns, s->dur_ns);
	raise_longest(b, g, s->dur_ns);
	if (s->cpu_ns >= 0)
		add_cpu(b, node, s->cpu_ns);
}

static void add_clipped(struct tw_tree_builder *b, const struct tw_slice *s)
{
	b->clipped++;
	if (s->depth == 0)
		add_rootless(b, s->dur_ns);
}

enum tw_status tw_tree_builder_add(struct tw_tree_builder *b, const struct tw_slice *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t depth = s[i].depth;
		uint32_t node = 0;

		if (depth <= b->depth && depth + 1 < b->cap_path)
			node = expected_child(b->nodes, b->path[depth], s[i].method);
		if (node) {
			b->depth = depth + 1;
			b->path[depth + 1] = node;
			add_call(b, node, &s[i]);
			continue;
		}
		if (b->status != TW_OK)
			return b->status;
		node = enter(b, depth, s[i].method);
		if (node)
			add_call(b, node, &s[i]);
		else
			add_clipped(b, &s[i]);
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

enum tw_status tw_tree_builder_add_time(
        struct tw_tree_builder *b, const struct tw_slice *s, int64_t ns)
{
	const uint32_t node = b->status == TW_OK ? enter(b, s->depth, s->method) : 0;

	if (node)
		b->nodes[node].total_ns = tw_sum_ns(b->nodes[node].total_ns, ns);
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
		uint32_t parent = node_of[g->parent];

		node_of[i] = parent || g->parent == 0 ? child_of(b, parent, g->method) : 0;
		if (node_of[i]) {
			add_numbers(b, node_of[i], count_of(from, i), g->total_ns, cpu_of(from, i),
			        longest_of(from, g->is_wide, g->max_ns));
			continue;
		}
		b->clipped += count_of(from, i);
		if (g->parent == 0)
			add_rootless(b, g->total_ns);
	}
}

enum tw_status tw_tree_builder_add_grown(
        struct tw_tree_builder *b, const struct tw_tree_builder *from)
{
	uint32_t *node_of = tw_mem_alloc(from->n, sizeof *node_of);

	/* the tree is read by a path of its own depth */
	if (!node_of || !TW_RESERVE(NULL, b->path, 0, from->cap_path, b->cap_path)) {
		tw_mem_free(node_of);
		return b->status = TW_NOMEM;
	}
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

/* --- reading the tree --- */

/* Makes the children of a node a list: last_child, then its followers.  A caller is created before
 * its callees.  Returns the number of nodes without children. */
static uint32_t link_children(struct tw_tree_builder *b)
{
	uint32_t leaves = b->n;

	b->nodes[0].last_child = 0;
	for (uint32_t i = 1; i < b->n; i++) {
		struct grown *g = &b->nodes[i];
		struct grown *caller = &b->nodes[g->parent];

		g->last_child = 0;
		g->follower = caller->last_child;
		leaves -= caller->last_child == 0;
		caller->last_child = i & NODE_MAX;
	}
	return leaves;
}

static inline struct todo todo_of(const struct tw_tree_builder *b, uint32_t node, uint32_t depth)
{
	const struct grown *g = &b->nodes[node];

	return (struct todo){
	        .node = node,
	        .method = g->method,
	        .depth = depth,
	        .callees = g->last_child,
	        .is_wide = g->is_wide,
	        .count = g->count,
	        .max_ns = g->max_ns,
	        .total_ns = g->total_ns,
	};
}

/* The hash is not needed to read the tree, and is large. */
static bool shrink_hash(struct tw_tree_builder *b)
{
	tw_mem_free(b->slots);
	b->slots = tw_mem_alloc(FIRST_SLOTS, sizeof *b->slots);
	b->cap_slots = FIRST_SLOTS;
	return b->slots != NULL;
}

/* A node is replaced by its children, so there are never more to do than nodes without any. */
enum tw_status tw_tree_builder_end(struct tw_tree_builder *b)
{
	uint32_t leaves;

	if (b->status != TW_OK)
		return b->status;
	if (b->cap_slots > FIRST_SLOTS && !shrink_hash(b))
		return b->status = TW_NOMEM;
	leaves = link_children(b);
	if (b->cap_todo < leaves) { /* most of it is never touched */
		tw_mem_free(b->todo);
		b->todo = tw_mem_alloc(leaves, sizeof *b->todo);
		b->cap_todo = b->todo ? leaves : 0;
	}
	if (!b->todo)
		return b->status = TW_NOMEM;
	b->todo[0] = todo_of(b, 0, 0);
	b->n_todo = 1;
	return TW_OK;
}

TW_ORDER_BY(by_rising_total, struct todo, TW_RISING(total_ns), TW_FALLING(method))

/* The heaviest is the next one to be read.  Insertion sort for few, as most nodes have. */
static void sort_todo(struct todo *t, uint32_t n)
{
	if (n > 16) {
		TW_SORT(t, n, by_rising_total);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct todo moved = t[i];
		uint32_t at = i;

		for (; at > 0 && by_rising_total(&t[at - 1], &moved) > 0; at--)
			t[at] = t[at - 1];
		t[at] = moved;
	}
}

/* Takes the next node, and puts its children on the stack. */
static inline void read_node(
        struct tw_tree_builder *b, struct tw_tree_node *ret, int64_t *ret_longest_callee_ns)
{
	struct todo *const first = &b->todo[--b->n_todo];
	const struct todo t = *first;
	struct todo *next = first;
	int64_t all_ns = t.total_ns;
	int64_t self_ns = t.total_ns;
	int64_t longest_ns = 0;

	for (uint32_t i = t.callees; i; i = b->nodes[i].follower) {
		int64_t callee_ns;

		*next = todo_of(b, i, t.depth + 1);
		callee_ns = longest_of(b, next->is_wide, next->max_ns);
		all_ns = tw_sum_ns(all_ns, next->total_ns);
		self_ns = tw_sum_ns(self_ns, -next->total_ns);
		longest_ns = callee_ns > longest_ns ? callee_ns : longest_ns;
		__builtin_prefetch(&b->nodes[next++->callees]);
	}
	b->n_todo += (uint32_t)(next - first);
	if (next - first > 1)
		sort_todo(first, (uint32_t)(next - first));
	*ret_longest_callee_ns = longest_ns;
	*ret = (struct tw_tree_node){
	        .method = t.method,
	        .subtree = 1,
	        .depth = t.depth,
	        .count = (uint64_t)count_high(b, t.node) << 32 | t.count,
	        .total_ns = t.node ? t.total_ns : all_ns, /* of node 0, those of no root so far */
	        .self_ns = t.node ? self_ns : t.total_ns,
	        .cpu_ns = cpu_of(b, t.node),
	        .max_ns = longest_of(b, t.is_wide, t.max_ns),
	};
}

uint32_t tw_tree_builder_read(struct tw_tree_builder *b, struct tw_tree_node *nodes,
        int64_t *longest_callee_ns, uint32_t max)
{
	uint32_t n = 0;

	for (; n < max && b->n_todo; n++)
		read_node(b, &nodes[n], &longest_callee_ns[n]);
	return n;
}

/* Nodes whose subtree is complete, down to the given depth, get its size: it ends before node
 * `end`. */
static void close_nodes(
        struct tw_tree_builder *b, struct tw_tree_node *nodes, uint32_t depth, uint32_t end)
{
	while (b->depth > depth) {
		const uint32_t node = b->path[--b->depth];

		nodes[node].subtree = end - node;
	}
}

/* Sets parents.  The path has the open nodes of the output. */
static void link_nodes(
        struct tw_tree_builder *b, struct tw_tree_node *nodes, uint32_t from, uint32_t end)
{
	for (uint32_t i = from; i < end; i++) {
		close_nodes(b, nodes, nodes[i].depth, i);
		nodes[i].parent = b->depth ? b->path[b->depth - 1] : 0;
		b->path[b->depth++] = i;
	}
}

enum tw_status tw_tree_builder_finish_into(struct tw_tree_builder *b, struct tw_tree_node *nodes)
{
	enum { AT_ONCE = 64 };
	int64_t longest_ns[AT_ONCE];
	uint32_t n = 0;
	uint32_t more;

	if (tw_tree_builder_end(b) != TW_OK)
		return b->status;
	b->depth = 0;
	while ((more = tw_tree_builder_read(b, nodes + n, longest_ns, AT_ONCE)) > 0) {
		link_nodes(b, nodes, n, n + more);
		n += more;
	}
	close_nodes(b, nodes, 0, n);
	return TW_OK;
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

/* --- reading the tree unsorted --- */

struct family {
	uint32_t children; /* their number, then the place of the next one */
	uint32_t below;    /* nodes */
};

/* From the end, all descendants of a node come before it, as a caller is created before its
 * callees.
 */
static void count_families(const struct tw_tree_builder *b, struct family *of)
{
	for (uint32_t i = b->n; i-- > 1;) {
		struct family *caller = &of[b->nodes[i].parent];

		caller->children++;
		caller->below += of[i].below + 1;
	}
}

/* From now on, a node's last_child is the place of its first child, follower the number of its
 * children, and parent the size of its subtree. */
static void list_children(struct tw_tree_builder *b, struct family *of)
{
	int64_t roots_ns = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		struct grown *g = &b->nodes[i];
		const uint32_t n = of[i].children;

		if (i)
			b->children[of[g->parent].children++] = i;
		if (i && g->parent == 0)
			roots_ns = tw_sum_ns(roots_ns, g->total_ns);
		of[i].children = at;
		g->last_child = at & NODE_MAX;
		g->follower = n & NODE_MAX;
		g->parent = of[i].below + 1;
		at += n;
	}
	b->nodes[0].total_ns = tw_sum_ns(b->nodes[0].total_ns, roots_ns);
}

/* Space made ahead counts as memory in use. */
static void shrink_nodes(struct tw_tree_builder *b)
{
	if (resize((void **)&b->nodes, b->n, sizeof *b->nodes) &&
	        resize((void **)&b->cpu_plus_1, b->n, sizeof *b->cpu_plus_1) &&
	        resize((void **)&b->count_high, b->n, sizeof *b->count_high))
		b->cap = b->n;
}

enum tw_status tw_tree_builder_link(struct tw_tree_builder *b)
{
	struct family *of;

	if (b->status != TW_OK)
		return b->status;
	if (b->cap_slots > FIRST_SLOTS && !shrink_hash(b))
		return b->status = TW_NOMEM;
	shrink_nodes(b);
	of = tw_mem_zalloc(b->n, sizeof *of);
	b->children = tw_mem_alloc(b->n, sizeof *b->children);
	if (of && b->children) {
		count_families(b, of);
		list_children(b, of);
	} else {
		b->status = TW_NOMEM;
	}
	tw_mem_free(of);
	return b->status;
}

struct tw_linked_node tw_tree_builder_linked(const struct tw_tree_builder *b, uint32_t node)
{
	const struct grown *g = &b->nodes[node];

	return (struct tw_linked_node){
	        .method = g->method,
	        .subtree = g->parent,
	        .count = count_of(b, node),
	        .total_ns = g->total_ns,
	        .max_ns = longest_of(b, g->is_wide, g->max_ns),
	};
}

uint32_t tw_tree_builder_children(
        const struct tw_tree_builder *b, uint32_t node, const uint32_t **ret)
{
	*ret = b->children + b->nodes[node].last_child;
	return b->nodes[node].follower;
}
