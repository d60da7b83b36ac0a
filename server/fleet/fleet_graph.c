/*
 * fleet_graph.c - adds call trees to a graph of two sides, and converts one side to a call tree.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "server/fleet/fleet_tree.h"
#include "server/stats/rollup_tree.h"

/* --- adding --- */

/* Ensures capacity for the values of one more node. */
static bool space(struct tw_fleet_graph *g)
{
	if (g->paths.n <= g->cap)
		return true;
	for (int side = 0; side < TW_SIDES; side++) {
		struct tw_fleet_value *more =
		        tw_arena_zalloc(g->paths.arena, g->paths.cap, sizeof *more);

		if (!more)
			return false;
		if (g->cap)
			memcpy(more, g->of[side], g->cap * sizeof *more);
		g->of[side] = more;
	}
	g->cap = g->paths.cap;
	return true;
}

static void add_value(struct tw_fleet_value *to, const struct tw_rollup_tree_sum *s, double weight)
{
	to->total += weight * (double)s->total_ns;
	to->self += weight * (double)s->self_ns;
	to->cpu += weight * (double)s->cpu_ns;
	to->cpu_self += weight * (double)s->cpu_self_ns;
	to->calls += weight * (double)s->calls;
	to->traces += weight * (double)s->traces;
}

static void add_node(struct tw_fleet_value *to, const struct tw_rollup_tree *t, uint32_t node,
        double weight, uint64_t of_traces)
{
	struct tw_rollup_tree_sum s = tw_rollup_tree_all(t, node);

	if (s.traces > of_traces) /* paths that were merged because frames were left out */
		s.traces = of_traces;
	add_value(to, &s, weight);
	to->sum += (double)s.total_ns;
	to->squares += s.square;
	to->in += (double)s.traces;
}

enum tw_status tw_fleet_graph_add(struct tw_fleet_graph *g, int side,
        const struct tw_rollup_tree *t, double weight, uint64_t of_traces, struct tw_err *err)
{
	uint32_t *map = tw_arena_alloc(g->paths.arena, (size_t)t->n + 1, sizeof *map);

	if (!map)
		return tw_tree_fail_too_large(err);
	for (uint32_t i = 0; of_traces && i < t->n; i++) {
		const struct tw_rollup_tree_node *n = &t->nodes[i];
		bool is_thread = n->parent == TW_ROLLUP_NO_NODE;

		map[i] = tw_rollup_tree_child(
		        &g->paths, is_thread ? TW_ROLLUP_NO_NODE : map[n->parent], n->method);
		if (map[i] == TW_ROLLUP_NO_NODE || !space(g))
			return tw_tree_fail_too_large(err);
		add_node(&g->of[side][map[i]], t, i, weight, of_traces);
		if (is_thread) {
			const struct tw_rollup_tree_sum s = tw_rollup_tree_all(t, i);

			add_value(&g->all[side], &s, weight);
		}
	}
	return TW_OK;
}

/* --- as a call tree --- */

struct sorted_node {           /* a node and its parent, sorted by parent, then by falling time */
	uint32_t parent, node; /* parent + 1; 0: threads */
	int64_t total;
};

struct layout {
	const struct tw_fleet_graph *g;
	const struct tw_fleet_value *of;
	bool cpu;
	uint32_t rest;
	struct sorted_node *list;
	uint32_t n_list;
	uint32_t *first; /* children's index in list, by parent + 1; and their end */
	struct tw_tree_node *out;
	uint32_t n;
};

static int64_t rounded(double v)
{
	return v < 1 ? 0 : v > 9e18 ? INT64_MAX / 2 : (int64_t)(v + 0.5);
}

static int64_t total_of(const struct layout *l, uint32_t node)
{
	return rounded(l->cpu ? l->of[node].cpu : l->of[node].total);
}

TW_ORDER_BY(by_parent, struct sorted_node, TW_RISING(parent), TW_FALLING(total), TW_RISING(node))

static bool sort_nodes(struct layout *l, struct tw_arena *a)
{
	uint32_t n = l->g->paths.n;

	l->list = tw_arena_alloc(a, (size_t)n + 1, sizeof *l->list);
	l->first = tw_arena_zalloc(a, (size_t)n + 2, sizeof *l->first);
	l->out = tw_arena_alloc(a, 2 * (size_t)n + 2, sizeof *l->out);
	if (!l->list || !l->first || !l->out)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t parent = l->g->paths.nodes[i].parent;

		if (l->of[i].calls > 0 || l->of[i].total > 0)
			l->list[l->n_list++] = (struct sorted_node){
			        parent == TW_ROLLUP_NO_NODE ? 0 : parent + 1, i, total_of(l, i)};
	}
	TW_SORT(l->list, l->n_list, by_parent);
	for (uint32_t i = l->n_list; i-- > 0;)
		l->first[l->list[i].parent] = i + 1;
	return true;
}

static uint32_t put(struct layout *l, uint32_t parent, uint32_t method, uint32_t depth)
{
	l->out[l->n] = (struct tw_tree_node){
	        .parent = parent, .method = method, .depth = depth, .subtree = 1, .cpu_ns = 1};
	return l->n++;
}

static uint32_t put_node(struct layout *l, uint32_t parent, uint32_t node, uint32_t depth)
{
	const struct tw_fleet_value *v = &l->of[node];
	uint32_t at = put(l, parent, (uint32_t)(l->g->paths.nodes[node].method - 1), depth);

	l->out[at].count = (uint64_t)rounded(v->calls);
	l->out[at].max_ns = rounded(v->traces);
	l->out[at].total_ns = total_of(l, node);
	l->out[at].self_ns = rounded(l->cpu ? v->cpu_self : v->self);
	return at;
}

/* Time of a node that is neither its own nor its children's. Up to a few ns of rounding count as
 * its own. */
static void put_rest(struct layout *l, uint32_t at, int64_t children)
{
	struct tw_tree_node *n = &l->out[at];
	int64_t left = n->total_ns - n->self_ns - children;
	uint32_t few = l->n - at + 1;
	uint32_t rest;

	if (at == 0 || left <= (int64_t)few) {
		n->total_ns = n->self_ns + children;
		return;
	}
	rest = put(l, at, l->rest, n->depth + 1);
	l->out[rest].total_ns = l->out[rest].self_ns = left;
	l->out[rest].max_ns = n->max_ns;
}

/* Sets *io to the next node of l->list with this parent (index + 1; 0: threads). False: no more. */
static bool next_child(const struct layout *l, uint32_t parent, uint32_t *io, uint32_t *ret)
{
	if (*io == 0 || *io > l->n_list || l->list[*io - 1].parent != parent)
		return false;
	*ret = l->list[(*io)++ - 1].node;
	return true;
}

/* Writes nodes in pre-order, without recursion. A node's rest follows its children. */
static void lay_out(struct layout *l)
{
	struct open {
		uint32_t at, parent, next;
		int64_t children;
	} path[TW_ROLLUP_DEPTH_MAX + 3] = {{0, 0, l->first[0], 0}};
	uint32_t depth = 0;

	(void)put(l, 0, TW_NO_METHOD, 0);
	for (;;) {
		struct open *o = &path[depth];
		uint32_t node;

		if (next_child(l, o->parent, &o->next, &node)) {
			uint32_t at = put_node(l, o->at, node, depth + 1);

			path[++depth] = (struct open){at, node + 1, l->first[node + 1], 0};
			continue;
		}
		put_rest(l, o->at, o->children);
		if (depth == 0)
			break;
		l->out[o->at].subtree = l->n - o->at;
		path[--depth].children += l->out[o->at].total_ns;
	}
	l->out[0].subtree = l->n;
	l->out[0].total_ns = path[0].children;
	l->out[0].self_ns = 0;
}

enum tw_status tw_fleet_graph_tree(const struct tw_fleet_graph *g, int side, bool cpu,
        uint32_t rest, struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	struct layout l = {.g = g, .of = g->of[side], .cpu = cpu, .rest = rest};

	if (!sort_nodes(&l, a))
		return tw_tree_fail_too_large(err);
	lay_out(&l);
	*ret = (struct tw_tree){l.out, l.n};
	return TW_OK;
}
