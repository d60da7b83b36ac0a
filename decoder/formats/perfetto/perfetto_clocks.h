/*
 * perfetto_clocks.h - converts the clocks of a Perfetto trace to one.
 *
 * Snapshots hold simultaneous readings of several clocks.  All times are converted to the trace's
 * clock (BOOTTIME if present) by the latest snapshot before them.  Time 0 is one minute before the
 * first reading, as packets of several buffers are not in time order.  Clocks 64 to 127 belong to a
 * sequence and may be encoded as differences.
 */
#ifndef TW_PERFETTO_CLOCKS_H
#define TW_PERFETTO_CLOCKS_H

#include "decoder/base/arena.h"
#include "decoder/base/pbread.h"
#include "decoder/formats/sink.h"

enum {
	TW_PERFETTO_REALTIME = 1,
	TW_PERFETTO_MONOTONIC = 3,
	TW_PERFETTO_MONOTONIC_RAW = 5,
	TW_PERFETTO_BOOTTIME = 6,
	TW_PERFETTO_CLOCKS_MAX = 32,
	TW_PERFETTO_OWN_CLOCKS = 4
};

struct tw_perfetto_pair { /* simultaneous readings of two clocks */
	int64_t from_ns, to_ns;
};

struct tw_perfetto_clock {
	uint32_t id;
	struct tw_perfetto_pair *pairs; /* by rising from_ns; to the trace's clock */
	uint32_t n, cap;
};

struct tw_perfetto_own_clock { /* of a sequence; id 0: none */
	uint32_t id;
	bool incremental;
	uint64_t unit_ns;
	int64_t now, base; /* in its units: the last reading; at the snapshot */
	int64_t base_ns;   /* on the trace's clock */
};

struct tw_perfetto_clocks {
	struct tw_arena *arena;
	struct tw_sink *sink;
	uint32_t trace_clock; /* 0: unknown so far */
	struct tw_perfetto_clock clocks[TW_PERFETTO_CLOCKS_MAX];
	uint32_t n_clocks;
	bool have_zero, emitted;
	int64_t zero_ns, first_ns; /* on the trace's clock */
};

/* A ClockSnapshot; own: the clocks of the packet's sequence, NULL if it has none. */
enum tw_status tw_perfetto_clocks_snapshot(struct tw_perfetto_clocks *c, struct tw_pb message,
        struct tw_perfetto_own_clock *own, struct tw_err *err) TW_MUST_USE;
/* Converts a reading to the trace's clock.  False: nothing relates the two. */
bool tw_perfetto_clocks_convert(
        const struct tw_perfetto_clocks *c, uint32_t id, int64_t reading_ns, int64_t *ret_ns);
/* The clock of a bundle of kernel events (ftrace_clock), and the offset to add to its readings:
 * BOOTTIME, a clock that the bundle itself relates to it, or one that snapshots relate to it. */
struct tw_perfetto_kernel {
	uint32_t clock; /* 0: unknown */
	int64_t shift_ns;
};
struct tw_perfetto_kernel tw_perfetto_clocks_kernel(uint64_t kind, uint64_t reading, uint64_t boot);
/* A packet's reading of one of its sequence's clocks; advances that clock. */
bool tw_perfetto_clocks_own(
        struct tw_perfetto_own_clock *own, uint32_t id, uint64_t reading, int64_t *ret_ns);
/* Converts a time of the trace's clock to event time; the first call defines the zero. */
int64_t tw_perfetto_clocks_event(struct tw_perfetto_clocks *c, int64_t trace_ns, uint64_t offset);
/* Reports to the sink what is known of the clock at time 0. */
void tw_perfetto_clocks_emit(struct tw_perfetto_clocks *c, uint32_t pid);

#endif
