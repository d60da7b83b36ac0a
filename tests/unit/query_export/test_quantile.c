/* What most calls of a method take, against sorting them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "decoder/trace/buckets.h"
#include "server/query/query.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

struct world {
	struct model model;
	struct trace_fixture f;
	struct tw_arena *arena;
	int64_t end_ns;
};

static void open_world(struct world *w, uint64_t seed, uint32_t per_thread)
{
	/* a large trace has a small tree, or the naive one would take a minute */
	struct model_shape shape = {seed, 3, per_thread, per_thread > 10000 ? 3 : 30, false};

	model_make(&w->model, &shape);
	assert_int_equal(trace_fixture_make(&w->f, &w->model), TW_OK);
	w->arena = tw_arena_new((size_t)1 << 30);
	w->end_ns = tw_trace_file_info(w->f.file)->end_ns;
}

static void close_world(struct world *w)
{
	tw_arena_free(w->arena);
	trace_fixture_done(&w->f);
	model_done(&w->model);
}

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* The nearest rank among all calls of a method in a range, by sorting them. */
static int64_t naive_quantile(const struct world *w, uint64_t id, const struct tw_selection *sel)
{
	int64_t *all = test_malloc(w->model.n * sizeof *all);
	size_t n = 0;
	int64_t ns;

	for (size_t i = 0; i < w->model.n; i++) {
		const struct model_slice *s = &w->model.slices[i];
		int64_t from = s->start_ns > sel->from_ns ? s->start_ns : sel->from_ns;
		int64_t end = s->start_ns + s->dur_ns;
		int64_t to = end < sel->to_ns ? end : sel->to_ns;
		bool in = s->start_ns < sel->to_ns &&
		          (end > sel->from_ns || (s->dur_ns == 0 && end == sel->from_ns));

		if (s->method_id == id && in)
			all[n++] = to - from;
	}
	qsort(all, n, sizeof *all, by_length);
	ns = n ? all[(n * 95 + 99) / 100 - 1] : -1;
	test_free(all);
	return ns;
}

static void check_quantiles(struct world *w, const struct tw_selection *sel)
{
	struct tw_quantile_of of = {NULL, w->f.n_methods, 95};
	struct tw_method_info *rows;
	struct tw_forest forest;
	int64_t *got;
	bool partial;

	assert_int_equal(
	        tw_query_forest(w->f.file, sel, NULL, w->arena, &forest, &partial, NULL), TW_OK);
	assert_int_equal(tw_query_methods(&forest, w->f.n_methods, w->arena, &rows, NULL), TW_OK);
	of.rows = rows;
	assert_int_equal(tw_query_quantile(w->f.file, sel, &of, NULL, w->arena, &got, NULL), TW_OK);
	for (uint32_t i = 0; i < w->f.n_methods; i++) {
		int64_t want = naive_quantile(w, w->f.methods[i].id, sel);

		assert_in_range(got[i] - want + want / 64 + 1, 0, want / 32 + 2);
		assert_true(got[i] <= rows[i].max_ns);
	}
}

static bool is_late(void *arg)
{
	(void)arg;
	return true;
}

static void test_quantiles(void **state)
{
	/* of few calls a method, and of many: lists and histograms */
	static const uint32_t calls[] = {600, 30000};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct tw_deadline late = {is_late, NULL};
		struct tw_selection all = {.all_threads = true, .to_ns = INT64_MAX};
		struct tw_quantile_of of;
		struct world w;
		int64_t *got;

		open_world(&w, 31 + i, calls[i]);
		check_quantiles(&w, &all);
		all.ranged = true;
		all.from_ns = w.end_ns / 3;
		all.to_ns = w.end_ns / 2;
		check_quantiles(&w, &all);
		/* past the deadline, and with rows of other calls: not known */
		of = (struct tw_quantile_of){w.f.methods, w.f.n_methods, 95};
		assert_int_equal(
		        tw_query_quantile(w.f.file, &all, &of, &late, w.arena, &got, NULL), TW_OK);
		assert_int_equal(got[0], -1);
		of.n_methods = 0;
		assert_int_equal(
		        tw_query_quantile(w.f.file, &all, &of, NULL, w.arena, &got, NULL), TW_OK);
		close_world(&w);
	}
}

static void test_buckets(void **state)
{
	uint32_t before = 0;

	(void)state;
	for (int64_t ns = 0; ns >= 0 && ns < INT64_MAX / 2; ns += 1 + ns / 200) {
		uint32_t at = tw_bucket_of(ns);
		int64_t off = tw_bucket_ns(at) - ns;

		assert_true(at >= before && at < TW_BUCKETS);
		assert_true((off < 0 ? -off : off) <= ns / 64);
		before = at;
	}
	assert_int_equal(tw_bucket_of(INT64_MAX), TW_BUCKETS - 1);
	assert_int_equal(tw_bucket_of(-5), 0);
	assert_int_equal(tw_bucket_ns(0), 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_buckets),
};

UNIT_TESTS("quantile", tests)
