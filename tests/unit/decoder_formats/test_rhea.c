/* Unit tests of btrace's text: 2.0's sections, 1.0's methods with exceptions, binder.txt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/decoder_formats/text_fixture.h"
#include "tests/unit/unit.h"

static struct event_log run(const char *text, const char *format)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), NULL);
	if (log.status == TW_OK)
		assert_string_equal(log.format->name, format);
	return log;
}

/* --- 2.0 --- */

static void assert_section(const struct event_log *log, size_t at, enum tw_ev_kind kind,
        uint32_t tid, int64_t ts_ns, const char *name)
{
	assert_true(at < log->n);
	assert_int_equal(log->events[at].kind, kind);
	assert_int_equal(log->events[at].track, tid + 1);
	assert_int_equal(log->events[at].ts_ns, ts_ns);
	assert_int_equal(log->events[at].sym, name ? event_log_name(tw_str_of(name)) : 0);
}

static void test_all_threads(void **state)
{
	struct event_log log = run("512|TRACE_START|55|7|2147483647|2|1\n"
	                           "5.000000001 8: B|7|a |TRACE_END| b\n"
	                           "5.000000002  9: B|7|other\n"
	                           "5.000000003 8: E|7|said again\n"
	                           "5.000000004 9: E\n"
	                           "513|TRACE_END|56|7|2147483647|2|1\n",
	        "rhea_atrace");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 4);
	assert_section(&log, 0, TW_EV_BEGIN, 8, 1000000001, "a |TRACE_END| b");
	assert_section(&log, 1, TW_EV_BEGIN, 9, 1000000002, "other");
	assert_section(&log, 2, TW_EV_END, 8, 1000000003, NULL);
	assert_section(&log, 3, TW_EV_END, 9, 1000000004, NULL);
	assert_int_equal(log.clock.pid, 7);
	assert_int_equal(log.clock.mono_base_ns, 4000000000);
	assert_int_equal(log.clock.boot_base_ns, -1);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_main_thread_only(void **state)
{
	/* without the first line the process is learned from the markers */
	struct event_log log =
	        run("5.000000001: B|7|a\n5.000000002: E\n5.000000003: E|7\n", "rhea_atrace");

	(void)state;
	assert_int_equal(log.n, 2);
	assert_section(&log, 0, TW_EV_BEGIN, 7, 1000000001, "a");
	assert_section(&log, 1, TW_EV_END, 7, 1000000002, NULL);
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.counts[TW_REPAIR_end_mark_missing], 1);
	event_log_done(&log);
}

static void test_first_second_of_a_phone(void **state)
{
	struct event_log log =
	        run(".900000000 7: B|7|a\n1.0: E\n1.100000000 7: E|7\n", "rhea_atrace");

	(void)state;
	assert_section(&log, 0, TW_EV_BEGIN, 7, 900000000, "a");
	assert_section(&log, 1, TW_EV_END, 7, 1100000000, NULL);
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 1);
	event_log_done(&log);
}

static void test_binder_names(void **state)
{
	struct event_log log = run(
	        "5.000000001 8: B|7|x <rhea-draft>binder transact[a.b.IKnown:7]\n5.000000002 8: "
	        "E|7\n"
	        "5.000000003 8: B|7|<rhea-draft>binder transact[a.b.IKnown:8]\n5.000000004 8: E|7\n"
	        "5.000000005 8: B|7|<rhea-draft>binder transact[broken\n5.000000006 8: E|7\n"
	        "5.000000007 8: B|7|binder transact[a.b.IKnown:TRANSACTION_known|7]\n5.000000009 "
	        "8: E|7\n",
	        "rhea_atrace");

	(void)state;
	assert_section(&log, 0, TW_EV_BEGIN, 8, 1000000001,
	        "x binder transact[a.b.IKnown:TRANSACTION_known|7]");
	assert_section(
	        &log, 2, TW_EV_BEGIN, 8, 1000000003, "binder transact[a.b.IKnown:unknown|8]");
	assert_section(&log, 4, TW_EV_BEGIN, 8, 1000000005, "<rhea-draft>binder transact[broken");
	text_reported(&log,
	        "note binder 9 1000000007 2 -1 235 a.b.IKnown:TRANSACTION_known {\"code\":7}");
	text_reported(&log, "note binder 9 1000000003 1 -1 82 a.b.IKnown:unknown {\"code\":8}");
	event_log_done(&log);
}

static void test_hook_names(void **state)
{
	static const struct {
		const char *section, *note;
	} names[] = {
	        {"Object#wait(obj:0x1f, timeout:250)",
	                "wait 9 1000000001 1 31 0  {\"timeout_ms\":250}"},
	        {"Object#notify(obj:0x1f)", "notify 9 1000000001 -1 31 0  {\"call\":\"notify\"}"},
	        {"Object#notifyAll(obj:0x1F)",
	                "notify 9 1000000001 -1 31 0  {\"call\":\"notifyAll\"}"},
	        {"Unsafe#park(obj:0xa, time:5)", "park 9 1000000001 1 10 0  {\"time\":5}"},
	        {"Unsafe#unpark(obj:0xa)", "unpark 9 1000000001 -1 10 0  "},
	        {"pwrite:/a,b,size:7,offset:9",
	                "io 9 1000000001 1 7 0 /a,b {\"call\":\"pwrite\",\"offset\":9}"},
	        {"fdatasync:/a", "io 9 1000000001 1 -1 0 /a {\"call\":\"fdatasync\"}"},
	        {"io:sync", "io 9 1000000001 1 -1 0 sync {\"call\":\"sync\"}"},
	        {"DefineClass La;", "class_load 9 1000000001 1 -1 0 La; {\"call\":\"define\"}"},
	        {"Explicit GC", "gc 9 1000000001 1 -1 0 Explicit "},
	        {"GC: Wait For Completion Alloc",
	                "gc 9 1000000001 1 -1 0 Wait For Completion Alloc "},
	        {"render V(l.xml@0x1)",
	                "render 9 1000000001 1 -1 0 V(l.xml@0x1) {\"call\":\"render\"}"},
	        {"AIDL::java::IThing::go::client",
	                "binder 9 1000000001 1 -1 0 java::IThing::go {\"side\":\"client\"}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[256];
		char line[256];
		struct event_log log;

		(void)snprintf(text, sizeof text, "5.000000001 8: B|7|%s\n5.000000002 8: E|7\n",
		        names[i].section);
		(void)snprintf(line, sizeof line, "note %s", names[i].note);
		log = run(text, "rhea_atrace");
		text_reported(&log, line);
		event_log_done(&log);
	}
}

static void test_names_like_facts(void **state)
{
	static const char *const names[] = {"Object#wait(obj:none)", "Unsafe#park(obj:0x)",
	        "pthread_create tid=x", "pthread_create tid=5 more", "read:", "write:,size:5",
	        "write:/a,size:x", "io:sync now", "draw the rest", "draw x)", "VerifyClass ",
	        "binder transact[x]", "AIDL::x", "monitor contention with owner nobody",
	        "Lock contention on x", "Lock contention on x (owner tid: y)", " GC", "GC"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[256];
		struct event_log log;

		(void)snprintf(
		        text, sizeof text, "5.000000001 8: B|7|%s\n5.000000002 8: E|7\n", names[i]);
		log = run(text, "rhea_atrace");
		assert_int_equal(log.n, 2);
		if (log.names.len && memmem(log.names.data, log.names.len, "note", 4))
			fail_msg("\"%s\" says: %.*s", names[i], (int)log.names.len,
			        (const char *)log.names.data);
		event_log_done(&log);
	}
}

/* --- 1.0 --- */

/* Events as "B:A B:B2 E:B3", each at the time its last digit says; calls as "A[1..4]" in the order
 * in which they are emitted. */
static void vector(const char *events, const char *calls, enum tw_repair what, uint64_t count)
{
	char text[2048] = "";
	char got[512] = "";
	size_t at = 0;
	size_t n = 0;
	struct tw_str rest = tw_str_of(events);
	struct event_log log;

	while (rest.len) {
		struct tw_str one = tw_str_split(&rest, ' ');

		at += (size_t)snprintf(text + at, sizeof text - at, "1.00000%c 10: B|9|%.*s\n",
		        one.ptr[one.len - 1], (int)one.len - 1, one.ptr);
	}
	log = run(text, "rhea1");
	for (size_t i = 0; i < log.n; i++) {
		const struct tw_event *e = &log.events[i];
		char name = '?';

		for (char c = 'A'; c <= 'Z'; c++)
			if (event_log_name((struct tw_str){&c, 1}) == e->sym)
				name = c;
		assert_int_equal(e->kind, TW_EV_SLICE);
		n += (size_t)snprintf(got + n, sizeof got - n, "%s%c[%d..%d]", i ? " " : "", name,
		        (int)(e->ts_ns / 1000 % 10), (int)((e->ts_ns + e->dur_ns) / 1000 % 10));
	}
	if (strcmp(got, calls) != 0)
		fail_msg("%s gives %s, not %s", events, got, calls);
	if (what != TW_REPAIR_COUNT)
		assert_int_equal(log.counts[what], count);
	event_log_done(&log);
}

static void test_calls(void **state)
{
	const enum tw_repair any = TW_REPAIR_COUNT;

	(void)state;
	vector("B:A1 B:B2 E:B3 E:A4", "B[2..3] A[1..4]", any, 0);
	vector("B:A1 B:B2 E:B3 B:C4 E:C5 E:A6", "B[2..3] C[4..5] A[1..6]", any, 0);
	vector("B:A1 B:A2 E:A3 E:A4", "A[2..3] A[1..4]", any, 0);
	vector("B:A1 B:A2 B:A3 E:A4 E:A5 E:A6", "A[3..4] A[2..5] A[1..6]", any, 0);
}

static void test_exceptions(void **state)
{
	(void)state;
	/* through B and C */
	vector("B:A1 B:B2 B:C3 E:A4", "C[3..3] B[2..3] A[1..4]", TW_REPAIR_call_unwound, 2);
	vector("B:A1 B:B2 B:C3 E:C4 E:A6", "C[3..4] B[2..4] A[1..6]", TW_REPAIR_call_unwound, 1);
	vector("B:A1 B:B2 T:B3 E:A4", "B[2..3] A[1..4]", TW_REPAIR_call_unwound, 0);
	/* thrown and caught in the same method, with a call in between or not */
	vector("B:A1 T:A3 E:A4", "A[1..4]", TW_REPAIR_call_unwound, 0);
	vector("B:A1 T:A2 B:B3 E:B4 E:A5", "B[3..4] A[1..5]", TW_REPAIR_call_unwound, 0);
	/* thrown, left, and the caller continues */
	vector("B:A1 B:B2 T:B3 B:C4 E:C5 E:A6", "C[4..5] B[2..3] A[1..6]", TW_REPAIR_call_unwound,
	        0);
	/* thrown on by each */
	vector("B:A1 B:B2 B:C3 T:C4 T:B5 E:A6", "C[3..4] B[2..5] A[1..6]", TW_REPAIR_call_unwound,
	        0);
	/* out of the inner call of a recursion */
	vector("B:A1 B:A2 T:A3 E:A4", "A[2..3] A[1..4]", TW_REPAIR_call_unwound, 0);
	vector("B:A1 B:A2 T:A3 T:A4", "A[2..3] A[1..4]", TW_REPAIR_enter_without_exit, 0);
	/* tried again and again */
	vector("B:A1 B:B2 T:B3 B:B4 T:B5 B:B6 E:B7 E:A8", "B[2..3] B[4..5] B[6..7] A[1..8]",
	        TW_REPAIR_call_unwound, 0);
}

static void test_ends_of_a_trace(void **state)
{
	(void)state;
	vector("B:A1 B:B2", "B[2..2] A[1..2]", TW_REPAIR_enter_without_exit, 2);
	vector("E:X1 B:A2 E:A3", "A[2..3]", TW_REPAIR_exit_without_enter, 1);
	vector("T:X1 B:A2 E:A3", "A[2..3]", TW_REPAIR_exit_without_enter, 1);
	vector("B:A1 T:A2 B:B3 E:B4", "B[3..4] A[1..2]", TW_REPAIR_enter_without_exit, 0);
}

static void test_ids_sections_clocks(void **state)
{
	struct event_log log = run("9|TRACE_START|1000000000|7|2147483647|2|1\n"
	                           "100.000001 7: B|7|monotonic_time: 40.000001\n"
	                           "100.000002: B|7|B:17\n"
	                           "100.000003: B|7|VerifyClass a.B\n"
	                           "100.000004: B|7|E:17\n"
	                           "100.000005: E|7\n"
	                           "100.000006: B|7|monotonic_time: soon\n"
	                           "9|TRACE_END|1000000000|7|2147483647|2|1\n",
	        "rhea1");

	(void)state;
	assert_int_equal(log.n, 3);
	assert_int_equal(log.clock.boot_base_ns, 99000000000);
	assert_int_equal(log.clock.mono_base_ns, 39000000000);
	assert_int_equal(log.clock.pid, 7);
	assert_section(&log, 0, TW_EV_BEGIN, 7, 1000003000, "VerifyClass a.B");
	assert_int_equal(log.events[1].kind, TW_EV_SLICE);
	assert_int_equal(log.events[1].sym, event_log_method(17));
	assert_int_equal(log.events[1].dur_ns, 2000);
	assert_section(&log, 2, TW_EV_END, 7, 1000005000, NULL);
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 1);
	event_log_done(&log);
}

static void test_limits(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct event_log log;
	static const char text[] = "5.000000001 1: B|7|a\n5.000000001 2: B|7|a\n"
	                           "5.000000001 3: B|7|a\n";

	(void)state;
	l.max_threads = 2;
	event_log_run_cut(&log, text, strlen(text), &l);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.counts[TW_REPAIR_thread_limit], 1);
	event_log_done(&log);
}

static void test_without_memory(void **state)
{
	static const char *const texts[] = {"5.000000001 1: B|7|read:/x\n",
	        "5.000001 1: B|7|B:A\n5.000001 1: B|7|B:B\n", "#a.b.C\nx:1\ny:2\n"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const char *wrong = event_log_run_starved(texts[i], strlen(texts[i]));

		if (wrong)
			fail_msg("%s", wrong);
	}
}

/* --- binder.txt --- */

static void test_binder(void **state)
{
	struct event_log log = run("#a.b.IThing\nTRANSACTION_go:1\r\n\nLAST:4294967295\n"
	                           "too_much:4294967296\nx:-1\ny:-2147483648\n"
	                           "z:-2147483649\nv:--1\n#a.b.IEmpty\n#bad name\ny:1\n"
	                           "#a.b.INext\nz:2\nhalf:1",
	        "binder");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	text_reported(&log, "a.b.IThing transaction 1 TRANSACTION_go");
	text_reported(&log, "a.b.IThing transaction 4294967295 LAST");
	text_reported(&log, "a.b.INext transaction 2 z");
	/* a negative number is a constant, if one of 32 bits: neither a code nor a fault */
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 5);
	assert_false(memmem(log.names.data, log.names.len, " x\n", 3));
	assert_false(memmem(log.names.data, log.names.len, " y\n", 3));
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	assert_false(memmem(log.names.data, log.names.len, "half", 4));
	event_log_done(&log);
}

static void test_not_binder(void **state)
{
	static const char *const texts[] = {
	        "#e1534ea1-7ba6-4bbd-993b-c4bbe0115017\n1,17,a.B c ()V\n", "# tracer: nop\n",
	        "#a.b.C\n1,2,a.B c\n", "#!/bin/sh\nx:1\n"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct event_log log;

		event_log_run_cut(&log, texts[i], strlen(texts[i]), NULL);
		assert_true(log.status != TW_OK);
		event_log_done(&log);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_threads),
        cmocka_unit_test(test_main_thread_only),
        cmocka_unit_test(test_first_second_of_a_phone),
        cmocka_unit_test(test_binder_names),
        cmocka_unit_test(test_hook_names),
        cmocka_unit_test(test_names_like_facts),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_ends_of_a_trace),
        cmocka_unit_test(test_ids_sections_clocks),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_binder),
        cmocka_unit_test(test_not_binder),
};

UNIT_TESTS("rhea", tests)
