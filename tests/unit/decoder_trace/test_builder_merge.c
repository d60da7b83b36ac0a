/* Unit tests of the builder with several inputs: clocks, ids, tracks that are one thread's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

#define DAY_NS   ((int64_t)86400 * 1000000000)
#define MONO_NS  ((int64_t)5000 * 1000000000)
#define BOOT_NS  ((int64_t)9000 * 1000000000)
#define SHIFT_NS ((int64_t)777)

struct fixture {
	struct tw_builder *b;
	struct tw_sink *sink;
};

static struct fixture start(const struct tw_clock *clock)
{
	struct tw_limits limits = tw_limits_default();
	struct fixture f = {.b = tw_builder_new(&limits)};

	assert_non_null(f.b);
	f.sink = tw_builder_sink(f.b);
	f.sink->ops->clock(f.sink, clock);
	return f;
}

static void slice(const struct fixture *f, uint32_t track, int64_t ts_ns, int64_t dur_ns)
{
	const struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = ts_ns,
	        .dur_ns = dur_ns,
	        .cpu_ns = -1,
	        .track = track,
	        .sym = f->sink->ops->method(f->sink, 1)};

	assert_int_equal(f->sink->ops->events(f->sink, &ev, 1, NULL), TW_OK);
}

static void write_out(struct fixture *f, struct trace_log *log)
{
	trace_log_init(log);
	assert_int_equal(tw_builder_write(f->b, &log->out, NULL), TW_OK);
	f->b = tw_builder_free(f->b);
}

/* --- one thread out of two inputs --- */

/* Emits the records whose bit in `side` is set from a side file, whose clock is SHIFT_NS earlier.
 */
static void emit_half(const struct fixture *f, const struct model *m, const bool *side, bool now)
{
	for (size_t i = 0; i < m->n_records; i++) {
		struct tw_event ev = m->records[i];
		uint64_t tid = MODEL_PID + ev.track;

		if (side[i] != now)
			continue;
		ev.track = f->sink->ops->track(
		        f->sink, MODEL_PID, tid, now ? TW_TID_FULL : TW_TID_LOW15);
		ev.sym = f->sink->ops->method(f->sink, ev.sym);
		if (now)
			ev.ts_ns += SHIFT_NS;
		assert_int_equal(f->sink->ops->events(f->sink, &ev, 1, NULL), TW_OK);
	}
}

static void test_halves_make_the_whole(void **state)
{
	const struct model_shape shape = {
	        .seed = 41, .threads = 3, .per_thread = 400, .max_depth = 9, .no_ties = true};
	struct model m;
	struct trace_log log;
	struct fixture f = start(&(struct tw_clock){MODEL_PID, MONO_NS, BOOT_NS, 0, 0});
	uint64_t seed = 17;
	bool *side;
	size_t at = 0;

	(void)state;
	model_make(&m, &shape);
	side = calloc(m.n_records, sizeof *side);
	assert_non_null(side);
	for (size_t i = 0; i < m.n_records; i++)
		side[i] = test_random(&seed) >> 40 & 1;
	emit_half(&f, &m, side, false);
	tw_builder_next_input(f.b);
	f.sink->ops->clock(f.sink, &(struct tw_clock){0, MONO_NS - SHIFT_NS, -1, 0, 0});
	emit_half(&f, &m, side, true);
	write_out(&f, &log);
	assert_int_equal(log.n_threads, shape.threads);
	for (uint32_t t = 0; t < shape.threads; t++) {
		const struct tw_thread_info *info = trace_log_thread(&log, MODEL_PID + t);
		size_t n;
		const struct tw_slice *s = trace_log_slices(&log, info->thread_id, 0, &n);

		assert_int_equal(info->slices, n);
		for (size_t i = 0; i < n; i++, at++) {
			assert_int_equal(s[i].start_ns, m.slices[at].start_ns);
			assert_int_equal(s[i].dur_ns, m.slices[at].dur_ns);
			assert_int_equal(s[i].depth, m.slices[at].depth);
			assert_int_equal(log.methods[s[i].method].id, m.slices[at].method_id);
		}
	}
	assert_int_equal(at, m.n);
	assert_int_equal(log.repairs[TW_REPAIR_order_restored], 0);
	assert_int_equal(log.repairs[TW_REPAIR_overlap_clipped], 0);
	free(side);
	trace_log_done(&log);
	model_done(&m);
}

static void test_end_of_a_side_file_closes_nothing(void **state)
{
	struct fixture f = start(&(struct tw_clock){9, MONO_NS, -1, 0, 0});
	struct trace_log log;
	struct tw_event ev[3] = {{.kind = TW_EV_BEGIN, .ts_ns = 10, .cpu_ns = -1},
	        {.kind = TW_EV_END, .ts_ns = 20, .cpu_ns = -1},
	        {.kind = TW_EV_END, .ts_ns = 30, .cpu_ns = -1}};

	(void)state;
	slice(&f, f.sink->ops->track(f.sink, 9, 9, TW_TID_LOW15), 5, 100);
	tw_builder_next_input(f.b);
	f.sink->ops->clock(f.sink, &(struct tw_clock){9, MONO_NS, -1, 0, 0});
	for (int i = 0; i < 3; i++)
		ev[i].track = f.sink->ops->track(f.sink, 9, 9, TW_TID_FULL);
	ev[0].sym = f.sink->ops->name(f.sink, TW_STR("x"));
	assert_int_equal(f.sink->ops->events(f.sink, ev, 3, NULL), TW_OK);
	write_out(&f, &log);
	assert_int_equal(log.n_threads, 1);
	assert_int_equal(log.threads[0].busy_ns, 100);
	assert_int_equal(log.threads[0].max_depth, 2);
	assert_int_equal(log.repairs[TW_REPAIR_exit_without_enter], 1);
	trace_log_done(&log);
}

static void test_sources_stay_apart(void **state)
{
	struct fixture f = start(&(struct tw_clock){9, MONO_NS, -1, 0, 0});
	struct trace_log log;
	uint32_t sampled;

	(void)state;
	slice(&f, f.sink->ops->track(f.sink, 9, 9, TW_TID_LOW15), 5, 100);
	sampled = f.sink->ops->track(f.sink, 9, 9, TW_TID_FULL);
	f.sink->ops->source(f.sink, sampled, TW_SOURCE_SAMPLES, 10);
	slice(&f, sampled, 5, 100);
	write_out(&f, &log);
	assert_int_equal(log.n_threads, 2);
	trace_log_done(&log);
}

/* --- clocks --- */

/* Where a slice at 1000 of a side file with this clock lands; -1: nowhere. */
static int64_t landing(const struct tw_clock *first, const struct tw_clock *side)
{
	struct fixture f = start(first);
	struct trace_log log;
	int64_t at = -1;
	size_t n;

	slice(&f, f.sink->ops->track(f.sink, 9, 9, TW_TID_FULL), 0, 1);
	tw_builder_next_input(f.b);
	if (side)
		f.sink->ops->clock(f.sink, side);
	slice(&f, f.sink->ops->track(f.sink, 9, 10, TW_TID_FULL), 1000, 1);
	write_out(&f, &log);
	for (size_t i = 0; i < log.n_threads; i++)
		if (log.threads[i].tid == 10 && log.threads[i].slices)
			at = trace_log_slices(&log, log.threads[i].thread_id, 0, &n)->start_ns;
	assert_int_equal(log.repairs[TW_REPAIR_side_clock_unknown], at < 0);
	trace_log_done(&log);
	return at;
}

static void test_clocks(void **state)
{
	const struct tw_clock both = {9, MONO_NS, BOOT_NS, 0, 0};
	const struct tw_clock none = {9, -1, -1, 0, 0};
	const struct tw_clock some = {9, -1, -1, 0, BOOT_NS - 500};

	(void)state;
	assert_int_equal(landing(&both, &(struct tw_clock){9, MONO_NS + 5, 1, 0, 0}), 1005);
	assert_int_equal(landing(&both, &(struct tw_clock){9, -1, BOOT_NS - 7, 0, 0}), 993);
	/* one of the two, not known which: the nearer */
	assert_int_equal(landing(&both, &some), 500);
	assert_int_equal(landing(&both, &(struct tw_clock){9, -1, -1, 0, MONO_NS + 1}), 1001);
	assert_int_equal(landing(&some, &(struct tw_clock){9, -1, BOOT_NS, 0, 0}), 1500);
	assert_int_equal(landing(&some, &some), 1000);
	/* nothing to go by, or another time */
	assert_int_equal(landing(&none, &both), -1);
	assert_int_equal(landing(&both, &none), -1);
	assert_int_equal(
	        landing(&both, &(struct tw_clock){9, MONO_NS + DAY_NS, -1, 0, 0}), 1000 + DAY_NS);
	assert_int_equal(landing(&both, &(struct tw_clock){9, MONO_NS + DAY_NS + 1, -1, 0, 0}), -1);
	/* an input without clocks is used unchanged */
	assert_int_equal(landing(&both, NULL), 1000);
}

static void test_before_the_zero(void **state)
{
	struct fixture f = start(&(struct tw_clock){9, MONO_NS, -1, 0, 0});
	struct trace_log log;
	uint32_t track;
	size_t n;
	const struct tw_slice *s;

	(void)state;
	tw_builder_next_input(f.b);
	f.sink->ops->clock(f.sink, &(struct tw_clock){9, MONO_NS - 100, -1, 0, 0});
	track = f.sink->ops->track(f.sink, 9, 9, TW_TID_FULL);
	slice(&f, track, 60, 50);
	assert_int_equal(
	        f.sink->ops->note(f.sink,
	                &(struct tw_note){
	                        .kind = TW_NOTE_gc, .ts_ns = 90, .dur_ns = 30, .text = TW_STR("x")},
	                NULL),
	        TW_OK);
	write_out(&f, &log);
	s = trace_log_slices(&log, 1, 0, &n);
	assert_int_equal(n, 1);
	assert_int_equal(s[0].start_ns, 0);
	assert_int_equal(s[0].dur_ns, 10);
	assert_int_equal(log.n_notes, 1);
	assert_int_equal(log.repairs[TW_REPAIR_begin_clamped], 2);
	trace_log_done(&log);
}

/* Events that ended before the trace's start are left out; a process has no time. */
static void test_over_before_the_zero(void **state)
{
	static const struct {
		int64_t ts_ns, dur_ns;
		bool kept;
	} notes[] = {{99, -1, false}, {100, -1, true}, {40, 59, false}, {40, 60, true}};

	(void)state;
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
		struct fixture f = start(&(struct tw_clock){9, MONO_NS, -1, 0, 0});
		struct tw_note note = {.kind = TW_NOTE_gc,
		        .ts_ns = notes[i].ts_ns,
		        .dur_ns = notes[i].dur_ns,
		        .text = TW_STR("x")};
		struct tw_note process = {
		        .kind = TW_NOTE_process, .dur_ns = -1, .text = TW_STR("p")};
		struct trace_log log;

		tw_builder_next_input(f.b);
		f.sink->ops->clock(f.sink, &(struct tw_clock){9, MONO_NS - 100, -1, 0, 0});
		assert_int_equal(f.sink->ops->note(f.sink, &note, NULL), TW_OK);
		assert_int_equal(f.sink->ops->note(f.sink, &process, NULL), TW_OK);
		write_out(&f, &log);
		assert_int_equal(log.n_notes, 1 + notes[i].kept);
		assert_int_equal(log.repairs[TW_REPAIR_before_trace], !notes[i].kept);
		trace_log_done(&log);
	}
}

/* --- ids and processes --- */

static void test_process_reported_late(void **state)
{
	struct fixture f = start(&(struct tw_clock){0, -1, -1, 0, MONO_NS});
	struct trace_log log;

	(void)state;
	slice(&f, f.sink->ops->track(f.sink, 0, 12, TW_TID_FULL), 5, 100);
	f.sink->ops->thread_process(f.sink, 12, 77);
	f.sink->ops->thread_process(f.sink, 12, 78); /* the first word counts */
	slice(&f, f.sink->ops->track(f.sink, 77, 12, TW_TID_FULL), 10, 20);
	write_out(&f, &log);
	assert_int_equal(log.n_threads, 1);
	assert_int_equal(log.threads[0].pid, 77);
	assert_int_equal(log.threads[0].slices, 2);
	trace_log_done(&log);
}

static void test_full_id_from_a_side_file(void **state)
{
	struct fixture f = start(&(struct tw_clock){40000, MONO_NS, -1, 0, 0});
	struct trace_log log;

	(void)state;
	slice(&f, f.sink->ops->track(f.sink, 40000, 40077 & 0x7FFF, TW_TID_LOW15), 5, 100);
	tw_builder_next_input(f.b);
	f.sink->ops->clock(f.sink, &(struct tw_clock){40000, MONO_NS, -1, 0, 0});
	slice(&f, f.sink->ops->track(f.sink, 40000, 40077, TW_TID_FULL), 10, 20);
	write_out(&f, &log);
	assert_int_equal(log.n_threads, 1);
	assert_int_equal(log.threads[0].tid, 40077);
	assert_int_equal(log.threads[0].slices, 2);
	assert_int_equal(log.repairs[TW_REPAIR_thread_id_truncated], 1);
	trace_log_done(&log);
}

static void test_transactions(void **state)
{
	struct fixture f = start(&(struct tw_clock){9, MONO_NS, -1, 0, 0});
	const struct tw_sink_ops *ops = f.sink->ops;

	(void)state;
	assert_int_equal(ops->transaction_name(f.sink, TW_STR("a.b.I"), 1).len, 0);
	for (uint64_t code = 0; code < 1000; code++)
		ops->transaction(f.sink, TW_STR("a.b.I"), code, TW_STR("first"));
	ops->transaction(f.sink, TW_STR("a.b.I"), 5, TW_STR("last"));
	assert_true(
	        tw_str_eq(ops->transaction_name(f.sink, TW_STR("a.b.I"), 999), TW_STR("first")));
	assert_true(tw_str_eq(ops->transaction_name(f.sink, TW_STR("a.b.I"), 5), TW_STR("last")));
	assert_int_equal(ops->transaction_name(f.sink, TW_STR("a.b.J"), 5).len, 0);
	f.b = tw_builder_free(f.b);
}

/* --- memory --- */

static enum tw_status build(void)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = b ? tw_builder_sink(b) : NULL;
	struct trace_log log;
	struct tw_event ev = {.kind = TW_EV_SLICE, .ts_ns = 5, .dur_ns = 9, .cpu_ns = 3};
	enum tw_status st = s ? TW_OK : TW_NOMEM;

	trace_log_init(&log);
	for (int i = 0; s && i < 40; i++) {
		ev.track = s->ops->track(s, 9, 9, i % 2 ? TW_TID_FULL : TW_TID_LOW15);
		ev.sym = s->ops->method(s, 1);
		s->ops->thread_process(s, (uint64_t)i, 9);
		if (ev.track && ev.sym && st == TW_OK)
			st = s->ops->events(s, &ev, 1, NULL);
	}
	if (st == TW_OK)
		st = tw_builder_write(b, &log.out, NULL);
	tw_builder_free(b);
	trace_log_done(&log);
	return st;
}

static void test_without_memory(void **state)
{
	enum tw_status st = TW_NOMEM;

	(void)state;
	for (uint64_t at = 1; st != TW_OK; at++) {
		assert_true(at < 1000);
		tw_mem_fail_at(at);
		st = build();
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_make_the_whole),
        cmocka_unit_test(test_end_of_a_side_file_closes_nothing),
        cmocka_unit_test(test_sources_stay_apart),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_before_the_zero),
        cmocka_unit_test(test_over_before_the_zero),
        cmocka_unit_test(test_process_reported_late),
        cmocka_unit_test(test_full_id_from_a_side_file),
        cmocka_unit_test(test_transactions),
        cmocka_unit_test(test_without_memory),
};

UNIT_TESTS("builder_merge", tests)
