/*
 * query_reshape.c - one pass over a tree's nodes per step, in place.
 *
 * Nodes are in pre-order, and a step only removes nodes or moves them up, so the k-th remaining
 * node is written at or before where it was read. While steps run, total_ns is stale and cpu_ns is
 * a node's own; both are summed again at the end.
 */
#include "server/query/query_reshape.h"

#include <string.h>

#define OUTSIDE UINT32_MAX /* outside of a focus */

struct pass {
	struct tw_tree *tree;
	const struct tw_reshape *step;
	uint32_t *map; /* by node: the node that now has its calls */
	uint32_t n;    /* number of nodes that remain so far */
};

static void keep(struct pass *p, uint32_t at, uint32_t parent)
{
	struct tw_tree_node n = p->tree->nodes[at];

	n.parent = parent;
	n.depth = p->tree->nodes[parent].depth + 1;
	p->map[at] = p->n;
	p->tree->nodes[p->n++] = n;
}

static void merge_into_parent(struct pass *p, uint32_t at, uint32_t parent)
{
	const struct tw_tree_node n = p->tree->nodes[at];
	struct tw_tree_node *to = &p->tree->nodes[parent];

	to->self_ns += n.self_ns; /* with its callees' time */
	if (n.cpu_ns > 0 && to->cpu_ns >= 0)
		to->cpu_ns += n.cpu_ns;
	p->map[at] = parent;
}

/* Returns the next node to process. */
static uint32_t reshape_node(struct pass *p, uint32_t at)
{
	struct tw_tree_node *n = &p->tree->nodes[at];
	const struct tw_tree_node *nodes = p->tree->nodes;
	const struct tw_reshape *s = p->step;
	uint32_t parent = p->map[n->parent];
	bool selected = s->kind != TW_RESHAPE_RECURSION && tw_reshape_means(s, n->method);
	bool merges = false;

	switch (s->kind) {
	case TW_RESHAPE_DROP:
		if (selected)
			return at + n->subtree;
		break;
	case TW_RESHAPE_MERGE:
		merges = selected;
		break;
	case TW_RESHAPE_FOLD:
		merges = tw_reshape_means(s, nodes[parent].method);
		break;
	case TW_RESHAPE_COLLAPSE:
		if (selected)
			n->method = s->as;
		merges = selected && nodes[parent].method == s->as;
		break;
	case TW_RESHAPE_RECURSION:
		merges = nodes[parent].method == n->method;
		break;
	case TW_RESHAPE_FOCUS:
		if (parent == OUTSIDE && !selected) {
			p->map[at] = OUTSIDE;
			return at + 1;
		}
		parent = parent == OUTSIDE ? 0 : parent;
		break;
	}
	if (merges)
		merge_into_parent(p, at, parent);
	else
		keep(p, at, parent);
	return at + 1;
}

static void run_step(struct tw_tree *t, uint32_t *map, const struct tw_reshape *s)
{
	struct pass p = {t, s, map, 1};

	map[0] = s->kind == TW_RESHAPE_FOCUS ? OUTSIDE : 0;
	if (s->kind == TW_RESHAPE_FOCUS) {
		t->nodes[0].self_ns = 0;
		t->nodes[0].cpu_ns = 0;
	}
	for (uint32_t at = 1; at < t->n;)
		at = reshape_node(&p, at);
	t->n = p.n;
	for (uint32_t i = 0; i < t->n; i++) /* the step changed the sizes of subtrees */
		t->nodes[i].subtree = 1;
	for (uint32_t i = t->n; i-- > 1;)
		t->nodes[t->nodes[i].parent].subtree += t->nodes[i].subtree;
}

/* A parent precedes its children, whose time is still complete when it is subtracted. The thread's
 * own time is what was moved up to it. */
static void own_cpu(struct tw_tree *t)
{
	t->nodes[0].cpu_ns = 0;
	for (uint32_t i = 1; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];
		struct tw_tree_node *parent = &t->nodes[n->parent];

		if (n->cpu_ns > 0 && n->parent && parent->cpu_ns > 0)
			parent->cpu_ns =
			        n->cpu_ns < parent->cpu_ns ? parent->cpu_ns - n->cpu_ns : 0;
	}
}

static void add_up(struct tw_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		t->nodes[i].total_ns = t->nodes[i].self_ns;
	for (uint32_t i = t->n; i-- > 1;) {
		const struct tw_tree_node *n = &t->nodes[i];
		struct tw_tree_node *parent = &t->nodes[n->parent];

		parent->total_ns += n->total_ns;
		if (n->cpu_ns > 0 && parent->cpu_ns >= 0)
			parent->cpu_ns += n->cpu_ns;
	}
}

static bool reshape_tree(const struct tw_tree *from, const struct tw_reshape *steps, size_t n,
        struct tw_arena *a, struct tw_tree *to)
{
	uint32_t *map;

	to->nodes = tw_arena_alloc(a, from->n, sizeof *to->nodes);
	to->n = from->n;
	if (!to->nodes)
		return false;
	memcpy(to->nodes, from->nodes, from->n * sizeof *to->nodes);
	own_cpu(to);
	map = tw_arena_alloc(a, to->n, sizeof *map);
	if (!map)
		return false;
	for (size_t i = 0; i < n; i++)
		run_step(to, map, &steps[i]);
	add_up(to);
	return true;
}

enum tw_status tw_query_reshape(const struct tw_forest *f, const struct tw_reshape *steps, size_t n,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_forest *ret,
        bool *io_partial, struct tw_err *err)
{
	struct tw_tree *trees = tw_arena_alloc(a, f->n ? f->n : 1, sizeof *trees);
	uint32_t done = 0;

	for (; trees && done < f->n && !tw_deadline_passed(deadline); done++)
		if (!reshape_tree(&f->trees[done], steps, n, a, &trees[done]))
			trees = NULL;
	if (!trees)
		return tw_oom(err);
	*ret = (struct tw_forest){trees, done};
	*io_partial |= done < f->n;
	return TW_OK;
}
