/* A recording of ours joined to the device's own Perfetto trace: nothing of the device's changes,
 * nothing clashes, and ours stands where the clocks say, whatever the device's trace is like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/fixtures/event_log.h"
#include "tests/fixtures/merged_fixture.h"
#include "tests/unit/unit.h"

/* --- the shapes of traces --- */

static void test_shapes(void **state)
{
	static const enum tw_perfetto_compression compressions[] = {
	        TW_PERFETTO_AS_IS, TW_PERFETTO_PACKETS};

	(void)state;
	for (int i = 0; i < 48; i++) {
		struct system_shape s = merged_usual();
		struct tw_perfetto_options o = {.compression = compressions[i & 1]};
		struct merged x;

		s.flushed = i & 2;
		s.sdk = i & 4;
		s.folded = i % 3 == 0 ? 0 : i % 3 == 1 ? 50 : 133;
		if (i & 8) {
			s.sleep_at_ns = 25000;
			s.sleep_ns = 3600 * S;
		}
		merged_make(&x, &s, 400 * S + 10000, 500 * S + 10000, &o);
		assert_int_equal(perfetto_errors(&x.trace), 0);
		merged_same_packets(&x);
		merged_same_calls(&x, &s, 400 * S + 10000);
		assert_true(merged_has(&x, "clock", "monotonic"));
		assert_int_equal(merged_number(&x, "clock_offset_ns"), 100 * S);
		assert_true(merged_has(&x, "tracewell_url", "https://t.example/traces/01ABC"));
		assert_int_equal(
		        merged_number(&x, "system_trace_packets") >= (int64_t)x.alone.n_packets, 1);
		merged_done(&x);
	}
}

/* The device's descriptor of a thread is used, so that the thread appears once. */
static void test_known_thread(void **state)
{
	struct system_shape s = merged_usual();
	const struct tw_perfetto_options o = {0};
	struct merged x;

	(void)state;
	s.sdk = true;
	merged_make(&x, &s, 400 * S, 500 * S, &o);
	assert_int_equal(x.trace.two_threads, 0);
	assert_int_equal(perfetto_errors(&x.trace), 0);
	/* the device's descriptor of the second thread remains, ours of the others */
	assert_int_equal(x.trace.n_threads, THREADS);
	merged_done(&x);
}

/* --- clocks --- */

struct clock_case {
	const char *what;
	int64_t mono_ns, boot_ns; /* of the recording; -1 unknown */
	int64_t sleep_at_ns;
	bool no_clocks;
	const char *choice; /* NULL: left out */
	int64_t shift_ns;   /* of where MONOTONIC would put it */
};

static void test_clocks(void **state)
{
	static const struct clock_case cases[] = {
	        {"both", 400 * S + 5000, 500 * S + 5000, 0, false, "monotonic", 0},
	        {"read a little apart", 400 * S + 5000, 500 * S + 9000, 0, false, "monotonic", 0},
	        {"MONOTONIC alone", 400 * S + 5000, -1, 0, false, "monotonic", 0},
	        {"BOOTTIME alone", -1, 500 * S + 5000, 0, false, "boottime", 0},
	        {"asleep in the middle", 400 * S + 5000, 500 * S + 5000, 20000, false, "monotonic",
	                0},
	        {"none", -1, -1, 0, false, "start", 0},
	        {"the device's has none", 400 * S + 5000, 500 * S + 5000, 0, true, "boottime", 0},
	        {"the device's has none, MONOTONIC", 400 * S + 5000, -1, 0, true, "start", 0},
	        {"earlier", 300 * S, 400 * S, 0, false, NULL, 0},
	        {"later", 500 * S, 600 * S, 0, false, NULL, 0},
	        {"another boot", 400 * S + 5000, 9000 * S, 0, false, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct clock_case *c = &cases[i];
		const struct tw_perfetto_options o = {0};
		struct system_shape s = merged_usual();
		struct merged x;

		s.sleep_at_ns = c->sleep_at_ns;
		s.sleep_ns = c->sleep_at_ns ? 60 * S : 0;
		s.no_clocks = c->no_clocks;
		merged_make(&x, &s, c->mono_ns, c->boot_ns, &o);
		if (perfetto_errors(&x.trace) ||
		        !merged_has(&x, "clock", c->choice ? c->choice : "alone"))
			merged_print_why(&x, c->what);
		assert_int_equal(perfetto_errors(&x.trace), 0);
		assert_true(merged_has(&x, "clock", c->choice ? c->choice : "alone"));
		if (!c->choice) {
			assert_true(merged_has(&x, "system_trace_left_out",
			        "its clocks belong to another time or device"));
			assert_int_equal(x.trace.n_runs, 0);
		} else {
			merged_same_packets(&x);
		}
		if (c->choice && strcmp(c->choice, "start") != 0)
			merged_same_calls(&x, &s, c->mono_ns < 0 ? 400 * S + 5000 : c->mono_ns);
		merged_done(&x);
	}
}

/* The recording began before the device's trace and the device slept in between: the recording's
 * own pair counts until the device's first snapshot. */
static void test_slept_before(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct system_shape s = merged_usual();
	struct merged x;
	int64_t first_end = 0;

	(void)state;
	/* zero is 1,000 ns of MONOTONIC before the trace; since then it slept 50 s */
	merged_make(&x, &s, 400 * S - 1000, 450 * S - 1000, &o);
	assert_int_equal(perfetto_errors(&x.trace), 0);
	assert_true(merged_has(&x, "clock", "monotonic"));
	for (size_t i = 0; i < x.trace.n; i++)
		if (merged_is_call(&x.trace.slices[i]) && x.trace.slices[i].begin_ns < 460 * S &&
		        x.trace.slices[i].begin_ns > first_end)
			first_end = x.trace.slices[i].begin_ns;
	assert_true(first_end < 450 * S); /* before its sleep, where its own clocks put it */
	for (size_t i = 0; i < x.trace.n; i++)
		if (merged_is_call(&x.trace.slices[i]) && x.trace.slices[i].begin_ns > 460 * S)
			assert_true(x.trace.slices[i].begin_ns >= 500 * S);
	merged_done(&x);
}

/* --- bad input --- */

/* Truncated anywhere: all complete packets are there, and all of ours. */
static void test_cut(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct system_shape s = merged_usual();
	struct merged x;
	size_t whole;

	(void)state;
	s.flushed = s.sdk = true;
	merged_make(&x, &s, 400 * S + 10000, 500 * S + 10000, &o);
	whole = x.system.len;
	for (size_t at = whole / 2; at < whole; at += 37) {
		struct tw_buf part = x.system;

		part.len = at;
		merged_with_system(&x, &part);
		assert_int_equal(perfetto_errors(&x.trace), 0);
		merged_same_calls(&x, &s, 400 * S + 10000);
	}
	merged_done(&x);
}

static void test_damaged(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct system_shape s = merged_usual();
	uint64_t random = 99;
	struct merged x;

	(void)state;
	merged_make(&x, &s, 400 * S + 10000, 500 * S + 10000, &o);
	for (int i = 0; i < 60; i++) {
		struct tw_buf bad;
		size_t ours = 0;

		tw_buf_init(&bad, 1 << 24);
		(void)tw_buf_add(&bad, x.system.data, x.system.len);
		for (int k = 0; k < 1 + i; k++)
			bad.data[test_random(&random) % bad.len] = (uint8_t)test_random(&random);
		merged_with_system(&x, &bad);
		for (size_t k = 0; k < x.trace.n; k++)
			ours += merged_is_call(&x.trace.slices[k]);
		assert_int_equal(ours, x.m.n);
		tw_buf_done(&bad);
	}
	merged_done(&x);
}

static void test_no_trace(void **state)
{
	static const char *const texts[] = {"", "x", "\n", "this is no trace at all",
	        "{\"traceEvents\":[]}", "PK\003\004", "\x1f\x8b\x08"};
	const struct tw_perfetto_options o = {0};
	struct system_shape s = merged_usual();
	struct merged x;

	(void)state;
	merged_make(&x, &s, 400 * S + 10000, 500 * S + 10000, &o);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct tw_buf b;
		size_t ours = 0;

		tw_buf_init(&b, 1000);
		(void)tw_buf_add_str(&b, tw_str_of(texts[i]));
		merged_with_system(&x, &b);
		assert_int_equal(perfetto_errors(&x.trace), 0);
		assert_true(merged_has(
		        &x, "system_trace_left_out", "it is not a Perfetto trace, or empty"));
		for (size_t k = 0; k < x.trace.n; k++)
			ours += merged_is_call(&x.trace.slices[k]);
		assert_int_equal(ours, x.m.n);
		tw_buf_done(&b);
	}
	merged_done(&x);
}

/* Compressed as a whole, as `adb pull` and browsers leave it; and a bomb. */
static void test_packed(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct system_shape s = merged_usual();
	struct tw_buf packed;
	struct merged x;

	(void)state;
	merged_make(&x, &s, 400 * S + 10000, 500 * S + 10000, &o);
	tw_buf_init(&packed, 64 << 20);
	assert_int_equal(tw_buf_reserve(&packed, ZSTD_compressBound(x.system.len)), TW_OK);
	packed.len = ZSTD_compress(packed.data, packed.cap, x.system.data, x.system.len, 3);
	merged_with_system(&x, &packed);
	merged_read(&x, &x.alone, &x.system);
	assert_int_equal(perfetto_errors(&x.trace), 0);
	merged_same_packets(&x);
	merged_same_calls(&x, &s, 400 * S + 10000);

	uint8_t *zeros = calloc(1, 600 << 20);

	assert_non_null(zeros);
	tw_buf_clear(&packed);
	assert_int_equal(tw_buf_reserve(&packed, 1 << 20), TW_OK);
	packed.len = ZSTD_compress(packed.data, packed.cap, zeros, 600 << 20, 1);
	free(zeros);
	merged_with_system(&x, &packed);
	assert_true(merged_has(&x, "system_trace_left_out", "its decompressed size is too large"));
	tw_buf_done(&packed);
	merged_done(&x);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_known_thread),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_slept_before),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_no_trace),
        cmocka_unit_test(test_packed),
};

UNIT_TESTS("perfetto_merged", tests)
