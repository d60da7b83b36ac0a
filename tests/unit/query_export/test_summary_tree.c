/* Unit tests of the summary tree: a graph expanded from it equals that of the call trees, node for
 * node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "server/query/query.h"
#include "server/trace/trace_file_internal.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

struct world {
	struct model model;
	struct trace_fixture f;
	struct tw_arena *arena;
	struct tw_forest forest; /* of all threads */
	struct tw_tree_sums *sums;
};

static const struct tw_selection all = {.all_threads = true};

static void open_world(struct world *w, const struct model_shape *shape)
{
	bool partial;

	model_make(&w->model, shape);
	assert_int_equal(trace_fixture_make(&w->f, &w->model), TW_OK);
	w->arena = tw_arena_new((size_t)1 << 30);
	assert_int_equal(
	        tw_query_forest(w->f.file, &all, NULL, w->arena, &w->forest, &partial, NULL),
	        TW_OK);
	w->sums = tw_arena_alloc(w->arena, w->forest.n, sizeof *w->sums);
	for (uint32_t i = 0; i < w->forest.n; i++) {
		const struct tw_tree *t = &w->forest.trees[i];

		assert_true(tw_tree_sums_begin(&w->sums[i], t->n));
		assert_true(tw_tree_sums_add(&w->sums[i], t->nodes, t->n));
		tw_tree_sums_end(&w->sums[i]);
	}
}

static void close_world(struct world *w)
{
	for (uint32_t i = 0; i < w->forest.n; i++)
		tw_tree_sums_done(&w->sums[i]);
	tw_arena_free(w->arena);
	trace_fixture_done(&w->f);
	model_done(&w->model);
}

static enum tw_status summarize(
        struct world *w, uint32_t nodes, struct tw_arena *a, struct tw_summary_tree *ret)
{
	return tw_query_summary(w->sums, w->forest.n, nodes, w->f.n_methods, a, ret, NULL);
}

static void assert_same(const struct tw_flame *got, const struct tw_flame *want)
{
	assert_int_equal(got->n, want->n);
	assert_int_equal(got->total_nodes, want->total_nodes);
	assert_false(got->partial);
	for (uint32_t i = 0; i < got->n; i++) {
		struct tw_flame_node a = got->nodes[i];
		struct tw_flame_node b = want->nodes[i];

		if (i == 0) /* a summary tree does not keep how many threads there are */
			a.tree_nodes = b.tree_nodes;
		assert_memory_equal(&a, &b, sizeof a);
	}
}

static uint32_t nodes_of(const struct tw_forest *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += f->trees[i].n - 1;
	return n;
}

/* Every size of graph up to the summary tree's own. */
static void check_sizes(struct world *w, uint32_t summary_nodes)
{
	struct tw_flame_query q = {.max_nodes = 1};
	struct tw_summary_tree summary;

	assert_int_equal(summarize(w, summary_nodes, w->arena, &summary), TW_OK);
	for (; q.max_nodes <= summary_nodes; q.max_nodes++) {
		struct tw_flame got, want;

		if (!tw_summary_suffices(&summary, &q)) {
			assert_true(nodes_of(&w->forest) > 0 && q.max_nodes > 1);
			break;
		}
		assert_int_equal(
		        tw_query_flame(&w->forest, &q, NULL, w->arena, &want, NULL), TW_OK);
		assert_int_equal(
		        tw_query_flame_of_summary(&summary, &q, NULL, w->arena, &got, NULL), TW_OK);
		assert_same(&got, &want);
	}
	q.max_nodes = summary_nodes + 1;
	assert_false(tw_summary_suffices(&summary, &q));
}

static void test_sizes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		const struct model_shape shape = {seed * 17, 3, (uint32_t)seed * 40, 10, false};
		struct world w;

		open_world(&w, &shape);
		check_sizes(&w, 1);
		check_sizes(&w, 7);
		check_sizes(&w, 60);
		check_sizes(&w, 1000); /* more than there are: without a rest */
		close_world(&w);
	}
}

/* Its own form of storing loses nothing of it. */
static void test_stored_form(void **state)
{
	const struct model_shape shape = {5, 3, 400, 10, false};
	struct tw_summary_tree summary;
	struct tw_tree again;
	struct tw_buf bytes;
	struct world w;

	(void)state;
	open_world(&w, &shape);
	assert_int_equal(summarize(&w, 50, w.arena, &summary), TW_OK);
	tw_buf_init(&bytes, SIZE_MAX / 2);
	assert_int_equal(tw_tree_encode(&summary.tree, &bytes), TW_OK);
	assert_int_equal(tw_tree_decode(bytes.data, bytes.len, w.arena, &again, NULL), TW_OK);
	assert_int_equal(again.n, summary.tree.n);
	assert_memory_equal(
	        again.nodes + 1, summary.tree.nodes + 1, (again.n - 1) * sizeof *again.nodes);
	tw_buf_done(&bytes);
	close_world(&w);
}

static void test_other_questions(void **state)
{
	const struct model_shape shape = {3, 2, 200, 10, false};
	const uint32_t root = 0;
	const struct tw_flame_query asks[] = {
	        {.max_nodes = 5, .view = TW_BOTTOM_UP},
	        {.max_nodes = 5, .metric = TW_METRIC_COUNT},
	        {.max_nodes = 5, .root = &root, .n_root = 1},
	        {.max_nodes = 5, .skip = 1},
	};
	struct tw_summary_tree summary;
	struct world w;

	(void)state;
	open_world(&w, &shape);
	assert_int_equal(summarize(&w, 50, w.arena, &summary), TW_OK);
	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
		assert_false(tw_summary_suffices(&summary, &asks[i]));
	close_world(&w);
}

static void test_memory(void **state)
{
	const struct model_shape shape = {9, 3, 300, 10, false};
	enum tw_status st = TW_NOMEM;
	struct world w;

	(void)state;
	open_world(&w, &shape);
	for (uint64_t n = 1; st != TW_OK; n++) {
		struct tw_arena *a = tw_arena_new((size_t)1 << 28);
		struct tw_summary_tree summary;

		tw_mem_fail_at(n);
		st = summarize(&w, 50, a, &summary);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
		tw_arena_free(a);
	}
	close_world(&w);
}

static bool has_summary(struct world *w, struct tw_tree *ret)
{
	return tw_trace_file_tree(w->f.file, TW_SUMMARY_THREAD_ID, w->arena, ret, NULL) == TW_OK;
}

/* A large trace's file has one, and graphs of the whole come out of it. */
static void test_in_a_file(void **state)
{
	const struct model_shape large = {1, 3, 60000, 30, false};
	const struct model_shape small = {1, 3, 4000, 30, false};
	const uint32_t sizes[] = {1, 100, TW_SUMMARY_NODES, TW_SUMMARY_NODES + 1};
	struct tw_tree summary;
	struct world w;

	(void)state;
	open_world(&w, &small);
	assert_false(has_summary(&w, &summary));
	close_world(&w);
	open_world(&w, &large);
	assert_true(nodes_of(&w.forest) > 2 * TW_SUMMARY_NODES);
	assert_true(has_summary(&w, &summary));
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const struct tw_flame_query q = {.max_nodes = sizes[i]};
		struct tw_flame got, want;

		assert_int_equal(
		        tw_query_graph(w.f.file, &all, &q, NULL, w.arena, &got, NULL), TW_OK);
		assert_int_equal(tw_query_flame(&w.forest, &q, NULL, w.arena, &want, NULL), TW_OK);
		assert_same(&got, &want);
	}
	close_world(&w);
}

/* Expanding any bytes in place of a summary tree is safe and ends. */
static void test_odd_summaries(void **state)
{
	struct tw_tree_node nodes[4] = {
	        {.method = TW_NO_METHOD, .subtree = 4, .total_ns = 10, .self_ns = 10, .cpu_ns = -1},
	        {.method = 9, .subtree = 2, .depth = 1, .total_ns = 7, .self_ns = 4, .cpu_ns = -1},
	        {.parent = 1,
	                .method = 9,
	                .subtree = 1,
	                .depth = 2,
	                .total_ns = 3,
	                .self_ns = 3,
	                .cpu_ns = INT64_MAX},
	        {.method = 9,
	                .subtree = 1,
	                .depth = 1,
	                .total_ns = 3,
	                .self_ns = 3,
	                .cpu_ns = INT64_MAX},
	};
	const struct tw_summary_tree c = {{nodes, 4}, 9};
	const struct tw_flame_query q = {.max_nodes = 3};
	struct tw_arena *a = tw_arena_new(1 << 24);
	struct tw_flame f;

	(void)state;
	assert_false(tw_summary_suffices(&c, &q)); /* rests alone */
	assert_int_equal(tw_query_flame_of_summary(&c, &q, NULL, a, &f, NULL), TW_OK);
	assert_int_equal(f.n, 2);
	assert_int_equal(f.nodes[1].others, UINT32_MAX);
	assert_int_equal(f.nodes[1].value, 10);
	tw_arena_free(a);
}

static atomic_bool continued;
static enum tw_status outcome;

/* Waits until the thread that requested the summary tree has continued. */
static enum tw_status summarize_late(const struct tw_tree_sums *trees, uint32_t n_trees,
        uint32_t max_nodes, uint32_t rest, struct tw_arena *a, struct tw_summary_tree *ret,
        struct tw_err *err)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	(void)trees;
	(void)max_nodes;
	(void)a;
	(void)ret;
	(void)err;
	for (int i = 0; i < 20000 && !continued; i++)
		(void)nanosleep(&ms, NULL);
	return continued && n_trees == 1 && rest == 9 ? outcome : TW_BUG;
}

static enum tw_status store_late(enum tw_status st)
{
	struct tw_summary_maker *m = tw_summary_maker_new(summarize_late);
	struct tw_tree_sums sums = {0};

	assert_non_null(m);
	assert_true(tw_tree_sums_begin(&sums, 1));
	tw_tree_sums_end(&sums);
	sums.n = 2 * TW_SUMMARY_NODES;
	continued = false;
	outcome = st;
	tw_summary_maker_keep(m, &sums);
	assert_int_equal(tw_summary_maker_make(m, 9, NULL), TW_OK);
	continued = true;
	st = tw_summary_maker_store(m, NULL, NULL);
	tw_summary_maker_free(m);
	return st;
}

static void test_in_a_separate_thread(void **state)
{
	(void)state;
	assert_int_equal(store_late(TW_NOMEM), TW_OK); /* none is stored */
	assert_int_equal(store_late(TW_IO), TW_IO);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_stored_form),
        cmocka_unit_test(test_other_questions),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_in_a_file),
        cmocka_unit_test(test_odd_summaries),
        cmocka_unit_test(test_in_a_separate_thread),
};

UNIT_TESTS("summary_tree", tests)
