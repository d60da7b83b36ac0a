/* Unit tests of Sentry profiles: sample format 1 and 2, legacy Android, damage, the sample file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

#define FRAMES                                                                                     \
	"\"frames\":[{\"function\":\"main\",\"module\":\"a.B\"},{\"function\":\"leaf\"},"          \
	"{\"instruction_addr\":\"0x7f\"},{}]"
#define V1(samples)                                                                                \
	"{\"version\":\"1\",\"platform\":\"android\",\"profile\":{" FRAMES                         \
	",\"stacks\":[[1,0],[2,0],[],[9],[3]],\"samples\":[" samples                               \
	"],\"thread_metadata\":{\"7\":{\"name\":\"main\"},\"x\":{\"name\":\"odd\"}}}}"

static struct event_log run(const char *text, const struct tw_limits *limits)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), limits);
	return log;
}

/* "+a.B.main0 -leaf5 " with times in ns; names are looked up among the few that tests use. */
static void is_reported(const struct event_log *log, const char *want)
{
	static const char *const names[] = {"a.B.main", "leaf", "0x7f", "(unknown)"};
	char got[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct tw_event *e = &log->events[i];
		const char *name = "?";

		for (size_t k = 0; k < 4; k++)
			if (event_log_name(tw_str_of(names[k])) == e->sym)
				name = names[k];
		len += (size_t)snprintf(got + len, sizeof got - len, "%c%s%lld ",
		        e->kind == TW_EV_BEGIN ? '+' : '-', name, (long long)e->ts_ns);
	}
	assert_string_equal(got, want);
}

static void test_version_1(void **state)
{
	struct event_log log =
	        run(V1("{\"elapsed_since_start_ns\":\"20\",\"stack_id\":1,\"thread_id\":\"7\"},"
	               "{\"elapsed_since_start_ns\":10,\"stack_id\":0,\"thread_id\":7},"
	               "{\"elapsed_since_start_ns\":30,\"stack_id\":2,\"thread_id\":7},"
	               "{\"elapsed_since_start_ns\":40,\"stack_id\":\"4\",\"thread_id\":7}"),
	                NULL);

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "sentry");
	is_reported(&log, "+a.B.main10 +leaf10 -leaf20 +0x7f20 -0x7f30 -a.B.main30 "
	                  "+(unknown)40 -(unknown)50 ");
	assert_non_null(strstr(event_log_text(&log), "source 8 samples 10\n"));
	assert_non_null(strstr(event_log_text(&log), "7 main\n"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

/* Stacks and samples with missing references are omitted, one by one. */
static void test_bad_samples(void **state)
{
	struct event_log log =
	        run(V1("{\"elapsed_since_start_ns\":1,\"stack_id\":3,\"thread_id\":7},"
	               "{\"elapsed_since_start_ns\":2,\"stack_id\":5,\"thread_id\":7},"
	               "{\"elapsed_since_start_ns\":3,\"stack_id\":-1,\"thread_id\":7},"
	               "{\"elapsed_since_start_ns\":-4,\"stack_id\":0,\"thread_id\":7},"
	               "{\"stack_id\":0,\"thread_id\":7},5,null,"
	               "{\"stack_id\":0,\"elapsed_since_start_ns\":5},"
	               "{\"elapsed_since_start_ns\":6,\"stack_id\":0,\"thread_id\":7}"),
	                NULL);

	(void)state;
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, "+a.B.main6 +leaf6 -leaf6 -a.B.main6 ");
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 8);
	event_log_done(&log);
}

static void test_version_2(void **state)
{
	struct event_log log =
	        run("{\"version\":\"2\",\"profiler_id\":\"p\",\"profile\":{" FRAMES
	            ",\"stacks\":[[1,0]],\"samples\":["
	            "{\"timestamp\":1700000000.25,\"stack_id\":0,\"thread_id\":\"7\"},"
	            "{\"timestamp\":1700000000.0,\"stack_id\":0,\"thread_id\":\"7\"}]},"
	            "\"measurements\":{\"cpu_usage\":{\"unit\":\"percent\",\"values\":["
	            "{\"timestamp\":1700000000.5,\"value\":12.75}]}}}\n"
	            "{\"version\":\"2\",\"profiler_id\":\"p\",\"profile\":{" FRAMES
	            ",\"stacks\":[[0]],\"samples\":["
	            "{\"timestamp\":1700000000.5,\"stack_id\":0,\"thread_id\":\"7\"}]}}\n",
	                NULL);

	(void)state;
	assert_int_equal(log.status, TW_OK);
	is_reported(&log, "+a.B.main0 +leaf0 -leaf500000000 -a.B.main750000000 ");
	assert_non_null(strstr(event_log_text(&log),
	        "note counter 0 500000000 -1 12 18446744073709551615 cpu_usage.percent \n"));
	event_log_done(&log);
}

static void test_legacy(void **state)
{
	static const char profile[] =
	        "{\"clock\":\"Dual\",\"events\":["
	        "{\"action\":\"Enter\",\"thread_id\":1,\"method_id\":300,\"time\":{\"Monotonic\":"
	        "{\"wall\":{\"secs\":1,\"nanos\":5},\"cpu\":{\"nanos\":7}}}},"
	        "{\"action\":\"Unwind\",\"thread_id\":1,\"method_id\":300,\"time\":{\"global\":"
	        "{\"secs\":2}}},{\"action\":\"Exit\"},"
	        "{\"action\":\"Enter\",\"thread_id\":1,\"method_id\":300,\"time\":{\"global\":"
	        "{\"secs\":-2}}}],"
	        "\"methods\":[{\"id\":300,\"class_name\":\"a.B\",\"name\":\"main\"}],"
	        "\"threads\":[{\"id\":1,\"name\":\"main\"}]}";
	char as_string[2048] = "{\"platform\":\"android\",\"profile\":\"";
	char as_object[2048];
	size_t len = strlen(as_string);

	(void)state;
	(void)snprintf(as_object, sizeof as_object,
	        "{\"platform\":\"android\",\"android_api_level\":30,\"profile\":%s}", profile);
	for (const char *p = profile; *p; p++) {
		if (*p == '"')
			as_string[len++] = '\\';
		as_string[len++] = *p;
	}
	(void)snprintf(as_string + len, sizeof as_string - len,
	        "\",\"profile_id\":\"x\",\"transactions\":[{\"name\":\"Start\","
	        "\"relative_start_ns\":\"5\",\"relative_end_ns\":25}]}");
	for (int i = 0; i < 2; i++) {
		struct event_log log = run(i ? as_string : as_object, NULL);

		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 2);
		assert_int_equal(log.events[0].ts_ns, 1000000005);
		assert_int_equal(log.events[0].cpu_ns, 7);
		assert_int_equal(log.events[0].sym, 301);
		assert_int_equal(log.events[1].kind, TW_EV_END);
		assert_int_equal(log.events[1].ts_ns, 2000000000);
		assert_int_equal(log.events[1].cpu_ns, -1);
		assert_int_equal(log.counts[TW_REPAIR_record_malformed], 2);
		assert_non_null(strstr(event_log_text(&log), "method 300 a.B.main\n"));
		assert_non_null(strstr(event_log_text(&log), "source 2 samples 0\n"));
		if (i)
			assert_non_null(strstr(event_log_text(&log), "note async 0 5 20 0 "));
		event_log_done(&log);
	}
}

/* --- damage --- */

/* A prefix of any length is refused with words or gives a beginning of the samples. */
static void test_cut_anywhere(void **state)
{
	static const char text[] =
	        V1("{\"elapsed_since_start_ns\":10,\"stack_id\":0,\"thread_id\":7},"
	           "{\"elapsed_since_start_ns\":20,\"stack_id\":1,\"thread_id\":7}");
	size_t most = 0;

	(void)state;
	for (size_t n = 1; n < sizeof text - 1; n++) {
		struct event_log log;

		event_log_run_cut(&log, text, n, NULL);
		assert_true(log.status == TW_OK || log.status == TW_CORRUPT ||
		            log.status == TW_UNSUPPORTED);
		if (log.status == TW_OK) {
			assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
			assert_int_equal(log.offsets[TW_REPAIR_input_truncated], n);
			assert_true(log.n >= most);
			most = log.n;
		}
		event_log_done(&log);
	}
	assert_int_equal(most, 6);
}

static void test_damage(void **state)
{
	/* the third sample is broken; a string of the first frame is not UTF-8 */
	char text[] = V1("{\"elapsed_since_start_ns\":10,\"stack_id\":0,\"thread_id\":7},"
	                 "{\"elapsed_since_start_ns\":20,\"stack_id\":1,\"thread_id\":7},"
	                 "{\"elapsed_since_start_ns\":30,,,");
	struct event_log log;

	(void)state;
	strstr(text, "leaf")[1] = (char)0xFF;
	log = run(text, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 6);
	assert_int_equal(log.events[1].sym, event_log_name(TW_STR("l?af")));
	assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
	assert_int_equal(log.counts[TW_REPAIR_text_not_utf8], 1);
	event_log_done(&log);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		enum tw_status status;
		const char *words;
	} rows[] = {
	        {"{\"platform\":\"android\",\"sampled_profile\":\"QUJD\"}", TW_UNSUPPORTED,
	                "this Sentry profile (JSON) does not contain a trace in a known format"},
	        {"{\"platform\":\"android\",\"sampled_profile\":\"\"}", TW_CORRUPT,
	                "no sample with a time and a stack in this Sentry profile"},
	        {V1(""), TW_CORRUPT, "no sample with a time and a stack in this Sentry profile"},
	        {"{\"profile\":5,\"profiler_id\":1}", TW_CORRUPT,
	                "no sample with a time and a stack in this Sentry profile"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct event_log log = run(rows[i].text, NULL);

		assert_int_equal(log.status, rows[i].status);
		assert_string_equal(log.err.msg, rows[i].words);
		event_log_done(&log);
	}
}

static size_t read_art(const char *name, uint8_t *art, size_t cap)
{
	const char *root = getenv("TW_SOURCE_ROOT");
	char path[512];
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/tests/golden/art/%s/input", root ? root : ".", name);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(art, 1, cap - 3, f);
	assert_int_equal(fclose(f), 0);
	return n;
}

/* The SDK's upload: an ART trace in base64, without padding. */
static void payload(struct tw_buf *text, const uint8_t *art, size_t n)
{
	static const char digits[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	tw_buf_init(text, 1 << 16);
	(void)tw_buf_add_str(text, TW_STR("{\"profile_id\":\"x\",\"sampled_profile\":\""));
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)art[i] << 16 | (uint32_t)art[i + 1] << 8 | art[i + 2];
		size_t chars = n - i < 3 ? n - i + 1 : 4;

		for (size_t k = 0; k < chars; k++)
			(void)tw_buf_add_u8(text, (uint8_t)digits[v >> (18 - 6 * k) & 63]);
	}
	(void)tw_buf_add_str(text, TW_STR("\",\"transactions\":[{\"name\":\"Start\","
	                                  "\"relative_end_ns\":25}]}"));
}

/* The same events as the ART trace that is in it. */
static void test_sampled_profile(void **state)
{
	static uint8_t art[8192];
	size_t n = read_art("minimal", art, sizeof art);
	struct event_log plain, carried;
	struct tw_buf text;

	(void)state;
	event_log_run(&plain, art, n, 0, NULL);
	assert_int_equal(plain.status, TW_OK);
	assert_in_range(plain.n, 1, 1000);
	payload(&text, art, n);
	event_log_run_cut(&carried, text.data, text.len, NULL);
	assert_int_equal(carried.status, TW_OK);
	assert_string_equal(carried.format->name, "sentry");
	assert_int_equal(carried.n, plain.n);
	for (size_t i = 0; i < plain.n; i++)
		assert_true(event_log_same(&carried.events[i], &plain.events[i]));
	assert_non_null(strstr(event_log_text(&carried), "note async 0 0 25 0 "));
	tw_buf_done(&text);
	event_log_done(&plain);
	event_log_done(&carried);
}

/* An upload that was cut within it keeps the events that came. */
static void test_cut_sampled_profile(void **state)
{
	static uint8_t art[16384];
	size_t n = read_art("realistic", art, sizeof art);
	struct tw_buf text;

	(void)state;
	payload(&text, art, n);
	for (size_t cut = 200; cut < n; cut += 1111) {
		size_t left = text.len - cut;
		struct event_log plain, carried;

		event_log_run(&plain, art,
		        (left - strlen("{'profile_id':'x','sampled_profile':'")) * 3 / 4, 0, NULL);
		event_log_run_cut(&carried, text.data, left, NULL);
		assert_int_equal(carried.status, plain.status);
		assert_int_equal(carried.n, plain.n);
		assert_true(carried.n > 0 || carried.status != TW_OK);
		assert_true(carried.counts[TW_REPAIR_input_truncated] > 0);
		event_log_done(&plain);
		event_log_done(&carried);
	}
	tw_buf_done(&text);
}

static void test_no_memory(void **state)
{
	static char text[200000];
	size_t len = 0;

	(void)state;
	len += (size_t)snprintf(text, sizeof text,
	        "{\"version\":\"1\",\"profile\":{" FRAMES ",\"stacks\":[[1,0]],\"samples\":[");
	for (int i = 0; i < 2000; i++)
		len += (size_t)snprintf(text + len, sizeof text - len,
		        "%s{\"elapsed_since_start_ns\":%d,\"stack_id\":0,\"thread_id\":%d}",
		        i ? "," : "", i, i % 90);
	(void)snprintf(text + len, sizeof text - len, "]}}");
	assert_null(event_log_run_starved(text, strlen(text)));
}

static void test_sample_file(void **state)
{
	FILE *f = fopen(unit_sample("sentry/sentry-java-sentry_profile.json"), "re");
	static char text[8192];
	struct event_log log;
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(text, 1, sizeof text, f);
	assert_int_equal(fclose(f), 0);
	event_log_run_cut(&log, text, n, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 10);
	assert_int_equal(log.events[0].sym, event_log_name(TW_STR("java.lang.Thread.run")));
	assert_int_equal(log.events[9].ts_ns - log.events[0].ts_ns, 2 * 28398037);
	assert_non_null(strstr(event_log_text(&log), "57 http-nio-8080-Acceptor\n"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_legacy),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sampled_profile),
        cmocka_unit_test(test_cut_sampled_profile),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_sample_file),
};

UNIT_TESTS("sentry", tests)
