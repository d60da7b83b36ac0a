/* Edge cases of ANR reports: repeated frames, clusters, truncation, limits, failed allocations, and
 * the real dumps next to the source tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/anr_fixture.h"
#include "tests/unit/unit.h"

static void test_repeated_frames(void **state)
{
	struct anr_report r = anr_read_text("\"main\" prio=5 tid=1 Runnable\n  at a.A.a(A.java:1)\n"
	                                    "  at a.A.a(A.java:1)\n  at a.A.a(A.java:1)\n"
	                                    "  ... repeated 0 times\n  at a.B.b(B.java:1)\n");

	(void)state;
	assert_int_equal(anr_count(anr_thread(&r, 0), "frames"), 5);
	anr_done(&r);
}

static void test_locks_in_the_document(void **state)
{
	struct anr_report r = anr_read_text("\"main\" prio=5 tid=1 Waiting\n"
	                                    "  at java.lang.Object.wait(Native method)\n"
	                                    "  - waiting on <0x07> (a a.Q)\n"
	                                    "  at a.Q.take(Q.java:1)\n  - locked <0x07> (a a.Q)\n"
	                                    "  - locked <0x08> (a a.R)\n  at a.B.b(B.java:1)\n"
	                                    "  - locked <0x08> (a a.R)\n");
	json_t *frames = json_object_get(anr_thread(&r, 0), "frames");

	(void)state;
	assert_int_equal(anr_count(anr_thread(&r, 0), "held"), 1);
	assert_string_equal(
	        anr_word(json_array_get(json_object_get(anr_thread(&r, 0), "held"), 0), "type"),
	        "a.R");
	assert_int_equal(anr_count(json_array_get(frames, 1), "locks"), 2);
	assert_null(json_object_get(anr_thread(&r, 0), "wants"));
	anr_done(&r);
}

static void test_a_cut_dump_keeps_what_it_had(void **state)
{
	struct anr_report r = anr_read_text("----- pid 7 at 2024-01-01 00:00:00 -----\n"
	                                    "\"main\" prio=5 tid=1 Runnable\n  at a.A.a(A.java:1)\n"
	                                    "  at a.B.bro");

	(void)state;
	assert_int_equal(anr_count(anr_thread(&r, 0), "frames"), 1);
	assert_int_equal(r.log.counts[TW_REPAIR_input_truncated], 1);
	anr_done(&r);
}

static void cluster_of(const char *text, char ret[20])
{
	struct anr_report r = anr_read_text(text);

	(void)snprintf(ret, 20, "%s", anr_word(r.doc, "cluster"));
	anr_done(&r);
}

static void test_clusters(void **state)
{
	char a[20];
	char b[20];

	(void)state;
	cluster_of("\"main\" prio=5 tid=1 Runnable\n  at a.A$2.run(A.java:1)\n"
	           "  at a.A.lambda$go$3(A.java:9)\n  at a.A.$r8$lambda$HaSh(A.java:0)\n",
	        a);
	cluster_of(
	        "\"app\" prio=5 tid=1 Runnable\n  native: #00 pc 12  /x.so (f+4)\n"
	        "  at a.A$14.run(A.java:77)\n  at a.A.lambda$go$12(A.java:3)\n"
	        "  at a.A.$r8$lambda$OtHer(A.java:0)\n  at java.lang.Thread.run(Thread.java:1)\n",
	        b);
	assert_string_equal(a, b);
	cluster_of("\"main\" prio=5 tid=1 Runnable\n  at a.A$2.run2(A.java:1)\n", b);
	assert_string_not_equal(a, b);
	/* a ring has one cluster whatever main's position; other locks have another */
	cluster_of(ANR_MAIN_WANTS "\"b\" prio=5 tid=2 Runnable\n  at a.b.B.b(B.java:1)\n", a);
	cluster_of("\"main\" prio=5 tid=1 Blocked\n  at a.b.Screen.draw(Screen.java:1)\n"
	           "  - waiting to lock <0x01> (a a.b.Other) held by thread 2\n\n"
	           "\"b\" prio=5 tid=2 Runnable\n  at a.b.B.b(B.java:1)\n",
	        b);
	assert_string_not_equal(a, b);
}

static void test_hostile_names_stay_text(void **state)
{
	static const char text[] = "\"<img src=x>\xff\xfe\" prio=5 tid=1 Runnable\n"
	                           "  at a.\xc3.b(\x01)\n";
	struct anr_report r = anr_read_text(text);

	(void)state;
	assert_string_equal(
	        anr_word(anr_thread(&r, 0), "name"), "<img src=x>\xEF\xBF\xBD\xEF\xBF\xBD");
	anr_done(&r);
}

/* An announced thread that got no frame was the only dump when the channels came. */
static void test_channels_after_an_empty_stack(void **state)
{
	struct anr_report r =
	        anr_read_text("a.b.ANRError: ANR\n"
	                      "----- Waiting Channels: pid 7 at 2023-01-01 00:00:00 -----\n"
	                      "sysTid=7  futex_wait\n----- end 7 -----\n");

	(void)state;
	assert_int_equal(anr_count(r.doc, "processes"), 1);
	assert_string_equal(anr_word(anr_thread(&r, 0), "channel"), "futex_wait");
	anr_done(&r);
}

static void test_more_dumps_than_the_limit(void **state)
{
	struct tw_buf b;
	struct anr_report r;

	(void)state;
	tw_buf_init(&b, 1 << 20);
	for (int i = 1; i <= 4097; i++)
		(void)tw_buf_printf(&b,
		        "----- pid %d at -----\n\"main\" prio=5 tid=1 Native\n"
		        "  at a.A.a(A.java:1)\n\n----- end 1 -----\n",
		        i);
	r = anr_read((const char *)b.data, b.len, NULL);
	assert_int_equal(anr_count(r.doc, "processes"), 4096);
	assert_int_equal(anr_count(anr_process(&r, 4095), "threads"), 1);
	assert_int_equal(r.log.counts[TW_REPAIR_note_limit], 1);
	anr_done(&r);
	tw_buf_done(&b);
}

static void test_refused(void **state)
{
	struct anr_report r = anr_read("DALVIK THREADS (3):\nnothing\n", 28, NULL);

	(void)state;
	assert_int_equal(r.log.status, TW_CORRUPT);
	assert_string_equal(
	        r.log.err.msg, "no readable thread, wait channel or reason in this ANR report");
	anr_done(&r);
	r = anr_read("{\"a\":\"DALVIK\"}\n", 15, NULL);
	assert_int_equal(r.log.status, TW_UNSUPPORTED);
	anr_done(&r);
}

/* --- cuts, limits, memory --- */

static void read_file(const char *path, struct tw_buf *ret)
{
	FILE *f = fopen(path, "rbe");
	size_t n;

	tw_buf_init(ret, 16 << 20);
	if (!f)
		return;
	do {
		assert_int_equal(tw_buf_reserve(ret, 1 << 16), TW_OK);
		n = fread(ret->data + ret->len, 1, 1 << 16, f);
		ret->len += n;
	} while (n);
	(void)fclose(f);
}

static void golden(const char *name, struct tw_buf *ret)
{
	char path[4096];

	(void)snprintf(
	        path, sizeof path, "%s/tests/golden/anr/%s/input", getenv("TW_SOURCE_ROOT"), name);
	read_file(path, ret);
	assert_true(ret->len > 0);
}

static void test_cuts(void **state)
{
	struct tw_buf b;
	struct event_log whole, pieces;

	(void)state;
	golden("realistic", &b);
	event_log_run(&whole, b.data, b.len, 0, NULL);
	for (uint64_t seed = 1; seed < 40; seed++) {
		event_log_run(&pieces, b.data, b.len, seed, NULL);
		assert_null(event_log_differs(&whole, &pieces));
		event_log_done(&pieces);
	}
	event_log_done(&whole);
	for (size_t n = 0; n < b.len; n += 97) {
		event_log_run(&pieces, b.data, n, 0, NULL);
		assert_true(pieces.status == TW_OK || n < 64);
		event_log_done(&pieces);
	}
	tw_buf_done(&b);
}

static void test_limits(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_buf b;
	struct anr_report r;

	(void)state;
	tw_buf_init(&b, 1 << 20);
	for (int i = 1; i <= 5; i++)
		(void)tw_buf_printf(&b,
		        "\"t%d\" prio=5 tid=%d Runnable\n  at a.A.a(A.java:1)\n"
		        "  at a.B.b(B.java:1)\n  at a.C.c(C.java:1)\n\n",
		        i, i);
	limits.max_threads = 4;
	limits.max_depth = 2;
	r = anr_read((const char *)b.data, b.len, &limits);
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 4);
	assert_int_equal(anr_number(anr_process(&r, 0), "threads_left_out"), 1);
	assert_int_equal(anr_number(anr_thread(&r, 3), "more_frames"), 1);
	assert_int_equal(r.log.counts[TW_REPAIR_thread_limit], 1);
	assert_int_equal(r.log.counts[TW_REPAIR_depth_clipped], 4);
	anr_done(&r);
	limits.max_threads = 5;
	limits.max_depth = 3;
	r = anr_read((const char *)b.data, b.len, &limits);
	assert_int_equal(event_log_repairs(&r.log), 0);
	anr_done(&r);
	limits.max_name_bytes = 2;
	r = anr_read((const char *)b.data, b.len, &limits);
	assert_string_equal(anr_word(anr_thread(&r, 0), "name"), "t1");
	assert_true(r.log.counts[TW_REPAIR_name_cut] > 0);
	anr_done(&r);
	tw_buf_done(&b);
}

static void test_repeated_without_bound(void **state)
{
	struct anr_report r = anr_read_text("\"main\" prio=5 tid=1 Runnable\n  at a.A.a(A.java:1)\n"
	                                    "  ... repeated 18446744073709551615 times\n"
	                                    "  at a.B.b(B.java:1)\n");

	(void)state;
	assert_int_equal(r.log.counts[TW_REPAIR_depth_clipped], 2);
	anr_done(&r);
}

/* A file of 24 MB of different threads, frames and locks fits into the arena of the log. */
static void test_a_huge_dump_stays_bounded(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	tw_buf_init(&b, 32 << 20);
	(void)tw_buf_printf(&b, "----- pid 1 at 2024-01-01 00:00:00 -----\n");
	for (unsigned i = 1; b.len < 24 << 20; i++) {
		(void)tw_buf_printf(&b, "\"t%u\" prio=5 tid=%u Blocked\n", i, i);
		for (unsigned k = 0; k < 60; k++)
			(void)tw_buf_printf(&b, "  at pkg%u.Cls%u.m%u(X.java:%u)\n", k, i % 9000, k,
			        i * 60 + k);
		(void)tw_buf_printf(&b, "  - waiting to lock <0x%x> (a T%u) held by thread %u\n\n",
		        i, i, i + 1);
	}
	event_log_run(&log, b.data, b.len, 0, NULL);
	if (log.status != TW_OK)
		fail_msg("%s", log.err.msg);
	assert_true(log.counts[TW_REPAIR_thread_limit] > 0);
	assert_true(log.names.len < 14 << 20);
	event_log_done(&log);
	tw_buf_done(&b);
}

static void test_failed_allocations(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct event_log log;
	struct tw_buf b;
	uint64_t n = 1;

	(void)state;
	golden("realistic", &b);
	for (bool ok = false; !ok; n++) {
		tw_mem_fail_at(n);
		event_log_run(&log, b.data, b.len, 0, &limits);
		tw_mem_fail_at(0);
		ok = log.status == TW_OK && log.names.status == TW_OK;
		if (!ok)
			assert_true(log.status == TW_NOMEM || log.names.status == TW_NOMEM);
		event_log_done(&log);
		assert_true(n < 200);
	}
	assert_true(n > 2);
	tw_buf_done(&b);
}

/* --- real dumps --- */

static void sample(const char *name, struct anr_report *ret)
{
	struct tw_buf b;

	read_file(unit_sample(name), &b);
	*ret = anr_read((const char *)b.data, b.len, NULL);
	tw_buf_done(&b);
	assert_int_equal(ret->log.status, TW_OK);
	assert_string_equal(ret->log.format->name, "anr");
}

static void test_sample_thread_dump(void **state)
{
	struct anr_report r;
	json_t *wants;

	(void)state;
	sample("anr/thread_dump.txt", &r);
	wants = json_object_get(anr_thread(&r, 1), "wants");
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 30);
	assert_string_equal(anr_word(r.doc, "verdict"),
	        "main waits for a lock of Object held by "
	        "Thread-9, which sleeps in MainActivity$1.run");
	assert_int_equal(anr_number(anr_process(&r, 0), "main"), 1);
	assert_string_equal(anr_word(wants, "id"), "0x0d3a2f0a");
	assert_int_equal(anr_number(wants, "holder_tid"), 5);
	assert_int_equal(anr_count(anr_thread(&r, 1), "frames"), 9);
	assert_string_equal(anr_word(anr_thread(&r, 1), "channel"), "futex_wait_queue_me");
	assert_int_equal(anr_count(anr_process(&r, 0), "cycles"), 0);
	assert_string_equal(
	        anr_word(json_object_get(anr_process(&r, 0), "facts"), "free_until_oome"), "187MB");
	assert_int_equal(event_log_repairs(&r.log), 0);
	anr_done(&r);
}

static void test_sample_others(void **state)
{
	struct anr_report r;

	(void)state;
	sample("anr/thread_dump_process_name_main.txt", &r);
	assert_int_equal(anr_number(anr_process(&r, 0), "main"), 0);
	assert_string_equal(anr_word(anr_thread(&r, 0), "name"), "io.sentry.samples.android");
	anr_done(&r);
	sample("anr/thread_dump_no_stacktrace.txt", &r);
	assert_int_equal(anr_count(anr_thread(&r, 1), "frames"), 0);
	anr_done(&r);
	sample("anr/anr_stacktrace_one.txt", &r);
	assert_int_equal(anr_number(r.doc, "waited_ms"), 5000);
	assert_int_equal(anr_count(anr_thread(&r, 0), "frames"), 11);
	anr_done(&r);
	sample("anr/jvm_anr_stacktrace_golden.txt", &r);
	assert_int_equal(anr_count(anr_thread(&r, 0), "frames"), 2);
	anr_done(&r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_frames),
        cmocka_unit_test(test_locks_in_the_document),
        cmocka_unit_test(test_a_cut_dump_keeps_what_it_had),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_hostile_names_stay_text),
        cmocka_unit_test(test_channels_after_an_empty_stack),
        cmocka_unit_test(test_more_dumps_than_the_limit),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_repeated_without_bound),
        cmocka_unit_test(test_a_huge_dump_stays_bounded),
        cmocka_unit_test(test_failed_allocations),
        cmocka_unit_test(test_sample_thread_dump),
        cmocka_unit_test(test_sample_others),
};

UNIT_TESTS("anr_bounds", tests)
