/*
 * text_fixture.h - kernel texts made by hand, and their emitted events compared with the expected
 * ones.
 */
#ifndef TW_TEXT_FIXTURE_H
#define TW_TEXT_FIXTURE_H

#include "tests/fixtures/event_log.h"

#define HEAD          "# tracer: nop\n"
#define LINE(t, text) "  thread-12 (10) [000] ...1 5.0000" #t ": tracing_mark_write: " text "\n"

/* Runs it whole and in pieces, which must give the same. */
struct event_log text_run(const char *text);
/* One of the emitted lines other than events. */
void text_reported(const struct event_log *log, const char *line);
/* The event at `at`; name NULL: none. */
void text_event(const struct event_log *log, size_t at, enum tw_ev_kind kind, uint32_t tid,
        int64_t ts_us, const char *name);

#endif
