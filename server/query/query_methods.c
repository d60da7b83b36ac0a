/*
 * query_methods.c - totals per method of a selection.
 */
#include "server/query/query.h"

#include <string.h>

#include "decoder/base/sum.h"

/* Adds one thread's calls; `active` are the methods that are open at a node, none at the end. */
bool tw_query_methods_add(
        const struct tw_tree *t, uint32_t n_methods, struct tw_method_info *rows, uint32_t *active)
{
	uint32_t at = 0; /* the open node; its ancestors are open too */

	for (uint32_t i = 1; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];
		struct tw_method_info *m;

		for (; at != n->parent; at = t->nodes[at].parent)
			active[t->nodes[at].method]--;
		if (n->method >= n_methods)
			return false;
		m = &rows[n->method];
		if (m->count == 0)
			m->cpu_ns = -1;
		if (n->cpu_ns >= 0)
			m->cpu_ns = tw_sum_ns(m->cpu_ns < 0 ? 0 : m->cpu_ns, n->cpu_ns);
		m->count += n->count;
		m->sum_ns += n->total_ns;
		m->self_ns += n->self_ns;
		if (active[n->method]++ == 0) /* recursion counts once */
			m->total_ns += n->total_ns;
		if (n->max_ns > m->max_ns)
			m->max_ns = n->max_ns;
		at = i;
	}
	for (; at; at = t->nodes[at].parent)
		active[t->nodes[at].method]--;
	return true;
}

enum tw_status tw_query_methods(const struct tw_forest *f, uint32_t n_methods, struct tw_arena *a,
        struct tw_method_info **ret, struct tw_err *err)
{
	struct tw_method_info *rows = tw_arena_zalloc(a, n_methods, sizeof *rows);
	uint32_t *active = tw_arena_zalloc(a, n_methods, sizeof *active);

	if (!rows || !active)
		return tw_oom(err);
	for (uint32_t i = 0; i < f->n; i++)
		if (!tw_query_methods_add(&f->trees[i], n_methods, rows, active))
			return tw_fail(err, TW_CORRUPT, "a call tree is damaged");
	*ret = rows;
	return TW_OK;
}
