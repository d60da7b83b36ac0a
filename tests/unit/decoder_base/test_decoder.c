/* Unit tests of the decoder chain: unzip, recognition, preflight, btrace 2.0, thread lists; and
 * that no cut of the input changes anything (I3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { PID = 28069 };
#define BOOT    987654321000123u
#define MONO    123456789012345u
#define SESSION 123456790000000u
#define MOD45   ((uint64_t)1 << 45)
#define SECOND  1000000000u

static void start(struct tw_buf *b, uint64_t session)
{
	tw_buf_init(b, 64 << 20);
	btrace2_header(b, PID, BOOT, MONO, session);
}

/* Runs b whole and in pieces: all must agree.  Consumes b. */
static struct event_log run(struct tw_buf *b)
{
	struct event_log log;

	event_log_run(&log, b->data, b->len, 0, NULL);
	for (uint64_t seed = 1; seed < 6; seed++) {
		struct event_log other;

		event_log_run(&other, b->data, b->len, seed, NULL);
		assert_null(event_log_differs(&log, &other));
		event_log_done(&other);
	}
	tw_buf_done(b);
	return log;
}

static void is_event(const struct event_log *log, size_t i, int64_t begin, int64_t dur)
{
	assert_in_range(i, 0, log->n - 1);
	assert_int_equal(log->events[i].ts_ns, begin);
	assert_int_equal(log->events[i].dur_ns, dur);
	assert_int_equal(log->events[i].cpu_ns, -1);
	assert_int_equal(log->events[i].kind, TW_EV_SLICE);
}

static void is_repair(const struct event_log *log, enum tw_repair what, uint64_t n, uint64_t at)
{
	assert_int_equal(log->counts[what], n);
	if (n)
		assert_int_equal(log->offsets[what], at);
}

/* --- btrace 2.0, record by record --- */

/* The worked example, byte for byte; the third row begins before the recording and ends there. */
static void test_worked_bytes(void **state)
{
	static const uint8_t file[] = {0x05, 0, 0, 0, 0xa5, 0x6d, 0, 0, 0xbb, 0xce, 0xf6, 0x30,
	        0x44, 0x82, 0x03, 0, 0x79, 0xdf, 0x0d, 0x86, 0x48, 0x70, 0, 0, 0x80, 0xf1, 0x1c,
	        0x86, 0x48, 0x70, 0, 0, 0x1d, 0, 0, 0x1b, 0xb7, 0, 0, 0, 0x11, 0, 0x80, 0xd2, 0x36,
	        0, 0x65, 0xcd, 0, 0, 0x38, 0x90, 0x78, 0, 0, 0, 0x03, 0, 0x80, 0xdf, 0x76, 0x0e,
	        0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0x80, 0xd2, 0x36, 0xe2, 0x04, 0};
	struct tw_buf made;
	struct event_log log;

	(void)state;
	start(&made, SESSION);
	btrace2_record(&made, 1500000, 2000000000, 28069, 17);
	btrace2_record(&made, 987655, 12345, 28095, 3);
	btrace2_record(&made, 0, 5000, 28069, 4);
	assert_int_equal(made.len, sizeof file);
	assert_memory_equal(made.data, file, sizeof file);
	log = run(&made);
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "btrace2");
	assert_int_equal(log.clock.pid, PID);
	assert_int_equal(log.clock.mono_base_ns, MONO);
	assert_int_equal(log.clock.boot_base_ns, BOOT);
	assert_int_equal(log.clock.session_ns, 987655);
	/* the second record is far behind the first: with the file's end it is a stale tail; the
	 * third ended before the recording began */
	assert_int_equal(log.n, 1);
	is_event(&log, 0, 1500000, 2000000000);
	assert_int_equal(log.events[0].track, 28069 + 1);
	assert_int_equal(log.events[0].sym, 17 + 1);
	assert_int_equal(log.events[0].offset, 32);
	is_repair(&log, TW_REPAIR_stale_tail, 1, 48);
	is_repair(&log, TW_REPAIR_stale_record, 1, 64);
	assert_int_equal(event_log_repairs(&log), 2);
	event_log_done(&log);
}

/* Values too large for their fields change others, because the device does not mask them. */
static void test_overflow(void **state)
{
	static const struct {
		uint64_t start, dur, tid, mid;
		int64_t begin_ns, dur_ns;
		uint32_t track, sym;
	} rows[] = {
	        {1500000, 2000000000, 40000, 17, 1500000, 2000000001, 7232, 17},
	        {1500000, 2000000000, 4194303, 17, 1500000, 2000000127, 32767, 17},
	        {1500000, 2000000000, 28069, 0xFFFFFE, 1500000, 2000000000, 28069, 8388606},
	        {1500000, 2000000000, 28068, 0x800001, 1500000, 2000000000, 28069, 1},
	        {1500000, MOD45, 28069, 17, 1500001, 0, 28069, 17},
	        {MOD45 + 5, 2000, 28069, 17, 5, 2000, 28069, 17},
	        {MOD45 - 1, 5000, 32767, 0x7FFFFF, 0, 4999, 32767, 0x7FFFFF},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tw_buf b;
		struct event_log log;

		start(&b, MONO);
		btrace2_record(&b, rows[i].start, rows[i].dur, rows[i].tid, rows[i].mid);
		log = run(&b);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 1);
		is_event(&log, 0, rows[i].begin_ns, rows[i].dur_ns);
		assert_int_equal(log.events[0].track, rows[i].track + 1);
		assert_int_equal(log.events[0].sym, rows[i].sym + 1);
		event_log_done(&log);
	}
}

/* Ends decide: begin is negative, or the recording started after the 45 bits ran out. */
static void test_unwrap(void **state)
{
	const int64_t far = (int64_t)MOD45 + 40 * (int64_t)SECOND;
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, MONO + (uint64_t)far);
	btrace2_record(&b, (uint64_t)far + 10, 500, 7, 1);
	btrace2_record(&b, (uint64_t)far - 100, 1000, 7, 2); /* begins before: cut */
	btrace2_record(&b, 0, (uint64_t)far % MOD45 + 2000, 7, 3);
	log = run(&b);
	assert_int_equal(log.n, 3);
	assert_int_equal(log.clock.session_ns, far);
	is_event(&log, 0, far + 10, 500);
	is_event(&log, 1, far, 900);
	is_event(&log, 2, far, 2000);
	event_log_done(&log);

	start(&b, MONO + ((uint64_t)1 << 57)); /* nonsense: the base is taken */
	btrace2_record(&b, 10, 500, 7, 1);
	log = run(&b);
	assert_int_equal(log.clock.session_ns, 0);
	is_event(&log, 0, 10, 500);
	event_log_done(&log);

	start(&b, MONO + MOD45 - 40 * (uint64_t)SECOND);
	btrace2_record(&b, MOD45 - 30 * (uint64_t)SECOND, 20 * (uint64_t)SECOND, 7, 1);
	btrace2_record(&b, MOD45 - 5 * (uint64_t)SECOND, 15 * (uint64_t)SECOND, 7, 2);
	btrace2_record(&b, MOD45 + 10 * (uint64_t)SECOND, 5, 7, 3);
	btrace2_record(&b, MOD45 - 60 * (uint64_t)SECOND, 71 * (uint64_t)SECOND, 7, 4);
	log = run(&b);
	assert_int_equal(log.n, 4);
	is_event(&log, 0, (int64_t)MOD45 - 30 * (int64_t)SECOND, 20 * (int64_t)SECOND);
	is_event(&log, 1, (int64_t)MOD45 - 5 * (int64_t)SECOND, 15 * (int64_t)SECOND);
	is_event(&log, 2, (int64_t)MOD45 + 10 * (int64_t)SECOND, 5);
	is_event(&log, 3, (int64_t)MOD45 - 40 * (int64_t)SECOND, 51 * (int64_t)SECOND);
	is_repair(&log, TW_REPAIR_time_wrapped, 1, 64); /* only the third's start lost its top */
	is_repair(&log, TW_REPAIR_begin_clamped, 1, 80);
	event_log_done(&log);
}

/* Without a believable start of the recording the base is one: what began before it, and what
 * outgrew the bits, are what they are in a first recording. */
static void test_nonsense_session(void **state)
{
	static const uint64_t starts[] = {0, 1, MONO - 1, MONO + ((uint64_t)1 << 57), UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		struct tw_buf b;
		struct event_log log;

		start(&b, starts[i]);
		btrace2_record(&b, (uint64_t)-1000, 5000, 7, 1);
		btrace2_record(&b, MOD45 + 5, 10, 7, 2);
		log = run(&b);
		assert_int_equal(log.clock.session_ns, 0);
		assert_int_equal(log.n, 2);
		is_event(&log, 0, 0, 4000);
		is_event(&log, 1, 5, 10);
		is_repair(&log, TW_REPAIR_time_wrapped, 1, 32);
		is_repair(&log, TW_REPAIR_begin_clamped, 1, 32);
		event_log_done(&log);
	}
}

/* A recording of more than half of what 45 bits hold: live as long as it is not silent, while what
 * is left of the one before it is stale. */
static void test_hours(void **state)
{
	enum { HOUR = 3600, STEPS = 6 * HOUR / 50, LATER = 5 * HOUR };
	const uint64_t session = 2 * HOUR * (uint64_t)SECOND;
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, MONO + session);
	for (uint64_t i = 0; i < STEPS; i++)
		btrace2_record(&b, session + i * 50 * SECOND, SECOND, 7, 1);
	btrace2_record(&b, HOUR * (uint64_t)SECOND, SECOND, 7, 2);
	log = run(&b);
	assert_int_equal(log.n, STEPS);
	is_event(&log, STEPS - 1, (int64_t)(session + (STEPS - 1) * 50ull * SECOND), SECOND);
	is_repair(&log, TW_REPAIR_stale_record, 1, 32 + 16 * STEPS);
	assert_int_equal(event_log_repairs(&log), 1);
	event_log_done(&log);

	start(&b, MONO + session); /* silent from the first second on, and back after hours */
	btrace2_record(&b, session, SECOND, 7, 1);
	btrace2_record(&b, session + LATER * (uint64_t)SECOND, SECOND, 7, 1);
	log = run(&b);
	assert_int_equal(log.n, 1);
	is_repair(&log, TW_REPAIR_stale_record, 1, 48);
	event_log_done(&log);
}

static void test_clamp(void **state)
{
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, SESSION);
	btrace2_record(&b, 0, 987656, 7, 1); /* ends 1 ns into the recording */
	btrace2_record(&b, 0, 987655, 7, 2); /* ends with its start: of an earlier one */
	btrace2_record(&b, 987655, 10, 7, 3);
	log = run(&b);
	assert_int_equal(log.n, 2);
	is_event(&log, 0, 987655, 1);
	is_event(&log, 1, 987655, 10);
	is_repair(&log, TW_REPAIR_begin_clamped, 1, 32);
	is_repair(&log, TW_REPAIR_stale_record, 1, 48);
	event_log_done(&log);

	start(&b, MONO);
	btrace2_record(&b, (uint64_t)-1000, 3000, 7, 1); /* began before the base, as they may */
	log = run(&b);
	is_event(&log, 0, 0, 2000);
	is_repair(&log, TW_REPAIR_begin_clamped, 1, 32);
	event_log_done(&log);
}

static void test_zeros(void **state)
{
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, MONO);
	btrace2_record(&b, 10, 5, 7, 1);
	btrace2_record(&b, 0, 0, 0, 0);
	btrace2_record(&b, 99, 0, 0, 0); /* half written: a set, b zero */
	btrace2_record(&b, 20, 5, 7, 2);
	for (int i = 0; i < 5; i++)
		btrace2_record(&b, 0, 0, 0, 0);
	for (int i = 0; i < 7; i++)
		(void)tw_buf_add_u8(&b, 0);
	log = run(&b);
	assert_int_equal(log.n, 2);
	is_repair(&log, TW_REPAIR_empty_slot, 2, 48);
	is_repair(&log, TW_REPAIR_zero_tail, 5, 96);
	assert_int_equal(event_log_repairs(&log), 7); /* no cut record is reported for zeros */
	event_log_done(&log);
}

static void test_tail(void **state)
{
	struct tw_buf b;
	struct event_log log;

	(void)state;
	for (unsigned late = 1; late < 40; late++) {
		start(&b, MONO);
		btrace2_record(&b, 10 * (uint64_t)SECOND, SECOND, 7, 1);
		for (unsigned i = 0; i < late; i++)
			btrace2_record(&b, i * 1000, 500, 7, 2);
		log = run(&b);
		assert_int_equal(log.n, 1);
		is_repair(&log, TW_REPAIR_stale_tail, late, 48);
		event_log_done(&log);

		/* a live record after them: up to 15 were merely late, 16 end the reading */
		start(&b, MONO);
		btrace2_record(&b, 10 * (uint64_t)SECOND, SECOND, 7, 1);
		for (unsigned i = 0; i < late; i++)
			btrace2_record(&b, i * 1000, 500, 7, 2);
		btrace2_record(&b, 11 * (uint64_t)SECOND, SECOND, 7, 3);
		log = run(&b);
		assert_int_equal(log.n, late < 16 ? late + 2 : 1);
		is_repair(&log, TW_REPAIR_stale_tail, late < 16 ? 0 : late + 1, 48);
		event_log_done(&log);
	}
}

static void test_late_by_a_second(void **state)
{
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, MONO);
	btrace2_record(&b, 5 * (uint64_t)SECOND, 100, 7, 1);
	btrace2_record(&b, 4 * (uint64_t)SECOND, 100, 7, 2); /* exactly a second: just late */
	btrace2_record(&b, 4 * (uint64_t)SECOND, 99, 7, 3);  /* 1 ns more: stale at the end */
	log = run(&b);
	assert_int_equal(log.n, 2);
	is_repair(&log, TW_REPAIR_stale_tail, 1, 64);
	event_log_done(&log);
}

static void test_lone_time(void **state)
{
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, MONO);
	btrace2_record(&b, 1000, 100, 7, 1);
	btrace2_record(&b, 9000 * (uint64_t)SECOND, 100, 7, 2); /* nothing agrees with it */
	btrace2_record(&b, 2000, 100, 7, 3);
	btrace2_record(&b, 100 * (uint64_t)SECOND, 100, 7, 4); /* the next two do agree */
	btrace2_record(&b, 100 * (uint64_t)SECOND, 200, 7, 5);
	btrace2_record(&b, 160 * (uint64_t)SECOND, 200, 7, 6); /* 60 s on: not far */
	log = run(&b);
	assert_int_equal(log.n, 5);
	assert_int_equal(log.events[1].sym, 3 + 1);
	assert_int_equal(log.events[2].sym, 4 + 1);
	is_repair(&log, TW_REPAIR_impossible_time, 1, 48);
	assert_int_equal(event_log_repairs(&log), 1);
	event_log_done(&log);
}

/* Formats emit in file order, including records held back (I6). */
static void test_file_order(void **state)
{
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, MONO);
	btrace2_record(&b, 5 * (uint64_t)SECOND, 100, 7, 1);
	btrace2_record(&b, 1 * (uint64_t)SECOND, 100, 7, 2);  /* held back: late */
	btrace2_record(&b, 90 * (uint64_t)SECOND, 100, 7, 3); /* held back: far ahead */
	btrace2_record(&b, 91 * (uint64_t)SECOND, 100, 7, 4); /* agrees with it */
	log = run(&b);
	assert_int_equal(log.n, 4);
	for (size_t i = 0; i < log.n; i++)
		assert_int_equal(log.events[i].offset, 32 + 16 * i);
	event_log_done(&log);
}

static void test_overrun(void **state)
{
	(void)state;
	for (int zeros = 0; zeros < 3; zeros++) {
		struct tw_buf b;
		struct event_log log;

		start(&b, MONO);
		while (b.len < 2000000 - 16 * (size_t)zeros)
			btrace2_record(&b, b.len, 10, 7, 1);
		while (b.len < 2000000)
			btrace2_record(&b, 0, 0, 0, 0);
		log = run(&b);
		assert_int_equal(log.status, TW_OK);
		is_repair(&log, TW_REPAIR_buffer_overrun, zeros == 1, 2000000 - 16);
		is_repair(
		        &log, TW_REPAIR_zero_tail, (uint64_t)zeros, 2000000 - 16 * (uint64_t)zeros);
		event_log_done(&log);
	}
}

/* A short recording in a file that an earlier one had filled. */
static void test_old_overrun(void **state)
{
	(void)state;
	for (int stale = 0; stale < 2; stale++) { /* before the start, or after the live ones */
		const uint64_t live = 400 * (uint64_t)SECOND;
		struct tw_buf b;
		struct event_log log;

		start(&b, MONO + (stale ? 0 : live));
		while (b.len < 1000000)
			btrace2_record(&b, live + b.len, 10, 7, 1);
		while (b.len < 2000000 - 16)
			btrace2_record(&b, b.len, 10, 7, 1);
		btrace2_record(&b, 0, 0, 0, 0);
		log = run(&b);
		assert_int_equal(log.status, TW_OK);
		assert_true(log.counts[TW_REPAIR_stale_record] || log.counts[TW_REPAIR_stale_tail]);
		is_repair(&log, TW_REPAIR_buffer_overrun, 0, 0);
		event_log_done(&log);
	}
}

/* An upload that ends in one unused slot does not imply a full buffer of the phone. */
static void test_no_overrun(void **state)
{
	struct tw_buf b;
	struct event_log log;

	(void)state;
	start(&b, MONO);
	while (b.len < 3200000)
		btrace2_record(&b, b.len, 10, 7, 1);
	btrace2_record(&b, 0, 0, 0, 0);
	log = run(&b);
	assert_int_equal(log.status, TW_OK);
	is_repair(&log, TW_REPAIR_buffer_overrun, 0, 0);
	event_log_done(&log);
}

static void test_cut_tail(void **state)
{
	(void)state;
	for (unsigned keep = 1; keep < 16; keep++) {
		struct tw_buf b;
		struct event_log log;

		start(&b, MONO);
		btrace2_record(&b, 10, 5, 7, 1);
		for (unsigned i = 0; i < keep; i++)
			(void)tw_buf_add_u8(&b, 0xA0);
		log = run(&b);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 1);
		is_repair(&log, TW_REPAIR_input_truncated, 1, 48);
		event_log_done(&log);
	}
}

static void refused(struct tw_buf *b, enum tw_status st, uint64_t offset, const char *words)
{
	struct event_log log = run(b);

	assert_int_equal(log.status, st);
	assert_int_equal(log.err.code, st);
	assert_int_equal(log.err.offset, offset);
	if (!strstr(log.err.msg, words))
		fail_msg("\"%s\" does not say \"%s\"", log.err.msg, words);
	assert_int_equal(log.n, 0);
	event_log_done(&log);
}

static void test_refusals(void **state)
{
	struct tw_buf b;

	(void)state;
	for (uint32_t version = 1; version < 33; version++) {
		start(&b, MONO);
		btrace2_record(&b, 10, 5, 7, 1);
		b.data[0] = (uint8_t)version;
		if (version != 5)
			refused(&b, TW_UNSUPPORTED, 0, "version");
		tw_buf_done(&b);
	}
	for (size_t len = 4; len < 32; len++) {
		start(&b, MONO);
		b.len = len;
		refused(&b, TW_CORRUPT, len, "header has 32 bytes");
	}
	start(&b, MONO);
	refused(&b, TW_CORRUPT, 32, "no readable record");
	start(&b, MONO);
	b.len = 3;
	refused(&b, TW_UNSUPPORTED, 0, "a trace in a known format");
	start(&b, MONO);
	b.len = 0;
	refused(&b, TW_BAD_REQUEST, 0, "empty");
	start(&b, SESSION);
	btrace2_record(&b, 5, 5, 7, 1); /* stale and nothing else */
	refused(&b, TW_CORRUPT, 32, "no readable record");
	start(&b, MONO);
	memset(b.data + 4, 0, 4); /* pid 0 */
	refused(&b, TW_UNSUPPORTED, 0, "a trace in a known format");
}

/* --- preflight --- */

static enum tw_status look(const struct tw_buf *b, size_t n, bool whole, const char **ret_name)
{
	struct tw_limits limits = tw_limits_default();
	const struct tw_format *f = NULL;
	enum tw_status st = tw_decoder_preflight(b->data, n, whole, NULL, &limits, &f, NULL);

	if (ret_name)
		*ret_name = f ? f->name : "";
	return st;
}

static void test_preflight(void **state)
{
	const char *name;
	struct tw_buf b;

	(void)state;
	start(&b, MONO);
	btrace2_record(&b, 10, 5, 7, 1);
	btrace2_record(&b, 20, 5, 7, 1);
	assert_int_equal(look(&b, b.len, true, &name), TW_OK);
	assert_string_equal(name, "btrace2");
	assert_int_equal(look(&b, 40, true, &name), TW_CORRUPT); /* not one record */
	assert_int_equal(look(&b, 40, false, &name), TW_OK);     /* as yet */
	assert_string_equal(name, "btrace2");
	assert_int_equal(look(&b, 20, false, &name), TW_OK);
	assert_int_equal(look(&b, 0, true, NULL), TW_BAD_REQUEST);
	b.data[0] = 4;
	assert_int_equal(look(&b, b.len, true, NULL), TW_UNSUPPORTED);
	assert_int_equal(look(&b, b.len, false, NULL), TW_UNSUPPORTED);
	memset(b.data, 'x', b.len);
	assert_int_equal(look(&b, b.len, false, NULL), TW_UNSUPPORTED);
	tw_buf_done(&b);
}

static void test_parts(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct event_log log = {0};
	struct tw_decoder *d = tw_decoder_new(a, &limits, NULL, "trace", &log.sink);
	struct tw_err err = {0};

	(void)state;
	assert_int_equal(tw_decoder_push(d, "1,main\n", 7, &err), TW_OK);
	assert_int_equal(tw_decoder_finish(d, &err), TW_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "does not belong in part trace"));
	/* a failure is sticky, with its words */
	err = (struct tw_err){0};
	assert_int_equal(tw_decoder_push(d, "2,x\n", 4, &err), TW_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "does not belong"));
	assert_null(tw_decoder_format(d));
	assert_null(tw_decoder_free(d));
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_bytes),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_unwrap),
        cmocka_unit_test(test_nonsense_session),
        cmocka_unit_test(test_hours),
        cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_tail),
        cmocka_unit_test(test_late_by_a_second),
        cmocka_unit_test(test_lone_time),
        cmocka_unit_test(test_file_order),
        cmocka_unit_test(test_overrun),
        cmocka_unit_test(test_no_overrun),
        cmocka_unit_test(test_old_overrun),
        cmocka_unit_test(test_cut_tail),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_preflight),
        cmocka_unit_test(test_parts),
};

UNIT_TESTS("decoder", tests)
