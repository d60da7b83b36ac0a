/*
 * sink.h - the events that a format emits, and their receiver.
 *
 * A format turns bytes into events and passes them to a sink in file order, unsorted, unpaired,
 * with method ids that may be named later or never (I6).  The receiver copies the data it keeps
 * (I5).  The production sink is the trace builder (trace/builder.h); tests have others, `tracewell
 * decode` prints.
 *
 * Times are nanoseconds on the trace's own clock, whose zero is given by tw_sink_ops.clock.
 * Thread: one decode job, one thread.
 */
#ifndef TW_SINK_H
#define TW_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "decoder/formats/notes.h"
#include "decoder/formats/repairs.h"
#include "decoder/formats/source.h"

struct tw_sink;

/* How a thread id was written.  LOW15, LOW16: only its low 15 (btrace 2.0) or 16 bits (ART) are
 * known; the builder looks for the full id among the named threads. */
enum tw_tid_kind { TW_TID_FULL, TW_TID_LOW15, TW_TID_LOW16 };

enum tw_ev_kind {
	TW_EV_SLICE, /* a finished call: ts_ns, dur_ns */
	TW_EV_BEGIN, /* sym entered at ts_ns */
	TW_EV_END,   /* sym (0: any open call) left at ts_ns */
	/* Like END, for a recording of all calls: if nothing is open, sym was entered before the
	 * recording began.  It becomes the parent of the track's calls so far and begins dur_ns
	 * (the trace's unit of time) before the first of them, or before its own end. */
	TW_EV_END_EARLIER,
	TW_EV_END_ALL /* all calls open on the track end at ts_ns: its recording ended there */
};

struct tw_event {
	int64_t ts_ns;
	int64_t dur_ns; /* SLICE; END_EARLIER */
	/* SLICE: CPU time.  BEGIN, END...: reading of the thread's CPU clock.  -1: none */
	int64_t cpu_ns;
	uint64_t offset; /* of the record in the decoded input, for the repair report */
	uint32_t track;  /* from tw_sink_ops.track */
	uint32_t sym;    /* from tw_sink_ops.method or .name; 0 is none */
	enum tw_ev_kind kind;
	bool any_order; /* the format does not order its calls: sorting them is not a repair */
};

/* Finished calls without CPU time, whose records follow each other in the input. */
struct tw_call_batch {
	const int64_t *start_ns, *dur_ns;
	const uint32_t *tracks, *syms;
	size_t n;
	uint32_t record_bytes;
	uint64_t offset; /* of the first record */
};

/* One of the calls. */
static inline struct tw_event tw_call_batch_event(const struct tw_call_batch *c, size_t i)
{
	return (struct tw_event){.ts_ns = c->start_ns[i],
	        .dur_ns = c->dur_ns[i],
	        .cpu_ns = -1,
	        .offset = c->offset + i * c->record_bytes,
	        .track = c->tracks[i],
	        .sym = c->syms[i],
	        .kind = TW_EV_SLICE};
}

/* Begins and ends of calls on one track in order of time, whose records follow each other in the
 * input. */
struct tw_edge_batch {
	const int64_t *ts_ns;
	const int64_t *cpu_ns;  /* readings of the thread's CPU clock; NULL: none */
	const uint32_t *syms_2; /* twice the symbol; plus 1 if its call ends */
	size_t n;
	uint32_t track;
	uint32_t record_bytes;
	uint64_t offset;     /* of the first record */
	enum tw_ev_kind end; /* TW_EV_END or TW_EV_END_EARLIER, with this dur_ns */
	int64_t end_dur_ns;
};

/* One of them. */
static inline struct tw_event tw_edge_batch_event(const struct tw_edge_batch *e, size_t i)
{
	return (struct tw_event){.ts_ns = e->ts_ns[i],
	        .dur_ns = e->end_dur_ns,
	        .cpu_ns = e->cpu_ns ? e->cpu_ns[i] : -1,
	        .offset = e->offset + i * e->record_bytes,
	        .track = e->track,
	        .sym = e->syms_2[i] >> 1,
	        .kind = e->syms_2[i] & 1 ? e->end : TW_EV_BEGIN};
}

struct tw_clock {
	uint32_t pid;         /* process that wrote the trace, 0 unknown */
	int64_t mono_base_ns; /* CLOCK_MONOTONIC at event time 0; -1 unknown */
	int64_t boot_base_ns; /* CLOCK_BOOTTIME at event time 0; -1 unknown */
	int64_t session_ns;   /* event time at which this recording began; 0 if that is the zero */
	/* Reading at event time 0 of a clock that is one of the two, unknown which; 0 none */
	int64_t some_base_ns;
};

struct tw_sink_ops {
	/* Handle (≥ 1) of a thread's track; the same arguments give the same handle.  0: limit
	 * reached, drop the event.  pid 0: the trace's own process. */
	uint32_t (*track)(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind);
	/* Handle (≥ 1) of a method that a mapping will name; the same id gives the same handle. */
	uint32_t (*method)(struct tw_sink *s, uint64_t method_id);
	/* Handle (≥ 1) of a name in the trace itself; the same name gives the same handle. */
	uint32_t (*name)(struct tw_sink *s, struct tw_str name);
	/* A method id's name from the trace itself, before or after its use.  The first name wins,
	 * also over the build's mapping. */
	void (*method_name)(struct tw_sink *s, uint64_t method_id, struct tw_str name);
	/* A batch of events, in file order. */
	enum tw_status (*events)(
	        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err);
	/* The same for calls, which take less time.  NULL: pass them as events. */
	enum tw_status (*calls)(
	        struct tw_sink *s, const struct tw_call_batch *calls, struct tw_err *err);
	/* The same for begins and ends. */
	enum tw_status (*edges)(
	        struct tw_sink *s, const struct tw_edge_batch *edges, struct tw_err *err);
	/* pid 0: the trace's own process.  First name wins. */
	void (*thread_name)(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str name);
	/* The process of a thread whose track was requested by id only (pid 0).  The first call
	 * wins. */
	void (*thread_process)(struct tw_sink *s, uint64_t tid, uint32_t pid);
	/* The name of a binder interface's transaction code; the last name wins. */
	void (*transaction)(
	        struct tw_sink *s, struct tw_str interface, uint64_t code, struct tw_str name);
	/* That name, valid as long as the sink; "" if not known yet. */
	struct tw_str (*transaction_name)(
	        struct tw_sink *s, struct tw_str interface, uint64_t code);
	void (*clock)(struct tw_sink *s, const struct tw_clock *clock);
	/* interval_ns: usual interval of samples, 0 unknown, TW_INTERVAL_NONE.  The last call wins.
	 * A track without this call has TW_SOURCE_CALLS. */
	void (*source)(
	        struct tw_sink *s, uint32_t track, enum tw_source source, int64_t interval_ns);
	enum tw_status (*note)(struct tw_sink *s, const struct tw_note *note, struct tw_err *err);
	/* A finding that is not an event, as JSON text: "anr" has the threads, locks and verdict of
	 * a dump.  Several of a kind keep their order. */
	enum tw_status (*document)(
	        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err);
	/* Counts n records at offset as repaired or lost under this name. */
	void (*repair)(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n);
};

/* First member of an implementation's struct. */
struct tw_sink {
	const struct tw_sink_ops *ops;
};

#endif
