/* Unit tests of Matrix issues: the stack text, threadStack, numbers, and its mapping's grammar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/symbols/method_map.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

#define EVIL(rest)   "{\"machine\":\"HIGH\",\"tag\":\"Trace_EvilMethod\"," rest "}"
#define AT(id, time) EVIL("\"stack\":\"0," id ",1,100\",\"cost\":100,\"time\":" time)

static struct event_log run(const char *text)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), NULL);
	return log;
}

/* Slices as "id@begin+length ", in ms. */
static void is_reported(const struct event_log *log, const char *want)
{
	char got[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < log->n; i++)
		if (log->events[i].kind == TW_EV_SLICE)
			len += (size_t)snprintf(got + len, sizeof got - len, "%u@%lld+%lld ",
			        log->events[i].sym - 1, (long long)log->events[i].ts_ns / 1000000,
			        (long long)log->events[i].dur_ns / 1000000);
	assert_string_equal(got, want);
}

static void test_stack(void **state)
{
	struct event_log log =
	        run(EVIL("\"detail\":\"NORMAL\",\"cost\":800,\"scene\":\"Main\","
	                 "\"time\":1700000000800,\"stackKey\":\"3|\",\"stack\":"
	                 "\"0,1048574,1,800\\n1,2,1,500\\n2,3,4,450\\n1,5,1,200\\n\""));

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "matrix");
	is_reported(&log, "3@0+450 2@0+500 5@500+200 1048574@0+800 ");
	assert_non_null(strstr(event_log_text(&log), "source 2 samples 5000000\n"));
	assert_non_null(strstr(event_log_text(&log), "note merged 2 0 450000000 4 "));
	assert_non_null(strstr(event_log_text(&log), "note message 2 0 800000000 800 "));
	assert_non_null(strstr(event_log_text(&log), " Main {\"cost\":800,"));
	assert_null(strstr(event_log_text(&log), "1048574")); /* the stack is not emitted twice */
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

/* A document is parsed in pieces until it ends or breaks: wherever the first pieces end (at 256 and
 * 2,048 bytes), within a word, a number, an escape or a character, it is the same document; and the
 * one after a broken one is found. */
static void test_pieces(void **state)
{
	static const char odd[] =
	        "\"t\":true,\"n\":-1.5e3,\"u\":\"\\u00e9\xC3\xA9\\\"\",\"z\":null,";
	static const size_t borders[] = {256, 2048};
	static char pad[2048], text[8192];

	(void)state;
	memset(pad, 'x', sizeof pad);
	for (size_t i = 0; i < sizeof borders / sizeof *borders; i++)
		for (size_t back = 0; back < 200; back++) {
			struct event_log log;
			int n = snprintf(text, sizeof text,
			        EVIL("\"pad\":\"%.*s\",%s\"stack\":\"0,7,1,"
			             "5\\n\"") "\n"
			                       "{\"tag\":\"Trace_EvilMethod\",[%"
			                       ".*s\n" EVIL("\"pad\":\"%.*s\",%"
			                                    "s\"stack\":\"0,8,1,"
			                                    "5\\n\""),
			        (int)(borders[i] - back), pad, odd, (int)back, pad,
			        (int)(borders[i] - back), pad, odd);

			event_log_run(&log, text, (size_t)n, 0, NULL);
			assert_int_equal(log.status, TW_OK);
			is_reported(&log, "7@0+5 8@5+5 ");
			assert_int_equal(log.counts[TW_REPAIR_input_corrupt], 1);
			event_log_done(&log);
		}
}

/* A trimmed parent, a first line that is deep, costs that cannot be. */
static void test_odd_stacks(void **state)
{
	static const struct {
		const char *stack, *want;
		uint64_t capped, malformed;
	} rows[] = {
	        {"0,1,1,100\\n3,2,1,50\\n2,3,1,20\\n1,4,1,10", "2@0+50 3@50+20 4@70+10 1@0+100 ", 0,
	                0},
	        {"2,1,1,100\\n1,2,1,50\\n", "1@0+100 2@100+50 ", 0, 0},
	        {"0,1,1,100\\n1,2,1,80\\n1,3,1,80\\n1,4,1,5", "2@0+80 3@80+20 4@100+0 1@0+100 ", 2,
	                0},
	        {"0,1,1,9223372036854775807", "1@0+3600000 ", 1, 0},
	        {"0,1,1,3600000\\n1,2,1,3600000", "2@0+3600000 1@0+3600000 ", 0, 0},
	        {"0,1,1,3600001", "1@0+3600000 ", 1, 0},
	        {"0,1,1,10\\nx\\n-1,2,1,5\\n1,2,1\\n1,2,1,5,6\\n1,2,1,-5\\n1,2,1,5\\r\\n\\n",
	                "2@0+5 1@0+10 ", 0, 5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[512];
		struct event_log log;

		(void)snprintf(text, sizeof text, EVIL("\"stack\":\"%s\""), rows[i].stack);
		log = run(text);
		assert_int_equal(log.status, TW_OK);
		is_reported(&log, rows[i].want);
		assert_int_equal(log.counts[TW_REPAIR_cost_capped], rows[i].capped);
		assert_int_equal(log.counts[TW_REPAIR_line_malformed], rows[i].malformed);
		event_log_done(&log);
	}
}

/* Issues of an array, or one per line, are placed by their times and never overlap. */
static void test_several(void **state)
{
	static const char *const texts[] = {
	        "[" AT("1", "1000") "," AT("2", "1050") "," AT("3", "5000") "]",
	        AT("1", "1000") "\n" AT("2", "1050") "\n" AT("3", "5000") "\n",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct event_log log = run(texts[i]);

		assert_int_equal(log.status, TW_OK);
		is_reported(&log, "1@0+100 2@100+100 3@4000+100 ");
		event_log_done(&log);
	}
}

static void test_thread_stack(void **state)
{
	struct event_log log =
	        run(EVIL("\"detail\":\"SIGNAL_ANR\",\"scene\":\"Main\",\"threadStack\":"
	                 "\" \\nat a.B.leaf(B.java:1)\\n  a.B.main(Native Method)\\n"
	                 "garbage\\n\",\"isProcessForeground\":true"));

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 4);
	assert_int_equal(log.events[0].sym, event_log_name(TW_STR("a.B.main")));
	assert_int_equal(log.events[1].sym, event_log_name(TW_STR("a.B.leaf")));
	assert_int_equal(log.events[2].ts_ns, 5000000);
	assert_non_null(strstr(event_log_text(&log), "note anr 2 0 0 0 "));
	assert_non_null(strstr(event_log_text(&log), "\"isProcessForeground\":true"));
	event_log_done(&log);
}

/* SIGNAL_ANR_NATIVE_BACKTRACE: functions by name, else their file. */
static void test_native_stack(void **state)
{
	struct event_log log =
	        run(EVIL("\"detail\":\"SIGNAL_ANR_NATIVE_BACKTRACE\",\"threadStack\":"
	                 "\"#00 pc 000000000004a5c8  /system/lib64/libc.so (__epoll_pwait+8)\\n"
	                 "#01 pc 0000000000001234  /system/lib64/libutils.so\\n"
	                 "# no frame\\n\""));

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 4);
	assert_int_equal(log.events[0].sym, event_log_name(TW_STR("libutils.so")));
	assert_int_equal(log.events[1].sym, event_log_name(TW_STR("__epoll_pwait")));
	event_log_done(&log);
}

static void test_numbers(void **state)
{
	struct event_log log = run("{\"tag\":\"Trace_FPS\",\"scene\":\"Main\",\"time\":5,"
	                           "\"fps\":58.7,\"dropSum\":{\"DROPPED_HIGH\":3}}");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 0);
	assert_non_null(strstr(event_log_text(&log), "note counter 0 0 -1 58 "));
	assert_non_null(strstr(event_log_text(&log), " dropSum.DROPPED_HIGH \n"));
	event_log_done(&log);
}

static void test_refused(void **state)
{
	struct event_log log = run("[{\"stackKey\":\"\"}]");

	(void)state;
	assert_int_equal(log.status, TW_CORRUPT);
	assert_string_equal(log.err.msg, "no Matrix issue with a tag or a stack");
	assert_int_equal(log.counts[TW_REPAIR_record_malformed], 1);
	event_log_done(&log);
}

/* Matrix writes descriptors with dots and none for native methods. */
static void test_mapping(void **state)
{
	static const char text[] = "1,1,com.a.B run ()V\n"
	                           "2,257,com.a.B read\n"
	                           "7,4,com.a.B$1 on (Landroid.view.View;I)Z\n"
	                           "1048574,1,android.os.Handler dispatchMessage "
	                           "(Landroid.os.Message;)V\n";
	struct tw_map_writer *w = tw_map_writer_new(1 << 20, 1000);
	struct tw_map_stats stats;
	struct tw_method_name name;
	struct tw_buf image;
	struct tw_map map;
	char shown[128];

	(void)state;
	tw_buf_init(&image, 1 << 20);
	assert_int_equal(
	        tw_map_writer_push(w, (const uint8_t *)text, sizeof text - 1, NULL), TW_OK);
	assert_int_equal(tw_map_writer_finish(w, &image, &stats, NULL), TW_OK);
	assert_int_equal(stats.entries, 4);
	assert_int_equal(stats.malformed, 0);
	assert_int_equal(tw_map_open(image.data, image.len, &map, NULL), TW_OK);
	assert_true(tw_map_display(&map, 1048574, shown, sizeof shown));
	assert_string_equal(shown, "android.os.Handler.dispatchMessage");
	assert_true(tw_map_find(&map, 2, &name));
	assert_int_equal(name.descriptor.len, 0);
	assert_int_equal(name.access_flags, 257);
	assert_true(tw_map_find(&map, 7, &name));
	assert_true(tw_str_eq(name.descriptor, TW_STR("(Landroid.view.View;I)Z")));
	tw_buf_done(&image);
	tw_map_writer_free(w);
}

static void test_no_memory(void **state)
{
	static char text[60000];
	size_t len = 0;

	(void)state;
	text[len++] = '[';
	for (int i = 0; i < 100; i++)
		len += (size_t)snprintf(text + len, sizeof text - len,
		        "%s" EVIL("\"threadStack\":\"at a.B.leaf%d(B.java:1)\",\"stack\":"
		                  "\"0,%d,2,100\\n1,5,1,50\""),
		        i ? "," : "", i, i);
	(void)snprintf(text + len, sizeof text - len, "]");
	assert_null(event_log_run_starved(text, strlen(text)));
}

/* Many issues need no more memory than one, and hours upon hours stay in range. */
static void test_many(void **state)
{
	enum { ISSUES = 30000, LINES = 100000 };
	static const char line[] = "0,1,1,99999999\\n";
	static const char issue[] = EVIL("\"stack\":\"0,1,1,5\",\"cost\":5") "\n";
	static const char head[] =
	        "{\"tag\":\"Trace_EvilMethod\",\"time\":9}\n"
	        "{\"tag\":\"Trace_EvilMethod\",\"time\":4398046511104,\"stack\":\"";
	size_t cap = ISSUES * sizeof issue + LINES * sizeof line + 1000;
	char *text = tw_mem_alloc(cap, 1);
	struct tw_limits l = tw_limits_default();
	struct event_log log;
	size_t len = 0;

	(void)state;
	assert_non_null(text);
	l.max_memory_bytes = 256 << 20;
	for (int i = 0; i < ISSUES; i++, len += sizeof issue - 1)
		memcpy(text + len, issue, sizeof issue - 1);
	event_log_run(&log, text, len, 0, &l);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);

	memcpy(text, head, sizeof head - 1);
	len = sizeof head - 1;
	for (int i = 0; i < LINES; i++, len += sizeof line - 1)
		memcpy(text + len, line, sizeof line - 1);
	memcpy(text + len, "\"}", 2);
	event_log_run(&log, text, len + 2, 0, NULL);
	if (log.status != TW_OK)
		fail_msg("%s", log.err.msg);
	assert_int_equal(log.n, LINES);
	for (size_t i = 0; i < log.n; i++) {
		assert_int_equal(log.events[i].ts_ns, (4398046511104 - 9) * 1000000);
		assert_int_equal(log.events[i].dur_ns, 0);
	}
	event_log_done(&log);
	tw_mem_free(text);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_odd_stacks),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_thread_stack),
        cmocka_unit_test(test_native_stack),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_mapping),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_many),
};

UNIT_TESTS("matrix", tests)
