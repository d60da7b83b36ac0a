/* ART traces of version 1 to 3, files and streams: every field, repairs, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/decoder_formats/art_fixture.h"
#include "tests/unit/unit.h"

/* --- versions 1 to 3 --- */

static void test_v1_words(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	/* basic-api10.trace and basic.trace: the published bytes */
	tw_buf_init(&b, 1 << 16);
	art_text(&b, "*version\n1\nclock=thread-cpu\n*threads\n8\tAsyncTask #1\n*methods\n*end\n");
	art_bytes(&b, "534c4f57 0100 2000 89b3eb2324e70400 00000000000000000000000000000000");
	art_bytes(&b, "08 3048b3b6 01000000  08 3148b3b6 06000000  08 ed67b9b6 07000000");
	art_run_done(&log, &b);
	assert_int_equal(log.n, 4);
	art_check(&log, 0, TW_EV_BEGIN, 0xb6b34830, 1000, 1000);
	art_check(&log, 1, TW_EV_END_EARLIER, 0xb6b34830, 6000, 6000);
	art_check(&log, 2, TW_EV_END_EARLIER, 0xb6b967ec, 7000, 7000);
	art_check(&log, 3, TW_EV_END_ALL, UNNAMED, 7000, 7000);
	assert_int_equal(log.clock.mono_base_ns, -1); /* the time of day */
	assert_int_equal(log.counts[TW_REPAIR_cpu_clock_only], 1);
	assert_int_equal(log.counts[TW_REPAIR_method_unnamed], 2);
	assert_true(art_reported(&log, "method 3065202736 <unknown 0xb6b34830>"));
	event_log_done(&log);
	tw_buf_init(&b, 1 << 16);
	art_lead(&b, 3, 5, 14); /* the text was lost */
	art_bytes(&b, "0b00 69587f62 03000000 e6000000  c072 04000000 00000000 945b0500");
	art_run_done(&log, &b);
	assert_int_equal(log.n, 2);
	art_check(&log, 0, TW_EV_END_EARLIER, 0x627f5868, 230000, 3000);
	assert_int_equal(log.events[0].dur_ns, 1000);
	art_check(&log, 1, TW_EV_BEGIN, 4, 351124000, 0);
	assert_int_equal(log.events[1].track, 29376 + 1);
	assert_int_equal(log.clock.mono_base_ns, 5000);
	event_log_done(&log);
}

static void test_text(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	art_header(&b, 3, "data-file-overflow=true\nclock=dual\nvm=art\npid=77\nodd line\nx=y=z\n");
	art_record3(&b, 1, 0, 10, 20);
	art_record3(&b, 1, 4, 30, 40);
	art_record3(&b, 1, 8, 30, 40);
	art_record3(&b, 4471, 12, 1, 2);
	art_record3(&b, 1, 8 | 3, 31, 41);
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 6);
	art_check(&log, 0, TW_EV_BEGIN, 0, 20000, 10000);
	/* open calls end with their thread: the rest of each thread was lost separately */
	assert_int_equal(log.events[4].kind, TW_EV_END_ALL);
	assert_int_equal(log.events[5].kind, TW_EV_END_ALL);
	assert_true(art_reported(&log, "method 0 com.a.B.zero"));
	assert_true(art_reported(&log, "method 4 com.a.B.four"));
	assert_true(art_reported(&log, "method 8 java.lang.String.eight"));
	assert_true(art_reported(&log, "method 12 <unknown 0xc>"));
	assert_true(art_reported(&log, "1 main\n"));
	assert_true(art_reported(&log, "70007 late one\n"));
	assert_true(art_reported(&log,
	        "document art {\"clock\":\"dual\",\"data-file-overflow\":\"true\","
	        "\"layout\":\"v1\",\"odd line\":\"\",\"pid\":\"77\",\"version\":"
	        "\"3\",\"vm\":\"art\",\"x\":\"y=z\"}"));
	assert_int_equal(log.clock.pid, 77);
	assert_int_equal(log.counts[TW_REPAIR_buffer_overrun], 1);
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 1);
	event_log_done(&log);
}

static void test_method_lines(void **state)
{
	static const struct {
		const char *line, *name;
	} rows[] = {
	        {"0x4\tcom.a.B\tm\t(I)V\tB.java", "com.a.B.m(I)V"},
	        {"0x4\tcom.a.B\tm\t(I)V", "com.a.B.m(I)V"},
	        {"4\tcom/a/B\t<init>\t()V\tB.java\t12", "com.a.B.<init>()V"},
	        {"0X4\tcom.a.B\tm", "com.a.B.m"},
	        {"0x4\tcom.a.B", "com.a.B"},
	        {"0x4\tcom.a.B\tB.java\t12", "com.a.B"},
	        {"0x00000004\tLcom/a/B;\tm\t()V\t", "com.a.B.m()V"},
	        {"0x4\tint[]\tcl\xC3\xB6ne$1-x\t()V", "int[].cl\xC3\xB6ne$1-x()V"},
	        {"0x4\ta\tb\tc\td\te\tf", "a.b"},
	};
	static const char *const bad[] = {
	        "0x\ta\tb", "zz\ta\tb", "0x11112222333344445\ta\tb", "4", "0x`4\ta\tb", "0x4\t\t"};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct event_log log;
		struct tw_buf b;
		char want[100];

		tw_buf_init(&b, 1 << 16);
		(void)tw_buf_printf(
		        &b, "*version\n2\nclock=wall\n*methods\n%s\n*end\n", rows[i].line);
		art_lead(&b, 2, 1, 0);
		art_record2(&b, 1, 4, 5);
		art_run_done(&log, &b);
		(void)snprintf(want, sizeof want, "method 4 %s\n", rows[i].name);
		if (!art_reported(&log, want))
			fail_msg("%s is not %s", rows[i].line, rows[i].name);
		assert_int_equal(event_log_repairs(&log), 0);
		event_log_done(&log);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct event_log log;
		struct tw_buf b;

		tw_buf_init(&b, 1 << 16);
		(void)tw_buf_printf(&b, "*version\n2\n*methods\n%s\n*end\n", bad[i]);
		art_run_done(&log, &b);
		if (log.counts[TW_REPAIR_line_malformed] != 1)
			fail_msg("%s was taken", bad[i]);
		event_log_done(&log);
	}
}

static void test_line_limit(void **state)
{
	(void)state;
	for (size_t extra = 0; extra < 3; extra++) { /* at the limit, and past it */
		struct event_log log;
		struct tw_buf b;
		size_t fill = 65536 - strlen("0x4\ta\t") + extra;

		tw_buf_init(&b, 1 << 20);
		art_text(&b, "*version\n2\n*methods\n0x4\ta\t");
		for (size_t i = 0; i < fill; i++)
			(void)tw_buf_add_u8(&b, 'x');
		art_text(&b, "\n*end\n");
		art_lead(&b, 2, 1, 0);
		art_record2(&b, 1, 4, 5);
		art_run_done(&log, &b);
		assert_int_equal(log.n, 2); /* no clock= is thread CPU */
		assert_int_equal(log.counts[TW_REPAIR_line_malformed], extra > 0);
		assert_int_equal(log.counts[TW_REPAIR_name_cut], extra == 0);
		event_log_done(&log);
	}
}

static void test_clocks(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	art_header(&b, 2, "clock=wall\n");
	art_record2(&b, 1, 0, 4294967290u);
	art_record2(&b, 2, 4, 7);
	art_record2(&b, 1, 1, 10); /* wrapped */
	art_record2(&b, 2, 5, 5);  /* fell */
	art_run_done(&log, &b);
	assert_int_equal(log.n, 4);
	art_check(&log, 0, TW_EV_BEGIN, 0, 4294967290000, -1);
	art_check(&log, 2, TW_EV_END_EARLIER, 0, 4294967306000, -1);
	art_check(&log, 3, TW_EV_END_EARLIER, 4, 7000, -1);
	assert_int_equal(log.counts[TW_REPAIR_time_wrapped], 1);
	assert_int_equal(log.counts[TW_REPAIR_time_fell], 1);
	event_log_done(&log);
	art_header(&b, 3, "clock=wall\n"); /* two places, one clock: the first is it */
	art_record3(&b, 1, 0, 10, 20);
	art_run_done(&log, &b);
	art_check(&log, 0, TW_EV_BEGIN, 0, 10000, -1);
	event_log_done(&log);
	art_header(&b, 2, "");
	art_record2(&b, 1, 0, 10);
	art_run_done(&log, &b);
	art_check(&log, 0, TW_EV_BEGIN, 0, 10000, 10000);
	event_log_done(&log);
}

static void test_header_fields(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	/* a longer header and longer records than are known */
	tw_buf_init(&b, 1 << 16);
	art_bytes(
	        &b, "534c4f57 0300 2300 0100000000000000 1000 0000000000000000000000000000 aabbcc");
	art_bytes(&b,
	        "0100 04000000 01000000 02000000 ffff  0100 05000000 02000000 03000000 ffff 0a");
	art_run_done(&log, &b);
	assert_int_equal(log.n, 2);
	art_check(&log, 1, TW_EV_END_EARLIER, 4, 3000, 2000);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 0); /* a stray line end */
	assert_int_equal(log.counts[TW_REPAIR_trailing_data], 1);
	event_log_done(&log);
}

static void test_refused(void **state)
{
	static const struct {
		const char *hex;
		enum tw_status status;
		uint64_t offset;
	} rows[] = {
	        {"534c4f57 f100 2000", TW_UNSUPPORTED, 4},
	        {"534c4f57 0700 2000", TW_UNSUPPORTED, 4},
	        {"534c4f57 f700 2000", TW_UNSUPPORTED, 4},
	        {"534c4f57 0600 2000", TW_UNSUPPORTED, 4},
	        {"534c4f57 0200 1f00", TW_CORRUPT, 6},
	        {"534c4f57 0300 2000 0100000000000000 0d00", TW_CORRUPT, 16},
	        {"534c4f57 0400 0000 0000000000000000 0000 0000 0000 ff00000000ff", TW_CORRUPT, 22},
	};
	struct event_log log;
	struct tw_buf b;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		tw_buf_init(&b, 1 << 16);
		art_bytes(&b, rows[i].hex);
		while (b.len < 32)
			(void)tw_buf_add_u8(&b, 0);
		art_run_done(&log, &b);
		assert_int_equal(log.status, rows[i].status);
		assert_int_equal(log.err.offset, rows[i].offset);
		event_log_done(&log);
	}
	/* text that ends early, records that are none */
	tw_buf_init(&b, 1 << 16);
	art_text(&b, "*version\n3\nclock=dual\n*threads\n1\tmain\n");
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_CORRUPT);
	event_log_done(&log);
	tw_buf_init(&b, 1 << 16);
	art_text(&b, "*version\n3\n*end\nnot the records that were promised here\n");
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_CORRUPT);
	assert_int_equal(log.err.offset, 16);
	event_log_done(&log);
}

static void test_empty(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	tw_buf_init(&b, 1 << 16);
	art_text(&b, "*version\n2\n*end\n");
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_OK); /* a header and nothing else is a trace */
	assert_int_equal(log.n, 0);
	assert_true(
	        art_reported(&log, "document art {\"layout\":\"header only\",\"version\":\"2\"}"));
	event_log_done(&log);
	tw_buf_init(&b, 1 << 16);
	art_lead(&b, 0xF3, 1, 14);
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_CORRUPT);
	event_log_done(&log);
}

/* --- streams --- */

static void stream_start(struct tw_buf *b)
{
	tw_buf_init(b, 1 << 16);
	art_lead(b, 0xF2, 123456789, 10);
	art_bytes(b, "0000 02 0100 0400 6d61696e");
	art_bytes(b, "0000 01 1100");
	art_text(b, "0\tcom.a.B\tm\t()V\n");
	(void)tw_buf_add_u8(b, '\t');
	art_record2(b, 1, 0, 1);
	art_bytes(
	        b, "0100 06000000 b0040000"); /* thread 1, id 4, left by an exception at 1200 us */
}

static void test_stream(void **state)
{
	static const char end[] = "*version\n2\nclock=wall\npid=9\n*threads\n1\tmain\n2\tother\n"
	                          "*methods\n0x4\tcom.a.B\tn\t()V\tB.java\n*end\n";
	struct event_log log;
	struct tw_buf b;

	(void)state;
	stream_start(&b);
	art_run(&log, &b); /* no summary */
	assert_int_equal(log.n, 2);
	art_check(&log, 0, TW_EV_BEGIN, 0, 1000, -1);
	art_check(&log, 1, TW_EV_END_EARLIER, 4, 1200000, -1);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	assert_int_equal(log.counts[TW_REPAIR_method_unnamed], 1);
	event_log_done(&log);
	art_bytes(&b, "0000 03");
	art_u32(&b, (uint32_t)strlen(end));
	art_text(&b, end);
	art_run(&log, &b);
	assert_int_equal(log.n, 2);
	assert_int_equal(event_log_repairs(&log), 0);
	assert_true(art_reported(&log, "method 4 com.a.B.n()V\n")); /* late, and heals */
	assert_true(art_reported(&log, "2 other\n"));
	assert_true(art_reported(&log, "process 1 9"));
	assert_int_equal(log.clock.pid, 9);
	event_log_done(&log);
	art_text(&b, "\n\nmore");
	art_run_done(&log, &b);
	assert_int_equal(log.counts[TW_REPAIR_trailing_data], 1);
	event_log_done(&log);
	stream_start(&b);
	art_bytes(&b, "0000 04 0000");
	art_record2(&b, 1, 0, 9);
	art_run_done(&log, &b); /* an operation that is none ends the reading */
	assert_int_equal(log.n, 2);
	assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
	event_log_done(&log);
}

/* --- sampling --- */

static void test_sampling(void **state)
{
	(void)state;
	for (int unrolled = 0; unrolled < 2; unrolled++) {
		struct event_log log;
		struct tw_buf b;

		art_header(&b, 2, "clock=wall\n");
		for (unsigned i = 0; i < 30; i++) {
			art_record2(&b, 1, 4, 1000 * i + i % 7);
			art_record2(&b, 1, 8, 1000 * i + i % 7);
			art_record2(&b, 1, i == 20 && unrolled ? 8 | 2 : 8 | 1,
			        1000 * (i + 1) + (i + 1) % 7);
			art_record2(&b, 1, 5, 1000 * (i + 1) + (i + 1) % 7);
		}
		art_run_done(&log, &b);
		assert_int_equal(log.n, 120);
		assert_int_equal(art_reported(&log, "source 2 samples"), !unrolled);
		event_log_done(&log);
	}
}

/* A first stack entered at one time distinguishes a short sampled recording from calls. */
static void test_short_sampling(void **state)
{
	static const struct {
		unsigned stack, samples;
		const char *reported; /* NULL: calls */
	} rows[] = {{5, 3, "source 2 samples 1000000\n"}, {4, 2, "source 2 samples 1000000\n"},
	        {5, 1, "source 2 samples -1\n"}, {3, 4, NULL}};

	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		struct event_log log;
		struct tw_buf b;

		art_header(&b, 2, "clock=wall\n");
		for (uint32_t i = 0; i < rows[k].stack; i++)
			art_record2(&b, 1, 4 * i, 50);
		for (unsigned i = 1; i < rows[k].samples; i++)
			art_record2(&b, 1, i % 2 ? 8 | 1 : 8, 50 + 1000 * i);
		art_run_done(&log, &b);
		assert_int_equal(art_reported(&log, "source"), rows[k].reported != NULL);
		assert_true(!rows[k].reported || art_reported(&log, rows[k].reported));
		event_log_done(&log);
	}
}

/* The header's number of records and the actual one: 173 declared, 15 present. */
static void test_missing_records(void **state)
{
	for (int there = 1; there <= 3; there++) {
		struct event_log log;
		struct tw_buf b;

		(void)state;
		art_header(&b, 2, "clock=wall\nnum-method-calls=3\n");
		for (int i = 0; i < there; i++)
			art_record2(&b, 1, i == 1 ? 7 : 4, 10); /* an invalid action */
		art_run_done(&log, &b);
		assert_int_equal(log.counts[TW_REPAIR_records_missing], 3 - there);
		event_log_done(&log);
	}
}

/* Calls, call tree and methods have CPU time besides wall time: the difference is waiting. */
static void test_both_clocks(void **state)
{
	struct trace_log log;
	struct tw_buf b;
	const struct tw_slice *calls;
	const struct tw_tree_node *nodes;
	size_t n;

	(void)state;
	art_header(&b, 3, "clock=dual\npid=77\n");
	art_record3(&b, 1, 0, 10, 100);
	art_record3(&b, 1, 4, 12, 110);
	art_record3(&b, 1, 5, 15, 150); /* 40 us, of which it ran 3 */
	art_record3(&b, 1, 4, 16, 160);
	art_record3(&b, 1, 5, 21, 170); /* 10 us, of which it ran 5 */
	art_record3(&b, 1, 1, 30, 200);
	assert_int_equal(art_build(&b, &log), TW_OK);
	tw_buf_done(&b);
	assert_true(log.info.has_cpu);
	calls = trace_log_slices(&log, log.threads[0].thread_id, 0, &n);
	assert_int_equal(n, 3);
	assert_int_equal(calls[0].cpu_ns, 20000);
	assert_int_equal(calls[0].dur_ns, 100000);
	assert_int_equal(calls[1].cpu_ns, 3000);
	assert_int_equal(calls[2].cpu_ns, 5000);
	nodes = log.trees[0].nodes;
	assert_int_equal(log.trees[0].n, 3);
	assert_int_equal(nodes[1].cpu_ns, 20000);
	assert_int_equal(nodes[1].total_ns, 100000);
	assert_int_equal(nodes[2].cpu_ns, 3000 + 5000);
	assert_int_equal(nodes[2].total_ns, 40000 + 10000);
	assert_int_equal(art_method_named(&log, "com.a.B.zero()V")->cpu_ns, 20000);
	assert_int_equal(art_method_named(&log, "com.a.B.four(I)V")->cpu_ns, 8000);
	assert_int_equal(art_method_named(&log, "com.a.B.four(I)V")->sum_ns, 50000);
	trace_log_done(&log);
}

static void test_limits(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct event_log log;
	struct tw_buf b;

	(void)state;
	for (unsigned most = 2; most < 4; most++) {
		limits.max_threads = most;
		limits.max_methods = 4096;
		art_header(&b, 2, "clock=wall\n");
		for (unsigned tid = 1; tid < 4; tid++)
			art_record2(&b, tid, 0, tid);
		event_log_run(&log, b.data, b.len, 0, &limits);
		assert_int_equal(log.n, most);
		assert_int_equal(log.counts[TW_REPAIR_thread_limit], 3 - most);
		event_log_done(&log);
		limits.max_methods = most + 2; /* three have names */
		for (uint32_t id = 12; id < 20; id += 4)
			art_record2(&b, 1, id, id);
		event_log_run(&log, b.data, b.len, 0, &limits);
		assert_int_equal(log.n, most + most - 1);
		assert_int_equal(log.counts[TW_REPAIR_slice_limit], 3 - most);
		event_log_done(&log);
		tw_buf_done(&b);
	}
}

/* Runs of records on two threads, whose times wrap around once and sometimes fall. */
static void put_runs(struct tw_buf *b, int version, uint64_t seed)
{
	uint32_t wall = UINT32_MAX - 5000;
	uint32_t cpu = UINT32_MAX - 700;
	unsigned tid = 1;

	for (unsigned i = 0; i < 3000; i++) {
		const uint64_t r = test_random(&seed);
		const uint32_t back = r % 97 == 0 ? 50 : 0;
		const unsigned action = r % 61 == 0 ? 2 + (unsigned)(r >> 8 & 1) : r >> 9 & 1;
		const uint32_t method = (uint32_t)(r >> 16 & 63) + (r >> 22 & 1 ? 1 << 14 : 0);

		if (r % 20 == 0)
			tid = 1 + (unsigned)(r >> 32 & 1);
		wall += 1 + (uint32_t)(r >> 40 & 3);
		cpu += (uint32_t)(r >> 42 & 1);
		if (version == 3)
			art_record3(
			        b, tid, 4 * method | action, cpu - (r & 1 ? back : 0), wall - back);
		else
			art_record2(b, tid, 4 * method | action, wall - back);
	}
}

/* Most records are read in runs, but not when they arrive one by one. */
static void test_runs(void **state)
{
	static const struct {
		int version;
		const char *keys;
	} cases[] = {{3, "clock=dual\n"}, {3, "clock=thread-cpu\n"}, {2, "clock=wall\n"},
	        {2, "clock=thread-cpu\n"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct event_log log;
		struct tw_buf b;

		art_header(&b, cases[i].version, cases[i].keys);
		put_runs(&b, cases[i].version, i + 1);
		art_run_done(&log, &b);
		assert_in_range(log.n, 2900, 2999);
		assert_in_range(log.counts[TW_REPAIR_record_malformed], 1, 99);
		assert_in_range(log.counts[TW_REPAIR_time_fell], 1, 99);
		assert_in_range(log.counts[TW_REPAIR_time_wrapped], 2, 9);
		event_log_done(&log);
	}
}

static void test_no_memory(void **state)
{
	struct tw_buf b;

	(void)state;
	art_header(&b, 2, "clock=wall\nvm=art\n");
	for (unsigned i = 0; i < 500; i++)
		art_record2(&b, 1 + i % 9, 4 * (i % 50), i);
	art_fail_each(&b);
	tw_buf_done(&b);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v1_words),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_method_lines),
        cmocka_unit_test(test_line_limit),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_header_fields),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_short_sampling),
        cmocka_unit_test(test_missing_records),
        cmocka_unit_test(test_both_clocks),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("art", tests)
