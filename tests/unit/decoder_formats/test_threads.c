/* Unit tests of thread lists: lines, names, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

static void is_repair(const struct event_log *log, enum tw_repair what, uint64_t n, uint64_t at)
{
	assert_int_equal(log->counts[what], n);
	if (n)
		assert_int_equal(log->offsets[what], at);
}

static void test_threads(void **state)
{
	static const char text[] =
	        "1,main\n\n28095,a,b c\r\n4294967295,\n5,e\nno number,x\n6\n0,zero\n"
	        "4294967296,too large\n77,last\n78,cu";
	struct event_log log;

	(void)state;
	event_log_run_cut(&log, text, sizeof text - 1, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "threads");
	assert_int_equal(log.names.len, strlen("1 main\n28095 a,b c\n4294967295 \n5 e\n77 last\n"));
	assert_memory_equal(
	        log.names.data, "1 main\n28095 a,b c\n4294967295 \n5 e\n77 last\n", log.names.len);
	is_repair(&log, TW_REPAIR_line_malformed, 4, (uint64_t)(strstr(text, "no num") - text));
	is_repair(&log, TW_REPAIR_input_truncated, 1, (uint64_t)(strstr(text, "78,") - text));
	event_log_done(&log);
}

static void test_long_thread_names(void **state)
{
	static const size_t lens[] = {4096, 4097, 65534, 65535, 70000};

	(void)state;
	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		struct tw_buf b;
		struct event_log log;

		tw_buf_init(&b, 1 << 20);
		(void)tw_buf_add_str(&b, TW_STR("1,x\n2,"));
		for (size_t k = 0; k < lens[i]; k++)
			(void)tw_buf_add_u8(&b, 'n');
		(void)tw_buf_add_u8(&b, '\n');
		event_log_run_cut(&log, b.data, b.len, NULL);
		tw_buf_done(&b);
		assert_int_equal(log.status, TW_OK);
		is_repair(&log, TW_REPAIR_name_cut, lens[i] > 4096 && lens[i] <= 65534, 4);
		is_repair(&log, TW_REPAIR_line_malformed, lens[i] > 65534, 4);
		assert_int_equal(log.names.len, 4 + (lens[i] > 65534 ? 0 : 3 + 4096));
		event_log_done(&log);
	}
}

/* A list of one thread whose line does not end is taken, and counted as cut; a second line that
 * does not end is not. */
static void test_one_open_line(void **state)
{
	static const struct {
		const char *text, *names;
		unsigned cut;
	} rows[] = {
	        {"1,main", "1 main\n", 1},
	        {"\n\n1,", "1 \n", 1},
	        {"1,main\n2,bi", "1 main\n", 1},
	        {"1,main\n", "1 main\n", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct event_log log;

		event_log_run_cut(&log, rows[i].text, strlen(rows[i].text), NULL);
		assert_int_equal(log.status, TW_OK);
		assert_string_equal(event_log_text(&log), rows[i].names);
		assert_int_equal(log.counts[TW_REPAIR_input_truncated], rows[i].cut);
		event_log_done(&log);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_long_thread_names),
        cmocka_unit_test(test_one_open_line),
};

UNIT_TESTS("threads", tests)
