/* ART traces of version 4 and 5 and dumps: the worked bytes of each form, and damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/decoder_formats/art_fixture.h"
#include "tests/unit/unit.h"

enum { A_PTR = 0x7132a0b8, B_PTR = 0x7132a0e8, MAIN = 4242 };

static void lead_v2(struct tw_buf *b, unsigned version, uint64_t ticks_per_s)
{
	tw_buf_init(b, 1 << 20);
	art_text(b, "SLOW");
	art_u16(b, version);
	(void)tw_buf_add_u64le(b, 123456789000);
	(void)tw_buf_add_u64le(b, ticks_per_s ? 1000000000000 : 0);
	(void)tw_buf_add_u64le(b, ticks_per_s);
	art_u16(b, 0);
}

static void main_thread_v2(struct tw_buf *b)
{
	(void)tw_buf_add_u8(b, 0);
	art_u32(b, MAIN);
	art_u16(b, sizeof "main" - 1);
	art_text(b, "main");
}

static void method_v2(struct tw_buf *b, uint64_t id, const char *line)
{
	(void)tw_buf_add_u8(b, 1);
	(void)tw_buf_add_u64le(b, id);
	art_u16(b, (unsigned)strlen(line));
	art_text(b, line);
}

static void methods_v2(struct tw_buf *b)
{
	method_v2(b, A_PTR, "com.example.Main\trun\t()V\tMain.java\n");
	method_v2(b, B_PTR, "com.example.Main\tstep\t(I)V\tMain.java\n");
}

static void block_v2(struct tw_buf *b, unsigned count, const char *hex)
{
	struct tw_buf body;

	tw_buf_init(&body, 1 << 20);
	art_bytes(&body, hex);
	(void)tw_buf_add_u8(b, 2);
	art_u32(b, MAIN);
	art_u16(b, count & 0xFFFF);
	(void)tw_buf_add_u8(b, (uint8_t)(count >> 16));
	art_u32(b, (uint32_t)body.len);
	(void)tw_buf_add(b, body.data, body.len);
	tw_buf_done(&body);
}

static void summary_v2(struct tw_buf *b, const char *clock)
{
	(void)tw_buf_add_u8(b, 3);
	art_u16(b, 0);
	(void)tw_buf_printf(b, "*version\n5\nclock=%s\npid=%d\n*end\n", clock, MAIN);
}

/* The trace of six records that the layouts are checked with. */
static void check_six(const struct event_log *log, bool cpu)
{
	static const struct {
		int64_t ns, cpu_ns;
		uint64_t method;
		bool enter;
	} rows[] = {{1000, 100, A_PTR, true}, {2500, 1500, B_PTR, true},
	        {900000, 700000, B_PTR, false}, {1000000, 700100, B_PTR, true},
	        {1200000, 800000, B_PTR, false}, {2000000, 900000, A_PTR, false}};

	assert_int_equal(log->status, TW_OK);
	assert_int_equal(log->n, 6);
	for (size_t i = 0; i < 6; i++)
		art_check(log, i, rows[i].enter ? TW_EV_BEGIN : TW_EV_END_EARLIER, rows[i].method,
		        rows[i].ns, cpu ? rows[i].cpu_ns : -1);
	assert_true(art_reported(log, "note unroll 4243 1200000 -1"));
	assert_int_equal(log->clock.mono_base_ns, 123456789000);
	assert_int_equal(event_log_repairs(log), 0);
}

/* --- versions 4 and 5 --- */

#define B_DUAL                                                                                     \
	"b8c1ca8907 e807 64  30 dc0b f80a  01 dce336 84d12a  7f a08d06 64  02 c09a0c bc8c06 "      \
	"4f 80ea30 a08d06"

static void test_form_b(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	lead_v2(&b, 0xF5, 0);
	main_thread_v2(&b);
	methods_v2(&b);
	block_v2(&b, 6, B_DUAL);
	summary_v2(&b, "dual");
	art_run_done(&log, &b);
	check_six(&log, true);
	assert_true(art_reported(&log, "\"layout\":\"v2-B\""));
	event_log_done(&log);
	lead_v2(&b, 4, 0);
	methods_v2(&b);
	block_v2(&b, 6, "b8c1ca8907 e807 30 dc0b 01 dce336 7f a08d06 02 c09a0c 4f 80ea30");
	summary_v2(&b, "wall");
	art_run_done(&log, &b);
	check_six(&log, false);
	event_log_done(&log);
}

static void test_form_b_split(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	for (int late = 0; late < 2;
	        late++) { /* recognised by known methods, or by the count alone */
		lead_v2(&b, 0xF5, 0);
		if (!late)
			methods_v2(&b);
		block_v2(&b, 3, "b8c1ca8907 e807 64  30 dc0b f80a  01 dce336 84d12a");
		block_v2(&b, 6, "7f a08d06 64  02 c09a0c bc8c06  4f 80ea30 a08d06");
		if (late)
			methods_v2(&b);
		summary_v2(&b, "dual");
		art_run_done(&log, &b);
		check_six(&log, true);
		event_log_done(&log);
	}
}

static void test_form_c(void **state)
{
	static const char records[] = "e807 e400 b8c1ca8907  dc0b dc0b 30  dde336 e0dc2a";
	struct event_log log;
	struct tw_buf b;

	(void)state;
	lead_v2(&b, 0xF5, 250000000);
	main_thread_v2(&b);
	methods_v2(&b);
	block_v2(&b, 3, records);
	art_run(&log, &b);
	assert_int_equal(log.n, 3);
	art_check(&log, 0, TW_EV_BEGIN, A_PTR, 1000, 100);
	art_check(&log, 1, TW_EV_BEGIN, B_PTR, 2500, 1500);
	art_check(&log, 2, TW_EV_END_EARLIER, UNNAMED, 900000, 700000);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);
	tw_buf_done(&b);
	/* times in ns: the header is the same as that of form B */
	lead_v2(&b, 0xF4, 0);
	methods_v2(&b);
	block_v2(&b, 3, "a01f b8c1ca8907  f02e 30  f18edb01");
	summary_v2(&b, "wall");
	art_run_done(&log, &b);
	assert_int_equal(log.n, 3);
	art_check(&log, 0, TW_EV_BEGIN, A_PTR, 1000, -1);
	art_check(&log, 1, TW_EV_BEGIN, B_PTR, 2500, -1);
	art_check(&log, 2, TW_EV_END_EARLIER, UNNAMED, 900000, -1);
	assert_true(art_reported(&log, "\"layout\":\"v2-C\""));
	event_log_done(&log);
}

static void test_packets_damaged(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	lead_v2(&b, 0xF5, 0);
	methods_v2(&b);
	block_v2(&b, 6, B_DUAL);
	block_v2(&b, 2, "b8c1ca8907 80c2d72f 64 30 ff"); /* the second is cut short */
	block_v2(&b, 0, "");
	art_text(&b, "\tno packet");
	art_run_done(&log, &b);
	assert_int_equal(log.n, 7);
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 1);
	assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
	event_log_done(&log);
	/* the input ends in a block: its whole records count */
	lead_v2(&b, 0xF5, 0);
	methods_v2(&b);
	block_v2(&b, 6, B_DUAL);
	b.len -= 3;
	art_run_done(&log, &b);
	assert_int_equal(log.n, 5);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 0);
	event_log_done(&log);
	/* a block that declares an impossible size */
	lead_v2(&b, 0xF5, 0);
	block_v2(&b, 6, B_DUAL);
	b.data[32 + 8 + 3] = 0x02;
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_CORRUPT);
	assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
	event_log_done(&log);
}

/* --- dumps --- */

static void dump_start(struct tw_buf *b)
{
	tw_buf_init(b, 1 << 16);
	art_bytes(b, "03 00e40b5402000000 00ca9a3b00000000");
}

static void test_long_running(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	dump_start(&b);
	block_v2(&b, 3, "e0f7c8e99707 b8c1ca8907  b817 30  b9c7ed00");
	main_thread_v2(&b);
	methods_v2(&b);
	art_run_done(&log, &b);
	assert_int_equal(log.n, 3);
	art_check(&log, 0, TW_EV_BEGIN, A_PTR, log.events[0].ts_ns, -1);
	art_check(&log, 1, TW_EV_BEGIN, B_PTR, log.events[0].ts_ns + 1500, -1);
	art_check(&log, 2, TW_EV_END_EARLIER, UNNAMED, log.events[2].ts_ns, -1);
	assert_int_equal(log.clock.mono_base_ns, 0);
	assert_true(art_reported(&log, "method 1899143352 com.example.Main.run"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_counts(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	dump_start(&b);
	/* A { B { } B { } } without times or size: +48, exit +1, -1 enters B again, exits */
	art_bytes(&b, "02 92100000 060000 00000000");
	art_bytes(&b, "b8c1ca8907 30 01 7f 01 00");
	main_thread_v2(&b);
	methods_v2(&b);
	art_run_done(&log, &b);
	assert_int_equal(log.n, 7);
	art_check(&log, 0, TW_EV_BEGIN, A_PTR, 0, -1);
	art_check(&log, 1, TW_EV_BEGIN, B_PTR, 1, -1);
	art_check(&log, 2, TW_EV_END_EARLIER, UNNAMED, 2, -1);
	art_check(&log, 3, TW_EV_BEGIN, B_PTR, 2, -1);
	art_check(&log, 4, TW_EV_END_EARLIER, UNNAMED, 3, -1);
	art_check(&log, 5, TW_EV_END_EARLIER, UNNAMED, 3, -1);
	assert_int_equal(log.events[6].kind, TW_EV_END_ALL);
	assert_true(art_reported(&log, "source 4243 counts 0"));
	assert_int_equal(log.clock.mono_base_ns, -1);
	event_log_done(&log);
}

static void test_counted(void **state)
{
	struct trace_log log;
	struct tw_buf b;

	(void)state;
	dump_start(&b);
	art_bytes(&b, "02 92100000 050000 00000000 b8c1ca8907 30 01 7f 01");
	methods_v2(&b);
	assert_int_equal(art_build(&b, &log), TW_OK);
	tw_buf_done(&b);
	assert_int_equal(log.info.slices, 3);
	assert_int_equal(log.threads[0].source, TW_SOURCE_COUNTS);
	assert_int_equal(art_method_named(&log, "com.example.Main.run()V")->sum_ns, 3);
	assert_int_equal(art_method_named(&log, "com.example.Main.run()V")->self_ns, 1);
	assert_int_equal(art_method_named(&log, "com.example.Main.step(I)V")->count, 2);
	trace_log_done(&log);
}

static void test_no_memory(void **state)
{
	struct tw_buf b;

	(void)state;
	lead_v2(&b, 0xF5, 0);
	methods_v2(&b);
	block_v2(&b, 6, B_DUAL);
	art_fail_each(&b);
	tw_buf_done(&b);
}

static void test_probe(void **state)
{
	static const struct {
		const char *hex;
		bool art;
	} rows[] = {{"2a76657273696f6e0a320a", true}, {"2a76657273696f6e20320a", false},
	        {"534c4f57", true}, {"534c4f58 0100", false},
	        {"03 00e40b5402000000 00ca9a3b00000000 00 92100000 0400 6d61696e 00000000", true},
	        {"03 00e40b5402000000 00ca9a3b00000000 07 92100000 0400 6d61696e 00000000", false},
	        {"03 0000000000000000 00ca9a3b00000000 00 92100000 0400 6d61696e 00000000", false},
	        {"03 00e40b5402000000 00ca9a3b00000000 00 92100000 0400 6d016e6e 00000000", false}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tw_format *f;
		struct tw_buf b;

		tw_buf_init(&b, 1 << 16);
		art_bytes(&b, rows[i].hex);
		f = tw_format_probe(b.data, b.len);
		if ((f && strcmp(f->name, "art") == 0) != rows[i].art)
			fail_msg("%s", rows[i].hex);
		tw_buf_done(&b);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form_b),
        cmocka_unit_test(test_form_b_split),
        cmocka_unit_test(test_form_c),
        cmocka_unit_test(test_packets_damaged),
        cmocka_unit_test(test_long_running),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_probe),
};

UNIT_TESTS("art_packet", tests)
