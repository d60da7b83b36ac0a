/* Unit tests of profiles that other tools write: speedscope, Firefox Profiler, folded stacks and
 * pprof; of the JSON reader and the thread labels that they share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/formats/json/json_stream.h"
#include "decoder/formats/label.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

static struct event_log run(const char *text)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), NULL);
	return log;
}

/* "+7@10" is the begin of method or name 7 at 10 ns; handles are below 100 in these tests. */
static void is_emitted(const struct event_log *log, const char *want)
{
	char got[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct tw_event *e = &log->events[i];
		const char *name = "?";

		for (const char *k = "abcd"; *k; k++)
			if (event_log_name((struct tw_str){k, 1}) == e->sym ||
			        event_log_method(UINT64_C(1) << 63 | (uint64_t)(*k - 'a')) ==
			                e->sym)
				name = k;
		len += (size_t)snprintf(got + len, sizeof got - len, "%c%c%lld ",
		        e->kind == TW_EV_BEGIN ? '+' : '-', *name, (long long)e->ts_ns);
	}
	assert_string_equal(got, want);
}

static void test_labels(void **state)
{
	static const struct {
		const char *label, *name;
		uint64_t tid;
	} good[] = {{"main (12)", "main", 12}, {"a (b) (7, sampled)", "a (b)", 7},
	        {"x (1, counted)", "x", 1}, {"[OkHttp tid=99]", "OkHttp", 99}};
	static const char *const bad[] = {"", "main", "main (x)", "main (1, other)",
	        "main (99999999999)", "[main]", "[main tid=]", "main (12", "(12)"};
	struct tw_str name;
	uint64_t tid;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(tw_thread_label(tw_str_of(good[i].label), &name, &tid));
		assert_int_equal(tid, good[i].tid);
		assert_true(tw_str_eq(name, tw_str_of(good[i].name)));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(tw_thread_label(tw_str_of(bad[i]), &name, &tid));
}

/* --- json_stream.h --- */

struct seen {
	char text[1024];
	size_t n;
};

static enum tw_status note(void *arg, struct tw_json_value *v, struct tw_err *err)
{
	static const char kinds[] = "{[.snw";
	struct seen *s = arg;

	(void)err;
	v->tag = v->in + 1;
	if (tw_str_eq(v->key, TW_STR("skip")))
		v->tag = 0;
	s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "%u%c%.*s:%.*s@%llu ",
	        v->in, kinds[v->kind], (int)v->key.len, v->key.ptr ? v->key.ptr : "",
	        (int)v->text.len, v->text.ptr ? v->text.ptr : "", (unsigned long long)v->index);
	return TW_OK;
}

static void reads(const char *text, const char *want, enum tw_repair repair, uint64_t times)
{
	static const size_t steps[] = {1, 2, 3, 11, SIZE_MAX / 2};

	for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
		size_t step = steps[k];
		struct tw_arena *a = tw_arena_new(1 << 20);
		struct event_log log;
		struct tw_json_stream json;
		struct seen seen = {.n = 0};
		size_t len = strlen(text);

		event_log_run(&log, "", 0, 0, NULL); /* for its sink */
		memset(log.counts, 0, sizeof log.counts);
		assert_true(tw_json_stream_init(&json, a, &log.sink, note, &seen));
		for (size_t i = 0; i < len; i += step)
			assert_int_equal(tw_json_stream_push(&json, (const uint8_t *)text + i,
			                         len - i < step ? len - i : step, NULL),
			        TW_OK);
		assert_int_equal(tw_json_stream_finish(&json, false, NULL), TW_OK);
		assert_string_equal(seen.text, want);
		assert_int_equal(log.counts[repair], times);
		event_log_done(&log);
		tw_arena_free(a);
	}
}

static void test_json(void **state)
{
	(void)state;
	reads("\xEF\xBB\xBF {\"a\": [1, -2.5e3, \"x\"], \"skip\": {\"b\": [[]]}, \"c\": null}",
	        "0{:@0 1[a:@0 2n:1@0 2n:-2.5e3@1 2s:x@2 2.:@3 1{skip:@1 1wc:null@2 1.:@3 ",
	        TW_REPAIR_input_corrupt, 0);
	reads("[\"\\u0041\\u00e9\\ud83d\\ude00\\ud800x\\n\"]",
	        "0[:@0 1s:A\xC3\xA9\xF0\x9F\x98\x80\xEF\xBF\xBDx\n@0 1.:@1 ",
	        TW_REPAIR_input_corrupt, 0);
	reads("[1, 2", "0[:@0 1n:1@0 1.:@1 ", TW_REPAIR_input_truncated, 1);
	reads("[1, }, 2]", "0[:@0 1n:1@0 1.:@1 ", TW_REPAIR_input_corrupt, 1);
	reads("[1] trailing", "0[:@0 1n:1@0 1.:@1 ", TW_REPAIR_trailing_data, 1);
	/* part of a byte order mark, but not at the start */
	reads("-1\xBF-", "0n:-1@0 ", TW_REPAIR_trailing_data, 1);
	reads("[\"\\q\"]", "0[:@0 1.:@0 ", TW_REPAIR_input_corrupt, 1);
	reads("{\"0123456789012345678901234567890123456789012345678\": 1}", "0{:@0 1n:1@0 1.:@1 ",
	        TW_REPAIR_input_corrupt, 0);
}

/* More nesting than is read is damage, and every open container still ends. */
/* Runs of bytes are scanned eight at a time: a quote, an escape, a control character or the end at
 * each place of such a run, after bytes above 0x7F that must not be taken for one. */
static void test_json_runs(void **state)
{
	(void)state;
	for (size_t len = 0; len < 20; len++) {
		char text[128];
		char expected[128];
		char run[32] = "";

		for (size_t i = 0; i < len; i++)
			run[i] = i % 3 ? (char)('a' + i) : '\xA2';
		(void)snprintf(text, sizeof text, "{\"%s\":\"%s\",\"%sb\" : \"%s\\n\"}", run, run,
		        run, run);
		(void)snprintf(expected, sizeof expected, "0{:@0 1s%s:%s@0 1s%sb:%s\n@1 1.:@2 ",
		        run, run, run, run);
		reads(text, expected, TW_REPAIR_input_corrupt, 0);
		(void)snprintf(text, sizeof text, "[\"%s\x1F\"]", run);
		reads(text, "0[:@0 1.:@0 ", TW_REPAIR_input_corrupt, 1);
		(void)snprintf(text, sizeof text, "[\"%s", run);
		reads(text, "0[:@0 1.:@0 ", TW_REPAIR_input_truncated, 1);
	}
}

static void test_json_numbers(void **state)
{
	static const char *const texts[] = {"0", "-0", "7", "-12.5", "007", "0.1",
	        "123456789012345", "1234567890.12345", "0.00000000000001", "-99999999999.9999",
	        "1234567890123456", "0.1234567890123456789", "1e3", "-2.5E-7", "1e400", ".5", "5.",
	        "1.2.3", "-", "--1", "1-2", "+1", "-.5"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct tw_json_value v = {.kind = TW_JSON_NUMBER, .text = tw_str_of(texts[i])};
		char *rest;
		double expected = strtod(texts[i], &rest);
		bool valid = *rest == '\0' && expected < 1e300;
		double got = 0;

		assert_int_equal(tw_json_real(&v, &got), valid);
		assert_true(!valid || memcmp(&got, &expected, sizeof got) == 0);
	}
}

static void test_json_depth(void **state)
{
	char text[200];
	struct event_log log;

	(void)state;
	memset(text, '[', sizeof text);
	memcpy(text, "{\"$schema\":\"speedscope\",\"profiles\":", 36);
	event_log_run_cut(&log, text, sizeof text, NULL);
	assert_int_equal(log.status, TW_CORRUPT);
	assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
	event_log_done(&log);
}

/* --- formats --- */

static void test_speedscope_order(void **state)
{
	/* the unit and the name of a profile come after its events */
	struct event_log log = run(
	        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":["
	        "{\"type\":\"evented\",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":0.5},"
	        "{\"at\":2,\"frame\":0,\"type\":\"C\"}],\"unit\":\"microseconds\",\"name\":\"main "
	        "(7)\"}],\"shared\":{\"frames\":[{\"name\":\"a\"}]}}");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "speedscope");
	is_emitted(&log, "+a500 -a2000 ");
	assert_non_null(strstr(event_log_text(&log), "7 main\n"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_speedscope_weights(void **state)
{
	/* one sample has no weight, a later profile counts bytes */
	struct event_log log = run(
	        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":["
	        "{\"type\":\"sampled\",\"name\":\"w\",\"unit\":\"milliseconds\",\"startValue\":1,"
	        "\"samples\":[[0],[0,1],[],[0],[1]],\"weights\":[1,2,1,0.5]},"
	        "{\"type\":\"sampled\",\"name\":\"b\",\"unit\":\"bytes\",\"samples\":[[2]],"
	        "\"weights\":[64]}]}");

	(void)state;
	is_emitted(&log, "+a1000000 +b2000000 -b4000000 -a4000000 +a5000000 -a5500000 +c0 -c64 ");
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 1);
	assert_non_null(strstr(event_log_text(&log), "source 3 counts 0\n"));
	event_log_done(&log);
}

static void test_firefox_idle(void **state)
{
	/* time between two exact samples has no owner; a missing caller ends the stack */
	struct event_log log = run(
	        "{\"meta\":{\"preprocessedProfileVersion\":70,\"interval\":1},\"threads\":[{"
	        "\"name\":"
	        "\"main\",\"pid\":\"5.1\",\"tid\":7,\"samples\":{\"weightType\":\"tracing-ms\","
	        "\"stack\":[1,0,2],\"time\":[0,0.002,0.005],\"weight\":[0.002,0.001,0.001]}}],"
	        "\"shared\":{\"stackTable\":{\"frame\":[0,1,0],\"prefix\":[null,0,9]},"
	        "\"frameTable\":"
	        "{\"func\":[0,1]},\"funcTable\":{\"name\":[0,1]},\"stringArray\":[\"a\",\"b\"]}}");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "firefox");
	is_emitted(&log, "+a0 +b0 -b2000 -a3000 +a5000 -a6000 ");
	event_log_done(&log);
}

/* An invalid interval is measured instead; frames beyond the limit, the innermost, are dropped. */
static void test_firefox_odd(void **state)
{
	enum { DEEP = 4100 };
	struct event_log log;
	struct tw_buf b;

	(void)state;
	for (int huge = 0; huge < 2; huge++) {
		tw_buf_init(&b, 1 << 20);
		(void)tw_buf_printf(&b,
		        "{\"meta\":{\"preprocessedProfileVersion\":57,\"interval\":%s},"
		        "\"shared\":{\"stringArray\":[\"a\"],\"funcTable\":{\"name\":[0]},"
		        "\"frameTable\":{\"func\":[0]},\"stackTable\":{\"frame\":[0",
		        huge ? "1e300" : "1");
		for (int i = 1; i < DEEP; i++)
			(void)tw_buf_printf(&b, ",0");
		(void)tw_buf_printf(&b, "],\"prefix\":[null");
		for (int i = 1; i < DEEP; i++)
			(void)tw_buf_printf(&b, ",%d", i - 1);
		(void)tw_buf_printf(&b,
		        "]}},\"threads\":[{\"name\":\"m\",\"tid\":1,\"samples\":"
		        "{\"stack\":[%d,0],\"time\":[0,1]}}]}",
		        DEEP - 1);
		event_log_run_cut(&log, b.data, b.len, NULL);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 2 * 4096);
		assert_int_equal(log.events[log.n - 1].ts_ns, huge ? 1000000 : 2000000);
		assert_int_equal(event_log_repairs(&log), DEEP - 4096);
		event_log_done(&log);
		tw_buf_done(&b);
	}
}

static void test_folded_sums(void **state)
{
	struct event_log log = run("a;b 5\nc 1.75\n\na 2\r\na;b 3\n");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "folded");
	/* each path is one call, whose length is its sum; handles decide the order of paths */
	assert_non_null(strstr(event_log_text(&log), "source 2 counts -1\n"));
	assert_int_equal(log.n, 6);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static void test_refused(void **state)
{
	static const char *const empty[] = {"{\"$schema\":\"https://www.speedscope.app/"
	                                    "file-format-schema.json\",\"profiles\":[]}",
	        "{\"meta\":{\"preprocessedProfileVersion\":70},\"threads\":[]}"};

	(void)state;
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
		struct event_log log = run(empty[i]);

		assert_int_equal(log.status, TW_CORRUPT);
		event_log_done(&log);
	}
}

/* Appends a field of bytes. */
static void put_field(struct tw_buf *b, uint8_t number, const void *p, size_t n)
{
	uint8_t varint[10];

	(void)tw_buf_add_u8(b, (uint8_t)(number << 3 | 2));
	(void)tw_buf_add(b, varint, (size_t)(tw_put_varint(varint, n) - varint));
	(void)tw_buf_add(b, p, n);
}

/* Samples of a few bytes, whose location has many lines. */
static void test_amplified(void **state)
{
	enum { LINES = 100000, SAMPLES = 12000 };
	struct event_log log;
	struct tw_buf b;
	struct tw_buf location;

	(void)state;
	tw_buf_init(&b, 1 << 20);
	tw_buf_init(&location, 1 << 20);
	(void)tw_buf_add(&location, "\x08\x01", 2);
	for (int i = 0; i < LINES; i++)
		put_field(&location, 4, "\x08\x01", 2);
	put_field(&b, 1, "\x08\x01\x10\x01", 4);
	for (int i = 0; i < SAMPLES; i++)
		put_field(&b, 2, "\x08\x01\x10\x01", 4);
	put_field(&b, 4, location.data, location.len);
	put_field(&b, 5, "\x08\x01\x10\x01", 4);
	put_field(&b, 6, "", 0);
	put_field(&b, 6, "f", 1);
	assert_int_equal(tw_buf_status(&b), TW_OK);
	event_log_run_cut(&log, b.data, b.len, NULL);
	assert_int_equal(log.status, TW_TOO_LARGE);
	event_log_done(&log);
	tw_buf_done(&location);
	tw_buf_done(&b);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_runs),
        cmocka_unit_test(test_json_numbers),
        cmocka_unit_test(test_json_depth),
        cmocka_unit_test(test_speedscope_order),
        cmocka_unit_test(test_speedscope_weights),
        cmocka_unit_test(test_firefox_idle),
        cmocka_unit_test(test_firefox_odd),
        cmocka_unit_test(test_folded_sums),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_amplified),
};

UNIT_TESTS("profiles", tests)
