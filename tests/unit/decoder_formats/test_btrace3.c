/* Unit tests of btrace 3.0: samples, their clocks, waits and totals, and the file of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { MAIN = 28069, MS = 1000000 };

struct rec {
	uint16_t type, tid;
	uint64_t begin, end, cpu, cpu_end, objects, bytes;
	uint32_t faults, switches, forced, actual;
	uint64_t frames[4]; /* leaf first, up to the first 0 */
};

static void u16(struct tw_buf *b, unsigned v)
{
	(void)tw_buf_add_u8(b, (uint8_t)v);
	(void)tw_buf_add_u8(b, (uint8_t)(v >> 8));
}

static void header(struct tw_buf *b, uint32_t type, uint32_t version, const char *json)
{
	tw_buf_init(b, 4 << 20);
	(void)tw_buf_add_u32le(b, 0x01020304);
	(void)tw_buf_add_u32le(b, type);
	(void)tw_buf_add_u32le(b, version);
	(void)tw_buf_add_u64le(b, 987654400);
	(void)tw_buf_add_u32le(b, 1);
	(void)tw_buf_add_u32le(b, (uint32_t)strlen(json));
	(void)tw_buf_add_str(b, tw_str_of(json));
}

static void record(struct tw_buf *b, uint32_t version, const struct rec *r)
{
	uint32_t n = 0;

	while (n < 4 && r->frames[n])
		n++;
	u16(b, r->type);
	u16(b, r->tid);
	(void)tw_buf_add_u32le(b, 7);
	(void)tw_buf_add_u64le(b, r->begin);
	(void)tw_buf_add_u64le(b, r->end);
	(void)tw_buf_add_u64le(b, r->cpu);
	(void)tw_buf_add_u64le(b, r->cpu_end);
	if (r->type == 15)
		(void)tw_buf_add_u64le(b, 0x5555);
	if (version >= 4) {
		(void)tw_buf_add_u64le(b, r->objects);
		(void)tw_buf_add_u64le(b, r->bytes);
	}
	if (version >= 5) {
		(void)tw_buf_add_u32le(b, r->faults);
		(void)tw_buf_add_u32le(b, r->switches);
		(void)tw_buf_add_u32le(b, r->forced);
	}
	(void)tw_buf_add_u32le(b, n);
	(void)tw_buf_add_u32le(b, r->actual ? r->actual : n);
	for (uint32_t i = 0; i < n; i++)
		(void)tw_buf_add_u64le(b, r->frames[i]);
}

static struct event_log run(struct tw_buf *b)
{
	struct event_log log;

	event_log_run_cut(&log, b->data, b->len, NULL);
	tw_buf_done(b);
	return log;
}

/* "+1@0 -1@5 ": method pointers below 1000 and the names of waits, times in ms. */
static void is_reported(const struct event_log *log, uint32_t tid, const char *want)
{
	char got[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct tw_event *e = &log->events[i];
		bool lock = e->sym == event_log_name(TW_STR("Monitor.Lock"));

		if (e->track == tid + 1)
			len += (size_t)snprintf(got + len, sizeof got - len, "%c%d@%lld ",
			        e->kind == TW_EV_BEGIN ? '+' : '-', lock ? 0 : (int)e->sym - 1,
			        (long long)e->ts_ns / MS);
	}
	assert_string_equal(got, want);
}

#define JSON "{\"processId\":28069}"

/* The worked example, byte for byte. */
static void test_worked_bytes(void **state)
{
	static const uint8_t file[] = {0x04, 0x03, 0x02, 0x01, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0x69,
	        0xde, 0x3a, 0, 0, 0, 0, 1, 0, 0, 0, 0x13, 0, 0, 0, 0x7b, 0x22, 0x70, 0x72, 0x6f,
	        0x63, 0x65, 0x73, 0x73, 0x49, 0x64, 0x22, 0x3a, 0x32, 0x38, 0x30, 0x36, 0x39, 0x7d,
	        /* the record */
	        0x09, 0, 0xa5, 0x6d, 7, 0, 0, 0, 0xbb, 0xce, 0xf6, 0x30, 0x44, 0x82, 3, 0, 0, 0, 0,
	        0, 0, 0, 0, 0, 0x40, 0x4b, 0x4c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0,
	        0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0,
	        0, 0, 2, 0, 0, 0, 0xd0, 0xc3, 0xb2, 0xa1, 0x70, 0, 0, 0, 0, 0xc3, 0xb2, 0xa1, 0x70,
	        0, 0, 0};
	struct event_log log;

	(void)state;
	assert_int_equal(sizeof file, 47 + 92);
	event_log_run_cut(&log, file, sizeof file, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "btrace3");
	assert_int_equal(log.clock.pid, MAIN);
	assert_int_equal(log.clock.boot_base_ns, 987654321000123);
	assert_int_equal(log.n, 4);
	assert_int_equal(log.events[0].sym, event_log_method(0x70a1b2c300));
	assert_int_equal(log.events[1].sym, event_log_method(0x70a1b2c3d0));
	assert_int_equal(log.events[1].ts_ns, 0);
	assert_int_equal(log.events[1].cpu_ns, 5 * MS);
	assert_int_equal(log.events[1].offset, 47);
	assert_int_equal(log.events[1].track, MAIN + 1);
	assert_null(strstr(event_log_text(&log), "note counter ")); /* one sample is not a change */
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

/* Ring order; what went on; a wait bridges more than four intervals. */
static void test_samples(void **state)
{
	static const struct rec records[] = {
	        {.type = 9, .tid = 5, .begin = 102 * MS, .frames = {3, 2, 1}},
	        {.type = 9, .tid = 5, .begin = 100 * MS, .frames = {4, 2, 1}},
	        {.type = 9, .tid = 5, .begin = 101 * MS, .frames = {4, 2, 1}},
	        {.type = 8, .tid = 5, .begin = 103 * MS, .end = 143 * MS, .frames = {2, 1}},
	        {.type = 9, .tid = 5, .begin = 144 * MS, .frames = {1}},
	        {.type = 9, .tid = MAIN, .begin = 101 * MS, .frames = {9}},
	};
	struct event_log log;
	struct tw_buf b;

	(void)state;
	header(&b, 0, 5, JSON);
	for (size_t i = 0; i < sizeof records / sizeof *records; i++)
		record(&b, 5, &records[i]);
	log = run(&b);
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, 5, "+1@0 +2@0 +4@0 -4@2 +3@2 -3@3 +0@3 -0@44 -2@44 -1@45 ");
	is_reported(&log, MAIN, "+9@1 -9@2 ");
	assert_non_null(strstr(event_log_text(&log), "note contention 6 3000000 40000000 -1 "));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

/* A counter that changes with each sample is emitted every 10 ms, and at the end. */
static void test_totals_are_thinned(void **state)
{
	struct event_log log;
	struct tw_buf b;
	size_t reported = 0;

	(void)state;
	header(&b, 0, 5, JSON);
	for (uint64_t i = 0; i < 1000; i++)
		record(&b, 5,
		        &(struct rec){
		                9, 5, 100 + i * MS / 10, 0, 10, 0, 5, 100 + i, 1, 2, 3, 0, {1}});
	log = run(&b);
	for (const char *at = event_log_text(&log); (at = strstr(at, "note counter ")); at++)
		reported++;
	assert_int_equal(
	        reported, 11); /* of 99.9 ms: the first change, nine steps, the last sample */
	assert_non_null(strstr(event_log_text(&log), "note counter 6 99900000 -1 999 "));
	assert_null(strstr(event_log_text(&log), "note sample "));
	event_log_done(&log);
	tw_buf_done(&b);
}

static void test_totals(void **state)
{
	static const struct rec records[] = {
	        {9, 5, 100, 0, 10, 0, 5, 100, 1, 2, 3, 0, {1}},
	        {9, 6, 101, 0, 10, 0, 900, 90000, 9, 9, 9, 0, {1}},
	        {9, 5, 102, 0, 12, 0, 7, 164, 1, 6, 4, 0, {1}},
	        {9, 5, 103, 0, 12, 0, 7, 100, 1, 6, 4, 0, {1}},
	};

	(void)state;
	for (uint32_t version = 5; version >= 3; version--) {
		struct event_log log;
		struct tw_buf b;
		const char *text;

		header(&b, 0, version, JSON);
		for (size_t i = 0; i < 4; i++)
			record(&b, version, &records[i]);
		log = run(&b);
		assert_int_equal(log.status, TW_OK);
		text = event_log_text(&log);
		assert_int_equal(version >= 4, strstr(text, "note counter 6 2 -1 64 ") != NULL);
		assert_int_equal(version >= 4, strstr(text, " allocated objects \n") != NULL);
		assert_int_equal(version == 5, strstr(text, " forced context switches \n") != NULL);
		assert_null(strstr(text, "note counter 6 3 ")); /* fell */
		assert_null(strstr(text, "note counter 10 ")); /* the other thread had one sample */
		assert_int_equal(event_log_repairs(&log), 0);
		event_log_done(&log);
	}
}

/* A release holds main's wait in its begin: it is a sample at its end, and wakes main. */
static void test_release(void **state)
{
	static const struct rec records[] = {
	        {.type = 7, .tid = MAIN, .begin = 50 * MS, .end = 90 * MS, .frames = {1}},
	        {.type = 17,
	                .tid = 5,
	                .begin = 50 * MS,
	                .end = 89 * MS,
	                .cpu_end = 4,
	                .frames = {2}},
	};
	struct event_log log;
	struct tw_buf b;

	(void)state;
	header(&b, 0, 5, JSON);
	record(&b, 5, &records[0]);
	record(&b, 5, &records[1]);
	log = run(&b);
	is_reported(&log, 5, "+2@39 -2@79 ");
	assert_non_null(strstr(event_log_text(&log), "note wakeup 6 39000000 -1 28069 "));
	assert_non_null(strstr(event_log_text(&log), "note park 28070 0 40000000 -1 "));
	event_log_done(&log);
}

static void test_argument_and_start(void **state)
{
	static const struct rec records[] = {
	        {.type = 15, .tid = 5, .begin = 50 * MS, .frames = {1}},
	        {.type = 6, .tid = 5, .begin = 10 * MS, .end = 60 * MS, .frames = {2}},
	};
	struct event_log log;
	struct tw_buf b;

	(void)state;
	header(&b, 0, 5, "{\"processId\":28069,\"startTime\":40}");
	record(&b, 5, &records[0]);
	record(&b, 5, &records[1]);
	log = run(&b);
	is_reported(&log, 5, "+2@0 -2@10 +1@10 -1@20 +2@20 -2@30 ");
	assert_int_equal(log.clock.boot_base_ns, 40 * MS);
	assert_int_equal(log.counts[TW_REPAIR_begin_clamped], 1);
	event_log_done(&log);
}

/* --- damage --- */

static void test_bad_records(void **state)
{
	static const struct rec records[] = {
	        {.type = 9, .tid = 5, .begin = 50 * MS, .frames = {1}},
	        {.type = 9, .tid = 5, .begin = 51 * MS, .actual = 9, .frames = {2}},
	        {.type = 9, .tid = 5, .begin = 52 * MS, .frames = {0}},
	        {.type = 9, .tid = 5, .begin = 0, .frames = {3}},
	        {.type = 9, .tid = 5, .begin = UINT64_MAX, .frames = {3}},
	        {.type = 9, .tid = 5, .begin = 60 * MS, .end = 59 * MS, .frames = {3}},
	        {.type = 9, .tid = 5, .begin = 61 * MS, .frames = {1}},
	        {.type = 64, .tid = 5, .begin = 62 * MS, .frames = {4}},
	        {.type = 9, .tid = 5, .begin = 63 * MS, .frames = {5}},
	};
	struct event_log log;
	struct tw_buf b;
	uint64_t bad_at = 0;

	(void)state;
	header(&b, 0, 5, JSON);
	for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
		if (records[i].type == 64)
			bad_at = b.len;
		record(&b, 5, &records[i]);
	}
	log = run(&b);
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, 5, "+1@0 -1@22 ");
	assert_int_equal(log.counts[TW_REPAIR_sample_failed], 2);
	assert_int_equal(log.counts[TW_REPAIR_impossible_time], 3);
	assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
	assert_int_equal(log.offsets[TW_REPAIR_input_corrupt], bad_at);
	event_log_done(&log);
}

static void test_depth(void **state)
{
	(void)state;
	for (uint32_t saved = 1024; saved <= 1025; saved++) {
		struct rec r = {.type = 9, .tid = 5, .begin = 5, .frames = {1}};
		struct event_log log;
		struct tw_buf b;

		header(&b, 0, 5, JSON);
		record(&b, 5, &r);
		r.frames[0] = 0;
		record(&b, 5, &r);
		for (int i = 0; i < 2; i++) /* both depths */
			for (int k = 0; k < 4; k++)
				b.data[b.len - 8 + (size_t)(4 * i + k)] = (uint8_t)(saved >> 8 * k);
		for (uint64_t i = 0; i < saved; i++)
			(void)tw_buf_add_u64le(&b, i + 1);
		log = run(&b);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.counts[TW_REPAIR_input_corrupt], saved > 1024);
		assert_int_equal(log.n, saved > 1024 ? 2 : 2 + 2 * 1024);
		event_log_done(&log);
	}
}

static void test_truncated(void **state)
{
	static const struct rec r = {.type = 9, .tid = 5, .begin = 5, .frames = {1, 2}};
	struct tw_buf b;
	size_t first;

	(void)state;
	header(&b, 0, 5, JSON);
	record(&b, 5, &r);
	first = b.len;
	record(&b, 5, &r);
	for (size_t n = 12; n < b.len; n++) {
		struct event_log log;

		event_log_run_cut(&log, b.data, n, NULL);
		assert_int_equal(log.status, n < first ? TW_CORRUPT : TW_OK);
		assert_int_equal(log.counts[TW_REPAIR_input_truncated], n > 47 && n != first);
		if (n > first)
			assert_int_equal(log.offsets[TW_REPAIR_input_truncated], first);
		event_log_done(&log);
	}
	tw_buf_done(&b);
}

static void test_refusals(void **state)
{
	static const struct {
		uint32_t type, version;
		const char *json;
		enum tw_status status;
		const char *words;
	} rows[] = {
	        {1, 5, JSON, TW_UNSUPPORTED,
	                "btrace 3.0 data of type 1; this server reads type 0, sampling"},
	        {0, 2, JSON, TW_UNSUPPORTED,
	                "btrace 3.0 samples of version 2; this server reads versions 3 to 5"},
	        {0, 6, JSON, TW_UNSUPPORTED,
	                "btrace 3.0 samples of version 6; this server reads versions 3 to 5"},
	        {0, 5, JSON, TW_CORRUPT, "no readable sample"},
	        {0, 5, "nothing", TW_CORRUPT, "no readable sample"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct event_log log;
		struct tw_buf b;

		header(&b, rows[i].type, rows[i].version, rows[i].json);
		log = run(&b);
		assert_int_equal(log.status, rows[i].status);
		assert_string_equal(log.err.msg, rows[i].words);
		event_log_done(&log);
	}
}

static void test_no_memory(void **state)
{
	struct rec r = {
	        .type = 8, .begin = 5, .end = 9, .bytes = 5, .objects = 1, .frames = {1, 2}};
	struct tw_buf b;

	(void)state;
	header(&b, 0, 5, JSON);
	for (int i = 0; i < 3000; i++) {
		r.tid = (uint16_t)(i % 90 + 1);
		r.begin += 10;
		r.end += 10;
		r.bytes += 4;
		r.objects++;
		record(&b, 5, &r);
	}
	assert_null(event_log_run_starved(b.data, b.len));
	tw_buf_done(&b);
}

/* --- names --- */

static const uint8_t names[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0xd0, 0xc3, 0xb2,
        0xa1, 0x70, 0, 0, 0, 0x0c, 0, 'v', 'o', 'i', 'd', ' ', 'a', '.', 'B', '.', 'c', '(', ')', 0,
        0xc3, 0xb2, 0xa1, 0x70, 0, 0, 0, 0x12, 0, 'v', 'o', 'i', 'd', ' ', 'a', '.', 'B', '.', 'm',
        'a', 'i', 'n', '(', 'i', 'n', 't', ')', 0xa5, 0x6d, 0x10, '.', 's', 'a', 'm', 'p', 'l', 'e',
        '.', 'a', 'n', 'd', 'r', 'o', 'i', 'd', '\n'};

static void test_names(void **state)
{
	struct event_log log;

	(void)state;
	assert_int_equal(sizeof names, 85);
	event_log_run_cut(&log, names, sizeof names, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "btrace3_names");
	assert_string_equal(event_log_text(&log), "method 483749184464 a.B.c\n"
	                                          "method 483749184256 a.B.main\n"
	                                          "28069 .sample.android\n");
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	for (size_t n = 42; n < sizeof names; n++) {
		event_log_run_cut(&log, names, n, NULL);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.counts[TW_REPAIR_input_truncated], n != 66);
		event_log_done(&log);
	}
}

static void test_odd_names(void **state)
{
	uint8_t file[sizeof names + 8];
	struct event_log log;

	(void)state;
	memcpy(file, names, sizeof names);
	file[24] =
	        0; /* the first has no name: what follows is read as another method, then threads */
	event_log_run_cut(&log, file, sizeof names, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_non_null(strstr(event_log_text(&log), "method 483749184464 0x70a1b2c3d0\n"));
	event_log_done(&log);
	memcpy(file, names, sizeof names);
	memset(file + sizeof names, 0, 8); /* the rest of a longer file */
	event_log_run_cut(&log, file, sizeof file, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.counts[TW_REPAIR_stale_tail], 1);
	assert_int_equal(log.offsets[TW_REPAIR_stale_tail], sizeof names);
	event_log_done(&log);
	memcpy(file, names, sizeof names);
	file[8] = 2;
	event_log_run_cut(&log, file, sizeof names, NULL);
	assert_int_equal(log.status, TW_UNSUPPORTED);
	assert_string_equal(
	        log.err.msg, "btrace 3.0 names of version 2; this server reads version 1");
	event_log_done(&log);
	event_log_run_cut(&log, names, 30, NULL);
	assert_int_equal(log.status, TW_CORRUPT);
	event_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_bytes),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_totals_are_thinned),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_argument_and_start),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_odd_names),
};

UNIT_TESTS("btrace3", tests)
