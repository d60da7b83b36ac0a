/* Unit tests of Chrome's JSON traces: each phase, both containers, unusual, truncated and oversized
 * input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/formats/json/chrome_text.h"
#include "decoder/formats/markers/flows.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

static struct event_log run(const char *text)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), NULL);
	if (log.status == TW_OK)
		assert_string_equal(log.format->name, "chrome");
	assert_false(log.bad_json);
	return log;
}

static bool reported(struct event_log *log, const char *what)
{
	return strstr(event_log_text(log), what) != NULL;
}

/* "note KIND TRACK TIME DURATION VALUE", and after the offset "TEXT DETAIL" */
static bool noted(struct event_log *log, const char *head, const char *tail)
{
	for (const char *at = event_log_text(log); (at = strstr(at, head)); at++) {
		const char *rest = at + strlen(head);

		rest += *rest == ' ';
		rest += strspn(rest, "0123456789");
		if (strncmp(rest + (*rest == ' '), tail, strlen(tail)) == 0)
			return true;
	}
	return false;
}

static void assert_event(const struct event_log *log, size_t at, enum tw_ev_kind kind, int64_t ts,
        int64_t dur, int64_t cpu)
{
	assert_true(at < log->n);
	assert_int_equal(log->events[at].kind, kind);
	assert_int_equal(log->events[at].ts_ns, ts);
	assert_int_equal(log->events[at].dur_ns, dur);
	assert_int_equal(log->events[at].cpu_ns, cpu);
}

static void test_calls(void **state)
{
	struct event_log log =
	        run("[{\"ph\":\"X\",\"ts\":1000.25,\"dur\":10.5,\"tdur\":4,\"pid\":3,\"tid\":4,"
	            "\"name\":\"a\"},"
	            "{\"ph\":\"B\",\"ts\":1001,\"tts\":7,\"pid\":3,\"tid\":4,\"name\":\"b\"},"
	            "{\"ph\":\"E\",\"ts\":1002,\"tts\":7.5,\"pid\":3,\"tid\":4},"
	            "{\"ph\":\"X\",\"ts\":1003,\"dur\":2,\"tdur\":9,\"pid\":3,\"tid\":4,\"name\":"
	            "\"c\"},"
	            "{\"ph\":\"X\",\"ts\":1004,\"pid\":3,\"tid\":4}]");

	(void)state;
	assert_int_equal(log.n, 5);
	assert_event(&log, 0, TW_EV_SLICE, 1000250, 10500, 4000);
	assert_event(&log, 1, TW_EV_SLICE, 1003000, 2000, 2000); /* not more than it lasted */
	assert_event(&log, 2, TW_EV_SLICE, 1004000, 0, -1);
	assert_event(&log, 3, TW_EV_BEGIN, 1001000, 0, 7000);
	assert_event(&log, 4, TW_EV_END, 1002000, 0, 7500);
	assert_int_equal(log.events[2].sym, event_log_name(TW_STR("[empty slice name]")));
	assert_int_equal(log.events[0].track, 5);
	assert_int_equal(log.clock.pid, 3);
	assert_int_equal(log.clock.mono_base_ns, -1);
	assert_int_equal(event_log_repairs(&log), 0); /* the "]" may be missing, too */
	event_log_done(&log);
}

/* The keys of earlier events are remembered by position.  Here they change: in order, in number, by
 * a prefix, by blanks, and by more keys than are remembered. */
static void test_cached_keys(void **state)
{
	static const struct {
		const char *before, *after; /* the time */
	} events[] = {{"{\"name\":\"a\",\"ph\":\"X\",\"ts\":", ",\"dur\":7,\"pid\":3,\"tid\":4}"},
	        {"{\"name\":\"a\",\"ph\":\"X\",\"ts\":", ",\"x\":9,\"dur\":7,\"pid\":3,\"tid\":4}"},
	        {"{\"nam\":\"b\",\"tid\":4,\"name2\":5,\"name\":\"a\",\"pid\":3,\"dur\":7,\"ts\":",
	                ",\"ph\":\"X\"}"},
	        {"{ \"name\" : \"a\" ,\n\"ph\":  \"X\", \"ts\": ",
	                ", \"dur\":7 ,\"pid\":\t3,\"tid\":4 }"},
	        {"{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,"
	         "\"10\":[],\"11\":{},\"12\":null,\"longer than a remembered key\":13,\"14\":14,"
	         "\"name\":\"a\",\"ph\":\"X\",\"ts\":",
	                ",\"dur\":7,\"pid\":3,\"tid\":4}"}};
	enum { KINDS = sizeof events / sizeof *events, EVENTS = 2 * KINDS * KINDS };
	static char text[1 << 15];
	struct event_log log;
	size_t len = 0;

	(void)state;
	for (int i = 0; i < EVENTS; i++) { /* each after each */
		int kind = i % 2 ? i / 2 / KINDS : i / 2 % KINDS;

		len += (size_t)snprintf(text + len, sizeof text - len, "%c%s%d%s", i ? ',' : '[',
		        events[kind].before, i, events[kind].after);
	}
	(void)snprintf(text + len, sizeof text - len, "]");
	log = run(text);
	assert_int_equal(log.n, EVENTS);
	for (int i = 0; i < EVENTS; i++) {
		assert_event(&log, (size_t)i, TW_EV_SLICE, (int64_t)i * 1000, 7000, -1);
		assert_int_equal(log.events[i].sym, event_log_name(TW_STR("a")));
		assert_int_equal(log.events[i].track, log.events[0].track);
	}
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

/* Digits are read eight at a time, and one by one near the end of the bytes that were pushed. */
static void test_digits(void **state)
{
	static const struct {
		const char *us;
		int64_t ns; /* -1: not a number */
	} durations[] = {{"0", 0}, {"7", 7000}, {"1234567", 1234567000}, {"12345678", 12345678000},
	        {"123456789", 123456789000}, {"4503599627370495", 4503599627370495000},
	        {"12345678.875", 12345678875}, {"1234567.12345678", 1234567123},
	        {"0.00000000000000000625", 0}, {"12345678/", -1}, {"1234567:8", -1}};

	(void)state;
	for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
		char text[256];
		struct event_log log;

		(void)snprintf(text, sizeof text,
		        "[{\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"name\":\"a\",\"dur\":%s}]",
		        durations[i].us);
		log = run(text);
		assert_int_equal(log.n, durations[i].ns >= 0);
		if (log.n)
			assert_event(&log, 0, TW_EV_SLICE, 1000, durations[i].ns, -1);
		assert_int_equal(event_log_repairs(&log), durations[i].ns < 0);
		event_log_done(&log);
	}
}

/* B and E nest by their times: here outer 2 to 10 and inner 5 to 8, an end first. */
static void test_order(void **state)
{
	static const char *const texts[] = {
	        "[{\"ph\":\"B\",\"ts\":2,\"pid\":3,\"tid\":4,\"name\":\"outer\"},"
	        "{\"ph\":\"E\",\"ts\":8,\"pid\":3,\"tid\":4},"
	        "{\"ph\":\"B\",\"ts\":5,\"pid\":3,\"tid\":4,\"name\":\"GC: Alloc\"},"
	        "{\"ph\":\"E\",\"ts\":10,\"pid\":3,\"tid\":4}]",
	        "[{\"ph\":\"E\",\"ts\":10,\"pid\":3,\"tid\":4},"
	        "{\"ph\":\"E\",\"ts\":8,\"pid\":3,\"tid\":4},"
	        "{\"ph\":\"B\",\"ts\":2,\"pid\":3,\"tid\":4,\"name\":\"outer\"},"
	        "{\"ph\":\"B\",\"ts\":5,\"pid\":3,\"tid\":4,\"name\":\"GC: Alloc\"}]"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct event_log log = run(texts[i]);

		assert_int_equal(log.n, 4);
		assert_event(&log, 0, TW_EV_BEGIN, 2000, 0, -1);
		assert_event(&log, 1, TW_EV_BEGIN, 5000, 0, -1);
		assert_event(&log, 2, TW_EV_END, 8000, 0, -1);
		assert_event(&log, 3, TW_EV_END, 10000, 0, -1);
		assert_int_equal(log.events[1].sym, event_log_name(TW_STR("GC: Alloc")));
		assert_true(reported(&log, "note gc 5 5000 3000"));
		assert_int_equal(event_log_repairs(&log), 0);
		event_log_done(&log);
	}
}

/* The zero is before the first event, because others may be earlier. */
static void test_clock(void **state)
{
	struct event_log log = run(
	        "{\"metadata\":{\"clock-domain\":\"LINUX_CLOCK_MONOTONIC\"},\"traceEvents\":["
	        "{\"ph\":\"X\",\"ts\":100000000,\"dur\":1,\"pid\":3,\"tid\":4,\"name\":\"a\"},"
	        "{\"ph\":\"X\",\"ts\":40000000,\"dur\":1,\"pid\":9,\"tid\":4,\"name\":\"a\"},"
	        "{\"ph\":\"X\",\"ts\":39999999,\"dur\":1,\"pid\":9,\"tid\":4,\"name\":\"a\"}]}");

	(void)state;
	assert_int_equal(log.n, 2);
	assert_int_equal(log.events[0].ts_ns, INT64_C(60000000000));
	assert_int_equal(log.events[1].ts_ns, 0);
	assert_int_equal(log.clock.mono_base_ns, INT64_C(40000000000));
	assert_int_equal(log.clock.session_ns, INT64_C(60000000000));
	assert_int_equal(log.clock.pid, 0); /* there are two */
	assert_int_equal(log.counts[TW_REPAIR_impossible_time], 1);
	event_log_done(&log);
}

static void test_moments_and_counters(void **state)
{
	struct event_log log = run(
	        "{\"traceEvents\":["
	        "{\"ph\":\"i\",\"ts\":1,\"pid\":3,\"tid\":4,\"name\":\"of thread\",\"s\":\"t\"},"
	        "{\"ph\":\"I\",\"ts\":2,\"pid\":3,\"tid\":4,\"name\":\"of process\",\"s\":\"p\"},"
	        "{\"ph\":\"i\",\"ts\":3,\"pid\":3,\"tid\":4,\"name\":\"of all\",\"s\":\"g\"},"
	        "{\"ph\":\"C\",\"ts\":4,\"pid\":3,\"name\":\"n\",\"args\":{\"value\":-7}},"
	        "{\"ph\":\"C\",\"ts\":5,\"pid\":3,\"name\":\"n\",\"id\":\"0x1\",\"args\":{\"a\":1."
	        "5,\"b\":\"2\"}},"
	        "{\"ph\":\"P\",\"ts\":6,\"pid\":3,\"tid\":4,\"name\":\"cpu\"},"
	        "{\"ph\":\"M\",\"pid\":3,\"tid\":4,\"name\":\"thread_name\",\"args\":{\"name\":"
	        "\"main\"}},"
	        "{\"ph\":\"M\",\"pid\":3,\"name\":\"process_name\",\"args\":{\"name\":\"app\"}}]}");

	(void)state;
	assert_true(noted(&log, "note instant 5 1000 -1 0", "of thread"));
	assert_true(noted(&log, "note instant 0 2000 -1 0", "of process {\"pid\":3}"));
	assert_true(noted(&log, "note instant 0 3000 -1 0", "of all"));
	assert_true(noted(&log, "note counter 0 4000 -1 -7", "n {\"pid\":3}"));
	assert_true(
	        noted(&log, "note counter 0 5000 -1 1", "n[0x1] a {\"pid\":3,\"exact\":\"1.5\"}"));
	assert_true(noted(&log, "note counter 0 5000 -1 2", "n[0x1] b"));
	assert_true(noted(&log, "note sample 5 6000 -1 0", "cpu"));
	assert_true(noted(&log, "note process 0 0 -1 3", "app"));
	assert_true(reported(&log, "4 main\n"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

#define AT(ph, ts, more) "{\"ph\":\"" ph "\",\"ts\":" #ts ",\"pid\":3,\"tid\":4," more "},"

static void test_spans(void **state)
{
	struct event_log log = run(
	        "[" AT("b", 1, "\"cat\":\"c\",\"id\":\"0x10\",\"name\":\"outer\"") AT(
	                "b", 2, "\"cat\":\"c\",\"id\":16,\"name\":\"inner\"")
	                AT("b", 3, "\"cat\":\"d\",\"id\":16,\"name\":\"other\"") AT(
	                        "n", 3, "\"cat\":\"c\",\"id\":16,\"name\":\"step\"") AT("e", 4,
	                        "\"cat\":\"c\",\"id\":16") AT("e", 9, "\"cat\":\"c\",\"id\":16")
	                        AT("S", 10, "\"id\":\"word\",\"name\":\"legacy\"")
	                                AT("F", 12, "\"id\":\"word\",\"name\":\"legacy\"")
	                                        AT("e", 13, "\"cat\":\"c\",\"id\":16") "]");

	(void)state;
	assert_true(noted(&log, "note async 5 2000 2000 16", "inner {\"pid\":3,\"track\":\"c\"}"));
	assert_true(noted(&log, "note async 5 1000 8000 16", "outer {\"pid\":3,\"track\":\"c\"}"));
	assert_true(noted(&log, "note async 5 10000 2000", ""));
	assert_true(noted(&log, "note async 5 3000 10000 16", "other")); /* until the latest time */
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.counts[TW_REPAIR_enter_without_exit], 1);
	assert_int_equal(event_log_repairs(&log), 2);
	event_log_done(&log);
}

/* Spans of one category and id that overlap without nesting are distinguished by their names. */
static void test_spans_by_name(void **state)
{
	struct event_log log = run("[" AT("b", 0, "\"cat\":\"net\",\"id\":1,\"name\":\"request\"")
	                AT("b", 10, "\"cat\":\"net\",\"id\":1,\"name\":\"dns\"")
	                        AT("e", 100, "\"cat\":\"net\",\"id\":1,\"name\":\"request\"") AT(
	                                "e", 400, "\"cat\":\"net\",\"id\":1,\"name\":\"dns\"") "]");

	(void)state;
	assert_true(noted(&log, "note async 5 0 100000 1", "request"));
	assert_true(noted(&log, "note async 5 10000 390000 1", "dns"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_flows(void **state)
{
	struct event_log log = run("[" AT("s", 1,
	        "\"cat\":\"c\",\"id\":1,\"name\":\"f\"") "{\"ph\":\"t\",\"ts\":5,\"pid\":6,\"tid\":"
	                                                 "7,\"cat\":\"c\",\"id\":1,\"name\":\"f\"},"
	                                                 "{\"ph\":\"f\",\"ts\":3,\"pid\":3,\"tid\":"
	                                                 "4,\"cat\":\"c\",\"id\":1,\"name\":\"f\"},"
	                                                 "{\"ph\":\"f\",\"ts\":6,\"pid\":3,\"tid\":"
	                                                 "4,\"cat\":\"c\",\"id\":1,\"name\":\"f\"},"
	                                                 "{\"ph\":\"B\",\"ts\":7,\"pid\":3,\"tid\":"
	                                                 "4,\"name\":\"out\",\"bind_id\":\"0x5\","
	                                                 "\"flow_out\":true},"
	                                                 "{\"ph\":\"X\",\"ts\":8,\"pid\":6,\"tid\":"
	                                                 "7,\"name\":\"in\",\"bind_id\":\"0x5\","
	                                                 "\"flow_in\":true}]");

	(void)state;
	assert_true(noted(&log, "note flow 5 1000 4000 7", "f {\"to_pid\":6}"));
	assert_true(noted(&log, "note flow 8 5000 0 4", "f {\"to_pid\":3}"));
	assert_true(noted(&log, "note flow 5 7000 1000 7", "in {\"to_pid\":6}"));
	assert_int_equal(log.counts[TW_REPAIR_time_fell], 1);
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(event_log_repairs(&log), 2);
	event_log_done(&log);
}

/* Thread ids are a process' own, and may be words. */
static void test_threads(void **state)
{
	struct event_log log =
	        run("[{\"ph\":\"B\",\"ts\":1,\"pid\":1,\"tid\":1,\"name\":\"a\"},"
	            "{\"ph\":\"E\",\"ts\":2,\"pid\":2,\"tid\":1},"
	            "{\"ph\":\"E\",\"ts\":3,\"pid\":1,\"tid\":1},"
	            "{\"ph\":\"X\",\"ts\":3,\"pid\":\"p\",\"tid\":\"render\",\"name\":\"a\"},"
	            "{\"ph\":\"X\",\"ts\":3,\"pid\":\"p\",\"tid\":\"render\",\"name\":\"a\"},"
	            "{\"ph\":\"X\",\"ts\":3,\"name\":\"nobody's\"}]");

	(void)state;
	assert_int_equal(log.n, 5);
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.events[0].track, log.events[1].track);
	assert_true(log.events[0].track > 1u << 30);
	assert_int_equal(log.events[2].track, 1);
	assert_true(reported(&log, " render\n"));
	event_log_done(&log);
}

static void test_kernel_text(void **state)
{
	struct event_log log =
	        run("{\"systemTraceEvents\":\"# tracer: nop\\n t-12 (10) [000] ...1 5.000001: "
	            "tracing_mark_write: B|10|\\u0041\\\"\\u00e9\\u20ac\\n\","
	            "\"traceEvents\":[{\"ph\":\"X\",\"ts\":5000003,\"dur\":1,\"pid\":10,\"tid\":12,"
	            "\"name\":\"b\"},"
	            "{\"ph\":\"X\",\"ts\":3,\"dur\":1,\"pid\":10,\"tid\":12,\"name\":\"on another "
	            "clock\"}]}");

	(void)state;
	assert_int_equal(log.n, 2);
	assert_int_equal(log.events[0].sym, event_log_name(TW_STR("A\"\xC3\xA9\xE2\x82\xAC")));
	assert_int_equal(log.events[1].ts_ns - log.events[0].ts_ns, 2000);
	assert_int_equal(log.counts[TW_REPAIR_clock_unknown], 1);
	event_log_done(&log);
}

/* The last line of a complete string needs no line end. */
static void test_kernel_last_line(void **state)
{
	static const char text[] = "{\"systemTraceEvents\":\" t-12 (10) [000] ...1 5.000001: "
	                           "tracing_mark_write: B|10|whole\",\"traceEvents\":[]}";
	char cut[sizeof text];
	struct event_log log = run(text);

	(void)state;
	assert_int_equal(log.n, 1);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	(void)snprintf(cut, sizeof cut, "%.*s", (int)(strstr(text, "le\"") - text), text);
	log = run(cut);
	assert_int_equal(log.n, 0);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);
}

static void test_odd_members(void **state)
{
	struct event_log log = run(
	        "\xEF\xBB\xBF { \"a}]\\\"\": [1,{\"traceEvents\":[]},\"]}\"], "
	        "\"n\":null,\"t\":-1e5,"
	        "\"a key that is longer than any that is read traceEvents\": 4,"
	        "\"displayTimeUnit\" : \"ns\" ,\"traceEvents\" : "
	        "[ {\"ph\":\"X\",\"ts\":1,\"name\":\"}\\\\\"} , 5, {\"ph\":\"X\",\"ts\":} ]} \n x");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 1);
	assert_int_equal(log.events[0].sym, event_log_name(TW_STR("}\\")));
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 2);
	assert_int_equal(log.counts[TW_REPAIR_trailing_data], 1);
	event_log_done(&log);
}

/* An event at the bound is read, one past it costs itself. */
static void test_large_event(void **state)
{
	static const char head[] = "{\"ph\":\"X\",\"ts\":1,\"name\":\"a\",\"x\":\"";
	static char text[2 * TW_CHROME_EVENT_MAX_BYTES + 256];
	const size_t most = TW_CHROME_EVENT_MAX_BYTES;
	struct event_log log;

	(void)state;
	for (size_t past = 0; past < 2; past++) {
		size_t n = (size_t)sprintf(text, "[%s", head);

		memset(text + n, 'y', most - strlen(head) - 2 + past);
		n += most - strlen(head) - 2 + past;
		n += (size_t)sprintf(text + n, "\"},{\"ph\":\"X\",\"ts\":2,\"name\":\"b\"}");
		event_log_run(&log, text, n, 0, NULL);
		assert_int_equal(log.n, 2 - past);
		assert_int_equal(log.counts[TW_REPAIR_record_too_large], past);
		event_log_done(&log);
	}
}

static void test_cut(void **state)
{
	static const char whole[] = "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"name\":\"a\"},"
	                            "{\"ph\":\"X\",\"ts\":2,\"name\":\"b\"}],\"x\":1}";

	(void)state;
	for (size_t n = sizeof whole - 2; n > 50; n--) {
		struct event_log log;

		event_log_run(&log, whole, n, 0, NULL);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 1 + (n >= (size_t)(strstr(whole, "],") - whole)));
		assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
		event_log_done(&log);
	}
}

static void test_refused(void **state)
{
	static const char *const texts[] = {"{\"traceEvents\":[]}", "{\"traceEvents\":{}}",
	        "{\"traceEvents\":[{\"ph\":\"X\"}]}", "{\"displayTimeUnit\":\"ms\"",
	        "{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\"}]}"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct event_log log = run(texts[i]);

		assert_int_equal(log.status, TW_CORRUPT);
		assert_non_null(strstr(log.err.msg, "Chrome"));
		event_log_done(&log);
	}
}

/* As many flows as may be open, and one more. */
static void test_flow_limit(void **state)
{
	size_t cap = (size_t)(TW_FLOWS_MAX + 2) * 64;
	char *text = malloc(cap);
	size_t n = 0;
	struct event_log log;

	(void)state;
	assert_non_null(text);
	text[n++] = '[';
	for (unsigned i = 0; i <= TW_FLOWS_MAX; i++)
		n += (size_t)sprintf(
		        text + n, "{\"ph\":\"s\",\"ts\":1,\"pid\":3,\"tid\":4,\"id\":%u},", i);
	event_log_run(&log, text, n, 0, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.counts[TW_REPAIR_note_limit], 1);
	event_log_done(&log);
	free(text);
}

/* Events of the usual shape are read without a tree. An escape in another member requires one: both
 * must yield the same. */
static void test_with_and_without_tree(void **state)
{
	static const char *const members[] = {
	        "\"ph\":\"X\",\"ts\":1000.25,\"dur\":10.5,\"tdur\":4,\"pid\":3,\"tid\":4,\"name\":"
	        "\"a\"",
	        "\"ph\":\"X\",\"ts\":0.1,\"dur\":7.0005,\"pid\":3,\"tid\":4,\"name\":\"a b\"",
	        "\"ph\":\"X\",\"ts\":189345678901.123,\"dur\":0.999,\"pid\":3,\"tid\":4,\"name\":"
	        "\"\"",
	        "\"ph\":\"X\",\"ts\":1700000000123456.789,\"dur\":1,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":1e3,\"dur\":1.5E1,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":\"12\",\"dur\":\"x\",\"pid\":\"3\",\"tid\":\"worker\"",
	        "\"ph\":\"X\",\"ts\":-0,\"dur\":-0.0,\"pid\":0,\"tid\":4.75,\"name\":null",
	        "\"ph\":\"X\",\"ts\":-4.5,\"dur\":1,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":18446744073709551617,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":99999999999999999999",
	        "\"ph\":\"X\",\"ts\":01,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":1.,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":.5,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":-,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":12a,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,",
	        "\"ph\":\"X\",\"ts\":1,,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\" 1,\"pid\":3,\"tid\":4",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"q\":truex",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"q\":[true,false,null,{},[],[1,{\"a\":"
	        "2}]]",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"q\":[1,]",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"q\":{\"a\"}",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"q\":{\"a\":1]",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"q\":{\"a\":\"}\",\"b\":\"\xC3\xA4\"}",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"name\":\"\xE6\x96\xB9\xE6\xB3\x95\"",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"name\":\"\xFF\"",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"name\":\"tab\t\"",
	        "\"ph\":\"X\",\"ts\":1,\"ts\":2,\"pid\":3,\"tid\":4,\"name\":\"a\",\"name\":7",
	        " \"ph\" : \"B\" ,\n\"ts\"\t:\r1 , \"tts\":7,\"pid\":3,\"tid\":4,\"name\":\"GC: "
	        "Alloc\" ",
	        "\"ph\":\"E\",\"ts\":1,\"tts\":7.5,\"pid\":3,\"tid\":4",
	        "\"ph\":\"i\",\"ts\":1,\"pid\":3,\"tid\":4,\"s\":\"p\",\"cat\":\"c\",\"name\":"
	        "\"m\"",
	        "\"ph\":\"C\",\"ts\":1,\"pid\":3,\"name\":\"n\",\"args\":{\"value\":1.5}",
	        "\"ph\":\"b\",\"ts\":1,\"pid\":3,\"tid\":4,\"id2\":{\"local\":\"0x7\"},\"name\":"
	        "\"n\"",
	        "\"ph\":\"s\",\"ts\":1,\"pid\":3,\"tid\":4,\"id\":\"0xfg\",\"cat\":\"c\",\"name\":"
	        "\"n\"",
	        "\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"bind_id\":5,\"flow_out\":true,\"flow_"
	        "in\":false",
	        "\"ph\":\"M\",\"pid\":3,\"tid\":4,\"name\":\"thread_name\",\"args\":{\"name\":"
	        "\"ui\"}",
	        "\"ph\":\"XX\",\"ts\":1,\"pid\":3,\"tid\":4",
	        "\"ph\":1,\"ts\":1,\"pid\":3,\"tid\":4",
	        "",
	};

	(void)state;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		static const char *const first[] = {"\"z\":\"aaaaaa\"", "\"z\":\"\\u0041\""};
		struct event_log logs[2];
		const char *differs;

		for (int tree = 0; tree < 2; tree++) {
			char text[512];

			(void)snprintf(text, sizeof text,
			        "[{\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4},{%s%s%s}]",
			        first[tree], *members[i] ? "," : "", members[i]);
			event_log_run(&logs[tree], text, strlen(text), 0, NULL);
		}
		differs = event_log_differs(&logs[0], &logs[1]);
		if (differs)
			fail_msg("%s: %s", members[i], differs);
		event_log_done(&logs[0]);
		event_log_done(&logs[1]);
	}
}

/* Nested deeper than is read without a tree, and as deep as that. */
static void test_deep_members(void **state)
{
	(void)state;
	for (size_t depth = 30; depth < 36; depth++) {
		char text[256];
		size_t n =
		        (size_t)sprintf(text, "[{\"ph\":\"X\",\"ts\":1,\"pid\":3,\"tid\":4,\"q\":");
		struct event_log log;

		memset(text + n, '[', depth);
		memset(text + n + depth, ']', depth);
		strcpy(text + n + 2 * depth, "}]");
		log = run(text);
		assert_int_equal(log.n, 1);
		assert_int_equal(event_log_repairs(&log), 0);
		event_log_done(&log);
	}
}

static void test_without_memory(void **state)
{
	static const char text[] = "[" AT("X", 1, "\"name\":\"a\"")
	        AT("s", 1, "\"id\":1,\"name\":\"f\"") AT("b", 1, "\"id\":1,\"name\":\"f\"") "]";
	const char *wrong = event_log_run_starved(text, sizeof text - 1);

	(void)state;
	if (wrong)
		fail_msg("%s", wrong);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_cached_keys),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_moments_and_counters),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_spans_by_name),
        cmocka_unit_test(test_flows),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_kernel_text),
        cmocka_unit_test(test_kernel_last_line),
        cmocka_unit_test(test_odd_members),
        cmocka_unit_test(test_large_event),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_flow_limit),
        cmocka_unit_test(test_with_and_without_tree),
        cmocka_unit_test(test_deep_members),
        cmocka_unit_test(test_without_memory),
};

UNIT_TESTS("chrome", tests)
