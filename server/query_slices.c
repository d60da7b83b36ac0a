/*
 * query_slices.c - slices of a time range, and the call tree of a selection.
 *
 * Chunks of a thread are in time order and carry the stack that was open where
 * they begin.  A range starts in the last chunk that begins at or before it:
 * what was open there and reaches into the range comes first, then slices of
 * this and the following chunks that overlap it.
 */
#include "query.h"

#include <string.h>

bool tw_selection_has(const struct tw_selection *sel, const struct tw_thread_info *t)
{
	if (sel->all_threads)
		return true;
	for (size_t i = 0; i < sel->n_tids; i++)
		if (sel->tids[i] == t->tid)
			return true;
	return false;
}

enum tw_status tw_selection_check(
        const struct tw_trace_file *f, const struct tw_selection *sel, struct tw_err *err)
{
	uint32_t n;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n);

	for (size_t i = 0; !sel->all_threads && i < sel->n_tids; i++) {
		bool found = false;

		for (uint32_t k = 0; k < n; k++)
			found = found || threads[k].tid == sel->tids[i];
		if (!found)
			return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
			        "the trace has no thread %llu", (unsigned long long)sel->tids[i]);
	}
	return TW_OK;
}

static bool overlaps(const struct tw_slice *s, int64_t from_ns, int64_t to_ns)
{
	int64_t end = s->start_ns + s->dur_ns;

	return s->start_ns < to_ns && (end > from_ns || (s->dur_ns == 0 && end == from_ns));
}

/* Runs of neighbours that overlap go out in one call. */
static bool pass_on(const struct tw_slice *s, size_t n, int64_t from_ns, int64_t to_ns,
        tw_slices_fn each, void *arg)
{
	size_t at = 0;

	while (at < n) {
		size_t end;

		while (at < n && !overlaps(&s[at], from_ns, to_ns))
			at++;
		end = at;
		while (end < n && overlaps(&s[end], from_ns, to_ns))
			end++;
		if (end > at && !each(arg, s + at, end - at))
			return false;
		at = end;
	}
	return true;
}

/* The first chunk that can hold something of the range. */
static uint32_t first_chunk(const struct tw_chunk_row *rows, uint32_t n, int64_t from_ns)
{
	uint32_t low = 0;
	uint32_t high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (rows[mid].info.start_ns <= from_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : 0;
}

static uint32_t level_zero(const struct tw_chunk_row *rows, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && rows[i].info.level == 0)
		i++;
	return i;
}

enum tw_status tw_query_slices(struct tw_trace_file *f, uint32_t thread_id, int64_t from_ns,
        int64_t to_ns, tw_slices_fn each, void *arg, struct tw_err *err)
{
	const struct tw_chunk_row *rows = NULL;
	uint32_t n = 0;
	struct tw_chunk c;
	enum tw_status st = tw_trace_file_chunks(f, thread_id, &rows, &n, err);
	bool go_on = true;

	if (st != TW_OK)
		return st;
	n = level_zero(rows, n);
	tw_chunk_init(&c);
	for (uint32_t first = first_chunk(rows, n, from_ns), i = first;
	        go_on && i < n && rows[i].info.start_ns < to_ns; i++) {
		st = tw_trace_file_chunk(f, &rows[i], &c, err);
		if (st != TW_OK)
			break;
		if (i == first)
			go_on = pass_on(c.open, c.n_open, from_ns, to_ns, each, arg);
		if (go_on)
			go_on = pass_on(c.slices, c.n, from_ns, to_ns, each, arg);
	}
	tw_chunk_done(&c);
	return st;
}

struct growing {
	struct tw_tree_builder *tree;
	const struct tw_selection *sel;
	const struct tw_deadline *deadline;
	enum tw_status status;
	bool partial;
};

static bool add_clipped(void *arg, const struct tw_slice *s, size_t n)
{
	struct growing *g = arg;

	for (size_t i = 0; i < n && g->status == TW_OK; i++) {
		struct tw_slice cut = s[i];
		int64_t end = cut.start_ns + cut.dur_ns;

		/* nobody knows what part of its CPU time lies in the range */
		if (end > g->sel->to_ns || cut.start_ns < g->sel->from_ns)
			cut.cpu_ns = -1;
		if (end > g->sel->to_ns)
			end = g->sel->to_ns;
		if (cut.start_ns < g->sel->from_ns)
			cut.start_ns = g->sel->from_ns;
		cut.dur_ns = end - cut.start_ns;
		g->status = tw_tree_builder_add(g->tree, &cut, 1);
	}
	g->partial = tw_deadline_passed(g->deadline);
	return g->status == TW_OK && !g->partial;
}

static enum tw_status add_thread(struct tw_trace_file *f, const struct tw_thread_info *t,
        struct growing *g, struct tw_arena *a, struct tw_err *err)
{
	struct tw_tree tree;
	enum tw_status st;

	if (t->slices == 0)
		return TW_OK;
	if (g->sel->ranged) {
		tw_tree_builder_cut(g->tree);
		st = tw_query_slices(
		        f, t->thread_id, g->sel->from_ns, g->sel->to_ns, add_clipped, g, err);
	} else {
		st = tw_trace_file_tree(f, t->thread_id, a, &tree, err);
		if (st == TW_OK)
			g->status = tw_tree_builder_add_tree(g->tree, &tree);
	}
	if (st == TW_OK && g->status != TW_OK)
		st = tw_fail(err, g->status, TW_NO_OFFSET, "no memory for a call tree");
	return st;
}

enum tw_status tw_query_thread_tree(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_selection *sel, struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	struct growing g = {.sel = sel};
	enum tw_status st;

	if (!sel->ranged)
		return tw_trace_file_tree(f, t->thread_id, a, ret, err);
	g.tree = tw_tree_builder_new(UINT32_MAX);
	if (!g.tree)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a call tree");
	st = add_thread(f, t, &g, a, err);
	if (st == TW_OK && tw_tree_builder_finish(g.tree, a, ret) != TW_OK)
		st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a call tree");
	tw_tree_builder_free(g.tree);
	return st;
}

static const struct tw_thread_info *only_thread(
        const struct tw_trace_file *f, const struct tw_selection *sel)
{
	const struct tw_thread_info *only = NULL;
	uint32_t n;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n);

	for (uint32_t i = 0; i < n; i++) {
		if (!threads[i].slices || !tw_selection_has(sel, &threads[i]))
			continue;
		if (only)
			return NULL;
		only = &threads[i];
	}
	return only;
}

static enum tw_status merge(struct tw_trace_file *f, struct growing *g, struct tw_arena *a,
        struct tw_tree *ret, struct tw_err *err)
{
	uint32_t n;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n);
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && !g->partial && i < n; i++)
		if (tw_selection_has(g->sel, &threads[i]))
			st = add_thread(f, &threads[i], g, a, err);
	if (st == TW_OK) {
		st = tw_tree_builder_finish(g->tree, a, ret);
		if (st != TW_OK)
			st = tw_fail(err, st, TW_NO_OFFSET, "no memory for a call tree");
	}
	return st;
}

enum tw_status tw_query_tree(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_tree *ret,
        bool *ret_partial, struct tw_err *err)
{
	struct growing g = {.sel = sel, .deadline = deadline};
	const struct tw_thread_info *only = sel->ranged ? NULL : only_thread(f, sel);
	enum tw_status st = tw_selection_check(f, sel, err);

	*ret_partial = false;
	if (st != TW_OK)
		return st;
	if (only) /* stored as it is */
		return tw_trace_file_tree(f, only->thread_id, a, ret, err);
	g.tree = tw_tree_builder_new(UINT32_MAX);
	if (!g.tree)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a call tree");
	st = merge(f, &g, a, ret, err);
	tw_tree_builder_free(g.tree);
	*ret_partial = g.partial;
	return st;
}

static enum tw_status stored_trees(struct tw_trace_file *f, const struct tw_selection *sel,
        struct tw_arena *a, struct tw_forest *ret, struct tw_err *err)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	struct tw_tree *trees = tw_arena_alloc(a, n ? n : 1, sizeof *trees);
	enum tw_status st = TW_OK;
	uint32_t k = 0;

	if (!trees)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for call trees");
	for (uint32_t i = 0; st == TW_OK && i < n; i++)
		if (t[i].slices && tw_selection_has(sel, &t[i]))
			st = tw_trace_file_tree(f, t[i].thread_id, a, &trees[k++], err);
	*ret = (struct tw_forest){trees, k};
	return st;
}

enum tw_status tw_query_forest(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_forest *ret,
        bool *ret_partial, struct tw_err *err)
{
	struct tw_tree *one;
	enum tw_status st = tw_selection_check(f, sel, err);

	*ret_partial = false;
	if (st != TW_OK)
		return st;
	if (!sel->ranged)
		return stored_trees(f, sel, a, ret, err);
	one = tw_arena_alloc(a, 1, sizeof *one);
	if (!one)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a call tree");
	st = tw_query_tree(f, sel, deadline, a, one, ret_partial, err);
	*ret = (struct tw_forest){one, 1};
	return st;
}
