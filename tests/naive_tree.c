/* naive_tree.c - see naive_tree.h. */
#include "naive_tree.h"

/* The child by linear search; a new one when there is none. */
static uint32_t child_of(struct tw_tree *t, uint32_t parent, uint32_t method)
{
	for (uint32_t i = 1; i < t->n; i++)
		if (t->nodes[i].parent == parent && t->nodes[i].method == method)
			return i;
	t->nodes[t->n] = (struct tw_tree_node){
	        .parent = parent, .method = method, .depth = t->nodes[parent].depth + 1};
	return t->n++;
}

static int64_t cut_to(const struct model_slice *s, int64_t from, int64_t to)
{
	int64_t end = s->start_ns + s->dur_ns;

	return (end < to ? end : to) - (s->start_ns > from ? s->start_ns : from);
}

bool naive_in_range(const struct model *m, const struct model_slice *s, int64_t from, int64_t to)
{
	int64_t end = s->start_ns + s->dur_ns;

	return s->start_ns < to && (end > from || (s->dur_ns == 0 && end == from)) &&
	       (s->parent < 0 || naive_in_range(m, &m->slices[s->parent], from, to));
}

struct tw_tree naive_tree(
        struct tw_arena *a, const struct model *m, uint64_t tid, int64_t from, int64_t to)
{
	struct tw_tree t = {tw_arena_zalloc(a, m->n + 1, sizeof *t.nodes), 1};
	uint32_t *node = tw_arena_zalloc(a, m->n, sizeof *node);

	t.nodes[0].method = TW_NO_METHOD;
	for (size_t i = 0; i < m->n; i++) {
		const struct model_slice *s = &m->slices[i];
		uint32_t up = s->parent < 0 ? 0 : node[s->parent];
		int64_t dur = cut_to(s, from, to);
		struct tw_tree_node *at;

		if ((tid && s->tid != tid) || !naive_in_range(m, s, from, to))
			continue;
		node[i] = child_of(&t, up, s->method_id);
		at = &t.nodes[node[i]];
		at->count++;
		at->total_ns += dur;
		at->self_ns += dur;
		if (up)
			t.nodes[up].self_ns -= dur;
		else
			t.nodes[0].total_ns += dur;
		if (dur > at->max_ns)
			at->max_ns = dur;
	}
	return t;
}

static const char *node_differs(const struct tw_tree_node *g, const struct tw_tree_node *w)
{
	if (g->depth != w->depth)
		return "depth";
	if (g->count != w->count)
		return "count";
	if (g->total_ns != w->total_ns)
		return "total";
	if (g->self_ns != w->self_ns)
		return "self";
	return g->max_ns != w->max_ns ? "max" : NULL;
}

const char *naive_differs(const struct tw_tree *got, struct tw_tree *want,
        const struct tw_method_info *methods, struct tw_arena *a)
{
	uint32_t *match = tw_arena_zalloc(a, got->n, sizeof *match);
	uint32_t n = want->n;

	if (got->n != n)
		return "number of nodes";
	if (got->nodes[0].method != TW_NO_METHOD || got->nodes[0].subtree != n ||
	        got->nodes[0].total_ns != want->nodes[0].total_ns)
		return "node 0";
	for (uint32_t i = 1; i < n; i++) {
		const struct tw_tree_node *g = &got->nodes[i];
		uint32_t next = i + g->subtree;
		const char *why;

		if (g->parent >= i)
			return "order";
		match[i] = child_of(want, match[g->parent], (uint32_t)methods[g->method].id);
		if (want->n != n)
			return "path";
		why = node_differs(g, &want->nodes[match[i]]);
		if (why)
			return why;
		if (next < n && got->nodes[next].parent == g->parent &&
		        got->nodes[next].total_ns > g->total_ns)
			return "order of siblings";
	}
	return NULL;
}
