/*
 * fleet_search_call.c - finds the longest matching call in a trace file.
 *
 * The thread's call tree stores each node's longest call; the slices then give its time.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/fleet/fleet_search.h"

enum { ARENA_BYTES = 256 << 20 };

struct finding {
	struct tw_trace_file *file;
	const struct tw_search_query *query;
	struct tw_arena *arena;
	const struct tw_method_info *infos;
	uint32_t n_infos;
	uint32_t method;   /* index in infos */
	const char **raws; /* ids of the required callers in this build, sorted */
	size_t n_raws;
	int8_t *ancestor; /* by method: whether it is a required caller: -1 unknown, 0 no, 1 yes */
	/* of the call */
	const struct tw_thread_info *thread;
	int64_t max_ns;
	int64_t below; /* depth of the outermost ancestor that is open; -1 */
	struct tw_search_call call;
};

static void raw_of(const struct tw_method_info *m, char out[TW_ROLLUP_RAW_BYTES])
{
	const struct tw_named what = tw_method_info_named(m);

	tw_rollup_raw(&what, out);
}

static bool is_ancestor(struct finding *f, uint32_t method)
{
	char raw[TW_ROLLUP_RAW_BYTES];
	const char *key = raw;

	if (method >= f->n_infos || f->n_raws == 0)
		return false;
	if (f->ancestor[method] < 0) {
		raw_of(&f->infos[method], raw);
		f->ancestor[method] =
		        bsearch(&key, f->raws, f->n_raws, sizeof(const char *), tw_by_text) ? 1 : 0;
	}
	return f->ancestor[method] == 1;
}

static bool same_space(const struct tw_rollup_naming *a, const struct tw_rollup_naming *b)
{
	return strcmp(a->build_id, b->build_id) == 0 && strcmp(a->mapping_id, b->mapping_id) == 0;
}

/* False: out of memory. */
static bool take_ancestors(struct finding *f)
{
	const struct tw_search_path *path = f->query->path;

	f->raws = tw_arena_alloc(f->arena, path->n + 1, sizeof(const char *));
	f->ancestor = tw_arena_alloc(f->arena, (size_t)f->n_infos + 1, sizeof *f->ancestor);
	if (!f->raws || !f->ancestor)
		return false;
	memset(f->ancestor, -1, f->n_infos + 1);
	for (size_t i = 0; i < path->n; i++)
		if (same_space(&path->ancestors[i], f->query->method))
			f->raws[f->n_raws++] = path->ancestors[i].raw;
	if (f->n_raws)
		qsort(f->raws, f->n_raws, sizeof(const char *), tw_by_text);
	return true;
}

static uint32_t find_method(const struct finding *f)
{
	char raw[TW_ROLLUP_RAW_BYTES];

	for (uint32_t i = 0; i < f->n_infos; i++) {
		raw_of(&f->infos[i], raw);
		if (f->infos[i].count && strcmp(raw, f->query->method->raw) == 0)
			return i;
	}
	return TW_NO_METHOD;
}

static bool is_thread(const struct tw_search_found *found, const struct tw_thread_info *info)
{
	char name[TW_INDEX_THREAD_BYTES + 1];

	(void)tw_utf8_clean(name, sizeof name, info->name);
	return info->is_main == found->is_main && strcmp(name, found->thread) == 0;
}

/* --- call tree --- */

/* Parents precede their children. */
static bool find_longest(
        struct finding *f, const struct tw_thread_info *thread, const struct tw_tree *tree)
{
	bool *below = tw_arena_zalloc(f->arena, (size_t)tree->n + 1, sizeof *below);

	if (!below)
		return false;
	for (uint32_t i = 1; i < tree->n; i++) {
		const struct tw_tree_node *node = &tree->nodes[i];

		below[i] =
		        node->parent &&
		        (below[node->parent] || is_ancestor(f, tree->nodes[node->parent].method));
		if (node->method != f->method || node->max_ns <= f->max_ns ||
		        (f->query->path->wanted && !below[i]))
			continue;
		f->max_ns = node->max_ns;
		f->thread = thread;
	}
	return true;
}

static enum tw_status search_threads(struct finding *f, struct tw_err *err)
{
	uint32_t n = 0;
	const struct tw_thread_info *threads = tw_trace_file_threads(f->file, &n);
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		struct tw_tree tree;

		if (threads[i].slices == 0 || !is_thread(f->query->found, &threads[i]) ||
		        tw_deadline_passed(f->query->deadline))
			continue;
		st = tw_trace_file_tree(f->file, threads[i].thread_id, f->arena, &tree, err);
		if (st == TW_OK && !find_longest(f, &threads[i], &tree))
			st = tw_oom(err);
	}
	return st;
}

/* --- slices --- */

static bool search_slices(void *arg, const struct tw_slice *s, size_t n)
{
	struct finding *f = arg;

	for (size_t i = 0; i < n; i++) {
		if ((int64_t)s[i].depth <= f->below)
			f->below = -1;
		if (s[i].method == f->method && s[i].dur_ns == f->max_ns &&
		        (!f->query->path->wanted || f->below >= 0)) {
			f->call = (struct tw_search_call){
			        true, f->thread->tid, s[i].start_ns, s[i].dur_ns, s[i].depth};
			return false;
		}
		if (f->below < 0 && is_ancestor(f, s[i].method))
			f->below = s[i].depth;
	}
	return !tw_deadline_passed(f->query->deadline);
}

static enum tw_status find_call(struct finding *f, struct tw_err *err)
{
	enum tw_status st = tw_trace_file_methods(f->file, &f->infos, &f->n_infos, err);

	if (st == TW_OK && !take_ancestors(f))
		st = tw_oom(err);
	if (st != TW_OK)
		return st;
	f->method = find_method(f);
	if (f->method != TW_NO_METHOD)
		st = search_threads(f, err);
	if (st == TW_OK && f->thread)
		st = tw_query_slices(f->file, f->thread->thread_id, f->thread->start_ns,
		        f->thread->end_ns + 1, search_slices, f, err);
	return st;
}

enum tw_status tw_search_find_call(struct tw_trace_file *file, const struct tw_search_query *query,
        struct tw_search_call *ret, struct tw_err *err)
{
	struct finding f = {.file = file,
	        .query = query,
	        .arena = tw_arena_new(ARENA_BYTES),
	        .max_ns = query->over_ns,
	        .below = -1};
	enum tw_status st = f.arena ? find_call(&f, err) : tw_oom(err);

	tw_arena_free(f.arena);
	if (st == TW_OK)
		*ret = f.call;
	return st;
}
