/* Unit tests of call trees of a time range: however many threads scan it, and wherever they cut it,
 * the trees are those of one plain scan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/base/clock.h"
#include "server/base/thread/parallel.h"
#include "server/query/query_outside.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

struct world {
	struct model model;
	struct trace_fixture f;
	struct tw_arena *arena;
};

enum { N_METHODS = 4 }; /* of traces that consist of one tree */

enum kind { WITH_CPU, WITHOUT_ENDS, CLIPPED, KINDS, PATHS_MISSING = KINDS, REPEATED, FEW_PATHS };

/* Every third call has no CPU time. */
static void give_cpu(struct model *m)
{
	for (size_t i = 0; i < m->n_records; i++)
		m->records[i].cpu_ns = i % 3 ? m->records[i].dur_ns / 2 : 0;
}

/* The last tenth of each thread's ends was never written. */
static void lose_ends(struct model *m)
{
	size_t n = 0;
	size_t left = m->n_pairs / 10;

	for (size_t i = 0; i < m->n_pairs; i++) {
		bool last = i + left >= m->n_pairs;

		if (!last || m->pairs[i].kind == TW_EV_BEGIN)
			m->pairs[n++] = m->pairs[i];
	}
	m->n_pairs = n;
}

/* Calls of the second half are of one method. */
static void repeat(struct model *m)
{
	int64_t last = 0;

	for (size_t i = 0; i < m->n_records; i++)
		last = m->records[i].ts_ns > last ? m->records[i].ts_ns : last;
	for (size_t i = 0; i < m->n_records; i++)
		if (m->records[i].ts_ns > last / 2)
			m->records[i].sym = m->records[0].sym;
}

/* Paths of three methods. */
static void limit_methods(struct model *m)
{
	const uint32_t syms[] = {m->records[0].sym, m->records[1].sym, m->records[2].sym};
	uint64_t r = 3;

	for (size_t i = 0; i < m->n_records; i++)
		m->records[i].sym = syms[(test_random(&r) >> 9) % 3];
}

/* Two threads, the second half as large: of three chunks and of two. */
static void open_world(struct world *w, enum kind kind, uint32_t per_thread)
{
	struct model_shape shape = {11 + (uint64_t)kind, 2, per_thread, 40, false};
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b;

	shape.max_depth = kind == FEW_PATHS ? 6 : shape.max_depth;
	model_make(&w->model, &shape);
	if (kind == REPEATED)
		repeat(&w->model);
	if (kind == WITH_CPU)
		give_cpu(&w->model);
	if (kind == WITHOUT_ENDS)
		lose_ends(&w->model);
	if (kind == CLIPPED)
		limits.max_depth = 9;
	if (kind == FEW_PATHS)
		limit_methods(&w->model);
	if (kind == PATHS_MISSING)
		limits.max_tree_nodes = 1;
	b = tw_builder_new(&limits);
	assert_non_null(b);
	assert_int_equal(model_emit(&w->model, tw_builder_sink(b),
	                         kind == WITHOUT_ENDS ? MODEL_PAIRS : MODEL_RECORDS, NULL),
	        TW_OK);
	assert_int_equal(trace_fixture_write(&w->f, b), TW_OK);
	w->arena = tw_arena_new((size_t)1 << 30);
}

static void close_world(struct world *w)
{
	tw_parallel_set_cores(0);
	tw_arena_free(w->arena);
	trace_fixture_done(&w->f);
	model_done(&w->model);
}

/* --- the plain scan --- */

struct plain {
	struct tw_tree_builder *tree;
	const struct tw_selection *sel;
};

static bool add_plain(void *arg, const struct tw_slice *s, size_t n)
{
	struct plain *p = arg;

	for (size_t i = 0; i < n; i++) {
		struct tw_slice c = s[i];
		int64_t end = c.start_ns + c.dur_ns;

		if (end > p->sel->to_ns || c.start_ns < p->sel->from_ns)
			c.cpu_ns = -1;
		end = end > p->sel->to_ns ? p->sel->to_ns : end;
		c.start_ns = c.start_ns < p->sel->from_ns ? p->sel->from_ns : c.start_ns;
		c.dur_ns = end - c.start_ns;
		assert_int_equal(tw_tree_builder_add(p->tree, &c, 1), TW_OK);
	}
	return true;
}

/* A tree for each thread that has something in the range. */
static struct tw_forest plain_scan(struct world *w, const struct tw_selection *sel)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(w->f.file, &n);
	struct tw_tree *trees = tw_arena_alloc(w->arena, n, sizeof *trees);
	struct tw_forest f = {trees, 0};

	for (uint32_t i = 0; i < n; i++) {
		struct plain p = {tw_tree_builder_new(UINT32_MAX), sel};
		struct tw_tree *tree = &trees[f.n];

		assert_int_equal(tw_query_slices(w->f.file, t[i].thread_id, sel->from_ns,
		                         sel->to_ns, add_plain, &p, NULL),
		        TW_OK);
		assert_int_equal(tw_tree_builder_finish(p.tree, w->arena, tree), TW_OK);
		tw_tree_builder_free(p.tree);
		f.n += tree->n > 1;
	}
	return f;
}

/* --- the same --- */

static struct tw_forest trees_of(
        struct world *w, const struct tw_selection *sel, const struct tw_deadline *d, bool late)
{
	struct tw_forest f;
	bool partial = !late;

	assert_int_equal(tw_query_forest(w->f.file, sel, d, w->arena, &f, &partial, NULL), TW_OK);
	assert_int_equal(partial, late);
	return f;
}

/* Empty trees, as of a chunk without calls in the range, do not count. */
static void check_same(const struct tw_forest *got, const struct tw_forest *want)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < got->n; i++) {
		const struct tw_tree *t = &got->trees[i];

		if (t->n == 1)
			continue;
		assert_true(k < want->n);
		assert_int_equal(t->n, want->trees[k].n);
		assert_memory_equal(t->nodes, want->trees[k++].nodes, t->n * sizeof *t->nodes);
	}
	assert_int_equal(k, want->n);
}

static void check_range(struct world *w, int64_t from, int64_t to)
{
	static const unsigned cores[] = {1, 2, 64};
	const struct tw_selection sel = {
	        .all_threads = true, .ranged = true, .from_ns = from, .to_ns = to};
	struct tw_forest want = plain_scan(w, &sel);

	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
		struct tw_forest got;

		tw_parallel_set_cores(cores[i]);
		got = trees_of(w, &sel, NULL, false);
		check_same(&got, &want);
	}
	tw_arena_reset(w->arena);
}

/* A time at which a call begins or ends, or one nanosecond from it. */
static int64_t some_edge(const struct world *w, uint64_t *r)
{
	const struct model_slice *s = &w->model.slices[(test_random(r) >> 8) % w->model.n];
	int64_t at = s->start_ns + (test_random(r) >> 9 & 1 ? s->dur_ns : 0);

	return at + (int64_t)((test_random(r) >> 9) % 3) - 1;
}

static void test_plain(void **state)
{
	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		struct world w;
		uint64_t r = 77 + (uint64_t)kind;

		open_world(&w, (enum kind)kind, 140000);
		check_range(&w, 0, INT64_MAX);
		for (int i = 0; i < 2; i++) {
			int64_t a = some_edge(&w, &r);
			int64_t b = some_edge(&w, &r);

			check_range(&w, a < b ? a : b, (a < b ? b : a) + 1);
		}
		close_world(&w);
	}
}

static void test_many_edges(void **state)
{
	struct world w;
	uint64_t r = 5;

	(void)state;
	open_world(&w, WITH_CPU, 3000);
	for (int i = 0; i < 300; i++) {
		int64_t a = some_edge(&w, &r);

		check_range(&w, a, a + (int64_t)((test_random(&r) >> 9) % 40) + 1);
	}
	close_world(&w);
}

/* A range that contains a thread is read from its stored tree if that equals a scan. */
static void test_whole(void **state)
{
	const struct tw_selection range = {.all_threads = true, .ranged = true, .to_ns = INT64_MAX};
	struct world w;

	(void)state;
	for (int kind = 0; kind <= PATHS_MISSING; kind++) {
		struct tw_forest want, got;

		open_world(&w, (enum kind)kind, 100000);
		tw_parallel_set_cores(4);
		want = plain_scan(&w, &range);
		got = trees_of(&w, &range, NULL, false);
		check_same(&got, &want);
		close_world(&w);
	}
}

static bool grant_4_mib(struct tw_mem_account *a, int64_t used)
{
	(void)a;
	return used <= 4 << 20;
}

/* The end of each thread repeats one method: its tree is small, although the stored one is not. */
static void test_small_tree_in_little_memory(void **state)
{
	struct tw_mem_account account = {.more = grant_4_mib};
	struct tw_selection sel = {.all_threads = true, .ranged = true};
	const struct tw_thread_info *t;
	struct tw_forest trees;
	bool partial = true;
	enum tw_status st;
	struct world w;
	uint32_t n;

	(void)state;
	open_world(&w, REPEATED, 400000);
	t = tw_trace_file_threads(w.f.file, &n);
	sel.from_ns = t[0].start_ns + (t[0].end_ns - t[0].start_ns) / 10 * 6;
	sel.to_ns = t[0].end_ns;
	tw_parallel_set_cores(1);
	(void)tw_mem_count_for(&account);
	st = tw_query_forest(w.f.file, &sel, NULL, w.arena, &trees, &partial, NULL);
	(void)tw_mem_count_for(NULL);
	assert_int_equal(st, TW_OK);
	assert_false(partial);
	close_world(&w);
}

static int64_t most_used;

static bool note_use(struct tw_mem_account *a, int64_t used)
{
	(void)a;
	most_used = used > most_used ? used : most_used;
	return true;
}

/* Space that was made ahead is returned when the tree is complete. */
static void test_space_made_ahead(void **state)
{
	struct tw_mem_account account = {.more = note_use};
	const struct tw_slice s = {.dur_ns = 5, .method = 1, .cpu_ns = 3};
	struct tw_tree_builder *b;

	(void)state;
	(void)tw_mem_count_for(&account);
	b = tw_tree_builder_new(UINT32_MAX);
	assert_true(tw_tree_builder_reserve(b, 1 << 17));
	assert_int_equal(tw_tree_builder_add(b, &s, 1), TW_OK);
	assert_in_range(account.used, 1 << 22, 1 << 23);
	assert_int_equal(tw_tree_builder_link(b), TW_OK);
	assert_in_range(account.used, 1, 1 << 17);
	assert_int_equal(tw_tree_builder_linked(b, 1).total_ns, 5);
	tw_tree_builder_free(b);
	assert_int_equal(account.used, 0);
	(void)tw_mem_count_for(NULL);
}

/* The space made for the trees of a fifth of the calls is less than for all. */
static void test_little_memory_of_few_calls(void **state)
{
	const struct tw_flame_query q = {.max_nodes = 10};
	struct tw_mem_account account = {.more = note_use};
	struct tw_selection sel = {.all_threads = true, .ranged = true};
	const struct tw_thread_info *t;
	struct tw_flame graph;
	struct world w;
	uint32_t n;

	(void)state;
	open_world(&w, REPEATED, 1000000);
	t = tw_trace_file_threads(w.f.file, &n);
	sel.from_ns = t[0].start_ns + (t[0].end_ns - t[0].start_ns) / 10 * 6;
	sel.to_ns = t[0].start_ns + (t[0].end_ns - t[0].start_ns) / 10 * 8;
	tw_parallel_set_cores(1);
	most_used = 0;
	(void)tw_mem_count_for(&account);
	assert_int_equal(tw_query_graph(w.f.file, &sel, &q, NULL, w.arena, &graph, NULL), TW_OK);
	(void)tw_mem_count_for(NULL);
	assert_in_range(most_used, 4000000, 8000000); /* 8.6 MB for a node per call */
	close_world(&w);
}

static void check_same_graph(const struct tw_flame *got, const struct tw_flame *want)
{
	assert_int_equal(got->n, want->n);
	assert_int_equal(got->total_nodes, want->total_nodes);
	assert_false(got->partial);
	assert_memory_equal(got->nodes, want->nodes, want->n * sizeof *want->nodes);
}

/* Stored trees and bottom-up graphs are the same, however many threads read and list them. */
static void test_stored(void **state)
{
	static const unsigned cores[] = {1, 2, 64};
	const struct tw_selection all = {.all_threads = true};
	const struct tw_flame_query q = {.view = TW_BOTTOM_UP, .max_nodes = 3000};
	struct tw_forest trees[3];
	struct tw_flame graphs[3];
	struct world w;

	(void)state;
	open_world(&w, WITH_CPU, 140000);
	for (int i = 0; i < 3; i++) {
		tw_parallel_set_cores(cores[i]);
		trees[i] = trees_of(&w, &all, NULL, false);
		assert_int_equal(
		        tw_query_bottom_up(&trees[i], &q, NULL, w.arena, &graphs[i], NULL), TW_OK);
		check_same(&trees[i], &trees[0]);
		check_same_graph(&graphs[i], &graphs[0]);
	}
	assert_int_equal(trees[0].n, 2);
	assert_true(trees[0].trees[0].n + trees[0].trees[1].n > 100000); /* several helpers */
	close_world(&w);
}

/* A range that cuts the first call of each thread, so that all of them are scanned. */
static struct tw_selection almost_all(const struct world *w)
{
	struct tw_selection sel = {.all_threads = true, .ranged = true, .to_ns = INT64_MAX};
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(w->f.file, &n);

	for (uint32_t i = 0; i < n; i++)
		if (t[i].start_ns >= sel.from_ns)
			sel.from_ns = t[i].start_ns + 1;
	return sel;
}

/* The graph of a range does not sort its trees, and equals the graph of the sorted ones. */
static void test_graph_of_range(void **state)
{
	static const uint32_t sizes[] = {1, 100, 5000, 1000000};
	struct tw_selection sel;
	struct world w;
	int64_t end_ns;

	(void)state;
	for (int kind = 0; kind <= PATHS_MISSING; kind++) {
		open_world(&w, (enum kind)kind, 20000);
		sel = almost_all(&w);
		end_ns = tw_trace_file_info(w.f.file)->end_ns + 1;
		for (int i = 0; i < 12; i++) {
			const struct tw_flame_query q = {
			        .max_nodes = sizes[i % 4], .skip = i == 11 ? 1 : 0};
			struct tw_flame got, want;
			struct tw_forest trees;
			enum tw_status st;

			tw_parallel_set_cores(i % 2 ? 4 : 1);
			sel.from_ns -= i == 4; /* one of the trees is read as stored */
			sel.to_ns = end_ns - i % 3 * (end_ns - sel.from_ns) / 7;
			trees = trees_of(&w, &sel, NULL, false);
			st = tw_query_flame(&trees, &q, NULL, w.arena, &want, NULL);
			assert_int_equal(
			        tw_query_graph(w.f.file, &sel, &q, NULL, w.arena, &got, NULL), st);
			if (st == TW_OK)
				check_same_graph(&got, &want);
		}
		close_world(&w);
	}
}

static bool count_down(void *arg)
{
	_Atomic int *left = arg;

	return atomic_fetch_sub(left, 1) <= 1;
}

/* Sorted, and without what a tree of sums lacks. */
static struct tw_tree only_sums(struct world *w, const struct tw_tree *t)
{
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree sorted;

	assert_int_equal(tw_tree_builder_add_tree(b, t), TW_OK);
	assert_int_equal(tw_tree_builder_finish(b, w->arena, &sorted), TW_OK);
	tw_tree_builder_free(b);
	for (uint32_t i = 0; i < sorted.n; i++) {
		sorted.nodes[i].max_ns = 0;
		sorted.nodes[i].cpu_ns = -1;
	}
	return sorted;
}

/* The stored tree of a thread without what is outside of the range. */
static struct tw_tree without_outside(
        struct world *w, uint32_t thread_id, const struct tw_selection *sel)
{
	struct tw_tree_builder *outside = tw_tree_builder_new(UINT32_MAX);
	const struct tw_chunk_row *rows;
	const struct tw_method_ref *methods;
	struct tw_chunk c;
	struct tw_tree t;
	uint32_t n_methods;
	uint32_t n;

	tw_chunk_init(&c);
	assert_int_equal(tw_trace_file_tree(w->f.file, thread_id, w->arena, &t, NULL), TW_OK);
	assert_int_equal(tw_trace_file_chunks(w->f.file, thread_id, &rows, &n, NULL), TW_OK);
	for (uint32_t i = 0; i < n && rows[i].info.level == 0; i++) {
		assert_int_equal(tw_trace_file_chunk(w->f.file, &rows[i], &c, NULL), TW_OK);
		assert_int_equal(tw_outside_add(outside, sel, &c), TW_OK);
	}
	assert_int_equal(tw_tree_builder_link(outside), TW_OK);
	assert_int_equal(tw_trace_file_method_refs(w->f.file, &methods, &n_methods, NULL), TW_OK);
	assert_int_equal(tw_outside_subtract(&t, outside, n_methods, NULL), TW_OK);
	tw_tree_builder_free(outside);
	tw_chunk_done(&c);
	return t;
}

static void check_outside(struct world *w, int64_t from, int64_t to)
{
	const struct tw_selection sel = {
	        .all_threads = true, .ranged = true, .from_ns = from, .to_ns = to};
	const struct tw_forest scanned = plain_scan(w, &sel);
	struct tw_tree wanted[2];
	struct tw_tree trees[2];
	const struct tw_forest want = {wanted, scanned.n};
	const struct tw_forest got = {trees, 2};
	struct tw_tree t;

	for (uint32_t i = 0; i < scanned.n; i++)
		wanted[i] = only_sums(w, &scanned.trees[i]);
	for (uint32_t i = 0; i < 2; i++) {
		t = without_outside(w, i + 1, &sel);
		for (uint32_t k = 1; k < t.n; k++) {
			assert_int_equal(t.nodes[k].depth, t.nodes[t.nodes[k].parent].depth + 1);
			assert_in_range(
			        t.nodes[k].subtree, 1, t.nodes[t.nodes[k].parent].subtree - 1);
		}
		trees[i] = only_sums(w, &t);
		assert_int_equal(t.nodes[0].total_ns, trees[i].nodes[0].total_ns);
	}
	check_same(&got, &want);
	tw_arena_reset(w->arena);
}

static void test_outside(void **state)
{
	static const enum kind kinds[] = {WITH_CPU, WITHOUT_ENDS, CLIPPED, FEW_PATHS};

	(void)state;
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		struct world w;
		uint64_t r = 9;

		open_world(&w, kinds[kind], 3000);
		check_outside(&w, 0, INT64_MAX);
		check_outside(&w, INT64_MAX - 1, INT64_MAX);
		for (int i = 0; i < 100; i++) {
			int64_t a = some_edge(&w, &r);
			int64_t b = i % 2 ? some_edge(&w, &r) : a + i / 2;

			check_outside(&w, a < b ? a : b, (a < b ? b : a) + 1);
		}
		close_world(&w);
	}
}

/* Ends of the range at the begin of a chunk. */
static void test_outside_of_chunks(void **state)
{
	const struct tw_chunk_row *rows;
	struct world w;
	uint32_t n;

	(void)state;
	open_world(&w, WITH_CPU, 140000);
	assert_int_equal(tw_trace_file_chunks(w.f.file, 1, &rows, &n, NULL), TW_OK);
	for (int64_t i = 0; i < 3; i++) {
		const int64_t first = rows[1].info.start_ns + i - 1;
		const int64_t second = rows[2].info.start_ns + i - 1;

		check_outside(&w, first, second);
		check_outside(&w, rows[i].info.end_ns, INT64_MAX);
		check_outside(&w, 0, rows[i].info.end_ns);
	}
	close_world(&w);
}

/* Graphs without longest calls are the same whether the range is read or what is outside of it, for
 * which it is long enough here. */
static void test_graphs_of_most(void **state)
{
	struct tw_selection sel;
	struct world w;
	int64_t ns;

	(void)state;
	open_world(&w, FEW_PATHS, 400000);
	sel = almost_all(&w);
	ns = tw_trace_file_info(w.f.file)->end_ns - sel.from_ns;
	for (int i = 0; i < 12; i++) {
		const struct tw_flame_query q = {.view = i % 2 ? TW_BOTTOM_UP : TW_TOP_DOWN,
		        .metric = i / 2 % 2 ? TW_METRIC_COUNT : TW_METRIC_WALL,
		        .max_nodes = 100,
		        .no_longest = true};
		const struct tw_chunk_row *rows;
		struct tw_flame got, want;
		struct tw_forest trees;
		uint32_t n;

		tw_parallel_set_cores((unsigned)i % 3 + 1);
		sel.from_ns += ns / 100;
		sel.to_ns = sel.from_ns + ns / 100 * 80;
		assert_int_equal(
		        tw_outside_chunks(w.f.file, 1, &sel, tw_trace_file_tree_nodes(w.f.file, 1),
		                w.arena, &rows, &n, NULL),
		        TW_OK);
		assert_true(n < 5);
		trees = trees_of(&w, &sel, NULL, false);
		assert_int_equal((q.view == TW_BOTTOM_UP ? tw_query_bottom_up : tw_query_flame)(
		                         &trees, &q, NULL, w.arena, &want, NULL),
		        TW_OK);
		for (uint32_t k = 0; k < want.n; k++)
			want.nodes[k].max_ns = 0;
		assert_int_equal(
		        tw_query_graph(w.f.file, &sel, &q, NULL, w.arena, &got, NULL), TW_OK);
		check_same_graph(&got, &want);
	}
	close_world(&w);
}

/* Part of what is outside cannot be subtracted: the thread is missing at the deadline. */
static void test_outside_limits(void **state)
{
	const struct tw_flame_query q = {.max_nodes = 100, .no_longest = true};
	enum tw_status st = TW_NOMEM;
	struct tw_selection sel;
	struct tw_flame all, got;
	struct world w;

	(void)state;
	open_world(&w, FEW_PATHS, 400000);
	sel = almost_all(&w);
	assert_int_equal(tw_query_graph(w.f.file, &sel, &q, NULL, w.arena, &all, NULL), TW_OK);
	assert_false(all.partial);
	for (int n = 1; n <= 3; n++) {
		_Atomic int left = n;
		const struct tw_deadline d = {count_down, &left};

		tw_parallel_set_cores((unsigned)n);
		assert_int_equal(
		        tw_query_graph(w.f.file, &sel, &q, &d, w.arena, &got, NULL), TW_OK);
		assert_true(got.partial);
		assert_in_range(got.nodes[0].value, 0, all.nodes[0].value);
		assert_in_range(got.total_nodes, 0, all.total_nodes);
	}
	for (uint64_t n = 1; st != TW_OK; n += 1 + n / 8) {
		struct tw_arena *a = tw_arena_new((size_t)1 << 30);

		tw_mem_fail_at(n);
		st = tw_query_graph(w.f.file, &sel, &q, NULL, a, &got, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
		tw_arena_free(a);
	}
	assert_false(tw_trace_file_is_damaged(w.f.file));
	close_world(&w);
}

/* A stored tree that lacks calls of its thread. */
static void test_outside_of_another_tree(void **state)
{
	struct tw_tree_builder *outside = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree_node nodes[2] = {{.method = TW_NO_METHOD, .subtree = 2, .total_ns = 9},
	        {.method = 3, .subtree = 1, .depth = 1, .count = 1, .total_ns = 9, .self_ns = 9}};
	struct tw_slice s = {.dur_ns = 9, .method = 3, .cpu_ns = -1};
	struct tw_tree t = {nodes, 2};

	(void)state;
	assert_int_equal(tw_tree_builder_add(outside, &s, 1), TW_OK);
	assert_int_equal(tw_tree_builder_link(outside), TW_OK);
	nodes[1].method = 2;
	assert_int_equal(tw_outside_subtract(&t, outside, N_METHODS, NULL), TW_CORRUPT);
	nodes[1].method = 3;
	nodes[1].count = 0;
	assert_int_equal(tw_outside_subtract(&t, outside, N_METHODS, NULL), TW_CORRUPT);
	nodes[1].count = 1;
	nodes[1].total_ns = 8;
	assert_int_equal(tw_outside_subtract(&t, outside, N_METHODS, NULL), TW_CORRUPT);
	nodes[1].total_ns = 9;
	nodes[0].total_ns = 9;
	assert_int_equal(tw_outside_subtract(&t, outside, N_METHODS, NULL), TW_OK);
	assert_int_equal(t.n, 1);
	tw_tree_builder_free(outside);
}

/* Memory is allocated for the methods of the trace, whatever numbers a damaged tree contains. */
static void test_outside_of_unknown_method(void **state)
{
	struct tw_tree_builder *outside = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree_node nodes[2] = {
	        {.method = TW_NO_METHOD, .subtree = 2, .total_ns = 9}, {.method = UINT32_MAX - 1,
	                                                                       .subtree = 1,
	                                                                       .depth = 1,
	                                                                       .count = 1,
	                                                                       .total_ns = 9,
	                                                                       .self_ns = 9}};
	const struct tw_slice s = {.dur_ns = 9, .method = UINT32_MAX - 1, .cpu_ns = -1};
	struct tw_tree t = {nodes, 2};

	(void)state;
	assert_int_equal(tw_tree_builder_add(outside, &s, 1), TW_OK);
	assert_int_equal(tw_tree_builder_link(outside), TW_OK);
	assert_int_equal(tw_outside_subtract(&t, outside, N_METHODS, NULL), TW_CORRUPT);
	tw_tree_builder_free(outside);
}

/* A damaged chunk may have any method, also the one of no method. */
static void test_outside_of_any_method(void **state)
{
	const uint32_t methods[] = {4, UINT32_MAX - 1, TW_NO_METHOD};

	(void)state;
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		struct tw_tree_builder *outside = tw_tree_builder_new(UINT32_MAX);
		struct tw_tree_node nodes[2] = {
		        {.method = TW_NO_METHOD, .subtree = 2, .total_ns = 9},
		        {.method = 3,
		                .subtree = 1,
		                .depth = 1,
		                .count = 1,
		                .total_ns = 9,
		                .self_ns = 9}};
		const struct tw_slice s = {.dur_ns = 9, .method = methods[i], .cpu_ns = -1};
		struct tw_tree t = {nodes, 2};

		assert_int_equal(tw_tree_builder_add(outside, &s, 1), TW_OK);
		assert_int_equal(tw_tree_builder_link(outside), TW_OK);
		assert_int_equal(tw_outside_subtract(&t, outside, N_METHODS, NULL), TW_CORRUPT);
		tw_tree_builder_free(outside);
	}
}

/* Large graphs are the same, however many threads open their nodes. Many nodes have the same number
 * of calls. */
static void test_graphs(void **state)
{
	static const unsigned cores[] = {1, 2, 3, 64};
	static const enum tw_flame_metric metrics[] = {TW_METRIC_WALL, TW_METRIC_COUNT};
	const struct tw_selection all = {.all_threads = true};
	struct tw_forest trees;
	struct world w;

	(void)state;
	open_world(&w, WITH_CPU, 140000);
	trees = trees_of(&w, &all, NULL, false);
	for (int kind = 0; kind < 8; kind++) {
		const struct tw_flame_query q = {.view = kind % 2 ? TW_BOTTOM_UP : TW_TOP_DOWN,
		        .metric = metrics[kind / 2 % 2],
		        .max_nodes = kind < 4 ? 3000 : 30000,
		        .skip = kind == 7};
		struct tw_arena *arena = tw_arena_new((size_t)1 << 30);
		struct tw_flame graphs[4];

		for (int i = 0; i < 4; i++) {
			tw_parallel_set_cores(cores[i]);
			assert_int_equal(
			        (q.view == TW_BOTTOM_UP ? tw_query_bottom_up : tw_query_flame)(
			                &trees, &q, NULL, arena, &graphs[i], NULL),
			        TW_OK);
			check_same_graph(&graphs[i], &graphs[0]);
		}
		assert_true(graphs[0].n > q.max_nodes);
		tw_arena_free(arena);
	}
	close_world(&w);
}

static void test_thread(void **state)
{
	struct tw_selection sel = {.ranged = true, .from_ns = 1000, .to_ns = 900000};
	const struct tw_thread_info *t;
	struct tw_forest want;
	struct tw_tree got;
	struct world w;
	uint32_t n;

	(void)state;
	open_world(&w, WITH_CPU, 70000);
	t = tw_trace_file_threads(w.f.file, &n);
	want = plain_scan(&w, &sel);
	assert_int_equal(n, 2);
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_forest one = {&got, 1};
		const struct tw_forest its = {&want.trees[i], 1};

		assert_int_equal(
		        tw_query_thread_tree(w.f.file, &t[i], &sel, w.arena, &got, NULL), TW_OK);
		check_same(&one, &its);
	}
	sel.from_ns = INT64_MAX - 1;
	sel.to_ns = INT64_MAX;
	assert_int_equal(tw_query_thread_tree(w.f.file, t, &sel, w.arena, &got, NULL), TW_OK);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.nodes[0].method, TW_NO_METHOD);
	assert_int_equal(got.nodes[0].total_ns, 0);
	close_world(&w);
}

/* A tree that still grows can be added to another, whole or as far as that has room. */
static void test_grown(void **state)
{
	const struct tw_selection sel = {.to_ns = INT64_MAX};
	struct plain from = {tw_tree_builder_new(UINT32_MAX), &sel};
	struct tw_tree_builder *whole = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree_builder *few = tw_tree_builder_new(50);
	struct tw_tree want, got;
	struct world w;
	uint64_t calls = 0;

	(void)state;
	open_world(&w, WITH_CPU, 3000);
	assert_int_equal(tw_query_slices(w.f.file, 1, 0, INT64_MAX, add_plain, &from, NULL), TW_OK);
	assert_int_equal(tw_tree_builder_add_grown(whole, from.tree), TW_OK);
	assert_int_equal(tw_tree_builder_nodes(whole), tw_tree_builder_nodes(from.tree));
	assert_int_equal(tw_tree_builder_add_grown(few, from.tree), TW_OK);
	assert_int_equal(tw_tree_builder_nodes(few), 50);
	assert_int_equal(tw_tree_builder_finish(from.tree, w.arena, &want), TW_OK);
	assert_int_equal(tw_tree_builder_finish(whole, w.arena, &got), TW_OK);
	assert_int_equal(got.n, want.n);
	assert_memory_equal(got.nodes, want.nodes, got.n * sizeof *got.nodes);
	assert_int_equal(tw_tree_builder_finish(few, w.arena, &got), TW_OK);
	assert_int_equal(got.nodes[0].total_ns, want.nodes[0].total_ns);
	for (uint32_t i = 1; i < got.n; i++)
		calls += got.nodes[i].count;
	for (uint32_t i = 1; i < want.n; i++)
		calls -= want.nodes[i].count;
	assert_int_equal(calls + tw_tree_builder_clipped(few), 0);
	tw_tree_builder_free(from.tree);
	tw_tree_builder_free(whole);
	tw_tree_builder_free(few);
	close_world(&w);
}

/* A thread with a clock of its own may have states for a part of its calls only; time outside them
 * counts as running, but a part of a call has no more than the call. */
static void test_cpu_by_two_clocks(void **state)
{
	const struct tw_selection sel = {
	        .all_threads = true, .ranged = true, .from_ns = 100, .to_ns = 2000};
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = tw_builder_sink(b);
	const uint32_t track = s->ops->track(s, 1, 1, TW_TID_FULL);
	const struct tw_event call = {.dur_ns = 1000,
	        .cpu_ns = 5,
	        .track = track,
	        .sym = s->ops->name(s, TW_STR("outer")),
	        .kind = TW_EV_SLICE};
	struct tw_forest f;
	struct world w;

	(void)state;
	assert_int_equal(s->ops->events(s, &call, 1, NULL), TW_OK);
	assert_int_equal(s->ops->note(s,
	                         &(struct tw_note){.kind = TW_NOTE_state,
	                                 .track = track,
	                                 .ts_ns = 900,
	                                 .dur_ns = 50,
	                                 .text = TW_STR("running")},
	                         NULL),
	        TW_OK);
	model_make(&w.model, &(struct model_shape){1, 1, 10, 4, false});
	assert_int_equal(trace_fixture_write(&w.f, b), TW_OK);
	w.arena = tw_arena_new((size_t)1 << 30);
	f = trees_of(&w, &sel, NULL, false);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.trees[0].nodes[1].total_ns, 900);
	assert_int_equal(f.trees[0].nodes[1].cpu_ns, 5);
	close_world(&w);
}

/* --- chunks decoded ahead --- */

struct seen {
	uint32_t n, stop_after; /* chunks */
	uint64_t sum;           /* of their slices, which depends on their order */
};

static bool see_chunk(void *arg, uint32_t i, const struct tw_chunk *c)
{
	struct seen *seen = arg;

	assert_int_equal(i, seen->n++);
	for (size_t k = 0; k < c->n; k++) {
		const struct tw_slice *s = &c->slices[k];

		seen->sum = seen->sum * 31 + (uint64_t)s->start_ns;
		seen->sum = seen->sum * 31 + (uint64_t)s->dur_ns;
		seen->sum = seen->sum * 31 + s->method + ((uint64_t)s->depth << 32);
	}
	return seen->n != seen->stop_after;
}

/* The first chunks of the largest thread by one thread and by several. */
static void check_chunks(const struct world *w, const struct tw_chunk_row *rows, uint32_t n,
        uint32_t stop_after, enum tw_status want, uint32_t want_n)
{
	static const unsigned cores[] = {1, 2, 64};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
		struct seen seen = {.stop_after = stop_after};

		tw_parallel_set_cores(cores[i]);
		assert_int_equal(tw_each_chunk(w->f.file, rows, n, see_chunk, &seen, NULL), want);
		assert_int_equal(seen.n, want_n);
		if (i == 0)
			sum = seen.sum;
		assert_int_equal(seen.sum, sum);
	}
}

static void test_chunks_ahead(void **state)
{
	enum { CHUNKS = 9 };
	struct tw_chunk_row rows[CHUNKS];
	const struct tw_chunk_row *stored;
	struct world w;
	uint32_t n;

	(void)state;
	open_world(&w, WITH_CPU, 65536 * CHUNKS);
	assert_int_equal(tw_trace_file_chunks(w.f.file, 1, &stored, &n, NULL), TW_OK);
	assert_true(n >= CHUNKS && stored[CHUNKS - 1].info.level == 0);
	memcpy(rows, stored, sizeof rows);
	for (uint32_t i = 0; i <= CHUNKS; i++)
		check_chunks(&w, rows, i, 0, TW_OK, i);
	for (uint32_t i = 1; i <= CHUNKS; i++)
		check_chunks(&w, rows, CHUNKS, i, TW_OK, i);
	tw_work_limit_set((struct tw_work_limit){.until_ms = 1});
	check_chunks(&w, rows, CHUNKS, 0, TW_DEADLINE, 0);
	tw_work_limit_set((struct tw_work_limit){0});
	for (uint32_t i = 0; i < CHUNKS; i++) {
		rows[i].chunk_id = UINT32_MAX;
		check_chunks(&w, rows, CHUNKS, 0, TW_NOT_FOUND, i);
		rows[i] = stored[i];
	}
	assert_false(tw_trace_file_is_damaged(w.f.file));
	for (uint32_t i = 0; i < CHUNKS; i++) {
		rows[i].info.start_ns = -1;
		check_chunks(&w, rows, CHUNKS, 0, TW_CORRUPT, i);
		rows[i] = stored[i];
	}
	assert_true(tw_trace_file_is_damaged(w.f.file));
	close_world(&w);
}

static void test_chunks_ahead_memory(void **state)
{
	const struct tw_chunk_row *rows;
	struct world w;
	uint32_t n;
	enum tw_status st = TW_NOMEM;

	(void)state;
	open_world(&w, WITHOUT_ENDS, 250000);
	assert_int_equal(tw_trace_file_chunks(w.f.file, 1, &rows, &n, NULL), TW_OK);
	tw_parallel_set_cores(4);
	for (uint64_t at = 1; st != TW_OK || at < 60; at++) {
		struct seen seen = {0};

		tw_mem_fail_at(at);
		st = tw_each_chunk(w.f.file, rows, 3, see_chunk, &seen, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_NOMEM || (st == TW_OK && seen.n == 3));
	}
	assert_false(tw_trace_file_is_damaged(w.f.file));
	close_world(&w);
}

/* --- limits --- */

static uint64_t check_honest(const struct tw_forest *f)
{
	uint64_t calls = 0;

	for (uint32_t i = 0; i < f->n; i++)
		for (uint32_t k = 1; k < f->trees[i].n; k++) {
			const struct tw_tree_node *n = &f->trees[i].nodes[k];

			assert_true(n->count > 0 && n->self_ns >= 0);
			calls += n->count;
		}
	return calls;
}

/* A response at the deadline is correct for a prefix of each thread. */
static void test_deadline(void **state)
{
	struct tw_selection sel;
	struct world w;
	uint64_t all;
	struct tw_forest f;

	(void)state;
	open_world(&w, WITH_CPU, 140000);
	sel = almost_all(&w);
	f = trees_of(&w, &sel, NULL, false);
	all = check_honest(&f);
	for (unsigned cores = 1; cores <= 4; cores *= 2)
		for (int n = 1; n <= 3; n++) {
			_Atomic int left = n;
			const struct tw_deadline d = {count_down, &left};

			tw_parallel_set_cores(cores);
			f = trees_of(&w, &sel, &d, true);
			/* of several helpers, one can report before another has begun at the
			 * start, and what lies behind a gap is left out */
			assert_in_range(check_honest(&f), cores == 1, all);
			tw_arena_reset(w.arena);
		}
	close_world(&w);
}

static void test_memory(void **state)
{
	struct tw_selection sel;
	const struct tw_selection whole = {.all_threads = true};
	struct tw_arena *small = tw_arena_new(1 << 20);
	struct tw_forest f;
	struct world w;
	bool partial;

	(void)state;
	open_world(&w, WITHOUT_ENDS, 70000);
	sel = almost_all(&w);
	tw_parallel_set_cores(4);
	assert_int_equal(
	        tw_query_forest(w.f.file, &sel, NULL, small, &f, &partial, NULL), TW_NOMEM);
	assert_int_equal(
	        tw_query_forest(w.f.file, &whole, NULL, small, &f, &partial, NULL), TW_NOMEM);
	tw_arena_free(small);
	for (int i = 0; i < 3; i++) {
		enum tw_status st = TW_NOMEM;

		for (uint64_t n = 1; st != TW_OK; n += 1 + n / 8) {
			const struct tw_flame_query q = {.max_nodes = 100};
			struct tw_arena *a = tw_arena_new((size_t)1 << 30);
			struct tw_flame graph;

			tw_mem_fail_at(n);
			st = i == 2 ? tw_query_graph(w.f.file, &sel, &q, NULL, a, &graph, NULL)
			            : tw_query_forest(w.f.file, i ? &whole : &sel, NULL, a, &f,
			                      &partial, NULL);
			tw_mem_fail_at(0);
			assert_true(st == TW_OK || st == TW_NOMEM);
			tw_arena_free(a);
		}
	}
	assert_false(tw_trace_file_is_damaged(w.f.file));
	close_world(&w);
}

/* --- the crew --- */

struct counted {
	_Atomic unsigned now, most, calls;
	pthread_mutex_t lock;
};

static void work(void *arg)
{
	struct counted *c = arg;
	unsigned now = atomic_fetch_add(&c->now, 1) + 1;

	(void)atomic_fetch_add(&c->calls, 1);
	(void)pthread_mutex_lock(&c->lock);
	if (now > atomic_load(&c->most))
		atomic_store(&c->most, now);
	(void)pthread_mutex_unlock(&c->lock);
	(void)atomic_fetch_sub(&c->now, 1);
}

static void *run_crews(void *arg)
{
	for (int i = 0; i < 50; i++)
		tw_parallel_for(TW_PARALLEL_MAX, work, arg);
	return NULL;
}

static void test_crew(void **state)
{
	enum { CALLERS = 6, CORES = 3 };
	struct counted c = {.lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t callers[CALLERS];

	(void)state;
	tw_parallel_set_cores(1);
	assert_int_equal(tw_parallel_threads(), 1);
	tw_parallel_for(TW_PARALLEL_MAX, work, &c);
	assert_int_equal(c.calls, 1);
	tw_parallel_set_cores(64);
	assert_int_equal(tw_parallel_threads(), TW_PARALLEL_MAX);
	tw_parallel_for(100, work, &c);
	assert_int_equal(c.calls, 1 + TW_PARALLEL_MAX);
	tw_parallel_set_cores(CORES);
	assert_int_equal(tw_parallel_threads(), CORES);
	c.most = 0;
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i], NULL, run_crews, &c), 0);
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_join(callers[i], NULL), 0);
	assert_in_range(c.most, 1, CALLERS + CORES - 1);
	/* all places were given back; one more is used if a helper ends before the last one begins
	 */
	c.calls = 0;
	tw_parallel_for(TW_PARALLEL_MAX, work, &c);
	assert_in_range(c.calls, CORES, TW_PARALLEL_MAX);
	tw_parallel_set_cores(0);
	assert_in_range(tw_parallel_threads(), 1, TW_PARALLEL_MAX);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_small_tree_in_little_memory),
        cmocka_unit_test(test_little_memory_of_few_calls),
        cmocka_unit_test(test_space_made_ahead),
        cmocka_unit_test(test_many_edges),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_graph_of_range),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_outside_of_chunks),
        cmocka_unit_test(test_outside_limits),
        cmocka_unit_test(test_outside_of_another_tree),
        cmocka_unit_test(test_outside_of_unknown_method),
        cmocka_unit_test(test_outside_of_any_method),
        cmocka_unit_test(test_graphs_of_most),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_chunks_ahead),
        cmocka_unit_test(test_chunks_ahead_memory),
        cmocka_unit_test(test_cpu_by_two_clocks),
        cmocka_unit_test(test_grown),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_crew),
};

UNIT_TESTS("range", tests)
