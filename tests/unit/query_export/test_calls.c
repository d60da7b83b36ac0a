/* Single calls of a selection against a walk over all calls of a made-up trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "server/query/query.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

struct world {
	struct model model;
	struct trace_fixture f;
	struct tw_arena *arena;
	int64_t end_ns;
};

static void open_world(struct world *w, uint64_t seed)
{
	struct model_shape shape = {seed, 3, 700, 12, false};

	model_make(&w->model, &shape);
	assert_int_equal(trace_fixture_make(&w->f, &w->model), TW_OK);
	w->arena = tw_arena_new((size_t)1 << 28);
	w->end_ns = tw_trace_file_info(w->f.file)->end_ns;
}

static void close_world(struct world *w)
{
	tw_arena_free(w->arena);
	trace_fixture_done(&w->f);
	model_done(&w->model);
}

static int by_position(const void *pa, const void *pb)
{
	const struct tw_call *a = pa;
	const struct tw_call *b = pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->depth < b->depth ? -1 : a->depth > b->depth;
}

static int by_length(const void *pa, const void *pb)
{
	const struct tw_call *a = pa;
	const struct tw_call *b = pb;

	if (a->dur_ns != b->dur_ns)
		return a->dur_ns < b->dur_ns ? 1 : -1;
	return by_position(pa, pb);
}

/* All calls of the query, by begin. */
static struct tw_call *naive(const struct world *w, const struct tw_calls_query *q, size_t *ret_n)
{
	struct tw_call *all = test_malloc(w->model.n * sizeof *all);
	size_t n = 0;

	for (size_t i = 0; i < w->model.n; i++) {
		const struct model_slice *s = &w->model.slices[i];
		int64_t end = s->start_ns + s->dur_ns;
		bool in = !q->sel->ranged ||
		          (s->start_ns < q->sel->to_ns &&
		                  (end > q->sel->from_ns ||
		                          (s->dur_ns == 0 && end == q->sel->from_ns)));
		bool of = q->method == TW_NO_METHOD || w->f.methods[q->method].id == s->method_id;
		bool there = q->sel->all_threads;

		for (size_t k = 0; k < q->sel->n_tids; k++)
			there = there || q->sel->tids[k] == s->tid;
		if (in && of && there)
			all[n++] = (struct tw_call){.tid = s->tid,
			        .start_ns = s->start_ns,
			        .dur_ns = s->dur_ns,
			        .depth = s->depth};
	}
	qsort(all, n, sizeof *all, by_position);
	*ret_n = n;
	return all;
}

static void same(const struct tw_call *a, const struct tw_call *b)
{
	assert_int_equal(by_position(a, b), 0);
	assert_int_equal(a->dur_ns, b->dur_ns);
}

static void check(struct world *w, struct tw_calls_query q)
{
	size_t n;
	size_t listed = 0;
	uint64_t bars = 0;
	struct tw_calls c;
	struct tw_call *all = naive(w, &q, &n);
	struct tw_call *want = test_malloc((n + 1) * sizeof *want);
	struct tw_call around = n ? all[n / 2] : (struct tw_call){0};

	q.around = n ? &around : NULL;
	assert_int_equal(tw_query_calls(w->f.file, &q, NULL, w->arena, &c, NULL), TW_OK);
	assert_int_equal(c.n, n);
	for (size_t i = 0; i < n; i++)
		if (all[i].dur_ns >= q.min_ns && all[i].dur_ns <= q.max_ns)
			want[listed++] = all[i];
	assert_int_equal(c.listable, listed);
	if (!q.by_time)
		qsort(want, listed, sizeof *want, by_length);
	assert_int_equal(c.n_list, listed < q.limit ? listed : q.limit);
	for (uint32_t i = 0; i < c.n_list; i++)
		same(&c.list[i], &want[i]);
	for (uint32_t i = 0; i < TW_CALLS_BARS; i++) {
		uint64_t in = 0;
		int64_t to = i + 1 < TW_CALLS_BARS ? tw_calls_bar_from(i + 1) : INT64_MAX;

		for (size_t k = 0; k < n; k++)
			in += all[k].dur_ns >= tw_calls_bar_from(i) && all[k].dur_ns < to;
		assert_int_equal(c.bars[i], in);
		bars += c.bars[i];
	}
	assert_int_equal(bars, n);
	assert_int_equal(c.has_before, n / 2 > 0);
	assert_int_equal(c.has_after, n / 2 + 1 < n);
	if (c.has_before)
		same(&c.before, &all[n / 2 - 1]);
	if (c.has_after)
		same(&c.after, &all[n / 2 + 1]);
	for (size_t i = n / 2 + 1; i < n; i++)
		if (all[i].tid == around.tid) {
			assert_true(c.has_after_here);
			same(&c.after_here, &all[i]);
			break;
		}
	test_free(all);
	test_free(want);
}

static void test_calls(void **state)
{
	static const uint64_t two[] = {MODEL_PID, MODEL_PID + 2};

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct world w;
		struct tw_selection sels[3] = {{.all_threads = true}, {.tids = two, .n_tids = 2},
		        {.all_threads = true, .ranged = true}};

		open_world(&w, seed);
		sels[2].from_ns = w.end_ns / 4;
		sels[2].to_ns = w.end_ns / 2;
		for (unsigned i = 0; i < 3; i++)
			for (uint32_t m = 0; m <= w.f.n_methods; m += 4) {
				struct tw_calls_query q = {.sel = &sels[i],
				        .method = m + 4 > w.f.n_methods ? TW_NO_METHOD : m,
				        .max_ns = INT64_MAX,
				        .limit = 20};

				check(&w, q);
				q.by_time = true;
				q.limit = 7;
				check(&w, q);
				q.min_ns = 50;
				q.max_ns = 5000;
				q.limit = TW_CALLS_MAX;
				check(&w, q);
			}
		close_world(&w);
	}
}

/* Each call is short enough for a trace, but not all together. */
static void test_long_calls(void **state)
{
	struct model_shape shape = {9, 1, 700, 12, false};
	struct tw_selection sel = {.all_threads = true};
	struct tw_calls_query q = {.sel = &sel, .method = TW_NO_METHOD, .max_ns = INT64_MAX};
	struct world w;
	struct tw_calls c;
	int64_t end = 1, times;

	(void)state;
	model_make(&w.model, &shape);
	for (size_t i = 0; i < w.model.n; i++) {
		const struct model_slice *s = &w.model.slices[i];

		end = s->start_ns + s->dur_ns > end ? s->start_ns + s->dur_ns : end;
	}
	times = (INT64_C(1) << 60) / end;
	for (size_t i = 0; i < w.model.n_records; i++) {
		w.model.records[i].ts_ns *= times;
		w.model.records[i].dur_ns *= times;
	}
	assert_int_equal(trace_fixture_make(&w.f, &w.model), TW_OK);
	w.arena = tw_arena_new((size_t)1 << 28);
	assert_int_equal(tw_query_calls(w.f.file, &q, NULL, w.arena, &c, NULL), TW_OK);
	assert_int_equal(c.n, w.model.n);
	assert_int_equal(c.sum_ns, INT64_MAX);
	close_world(&w);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_long_calls),
};

UNIT_TESTS("calls", tests)
