/* Unit tests of kernel text traces: lines, markers, spans, states, containers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "decoder/base/hash.h"
#include "decoder/formats/ftrace/ftrace.h"
#include "decoder/formats/markers/markers.h"
#include "tests/unit/decoder_formats/text_fixture.h"
#include "tests/unit/unit.h"

enum { ZERO_SECONDS = 4, MAX_FILE = 1 << 20 };

/* --- lines --- */

static void assert_parsed(const char *line, const char *task, uint64_t tid, uint32_t tgid,
        int64_t time_ns, const char *name)
{
	struct tw_ftrace_event e;

	if (!tw_ftrace_parse(tw_str_of(line), &e))
		fail_msg("no event: %s", line);
	assert_true(tw_str_eq(e.task, tw_str_of(task)));
	assert_int_equal(e.tid, tid);
	assert_int_equal(e.tgid, tgid);
	assert_int_equal(e.time_ns, time_ns);
	assert_true(tw_str_eq(e.name, tw_str_of(name)));
}

static void test_lines(void **state)
{
	(void)state;
	assert_parsed("           <...>-882   (  882) [003] .... 10852.771186: tracing_mark_write: "
	              "B|598|x",
	        "<...>", 882, 882, 10852771186000, "tracing_mark_write");
	assert_parsed(" WebViewCoreThre-11043 [000] 50260.648275: sched_switch: x",
	        "WebViewCoreThre", 11043, 0, 50260648275000, "sched_switch");
	assert_parsed("  atrace-14446 [000] ...2  1212.465062: x: y", "atrace", 14446, 0,
	        1212465062000, "x");
	assert_parsed("  foo-12  (-----) [001] d..1 5.000001: print: z", "foo", 12, 0, 5000001000,
	        "print");
	assert_parsed("a-12 [001] d..21 5.1: a:b: z", "a", 12, 0, 5100000000, "a:b");
	assert_parsed("a-12 [001] dNh4. 5.123456789: x: z", "a", 12, 0, 5123456789, "x");
	assert_parsed("a-12 [001] ...15.000001: x:", "a", 12, 0, 5000001000, "x");
	assert_parsed("a-1 - [2] (c) -x-12 (7) [001] 5.0: x: z", "a-1 - [2] (c) -x", 12, 7,
	        5000000000, "x");
	assert_parsed("k-5 [0]\t5.1234567891: e: z", "k", 5, 0, 5123456789, "e");
}

static void test_lines_that_are_none(void **state)
{
	static const char *const lines[] = {"", "-", "a-", "a-12", "a-12[001] 5.0: x: y",
	        "a-12 [001 5.0: x: y", "a-12 [001] 5: x: y", "a-12 [001] 5.: x: y",
	        "a-12 [001] 5.0:x: y", "a-12 [001] 5.0: xy",
	        "a-12 [001] 5.0: :", "a-12 [001] 123456789012.0: x: y",
	        "a-4294967296 [001] 5.0: x: y", "a-12 [70000] 5.0: x: y", "a-x [001] 5.0: x: y"};
	struct tw_ftrace_event e;

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (tw_ftrace_parse(tw_str_of(lines[i]), &e))
			fail_msg("an event: %s", lines[i]);
}

/* --- markers --- */

static void test_sections(void **state)
{
	struct event_log log = text_run(HEAD LINE(01, "B|10|a|b: c") LINE(02, "B|10|")
	                LINE(03, "E|10|x") LINE(04, "E") LINE(05, "E|"));

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 4);
	text_event(&log, 0, TW_EV_BEGIN, 12, 1000001, "a|b: c");
	text_event(&log, 1, TW_EV_BEGIN, 12, 1000002, "[empty slice name]");
	text_event(&log, 2, TW_EV_END, 12, 1000003, NULL);
	text_event(&log, 3, TW_EV_END, 12, 1000004, NULL);
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(event_log_repairs(&log), 1);
	assert_int_equal(log.clock.some_base_ns, ZERO_SECONDS * 1000000000LL);
	text_reported(&log, "12 thread");
	event_log_done(&log);
}

static void test_spans(void **state)
{
	/* S does not nest: the second S of an open key is ignored and the first F ends the span.
	 * G and H nest. */
	struct event_log log = text_run(HEAD LINE(01, "S|10|load|7") LINE(02, "S|10|load|7")
	                LINE(03, "F|10|load|7") LINE(05, "F|10|load|7") LINE(06, "F|10|load|7")
	                        LINE(10, "G|11|net|get a|-1") LINE(11, "G|11|net|get b|-1")
	                                LINE(12, "H|11|net|-1") LINE(14, "H|11|net|get a|-1")
	                                        LINE(20, "S|10|open|1") LINE(30, "I|10|now"));

	(void)state;
	text_reported(&log, "note async 13 1000001000 2000 7 14 load {\"pid\":10}");
	text_reported(
	        &log, "note async 13 1000011000 1000 -1 440 get b {\"pid\":11,\"track\":\"net\"}");
	text_reported(
	        &log, "note async 13 1000010000 4000 -1 364 get a {\"pid\":11,\"track\":\"net\"}");
	text_reported(&log, "note async 13 1000020000 10000 1 662 open {\"pid\":10}");
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 2);
	assert_int_equal(log.counts[TW_REPAIR_enter_without_exit], 1);
	event_log_done(&log);
}

static void test_counters_and_moments(void **state)
{
	struct event_log log = text_run(HEAD LINE(01, "C|10|queue|-3") LINE(02, "C|10|queue|4|gfx")
	                LINE(03, "I|10|now") LINE(04, "N|10|net|retry") LINE(05, "free words")
	                        LINE(06, "C|10|queue|x") LINE(07, "I|10|") LINE(08, "N|10|net|"));

	(void)state;
	text_reported(&log, "note counter 0 1000001000 -1 -3 14 queue {\"pid\":10}");
	text_reported(&log, "note counter 0 1000002000 -1 4 86 queue {\"pid\":10}");
	text_reported(&log, "note instant 13 1000003000 -1 0 161 now ");
	text_reported(&log, "note instant 13 1000004000 -1 0 228 retry {\"track\":\"net\"}");
	text_reported(&log, "note instant 13 1000005000 -1 0 301 free words ");
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 3);
	event_log_done(&log);
}

static void test_process_of_a_thread(void **state)
{
	struct event_log log =
	        text_run(HEAD "  x-12 [000] 5.000001: tracing_mark_write: I|0|early\n"
	                      "  x-12 [000] 5.000002: tracing_mark_write: C|9|not its own|1\n"
	                      "  x-12 [000] 5.000003: tracing_mark_write: B|77|a\n"
	                      "  <...>-13 [000] 5.000003: tracing_mark_write: I|0|no name\n"
	                      "/proc/78/task/13\n");

	(void)state;
	text_reported(&log, "process 12 77");
	text_reported(&log, "process 13 78");
	text_reported(&log, "12 x");
	assert_false(memmem(log.names.data, log.names.len, "<...>", 5));
	event_log_done(&log);
}

/* --- facts --- */

static void test_facts(void **state)
{
	struct event_log log = text_run(
	        HEAD LINE(01, "B|10|monitor contention with owner Pool (2) worker (4711) at void "
	                      "a.B.c(int, java.lang.String)(B.java:12)"
	                      " waiters=3 blocking from int d.E.f()(E.java:-1)") LINE(05,
	                "E") LINE(06, "B|10|monitor contention with owner a\\\"b (5)") LINE(07, "E")
	                LINE(08, "B|10|Lock contention on a (b) lock (owner tid: 99)") LINE(09, "E")
	                        LINE(10, "B|10|pthread_create tid=12345") LINE(11, "E")
	                                LINE(12, "B|10|read:/a:b,size:5") LINE(14, "E"));

	(void)state;
	text_reported(&log,
	        "note contention 13 1000001000 4000 4711 14 monitor {\"owner\":\"Pool (2) worker\","
	        "\"owner_method\":\"void a.B.c(int, "
	        "java.lang.String)\",\"owner_source\":\"B.java:12\","
	        "\"waiters\":3,\"method\":\"int d.E.f()\",\"source\":\"E.java:-1\"}");
	text_reported(&log, "note contention 13 1000008000 1000 99 447 a (b) lock ");
	text_reported(&log, "note thread_created 13 1000010000 -1 12345 616  ");
	text_reported(&log, "note io 13 1000012000 2000 5 764 /a:b {\"call\":\"read\"}");
	text_reported(&log,
	        "note contention 13 1000006000 1000 5 285 monitor {\"owner\":\"a\\\\\\\"b\"}");
	event_log_done(&log);
}

/* --- states --- */

#define SWITCH(t, prev, letters, next)                                                             \
	"  x-1 [002] d..2 5.0000" #t ": sched_switch: prev_comm=p prev_pid=" #prev                 \
	" prev_prio=120 prev_state=" letters " ==> next_comm=a=b pid=3 next_pid=" #next            \
	" next_prio=120\n"

static void test_states(void **state)
{
	struct event_log log = text_run(HEAD SWITCH(01, 0, "R", 7) SWITCH(
	        03, 7, "D|W", 0) "  k-5 [001] d..2 5.000004: sched_blocked_reason: pid=7 iowait=1 "
	                         "caller=f+0x1/0x2\n"
	                         "  k-5 [001] d..2 5.000005: sched_waking: comm=a=b pid=3 pid=7 "
	                         "prio=120 target_cpu=001\n"
	                         "  k-5 [001] d..2 5.000006: sched_wakeup: comm=a=b pid=3 pid=7 "
	                         "prio=120 success=1 target_cpu=001\n"
	                         "  k-5 [001] d..2 5.000006: sched_wakeup: comm=q pid=8 prio=120 "
	                         "success=0 target_cpu=001\n" SWITCH(09, 0, "R", 7)
	                                 SWITCH(12, 7, "R+", 9) SWITCH(20, 9, "Z", 0));

	(void)state;
	text_reported(&log, "7 a=b pid=3");
	text_reported(&log, "note state 8 1000001000 2000 2 14 running ");
	text_reported(&log, "note state 8 1000003000 2000 -1 154 blocked "
	                    "{\"iowait\":1,\"caller\":\"f+0x1/0x2\"}");
	text_reported(&log, "note wakeup 6 1000005000 -1 7 377 a=b pid=3 ");
	text_reported(&log, "note state 8 1000005000 4000 -1 377 runnable ");
	text_reported(&log, "note state 8 1000009000 3000 2 647 running ");
	text_reported(&log, "note state 8 1000012000 8000 -1 787 runnable ");
	text_reported(&log, "note state 10 1000012000 8000 2 787 running ");
	text_reported(&log, "note state 10 1000020000 0 -1 928 dead ");
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

#define SENT(tid, t, id, reply, flags)                                                             \
	"  x-" #tid " [002] d..2 5.0000" #t ": binder_transaction: transaction=" #id               \
	" dest_node=4 dest_proc=2 dest_thread=0 reply=" #reply " flags=" flags " code=0x1\n"
#define RECEIVED(tid, t, id)                                                                       \
	"  x-" #tid " [002] d..2 5.0000" #t ": binder_transaction_received: transaction=" #id "\n"

/* Thread 7 calls 8, which calls 9 before it answers; 7 sends to 9 without waiting. */
static void test_binder(void **state)
{
	struct event_log log = text_run(HEAD SENT(7, 01, 101, 0, "0x10") RECEIVED(8, 02, 101)
	                SENT(8, 03, 102, 0, "0x10") RECEIVED(9, 04, 102) SENT(9, 05, 103, 1, "0x0")
	                        RECEIVED(8, 06, 103) SENT(8, 07, 104, 1, "0x0") RECEIVED(7, 09, 104)
	                                SENT(7, 10, 105, 0, "0x11") RECEIVED(9, 12, 105)
	                                        SENT(9, 13, 106, 1, "0x0") RECEIVED(7, 14, 106)
	                                                RECEIVED(7, 15, 99));

	(void)state;
	text_reported(&log, "note binder 9 1000003000 3000 9 215  ");
	text_reported(&log, "note binder 8 1000001000 8000 8 14  ");
	text_reported(&log, "note flow 8 1000010000 2000 9 816  ");
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

/* Damage: the call's number is used again before the answer is received. */
static void test_binder_repeated(void **state)
{
	struct event_log log = text_run(HEAD SENT(7, 01, 101, 0, "0x10") RECEIVED(8, 02, 101) SENT(
	        8, 03, 102, 1, "0x0") SENT(7, 04, 101, 0, "0x10") RECEIVED(7, 05, 102)
	                RECEIVED(9, 06, 101) SENT(9, 07, 103, 1, "0x0") RECEIVED(7, 10, 103));

	(void)state;
	text_reported(&log, "note binder 8 1000004000 6000 9 343  ");
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_frequencies(void **state)
{
	struct event_log log = text_run(
	        HEAD "  x-1 [002] 5.000001: cpu_frequency: state=1804800 cpu_id=12\n"
	             "  x-1 [002] 5.000002: cpu_frequency_limits: min=3 max=5 cpu_id=0\n"
	             "  x-1 [002] 5.000002: cpu_frequency_limits: min_freq=3 max_freq=6 cpu_id=0\n"
	             "  x-1 [002] 5.000003: clock_set_rate: gpu core state=9 cpu_id=0\n"
	             "  x-1 [002] 5.000003: cpu_frequency: state=x cpu_id=0\n");

	(void)state;
	text_reported(&log, "note counter 0 1000001000 -1 1804800 14 cpu12 frequency (kHz) ");
	text_reported(&log, "note counter 0 1000002000 -1 6 140 cpu0 highest frequency (kHz) ");
	text_reported(&log, "note counter 0 1000003000 -1 9 215 gpu core ");
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 1);
	event_log_done(&log);
}

/* --- events of the kernel --- */

static void test_losses(void **state)
{
	struct event_log log =
	        text_run("# entries-in-buffer/entries-written: 100/150   #P:4\n"
	                 "CPU:3 [LOST 12 EVENTS]\nCPU:4 [LOST EVENTS]\n" LINE(01, "B|10|x"));

	(void)state;
	assert_int_equal(log.counts[TW_REPAIR_buffer_overrun], 50 + 12 + 1);
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 0);
	event_log_done(&log);
}

static void test_clock(void **state)
{
	struct event_log log = text_run(HEAD LINE(01, "trace_event_clock_sync: parent_ts=25.5")
	                LINE(02, "trace_event_clock_sync: realtime_ts=1790000000123"));

	(void)state;
	assert_int_equal(log.clock.mono_base_ns, 4000000000 + 20499999000);
	text_reported(&log,
	        "note instant 0 1000002000 -1 0 111 clock_sync {\"realtime_ms\":1790000000123}");
	event_log_done(&log);
	log = text_run(HEAD LINE(01, "trace_event_clock_sync: parent_ts=0"));
	assert_int_equal(log.clock.mono_base_ns, 4000000000);
	event_log_done(&log);
}

static void test_cut_line(void **state)
{
	struct event_log log =
	        text_run(HEAD LINE(01, "B|10|whole") "  x-1 [002] 5.1: print: B|10|hal");

	(void)state;
	assert_int_equal(log.n, 1);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);
}

static void test_nothing_to_read(void **state)
{
	struct event_log log = text_run(HEAD "#\n# nothing\n");

	(void)state;
	assert_int_equal(log.status, TW_CORRUPT);
	event_log_done(&log);
	log = text_run("-1 [0] 5.0: x\n");
	assert_int_equal(log.status, TW_UNSUPPORTED);
	event_log_done(&log);
}

/* --- atrace -z --- */

static char packed[MAX_FILE];

/* As `adb shell` would hand it on: `crs` carriage returns before each line end. */
static size_t mangle(const char *first_line, unsigned crs, const char *text, size_t cut)
{
	uint8_t z[4096];
	uLongf n = sizeof z;
	size_t at = (size_t)snprintf(packed, sizeof packed, "%s", first_line);

	assert_int_equal(compress2(z, &n, (const Bytef *)text, strlen(text), 9), Z_OK);
	for (size_t i = 0; i < n - cut; i++) {
		for (unsigned k = 0; z[i] == '\n' && k < crs; k++)
			packed[at++] = '\r';
		packed[at++] = (char)z[i];
	}
	return at;
}

static struct event_log run_packed(size_t n)
{
	struct event_log log;

	event_log_run_cut(&log, packed, n, NULL);
	return log;
}

static const char *many_lines(void)
{
	static char text[64 << 10];
	size_t at = (size_t)snprintf(text, sizeof text, HEAD);
	uint64_t seed = 3;

	for (int i = 0; i < 60; i++)
		at += (size_t)snprintf(text + at, sizeof text - at,
		        "  t-12 (10) [000] ...1 5.%06d: tracing_mark_write: B|10|n%llx\n", i,
		        (unsigned long long)test_random(&seed));
	return text;
}

static void test_packed(void **state)
{
	static const struct {
		const char *first_line;
		unsigned crs;
	} shells[] = {{"TRACE:\n", 0}, {"capturing trace... done\nTRACE:\n", 0}, {"TRACE:\r\n", 1},
	        {"words\r\r\nTRACE:\r\r\n", 2}};

	(void)state;
	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
		size_t n = mangle(shells[i].first_line, shells[i].crs, many_lines(), 0);
		struct event_log log;

		memset(packed + n, '\n', 500); /* junk after the stream */
		log = run_packed(n + 500);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 60);
		assert_int_equal(event_log_repairs(&log), 0);
		event_log_done(&log);
	}
}

/* The stream has its own end: a last line is complete without a newline. */
static void test_packed_last_line(void **state)
{
	static const char text[] =
	        HEAD LINE(01, "B|10|a") "  t-12 (10) [000] ...1 5.1: print: E|10";
	size_t n = mangle("TRACE:\n", 0, text, 0);
	struct event_log log = run_packed(n);

	(void)state;
	assert_int_equal(log.n, 2);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	log = run_packed(n - 1); /* without the last byte of its sum */
	assert_int_equal(log.n, 1);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);
}

static void test_packed_damaged(void **state)
{
	size_t n = mangle("TRACE:\n", 0, many_lines(), 100);
	struct event_log log = run_packed(n);

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_true(log.n > 10 && log.n < 60);
	assert_true(log.counts[TW_REPAIR_input_truncated] > 0);
	event_log_done(&log);
	n = mangle("TRACE:\n", 0, many_lines(), 0);
	memset(packed + n / 2, 0xFF, n / 2);
	log = run_packed(n);
	assert_int_equal(log.status, TW_OK);
	assert_true(
	        log.counts[TW_REPAIR_input_corrupt] + log.counts[TW_REPAIR_input_truncated] > 0);
	event_log_done(&log);
}

/* Carriage returns without end are nothing a shell did, and no more are kept than it might add. */
static void test_packed_returns(void **state)
{
	enum { MANY = 6000 };
	size_t n = (size_t)snprintf(packed, sizeof packed, "TRACE:");
	struct event_log log;

	(void)state;
	memset(packed + n, '\r', MANY);
	n += MANY;
	packed[n++] = '\n';
	packed[n++] = 0x78;
	packed[n++] = (char)0x9C;
	memset(packed + n, '\r', MANY);
	n += MANY;
	packed[n++] = 'x';
	log = run_packed(n);
	assert_int_equal(log.status, TW_UNSUPPORTED);
	event_log_done(&log);
	n = mangle("TRACE:\r\r\r\r\n", 4, many_lines(), 0);
	memset(packed + n, '\r', MANY); /* as junk after the stream */
	log = run_packed(n + MANY);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 60);
	event_log_done(&log);
}

static void test_limits(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct event_log log;
	char text[1024];
	size_t n = 0;

	(void)state;
	l.max_threads = 3;
	for (int i = 1; i <= 5; i++)
		n += (size_t)snprintf(
		        text + n, sizeof text - n, "t-%d [000] 5.00000%d: print: B|1|x\n", i, i);
	event_log_run_cut(&log, text, n, &l);
	assert_int_equal(log.n, 3);
	assert_int_equal(log.counts[TW_REPAIR_thread_limit], 2);
	event_log_done(&log);
	l = tw_limits_default();
	l.max_decoded_bytes = 1000;
	n = mangle("TRACE:\n", 0, many_lines(), 0);
	event_log_run_cut(&log, packed, n, &l);
	assert_int_equal(log.status, TW_TOO_LARGE);
	event_log_done(&log);
}

static void test_full_of_spans(void **state)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_spans s = {.arena = a};
	const struct tw_span at = {.start_ns = 1};
	struct tw_span_key key = {.pid = 1, .name = TW_STR("x")};

	(void)state;
	for (key.cookie = 0; key.cookie < TW_SPANS_MAX; key.cookie++)
		assert_int_equal(tw_spans_begin(&s, &key, &at), TW_SPAN_OK);
	assert_int_equal(tw_spans_begin(&s, &key, &at), TW_SPAN_FULL);
	key.cookie = 5;
	assert_non_null(tw_spans_end(&s, &key));
	assert_null(tw_spans_end(&s, &key));
	key.cookie = TW_SPANS_MAX;
	assert_int_equal(tw_spans_begin(&s, &key, &at), TW_SPAN_OK);
	tw_arena_free(a);
}

/* Cookies chosen to collide in one chain: the chain fills early, and lookups remain fast; with
 * another salt they are spread. */
static void test_cookies_that_meet(void **state)
{
	enum { CHAINS = 1 << 14, MEETING = 2000 };
	static int64_t cookies[MEETING];
	struct tw_arena *a = tw_arena_new(64 << 20);
	const struct tw_span at = {.start_ns = 1};
	struct tw_span_key key = {.pid = 1, .name = TW_STR("x")};
	uint64_t name = tw_hash_str(key.name, 0);
	uint32_t begun = 0;

	(void)state;
	for (int64_t c = 0, n = 0; n < MEETING; c++)
		if (tw_hash_id(name ^ (uint64_t)c, key.pid) % CHAINS == 0)
			cookies[n++] = c;
	for (uint64_t salt = 0; salt < 2; salt++) {
		struct tw_spans s = {.arena = a, .salt = salt};

		for (uint32_t i = 0; i < MEETING; i++) {
			key.cookie = cookies[i];
			begun += tw_spans_begin(&s, &key, &at) == TW_SPAN_OK;
		}
		assert_in_range(begun, salt ? MEETING : 100, salt ? MEETING : 200);
		for (uint32_t i = 0; i < MEETING; i++) {
			key.cookie = cookies[i];
			begun -= tw_spans_end(&s, &key) != NULL;
		}
		assert_int_equal(begun, 0);
	}
	tw_arena_free(a);
}

static void test_without_memory(void **state)
{
	size_t n = mangle("TRACE:\n", 0,
	        HEAD LINE(01, "S|1|a|1") LINE(02, "B|1|read:/x") LINE(03, "G|1|t|n|1"), 0);
	const char *wrong = event_log_run_starved(packed, n);

	(void)state;
	if (wrong)
		fail_msg("%s", wrong);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lines_that_are_none),
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_counters_and_moments),
        cmocka_unit_test(test_process_of_a_thread),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_binder),
        cmocka_unit_test(test_binder_repeated),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_cut_line),
        cmocka_unit_test(test_nothing_to_read),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_packed_last_line),
        cmocka_unit_test(test_packed_damaged),
        cmocka_unit_test(test_packed_returns),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_full_of_spans),
        cmocka_unit_test(test_cookies_that_meet),
        cmocka_unit_test(test_without_memory),
};

UNIT_TESTS("atrace", tests)
