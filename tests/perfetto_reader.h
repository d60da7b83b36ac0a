/*
 * perfetto_reader.h - reads Perfetto traces as trace_processor does, for tests.
 *
 * Knows what method traces need: packet sequences, the CLEARED state, interned
 * event names, packet defaults, a sequence's own incremental clock, thread
 * tracks and their children, begin and end on one stack per track.  Shares no
 * code or message definition with the exporter.
 */
#ifndef TW_PERFETTO_READER_H
#define TW_PERFETTO_READER_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"

struct perfetto_slice {
	int64_t pid, tid;
	int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; end -1: never closed */
	uint32_t depth;
	struct tw_str name; /* borrowed from the input */
};

struct perfetto_trace {
	struct perfetto_slice *slices; /* in the order of their begins in the file */
	size_t n, cap;
	/* what trace_processor would drop or count as an error */
	unsigned bad_packets, no_state, no_name, no_clock, no_track, backwards, too_deep, unmatched;
	struct tw_str thread_names[64]; /* by order of descriptors */
	unsigned n_threads;
};

/* bytes must stay while the trace is used; all memory is in the arena.  False on lack of it. */
bool perfetto_read(struct perfetto_trace *t, struct tw_str bytes, struct tw_arena *a);

/* Sum of all that would be dropped. */
unsigned perfetto_errors(const struct perfetto_trace *t);

#endif
