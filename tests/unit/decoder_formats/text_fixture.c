/* text_fixture.c - see text_fixture.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/decoder_formats/text_fixture.h"

struct event_log text_run(const char *text)
{
	struct event_log log;

	event_log_run_cut(&log, text, strlen(text), NULL);
	if (log.status == TW_OK)
		assert_string_equal(log.format->name, "atrace");
	return log;
}

void text_reported(const struct event_log *log, const char *line)
{
	struct tw_str rest = {(const char *)log->names.data, log->names.len};

	while (rest.len)
		if (tw_str_eq(tw_str_split(&rest, '\n'), tw_str_of(line)))
			return;
	fail_msg("nobody said \"%s\" in:\n%.*s", line, (int)log->names.len,
	        (const char *)log->names.data);
}

void text_event(const struct event_log *log, size_t at, enum tw_ev_kind kind, uint32_t tid,
        int64_t ts_us, const char *name)
{
	assert_true(at < log->n);
	assert_int_equal(log->events[at].kind, kind);
	assert_int_equal(log->events[at].track, tid + 1);
	assert_int_equal(log->events[at].ts_ns, ts_us * 1000);
	assert_int_equal(log->events[at].sym, name ? event_log_name(tw_str_of(name)) : 0);
}
