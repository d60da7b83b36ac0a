/* Unit tests of systrace pages: three containers, several sections, truncated and foreign input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

#define HTML       "<!DOCTYPE html>\n<html><head><script>if (1>0) {}</script></head>\n"
#define SECTION    "<script class=\"trace-data\" type=\"application/text\">\n"
#define VIEWER     "<script id=\"viewer-data\" type=\"text/plain\">\n"
#define END        "</script>\n"
#define LINE(t, x) "  t-12 (10) [000] ...1 5.00000" #t ": tracing_mark_write: " x "\n"

static struct event_log run(const char *text)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), NULL);
	if (log.status == TW_OK)
		assert_string_equal(log.format->name, "systrace");
	return log;
}

static void assert_begin(const struct event_log *log, size_t at, const char *name)
{
	assert_true(at < log->n);
	assert_int_equal(log->events[at].kind, TW_EV_BEGIN);
	assert_int_equal(log->events[at].sym, event_log_name(tw_str_of(name)));
}

static bool reported(const struct event_log *log, const char *what)
{
	return memmem(log->names.data, log->names.len, what, strlen(what)) != NULL;
}

static void test_sections(void **state)
{
	struct event_log log = run(HTML SECTION
	        "PROCESS DUMP\n"
	        "USER PID PPID VSZ RSS WCHAN PC S NAME COMM\n"
	        "u0_a1 10 5 1 1 w 0 S com.acme.app acme\n"
	        "short row\n"
	        "USER PID TID CMD\nu0_a1 10 13 a name of words\n"
	        "CGROUP DUMP\nnothing of this\n" END SECTION "# tracer: nop\n#  TASK-PID\n" LINE(
	                1, "B|10|one") END "<p>" SECTION LINE(2, "B|10|two</p>") END "</html>");

	(void)state;
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, 2);
	assert_begin(&log, 0, "one");
	assert_begin(&log, 1, "two</p>");
	assert_true(reported(&log, "10 com.acme.app\n"));
	assert_true(reported(&log, "13 a name of words\n"));
	assert_true(reported(&log, "note process 0 0 -1 10"));
	assert_int_equal(log.counts[TW_REPAIR_line_malformed], 1);
	assert_int_equal(event_log_repairs(&log), 1);
	event_log_done(&log);
}

static void test_page_of_2012(void **state)
{
	struct event_log log = run(
	        HTML "<script>\n  var linuxPerfData = \"\\\n"
	             "# tracer: nop\\n\\\n"
	             "  t-12 [000] 5.000001: 0: B|10|a \\\"b\\\" \\\\ c\\';\\n\\\n"
	             "  t-12 [000] 5.000002: 0: B|10|ends with \\\";\\n\\\n"
	             "  t-12 [000] 5.000003: 0: E\\n\\\n"
	             "         \\n\";\n  t-12 [000] 5.000004: 0: B|10|outside\n</script></html>");

	(void)state;
	assert_int_equal(log.n, 3);
	assert_begin(&log, 0, "a \"b\" \\ c';");
	assert_begin(&log, 1, "ends with \";");
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static size_t base64(char *out, const uint8_t *p, size_t n, size_t width)
{
	static const char set[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t at = 0;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
		             (i + 2 < n ? p[i + 2] : 0);

		for (unsigned k = 0; k < 4; k++)
			out[at++] = i + k > n ? '=' : set[v >> (18 - 6 * k) & 63];
		if (width && i % width == 0)
			out[at++] = '\n';
	}
	out[at] = '\0';
	return at;
}

/* A page with `text` in it the way trace2html has it. */
static const char *viewer(const char *head, const char *text, bool zip, size_t cut)
{
	static char page[64 << 10];
	static char coded[48 << 10];
	static uint8_t gz[16 << 10];
	z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
	        .avail_in = (uInt)strlen(text),
	        .next_out = gz,
	        .avail_out = sizeof gz};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	if (zip)
		(void)base64(coded, gz, sizeof gz - z.avail_out - cut, 48);
	else
		(void)base64(coded, (const uint8_t *)text, strlen(text), 0);
	(void)snprintf(page, sizeof page, HTML "%s%s" END "</html>", head, coded);
	return page;
}

static void test_base64(void **state)
{
	const char *text = "# tracer: nop\n" LINE(1, "B|10|one") LINE(2, "B|10|two");
	const char *pages[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct event_log log;

		pages[i] = viewer(i == 2 ? SECTION : VIEWER, text, i != 1, 0);
		log = run(pages[i]);
		assert_int_equal(log.status, TW_OK);
		assert_int_equal(log.n, 2);
		assert_begin(&log, 0, "one");
		assert_begin(&log, 1, "two");
		assert_int_equal(event_log_repairs(&log), 0);
		event_log_done(&log);
	}
}

/* Sections use memory once, however many of them are compressed; their decompressed sizes count
 * together, so that many small ones do not bypass the limit of one. */
static void test_many_zipped(void **state)
{
	enum { PAGES = 2000, BLANKS = 1 << 19, BOMBS = 20 };
	const char *page = viewer(VIEWER, "# tracer: nop\n" LINE(1, "I|10|one"), true, 0);
	struct tw_limits limits = tw_limits_default();
	struct event_log log;
	struct tw_buf b;
	char *bomb = tw_mem_alloc(BLANKS + 1, 1);

	(void)state;
	assert_non_null(bomb);
	tw_buf_init(&b, 16 << 20);
	for (int i = 0; i < PAGES; i++)
		(void)tw_buf_add_str(&b, tw_str_of(page));
	limits.max_memory_bytes = 32 << 20;
	event_log_run(&log, b.data, b.len, 0, &limits);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	tw_buf_clear(&b);
	memset(bomb, ' ', BLANKS);
	bomb[BLANKS] = '\0';
	page = viewer(VIEWER, bomb, true, 0);
	for (int i = 0; i < BOMBS; i++)
		(void)tw_buf_add_str(&b, tw_str_of(page));
	event_log_run(&log, b.data, b.len, 0, NULL);
	assert_int_equal(log.status, TW_TOO_LARGE);
	event_log_done(&log);
	tw_buf_done(&b);
	tw_mem_free(bomb);
}

static void test_base64_cut(void **state)
{
	struct event_log log = run(viewer(
	        VIEWER, "# tracer: nop\n" LINE(1, "B|10|one") LINE(2, "B|10|two"), true, 20));

	(void)state;
	assert_true(log.counts[TW_REPAIR_input_truncated] > 0 || log.status == TW_CORRUPT);
	event_log_done(&log);
}

/* Chrome's own events use the kernel's clock, in a page that has both. */
static void test_chrome_json(void **state)
{
	struct event_log log = run(HTML SECTION
	        "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":5000003,\"pid\":10,\"tid\":12,\"name\":\"a<"
	        "b\"},"
	        "{\"ph\":\"C\",\"ts\":5000003,\"pid\":10,\"name\":\"</"
	        "script>\",\"args\":{\"value\":1}}]}\n" END SECTION LINE(1, "B|10|one") END SECTION
	        "[{\"ph\":\"X\",\"ts\":5000005,\"pid\":10,"
	        "\"tid\":12,\"name\":\"c\"}]" END SECTION
	        "{\"something\":[]}" END SECTION LINE(9, "E|10") END);

	(void)state;
	assert_int_equal(log.n, 4);
	assert_int_equal(log.events[0].kind, TW_EV_SLICE);
	assert_begin(&log, 1, "one");
	assert_int_equal(log.events[0].ts_ns - log.events[1].ts_ns, 2000);
	assert_int_equal(log.events[2].ts_ns - log.events[0].ts_ns, 2000);
	assert_true(reported(&log, "</script>"));
	assert_int_equal(log.counts[TW_REPAIR_section_unknown], 1);
	assert_int_equal(event_log_repairs(&log), 1);
	event_log_done(&log);
}

static void test_chrome_base64(void **state)
{
	static const char text[] =
	        " [{\"ph\":\"X\",\"ts\":1,\"name\":\"x\"},{\"ph\":\"X\",\"ts\":2,\"name\":\"y\"}]";

	(void)state;
	for (size_t cut = 0; cut < 40; cut += 10) {
		struct event_log log = run(viewer(VIEWER, text, true, cut));

		assert_int_equal(log.status, log.n ? TW_OK : TW_CORRUPT);
		assert_true(cut || log.n == 2);
		assert_int_equal(log.counts[TW_REPAIR_input_truncated], log.n < 2 || cut);
		event_log_done(&log);
	}
}

/* A page cut inside of the JSON. */
static void test_chrome_cut(void **state)
{
	struct event_log log = run(HTML SECTION "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":3,"
	                                        "\"name\":\"a\"},{\"ph\":\"X\",\"ts\"");

	(void)state;
	assert_int_equal(log.n, 1);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);
}

static void test_cut_page(void **state)
{
	struct event_log log = run(HTML SECTION LINE(1, "B|10|one"));

	(void)state;
	assert_int_equal(log.n, 1);
	assert_int_equal(log.counts[TW_REPAIR_input_truncated], 1);
	event_log_done(&log);
}

static void test_pages_without_trace(void **state)
{
	static const char *const pages[] = {HTML "</html>", HTML SECTION END, HTML VIEWER END,
	        HTML SECTION, "<html>" VIEWER "===" END};

	(void)state;
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		struct event_log log = run(pages[i]);

		assert_int_equal(log.status, TW_CORRUPT);
		event_log_done(&log);
	}
}

static void test_beginnings(void **state)
{
	static const char *const heads[] = {
	        "<!doctype HTML>", "\xEF\xBB\xBF<html lang=en>", "\n\n  <HTML>"};

	(void)state;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		char page[512];
		struct event_log log;

		(void)snprintf(
		        page, sizeof page, "%s\n%s", heads[i], SECTION LINE(1, "B|10|one") END);
		log = run(page);
		assert_int_equal(log.n, 1);
		event_log_done(&log);
	}
}

static void test_without_memory(void **state)
{
	const char *page = viewer(VIEWER, LINE(1, "B|10|one"), true, 0);
	const char *wrong = event_log_run_starved(page, strlen(page));

	(void)state;
	if (wrong)
		fail_msg("%s", wrong);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_page_of_2012),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_many_zipped),
        cmocka_unit_test(test_base64_cut),
        cmocka_unit_test(test_chrome_json),
        cmocka_unit_test(test_chrome_base64),
        cmocka_unit_test(test_chrome_cut),
        cmocka_unit_test(test_cut_page),
        cmocka_unit_test(test_pages_without_trace),
        cmocka_unit_test(test_beginnings),
        cmocka_unit_test(test_without_memory),
};

UNIT_TESTS("systrace", tests)
