/* ANR events in JSON: what becomes of them, several of them, cuts, failed allocations, and that the
 * real one is found to be the same as its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/anr_fixture.h"
#include "tests/unit/unit.h"

#define FRAME(cls, method, line)                                                                   \
	"{\"class_name\":\"" cls "\",\"method_name\":\"" method                                    \
	"\",\"file_name\":\"F.kt\",\"line_num\":" line "}"
#define EVENT(frame)                                                                               \
	"{\"exceptions\":[{\"type\":\"a.AnrError\",\"message\":\"ANR for at least 5000 ms\","      \
	"\"frames\":[" FRAME("java.lang.Thread", "sleep",                                          \
	        "-2") "," frame "]}],"                                                             \
	              "\"threads\":[{\"name\":\"w\",\"frames\":[" FRAME("a.W", "run", "0") "]}]}"

static struct anr_report read_json(const char *text)
{
	struct anr_report r = anr_read(text, strlen(text), NULL);

	if (r.log.status != TW_OK)
		fail_msg("%s", r.log.err.msg);
	assert_string_equal(r.log.format->name, "anr_json");
	return r;
}

static void test_an_event(void **state)
{
	struct anr_report r = read_json(EVENT(FRAME("a.b.Main", "go", "7")));
	json_t *frames = json_object_get(anr_thread(&r, 0), "frames");

	(void)state;
	assert_string_equal(
	        anr_word(r.doc, "verdict"), "main did not respond for 5 s: it sleeps in Main.go");
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 2);
	assert_string_equal(anr_word(json_array_get(frames, 0), "where"), "Native method");
	assert_string_equal(anr_word(json_array_get(frames, 1), "where"), "F.kt:7");
	frames = json_object_get(anr_thread(&r, 1), "frames");
	assert_string_equal(anr_word(json_array_get(frames, 0), "where"), "F.kt");
	assert_string_equal(anr_word(anr_thread(&r, 1), "name"), "w");
	assert_int_equal(r.log.n, 6);
	anr_done(&r);
}

static void test_several_events_are_looks(void **state)
{
	struct anr_report r = read_json("[" EVENT(FRAME("a.b.Main", "go", "7")) "," EVENT(
	        FRAME("a.b.Main", "stop", "7")) "," EVENT(FRAME("a.b.Main", "go", "8")) "]");

	(void)state;
	assert_string_equal(anr_word(r.doc, "verdict"), "main was in Main.go in 2 of 3 samples");
	assert_int_equal(anr_count(r.doc, "processes"), 3);
	anr_done(&r);
	r = read_json(EVENT(FRAME("a.b.Main", "go", "7")) "\n" EVENT(FRAME("a.b.Main", "go", "7")));
	assert_int_equal(anr_count(r.doc, "processes"), 2);
	anr_done(&r);
}

static void test_nothing_to_read(void **state)
{
	static const char text[] = "{\"exceptions\":[{\"frames\":[{\"class_name\":5}]}]}";
	struct anr_report r = anr_read(text, strlen(text), NULL);

	(void)state;
	assert_int_equal(r.log.status, TW_CORRUPT);
	assert_string_equal(r.log.err.msg, "no readable stack in this ANR event");
	anr_done(&r);
}

static void test_cuts(void **state)
{
	static const char text[] = "[" EVENT(FRAME("a.b.Main", "go", "7")) "]";
	struct event_log whole, pieces;

	(void)state;
	event_log_run(&whole, text, strlen(text), 0, NULL);
	for (uint64_t seed = 1; seed < 20; seed++) {
		event_log_run(&pieces, text, strlen(text), seed, NULL);
		assert_null(event_log_differs(&whole, &pieces));
		event_log_done(&pieces);
	}
	event_log_done(&whole);
}

static void test_failed_allocations(void **state)
{
	static const char text[] = EVENT(FRAME("a.b.Main", "go", "7"));
	struct event_log log;
	uint64_t n = 1;

	(void)state;
	for (bool ok = false; !ok; n++) {
		tw_mem_fail_at(n);
		event_log_run(&log, text, strlen(text), 0, NULL);
		tw_mem_fail_at(0);
		ok = log.status == TW_OK && log.names.status == TW_OK;
		if (!ok)
			assert_true(log.status == TW_NOMEM || log.names.status == TW_NOMEM);
		event_log_done(&log);
		assert_true(n < 200);
	}
	assert_true(n > 2);
}

static struct anr_report sample(const char *name)
{
	FILE *f = fopen(unit_sample(name), "rbe");
	char text[1 << 16];
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof text, f);
	(void)fclose(f);
	return anr_read(text, n, NULL);
}

static void test_the_real_event_and_its_text(void **state)
{
	struct anr_report event = sample("anr/anr_one.json");
	struct anr_report text = sample("anr/anr_stacktrace_one.txt");

	(void)state;
	assert_int_equal(event.log.status, TW_OK);
	assert_string_equal(anr_word(event.doc, "cluster"), anr_word(text.doc, "cluster"));
	assert_string_equal(anr_word(event.doc, "verdict"), anr_word(text.doc, "verdict"));
	assert_int_equal(anr_count(anr_thread(&event, 0), "frames"), 11);
	anr_done(&event);
	anr_done(&text);
	event = sample("anr/jvm_anr_golden.json");
	text = sample("anr/jvm_anr_stacktrace_golden.txt");
	assert_string_equal(anr_word(event.doc, "cluster"), anr_word(text.doc, "cluster"));
	assert_int_equal(anr_count(anr_process(&event, 0), "threads"), 2);
	anr_done(&event);
	anr_done(&text);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event),
        cmocka_unit_test(test_several_events_are_looks),
        cmocka_unit_test(test_nothing_to_read),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_failed_allocations),
        cmocka_unit_test(test_the_real_event_and_its_text),
};

UNIT_TESTS("anr_json", tests)
