/*
 * rollup_index.c - builds the search index entries of a trace from its call trees, and packs those
 * of a cell.
 */

#include "decoder/base/list.h"
#include "server/catalogue/fleet/catalogue_search_index.h"
#include "server/derive/rollup/rollup_writer_int.h"
#include "server/stats/search_index.h"

enum { POST_BYTES = 8 << 20, PACKED_AT_ONCE = 256, PACK_FROM = 8 };

struct trace_index { /* index entries of one trace */
	struct tw_trace_file *file;
	struct tw_arena *arena;  /* for the result */
	struct tw_arena *trees;  /* for one call tree at a time */
	const uint64_t *numbers; /* of methods by index; 0: not indexed */
	uint32_t n_methods;
	struct tw_index_thread *threads;
	uint32_t n_threads;
	int64_t *longest; /* by method, of the current thread; -1: not called */
	struct tw_index_entry *entries;
	size_t n;
	uint32_t cap;
};

static bool same_thread(const struct tw_index_thread *a, const struct tw_index_thread *b)
{
	return a->is_main == b->is_main && tw_str_eq(a->name, b->name);
}

/* Its index among the names; threads beyond the limit share the last one. */
static bool find_thread(struct trace_index *p, const struct tw_thread_info *info, uint32_t *ret)
{
	char name[TW_INDEX_THREAD_BYTES + 1];
	struct tw_index_thread t = {info->is_main, {0}};
	const char *copy;

	(void)tw_utf8_clean(name, sizeof name, info->name);
	t.name = tw_str_of(name);
	for (*ret = 0; *ret < p->n_threads; ++*ret)
		if (same_thread(&p->threads[*ret], &t))
			return true;
	if (p->n_threads == TW_INDEX_THREADS_MAX) {
		*ret = p->n_threads - 1;
		return true;
	}
	copy = p->n_threads == TW_INDEX_THREADS_MAX - 1 ? "" : tw_arena_str(p->arena, t.name);
	if (!copy)
		return false;
	p->threads[p->n_threads++] = (struct tw_index_thread){t.is_main, tw_str_of(copy)};
	return true;
}

static bool add_entry(struct trace_index *p, const struct tw_index_entry *entry)
{
	if (!TW_GROW(p->arena, p->entries, p->n, p->cap))
		return false;
	p->entries[p->n++] = *entry;
	return true;
}

/* Adds each method of the tree once, with its longest call. */
static bool add_tree(struct trace_index *p, const struct tw_tree *tree, uint32_t thread)
{
	bool fits = true;

	for (uint32_t i = 1; i < tree->n; i++) {
		const struct tw_tree_node *node = &tree->nodes[i];

		if (node->method < p->n_methods && node->max_ns > p->longest[node->method])
			p->longest[node->method] = node->max_ns;
	}
	for (uint32_t i = 1; fits && i < tree->n; i++) {
		uint32_t m = tree->nodes[i].method;

		if (m >= p->n_methods || p->longest[m] < 0)
			continue;
		if (p->numbers[m])
			fits = add_entry(
			        p, &(struct tw_index_entry){p->numbers[m], thread, p->longest[m]});
		p->longest[m] = -1;
	}
	return fits;
}

static enum tw_status add_thread(
        struct trace_index *p, const struct tw_thread_info *info, struct tw_err *err)
{
	struct tw_tree tree;
	uint32_t thread;
	enum tw_status st;

	if (info->slices == 0)
		return TW_OK;
	if (!find_thread(p, info, &thread))
		return tw_oom(err);
	tw_arena_reset(p->trees);
	st = tw_trace_file_tree(p->file, info->thread_id, p->trees, &tree, err);
	if (st == TW_NOT_FOUND)
		return TW_OK;
	if (st != TW_OK)
		return st;
	return add_tree(p, &tree, thread) ? TW_OK : tw_oom(err);
}

static enum tw_status add_threads(struct trace_index *p, struct tw_err *err)
{
	uint32_t n = 0;
	const struct tw_thread_info *threads = tw_trace_file_threads(p->file, &n);
	enum tw_status st = TW_OK;

	p->threads = tw_arena_alloc(p->arena, TW_INDEX_THREADS_MAX, sizeof *p->threads);
	p->longest = tw_arena_alloc(p->arena, (size_t)p->n_methods + 1, sizeof *p->longest);
	if (!p->threads || !p->longest)
		return tw_oom(err);
	for (uint32_t m = 0; m < p->n_methods; m++)
		p->longest[m] = -1;
	for (uint32_t i = 0; st == TW_OK && i < n; i++)
		st = add_thread(p, &threads[i], err);
	return st;
}

static enum tw_status write_entries(
        struct trace_index *p, const char *trace_id, struct tw_str *ret, struct tw_err *err)
{
	const struct tw_index_entries all = {trace_id, p->threads, p->n_threads, p->entries, p->n};
	struct tw_buf out;

	tw_buf_init(&out, POST_BYTES);
	tw_index_write(&all, &out);
	return tw_rollup_copy(&out, p->arena, ret, err);
}

enum tw_status tw_rollup_take_index(struct tw_rollup_worker *f, const struct tw_rollup_indexing *of,
        struct tw_str *ret, struct tw_err *err)
{
	struct trace_index p = {.file = of->file,
	        .arena = f->arena,
	        .trees = tw_arena_new(TW_ROLLUP_WORKER_BYTES),
	        .numbers = of->numbers,
	        .n_methods = of->n_methods};
	enum tw_status st = p.trees ? add_threads(&p, err) : tw_oom(err);

	if (st == TW_OK)
		st = write_entries(&p, of->trace_id, ret, err);
	tw_arena_free(p.trees);
	return st;
}

/* --- packing --- */

/* A few small entries wait until there are more. */
static bool are_enough_to_pack(const struct tw_index_row *loose, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += loose[i].data.len;
	return n >= PACK_FROM || (n > 1 && bytes > TW_INDEX_PACK_BYTES / 2);
}

static enum tw_status pack_some(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, bool *ret_more, struct tw_err *err)
{
	struct tw_str rows[TW_INDEX_ROWS] = {{0}};
	struct tw_index_row *loose = NULL;
	struct tw_str *ones;
	size_t n = 0;
	enum tw_status st = tw_catalogue_index_loose(c, of, PACKED_AT_ONCE, a, &loose, &n, err);

	*ret_more = st == TW_OK && are_enough_to_pack(loose, n);
	if (!*ret_more)
		return st;
	ones = tw_arena_alloc(a, n, sizeof *ones);
	if (!ones)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++)
		ones[i] = loose[i].data;
	st = tw_index_pack(ones, n, a, rows, err);
	if (st == TW_OK)
		st = tw_catalogue_index_pack(c, of, loose, n, rows, err);
	return st;
}

enum tw_status tw_rollup_pack_index(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool more = true;

	while (st == TW_OK && more) {
		tw_arena_reset(a);
		st = pack_some(c, of, a, &more, err);
	}
	return st == TW_CONFLICT ? TW_OK : st; /* another process packs them */
}
