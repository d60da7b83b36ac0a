/*
 * query_outside.c - computes the call tree of a range by subtracting the calls outside of
 * it from the stored tree of its thread.
 *
 *      range            |--------------------|
 *      chunks   | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |     1, 2, 3, 7 and 8 are read
 *
 * Calls outside the range, and the parts outside of calls that cross one of its ends, are built
 * into a tree, which is subtracted.  A chunk whose calls are all inside is not read: those that
 * enclose them, or cross an end, began in a chunk that is.  The longest call cannot be subtracted.
 */
#include "server/query/query_outside.h"

#include "decoder/base/list.h"

/* Reading and reducing a stored node takes about as long as reading this many calls. */
enum { CALLS_PER_NODE = 2 };

static bool is_inside(const struct tw_chunk_info *c, const struct tw_selection *sel)
{
	return c->start_ns > sel->from_ns && c->end_ns < sel->to_ns;
}

enum tw_status tw_outside_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_selection *sel, uint64_t nodes, struct tw_arena *a,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err)
{
	const struct tw_chunk_row *rows;
	struct tw_chunk_row *outside;
	uint64_t calls_within = 0;
	uint64_t calls_outside = 0;
	uint32_t n_rows;
	uint32_t n = 0;
	enum tw_status st = tw_trace_file_call_chunks(f, thread_id, &rows, &n_rows, err);

	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < n_rows; i++) {
		const struct tw_chunk_info *c = &rows[i].info;

		if (c->end_ns >= sel->from_ns && c->start_ns < sel->to_ns)
			calls_within += c->slices;
		if (!is_inside(c, sel)) {
			calls_outside += c->slices;
			n++;
		}
	}
	if (n == 0 || calls_outside + CALLS_PER_NODE * nodes >= calls_within)
		return TW_NOT_FOUND;
	outside = tw_arena_alloc(a, (size_t)n + 1, sizeof *outside);
	if (!outside)
		return tw_oom(err);
	n = 0;
	for (uint32_t i = 0; i < n_rows; i++)
		if (!is_inside(&rows[i].info, sel))
			outside[n++] = rows[i];
	*ret = outside;
	*ret_n = n;
	return TW_OK;
}

/* The calls of a run that are inside, or partly.  The caller of a call outside has a node even if
 * it ends exactly where the range does. */
static enum tw_status add_parts(struct tw_tree_builder *b, const struct tw_range_walk *w,
        const struct tw_slice *s, size_t n)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		const int64_t end_ns = s[i].start_ns + s[i].dur_ns;
		int64_t outside_ns = 0;

		if (s[i].start_ns >= w->from_ns && end_ns < w->to_ns)
			continue;
		if (s[i].start_ns < w->from_ns)
			outside_ns += w->from_ns - s[i].start_ns;
		if (end_ns > w->to_ns)
			outside_ns += end_ns - w->to_ns;
		st = tw_tree_builder_add_time(b, &s[i], outside_ns);
	}
	return st;
}

enum tw_status tw_outside_add(
        struct tw_tree_builder *b, const struct tw_selection *sel, const struct tw_chunk *c)
{
	struct tw_range_walk w = {sel->from_ns, sel->to_ns, 0};
	enum tw_status st = tw_tree_builder_enter(b, c->open, c->n_open);
	size_t at = 0;
	size_t run;

	/* the depth down to which open calls are inside */
	(void)tw_range_run(&w, c->open, c->n_open, &at);
	for (at = 0; st == TW_OK && at < c->n; at += run) {
		const size_t from = at;

		run = tw_range_run(&w, c->slices, c->n, &at);
		st = tw_tree_builder_add(b, c->slices + from, at - from);
		if (st == TW_OK)
			st = add_parts(b, &w, c->slices + at, run);
	}
	return st;
}

/* --- subtraction --- */

struct subtraction {
	struct tw_tree *tree;
	const struct tw_tree_builder *outside;
	uint32_t *node_of;  /* of the tree, by node outside */
	uint32_t *child_of; /* of the node whose children were listed last, by method */
	uint32_t n_methods;
};

static bool begin(struct subtraction *s)
{
	s->node_of = tw_mem_zalloc(tw_tree_builder_nodes(s->outside), sizeof *s->node_of);
	s->child_of = tw_mem_zalloc(s->n_methods, sizeof *s->child_of);
	return s->node_of && s->child_of;
}

/* Skips methods that the trace does not have, as in a damaged tree. */
static void list_children(struct subtraction *s, uint32_t node)
{
	const struct tw_tree_node *nodes = s->tree->nodes;
	const uint32_t end = node + nodes[node].subtree;

	for (uint32_t i = node + 1; i < end; i += nodes[i].subtree)
		if (nodes[i].method < s->n_methods)
			s->child_of[nodes[i].method] = i;
}

/* Finds the nodes of the children outside, and subtracts the node itself.  False: the stored tree
 * lacks calls. */
static bool subtract_node(struct subtraction *s, uint32_t i)
{
	const uint32_t at = s->node_of[i];
	const struct tw_linked_node n = tw_tree_builder_linked(s->outside, i);
	struct tw_tree_node *to = &s->tree->nodes[at];
	int64_t self_ns = n.total_ns;
	const uint32_t *list;
	const uint32_t n_children = tw_tree_builder_children(s->outside, i, &list);

	if (n_children)
		list_children(s, at);
	for (uint32_t k = 0; k < n_children; k++) {
		const struct tw_linked_node child = tw_tree_builder_linked(s->outside, list[k]);
		const uint32_t found = child.method < s->n_methods ? s->child_of[child.method] : 0;

		if (!found || s->tree->nodes[found].parent != at ||
		        s->tree->nodes[found].method != child.method)
			return false;
		s->node_of[list[k]] = found;
		self_ns -= child.total_ns;
	}
	if (to->count < n.count || to->total_ns < n.total_ns || to->self_ns < self_ns)
		return false;
	to->count -= n.count;
	to->total_ns -= n.total_ns;
	to->self_ns -= self_ns;
	return true;
}

/* Removes the nodes without calls. */
static bool compact(struct tw_tree *t)
{
	struct tw_tree_node *nodes = t->nodes;
	uint32_t *path = NULL; /* the node at each depth */
	uint32_t cap = 0;
	uint32_t n = 1;

	if (!TW_GROW_MEM(path, 0, cap))
		return false;
	path[0] = 0;
	nodes[0].subtree = 1;
	for (uint32_t i = 1; i < t->n;) {
		const uint32_t depth = nodes[i].depth;

		if (nodes[i].count == 0) {
			i += nodes[i].subtree;
			continue;
		}
		if (!TW_GROW_MEM(path, depth, cap)) {
			tw_mem_free(path);
			return false;
		}
		nodes[n] = nodes[i++];
		nodes[n].parent = path[depth - 1];
		nodes[n].subtree = 1;
		path[depth] = n++;
	}
	for (uint32_t i = n; i-- > 1;)
		nodes[nodes[i].parent].subtree += nodes[i].subtree;
	t->n = n;
	tw_mem_free(path);
	return true;
}

enum tw_status tw_outside_subtract(struct tw_tree *t, const struct tw_tree_builder *outside,
        uint32_t n_methods, struct tw_err *err)
{
	struct subtraction s = {.tree = t, .outside = outside, .n_methods = n_methods};
	const uint32_t n = tw_tree_builder_nodes(outside);
	bool has_memory = begin(&s);
	bool fits = true;

	for (uint32_t i = 0; has_memory && fits && i < n; i++)
		fits = subtract_node(&s, i);
	tw_mem_free(s.node_of);
	tw_mem_free(s.child_of);
	if (!fits)
		return tw_fail(err, TW_CORRUPT, "the trace file is damaged (call tree)");
	return has_memory && compact(t) ? TW_OK : tw_oom(err);
}
