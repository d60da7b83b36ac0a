/* Unit tests of stacks taken with getStackTrace: the minimal JSON and BlockCanaryX reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

#define HEAD                                                                                       \
	"{\"format\":\"java-stacks/1\",\"pid\":4711,\"clock\":\"elapsed_realtime\","               \
	"\"start_ns\":1000,\"interval_ms\":0.5,\"frames\":[\"a.B.main(B.java:12)\","               \
	"{\"c\":\"a.C\",\"m\":\"run\"},\"a.D.leaf\"],\"stacks\":[[1,0],[2,0],[],[7]],"             \
	"\"threads\":{\"1\":{\"name\":\"main\",\"sys_tid\":4711},\"w\":{\"sys_tid\":\"9\"}},"      \
	"\"samples\":["

static struct event_log run(const char *text)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), NULL);
	return log;
}

/* Events of a track as "+a.B.main0 -a.B.main5 ", times in microseconds. */
static void is_reported(const struct event_log *log, uint32_t track, const char *want)
{
	static const char *const names[] = {"a.B.main", "a.C.run", "a.D.leaf"};
	char got[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct tw_event *e = &log->events[i];

		for (size_t k = 0; e->track == track && k < 3; k++)
			if (event_log_name(tw_str_of(names[k])) == e->sym)
				len += (size_t)snprintf(got + len, sizeof got - len, "%c%s%lld ",
				        e->kind == TW_EV_BEGIN ? '+' : '-', names[k],
				        (long long)e->ts_ns / 1000);
	}
	assert_string_equal(got, want);
}

static void test_minimal(void **state)
{
	struct event_log log = run(HEAD "[1000000,\"1\",1],[500000,1,0,7],[1500000,1,2],"
	                                "[0,\"w\",0],[500000,\"w\",0]]}");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "java_samples");
	assert_int_equal(log.clock.pid, 4711);
	assert_int_equal(log.clock.boot_base_ns, 1000);
	assert_int_equal(log.clock.mono_base_ns, -1);
	is_reported(&log, 4712,
	        "+a.B.main500 +a.C.run500 -a.C.run1000 +a.D.leaf1000 -a.D.leaf1500 "
	        "-a.B.main1500 ");
	is_reported(&log, 10, "+a.B.main0 +a.C.run0 -a.C.run1000 -a.B.main1000 ");
	assert_non_null(strstr(event_log_text(&log), "source 4712 samples 500000\n"));
	assert_non_null(strstr(event_log_text(&log), "4711 main\n"));
	for (size_t i = 0; i < log.n; i++)
		assert_int_equal(log.events[i].cpu_ns,
		        log.events[i].track == 4712 && log.events[i].ts_ns == 500000 ? 7 : -1);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_bad_samples(void **state)
{
	struct event_log log = run(HEAD "[0,1,0],[1,1,3],[2,1,9],[3,1],[-4,1,0],[5,-1,0],"
	                                "[6,{},0],7,[8,\"none\",0],[1e30,1,0]]}");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, 4712, "+a.B.main0 +a.C.run0 -a.C.run500 -a.B.main500 ");
	assert_int_equal(log.n, 4);
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 9);
	event_log_done(&log);
}

/* Frames of two documents on one clock; the gap rule with the stated interval. */
static void test_two_documents(void **state)
{
	struct event_log log = run(HEAD "[0,1,0]]}\n" HEAD "[500000,1,0],[3000001,1,0]]}\n");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, 4712,
	        "+a.B.main0 +a.C.run0 -a.C.run1000 -a.B.main1000 +a.B.main3000 +a.C.run3000 "
	        "-a.C.run3500 -a.B.main3500 ");
	assert_int_equal(log.counts[TW_REPAIR_sample_gap], 1);
	event_log_done(&log);
}

static void test_block_canary(void **state)
{
	struct event_log log =
	        run("{\"startTime\":1700000000000,\"endTime\":1700000000300,"
	            "\"dispatchFinish\":false,\"sampleInterval\":50,\"message\":\">>>>> "
	            "Handler\",\"stackTraceSamples\":[{\"time\":1700000000050,"
	            "\"stackTraceElements\":[{\"declaringClass\":\"a.C\",\"methodName\":"
	            "\"run\",\"fileName\":\"C.java\",\"lineNumber\":5},{\"declaringClass\":\"a.B\","
	            "\"methodName\":"
	            "\"main\"}]},{\"time\":1700000000100,\"stackTraceElements\":[{"
	            "\"declaringClass\":\"a.B\",\"methodName\":\"main\"}]},"
	            "{\"time\":1},{\"time\":1,\"stackTraceElements\":[]}]}");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, 2, "+a.B.main50000 +a.C.run50000 -a.C.run100000 -a.B.main150000 ");
	assert_non_null(strstr(event_log_text(&log),
	        "note message 2 0 300000000 0 18446744073709551615 >>>>> Handler \n"));
	assert_non_null(strstr(event_log_text(&log), "source 2 samples 50000000\n"));
	assert_non_null(strstr(event_log_text(&log), "1 main\n"));
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 2);
	event_log_done(&log);
}

/* A file that is not named after the class is R8's: its lines identify inlined methods. */
static void test_renamed_files(void **state)
{
	struct event_log log = run("{\"startTime\":1700000000000,\"endTime\":1700000000300,"
	                           "\"dispatchFinish\":false,\"stackTraceSamples\":[{\"time\":"
	                           "1700000000050,\"stackTraceElements\":[{\"declaringClass\":"
	                           "\"a.c\",\"methodName\":\"r\",\"fileName\":\"SourceFile\","
	                           "\"lineNumber\":5},{\"declaringClass\":\"a.BKt\","
	                           "\"methodName\":\"m\",\"fileName\":\"B.kt\",\"lineNumber\":7},"
	                           "{\"declaringClass\":\"a.d\",\"methodName\":\"n\","
	                           "\"fileName\":\"Unknown Source\",\"lineNumber\":-1}]}]}");
	static const char *const names[] = {"a.d.n", "a.BKt.m", "a.c.r(:5)"};

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 6);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(log.events[i].sym, event_log_name(tw_str_of(names[i])));
	event_log_done(&log);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		enum tw_status status;
		const char *words;
	} rows[] = {
	        {"{\"format\":\"java-stacks/2\"}", TW_UNSUPPORTED,
	                "stacks as java-stacks/2; this server reads java-stacks/1"},
	        {HEAD "]}", TW_CORRUPT,
	                "no sample with a time and a stack in this file of Java stacks"},
	        {HEAD "[0,1", TW_CORRUPT,
	                "no sample with a time and a stack in this file of Java stacks"},
	        {"{\"stackTraceSamples\":5}", TW_CORRUPT,
	                "no sample with a time and a stack in this file of Java stacks"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct event_log log = run(rows[i].text);

		assert_int_equal(log.status, rows[i].status);
		assert_string_equal(log.err.msg, rows[i].words);
		event_log_done(&log);
	}
}

static void test_cut(void **state)
{
	static const char text[] = HEAD "[0,1,0],[500000,1,1],[1000000,1,0]]}";
	struct event_log log;

	(void)state;
	event_log_run_cut(&log, text, sizeof text - 8, NULL);
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, 4712,
	        "+a.B.main0 +a.C.run0 -a.C.run500 +a.D.leaf500 -a.D.leaf1000 -a.B.main1000 ");
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);
}

static void test_limits(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct event_log log;
	static const char text[] = HEAD "[0,1,0],[1,1,0],[2,1,0],[3,1,0],[4,1,0],[5,1,0]]}";

	(void)state;
	l.max_slices = 5; /* the stacks have 4 frames, there are 6 samples */
	event_log_run_cut(&log, text, sizeof text - 1, &l);
	assert_int_equal(log.counts[TW_REPAIR_slice_limit], 1);
	event_log_done(&log);
	l.max_slices = 3; /* the second stack is not whole, nor can it be used */
	event_log_run_cut(&log, text, sizeof text - 1, &l);
	assert_int_equal(log.counts[TW_REPAIR_slice_limit], 1 + 3);
	event_log_done(&log);
}

static void test_no_memory(void **state)
{
	static char text[100000];
	size_t len = (size_t)snprintf(text, sizeof text, "%s", HEAD);

	(void)state;
	for (int i = 0; i < 2000; i++)
		len += (size_t)snprintf(
		        text + len, sizeof text - len, "%s[%d,%d,0]", i ? "," : "", i, i % 90);
	(void)snprintf(text + len, sizeof text - len, "]}");
	assert_null(event_log_run_starved(text, strlen(text)));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimal),
        cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_two_documents),
        cmocka_unit_test(test_block_canary),
        cmocka_unit_test(test_renamed_files),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("java_samples", tests)
