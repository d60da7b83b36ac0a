/*
 * query_methods.c - totals per method of a selection, and activity strips.
 */
#include "query.h"

#include <string.h>

/* Adds one thread's calls; `active` are the methods that are open at a node, none at the end. */
static bool add_tree(
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
			m->cpu_ns = (m->cpu_ns < 0 ? 0 : m->cpu_ns) + n->cpu_ns;
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
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a table of methods");
	for (uint32_t i = 0; i < f->n; i++)
		if (!add_tree(&f->trees[i], n_methods, rows, active))
			return tw_fail(err, TW_CORRUPT, TW_NO_OFFSET, "a call tree is damaged");
	*ret = rows;
	return TW_OK;
}

struct strip {
	int64_t start_ns, width_ns; /* of the trace; of a cell, at least 1 */
	int64_t covered_ns[TW_ACTIVITY_CELLS];
};

static void cover(struct strip *s, const struct tw_slice *slice)
{
	int64_t from = slice->start_ns - s->start_ns;
	int64_t to = from + slice->dur_ns;
	int64_t cell = from / s->width_ns;

	for (; cell < TW_ACTIVITY_CELLS && from < to; cell++) {
		int64_t end = (cell + 1) * s->width_ns;
		int64_t upto = to < end ? to : end;

		s->covered_ns[cell] += upto - from;
		from = upto;
	}
}

/* A root that began in an earlier chunk was covered there. */
static enum tw_status cover_level(struct tw_trace_file *f, const struct tw_chunk_row *rows,
        uint32_t n, struct strip *s, struct tw_err *err)
{
	struct tw_chunk c;
	enum tw_status st = TW_OK;

	tw_chunk_init(&c);
	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		st = tw_trace_file_chunk(f, &rows[i], &c, err);
		for (size_t k = 0; st == TW_OK && k < c.n; k++)
			if (c.slices[k].depth == 0 && c.slices[k].start_ns >= s->start_ns)
				cover(s, &c.slices[k]);
	}
	tw_chunk_done(&c);
	return st;
}

enum tw_status tw_query_activity(struct tw_trace_file *f, const struct tw_thread_info *t,
        uint8_t ret[TW_ACTIVITY_CELLS], struct tw_err *err)
{
	const struct tw_trace_info *info = tw_trace_file_info(f);
	int64_t span = info->end_ns - info->start_ns;
	struct strip s = {.start_ns = info->start_ns};
	const struct tw_chunk_row *rows = NULL;
	uint32_t n = 0;
	uint32_t first = 0;
	enum tw_status st = tw_trace_file_chunks(f, t->thread_id, &rows, &n, err);

	if (st != TW_OK)
		return st;
	s.width_ns = span > 0 ? span / TW_ACTIVITY_CELLS + 1 : 1;
	for (uint32_t i = 0; i < n; i++)
		if (rows[i].info.level == rows[n - 1].info.level) {
			first = i;
			break;
		}
	st = cover_level(f, rows + first, n - first, &s, err);
	if (st != TW_OK)
		return st;
	for (int i = 0; i < TW_ACTIVITY_CELLS; i++) {
		int64_t share =
		        s.covered_ns[i] >= s.width_ns
		                ? 255
		                : (int64_t)((double)s.covered_ns[i] * 255 / (double)s.width_ns);

		ret[i] = (uint8_t)(share == 0 && s.covered_ns[i] > 0 ? 1 : share);
	}
	return TW_OK;
}
