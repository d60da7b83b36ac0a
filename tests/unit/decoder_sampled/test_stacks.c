/* Unit tests of stacks.c: samples become calls by comparing each stack with the one before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/formats/stacks.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { MS = 1000000, TRACK = 6 };

struct run {
	struct event_log log;
	struct tw_arena *arena;
	struct tw_stacks *stacks;
};

/* The sink of event_log comes without a run of the chain: it is borrowed from an empty one. */
static void begin(struct run *r, int64_t interval_ns, uint32_t max_depth)
{
	struct tw_limits l = tw_limits_default();

	event_log_run(&r->log, "", 0, 0, NULL);
	if (max_depth)
		l.max_depth = max_depth;
	r->arena = tw_arena_new(16 << 20);
	r->stacks = tw_stacks_new(r->arena, &l, &r->log.sink, interval_ns);
	assert_non_null(r->stacks);
}

static void done(struct run *r)
{
	event_log_done(&r->log);
	tw_arena_free(r->arena);
}

/* frames: a letter each, outermost first; '.' is one that the sink did not take. */
static enum tw_status add(struct run *r, uint32_t track, int64_t ts_ns, const char *frames)
{
	uint32_t syms[64];
	struct tw_sample s = {track, ts_ns, (uint64_t)ts_ns, syms, strlen(frames)};

	for (size_t i = 0; i < s.n; i++)
		syms[i] = frames[i] == '.' ? 0 : (uint32_t)frames[i];
	return tw_stacks_add(r->stacks, &s, NULL);
}

/* Events of a track as "+a0 -a5 ", times in ms. */
static void is_reported(struct run *r, uint32_t track, const char *want)
{
	char got[2048] = "";
	size_t len = 0;

	assert_int_equal(tw_stacks_finish(r->stacks, NULL), TW_OK);
	for (size_t i = 0; i < r->log.n; i++) {
		const struct tw_event *e = &r->log.events[i];

		if (e->track != track)
			continue;
		assert_int_equal(e->cpu_ns, -1);
		len += (size_t)snprintf(got + len, sizeof got - len, "%c%c%lld ",
		        e->kind == TW_EV_BEGIN ? '+' : '-', (char)e->sym,
		        (long long)(e->ts_ns / MS));
	}
	assert_string_equal(got, want);
}

/* The rule of ART's sampling tracer: the shared outer frames went on, the rest ended or began. */
static void test_difference(void **state)
{
	struct run r;

	(void)state;
	begin(&r, 1 * MS, 0);
	assert_int_equal(add(&r, TRACK, 0, "mab"), TW_OK);
	assert_int_equal(add(&r, TRACK, 1 * MS, "mab"), TW_OK);
	assert_int_equal(add(&r, TRACK, 2 * MS, "mac"), TW_OK);
	assert_int_equal(add(&r, TRACK, 5 * MS, "m"), TW_OK);
	is_reported(&r, TRACK, "+m0 +a0 +b0 -b2 +c2 -c5 -a5 -m6 ");
	assert_non_null(strstr((const char *)r.log.names.data, "source 6 samples 1000000\n"));
	assert_int_equal(event_log_repairs(&r.log), 0);
	done(&r);
}

/* A frame in the middle differs: frames above it are new calls, even if they are equal. */
static void test_middle(void **state)
{
	struct run r;

	(void)state;
	begin(&r, 1 * MS, 0);
	assert_int_equal(add(&r, TRACK, 0, "maax"), TW_OK);
	assert_int_equal(add(&r, TRACK, 1 * MS, "mbax"), TW_OK);
	assert_int_equal(add(&r, TRACK, 2 * MS, "mbaaa"), TW_OK);
	assert_int_equal(add(&r, TRACK, 3 * MS, ""), TW_OK);
	assert_int_equal(add(&r, TRACK, 4 * MS, "z"), TW_OK);
	is_reported(&r, TRACK,
	        "+m0 +a0 +a0 +x0 -x1 -a1 -a1 +b1 +a1 +x1 -x2 +a2 +a2 -a3 -a3 -a3 -b3 -m3 "
	        "+z4 -z5 ");
	done(&r);
}

/* Calls have the CPU times of the samples that begin and end them. */
static void test_cpu(void **state)
{
	static const int64_t want[] = {5, 9, 9, -1, 30, 30};
	struct tw_sample s = {.track = TRACK, .n = 1, .has_cpu = true, .cpu_ns = 5};
	uint32_t sym = 1;
	struct run r;

	(void)state;
	begin(&r, 1 * MS, 0);
	s.syms = &sym;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(tw_stacks_add(r.stacks, &s, NULL), TW_OK);
		s.ts_ns += MS;
		s.cpu_ns = i == 0 ? 9 : 30;
		s.has_cpu = i != 1;
		s.n = i != 1;
		sym = i == 2 ? 1 : 2;
	}
	assert_int_equal(tw_stacks_finish(r.stacks, NULL), TW_OK);
	assert_int_equal(r.log.n, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(r.log.events[i].cpu_ns, want[i]);
	done(&r);
}

static void test_gap(void **state)
{
	struct run r;

	(void)state;
	begin(&r, 10 * MS, 0);
	assert_int_equal(add(&r, TRACK, 0, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK, 40 * MS, "m"), TW_OK); /* four intervals are none */
	assert_int_equal(add(&r, TRACK, 40 * MS + 5 * 10 * MS, "ma"), TW_OK);
	is_reported(&r, TRACK, "+m0 -m50 +m90 +a90 -a100 -m100 ");
	assert_int_equal(r.log.counts[TW_REPAIR_sample_gap], 1);
	assert_int_equal(r.log.offsets[TW_REPAIR_sample_gap], 90 * MS);
	done(&r);
	begin(&r, 10 * MS, 0); /* nor if the time in between is known */
	for (int i = 0; i < 2; i++) {
		const uint32_t sym = 'm';
		const struct tw_sample s = {.track = TRACK,
		        .ts_ns = i * 900 * (int64_t)MS,
		        .syms = &sym,
		        .n = 1,
		        .continued = true};

		assert_int_equal(tw_stacks_add(r.stacks, &s, NULL), TW_OK);
	}
	is_reported(&r, TRACK, "+m0 -m910 ");
	assert_int_equal(event_log_repairs(&r.log), 0);
	done(&r);
	begin(&r, 0, 0); /* without an interval there are no gaps, and the last has no length */
	assert_int_equal(add(&r, TRACK, 0, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK, 90000 * (int64_t)MS, "m"), TW_OK);
	is_reported(&r, TRACK, "+m0 -m90000 ");
	assert_int_equal(event_log_repairs(&r.log), 0);
	done(&r);
}

/* Samples that no other follows are snapshots; one pair, of any track, is a recording. */
static void test_snapshots(void **state)
{
	struct run r;

	(void)state;
	begin(&r, 1 * MS, 0);
	assert_int_equal(add(&r, TRACK, 0, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK, 9 * MS, "m"), TW_OK); /* after a gap */
	assert_int_equal(add(&r, TRACK + 1, 1 * MS, "m"), TW_OK);
	is_reported(&r, TRACK, "+m0 -m1 +m9 -m10 ");
	assert_non_null(strstr((const char *)r.log.names.data, "source 6 samples -1\n"));
	assert_non_null(strstr((const char *)r.log.names.data, "source 7 samples -1\n"));
	done(&r);
	begin(&r, 1 * MS, 0);
	assert_int_equal(add(&r, TRACK, 0, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK + 1, 1 * MS, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK + 1, 2 * MS, "m"), TW_OK);
	is_reported(&r, TRACK, "+m0 -m1 ");
	assert_null(strstr((const char *)r.log.names.data, "samples -1"));
	done(&r);
}

static void test_tracks(void **state)
{
	struct run r;
	char want[64];

	(void)state;
	begin(&r, 1 * MS, 0);
	for (int t = 0; t < 4; t++)
		for (uint32_t track = 1; track <= 200; track++)
			assert_int_equal(
			        add(&r, track, t * MS, (track + (uint32_t)t) % 2 ? "ab" : "a"),
			        TW_OK);
	assert_int_equal(tw_stacks_finish(r.stacks, NULL), TW_OK);
	(void)snprintf(want, sizeof want, "+a0 +b0 -b1 +b2 -b3 -a4 ");
	is_reported(&r, 1, want);
	(void)snprintf(want, sizeof want, "+a0 +b1 -b2 +b3 -b4 -a4 ");
	is_reported(&r, 200, want);
	done(&r);
}

static void test_bad_times(void **state)
{
	struct run r;

	(void)state;
	begin(&r, 1 * MS, 0);
	assert_int_equal(add(&r, TRACK, -1, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK, ((int64_t)1 << 61) + 1, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK, 2 * MS, "m"), TW_OK);
	assert_int_equal(add(&r, TRACK, 1 * MS, "x"), TW_OK);
	assert_int_equal(add(&r, TRACK, 2 * MS, "ma"), TW_OK); /* equal times keep their order */
	is_reported(&r, TRACK, "+m2 +a2 -a3 -m3 ");
	assert_int_equal(r.log.counts[TW_REPAIR_impossible_time], 3);
	done(&r);
}

static void test_depth(void **state)
{
	struct run r;

	(void)state;
	begin(&r, 1 * MS, 3);
	assert_int_equal(add(&r, TRACK, 0, "abc"), TW_OK);
	assert_int_equal(event_log_repairs(&r.log), 0);
	assert_int_equal(add(&r, TRACK, 1 * MS, "abcd"), TW_OK);
	is_reported(&r, TRACK, "+a0 +b0 +c0 -c2 -b2 -a2 ");
	assert_int_equal(r.log.counts[TW_REPAIR_depth_clipped], 1);
	done(&r);
}

/* Few bytes may name a deep stack again and again: what no trace can hold is counted alone. */
static void test_more_than_a_trace_holds(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct run r;

	(void)state;
	event_log_run(&r.log, "", 0, 0, NULL);
	l.max_slices = 4;
	r.arena = tw_arena_new(16 << 20);
	r.stacks = tw_stacks_new(r.arena, &l, &r.log.sink, 1 * MS);
	assert_int_equal(add(&r, TRACK, 0, "ab"), TW_OK);
	assert_int_equal(add(&r, TRACK, 1 * MS, "acd"), TW_OK);
	assert_int_equal(event_log_repairs(&r.log), 0);
	assert_int_equal(add(&r, TRACK, 2 * MS, "ae"), TW_OK);
	assert_int_equal(add(&r, TRACK + 1, 2 * MS, "xyz"), TW_OK);
	is_reported(&r, TRACK, "+a0 +b0 -b1 +c1 +d1 -d2 -c2 -a3 ");
	assert_int_equal(r.log.counts[TW_REPAIR_slice_limit], 4);
	assert_int_equal(r.log.offsets[TW_REPAIR_slice_limit], 2 * MS);
	done(&r);
}

/* A frame that the sink refused at a limit keeps its place: its END would close another. */
static void test_refused_frame(void **state)
{
	struct run r;

	(void)state;
	begin(&r, 1 * MS, 0);
	assert_int_equal(add(&r, TRACK, 0, "a.b"), TW_OK);
	assert_int_equal(add(&r, TRACK, 1 * MS, "a.c"), TW_OK);
	assert_int_equal(add(&r, TRACK, 2 * MS, "a"), TW_OK);
	is_reported(&r, TRACK, "+a0 +b0 -b1 +c1 -c2 -a3 ");
	done(&r);
}

static void test_deep_and_many(void **state)
{
	static uint32_t syms[1000];
	struct tw_sample s = {TRACK, 0, 0, syms, 1000};
	struct run r;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		syms[i] = i + 1;
	begin(&r, 1 * MS, 0);
	for (; s.ts_ns < 20 * MS; s.ts_ns += MS) {
		syms[500] ^= 0x10000;
		assert_int_equal(tw_stacks_add(r.stacks, &s, NULL), TW_OK);
	}
	assert_int_equal(tw_stacks_finish(r.stacks, NULL), TW_OK);
	assert_int_equal(r.log.n, 2 * (1000 + 19 * 500));
	done(&r);
}

static enum tw_status some_samples(void)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_limits l = tw_limits_default();
	static uint32_t syms[200];
	struct event_log log;
	struct tw_stacks *s;
	enum tw_status st = TW_NOMEM;

	event_log_run(&log, "", 0, 0, NULL);
	s = a ? tw_stacks_new(a, &l, &log.sink, MS) : NULL;
	for (size_t i = 0; i < 200; i++)
		syms[i] = (uint32_t)i + 1;
	for (uint32_t t = 1; s && t <= 300; t++) {
		const struct tw_sample sample = {t, 5, 0, syms, t % 200};

		st = tw_stacks_add(s, &sample, NULL);
		if (st != TW_OK)
			break;
	}
	if (s && st == TW_OK)
		st = tw_stacks_finish(s, NULL);
	event_log_done(&log);
	tw_arena_free(a);
	return st;
}

static void test_no_memory(void **state)
{
	bool all = false;

	(void)state;
	for (uint64_t n = 1; !all; n++) {
		enum tw_status st;

		assert_in_range(n, 1, 1000);
		tw_mem_fail_at(n);
		st = some_samples();
		all = tw_mem_count() < n;
		tw_mem_fail_at(0);
		assert_int_equal(st, all ? TW_OK : TW_NOMEM);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_middle),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_tracks),
        cmocka_unit_test(test_bad_times),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_more_than_a_trace_holds),
        cmocka_unit_test(test_refused_frame),
        cmocka_unit_test(test_deep_and_many),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("stacks", tests)
