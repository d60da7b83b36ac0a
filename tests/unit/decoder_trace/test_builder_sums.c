/* Unit tests of the builder's sums at their bounds: full call trees, times out of range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

static void tell(struct tw_builder *b, uint64_t tid, int64_t ts, int64_t dur, uint64_t id)
{
	struct tw_sink *s = tw_builder_sink(b);
	struct tw_event ev = {.kind = TW_EV_SLICE, .ts_ns = ts, .dur_ns = dur, .cpu_ns = -1};

	ev.track = s->ops->track(s, 1, tid, TW_TID_FULL);
	ev.sym = s->ops->method(s, id);
	assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
}

/* Frees the builder; free the log with trace_log_done. */
static struct trace_log written(struct tw_builder *b)
{
	struct trace_log log;

	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_null(tw_builder_free(b));
	return log;
}

/* Where not even the thread's own calls have room, their time is the thread's. */
static void test_full_of_roots(void **state)
{
	struct tw_limits l = tw_limits_default();
	const struct tw_tree *t;
	struct tw_builder *b;
	struct trace_log log;
	int64_t self = 0;

	(void)state;
	l.max_tree_nodes = 10;
	b = tw_builder_new(&l);
	assert_non_null(b);
	for (int i = 0; i < 100; i++)
		tell(b, 7, i * 10, 4, 1000 + (uint64_t)i);
	log = written(b);
	t = &log.trees[0];
	for (uint32_t i = 0; i < t->n; i++)
		self += t->nodes[i].self_ns;
	assert_int_equal(self, 400);
	assert_int_equal(t->nodes[0].total_ns, 400);
	assert_int_equal(t->nodes[0].self_ns, 4 * log.repairs[TW_REPAIR_call_tree_full]);
	assert_int_equal(t->n - 1 + log.repairs[TW_REPAIR_call_tree_full], 100);
	trace_log_done(&log);
}

/* The CPU time of a method is at most its total time, also where it calls itself. */
static void test_recursive_cpu(void **state)
{
	static const int64_t calls[][3] = {{0, 100, 60}, {10, 80, 50}, {20, 30, 20}};
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct tw_sink *s = tw_builder_sink(b);
	struct tw_event ev = {.kind = TW_EV_SLICE};
	struct trace_log log;

	(void)state;
	ev.track = s->ops->track(s, 1, 7, TW_TID_FULL);
	ev.sym = s->ops->method(s, 1);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		ev.ts_ns = calls[i][0];
		ev.dur_ns = calls[i][1];
		ev.cpu_ns = calls[i][2];
		assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
	}
	log = written(b);
	assert_int_equal(log.methods[0].count, 3);
	assert_int_equal(log.methods[0].sum_ns, 210);
	assert_int_equal(log.methods[0].total_ns, 100);
	assert_int_equal(log.methods[0].cpu_ns, 60);
	trace_log_done(&log);
}

/* Sums of the longest calls there can be end where numbers do. */
static void test_sums_out_of_range(void **state)
{
	const int64_t most = INT64_C(1) << 61;
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b;
	struct trace_log log;

	(void)state;
	b = tw_builder_new(&l);
	assert_non_null(b);
	for (uint64_t tid = 1; tid <= 9; tid++)
		tell(b, tid, most, most, 1);
	log = written(b);
	assert_int_equal(log.methods[0].count, 9);
	assert_int_equal(log.methods[0].sum_ns, INT64_MAX);
	assert_int_equal(log.methods[0].total_ns, INT64_MAX);
	assert_int_equal(log.methods[0].self_ns, INT64_MAX);
	assert_int_equal(log.methods[0].max_ns, most);
	trace_log_done(&log);
}

/* Nested calls, of which some call their own method, with CPU times. */
static struct trace_log nested_calls(uint32_t max_tree_nodes)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b;
	struct tw_sink *s;

	l.max_tree_nodes = max_tree_nodes;
	b = tw_builder_new(&l);
	assert_non_null(b);
	s = tw_builder_sink(b);
	for (int64_t i = 0; i < 60; i++) {
		const int64_t at = i * 1000;
		const uint64_t m = 1 + (uint64_t)i % 7;
		const uint64_t n = 1 + (uint64_t)i % 11;
		const int64_t calls[][4] = {{at + 10, 3 + i, 2, (int64_t)n},
		        {at + 5, 100 + i, 70, (int64_t)m}, {at + 210, 4, -1, (int64_t)m},
		        {at + 200, 90, 30 + i, (int64_t)n}, {at, 400 + i, 350, (int64_t)m}};

		for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
			const struct tw_event ev = {.kind = TW_EV_SLICE,
			        .ts_ns = calls[k][0],
			        .dur_ns = calls[k][1],
			        .cpu_ns = calls[k][2],
			        .track = s->ops->track(s, 1, 7, TW_TID_FULL),
			        .sym = s->ops->method(s, (uint64_t)calls[k][3])};

			assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
		}
	}
	return written(b);
}

/* Methods have the sums of all calls, also of calls that do not fit in the tree. */
static void test_methods_of_full_tree(void **state)
{
	struct trace_log full = nested_calls(3);
	struct trace_log whole = nested_calls(1000);

	(void)state;
	assert_true(full.repairs[TW_REPAIR_call_tree_full] > 0);
	assert_int_equal(whole.repairs[TW_REPAIR_call_tree_full], 0);
	assert_int_equal(full.n_methods, whole.n_methods);
	for (size_t i = 0; i < full.n_methods; i++) {
		assert_int_equal(full.methods[i].id, whole.methods[i].id);
		assert_int_equal(full.methods[i].count, whole.methods[i].count);
		assert_int_equal(full.methods[i].sum_ns, whole.methods[i].sum_ns);
		assert_int_equal(full.methods[i].total_ns, whole.methods[i].total_ns);
		assert_int_equal(full.methods[i].self_ns, whole.methods[i].self_ns);
		assert_int_equal(full.methods[i].max_ns, whole.methods[i].max_ns);
		assert_int_equal(full.methods[i].cpu_ns, whole.methods[i].cpu_ns);
	}
	trace_log_done(&full);
	trace_log_done(&whole);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_of_roots),
        cmocka_unit_test(test_methods_of_full_tree),
        cmocka_unit_test(test_sums_out_of_range),
        cmocka_unit_test(test_recursive_cpu),
};

UNIT_TESTS("builder_sums", tests)
