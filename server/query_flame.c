/*
 * query_flame.c - a top-down flame graph out of a call tree: the heaviest nodes, and what is
 * left out counted honestly.
 *
 * A node's value is never more than its parent's, so the max_nodes heaviest
 * nodes hang together.  Their smallest value is found by a selection over the
 * values; what is lighter becomes one `other` child per parent.
 */
#include "query.h"

#include <string.h>

struct weights {
	int64_t *value, *self; /* per tree node */
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a flame graph");
}

/* Calls add up like time does: a node's value is its own calls and all below it. */
static bool weigh(
        const struct tw_tree *t, enum tw_flame_metric metric, struct tw_arena *a, struct weights *w)
{
	w->value = tw_arena_alloc(a, t->n, sizeof *w->value);
	w->self = tw_arena_alloc(a, t->n, sizeof *w->self);
	if (!w->value || !w->self)
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];

		w->self[i] = metric == TW_METRIC_WALL ? n->self_ns : (int64_t)n->count;
		w->value[i] = metric == TW_METRIC_WALL ? n->total_ns : (int64_t)n->count;
	}
	if (metric == TW_METRIC_COUNT)
		for (uint32_t i = t->n; i-- > 1;)
			w->value[t->nodes[i].parent] += w->value[i];
	return true;
}

static enum tw_status find_root(
        const struct tw_tree *t, const struct tw_flame_query *q, uint32_t *ret, struct tw_err *err)
{
	uint32_t at = 0;

	for (size_t i = 0; i < q->n_root; i++) {
		uint32_t end = at + t->nodes[at].subtree;
		uint32_t child = at + 1;

		while (child < end && t->nodes[child].method != q->root[i])
			child += t->nodes[child].subtree;
		if (child >= end)
			return tw_fail(
			        err, TW_NOT_FOUND, TW_NO_OFFSET, "root: the view has no such path");
		at = child;
	}
	*ret = at;
	return TW_OK;
}

/* The k-th largest of v[0..n), k from 1 (Hoare's selection); v is reordered. */
static int64_t kth_largest(int64_t *v, uint32_t n, uint32_t k)
{
	int64_t low = 0;
	int64_t high = (int64_t)n - 1;
	int64_t want = (int64_t)k - 1;

	while (low < high) {
		int64_t pivot = v[low + (high - low) / 2];
		int64_t i = low;
		int64_t j = high;

		while (i <= j) {
			while (v[i] > pivot)
				i++;
			while (v[j] < pivot)
				j--;
			if (i <= j) {
				int64_t swap = v[i];

				v[i++] = v[j];
				v[j--] = swap;
			}
		}
		if (want > j && want < i)
			return v[want];
		if (want <= j)
			high = j;
		else
			low = i;
	}
	return v[want];
}

struct cut {
	int64_t threshold; /* keep what is heavier, and of what is equal the first `equal` */
	uint32_t equal;
};

static bool cut_keeps(struct cut *c, int64_t value)
{
	if (value > c->threshold)
		return true;
	if (value < c->threshold || c->equal == 0)
		return false;
	c->equal--;
	return true;
}

static bool find_cut(const int64_t *value, uint32_t first, uint32_t n, uint32_t max_nodes,
        struct tw_arena *a, struct cut *ret)
{
	int64_t *copy;
	uint32_t heavier = 0;

	*ret = (struct cut){-1, 0};
	if (n <= max_nodes)
		return true;
	copy = tw_arena_alloc(a, n, sizeof *copy);
	if (!copy)
		return false;
	memcpy(copy, value + first, n * sizeof *copy);
	ret->threshold = kth_largest(copy, n, max_nodes);
	for (uint32_t i = 0; i < n; i++)
		heavier += value[first + i] > ret->threshold;
	ret->equal = max_nodes - heavier;
	return true;
}

/* Marks the subtrees of the root's `skip` heaviest children with a weight of -1, which no node
 * has; by the same order in which they were kept when the rest was asked for. */
static enum tw_status skip_children(const struct tw_tree *t, uint32_t root, uint32_t skip,
        struct tw_arena *a, struct weights *w, struct tw_err *err)
{
	uint32_t end = root + t->nodes[root].subtree;
	int64_t *values;
	uint32_t n = 0;
	struct cut cut;

	if (skip == 0)
		return TW_OK;
	values = tw_arena_alloc(a, t->nodes[root].subtree, sizeof *values);
	if (!values)
		return no_memory(err);
	for (uint32_t i = root + 1; i < end; i += t->nodes[i].subtree)
		values[n++] = w->value[i];
	if (skip >= n)
		return tw_fail(
		        err, TW_NOT_FOUND, TW_NO_OFFSET, "skip: the root has %u children", n);
	if (!find_cut(values, 0, n, skip, a, &cut))
		return no_memory(err);
	for (uint32_t i = root + 1; i < end; i += t->nodes[i].subtree) {
		if (!cut_keeps(&cut, w->value[i]))
			continue;
		for (uint32_t k = i; k < i + t->nodes[i].subtree; k++)
			w->value[k] = -1;
	}
	return TW_OK;
}

struct cutter {
	const struct tw_tree *tree;
	struct weights w;
	struct cut cut;
	struct tw_flame_node *out;
	uint32_t n, cap;
	struct {                   /* a kept node whose children are being visited */
		uint32_t out, end; /* in out; tree index behind its subtree */
		struct tw_flame_node rest;
	} * open;
	uint32_t depth;
};

static void close_one(struct cutter *c)
{
	const struct tw_flame_node *rest = &c->open[--c->depth].rest;

	if (rest->others)
		c->out[c->n++] = *rest;
}

static void open_one(struct cutter *c, uint32_t node)
{
	const struct tw_tree_node *n = &c->tree->nodes[node];
	uint32_t parent = c->depth ? c->open[c->depth - 1].out : 0;

	c->out[c->n] = (struct tw_flame_node){
	        .parent = parent,
	        .method = n->method,
	        .depth = c->depth,
	        .value = c->w.value[node],
	        .self = c->w.self[node],
	        .count = n->count,
	        .max_ns = n->max_ns,
	};
	c->open[c->depth].out = c->n++;
	c->open[c->depth].end = node + n->subtree;
	c->open[c->depth].rest = (struct tw_flame_node){
	        .method = TW_NO_METHOD, .parent = c->open[c->depth].out, .depth = c->depth + 1};
	c->depth++;
}

static void leave_out(struct cutter *c, uint32_t node)
{
	struct tw_flame_node *rest = &c->open[c->depth - 1].rest;

	rest->others += c->tree->nodes[node].subtree;
	rest->value += c->w.value[node];
	rest->self += c->w.value[node];
	rest->count += c->tree->nodes[node].count;
	if (c->tree->nodes[node].max_ns > rest->max_ns)
		rest->max_ns = c->tree->nodes[node].max_ns;
}

static void walk(struct cutter *c, uint32_t root)
{
	uint32_t end = root + c->tree->nodes[root].subtree;
	uint32_t at = root + 1;

	open_one(c, root);
	while (at < end) {
		while (c->open[c->depth - 1].end <= at)
			close_one(c);
		if (c->w.value[at] < 0) {
			at += c->tree->nodes[at].subtree;
		} else if (cut_keeps(&c->cut, c->w.value[at])) {
			open_one(c, at++);
		} else {
			leave_out(c, at);
			at += c->tree->nodes[at].subtree;
		}
	}
	while (c->depth)
		close_one(c);
}

/* The root as the rest that it stands for: `below` nodes. */
static void make_rest(struct cutter *c, uint32_t root, uint32_t below)
{
	const struct tw_tree *t = c->tree;
	struct tw_flame_node rest = {.method = TW_NO_METHOD, .others = below};

	for (uint32_t i = root + 1; i < root + t->nodes[root].subtree; i += t->nodes[i].subtree) {
		if (c->w.value[i] < 0)
			continue;
		rest.value += c->w.value[i];
		rest.count += t->nodes[i].count;
		if (t->nodes[i].max_ns > rest.max_ns)
			rest.max_ns = t->nodes[i].max_ns;
	}
	c->out[0] = rest;
}

static uint32_t height(const struct tw_tree *t, uint32_t root)
{
	uint32_t most = 0;

	for (uint32_t i = root; i < root + t->nodes[root].subtree; i++)
		if (t->nodes[i].depth - t->nodes[root].depth > most)
			most = t->nodes[i].depth - t->nodes[root].depth;
	return most + 2;
}

enum tw_status tw_query_flame(const struct tw_tree *t, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct cutter c = {.tree = t};
	uint32_t root = 0;
	uint32_t below = 0;
	enum tw_status st = find_root(t, q, &root, err);

	(void)deadline; /* linear in the tree, which was bounded when it was made */
	if (st != TW_OK)
		return st;
	if (!weigh(t, q->metric, a, &c.w))
		return no_memory(err);
	st = skip_children(t, root, q->skip, a, &c.w, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = root + 1; i < root + t->nodes[root].subtree; i++)
		below += c.w.value[i] >= 0;
	if (!find_cut(c.w.value, root + 1, t->nodes[root].subtree - 1, q->max_nodes, a, &c.cut))
		return no_memory(err);
	/* a rest per kept node at most */
	c.cap = 2 * ((below < q->max_nodes ? below : q->max_nodes) + 1);
	c.out = tw_arena_alloc(a, c.cap, sizeof *c.out);
	c.open = tw_arena_alloc(a, height(t, root), sizeof *c.open);
	if (!c.out || !c.open)
		return no_memory(err);
	walk(&c, root);
	if (q->skip)
		make_rest(&c, root, below);
	*ret = (struct tw_flame){.nodes = c.out, .n = c.n, .total_nodes = below};
	return TW_OK;
}
