/* Unit tests of reading Perfetto traces: the wire, the chain of packets, and every rule of the
 * format.  Inputs of whole traces are those of tests/golden/perfetto and the fuzz corpus
 * (tests/gen/perfetto_cases.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/pbread.h"
#include "decoder/formats/perfetto/perfetto_packets.h"
#include "tests/unit/decoder_formats/perfetto_fixture.h"
#include "tests/unit/unit.h"

/* --- the wire --- */

static void test_fields(void **state)
{
	static const uint8_t bytes[] = {0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1A, 3,
	        'a', 'b', 'c', 0x25, 1, 0, 0, 0, 0xF8, 0xFF, 0xFF, 0xFF, 0x0F, 0x00};
	struct tw_pb r = tw_pb_of(bytes, sizeof bytes);
	struct tw_pb_field f;

	(void)state;
	assert_true(tw_pb_next(&r, &f));
	assert_int_equal(f.number, 1);
	assert_int_equal(f.type, TW_PB_VARINT);
	assert_int_equal(f.value, 150);
	assert_true(tw_pb_next(&r, &f));
	assert_int_equal(f.type, TW_PB_FIXED64);
	assert_int_equal(f.value, 0x0807060504030201);
	assert_true(tw_pb_next(&r, &f));
	assert_true(tw_str_eq(tw_pb_str(&f), TW_STR("abc")));
	assert_true(tw_pb_next(&r, &f));
	assert_int_equal(f.type, TW_PB_FIXED32);
	assert_int_equal(f.value, 1);
	assert_true(tw_pb_next(&r, &f));
	assert_int_equal(f.number, (1 << 29) - 1);
	assert_false(tw_pb_next(&r, &f));
	assert_false(tw_pb_bad(&r));
	assert_true(tw_pb_is_complete(bytes, sizeof bytes));
	assert_true(tw_pb_is_complete(NULL, 0));
	r = tw_pb_of(NULL, 0); /* of which no address may be made: the sanitizers look */
	assert_false(tw_pb_next(&r, &f));
	assert_false(tw_pb_bad(&r));
	/* truncated inside a field it is damaged, and remains so */
	for (size_t n = 0; n < sizeof bytes; n++) {
		bool between = n == 0 || n == 3 || n == 12 || n == 17 || n == 22;

		assert_int_equal(tw_pb_is_complete(bytes, n), between);
		r = tw_pb_of(bytes, n);
		while (tw_pb_next(&r, &f))
			;
		assert_false(tw_pb_next(&r, &f));
		assert_int_equal(tw_pb_bad(&r), !between);
	}
}

/* Short fields are read where they are met, all others by a function: both read any field alike. */
static void test_short_fields(void **state)
{
	uint64_t seed = 29;

	(void)state;
	for (int n = 0; n < 200000; n++) {
		uint8_t bytes[6];
		size_t len = test_random(&seed) % (sizeof bytes + 1);
		struct tw_pb r[2] = {tw_pb_of(bytes, len), tw_pb_of(bytes, len)};
		struct tw_pb_field f[2] = {{0}, {0}};
		bool more = true;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)(test_random(&seed) & (n % 2 ? 0xFF : 0x1F));
		while (more) {
			more = tw_pb_next(&r[0], &f[0]);
			assert_int_equal(more, tw_pb_next_field(&r[1], &f[1]));
			assert_ptr_equal(r[0].at, r[1].at);
			assert_int_equal(tw_pb_bad(&r[0]), tw_pb_bad(&r[1]));
			if (!more)
				break;
			assert_int_equal(f[0].number, f[1].number);
			assert_int_equal(f[0].type, f[1].type);
			assert_int_equal(f[0].value, f[1].value);
			assert_ptr_equal(f[0].bytes, f[1].bytes);
			assert_int_equal(f[0].len, f[1].len);
		}
	}
}

static void test_bad_fields(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t n;
	} bad[] = {{{0x00, 1}, 2}, {{0x0B}, 1}, {{0x0C}, 1}, {{0x0E, 1}, 2}, {{0x0F, 1}, 2},
	        {{0x0A, 2, 1}, 3}, {{0x80, 0x80, 0x80, 0x80, 0x10, 1}, 6},
	        {{0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02}, 11},
	        {{0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}, 11}};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(tw_pb_is_complete(bad[i].bytes, bad[i].n));
}

static void test_packed(void **state)
{
	static const uint8_t bytes[] = {0x01, 0x80, 0x01, 0x80};
	struct tw_pb r = tw_pb_of(bytes, sizeof bytes);
	uint64_t v;

	(void)state;
	assert_true(tw_pb_number(&r, &v));
	assert_int_equal(v, 1);
	assert_true(tw_pb_number(&r, &v));
	assert_int_equal(v, 128);
	assert_false(tw_pb_number(&r, &v));
	assert_true(tw_pb_bad(&r));
	r = tw_pb_of(bytes, 1);
	assert_true(tw_pb_number(&r, &v));
	assert_false(tw_pb_number(&r, &v));
	assert_false(tw_pb_bad(&r));
}

/* --- whole traces --- */

static void *read_file(const char *name, size_t *ret_n)
{
	char path[512];
	FILE *f;
	void *p = malloc(1 << 20);

	(void)snprintf(path, sizeof path, "%s/tests/%s", getenv("TW_SOURCE_ROOT"), name);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_non_null(p);
	*ret_n = fread(p, 1, 1 << 20, f);
	(void)fclose(f);
	return p;
}

static const char *const inputs[] = {"golden/perfetto/minimal/input",
        "golden/perfetto/realistic/input", "golden/perfetto/truncated/input",
        "golden/perfetto/garbage/input", "fuzz/corpus/perfetto/events",
        "fuzz/corpus/perfetto/ftrace", "fuzz/corpus/perfetto/samples"};
enum { INPUTS = sizeof inputs / sizeof *inputs };

/* A truncated trace keeps its earlier events. */
static void test_every_length(void **state)
{
	size_t n;
	uint8_t *p = read_file("golden/perfetto/realistic/input", &n);

	(void)state;
	for (size_t end = 0; end <= n; end++) {
		struct event_log log;

		event_log_run(&log, p, end, 0, NULL);
		if (end > 60) {
			assert_int_equal(log.status, TW_OK);
			assert_string_equal(log.format->name, "perfetto");
			assert_true(log.counts[TW_REPAIR_input_truncated] <= 1);
			assert_int_equal(log.counts[TW_REPAIR_framing_lost], 0);
		}
		event_log_done(&log);
	}
	free(p);
}

static void test_cuts(void **state)
{
	(void)state;
	for (size_t i = 0; i < INPUTS; i++) {
		struct event_log log;
		size_t n;
		void *p = read_file(inputs[i], &n);

		event_log_run_cut(&log, p, n, NULL);
		assert_int_equal(log.status, TW_OK);
		event_log_done(&log);
		free(p);
	}
}

static void test_no_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < INPUTS; i++) {
		size_t n;
		void *p = read_file(inputs[i], &n);

		assert_null(event_log_run_starved(p, n));
		free(p);
	}
}

/* One wrong byte damages at most its neighbourhood. */
static void test_damage(void **state)
{
	struct perfetto_writer w;
	struct event_log log;
	uint64_t random = 5;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	perfetto_thread(&w, 7, 10, 11);
	for (uint64_t i = 0; i < 2000; i++) {
		perfetto_event(&w, BASE + i * 10, 0, 1, "a.B.c");
		perfetto_event(&w, BASE + i * 10 + 5, 0, 2, NULL);
	}
	for (int round = 0; round < 40; round++) {
		size_t at = 4200 + test_random(&random) % (w.out.len - 8000);
		uint8_t old = w.out.data[at];

		w.out.data[at] = (uint8_t)test_random(&random);
		event_log_run_cut(&log, w.out.data, w.out.len, NULL);
		assert_int_equal(log.status, TW_OK);
		assert_true(log.n >= 1900);
		event_log_done(&log);
		w.out.data[at] = old;
	}
	perfetto_done(&w);
}

static void test_lost_and_found(void **state)
{
	static const uint8_t rubbish[] = {0xFF, 0x0A, 0x02, 0x00, 0x0A, 0x0A};
	struct perfetto_writer w;
	struct event_log log;
	size_t at;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	perfetto_thread(&w, 7, 10, 11);
	perfetto_event(&w, BASE, 0, 1, "first");
	perfetto_event(&w, BASE + 1, 0, 2, NULL);
	at = w.out.len;
	for (int i = 0; i < 150000; i++) /* more than several windows */
		(void)tw_buf_add(&w.out, rubbish, sizeof rubbish);
	perfetto_event(&w, BASE + 2, 0, 1, "second");
	perfetto_event(&w, BASE + 3, 0, 2, NULL);
	event_log_run(&log, w.out.data, w.out.len, 0, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.counts[TW_REPAIR_framing_lost], 1);
	assert_int_equal(log.offsets[TW_REPAIR_framing_lost], at);
	event_log_done(&log);
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	event_log_done(&log);
	perfetto_done(&w);
}

static void test_largest_packet(void **state)
{
	(void)state;
	for (size_t over = 0; over < 2; over++) {
		struct perfetto_writer w;
		struct event_log log;
		char *big = calloc(1, TW_PERFETTO_PACKET_MAX);
		size_t head = 2 + 4; /* the tag of field 900, a length of 4 bytes */

		perfetto_begin(&w);
		perfetto_snapshot(&w, BASE, BASE);
		perfetto_thread(&w, 7, 10, 11);
		perfetto_bytes(&w.packet, 900, big, TW_PERFETTO_PACKET_MAX - head + over);
		assert_int_equal(w.packet.len, TW_PERFETTO_PACKET_MAX + over);
		perfetto_packet(&w);
		perfetto_event(&w, BASE + 2, 0, 1, "behind");
		perfetto_event(&w, BASE + 3, 0, 2, NULL);
		event_log_run(&log, w.out.data, w.out.len, 0, NULL);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 1);
		assert_int_equal(log.counts[TW_REPAIR_record_too_large], over);
		event_log_done(&log);
		perfetto_done(&w);
		free(big);
	}
}

/* --- clocks --- */

static void test_clocks(void **state)
{
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE - 1000); /* 1000 ns of sleep so far */
	perfetto_thread(&w, 7, 10, 11);
	perfetto_event(&w, BASE - 1000 + 10, 3, 1, "mono");
	perfetto_event(&w, BASE + 20, 0, 2, NULL);
	perfetto_snapshot(&w, BASE + 10000, BASE + 10000 - 3000); /* it slept again */
	perfetto_event(&w, BASE + 10000 - 3000 + 5, 3, 1, "later");
	perfetto_event(&w, BASE + 10000 + 7, 6, 2, NULL);
	perfetto_event(&w, BASE, 99, 3, "of a clock of a sequence that has none");
	perfetto_event(&w, BASE, 2, 3, "of a clock that nothing relates");
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.events[0].dur_ns, 10);
	assert_int_equal(log.events[1].dur_ns, 2);
	assert_int_equal(log.events[1].ts_ns - log.events[0].ts_ns, 9995);
	assert_int_equal(log.clock.boot_base_ns - log.clock.mono_base_ns, 1000);
	assert_int_equal(log.clock.boot_base_ns + log.clock.session_ns, BASE);
	assert_int_equal(log.counts[TW_REPAIR_clock_unknown], 2);
	event_log_done(&log);
	perfetto_done(&w);
}

/* Snapshots without the trace's clock are placed by the others', whose readings each put the next
 * one farther off: what comes of it stays within the times that there are. */
static void test_clocks_far_off(void **state)
{
	const uint64_t far = UINT64_C(1) << 61;
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_clock(&w, 6, BASE);
	perfetto_clock(&w, 5, 1);
	perfetto_snapshot(&w, 0, 1);
	perfetto_thread(&w, 7, 10, 11);
	for (uint64_t i = 2; i < 6; i++) {
		perfetto_clock(&w, i % 2 ? 5 : 3, far);
		perfetto_clock(&w, i % 2 ? 3 : 5, i);
		perfetto_sub(&w.packet, 6, &w.message);
		perfetto_packet(&w);
	}
	perfetto_event(&w, BASE + 1, 0, 3, "here");
	perfetto_event(&w, far, 5, 3, "read off the nearest snapshot");
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	perfetto_done(&w);
}

/* Packets of several buffers are not in the order of time. */
static void test_before_the_first(void **state)
{
	struct perfetto_writer w;
	struct event_log log;
	const uint64_t minute = 60000000000;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	perfetto_thread(&w, 7, 10, 11);
	perfetto_event(&w, BASE - minute, 0, 3, "at the limit");
	perfetto_event(&w, BASE - minute - 1, 0, 3, "past it");
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.counts[TW_REPAIR_begin_clamped], 1);
	event_log_done(&log);
	perfetto_done(&w);
}

static void test_no_snapshot(void **state)
{
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_thread(&w, 7, 10, 11);
	perfetto_event(&w, 500, 3, 1, "x");
	perfetto_event(&w, 700, 3, 2, NULL);
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 1);
	assert_int_equal(log.events[0].ts_ns, 500);
	assert_int_equal(log.clock.mono_base_ns, 0);
	assert_int_equal(log.clock.boot_base_ns, -1);
	event_log_done(&log);
	perfetto_done(&w);
}

/* --- begins and ends --- */

enum { EDGES = 400 };

/* Begins and ends of two threads by two sequences, some without a track, with names that are
 * undefined or lost.  Each packet has a number that is not read: 79 has a long tag, so that the
 * packet is not one of few short numbers. */
static void make_edges(struct perfetto_writer *w, uint64_t seed, bool is_short)
{
	perfetto_snapshot(w, BASE, BASE);
	perfetto_thread(w, 7, 10, 11);
	perfetto_thread(w, 8, 10, 12);
	for (uint64_t i = 0; i < EDGES; i++) {
		const uint64_t r = test_random(&seed);

		perfetto_num(&w->packet, 8, BASE + i * 10 - (r >> 40 & 15));
		perfetto_num(&w->packet, 10, 1 + (r & 1));
		perfetto_num(&w->packet, is_short ? 7 : 79, is_short ? 128 : 1); /* 3 bytes */
		if (r >> 1 & 1)
			perfetto_num(&w->packet, 13, r >> 2 & 31 ? 2 : 1);
		if ((r >> 8 & 63) == 0)
			perfetto_num(&w->packet, 42, 1);
		if ((r >> 14 & 7) == 0) {
			perfetto_num(&w->inner, 1, 1 + (r >> 17 & 3));
			perfetto_str(&w->inner, 2, "a name");
			perfetto_sub(&w->message, 2, &w->inner);
			perfetto_sub(&w->packet, 12, &w->message);
		}
		perfetto_num(&w->message, 9, 1 + (r >> 20 & 1));
		if (r >> 21 & 7)
			perfetto_num(&w->message, 11, 7 + (r >> 24 & 1));
		if (r >> 25 & 1)
			perfetto_num(&w->message, 10, 1 + (r >> 26 & 3));
		perfetto_sub(&w->packet, 11, &w->message);
		perfetto_packet(w);
	}
}

/* Packets of few short numbers have their own reader, which gives the same events. */
static void test_edges(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct perfetto_writer w[2];
		struct event_log log[2];

		for (int i = 0; i < 2; i++) {
			perfetto_begin(&w[i]);
			make_edges(&w[i], seed, i == 0);
			event_log_run_cut(&log[i], w[i].out.data, w[i].out.len, NULL);
			assert_int_equal(log[i].status, TW_OK);
			assert_true(log[i].n > EDGES / 8);
		}
		assert_int_equal(w[0].out.len, w[1].out.len);
		assert_null(event_log_differs(&log[0], &log[1]));
		for (int i = 0; i < 2; i++) {
			event_log_done(&log[i]);
			perfetto_done(&w[i]);
		}
	}
}

/* --- depth --- */

static void test_depth(void **state)
{
	const struct tw_limits standard = tw_limits_default();

	(void)state;
	for (uint32_t over = 0; over < 2; over++) {
		struct tw_limits limits = standard;
		struct perfetto_writer w;
		struct event_log log;

		limits.max_depth = 8;
		perfetto_begin(&w);
		perfetto_snapshot(&w, BASE, BASE);
		perfetto_thread(&w, 7, 10, 11);
		for (uint64_t i = 0; i < 8 + over; i++)
			perfetto_event(&w, BASE + i, 0, 1, "f");
		for (uint64_t i = 0; i < 8 + over; i++)
			perfetto_event(&w, BASE + 100 + i, 0, 2, NULL);
		event_log_run_cut(&log, w.out.data, w.out.len, &limits);
		assert_int_equal(log.n, 8);
		assert_int_equal(log.counts[TW_REPAIR_depth_clipped], over);
		assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 0);
		assert_int_equal(
		        log.events[0].dur_ns, 100 + over - 7); /* the innermost ones retained */
		event_log_done(&log);
		perfetto_done(&w);
	}
}

/* --- recognising --- */

static void test_probe(void **state)
{
	static const char *const texts[] = {"\n", "\n\n\n", "\nB|1|x\n", "\n{\"a\":1}\n",
	        "\n----- pid 12 at 2024-01-01 -----\nCmd line: a.b\n", "", "\n0"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_false(
		        tw_perfetto_packets_begin((const uint8_t *)texts[i], strlen(texts[i])));
	for (size_t i = 0; i < INPUTS; i++) {
		size_t n;
		uint8_t *p = read_file(inputs[i], &n);

		assert_true(tw_perfetto_packets_begin(p, n < 4096 ? n : 4096));
		free(p);
	}
}

static void test_nothing_readable(void **state)
{
	/* begins like a packet and never ends */
	static const uint8_t bytes[24] = {0x0A, 0x40, 0x40, 0x01, 0x50, 0x01, 0x5A, 0x30};
	struct event_log log;

	(void)state;
	event_log_run_cut(&log, bytes, sizeof bytes, NULL);
	assert_int_equal(log.status, TW_CORRUPT);
	event_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_short_fields),
        cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_lost_and_found),
        cmocka_unit_test(test_largest_packet),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_clocks_far_off),
        cmocka_unit_test(test_before_the_first),
        cmocka_unit_test(test_no_snapshot),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_nothing_readable),
};

UNIT_TESTS("perfetto_in", tests)
