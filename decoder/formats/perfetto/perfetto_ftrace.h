/*
 * perfetto_ftrace.h - the kernel's events in a Perfetto trace.
 *
 * The kernel has one buffer per CPU, and each bundle holds events of one buffer: events of a thread
 * that moves between CPUs are out of order.  So events are stored (40 bytes each, limited in
 * number) and emitted by time at the end: switches and wakeups to sched.h, markers of apps to
 * marks.h, binder calls to binder_calls.h.
 */
#ifndef TW_PERFETTO_FTRACE_H
#define TW_PERFETTO_FTRACE_H

#include "decoder/formats/ftrace/binder_calls.h"
#include "decoder/formats/ftrace/sched.h"
#include "decoder/formats/perfetto/perfetto_clocks.h"
#include "decoder/formats/perfetto/perfetto_tracks.h"

enum { TW_PERFETTO_CPUS = 1024 };

struct tw_perfetto_ftrace_event;

struct tw_perfetto_ftrace {
	struct tw_arena *arena;
	struct tw_marks *marks;
	struct tw_perfetto_intern *texts;
	struct tw_perfetto_clocks *clocks;
	struct tw_perfetto_tracks *tracks;
	struct tw_perfetto_ftrace_event *list;
	uint32_t n, cap;
	struct tw_binder_calls binder;
	/* thread on each CPU by its last switch, + 1; 0 unknown */
	uint64_t running[TW_PERFETTO_CPUS];
};

/* A FtraceEventBundle. */
enum tw_status tw_perfetto_ftrace_bundle(struct tw_perfetto_ftrace *t, struct tw_pb message,
        uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* Emits all events, once. */
enum tw_status tw_perfetto_ftrace_finish(
        struct tw_perfetto_ftrace *t, struct tw_err *err) TW_MUST_USE;

#endif
