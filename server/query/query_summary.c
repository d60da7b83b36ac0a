/*
 * query_summary.c - the summary tree: the heaviest nodes of all threads' merged call trees,
 * stored.
 *
 * It is the result of the largest query, stored as a call tree. Nodes omitted below a node are one
 * child of it with the method `rest`, so every sum is correct. A graph is built best first, so a
 * graph with at most as many nodes as the summary tree has the same nodes and values.
 */
#include <string.h>

#include "server/query/query.h"
#include "server/query/query_reshape.h"

/* As a call tree, except for the order of siblings: a rest is last and may be the heaviest. */
static struct tw_tree tree_of(const struct tw_flame *f, uint32_t rest, struct tw_arena *a)
{
	struct tw_tree t = {tw_arena_alloc(a, f->n, sizeof *t.nodes), f->n};

	for (uint32_t i = 0; t.nodes && i < f->n; i++) {
		const struct tw_flame_node *n = &f->nodes[i];

		t.nodes[i] = (struct tw_tree_node){
		        .method = n->others ? rest : n->method,
		        .depth = n->depth,
		        .count = n->count,
		        .total_ns = n->value,
		        .cpu_ns = (int64_t)n->tree_nodes,
		        .max_ns = n->max_ns,
		};
	}
	for (uint32_t i = 1; t.nodes && i < f->n; i++) /* without descendants */
		t.nodes[f->nodes[i].parent].cpu_ns -= (int64_t)f->nodes[i].tree_nodes;
	return t;
}

enum tw_status tw_query_summary(const struct tw_forest *f, uint32_t max_nodes, uint32_t rest,
        struct tw_arena *a, struct tw_summary_tree *ret, struct tw_err *err)
{
	const struct tw_flame_query whole = {.max_nodes = max_nodes};
	struct tw_flame flame;
	struct tw_tree_builder *b;
	struct tw_tree t;
	enum tw_status st = tw_query_flame(f, &whole, NULL, a, &flame, err);

	if (st != TW_OK)
		return st;
	t = tree_of(&flame, rest, a);
	b = t.nodes ? tw_tree_builder_new(UINT32_MAX) : NULL;
	if (!b)
		return tw_oom(err);
	st = tw_tree_builder_add_tree(b, &t);
	if (st == TW_OK)
		st = tw_tree_builder_finish(b, a, &ret->tree);
	tw_tree_builder_free(b);
	ret->rest = rest;
	return st == TW_OK ? TW_OK : tw_oom(err);
}

bool tw_summary_answers(const struct tw_summary_tree *c, const struct tw_flame_query *q)
{
	uint32_t real = 0;

	if (q->view != TW_TOP_DOWN || q->metric != TW_METRIC_WALL || q->n_root || q->skip)
		return false;
	for (uint32_t i = 1; i < c->tree.n; i++)
		real += c->tree.nodes[i].method != c->rest;
	return real >= q->max_nodes;
}

/* Returns whether every thread with calls is selected, with all its calls. */
static bool is_complete(const struct tw_trace_file *f, const struct tw_selection *sel)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (t[i].slices && !tw_selection_has(sel, &t[i]))
			return false;
	return !sel->ranged;
}

/* TW_NOT_FOUND if the trace has no summary tree, or it is not sufficient. */
static enum tw_status from_summary(struct tw_trace_file *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	const struct tw_method_ref *methods;
	struct tw_summary_tree c = {.rest = 0};
	enum tw_status st = TW_NOT_FOUND;

	if (q->max_nodes <= TW_SUMMARY_NODES && q->view == TW_TOP_DOWN)
		st = tw_trace_file_method_refs(f, &methods, &c.rest, err);
	if (st == TW_OK)
		st = tw_trace_file_tree(f, TW_SUMMARY_THREAD_ID, a, &c.tree, err);
	if (st == TW_OK && !tw_summary_answers(&c, q))
		st = TW_NOT_FOUND;
	return st == TW_OK ? tw_query_flame_of_summary(&c, q, deadline, a, ret, err) : st;
}

enum tw_status tw_query_graph(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	struct tw_forest forest;
	bool partial = false;
	enum tw_status st = tw_selection_check(f, sel, err);

	if (st == TW_OK && is_complete(f, sel) && q->n_steps == 0) {
		st = from_summary(f, q, deadline, a, ret, err);
		if (st != TW_NOT_FOUND)
			return st;
		st = TW_OK;
	}
	if (st == TW_OK)
		st = tw_query_forest(f, sel, deadline, a, &forest, &partial, err);
	if (st == TW_OK && q->n_steps) {
		const struct tw_forest whole = forest;

		st = tw_query_reshape(&whole, q->steps, q->n_steps, a, &forest, err);
	}
	if (st == TW_OK && q->view == TW_BOTTOM_UP)
		st = tw_query_bottom_up(&forest, q, deadline, a, ret, err);
	else if (st == TW_OK)
		st = tw_query_flame(&forest, q, deadline, a, ret, err);
	if (st == TW_OK)
		ret->partial |= partial;
	return st;
}
