/*
 * export_clock_sync.h - clock sync: the position of one of our traces on the timeline of the file.
 *
 * Times of a trace count from its own zero, whose CLOCK_MONOTONIC and CLOCK_BOOTTIME may be known.
 * With a device's trace they are converted to that trace's clock by its clock snapshots, as
 * Perfetto does: the latest snapshot at or before a reading applies, so a sleep of the device moves
 * all later times.  Without a shared clock both traces begin together, and the choice is reported.
 * Thread: any, once made.
 */
#ifndef TW_EXPORT_CLOCK_SYNC_H
#define TW_EXPORT_CLOCK_SYNC_H

#include "server/export/perfetto/system/export_system.h"
#include "server/trace/trace_file.h"

enum tw_clock_sync_choice {
	TW_CLOCK_SYNC_ALONE,     /* no other trace to align with */
	TW_CLOCK_SYNC_MONOTONIC, /* by readings of CLOCK_MONOTONIC */
	TW_CLOCK_SYNC_BOOTTIME,  /* by readings of CLOCK_BOOTTIME */
	TW_CLOCK_SYNC_START,     /* begins together with the other */
	TW_CLOCK_SYNC_SLICE,     /* a slice of the given name begins together with the other's */
	TW_CLOCK_SYNC_APART      /* according to the clocks they were not recorded together */
};
const char *tw_clock_sync_name(enum tw_clock_sync_choice choice); /* "monotonic", "start" */

struct tw_clock_sync_step { /* from here on, add_ns is added */
	int64_t from_ns, add_ns;
};

struct tw_clock_sync {
	enum tw_clock_sync_choice choice;
	uint32_t clock; /* Perfetto's id of the target clock */
	const struct tw_clock_sync_step *steps;
	uint32_t n;
	/* The difference between the trace's own BOOTTIME base and its position by the snapshots;
	 * INT64_MIN: unknown. */
	int64_t residual_ns;
};

/* system NULL: no other trace.  Steps are stored in the arena. */
enum tw_status tw_clock_sync_make(const struct tw_trace_info *trace, const struct tw_system *system,
        struct tw_arena *a, struct tw_clock_sync *ret, struct tw_err *err) TW_MUST_USE;
/* The same, mapping trace time at_ns to to_ns of a clock. */
enum tw_status tw_clock_sync_at(enum tw_clock_sync_choice choice, uint32_t clock, int64_t at_ns,
        int64_t to_ns, struct tw_arena *a, struct tw_clock_sync *ret,
        struct tw_err *err) TW_MUST_USE;

/* NULL if a device's trace can be joined with ours, otherwise a message with the reason. */
const char *tw_clock_sync_why_not(
        const struct tw_system *system, const struct tw_clock_sync *place);

/* *at is the step to start the search at, initially 0: rising times are found in constant time. */
static inline int64_t tw_clock_sync_time(const struct tw_clock_sync *p, uint32_t *at, int64_t ts_ns)
{
	while (*at + 1 < p->n && p->steps[*at + 1].from_ns <= ts_ns)
		++*at;
	while (*at && p->steps[*at].from_ns > ts_ns)
		--*at;
	return ts_ns + p->steps[*at].add_ns;
}
/* The trace time of a file time; if several, the first. */
int64_t tw_clock_sync_back(const struct tw_clock_sync *p, int64_t file_ns);

#endif
