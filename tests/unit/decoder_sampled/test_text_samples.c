/* Real kernel traces next to the source tree: every line must be read, and the compressed one must
 * yield the same as the plain one. Skipped with a message if they are missing. */
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

enum { FILE_MAX_BYTES = 1 << 20 };

static char bytes[FILE_MAX_BYTES];

static struct event_log run(const char *name)
{
	FILE *f = fopen(unit_sample(name), "rbe");
	struct event_log log;
	size_t n;

	assert_non_null(f);
	n = fread(bytes, 1, sizeof bytes, f);
	(void)fclose(f);
	event_log_run_cut(&log, bytes, n, NULL);
	assert_int_equal(log.status, TW_OK);
	return log;
}

/* Emitted lines with this prefix. */
static size_t count(const struct event_log *log, const char *prefix)
{
	struct tw_str rest = {(const char *)log->names.data, log->names.len};
	size_t n = 0;

	while (rest.len)
		n += tw_str_starts(tw_str_split(&rest, '\n'), tw_str_of(prefix));
	return n;
}

static size_t count_events(const struct event_log *log, enum tw_ev_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++)
		n += log->events[i].kind == kind;
	return n;
}

static void test_markers(void **state)
{
	struct event_log plain = run("systrace/decompressed_atrace_data.txt");
	struct event_log packed;
	const char *differs;

	(void)state;
	assert_int_equal(count_events(&plain, TW_EV_BEGIN), 463);
	assert_int_equal(count_events(&plain, TW_EV_END), 463);
	assert_int_equal(count(&plain, "note counter "), 88);
	assert_int_equal(count(&plain, "note async "), 17);
	/* eight of its 17 spans end past the trace */
	assert_int_equal(plain.counts[TW_REPAIR_enter_without_exit], 8);
	assert_int_equal(event_log_repairs(&plain), 8);
	packed = run("systrace/compressed_atrace_data.txt");
	packed.bytes = plain.bytes;
	differs = event_log_differs(&plain, &packed);
	if (differs)
		fail_msg("%s differs", differs);
	event_log_done(&plain);
	event_log_done(&packed);
}

/* Each switch gives a state of the thread that left, and later one of its successor. */
static void test_scheduler(void **state)
{
	static const struct {
		const char *name;
		size_t wakeups, switches;
	} files[] = {{"android_systrace.txt", 33, 58}, {"atrace_data", 44, 72}};

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct event_log log = run(files[i].name);

		assert_int_equal(count(&log, "note wakeup "), files[i].wakeups);
		assert_true(count(&log, "note state ") >= files[i].switches);
		assert_int_equal(event_log_repairs(&log), 0);
		event_log_done(&log);
	}
}

static void test_page(void **state)
{
	struct event_log log = run("systrace/trivial_systrace.html");

	(void)state;
	assert_string_equal(log.format->name, "systrace");
	assert_int_equal(count(&log, "note counter "), 4);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markers),
        cmocka_unit_test(test_scheduler),
        cmocka_unit_test(test_page),
};

UNIT_TESTS("text_samples", tests)
