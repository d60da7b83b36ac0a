/* Unit tests of markers: the ends of their fields, and the processes that they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/decoder_formats/text_fixture.h"
#include "tests/unit/unit.h"

/* Lines with NULs in them; the events are of thread 12. */
static struct event_log run_bytes(const char *lines, size_t n)
{
	char text[1024];
	struct event_log log;
	size_t head = sizeof HEAD - 1;

	assert_true(head + n <= sizeof text);
	memcpy(text, HEAD, head);
	memcpy(text + head, lines, n);
	event_log_run_cut(&log, text, head + n, NULL);
	assert_int_equal(log.status, TW_OK);
	return log;
}

#define RUN_BYTES(lines) run_bytes(lines, sizeof(lines) - 1)

/* A NUL ends a field as a bar does; a marker is followed by NULs. */
static void test_fields_end_at_nul(void **state)
{
	struct event_log log = RUN_BYTES(LINE(01, "C\00010\0queue\0005") LINE(02, "B|10|x\0\0")
	                LINE(03, "E\00010") LINE(04, "S|10\0load|7\0") LINE(06, "F\00010|load\0007")
	                        LINE(07, "I|10|now\0then"));

	(void)state;
	text_reported(&log, "note counter 0 1000001000 -1 5 14 queue {\"pid\":10}");
	assert_int_equal(log.n, 2);
	text_event(&log, 0, TW_EV_BEGIN, 12, 1000002, "x");
	text_event(&log, 1, TW_EV_END, 12, 1000003, NULL);
	assert_true(memmem(log.names.data, log.names.len, " 2000 7 ", 8) != NULL);
	assert_true(memmem(log.names.data, log.names.len, " now ", 5) != NULL);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	log = RUN_BYTES(LINE(01, "\0\0")); /* of which nothing is left */
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 1);
	event_log_done(&log);
}

/* The third field of an H is its cookie if the fourth is missing or empty. */
static void test_cookie_of_an_end(void **state)
{
	struct event_log log = text_run(
	        HEAD LINE(01, "G|11|net|a|5") LINE(02, "H|11|net|5|") LINE(03, "G|11|net|a|6")
	                LINE(05, "H|11|net|any|6") LINE(06, "H|11|net|any|") LINE(07, "H|11||5"));

	(void)state;
	text_reported(&log, "note async 13 1000001000 1000 5 14 a {\"pid\":11,\"track\":\"net\"}");
	assert_true(memmem(log.names.data, log.names.len, " 2000 6 ", 8) != NULL);
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 2);
	event_log_done(&log);
}

/* Every phase but E needs a process that is a number of 32 bits. */
static void test_bad_process(void **state)
{
	struct event_log log = text_run(HEAD LINE(01, "B|x|a") LINE(02, "B|4294967296|b")
	                LINE(03, "B||c") LINE(04, "B") LINE(05, "S|-1|n|1") LINE(06, "C|1x|n|1")
	                        LINE(07, "I||n") LINE(10, "B|4294967295|d") LINE(11, "E|x"));

	(void)state;
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 7);
	assert_int_equal(log.n, 2);
	text_event(&log, 0, TW_EV_BEGIN, 12, 1000010, "d");
	text_event(&log, 1, TW_EV_END, 12, 1000011, NULL);
	event_log_done(&log);
}

#define ROW(tid, tgid, t, text)                                                                    \
	"  x-" #tid " " tgid "[000] 5.00000" #t ": tracing_mark_write: " text "\n"

/* The process of a thread: from the line, otherwise a listing, otherwise its markers; of each the
 * first. */
static void test_processes_that_differ(void **state)
{
	struct event_log log = text_run(HEAD ROW(12, "(   70) ", 1, "B|71|a") ROW(12, "(   72) ", 2,
	        "E") ROW(13, "(-----) ", 1, "B|71|a") ROW(13, "(   73) ", 2, "E|74")
	                ROW(14, "", 1, "B|75|a") ROW(14, "", 2, "E|76") ROW(15, "", 1, "B|77|a")
	                        ROW(16, "", 1, "E|78") ROW(17, "", 1, "B|0|a") ROW(
	                                17, "", 2, "E|79") "/proc/80/task/15\n/proc/81/task/15\n");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	text_reported(&log, "process 13 73");
	text_reported(&log, "process 14 75");
	text_reported(&log, "process 15 80");
	text_reported(&log, "process 17 79");
	/* 12 was of its process from the start, and 16 has no track, an end of nothing */
	assert_false(memmem(log.names.data, log.names.len, "process 12", 10));
	assert_false(memmem(log.names.data, log.names.len, "process 16", 10));
	event_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_end_at_nul),
        cmocka_unit_test(test_cookie_of_an_end),
        cmocka_unit_test(test_bad_process),
        cmocka_unit_test(test_processes_that_differ),
};

UNIT_TESTS("markers", tests)
