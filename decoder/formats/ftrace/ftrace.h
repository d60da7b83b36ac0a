/*
 * ftrace.h - lines of the kernel's text trace, as atrace, systrace and trace-cmd write them.
 *
 *   TASK-TID (TGID) [CPU] FLAGS SECONDS.FRACTION: EVENT: ARGUMENTS
 *
 * (TGID) and FLAGS are missing on old kernels.  TASK may contain anything, so the leftmost split at
 * which the rest matches is used.  Markers go to markers.h, scheduler events to sched.h, binder
 * calls to binder_calls.h, CPU frequencies become counters; other events are recognised and
 * dropped.  Time 0 is the full second
 * before the second of the first event, so that slightly earlier lines have non-negative times.
 */
#ifndef TW_FTRACE_H
#define TW_FTRACE_H

#include "decoder/formats/ftrace/binder_calls.h"
#include "decoder/formats/ftrace/sched.h"
#include "decoder/formats/lines.h"

enum { TW_FTRACE_LINE_MAX = 16 << 10 };

struct tw_ftrace {
	struct tw_markers markers;
	struct tw_binder_calls binder;
	struct tw_clock clock;
	bool have_zero, clock_emitted; /* the zero may also come from data next to the lines */
	int64_t zero_ns;
	uint64_t events; /* lines that are events */
};

struct tw_ftrace_event { /* one parsed line; the strings point into it */
	struct tw_str task, name, args;
	uint64_t tid;
	uint32_t tgid; /* 0: unknown */
	uint32_t cpu;
	int64_t time_ns; /* as written */
};

/* False: not an event line. */
bool tw_ftrace_parse(struct tw_str line, struct tw_ftrace_event *ret);

/* False: out of memory. */
bool tw_ftrace_init(struct tw_ftrace *f, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);
/* An event, a comment, or an unrecognised line, which is counted. */
enum tw_status tw_ftrace_line(
        struct tw_ftrace *f, const struct tw_line *line, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_ftrace_finish(struct tw_ftrace *f, struct tw_err *err) TW_MUST_USE;

#endif
