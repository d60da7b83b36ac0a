/*
 * perfetto_reader.h - reads Perfetto traces as trace_processor does, for tests.
 *
 * Knows packet sequences, the CLEARED state, interned event names, packet defaults, clock
 * snapshots and a sequence's own incremental clock, compressed packets, tracks of threads and
 * processes and their children, begin and end on one stack per track after sorting by time,
 * counters, flows, the CPU time of slices, kernel scheduler events, and what the importer drops
 * when a recorder says that all before is complete.  Shares no code or message definition with the
 * exporter.
 */
#ifndef TW_PERFETTO_READER_H
#define TW_PERFETTO_READER_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "perfetto_fields.h"

struct perfetto_slice {
	int64_t pid, tid;         /* tid -1: of a process */
	int64_t begin_ns, end_ns; /* CLOCK_BOOTTIME; end -1: never closed; equal for an instant */
	int64_t cpu_ns;           /* -1: absent */
	uint32_t depth;
	struct tw_str name;         /* borrowed from the input */
	struct tw_str track;        /* name of its track, "" the thread's own */
	uint64_t flow_out, flow_in; /* 0 none */
	bool instant;
};

struct perfetto_count {
	struct tw_str counter;
	int64_t pid, ts_ns, value;
};

struct perfetto_run { /* a thread on a CPU */
	int64_t tid, begin_ns, end_ns;
};

struct perfetto_packet { /* as in the file; compressed ones are unpacked */
	struct tw_str bytes;
	uint64_t sequence;
};

struct perfetto_trace {
	struct perfetto_slice *slices; /* by time */
	size_t n, cap;
	struct perfetto_count *counts;
	size_t n_counts, cap_counts;
	struct perfetto_run *runs;
	size_t n_runs, cap_runs;
	struct perfetto_packet *packets;
	size_t n_packets, cap_packets;
	/* what trace_processor would drop or count as an error */
	unsigned bad_packets, no_state, no_name, no_clock, no_track, too_deep, unmatched, too_late;
	unsigned unsorted;    /* events before the one in front of them: sorted on loading */
	unsigned two_threads; /* two root tracks for one thread */
	struct tw_str thread_names[64]; /* by order of descriptors */
	unsigned n_threads;
	struct tw_str attributes[4]; /* the messages */
	unsigned n_attributes;
	unsigned told_twice; /* attributes emitted before: all would be shown */
};

/* bytes must stay while the trace is used; all memory is in the arena.  False on lack of it. */
bool perfetto_read(struct perfetto_trace *t, struct tw_str bytes, struct tw_arena *a);

/* Sum of all that would be dropped. */
unsigned perfetto_errors(const struct perfetto_trace *t);

/* A trace attribute; number is used where there is no text.  False: no such key. */
bool perfetto_attribute(const struct perfetto_trace *t, const char *key, struct tw_str *ret_text,
        int64_t *ret_number);

#endif
