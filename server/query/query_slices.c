/*
 * query_slices.c - slices of a time range, and the call trees of a selection.
 */
#include "server/query/query_slices.h"
#include "decoder/base/order.h"

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

static bool has_thread(const struct tw_trace_file *f, uint64_t tid)
{
	uint32_t n;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (threads[i].tid == tid)
			return true;
	return false;
}

enum tw_status tw_selection_check(
        const struct tw_trace_file *f, const struct tw_selection *sel, struct tw_err *err)
{
	for (size_t i = 0; !sel->all_threads && i < sel->n_tids; i++)
		if (!has_thread(f, sel->tids[i]))
			return tw_fail(err, TW_NOT_FOUND, "the trace has no thread %llu",
			        (unsigned long long)sel->tids[i]);
	return TW_OK;
}

/* A trace without a marked main thread may have a thread named "main". */
static bool matches_word(const struct tw_thread_info *t, struct tw_str word, bool has_main)
{
	uint64_t tid;

	if (tw_str_u64(word, INT64_MAX, &tid))
		return t->tid == tid;
	if (has_main && tw_str_eq(word, TW_STR("main")))
		return t->is_main;
	return tw_str_eq(t->name, word);
}

static enum tw_status no_thread(struct tw_str word, uint32_t n, struct tw_err *err)
{
	return tw_fail(err, TW_NOT_FOUND,
	        "the trace has no thread %.*s: use main, a tid or a name; GET "
	        "/api/v1/traces/ID/threads or SELECT tid, name FROM thread lists its %u",
	        (int)(word.len < 40 ? word.len : 40), word.ptr, n);
}

enum tw_status tw_selection_threads(const struct tw_trace_file *f, const char *text, bool some,
        struct tw_arena *a, struct tw_selection *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text && strcmp(text, "all") != 0 ? text : "");
	uint32_t n;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n);
	uint64_t *tids = tw_arena_alloc(a, (size_t)n + 1, sizeof *tids);
	struct tw_selection s = {.all_threads = rest.len == 0, .tids = tids};
	bool has_main = false;

	if (!tids)
		return tw_oom(err);
	for (uint32_t i = 0; i < n; i++)
		has_main = has_main || threads[i].is_main;
	while (rest.len) {
		const struct tw_str word = tw_str_split(&rest, ',');
		bool known = false;

		for (uint32_t i = 0; i < n; i++) {
			if (!matches_word(&threads[i], word, has_main))
				continue;
			if (!tw_selection_has(&s, &threads[i]))
				tids[s.n_tids++] = threads[i].tid;
			known = true;
		}
		if (!known && !some)
			return no_thread(word, n, err);
	}
	ret->all_threads = s.all_threads;
	ret->tids = s.tids;
	ret->n_tids = s.n_tids;
	return TW_OK;
}

static bool overlaps(const struct tw_range_walk *w, const struct tw_slice *s)
{
	int64_t end = s->start_ns + s->dur_ns;

	return s->depth <= w->depth && s->start_ns < w->to_ns &&
	       (end > w->from_ns || (s->dur_ns == 0 && end == w->from_ns));
}

size_t tw_range_run(struct tw_range_walk *w, const struct tw_slice *s, size_t n, size_t *at)
{
	size_t end;

	while (*at < n && !overlaps(w, &s[*at]))
		++*at;
	for (end = *at; end < n && overlaps(w, &s[end]); end++)
		w->depth = s[end].depth + 1;
	return end - *at;
}

bool tw_range_has_chunk(
        struct tw_range_walk *w, const struct tw_chunk_info *i, const struct tw_chunk *c)
{
	if (i->start_ns < w->from_ns || i->end_ns > w->to_ns || i->start_ns >= w->to_ns ||
	        c->slices[0].depth > w->depth || c->slices[c->n - 1].start_ns >= w->to_ns)
		return false;
	w->depth = c->slices[c->n - 1].depth + 1;
	return true;
}

/* The last chunk that begins before the range. */
static uint32_t first_chunk(const struct tw_chunk_row *rows, uint32_t n, int64_t from_ns)
{
	uint32_t at;

	TW_BISECT(at, n, rows[at].info.start_ns < from_ns);
	return at ? at - 1 : 0;
}

enum tw_status tw_range_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_range_walk *w, const struct tw_chunk_row **ret, uint32_t *ret_n,
        struct tw_err *err)
{
	const struct tw_chunk_row *rows = NULL;
	uint32_t first;
	uint32_t end = 0;
	uint32_t n;
	enum tw_status st = tw_trace_file_call_chunks(f, thread_id, &rows, &end, err);

	if (st != TW_OK)
		return st;
	first = first_chunk(rows, end, w->from_ns);
	for (n = 0; first + n < end && rows[first + n].info.start_ns < w->to_ns;)
		n++;
	*ret = n ? rows + first : NULL;
	*ret_n = n;
	return TW_OK;
}

/* Passes on runs of adjacent slices in one call. */
static bool pass_on(
        struct tw_range_walk *w, const struct tw_slice *s, size_t n, tw_slices_fn each, void *arg)
{
	size_t run;

	for (size_t at = 0; (run = tw_range_run(w, s, n, &at)) > 0; at += run)
		if (!each(arg, s + at, run))
			return false;
	return true;
}

struct passing {
	struct tw_range_walk walk;
	const struct tw_chunk_row *rows;
	tw_slices_fn each;
	void *arg;
};

static bool pass_chunk(void *arg, uint32_t i, const struct tw_chunk *c)
{
	struct passing *p = arg;

	if (i == 0 && !pass_on(&p->walk, c->open, c->n_open, p->each, p->arg))
		return false;
	if (tw_range_has_chunk(&p->walk, &p->rows[i].info, c))
		return p->each(p->arg, c->slices, c->n);
	return pass_on(&p->walk, c->slices, c->n, p->each, p->arg);
}

enum tw_status tw_query_slices(struct tw_trace_file *f, uint32_t thread_id, int64_t from_ns,
        int64_t to_ns, tw_slices_fn each, void *arg, struct tw_err *err)
{
	struct passing p = {.walk = {from_ns, to_ns, 0}, .each = each, .arg = arg};
	uint32_t n = 0;
	enum tw_status st = tw_range_chunks(f, thread_id, &p.walk, &p.rows, &n, err);

	return st == TW_OK ? tw_each_chunk(f, p.rows, n, pass_chunk, &p, err) : st;
}

/* A thread without slices in the range has an empty tree. */
static enum tw_status empty_tree(struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	struct tw_tree_node *root = tw_arena_alloc(a, 1, sizeof *root);

	if (!root)
		return tw_oom(err);
	*root = (struct tw_tree_node){.method = TW_NO_METHOD, .subtree = 1, .cpu_ns = -1};
	*ret = (struct tw_tree){root, 1};
	return TW_OK;
}

enum tw_status tw_query_thread_tree(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_selection *sel, struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	const struct tw_range_scan scan = {.file = f, .only = t, .sel = sel, .arena = a};
	struct tw_forest one;
	bool partial;
	enum tw_status st;

	if (!sel->ranged)
		return tw_trace_file_tree(f, t->thread_id, a, ret, err);
	st = tw_range_trees(&scan, &one, &partial, err);
	if (st == TW_OK && one.n == 0)
		return empty_tree(a, ret, err);
	if (st == TW_OK)
		*ret = one.trees[0];
	return st;
}

/* Reading fewer calls takes less time than starting a thread. */
enum { CALLS_PER_HELPER = 1 << 15 };

/* Whether a second thread could read a part of the trees. */
static bool is_divisible(const struct tw_trace_file *f, const struct tw_selection *sel)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	uint32_t large = 0;

	for (uint32_t i = 0; i < n; i++)
		large += t[i].slices >= CALLS_PER_HELPER && tw_selection_has(sel, &t[i]);
	return large > 1 && !tw_trace_file_is_inlined(f);
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
		return tw_oom(err);
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
	const struct tw_range_scan scan = {.file = f, .sel = sel, .deadline = deadline, .arena = a};
	enum tw_status st = tw_selection_check(f, sel, err);

	*ret_partial = false;
	if (st != TW_OK)
		return st;
	if (sel->ranged || is_divisible(f, sel))
		return tw_range_trees(&scan, ret, ret_partial, err);
	return stored_trees(f, sel, a, ret, err);
}
