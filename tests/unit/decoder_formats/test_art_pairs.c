/*
 * Unit tests of how an ART trace's exits find their enters: one for each way in which they may not
 * (an exit of another call, of none, by an exception, a call still open, times that fall), of
 * traces of all calls and of samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/decoder_formats/art_fixture.h"
#include "tests/unit/unit.h"

enum { ENTER, EXIT, UNROLL, ZERO = 0, FOUR = 4, EIGHT = 8 };

/* As the server does it; the trace's only thread, or the one asked for, is log's to read. */
static void build(struct tw_buf *b, struct trace_log *log)
{
	assert_int_equal(art_build(b, log), TW_OK);
	tw_buf_done(b);
}

static void is_slice(struct trace_log *log, size_t i, int64_t start_us, int64_t dur_us)
{
	size_t n;
	struct tw_slice *s = trace_log_slices(log, trace_log_thread(log, 1)->thread_id, 0, &n);

	assert_true(i < n);
	assert_int_equal(s[i].start_ns, start_us * 1000);
	assert_int_equal(s[i].dur_ns, dur_us * 1000);
}

/* Calls above the one that ends end with it; an exit of a call that is not open closes nothing. */
static void test_exit_of_another(void **state)
{
	struct trace_log log;
	struct tw_buf b;

	(void)state;
	art_header(&b, 2, "clock=wall\n");
	art_record2(&b, 1, ZERO | ENTER, 10);
	art_record2(&b, 1, FOUR | ENTER, 20);
	art_record2(&b, 1, EIGHT | EXIT, 30); /* not open */
	art_record2(&b, 1, EIGHT | ENTER, 40);
	art_record2(&b, 1, FOUR | EXIT, 50); /* and 8 with it */
	art_record2(&b, 1, ZERO | EXIT, 60);
	build(&b, &log);
	assert_int_equal(log.info.slices, 3);
	is_slice(&log, 0, 10, 50);
	is_slice(&log, 1, 20, 30);
	is_slice(&log, 2, 40, 10);
	assert_int_equal(log.repairs[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.repairs[TW_REPAIR_enter_without_exit], 1);
	trace_log_done(&log);
}

/* Of two open calls of one method the inner one ends. */
static void test_exit_of_the_inner(void **state)
{
	struct trace_log log;
	struct tw_buf b;

	(void)state;
	art_header(&b, 2, "clock=wall\n");
	art_record2(&b, 1, ZERO | ENTER, 10);
	art_record2(&b, 1, ZERO | ENTER, 20);
	art_record2(&b, 1, ZERO | EXIT, 30);
	art_record2(&b, 1, ZERO | EXIT, 60);
	build(&b, &log);
	is_slice(&log, 0, 10, 50);
	is_slice(&log, 1, 20, 10);
	assert_int_equal(log.repairs[TW_REPAIR_exit_without_enter], 0);
	trace_log_done(&log);
}

/* A call that was running when a trace of all calls began. */
static void test_exit_of_none(void **state)
{
	struct trace_log log;
	struct tw_buf b;

	(void)state;
	art_header(&b, 3, "clock=dual\npid=77\n");
	art_record3(&b, 1, 0, 10, 100);
	art_record3(&b, 1, 1, 20, 110);
	art_record3(&b, 1, 5, 30, 130);  /* was running when it began: takes the call before it */
	art_record3(&b, 1, 9, 40, 140);  /* and this takes both */
	art_record3(&b, 4471, 9, 7, 50); /* nothing before it: a unit of time */
	art_record3(&b, 1, 0, 50, 150);
	art_record3(&b, 1, 5, 55, 155); /* not open, while another is: left out */
	art_record3(&b, 1, 1, 60, 160);
	assert_int_equal(art_build(&b, &log), TW_OK);
	tw_buf_done(&b);
	assert_int_equal(log.info.slices, 5);
	assert_int_equal(log.info.max_depth, 3);
	assert_int_equal(log.repairs[TW_REPAIR_begin_clamped], 3);
	assert_int_equal(log.repairs[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.repairs[TW_REPAIR_overlap_clipped], 0);
	assert_int_equal(art_method_named(&log, "com.a.B.four(I)V")->sum_ns, 31000);
	assert_int_equal(art_method_named(&log, "com.a.B.zero()V")->cpu_ns, 20000);
	assert_int_equal(art_method_named(&log, "java.lang.String.eight()V")->sum_ns, 43000);
	/* thread 1 is called main, so it is the process'; 4471 is what 16 bits leave of 70007 */
	assert_non_null(trace_log_thread(&log, 77));
	assert_true(trace_log_thread(&log, 77)->is_main);
	assert_non_null(trace_log_thread(&log, 70007));
	assert_int_equal(trace_log_thread(&log, 70007)->pid, 77);
	trace_log_done(&log);
}

/* 30 samples, between them a millisecond; ahead of them an exit that nothing entered. */
static void sampled(struct tw_buf *b, unsigned how, unsigned samples)
{
	art_header(b, 2, "clock=wall\n");
	art_record2(b, 1, EIGHT | EXIT, 100);
	for (unsigned i = 0; i < samples; i++) {
		art_record2(b, 1, FOUR | ENTER, 1000 * (i + 1));
		art_record2(b, 1, FOUR | (i == 20 ? how : EXIT), 1000 * (i + 2));
	}
	art_record2(b, 1, ZERO | EXIT, 1000 * (samples + 2));
}

/* A sampler begins with an empty stack, so an exit without an entry does not imply an earlier call
 * that would enclose all samples. A recording of all calls is recognised by a call left by an
 * exception; 600 is more than the number of records inspected before the decision. */
static void test_exit_of_none_sampled(void **state)
{
	static const struct {
		unsigned how, samples, adopted;
		enum tw_source source;
	} rows[] = {
	        {EXIT, 30, 0, TW_SOURCE_SAMPLES},
	        {EXIT, 600, 0, TW_SOURCE_SAMPLES},
	        {UNROLL, 30, 2, TW_SOURCE_CALLS},
	        {UNROLL, 600, 2, TW_SOURCE_CALLS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct trace_log log;
		struct tw_buf b;

		sampled(&b, rows[i].how, rows[i].samples);
		build(&b, &log);
		assert_int_equal(trace_log_thread(&log, 1)->source, rows[i].source);
		assert_int_equal(log.info.slices, rows[i].samples + rows[i].adopted);
		assert_int_equal(log.info.max_depth, rows[i].adopted ? 2 : 1);
		assert_int_equal(log.repairs[TW_REPAIR_begin_clamped], rows[i].adopted);
		assert_int_equal(log.repairs[TW_REPAIR_exit_without_enter], 2 - rows[i].adopted);
		trace_log_done(&log);
	}
}

/* It ends its call as an exit does, and a marker records the exception. */
static void test_unroll(void **state)
{
	struct event_log events;
	struct trace_log log;
	struct tw_buf b;

	(void)state;
	art_header(&b, 2, "clock=wall\n");
	art_record2(&b, 1, ZERO | ENTER, 10);
	art_record2(&b, 1, FOUR | ENTER, 20);
	art_record2(&b, 1, ZERO | UNROLL, 30);
	art_record2(&b, 1, EIGHT | UNROLL, 40); /* began before the trace: it too */
	art_run(&events, &b);
	assert_true(art_reported(&events, "note unroll 2 30000 -1 0"));
	assert_true(art_reported(&events, "note unroll 2 40000 -1 0"));
	assert_true(art_reported(&events, " com.a.B.zero \n"));
	assert_true(art_reported(&events, " java.lang.String.eight \n"));
	event_log_done(&events);
	build(&b, &log);
	is_slice(&log, 0, 9, 31);
	is_slice(&log, 1, 10, 20);
	is_slice(&log, 2, 20, 10);
	trace_log_done(&log);
}

/* What is open at the end lasts to the trace's last time; where the buffer was full and where
 * threads have clocks of their own, to the thread's. */
static void test_open_at_the_end(void **state)
{
	static const struct {
		const char *keys;
		int64_t dur_us;
	} rows[] = {
	        {"clock=wall\n", 80},
	        {"data-file-overflow=true\nclock=wall\n", 20},
	        {"clock=thread-cpu\n", 20},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct trace_log log;
		struct tw_buf b;

		art_header(&b, 2, rows[i].keys);
		art_record2(&b, 1, ZERO | ENTER, 10);
		art_record2(&b, 1, FOUR | ENTER, 20);
		art_record2(&b, 1, FOUR | EXIT, 30);
		art_record2(&b, 2, FOUR | ENTER, 50);
		art_record2(&b, 2, FOUR | EXIT, 90);
		build(&b, &log);
		is_slice(&log, 0, 10, rows[i].dur_us);
		is_slice(&log, 1, 20, 10);
		assert_int_equal(log.repairs[TW_REPAIR_enter_without_exit], 1);
		assert_int_equal(log.repairs[TW_REPAIR_cpu_clock_only], i == 2);
		trace_log_done(&log);
	}
}

/* Each of the two clocks is raised to its previous value, separately. */
static void test_falling_times(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	art_header(&b, 3, "clock=dual\n");
	art_record3(&b, 1, ZERO | ENTER, 10, 100);
	art_record3(&b, 1, FOUR | ENTER, 20, 90); /* wall fell */
	art_record3(&b, 1, FOUR | EXIT, 15, 110); /* CPU fell */
	art_record3(&b, 2, FOUR | ENTER, 1, 50);  /* another thread's */
	art_record3(&b, 1, ZERO | EXIT, 20, 110); /* neither */
	art_run_done(&log, &b);
	art_check(&log, 1, TW_EV_BEGIN, FOUR, 100000, 20000);
	art_check(&log, 2, TW_EV_END_EARLIER, FOUR, 110000, 20000);
	art_check(&log, 3, TW_EV_BEGIN, FOUR, 50000, 1000);
	art_check(&log, 4, TW_EV_END_EARLIER, ZERO, 110000, 20000);
	assert_int_equal(log.counts[TW_REPAIR_time_fell], 2);
	event_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_of_another),
        cmocka_unit_test(test_exit_of_the_inner),
        cmocka_unit_test(test_exit_of_none),
        cmocka_unit_test(test_exit_of_none_sampled),
        cmocka_unit_test(test_unroll),
        cmocka_unit_test(test_open_at_the_end),
        cmocka_unit_test(test_falling_times),
};

UNIT_TESTS("art_pairs", tests)
