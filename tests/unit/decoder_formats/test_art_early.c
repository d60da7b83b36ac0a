/* ART traces of version 4 and 5 as development builds of 2024 wrote them: form A. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/decoder_formats/art_fixture.h"
#include "tests/unit/unit.h"

enum { MAIN = 4242, START_US = 1000000, LONG = 70000 };

#define RUN  "com.example.Main\trun\t()V\tMain.java\n"
#define STEP "com.example.Main\tstep\t(I)V\tMain.java\n"
/* run { step { } } on both clocks: 1000, 2500, 2600, 2700 us of wall, 100, 1500, 1550, 1600 of
 * CPU */
#define BLOCK  "02 92100000 00000000 64000000 e8030000 0300 0b00 "
#define OTHERS "04 dc0b f80a  05 64 32  01 64 32"

static void lead(struct tw_buf *b, unsigned version)
{
	art_text(b, "SLOW");
	art_u16(b, version);
	(void)tw_buf_add_u64le(b, START_US);
	for (int i = 0; i < 18; i++)
		(void)tw_buf_add_u8(b, 0);
}

static void method(struct tw_buf *b, uint32_t number, const char *line)
{
	(void)tw_buf_add_u8(b, 1);
	art_u32(b, number);
	art_u16(b, (unsigned)strlen(line));
	art_text(b, line);
}

static void start(struct tw_buf *b, unsigned version, uint32_t second)
{
	tw_buf_init(b, 1 << 20);
	lead(b, version);
	art_bytes(b, "00 92100000 0400");
	art_text(b, "main");
	method(b, 0, RUN);
	method(b, second, STEP);
}

static void summary(struct tw_buf *b, const char *clock)
{
	static const char rest[] = "elapsed-time-usec=3000\nvm=art\npid=4242\n*end\n";
	char text[200];
	int n = snprintf(text, sizeof text, "*version\n5\nclock=%s\n%s", clock, rest);

	(void)tw_buf_add_u8(b, 3);
	art_u16(b, (unsigned)n);
	art_text(b, text);
}

static void check_calls(const struct event_log *log)
{
	assert_int_equal(log->status, TW_OK);
	assert_int_equal(log->n, 4);
	art_check(log, 0, TW_EV_BEGIN, 0, 1000000, 100000);
	art_check(log, 1, TW_EV_BEGIN, 4, 2500000, 1500000);
	art_check(log, 2, TW_EV_END_EARLIER, 4, 2600000, 1550000);
	art_check(log, 3, TW_EV_END_EARLIER, 0, 2700000, 1600000);
	assert_int_equal(log->events[0].track, MAIN + 1);
	assert_int_equal(log->events[3].dur_ns, 1000); /* the unit of time */
	assert_int_equal(log->clock.mono_base_ns, (int64_t)START_US * 1000);
	assert_int_equal(event_log_repairs(log), 0);
}

static void test_stream(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	start(&b, 0xF5, 1);
	art_bytes(&b, BLOCK OTHERS);
	summary(&b, "dual");
	art_run_done(&log, &b);
	check_calls(&log);
	assert_true(art_reported(&log, "4 com.example.Main.step(I)V"));
	assert_true(art_reported(&log, "\"layout\":\"v2-A\""));
	event_log_done(&log);
}

/* Numbers of methods as records write them. */
static void test_numbers_alike(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	start(&b, 0xF5, 4);
	art_bytes(&b, BLOCK OTHERS);
	summary(&b, "dual");
	art_run_done(&log, &b);
	check_calls(&log);
	assert_true(art_reported(&log, "4 com.example.Main.step(I)V"));
	event_log_done(&log);
}

static void test_one_clock(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	start(&b, 0xF4, 1);
	art_bytes(&b, "02 92100000 00000000 e8030000 0100 0200  01 64");
	summary(&b, "wall");
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 2);
	art_check(&log, 0, TW_EV_BEGIN, 0, 1000000, -1);
	art_check(&log, 1, TW_EV_END_EARLIER, 0, 1100000, -1);
	event_log_done(&log);
}

/* A file has its text in front, and names no methods. */
static void test_file(void **state)
{
	static const char text[] = "*version\n4\ndata-file-overflow=false\nclock=thread-cpu\n"
	                           "elapsed-time-usec=3000\nnum-method-calls=2\npid=4242\n*end\n";
	struct event_log log;
	struct tw_buf b;

	(void)state;
	tw_buf_init(&b, 1 << 20);
	art_text(&b, text);
	lead(&b, 4);
	art_bytes(&b, "02 92100000 00000000 e8030000 0100 0200  01 64");
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_OK);
	art_check(&log, 0, TW_EV_BEGIN, 0, 1000000, 1000000);
	art_check(&log, 1, TW_EV_END_EARLIER, 0, 1100000, 1100000);
	assert_true(art_reported(&log, "0 <unknown 0x0>"));
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 0);
	assert_int_equal(log.counts[TW_REPAIR_cpu_clock_only], 1);
	assert_int_equal(log.clock.mono_base_ns, (int64_t)START_US * 1000);
	event_log_done(&log);
}

/* One record alone; the next block; a time past 2^32 within a block and between two. */
static void test_blocks(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	start(&b, 0xF4, 1);
	art_bytes(&b, "02 92100000 00000000 e8030000 0000 0000");
	art_bytes(&b, "02 92100000 04000000 ffffffff 0100 0200  01 02");
	art_bytes(&b, "02 92100000 01000000 10000000 0000 0000");
	summary(&b, "wall");
	art_run_done(&log, &b);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 4);
	art_check(&log, 1, TW_EV_BEGIN, 4, 4294967295000, -1);
	art_check(&log, 2, TW_EV_END_EARLIER, 4, 4294967297000, -1);
	art_check(&log, 3, TW_EV_END_EARLIER, 0, 4294967312000, -1);
	event_log_done(&log);
}

/* More records than 16 bits count, and more bytes. */
static void test_long_block(void **state)
{
	struct event_log log;
	struct tw_buf b;
	size_t counts;

	(void)state;
	start(&b, 0xF4, 1);
	art_bytes(&b, "02 92100000 00000000 00000000");
	counts = b.len;
	art_bytes(&b, "0000 0000");
	for (int i = 0; i < LONG; i++) /* step, again and again */
		art_bytes(&b, i % 2 ? "05 01" : "04 01");
	b.data[counts] = LONG & 0xFF;
	b.data[counts + 1] = LONG >> 8 & 0xFF;
	b.data[counts + 2] = 2 * LONG & 0xFF;
	b.data[counts + 3] = 2 * LONG >> 8 & 0xFF;
	summary(&b, "wall");
	event_log_run(&log, b.data, b.len, 7, NULL);
	tw_buf_done(&b);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, LONG + 1);
	art_check(&log, LONG, TW_EV_END_EARLIER, 4, LONG * 1000, -1);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_damaged(void **state)
{
	struct event_log log;
	struct tw_buf b;

	(void)state;
	start(&b, 0xF5, 1);
	art_bytes(&b, BLOCK "04 dc0b f80a  05 64");
	art_run_done(&log, &b);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);

	start(&b, 0xF5, 1);
	art_bytes(&b, BLOCK "07 dc0b f80a  05 64 32");
	art_bytes(&b, "ffffffffffffffffffffffffffffffff ffffffffffffffffffffffffffffffff");
	art_run_done(&log, &b);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 1); /* no such action */
	assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
	event_log_done(&log);
}

/* A thread past the limit is left out, and what follows is read. */
static void test_limit(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct event_log log;
	struct tw_buf b;

	(void)state;
	limits.max_threads = 1;
	start(&b, 0xF4, 1);
	art_bytes(&b, "02 92100000 00000000 e8030000 0000 0000");
	art_bytes(&b, "02 93100000 00000000 e8030000 0100 0200  01 64");
	art_bytes(&b, "02 92100000 01000000 ea030000 0000 0000");
	summary(&b, "wall");
	event_log_run(&log, b.data, b.len, 0, &limits);
	tw_buf_done(&b);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.counts[TW_REPAIR_thread_limit], 1);
	event_log_done(&log);
}

static void test_no_memory(void **state)
{
	struct tw_buf b;

	(void)state;
	start(&b, 0xF5, 1);
	art_bytes(&b, BLOCK OTHERS);
	summary(&b, "dual");
	art_fail_each(&b);
	tw_buf_done(&b);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_numbers_alike),
        cmocka_unit_test(test_one_clock),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_long_block),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("art_early", tests)
