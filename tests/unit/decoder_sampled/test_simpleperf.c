/* Unit tests of simpleperf's samples: frames and their names, unsampled time, and resynchronisation
 * after damaged records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/formats/sampled/samples.h"
#include "decoder/formats/sinks/null_sink.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { MAIN = 4711, MS = 1000000, NONE = -1 };

#define START (INT64_C(987654321) * 1000)

/* --- what simpleperf writes --- */

static void number(struct tw_buf *b, unsigned field, uint64_t v)
{
	(void)tw_buf_add_varint(b, field << 3);
	(void)tw_buf_add_varint(b, v);
}

static void bytes(struct tw_buf *b, unsigned field, const void *p, size_t n)
{
	(void)tw_buf_add_varint(b, field << 3 | 2);
	(void)tw_buf_add_varint(b, n);
	(void)tw_buf_add(b, p, n);
}

static void text(struct tw_buf *b, unsigned field, const char *s)
{
	bytes(b, field, s, strlen(s));
}

static struct tw_buf begin(void)
{
	struct tw_buf b;

	tw_buf_init(&b, 1 << 20);
	(void)tw_buf_add(&b, "SIMPLEPERF\1\0", 12);
	return b;
}

/* A record of this message, which is used up. */
static void record(struct tw_buf *b, unsigned kind, struct tw_buf *message)
{
	struct tw_buf whole;

	tw_buf_init(&whole, 1 << 20);
	bytes(&whole, kind, message->data, message->len);
	(void)tw_buf_add_u32le(b, (uint32_t)whole.len);
	(void)tw_buf_add(b, whole.data, whole.len);
	tw_buf_done(&whole);
	tw_buf_done(message);
	tw_buf_init(message, 1 << 20);
}

/* Frames of file 0, innermost first, up to the first 9. */
static void sample(struct tw_buf *b, int64_t ms, uint64_t tid, const int *frames)
{
	struct tw_buf m;
	struct tw_buf frame;

	tw_buf_init(&m, 1 << 20);
	tw_buf_init(&frame, 1 << 20);
	number(&m, 1, (uint64_t)(START + ms * MS));
	number(&m, 2, tid);
	for (; *frames != 9; frames++) {
		tw_buf_clear(&frame);
		number(&frame, 1, 4096);
		number(&frame, 2, 0);
		number(&frame, 3, (uint64_t)(int64_t)*frames);
		bytes(&m, 3, frame.data, frame.len);
	}
	record(b, 1, &m);
	tw_buf_done(&m);
	tw_buf_done(&frame);
}

#define SAMPLE(b, ms, tid, ...) sample(b, ms, tid, (const int[]){__VA_ARGS__, 9})

static void file(struct tw_buf *b, uint64_t id, const char *path, const char *const *symbols)
{
	struct tw_buf m;

	tw_buf_init(&m, 1 << 20);
	number(&m, 1, id);
	for (; *symbols; symbols++)
		text(&m, 3, *symbols);
	text(&m, 2, path);
	record(b, 3, &m);
	tw_buf_done(&m);
}

#define FILE_OF(b, id, path, ...) file(b, id, path, (const char *const[]){__VA_ARGS__, NULL})

static void thread(struct tw_buf *b, uint64_t tid, uint64_t pid, const char *name)
{
	struct tw_buf m;

	tw_buf_init(&m, 1 << 20);
	number(&m, 1, tid);
	number(&m, 2, pid);
	text(&m, 3, name);
	record(b, 4, &m);
	tw_buf_done(&m);
}

/* A record with one number: of lost samples, or whether threads are sampled off the CPU. */
static void reported(struct tw_buf *b, unsigned kind, unsigned field, uint64_t v)
{
	struct tw_buf m;

	tw_buf_init(&m, 1 << 20);
	number(&m, field, v);
	record(b, kind, &m);
	tw_buf_done(&m);
}

static struct event_log run(struct tw_buf *b)
{
	struct event_log log;

	event_log_run_cut(&log, b->data, b->len, NULL);
	tw_buf_done(b);
	return log;
}

static struct event_log run_ended(struct tw_buf *b)
{
	(void)tw_buf_add_u32le(b, 0);
	return run(b);
}

/* --- emitted data --- */

static uint64_t id_of(uint32_t symbol)
{
	return UINT64_C(1) << 63 | symbol;
}

/* "+1@0 -1@5 ": symbols of file 0, -1 is "?", times in ms. */
static void is_reported(const struct event_log *log, uint32_t tid, const char *want)
{
	static const uint32_t symbols[] = {0, 1, 2, UINT32_MAX};
	char got[512] = "";
	size_t len = 0;

	for (size_t i = 0; i < log->n; i++)
		for (size_t k = 0; k < 4; k++)
			if (log->events[i].track == tid + 1 &&
			        log->events[i].sym == event_log_method(id_of(symbols[k])))
				len += (size_t)snprintf(got + len, sizeof got - len, "%c%c@%lld ",
				        log->events[i].kind == TW_EV_BEGIN ? '+' : '-', "012?"[k],
				        (long long)log -> events[i].ts_ns / MS);
	assert_string_equal(got, want);
}

static void says(struct event_log *log, const char *line)
{
	if (!strstr(event_log_text(log), line))
		fail_msg("\"%s\" is not in\n%s", line, event_log_text(log));
}

static void test_samples(void **state)
{
	struct tw_buf b = begin();
	struct event_log log;

	(void)state;
	SAMPLE(&b, 2, MAIN, NONE, NONE, NONE, 0); /* threads come in no order of time */
	SAMPLE(&b, 0, MAIN, 0);
	SAMPLE(&b, 1, MAIN, 1, 0);
	SAMPLE(&b, 1, 99, 2);
	FILE_OF(&b, 0, "/data/app/base.apk", "a.B.main", "a.C.run", "art::Thread::Run()");
	thread(&b, MAIN, MAIN, "com.example");
	thread(&b, 99, MAIN, "worker");
	log = run_ended(&b);
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "simpleperf");
	is_reported(&log, MAIN, "+0@0 +1@1 -1@2 +?@2 -?@3 -0@3 ");
	is_reported(&log, 99, "+2@1 -2@2 ");
	assert_int_equal(log.clock.pid, MAIN);
	assert_true(log.clock.mono_base_ns == START && log.clock.boot_base_ns == -1);
	says(&log, "4711 com.example\n");
	says(&log, "99 worker\n");
	says(&log, " a.C.run\n");
	says(&log, " [base.apk]\n");
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void events(struct tw_buf *b, const char *one, const char *other)
{
	struct tw_buf m;

	tw_buf_init(&m, 1 << 20);
	text(&m, 1, one);
	text(&m, 1, other);
	record(b, 5, &m);
	tw_buf_done(&m);
}

/* On the CPU a gap is unknown time; otherwise the thread remained where it was. */
static void test_off_cpu(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		bool off_cpu = how % 2;
		struct tw_buf b = begin();
		struct event_log log;

		if (how < 2)
			reported(&b, 5, 6, (uint64_t)off_cpu);
		else
			events(&b, "cpu-clock", off_cpu ? "sched:sched_switch" : "cache-misses");
		for (int ms = 0; ms < 4; ms++)
			SAMPLE(&b, ms, MAIN, 0);
		SAMPLE(&b, 500, MAIN, 1, 0);
		log = run_ended(&b);
		is_reported(&log, MAIN,
		        off_cpu ? "+0@0 +1@500 -1@501 -0@501 "
		                : "+0@0 -0@4 +0@500 +1@500 -1@501 -0@501 ");
		assert_int_equal(log.counts[TW_REPAIR_sample_gap], !off_cpu);
		event_log_done(&log);
	}
}

static void test_lost(void **state)
{
	struct tw_buf b = begin();
	struct tw_buf m;
	struct event_log log;

	(void)state;
	SAMPLE(&b, 0, MAIN, 0);
	reported(&b, 2, 2, 17);                      /* lost */
	SAMPLE(&b, 1, UINT64_C(1) << 40, 0);         /* no thread is called so */
	SAMPLE(&b, INT64_C(1) << 42, MAIN, 0);       /* nor is there such a time */
	sample(&b, 2, MAIN, (const int[]){9});       /* without a stack */
	thread(&b, UINT64_C(1) << 40, MAIN, "none"); /* as above */
	tw_buf_init(&m, 100);
	number(&m, 1, (uint64_t)START + 3 * MS);
	number(&m, 2, MAIN);
	bytes(&m, 3, "\x10\x00\x18\x80", 4); /* a frame that is cut */
	record(&b, 1, &m);
	(void)tw_buf_add(&m, "\x0d\x00", 2); /* a field that is */
	record(&b, 1, &m);
	tw_buf_done(&m);
	reported(&b, 6, 1, 1); /* a switch of threads, and unknown records */
	reported(&b, 15, 1, 1);
	log = run_ended(&b);
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, MAIN, "+0@0 -0@0 ");
	assert_int_equal(log.counts[TW_REPAIR_sample_failed], 17 + 1);
	assert_int_equal(log.counts[TW_REPAIR_impossible_time], 1);
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 4);
	assert_int_equal(event_log_repairs(&log), 23);
	event_log_done(&log);
}

/* An incompletely unwound stack is stored and reported. */
static void test_unwinding(void **state)
{
	struct tw_buf b = begin();
	struct tw_buf m;
	struct event_log log;

	(void)state;
	tw_buf_init(&m, 100);
	number(&m, 1, (uint64_t)START);
	number(&m, 2, MAIN);
	bytes(&m, 3, "\x10\x00\x18\x01", 4);
	bytes(&m, 6, "\x18\x03", 2);
	record(&b, 1, &m);
	tw_buf_done(&m);
	log = run_ended(&b);
	is_reported(&log, MAIN, "+1@0 -1@0 ");
	assert_int_equal(log.counts[TW_REPAIR_sample_failed], 1);
	event_log_done(&log);
}

/* Bytes of nothing, of each small number, between two records. */
static void test_found_again(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 40; n++)
		for (unsigned fill = 0; fill <= 0x20; fill += 5) {
			struct tw_buf b = begin();
			struct event_log log;
			uint64_t at;

			SAMPLE(&b, 0, MAIN, 0);
			at = b.len;
			(void)tw_buf_add_u8(&b, 0xff); /* else four zeros were the end */
			for (unsigned i = 1; i < n; i++)
				(void)tw_buf_add_u8(&b, (uint8_t)(fill * i));
			reported(&b, 2, 1, 0); /* so short that the next record begins in the bytes
			                          already inspected */
			SAMPLE(&b, 1, MAIN, 1, 0);
			log = run_ended(&b);
			is_reported(&log, MAIN, "+0@0 +1@1 -1@2 -0@2 ");
			assert_int_equal(log.counts[TW_REPAIR_framing_lost], 1);
			assert_int_equal(log.offsets[TW_REPAIR_framing_lost], at);
			assert_int_equal(event_log_repairs(&log), 1);
			event_log_done(&log);
		}
}

static void test_end(void **state)
{
	struct tw_buf b = begin();
	struct event_log log;
	uint64_t at;

	(void)state;
	SAMPLE(&b, 0, MAIN, 0);
	at = b.len;
	log = run(&b);
	assert_int_equal(log.counts[TW_REPAIR_end_mark_missing], 1);
	assert_int_equal(log.offsets[TW_REPAIR_end_mark_missing], at);
	event_log_done(&log);

	b = begin();
	SAMPLE(&b, 0, MAIN, 0);
	SAMPLE(&b, 1, MAIN, 0);
	b.len--;
	log = run(&b);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	assert_int_equal(log.offsets[TW_REPAIR_input_truncated], at);
	event_log_done(&log);

	b = begin();
	SAMPLE(&b, 0, MAIN, 0);
	(void)tw_buf_add_u32le(&b, 0);
	(void)tw_buf_add_str(&b, TW_STR("more"));
	log = run(&b);
	assert_int_equal(log.counts[TW_REPAIR_trailing_data], 1);
	assert_int_equal(log.offsets[TW_REPAIR_trailing_data], at + 4);
	event_log_done(&log);
}

/* Of all processes of a phone none is the trace's own. */
static void test_processes(void **state)
{
	struct tw_buf b = begin();
	struct event_log log;

	(void)state;
	SAMPLE(&b, 0, MAIN, 0);
	SAMPLE(&b, 0, 99, 0);
	thread(&b, MAIN, MAIN, "com.example");
	thread(&b, 99, 98, "binder");
	log = run_ended(&b);
	assert_int_equal(log.clock.pid, 0);
	event_log_done(&log);
}

static uint32_t stack(struct tw_samples *s, uint32_t outer, uint32_t inner)
{
	uint32_t first = tw_samples_frames(s);

	assert_int_equal(tw_samples_frame(s, outer, 0, NULL), TW_OK);
	if (inner)
		assert_int_equal(tw_samples_frame(s, inner, 0, NULL), TW_OK);
	return tw_samples_share(s, first);
}

/* Equal stacks are stored once, and none is confused with its prefix or suffix. */
static void test_shared(void **state)
{
	const struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_sink sink = tw_null_sink();
	struct tw_samples *s = tw_samples_new(a, &limits, &sink);

	(void)state;
	assert_int_equal(stack(s, 1, 2), 0);
	assert_int_equal(stack(s, 1, 0), 2);
	assert_int_equal(stack(s, 2, 0), 3);
	assert_int_equal(stack(s, 2, 1), 4);
	assert_int_equal(stack(s, 1, 2), 0);
	assert_int_equal(stack(s, 2, 0), 3);
	assert_int_equal(tw_samples_share(s, tw_samples_frames(s)), 6);
	assert_int_equal(tw_samples_frames(s), 6);
	tw_arena_free(a);
}

static void refuses(struct tw_buf *b, enum tw_status status, uint64_t offset, const char *message)
{
	struct event_log log = run(b);

	assert_int_equal(log.status, status);
	assert_int_equal(log.err.offset, offset);
	assert_string_equal(log.err.msg, message);
	event_log_done(&log);
}

static void test_refused(void **state)
{
	struct tw_buf b = begin();

	(void)state;
	b.data[10] = 2;
	refuses(&b, TW_UNSUPPORTED, 10,
	        "simpleperf samples of version 2; this server reads version 1");
	b = begin();
	refuses(&b, TW_CORRUPT, 12, "no readable sample");
	b = begin();
	(void)tw_buf_add_u32le(&b, 0);
	refuses(&b, TW_CORRUPT, 12, "no readable sample");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_off_cpu),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_unwinding),
        cmocka_unit_test(test_found_again),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_refused),
};

UNIT_TESTS("simpleperf", tests)
