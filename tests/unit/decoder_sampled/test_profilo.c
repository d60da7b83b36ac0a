/* Unit tests of Profilo logs: the difference coding, names, samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

#define HEAD "dt\nver|3\nid|abcdefghijk\nprec|6\npid|100\narch|i686\n\n"

enum { MS = 1000000 };

/* Writes entries with absolute numbers as the differences that a log holds. */
struct maker {
	struct tw_buf b;
	int64_t last[6];
	int64_t call; /* callid of entries to come */
};

static void start(struct maker *m, const char *head)
{
	*m = (struct maker){0};
	tw_buf_init(&m->b, 4 << 20);
	(void)tw_buf_add_str(&m->b, tw_str_of(head));
}

static void entry(
        struct maker *m, const char *type, int64_t id, int64_t us, int64_t tid, int64_t extra)
{
	const int64_t now[6] = {id, us, tid, m->call, 0, extra};
	int64_t by[6];

	for (int i = 0; i < 6; i++) {
		by[i] = (int64_t)((uint64_t)now[i] - (uint64_t)m->last[i]);
		if (i != 1 && i != 5)
			by[i] = (int32_t)(uint32_t)by[i];
		m->last[i] = now[i];
	}
	(void)tw_buf_printf(&m->b,
	        "%" PRId64 "|%s|%" PRId64 "|%" PRId64 "|%" PRId64 "|%" PRId64 "|%" PRId64 "\n",
	        by[0], type, by[1], by[2], by[3], by[4], by[5]);
}

static void text(struct maker *m, const char *type, int64_t id, int64_t parent, const char *what)
{
	(void)tw_buf_printf(&m->b, "%" PRId64 "|%s|%" PRId64 "|%s\n", id, type, parent, what);
}

static struct event_log run(struct maker *m, const struct tw_limits *limits)
{
	struct event_log log;

	event_log_run_cut(&log, m->b.data, m->b.len, limits);
	tw_buf_done(&m->b);
	if (log.status == TW_OK)
		assert_string_equal(log.format->name, "profilo");
	return log;
}

static void is_slice(const struct event_log *log, size_t i, uint32_t tid, int64_t us,
        int64_t dur_us, const char *name)
{
	assert_in_range(i, 0, log->n - 1);
	assert_int_equal(log->events[i].kind, TW_EV_SLICE);
	assert_int_equal(log->events[i].track, tid + 1);
	assert_int_equal(log->events[i].ts_ns, us * 1000);
	assert_int_equal(log->events[i].dur_ns, dur_us * 1000);
	assert_int_equal(log->events[i].sym, event_log_name(tw_str_of(name)));
}

/* --- markers --- */

/* The first markers of the real log, byte for byte. */
static void test_worked_bytes(void **state)
{
	static const char log_text[] =
	        HEAD "1|TRACE_START|50204738439|23725|2147483647|1|7460043096821407771\n"
	             "1|TRACE_ANNOTATION|1822|0|-2139357177|-1|-7460043096821407771\n"
	             "1|PROCESS_LIST|48717|18|-8126470|0|0\n"
	             "4|STRING_KEY|3|processes\n"
	             "5|STRING_VALUE|4|com.facebook.loom.sample(23725)\n"
	             "3|MARK_PUSH|5301|0|0|0|0\n"
	             "7|STRING_KEY|6|__name\n"
	             "8|STRING_VALUE|7|Suspending mutator threads\n"
	             "3|MARK_POP|1145|0|0|0|0\n"
	             "1|COUNTER|5|2|9240593|0|5\n";
	struct event_log log;

	(void)state;
	event_log_run_cut(&log, log_text, sizeof log_text - 1, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.clock.pid, 100);
	assert_int_equal(log.clock.mono_base_ns, 50204738439000);
	assert_int_equal(log.clock.boot_base_ns, -1);
	assert_int_equal(log.n, 1);
	is_slice(&log, 0, 23743, 50204794279 - 50204738439, 1145, "Suspending mutator threads");
	assert_non_null(strstr(
	        event_log_text(&log), "note process 0 0 -1 23725 0 com.facebook.loom.sample \n"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

/* A name may come of the begin, of the end, as NAME or not at all; text may hold '|'. */
static void test_names(void **state)
{
	struct maker m;
	struct event_log log;

	(void)state;
	start(&m, HEAD);
	entry(&m, "MARK_PUSH", 1, 1000, 7, 0);
	entry(&m, "MARK_PUSH", 2, 1010, 8, 0);
	text(&m, "STRING_KEY", 3, 1, "__name");
	text(&m, "STRING_KEY", 4, 1, "other");
	text(&m, "STRING_VALUE", 5, 4, "not this");
	text(&m, "STRING_VALUE", 6, 3, "a|b");
	entry(&m, "MARK_POP", 7, 1020, 8, 0);
	text(&m, "STRING_KEY", 8, 7, "__name");
	text(&m, "STRING_VALUE", 9, 8, "by its end");
	entry(&m, "MARK_POP", 10, 1030, 7, 0);
	text(&m, "STRING_KEY", 11, 10, "__name");
	text(&m, "STRING_VALUE", 12, 11, "too late");
	entry(&m, "IO_START", 13, 1040, 7, 0);
	entry(&m, "IO_END", 14, 1050, 7, 0);
	entry(&m, "CLASS_LOAD_START", 15, 1060, 7, 0);
	text(&m, "STRING_NAME", 16, 15, "La/B;");
	entry(&m, "CLASS_LOAD_FAILED", 17, 1070, 7, 0);
	text(&m, "STRING_VALUE", 18, 15, "of no key");
	log = run(&m, NULL);
	assert_int_equal(log.n, 4);
	is_slice(&log, 0, 8, 10, 10, "by its end");
	is_slice(&log, 1, 7, 0, 30, "a|b");
	is_slice(&log, 2, 7, 40, 10, "IO");
	is_slice(&log, 3, 7, 60, 10, "La/B;");
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_unpaired(void **state)
{
	struct maker m;
	struct event_log log;

	(void)state;
	start(&m, HEAD);
	entry(&m, "MARK_POP", 1, 1000, 7, 0);
	entry(&m, "MARK_PUSH", 2, 1010, 7, 0);
	entry(&m, "MARK_PUSH", 3, 1020, 7, 0);
	entry(&m, "TRACE_END", 4, 1100, 9, 0);
	log = run(&m, NULL);
	assert_int_equal(log.n, 2);
	is_slice(&log, 0, 7, 20, 80, "MARK");
	is_slice(&log, 1, 7, 10, 90, "MARK");
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.offsets[TW_REPAIR_exit_without_enter], sizeof HEAD - 1);
	assert_int_equal(log.counts[TW_REPAIR_enter_without_exit], 2);
	event_log_done(&log);
}

/* On a thread with samples, markers are notes of their kind. */
static void test_markers_and_samples(void **state)
{
	struct maker m;
	struct event_log log;
	const char *reported;

	(void)state;
	start(&m, HEAD);
	entry(&m, "MARK_PUSH", 1, 1000, 7, 0);
	text(&m, "STRING_NAME", 2, 1, "inflate");
	entry(&m, "WAIT_START", 3, 1010, 7, 0);
	entry(&m, "STACK_FRAME", 4, 1015, 7, 5);
	entry(&m, "WAIT_END", 5, 1020, 7, 0);
	entry(&m, "MARK_POP", 6, 1030, 7, 0);
	log = run(&m, NULL);
	reported = event_log_text(&log);
	assert_int_equal(log.n, 2);
	assert_non_null(strstr(reported, "note section 8 0 30000 0 50 inflate \n"));
	assert_non_null(strstr(reported, "note wait 8 10000 10000 -1 "));
	assert_non_null(strstr(reported, "source 8 samples 0\n"));
	event_log_done(&log);
}

/* --- numbers --- */

static void test_wrapping(void **state)
{
	struct maker m;
	struct event_log log;

	(void)state;
	start(&m, HEAD);
	m.call = INT32_MIN;
	entry(&m, "MARK_PUSH", INT32_MAX, 1000, INT32_MAX, INT64_MAX);
	m.call = 77;
	entry(&m, "COUNTER", INT32_MIN, 1001, 5, INT64_MIN);
	m.call = INT32_MAX;
	entry(&m, "MARK_POP", INT32_MIN + 1, 1002, INT32_MAX, -1);
	log = run(&m, NULL);
	assert_int_equal(log.n, 1);
	is_slice(&log, 0, INT32_MAX, 0, 2, "MARK");
	assert_non_null(
	        strstr(event_log_text(&log), "note counter 0 1000 -1 -9223372036854775808 "));
	assert_non_null(strstr(event_log_text(&log), " counter_77 \n"));
	event_log_done(&log);
}

static void test_precision(void **state)
{
	static const struct {
		const char *head;
		int64_t ns;
	} rows[] = {{"dt\nver|3\nprec|9\n\n", 5}, {"dt\nver|3\nprec|3\n\n", 5 * MS},
	        {"dt\nver|3\nprec|0\n\n", 5000 * (int64_t)MS}, {"dt\nver|3\n\n", 5000},
	        {"dt\nver|3\nprec|10\n\n", 5000}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct maker m;
		struct event_log log;

		start(&m, rows[i].head);
		entry(&m, "MARK_PUSH", 1, 100, 7, 0);
		entry(&m, "MARK_POP", 2, 105, 7, 0);
		log = run(&m, NULL);
		assert_int_equal(log.n, 1);
		assert_int_equal(log.events[0].dur_ns, rows[i].ns);
		event_log_done(&log);
	}
}

static void test_bad_times(void **state)
{
	struct maker m;
	struct event_log log;

	(void)state;
	start(&m, HEAD);
	entry(&m, "MARK_PUSH", 1, 1000, 7, 0);
	entry(&m, "MARK_PUSH", 2, 990, 7, 0); /* before the first entry: at its time */
	entry(&m, "MARK_POP", 3, 1001, 7, 0);
	entry(&m, "MARK_POP", 4, INT64_MAX, 7, 0);
	entry(&m, "MARK_POP", 5, 1002, 7, 0);
	log = run(&m, NULL);
	assert_int_equal(log.n, 2);
	is_slice(&log, 0, 7, 0, 1, "MARK");
	is_slice(&log, 1, 7, 0, 2, "MARK");
	assert_int_equal(log.counts[TW_REPAIR_begin_clamped], 1);
	assert_int_equal(log.counts[TW_REPAIR_impossible_time], 1);
	assert_int_equal(event_log_repairs(&log), 2);
	event_log_done(&log);
}

/* --- samples --- */

/* Out of order, in two pieces, equal outer frames; the interval is the median distance. */
static void test_samples(void **state)
{
	static const struct {
		char sign;
		int64_t us, frame;
	} want[] = {{'+', 10, 1}, {'+', 10, 2}, {'-', 20, 2}, {'+', 20, 3}, {'+', 20, 4},
	        {'-', 30, 4}, {'-', 30, 3}, {'-', 40, 1}};
	struct maker m;
	struct event_log log;
	size_t n = 0;

	(void)state;
	start(&m, HEAD);
	entry(&m, "TRACE_START", 1, 1000, 7, 0);
	entry(&m, "STACK_FRAME", 2, 1020, 7, 1);
	entry(&m, "STACK_FRAME", 3, 1020, 7, 3);
	entry(&m, "STACK_FRAME", 4, 1020, 8, 9);
	entry(&m, "STACK_FRAME", 5, 1020, 7, 4);
	entry(&m, "STACK_FRAME", 6, 1010, 7, 1);
	entry(&m, "STACK_FRAME", 7, 1010, 7, 2);
	entry(&m, "STKERR_NOSTACKFORTHREAD", 8, 1025, 7, 0);
	entry(&m, "CPU_STACK_SAMPLE", 9, 1030, 7, 1);
	entry(&m, "JAVA_FRAME_NAME", 10, 1040, 7, 3);
	text(&m, "STRING_NAME", 11, 10, "a.B.c");
	log = run(&m, NULL);
	assert_int_equal(log.n, 8 + 2);
	for (size_t i = 0; i < log.n; i++) {
		const struct tw_event *e = &log.events[i];

		if (e->track != 8)
			continue;
		assert_int_equal(e->kind, want[n].sign == '+' ? TW_EV_BEGIN : TW_EV_END);
		assert_int_equal(e->ts_ns, want[n].us * 1000);
		assert_int_equal(e->sym, event_log_method((uint64_t)want[n++].frame));
	}
	assert_int_equal(n, 8);
	assert_non_null(strstr(event_log_text(&log), "source 8 samples 10000\n"));
	assert_non_null(strstr(event_log_text(&log), "method 3 a.B.c\n"));
	assert_int_equal(log.counts[TW_REPAIR_sample_failed], 1);
	assert_int_equal(event_log_repairs(&log), 1);
	event_log_done(&log);
}

static void test_threads(void **state)
{
	struct maker m;
	struct event_log log;
	const char *reported;

	(void)state;
	start(&m, HEAD);
	entry(&m, "TRACE_THREAD_NAME", 1, 1000, 7, 0);
	text(&m, "STRING_KEY", 2, 1, "23743");
	text(&m, "STRING_VALUE", 3, 2, "busy|thread");
	m.call = 9240581;
	entry(&m, "COUNTER", 4, 1000, 7, 30);
	entry(&m, "PROCESS_LIST", 5, 1000, 7, 0);
	text(&m, "STRING_KEY", 6, 5, "processes");
	text(&m, "STRING_VALUE", 7, 6, "a.b(1),odd,c(x),d.e(22)");
	entry(&m, "TRACE_TIMEOUT", 8, 1000, 7, 0);
	log = run(&m, NULL);
	reported = event_log_text(&log);
	assert_non_null(strstr(reported, "23743 busy|thread\n"));
	assert_non_null(strstr(reported, "note counter 8 0 -1 30 "));
	assert_non_null(strstr(reported, "note process 0 0 -1 1 0 a.b \n"));
	assert_non_null(strstr(reported, "note process 0 0 -1 22 0 d.e \n"));
	assert_null(strstr(reported, "odd"));
	assert_non_null(strstr(reported, "TRACE_TIMEOUT \n"));
	event_log_done(&log);
}

/* --- damage and limits --- */

static void test_damage(void **state)
{
	struct maker m;
	struct event_log log;

	(void)state;
	start(&m, HEAD);
	entry(&m, "MARK_PUSH", 1, 1000, 7, 0);
	(void)tw_buf_add_str(&m.b, TW_STR("1|MARK_PUSH|x|0|0|0|0\n1|MARK_PUSH|1|0|0|0\n"
	                                  "1|MARK_PUSH|1|0|0|0|0|0\nnothing\n"
	                                  "2|STRING_KEY|x|__name\n"));
	entry(&m, "MARK_POP", 2, 1010, 7, 0);
	(void)tw_buf_add_str(&m.b, TW_STR("1|MARK_PUSH|1|0|0|0|0")); /* and its line end */
	log = run(&m, NULL);
	assert_int_equal(log.n, 1);
	is_slice(&log, 0, 7, 0, 10, "MARK");
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 5);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	assert_int_equal(event_log_repairs(&log), 6);
	event_log_done(&log);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		enum tw_status status;
		const char *words;
	} rows[] = {
	        {"dt\nver|4\nprec|6\n\n1|MARK_PUSH|1|1|1|1|1\n", TW_UNSUPPORTED,
	                "a Profilo log of version 4; this server reads version 3"},
	        {HEAD, TW_CORRUPT, "no readable entry in this Profilo log"},
	        {HEAD "x\ny\n", TW_CORRUPT, "no readable entry in this Profilo log"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct event_log log;

		event_log_run_cut(&log, rows[i].text, strlen(rows[i].text), NULL);
		assert_int_equal(log.status, rows[i].status);
		assert_string_equal(log.err.msg, rows[i].words);
		event_log_done(&log);
	}
}

static void test_limits(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct maker m;
	struct event_log log;

	(void)state;
	l.max_threads = 3;
	l.max_slices = 4;
	l.max_name_bytes = 4;
	start(&m, HEAD);
	for (int64_t i = 0; i < 5; i++) { /* two markers each on threads 0, 1, 2, 3 */
		entry(&m, "MARK_PUSH", 10 * i, 1000, i / 2, 0);
		text(&m, "STRING_NAME", 10 * i + 1, 10 * i, i ? "12345" : "1234");
		entry(&m, "MARK_POP", 10 * i + 2, 1010, i / 2, 0);
	}
	entry(&m, "STACK_FRAME", 100, 1000, 9, 0);
	for (int64_t i = 0; i < 5; i++)
		entry(&m, "STACK_FRAME", 101 + i, 1000, 0, i);
	log = run(&m, &l);
	assert_int_equal(log.counts[TW_REPAIR_slice_limit], 2); /* a marker and a frame */
	assert_int_equal(log.counts[TW_REPAIR_thread_limit], 1);
	assert_int_equal(log.counts[TW_REPAIR_name_cut], 3);
	event_log_done(&log);
}

static clock_t cpu_of_threads(int64_t stride)
{
	enum { THREADS = 4000, ENTRIES = 100000 };
	struct maker m;
	struct event_log log;
	clock_t from;

	start(&m, HEAD);
	for (int64_t i = 1; i <= THREADS + ENTRIES; i++)
		entry(&m, i % 2 ? "MARK_PUSH" : "MARK_POP", i, i,
		        stride * (i / 2 < THREADS ? i / 2 : THREADS), 1);
	from = clock();
	event_log_run(&log, m.b.data, m.b.len, 0, NULL);
	from = clock() - from;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.counts[TW_REPAIR_thread_limit], 0);
	event_log_done(&log);
	tw_buf_done(&m.b);
	return from;
}

/* Thread ids whose low bits are equal share a slot of a table without a salt. */
static void test_threads_that_meet(void **state)
{
	(void)state;
	assert_true(cpu_of_threads(1 << 13) < 5 * cpu_of_threads(1));
}

static void test_no_memory(void **state)
{
	struct maker m;

	(void)state;
	start(&m, HEAD);
	for (int64_t i = 0; i < 3000; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "name %d", (int)i);
		entry(&m, "MARK_PUSH", 4 * i, 1000 + i, 7, 0);
		text(&m, "STRING_NAME", 4 * i + 1, 4 * i, name);
		entry(&m, "MARK_POP", 4 * i + 2, 1000 + i, 7, 0);
		entry(&m, "STACK_FRAME", 4 * i + 3, 1000 + i, 8 + i % 100, i);
	}
	assert_null(event_log_run_starved(m.b.data, m.b.len));
	tw_buf_done(&m.b);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_unpaired),
        cmocka_unit_test(test_markers_and_samples),
        cmocka_unit_test(test_wrapping),
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_bad_times),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_threads_that_meet),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("profilo", tests)
