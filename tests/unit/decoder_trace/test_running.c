/* Unit tests of the scheduler's states: time on a CPU within calls, and the duration of a trace
 * without calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "decoder/trace/running.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

enum { SPAN = 600, TRIES = 400 };

/* --- the states alone, against one byte for each nanosecond --- */

static void test_like_a_table(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int try = 0; try < TRIES; try++) {
		struct tw_running r = {.runs = NULL};
		bool on[SPAN], known[SPAN];
		int64_t ts = (int64_t)(test_random(&seed) % 50);
		int64_t from = ts;
		uint32_t at = 0;

		memset(on, 0, sizeof on);
		memset(known, 0, sizeof known);
		while (ts < SPAN - 60) {
			int64_t dur = (int64_t)(test_random(&seed) % 20) - 1;
			bool runs = test_random(&seed) % 2 == 0;

			assert_true(tw_running_add(&r, ts, dur, runs));
			for (int64_t t = ts; t < ts + dur; t++) {
				on[t] = known[t] ? on[t] : runs;
				known[t] = true;
			}
			ts += (int64_t)(test_random(&seed) % 25);
		}
		for (int64_t t = from; t < r.to_ns; t++) /* a gap: it was not seen on a CPU */
			known[t] = true;
		for (int k = 0; k < 200; k++) {
			int64_t a = (int64_t)(test_random(&seed) % (SPAN - 100));
			int64_t b = a + (int64_t)(test_random(&seed) % 100);
			int64_t want = 0;

			for (int64_t t = a; t < b; t++)
				want += on[t] || !known[t];
			assert_int_equal(tw_running_within(&r, a, b, &at), want);
		}
		tw_running_free(&r);
	}
}

static void test_covers(void **state)
{
	struct tw_running r = {.runs = NULL};

	(void)state;
	assert_false(tw_running_covers(&r, 0, 0));
	assert_true(tw_running_add(&r, 1000, 1600, false));
	assert_true(tw_running_covers(&r, 1000, 2600));
	assert_true(tw_running_covers(&r, 900, 2600));
	assert_false(tw_running_covers(&r, 800, 2600));
	assert_false(tw_running_covers(&r, 1000, 2800));
	tw_running_free(&r);
}

/* --- in a trace --- */

static void call(
        struct tw_sink *s, uint32_t track, int64_t ts, int64_t dur, int64_t cpu, uint64_t id)
{
	struct tw_event ev = {
	        .kind = TW_EV_SLICE, .ts_ns = ts, .dur_ns = dur, .cpu_ns = cpu, .track = track};

	ev.sym = s->ops->method(s, id);
	assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
}

static void note(struct tw_sink *s, uint32_t track, enum tw_note_kind kind, int64_t ts, int64_t dur,
        const char *text)
{
	const struct tw_note n = {.kind = kind,
	        .track = track,
	        .ts_ns = ts,
	        .dur_ns = dur,
	        .value = -1,
	        .text = tw_str_of(text)};

	assert_int_equal(s->ops->note(s, &n, NULL), TW_OK);
}

static struct trace_log written(struct tw_builder *b)
{
	struct trace_log log;

	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_null(tw_builder_free(b));
	return log;
}

static struct tw_builder *begun(void)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);

	assert_non_null(b);
	return b;
}

/* A call of 100 ns runs 30, waits 50, is runnable 20; its callee has the last 10 of the wait and
 * the 10 before the end. */
static void test_states_are_cpu_time(void **state)
{
	struct tw_builder *b = begun();
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 7, TW_TID_FULL);
	uint32_t other = s->ops->track(s, 1, 8, TW_TID_FULL);
	struct trace_log log;
	const struct tw_thread_info *t;
	const struct tw_slice *got;
	size_t n;

	(void)state;
	note(s, other, TW_NOTE_state, 0, 1000, "running");
	note(s, track, TW_NOTE_state, 190, 10, "running"); /* states come in any order */
	note(s, track, TW_NOTE_state, 100, 20, "running");
	note(s, track, TW_NOTE_state, 120, 50, "sleeping");
	note(s, track, TW_NOTE_state, 170, 20, "runnable");
	call(s, track, 160, 40, -1, 2);
	call(s, track, 100, 100, -1, 1);
	log = written(b);
	assert_true(log.info.has_cpu);
	t = trace_log_thread(&log, 7);
	got = trace_log_slices(&log, t->thread_id, 0, &n);
	assert_int_equal(n, 2);
	assert_int_equal(got[0].cpu_ns, 30);
	assert_int_equal(got[1].cpu_ns, 10);
	assert_int_equal(log.trees[t->thread_id - 1].nodes[1].cpu_ns, 30);
	trace_log_done(&log);
}

/* The thread's own clock is more exact; states of a small part of it do not cover the rest; counts
 * have no time. */
static void test_states_without_running(void **state)
{
	struct tw_builder *b = begun();
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t timed = s->ops->track(s, 1, 7, TW_TID_FULL);
	uint32_t partly = s->ops->track(s, 1, 8, TW_TID_FULL);
	uint32_t counts = s->ops->track(s, 1, 9, TW_TID_FULL);
	const struct {
		uint64_t tid;
		int64_t cpu_ns;
	} want[] = {{7, 55}, {8, -1}, {9, -1}};
	struct trace_log log;

	(void)state;
	s->ops->source(s, counts, TW_SOURCE_COUNTS, 0);
	note(s, timed, TW_NOTE_state, 0, 100, "running");
	note(s, partly, TW_NOTE_state, 0, 50, "sleeping");
	note(s, counts, TW_NOTE_state, 0, 100, "running");
	call(s, timed, 0, 100, 55, 1);
	call(s, partly, 0, 100, -1, 1);
	call(s, counts, 0, 100, -1, 1);
	log = written(b);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct tw_thread_info *t = trace_log_thread(&log, want[i].tid);
		size_t n;
		const struct tw_slice *got = trace_log_slices(&log, t->thread_id, 0, &n);

		assert_int_equal(n, 1);
		assert_int_equal(got->cpu_ns, want[i].cpu_ns);
	}
	trace_log_done(&log);
}

static void test_without_calls(void **state)
{
	struct tw_builder *b = begun();
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 7, TW_TID_FULL);
	struct trace_log log;

	(void)state;
	note(s, track, TW_NOTE_process, 0, -1, "com.app");
	note(s, track, TW_NOTE_state, 500, 300, "running");
	note(s, track, TW_NOTE_state, 800, -1, "sleeping");
	note(s, 0, TW_NOTE_counter, 300, -1, "battery");
	log = written(b);
	assert_int_equal(log.info.slices, 0);
	assert_int_equal(log.info.start_ns, 300);
	assert_int_equal(log.info.end_ns, 800);
	trace_log_done(&log);
}

/* With calls, counters do not extend the trace. */
static void test_with_calls(void **state)
{
	struct tw_builder *b = begun();
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 7, TW_TID_FULL);
	struct trace_log log;

	(void)state;
	note(s, 0, TW_NOTE_counter, 300, -1, "battery");
	call(s, track, 400, 50, -1, 1);
	log = written(b);
	assert_int_equal(log.info.start_ns, 400);
	assert_int_equal(log.info.end_ns, 450);
	trace_log_done(&log);
}

/* States that the trace's own input recorded belong to the trace, also before and after its calls.
 */
static void test_with_own_states(void **state)
{
	struct tw_builder *b = begun();
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 7, TW_TID_FULL);
	struct trace_log log;

	(void)state;
	note(s, track, TW_NOTE_state, 350, 100, "running");
	note(s, track, TW_NOTE_state, 450, 20, "sleeping");
	call(s, track, 400, 50, -1, 1);
	log = written(b);
	assert_int_equal(log.info.start_ns, 350);
	assert_int_equal(log.info.end_ns, 470);
	assert_int_equal(log.n_notes, 2);
	trace_log_done(&log);
}

/* The device's recording has its own begin and end: only the part during the trace is stored. */
static void test_with_system_states(void **state)
{
	static const struct {
		int64_t ts_ns, dur_ns;
		const char *text;
	} want[] = {{390, -1, "battery"}, {400, 20, "running"}, {420, 15, "sleeping"},
	        {435, 15, "runnable"}, {450, -1, "dead"}, {480, -1, "battery"}};
	struct tw_builder *b = begun();
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 7, TW_TID_FULL);
	struct trace_log log;

	(void)state;
	call(s, track, 400, 50, -1, 1);
	tw_builder_input_is_system(b);
	note(s, track, TW_NOTE_state, 300, 40, "running"); /* it ends before the trace */
	note(s, track, TW_NOTE_state, 340, 60, "sleeping");
	note(s, track, TW_NOTE_state, 380, 40, "running");
	note(s, 0, TW_NOTE_counter, 390, -1, "battery");
	note(s, track, TW_NOTE_state, 420, 15, "sleeping");
	note(s, track, TW_NOTE_state, 435, 90, "runnable");
	note(s, track, TW_NOTE_state, 450, -1, "dead");
	note(s, track, TW_NOTE_state, 450, 30, "running");
	note(s, track, TW_NOTE_state, 451, -1, "dead");
	note(s, 0, TW_NOTE_counter, 480, -1, "battery");
	log = written(b);
	assert_int_equal(log.info.start_ns, 400);
	assert_int_equal(log.info.end_ns, 450);
	assert_int_equal(log.n_notes, sizeof want / sizeof *want);
	for (size_t i = 0; i < log.n_notes; i++) {
		assert_int_equal(log.notes[i].ts_ns, want[i].ts_ns);
		assert_int_equal(log.notes[i].dur_ns, want[i].dur_ns);
		assert_true(tw_str_eq(log.notes[i].text, tw_str_of(want[i].text)));
	}
	trace_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_a_table),
        cmocka_unit_test(test_covers),
        cmocka_unit_test(test_states_are_cpu_time),
        cmocka_unit_test(test_states_without_running),
        cmocka_unit_test(test_without_calls),
        cmocka_unit_test(test_with_calls),
        cmocka_unit_test(test_with_own_states),
        cmocka_unit_test(test_with_system_states),
};

UNIT_TESTS("running", tests)
