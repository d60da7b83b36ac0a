/*
 * api_fleet_compare_tree.c - merged call trees of both sides as one, with the significant change of
 * each node.
 *
 * Sums of B are weighted by stratum, so that dividing them by its traces gives means for A's mix.
 */
#include <math.h>
#include <string.h>

#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/api/fleet/api_fleet_compare.h"

struct trees {
	struct tw_rollup_tree *of; /* by stratum and side */
	size_t n;
	struct tw_fleet_taking taking;
	struct tw_fleet_graph graph;
	struct tw_compared_sum *changes; /* of the graph's nodes, in its order */
	uint32_t n_changes, cap_changes;
	uint64_t traces[TW_SIDES]; /* of traces that have a tree */
	struct tw_compare both;
};

/* Both sides get the resolution of the larger one: a node that only one side has would look like a
 * change. */
static size_t all_cells(const struct tw_comparison *c)
{
	size_t n = 0;

	for (int side = 0; side < TW_SIDES; side++)
		for (size_t k = 0; k < c->mix.n; k++)
			n += c->sides[side].trace_id ? 0 : c->mix.strata[k].of[side].n;
	return n;
}

static enum tw_status read_side(
        struct tw_comparison *c, struct trees *t, int side, struct tw_err *err)
{
	const size_t of_all = all_cells(c);
	const struct tw_compared_side *s = &c->sides[side];
	const struct tw_rollup_written one = {s->folding.tree, {"", 0}};
	struct tw_rollup_tree *to = tw_arena_alloc(c->q->arena, c->mix.n + 1, sizeof *to);
	struct tw_fleet_cells_of *of = tw_arena_zalloc(c->q->arena, c->mix.n + 1, sizeof *of);
	enum tw_status st = TW_OK;

	if (!to || !of)
		return tw_oom(err);
	for (size_t k = 0; st == TW_OK && k < c->mix.n; k++) {
		const struct tw_stratum *stratum = &c->mix.strata[k];
		const struct tw_fleet_cells *cells = &stratum->of[side];

		to[k] = (struct tw_rollup_tree){.arena = c->q->arena, .coarse = true};
		if (!stratum->left_out)
			of[k] = (struct tw_fleet_cells_of){cells->list, cells->n, of_all};
		if (s->trace_id && of[k].n && one.data.len)
			st = tw_rollup_tree_merge(&to[k], &one, err);
	}
	c->q->query = s->query;
	if (st == TW_OK && !s->trace_id && c->mix.n)
		st = tw_fleet_read_trees(c->q, of, c->mix.n, to, err);
	for (size_t k = 0; k < c->mix.n; k++) {
		t->of[k * TW_SIDES + (size_t)side] = to[k];
		t->traces[side] += to[k].traces;
	}
	return st;
}

/* Adds the sums of the nodes in this stratum to their changes, and sets the sums to zero. */
static enum tw_status add_changes(
        struct tw_comparison *c, struct trees *t, size_t stratum, struct tw_err *err)
{
	const uint32_t n = t->graph.paths.n;

	if (n > t->cap_changes) { /* twice: the arena frees nothing, and strata are up to 100 */
		const size_t cap = 2 * (size_t)n;
		struct tw_compared_sum *more = tw_arena_zalloc(c->q->arena, cap, sizeof *more);

		if (!more)
			return tw_oom(err);
		if (t->n_changes)
			memcpy(more, t->changes, t->n_changes * sizeof *more);
		t->changes = more;
		t->cap_changes = (uint32_t)cap;
	}
	t->n_changes = n;
	for (uint32_t i = 0; i < n; i++) {
		struct tw_stratum_sums sums[TW_SIDES];

		for (size_t side = 0; side < TW_SIDES; side++) {
			struct tw_fleet_value *v = &t->graph.of[side][i];

			sums[side] = (struct tw_stratum_sums){
			        (double)t->of[stratum * TW_SIDES + side].traces, v->sum, v->squares,
			        v->in};
			v->sum = v->squares = v->in = 0;
		}
		if (sums[TW_SIDE_A].sum > 0 || sums[TW_SIDE_B].sum > 0)
			tw_compared_add(&t->changes[i], &c->mix.strata[stratum], sums);
	}
	return TW_OK;
}

static enum tw_status add_trees(struct tw_comparison *c, struct trees *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	t->graph.paths.arena = c->q->arena;
	for (size_t k = 0; st == TW_OK && k < t->n; k++) {
		const int side = (int)(k % TW_SIDES);
		struct tw_rollup_tree named;
		double weight = c->mix.strata[k / TW_SIDES].weight[side];
		uint64_t n = t->of[k].traces;

		if (n > 0)
			st = tw_fleet_tree_read(
			        &t->of[k], &t->taking.reading, c->q->arena, &named, err);
		if (st == TW_OK && n > 0)
			st = tw_fleet_graph_add(&t->graph, side, &named,
			        weight * (double)t->traces[side] / (double)n, n, err);
		if (st == TW_OK && side == TW_SIDE_B && !c->mix.strata[k / TW_SIDES].left_out)
			st = add_changes(c, t, k / TW_SIDES, err);
	}
	for (uint32_t i = 0; i < t->n_changes; i++)
		tw_compared_end(&t->changes[i], t->traces);
	return st;
}

static enum tw_status join(struct tw_comparison *c, struct trees *t, struct tw_err *err)
{
	struct tw_tree *one = tw_arena_alloc(c->q->arena, TW_SIDES, sizeof *one);
	struct tw_forest forests[TW_SIDES];
	struct tw_compare_side sides[TW_SIDES];
	struct tw_compare_query query = {.n_root = 0};
	enum tw_status st;

	if (!one)
		return tw_oom(err);
	st = tw_fleet_read_root(c->q, &t->taking, &query.root, &query.n_root, err);
	for (int side = 0; st == TW_OK && side < TW_SIDES; side++) {
		st = tw_fleet_graph_tree(
		        &t->graph, side, false, t->taking.names.n, c->q->arena, &one[side], err);
		forests[side] = (struct tw_forest){&one[side], 1};
		sides[side] = (struct tw_compare_side){
		        &forests[side], 1, t->traces[side] ? t->traces[side] : 1};
	}
	query.max_nodes = (uint32_t)tw_req_number_or(
	        c->q->req, "max_nodes", tw_api_of(c->q->req)->config->flame_nodes);
	return st == TW_OK ? tw_query_compare(sides, &query, NULL, c->q->arena, &t->both, err) : st;
}

/* The node of the graph for a child; TW_ROLLUP_NO_NODE: a rest, or below one. */
static uint32_t below(struct trees *t, uint32_t parent, bool is_thread, uint32_t method)
{
	uint32_t before = t->graph.paths.n, at;

	if (method >= t->taking.names.n || (!is_thread && parent == TW_ROLLUP_NO_NODE))
		return TW_ROLLUP_NO_NODE;
	at = tw_rollup_tree_child(&t->graph.paths, parent, (uint64_t)method + 1);
	return at < before ? at : TW_ROLLUP_NO_NODE;
}

static bool is_sure(const struct trees *t, uint32_t node)
{
	const struct tw_compared_mean *m = &t->changes[node].to;

	return t->traces[TW_SIDE_A] >= TW_COMPARE_ENOUGH &&
	       t->traces[TW_SIDE_B] >= TW_COMPARE_ENOUGH &&
	       fabs(m->of[TW_SIDE_B] - m->of[TW_SIDE_A]) > tw_compare_margin(m);
}

/* The nodes at root=, where the response begins. */
static uint32_t *nodes_at_root(struct tw_comparison *c, struct trees *t)
{
	uint32_t *at = tw_arena_alloc(c->q->arena, (size_t)t->both.n + 1, sizeof *at);
	const uint32_t *root = NULL;
	size_t n = 0;
	uint32_t top = TW_ROLLUP_NO_NODE;

	if (!at || tw_fleet_read_root(c->q, &t->taking, &root, &n, NULL) != TW_OK)
		return NULL;
	for (size_t i = 0; i < n; i++)
		top = below(t, top, i == 0, root[i]);
	at[0] = top;
	for (uint32_t i = 1; i < t->both.n; i++) {
		const struct tw_compare_node *node = &t->both.nodes[i];

		at[i] = node->others ? TW_ROLLUP_NO_NODE
		                     : below(t, at[node->parent], n == 0 && node->parent == 0,
		                               node->method);
	}
	return at;
}

static void put_column(struct tw_comparison *c, const struct trees *t, const uint32_t *at,
        const char *key, int side)
{
	struct tw_json *j = &c->q->j;

	tw_json_key_open(j, key, '[');
	for (uint32_t i = 0; i < t->both.n; i++) {
		bool known = at[i] != TW_ROLLUP_NO_NODE;

		if (side == TW_SIDES)
			tw_json_int(j, known && is_sure(t, at[i]));
		else
			tw_json_int(j, known ? (int64_t)(t->graph.of[side][at[i]].traces + 0.5)
			                     : (int64_t)t->traces[side]);
	}
	tw_json_close(j, ']');
}

/* Also lists names on the path to root=: a link may be opened without any earlier response. */
static enum tw_status use_root(
        struct tw_comparison *c, const struct trees *t, uint8_t *used, struct tw_err *err)
{
	const uint32_t *root = NULL;
	size_t n = 0;
	enum tw_status st = tw_fleet_read_root(c->q, &t->taking, &root, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (root[i] < t->taking.names.n)
			used[root[i]] = 1;
	return st;
}

static enum tw_status put(struct tw_comparison *c, struct trees *t, struct tw_err *err)
{
	struct tw_json *j = &c->q->j;
	uint8_t *used = tw_arena_zalloc(c->q->arena, (size_t)t->taking.names.n + 1, 1);
	const uint32_t *at = nodes_at_root(c, t);
	enum tw_status st;

	if (!used || !at)
		return tw_oom(err);
	st = use_root(c, t, used, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < t->both.n; i++) {
		struct tw_compare_node *n = &t->both.nodes[i];

		if (n->method < t->taking.names.n) {
			used[n->method] = 1;
		} else if (n->method == t->taking.names.n) { /* the rest of merged trees */
			n->method = TW_NO_METHOD;
			n->others = n->others ? n->others : 1;
		}
	}
	tw_json_key_open(j, "tree", '{');
	tw_json_key_int(j, "a_of_traces", (int64_t)t->traces[TW_SIDE_A]);
	tw_json_key_int(j, "b_of_traces", (int64_t)t->traces[TW_SIDE_B]);
	tw_fleet_put_names(c->q, &t->taking.names, used);
	tw_compare_put_tree(j, &t->both);
	put_column(c, t, at, "a_traces", TW_SIDE_A);
	put_column(c, t, at, "b_traces", TW_SIDE_B);
	put_column(c, t, at, "significant", TW_SIDES);
	tw_json_close(j, '}');
	return TW_OK;
}

enum tw_status tw_comparison_put_tree(struct tw_comparison *c, struct tw_err *err)
{
	struct trees *t = tw_arena_zalloc(c->q->arena, 1, sizeof *t);
	const struct tw_rollup_tree **all = tw_arena_alloc(
	        c->q->arena, TW_SIDES * c->mix.n + 1, sizeof(const struct tw_rollup_tree *));
	enum tw_status st;

	if (!t || !all)
		return tw_oom(err);
	t->n = TW_SIDES * c->mix.n;
	t->of = tw_arena_zalloc(c->q->arena, t->n + 1, sizeof *t->of);
	if (!t->of)
		return tw_oom(err);
	st = read_side(c, t, TW_SIDE_A, err);
	if (st == TW_OK)
		st = read_side(c, t, TW_SIDE_B, err);
	for (size_t k = 0; st == TW_OK && k < t->n; k++)
		all[k] = &t->of[k];
	if (st == TW_OK)
		st = tw_fleet_take_names(c->q, all, t->n, &t->taking, err);
	if (st == TW_OK)
		st = tw_fleet_read_focus(c->q, false, &t->taking, err);
	if (st == TW_OK)
		st = add_trees(c, t, err);
	if (st == TW_OK)
		st = join(c, t, err);
	return st == TW_OK ? put(c, t, err) : st;
}
