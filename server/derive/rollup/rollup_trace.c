/*
 * rollup_trace.c - merges the call trees of a trace's threads of one kind by method path, and drops
 * small nodes.
 *
 * During the merge all nodes have level 0.  The level depends on a node's total time in the trace,
 * which is known only at the end.
 */
#include <string.h>

#include "server/derive/rollup/rollup_writer_int.h"

struct merging {
	struct tw_rollup_tree *t;
	const uint64_t *ids;
	uint32_t n_ids;
	uint32_t *index; /* method of each node of t */
	uint32_t cap_index;
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, "the call trees of the trace are too large to be merged");
}

/* Records the method of a node. */
static bool note_index(struct merging *m, uint32_t node, uint32_t method)
{
	if (node >= m->cap_index) {
		uint32_t cap = m->t->cap;
		uint32_t *more = tw_arena_alloc(m->t->arena, cap, sizeof *more);

		if (!more)
			return false;
		if (m->cap_index)
			memcpy(more, m->index, m->cap_index * sizeof *more);
		m->index = more;
		m->cap_index = cap;
	}
	m->index[node] = method;
	return true;
}

static int64_t at_least_0(int64_t v)
{
	return v > 0 ? v : 0;
}

/* CPU time of each node without its callees. */
static int64_t *own_cpu(const struct tw_tree *tree, struct tw_arena *a)
{
	int64_t *own = tw_arena_alloc(a, tree->n, sizeof *own);

	for (uint32_t i = 0; own && i < tree->n; i++)
		own[i] = at_least_0(tree->nodes[i].cpu_ns);
	for (uint32_t i = 1; own && i < tree->n; i++)
		own[tree->nodes[i].parent] -= at_least_0(tree->nodes[i].cpu_ns);
	return own;
}

/* Adds a node below its caller's counterpart; nodes that are too deep count as their caller. */
static bool take_node(struct merging *m, const struct tw_tree_node *n, int64_t cpu_self_ns,
        uint32_t *map, uint32_t at)
{
	const struct tw_rollup_tree_sum s = {.calls = n->count,
	        .total_ns = at_least_0(n->total_ns),
	        .self_ns = at_least_0(n->self_ns),
	        .cpu_ns = at_least_0(n->cpu_ns),
	        .cpu_self_ns = at_least_0(cpu_self_ns)};
	const struct tw_rollup_tree_sum own = {.self_ns = s.self_ns, .cpu_self_ns = s.cpu_self_ns};
	uint32_t node;

	if (n->depth > TW_ROLLUP_DEPTH_MAX || n->method >= m->n_ids || !m->ids[n->method]) {
		map[at] = map[n->parent];
		return tw_rollup_tree_add(m->t, map[at], &own);
	}
	node = tw_rollup_tree_child(m->t, map[n->parent], m->ids[n->method]);
	map[at] = node;
	return node != TW_ROLLUP_NO_NODE && note_index(m, node, n->method) &&
	       tw_rollup_tree_add(m->t, node, &s);
}

static bool take_tree(
        struct merging *m, const struct tw_tree *tree, uint32_t thread, struct tw_arena *a)
{
	uint32_t *map = tw_arena_alloc(a, tree->n, sizeof *map);
	int64_t *own = own_cpu(tree, a);
	struct tw_rollup_tree_sum all = {.calls = 0};
	bool fits = map && own;

	if (!fits)
		return false;
	for (uint32_t i = 1; i < tree->n; i++)
		if (tree->nodes[i].parent == 0) {
			all.total_ns += at_least_0(tree->nodes[i].total_ns);
			all.cpu_ns += at_least_0(tree->nodes[i].cpu_ns);
		}
	map[0] = thread;
	fits = tw_rollup_tree_add(m->t, thread, &all);
	for (uint32_t i = 1; fits && i < tree->n; i++)
		fits = take_node(m, &tree->nodes[i], own[i], map, i);
	return fits;
}

static enum tw_status take_thread(struct merging *m, struct tw_trace_file *f,
        const struct tw_thread_info *info, struct tw_arena *a, struct tw_err *err)
{
	char name[TW_ROLLUP_THREAD_BYTES];
	struct tw_tree tree;
	uint32_t thread;
	enum tw_status st = tw_trace_file_tree(f, info->thread_id, a, &tree, err);

	if (st != TW_OK || tree.n < 2)
		return st;
	tw_rollup_thread_name(info->name, info->is_main, name);
	thread = tw_rollup_tree_thread(m->t, tw_str_of(name));
	if (thread == TW_ROLLUP_NO_NODE || !note_index(m, thread, UINT32_MAX) ||
	        !take_tree(m, &tree, thread, a))
		return no_memory(err);
	return TW_OK;
}

/* Sets the level of each node; each has one sum now, that of this trace. */
static void level_all(struct tw_rollup_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct tw_rollup_tree_node *n = &t->nodes[i];
		struct tw_rollup_tree_sum *s = n->first ? &t->sums[n->first - 1] : NULL;

		if (!s)
			continue;
		s->level = n->top = tw_rollup_tree_level(s->total_ns);
		s->traces = 1;
	}
	t->traces = 1;
}

enum tw_status tw_rollup_trace_tree(struct tw_trace_file *f, const uint64_t *ids, uint32_t n,
        struct tw_rollup_tree *t, uint8_t **ret_used, struct tw_err *err)
{
	struct merging m = {.t = t, .ids = ids, .n_ids = n};
	uint32_t n_threads;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n_threads);
	uint8_t *used = tw_arena_zalloc(t->arena, (size_t)n + 1, 1);
	enum tw_status st = used ? TW_OK : no_memory(err);

	for (uint32_t i = 0; st == TW_OK && i < n_threads; i++)
		if (threads[i].slices)
			st = take_thread(&m, f, &threads[i], t->arena, err);
	if (st != TW_OK)
		return st;
	level_all(t);
	tw_rollup_tree_bound(t, TW_ROLLUP_TRACE_NODES);
	for (uint32_t i = 0; m.index && i < t->n; i++)
		if (tw_rollup_tree_keeps(t, &t->nodes[i]) && m.index[i] < n)
			used[m.index[i]] = 1;
	*ret_used = used;
	return TW_OK;
}
