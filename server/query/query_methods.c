/*
 * query_methods.c - totals per method of a selection, and quantiles of the durations of its calls.
 *
 * Quantiles need one pass over the selection's slices. Only each call's bucket is stored, as a
 * list for methods with few calls and as a histogram for others, whichever is smaller.
 */
#include "server/query/query.h"

#include <string.h>

#include "decoder/trace/buckets.h"

enum { LIST_MAX = TW_BUCKETS * (sizeof(uint32_t) / sizeof(uint16_t)) };

struct spread {              /* of one method */
	uint32_t *histogram; /* TW_BUCKETS; NULL: a list */
	uint16_t *list;
	uint64_t seen;
};

struct spreading {
	const struct tw_selection *sel;
	const struct tw_deadline *deadline;
	const struct tw_method_info *rows;
	uint32_t n_methods;
	struct spread *methods;
	bool partial;
};

static int64_t length_in(const struct tw_selection *sel, const struct tw_slice *s)
{
	int64_t from = s->start_ns;
	int64_t to = s->start_ns + s->dur_ns;

	if (sel->ranged && from < sel->from_ns)
		from = sel->from_ns;
	if (sel->ranged && to > sel->to_ns)
		to = sel->to_ns;
	return to - from;
}

static bool add_slices(void *arg, const struct tw_slice *s, size_t n)
{
	struct spreading *g = arg;

	for (size_t i = 0; i < n; i++) {
		uint32_t bucket = tw_bucket_of(length_in(g->sel, &s[i]));
		uint32_t method = s[i].method;
		struct spread *m = &g->methods[method];

		/* in a damaged file the method and the number of calls may be wrong */
		if (method >= g->n_methods || m->seen++ >= g->rows[method].count)
			continue;
		if (m->histogram)
			m->histogram[bucket]++;
		else
			m->list[m->seen - 1] = (uint16_t)bucket;
	}
	g->partial = g->partial || tw_deadline_passed(g->deadline);
	return !g->partial;
}

/* Allocates space for the calls counted in the rows. */
static enum tw_status reserve_space(struct spreading *g, struct tw_arena *a, struct tw_err *err)
{
	bool full = false;

	g->methods = tw_arena_zalloc(a, (size_t)g->n_methods + 1, sizeof *g->methods);
	for (uint32_t i = 0; g->methods && !full && i < g->n_methods; i++) {
		struct spread *m = &g->methods[i];

		if (g->rows[i].count > LIST_MAX)
			m->histogram = tw_arena_zalloc(a, TW_BUCKETS, sizeof *m->histogram);
		else
			m->list = tw_arena_alloc(a, g->rows[i].count + 1, sizeof *m->list);
		full = !m->histogram && !m->list;
	}
	if (!g->methods || full)
		return tw_oom(err);
	return TW_OK;
}

/* The bucket of the rank-th shortest call, counted from 1. */
static uint32_t bucket_at(const uint32_t histogram[TW_BUCKETS], uint64_t rank)
{
	uint32_t at = 0;
	uint64_t below = 0;

	while (at + 1 < TW_BUCKETS && (below += histogram[at]) < rank)
		at++;
	return at;
}

/* -1: the number of calls differs from the row's. */
static int64_t quantile(const struct spread *m, const struct tw_method_info *row, unsigned percent)
{
	uint32_t counts[TW_BUCKETS];
	const uint32_t *histogram = m->histogram;
	uint64_t rank = (row->count / 100 * percent) + (row->count % 100 * percent + 99) / 100;
	int64_t ns;

	if (m->seen != row->count || row->count == 0)
		return -1;
	if (rank == row->count)
		return row->max_ns;
	if (!histogram) {
		memset(counts, 0, sizeof counts);
		for (uint64_t i = 0; i < m->seen; i++)
			counts[m->list[i]]++;
		histogram = counts;
	}
	ns = tw_bucket_ns(bucket_at(histogram, rank));
	return ns < row->max_ns ? ns : row->max_ns;
}

static enum tw_status walk_threads(struct tw_trace_file *f, struct spreading *g, struct tw_err *err)
{
	int64_t from = g->sel->ranged ? g->sel->from_ns : 0;
	int64_t to = g->sel->ranged ? g->sel->to_ns : INT64_MAX;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && !g->partial && i < n; i++)
		if (t[i].slices && tw_selection_has(g->sel, &t[i]))
			st = tw_query_slices(f, t[i].thread_id, from, to, add_slices, g, err);
	return st;
}

enum tw_status tw_query_quantile(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_quantile_of *of, const struct tw_deadline *deadline, struct tw_arena *a,
        int64_t **ret, struct tw_err *err)
{
	struct spreading g = {
	        .sel = sel, .deadline = deadline, .rows = of->rows, .n_methods = of->n_methods};
	int64_t *out = tw_arena_alloc(a, (size_t)of->n_methods + 1, sizeof *out);
	enum tw_status st;

	if (!out)
		return tw_oom(err);
	st = reserve_space(&g, a, err);
	if (st == TW_OK)
		st = walk_threads(f, &g, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < of->n_methods; i++)
		out[i] = quantile(&g.methods[i], &of->rows[i], of->percent);
	*ret = out;
	return TW_OK;
}

enum tw_status tw_query_methods(const struct tw_forest *f, uint32_t n_methods, struct tw_arena *a,
        struct tw_method_info **ret, struct tw_err *err)
{
	struct tw_method_info *rows = tw_arena_zalloc(a, n_methods, sizeof *rows);
	uint32_t *active = tw_arena_zalloc(a, n_methods, sizeof *active);

	if (!rows || !active)
		return tw_oom(err);
	for (uint32_t i = 0; i < f->n; i++)
		if (!tw_tree_add_methods(&f->trees[i], n_methods, rows, active))
			return tw_fail(err, TW_CORRUPT, "a call tree is damaged");
	*ret = rows;
	return TW_OK;
}
