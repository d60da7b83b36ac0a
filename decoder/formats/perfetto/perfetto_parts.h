/*
 * perfetto_parts.h - the kinds of packets of a Perfetto trace: track events, display frames, the
 * kernel's events, interned data and stack samples.
 */
#ifndef TW_PERFETTO_PARTS_H
#define TW_PERFETTO_PARTS_H

#include "decoder/base/pbread.h"
#include "decoder/formats/ftrace/binder_calls.h"
#include "decoder/formats/ftrace/sched.h"
#include "decoder/formats/markers/markers.h"
#include "decoder/formats/perfetto/perfetto_clocks.h"
#include "decoder/formats/perfetto/perfetto_intern.h"
#include "decoder/formats/perfetto/perfetto_tracks.h"
#include "decoder/formats/sampled/samples.h"

/* --- track events (perfetto_event.c) --- */

/* Newer events state their type; older ones, from Chrome, use a letter (legacy). */
enum tw_perfetto_event_type {
	TW_PERFETTO_NONE, /* not stated */
	TW_PERFETTO_BEGIN,
	TW_PERFETTO_END,
	TW_PERFETTO_INSTANT,
	TW_PERFETTO_COUNTER,
	TW_PERFETTO_STATE, /* lasts until the track's next state */
	/* legacy only: */
	TW_PERFETTO_SPAN, /* with dur_us */
	TW_PERFETTO_ASYNC_BEGIN,
	TW_PERFETTO_ASYNC_END,
	TW_PERFETTO_FLOW, /* no event of its own; it is listed in flows */
	TW_PERFETTO_OTHER /* unsupported */
};

enum { TW_PERFETTO_EVENT_FLOWS = 8 }; /* further flows of an event are dropped */

struct tw_perfetto_track_event {
	enum tw_perfetto_event_type type;
	bool has_type; /* the type is not given by a letter alone */
	bool has_track, has_delta, has_absolute;
	uint64_t track, name_iid, category_iid; /* iid 0: none */
	struct tw_str name, category;           /* borrowed; the first of several categories */
	int64_t value;                          /* COUNTER; fractions are truncated */
	int64_t dur_us;
	int64_t delta_us, absolute_us; /* legacy times */
	struct tw_perfetto_legacy {    /* legacy */
		char phase;            /* 0: none */
		bool nests;            /* ASYNC: the category is part of the key */
		bool local;            /* the id is local to the process */
		uint64_t id;
		struct tw_str scope;
		uint32_t pid; /* 0: the sequence's */
		uint64_t tid; /* 0: the sequence's */
	} legacy;
	unsigned n_flows;
	struct tw_perfetto_flow_id { /* set up to n_flows */
		uint64_t id;
		bool ends;
	} flows[TW_PERFETTO_EVENT_FLOWS];
};

void tw_perfetto_event_read(struct tw_pb message, struct tw_perfetto_track_event *ret);

/* --- display frames (perfetto_frames.c) --- */

/* Reported by Android's compositor.  A frame has two timelines, expected and actual, for the app's
 * surface and for the whole display.  The start event of a timeline has its owner and result, its
 * end event only the cookie of the start.  Each timeline becomes a note. */
struct tw_perfetto_frame;

struct tw_perfetto_frames {
	struct tw_arena *arena;
	struct tw_markers *markers;
	struct tw_perfetto_intern *texts;
	struct tw_perfetto_frame *ring; /* NULL until the first begins */
	uint32_t *chains;               /* index + 1 by hash of the cookie */
	uint64_t begun;
};

/* A FrameTimelineEvent. */
enum tw_status tw_perfetto_frames_emit(struct tw_perfetto_frames *s, struct tw_pb message,
        int64_t ts_ns, uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* Open timelines end at the latest time. */
enum tw_status tw_perfetto_frames_finish(
        struct tw_perfetto_frames *s, struct tw_err *err) TW_MUST_USE;

/* --- the kernel's events (perfetto_ftrace.c) --- */

/* The kernel has one buffer per CPU, and each bundle holds events of one buffer: events of a thread
 * that moves between CPUs are out of order.  So events are stored (40 bytes each, limited in
 * number) and emitted by time at the end: switches and wakeups to sched.h, markers of apps to
 * markers.h, binder calls to binder_calls.h. */
enum { TW_PERFETTO_CPUS = 1024 };

struct tw_perfetto_ftrace_event;

struct tw_perfetto_ftrace {
	struct tw_arena *arena;
	struct tw_markers *markers;
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

/* --- interned data and stack samples (perfetto_stacks.c) --- */

/* Stacks are numbers of frames, frames are numbers of functions, each valid within its sequence
 * (perfetto_intern.h).  A stack is assembled once, when it is defined, and shared by its samples
 * (samples.h). */
struct tw_perfetto_stacks {
	struct tw_sink *sink;
	struct tw_markers *markers;
	struct tw_perfetto_intern *texts;
	struct tw_perfetto_tracks *tracks;
	struct tw_samples *samples;
	int64_t interval_ns; /* as stated by the trace; 0 unknown */
};

/* An InternedData: names, functions, frames, stacks. */
enum tw_status tw_perfetto_stacks_intern(struct tw_perfetto_stacks *s, struct tw_pb message,
        struct tw_perfetto_scope scope, uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* PerfSampleDefaults, for the interval. */
void tw_perfetto_stacks_defaults(struct tw_perfetto_stacks *s, struct tw_pb message);

struct tw_perfetto_when { /* of a sample */
	struct tw_perfetto_scope scope;
	int64_t ts_ns;
	uint64_t offset;
};

/* A PerfSample, a StackSample. */
enum tw_status tw_perfetto_stacks_perf(struct tw_perfetto_stacks *s, struct tw_pb message,
        const struct tw_perfetto_when *when, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_perfetto_stacks_sample(struct tw_perfetto_stacks *s, struct tw_pb message,
        const struct tw_perfetto_when *when, struct tw_err *err) TW_MUST_USE;
/* One interned stack of a thread. */
enum tw_status tw_perfetto_stacks_add(struct tw_perfetto_stacks *s, uint32_t pid, uint64_t tid,
        uint64_t iid, const struct tw_perfetto_when *when, struct tw_err *err) TW_MUST_USE;

#endif
