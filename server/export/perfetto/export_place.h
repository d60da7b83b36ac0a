/*
 * export_place.h - where a trace of ours stands on the timeline of the file that is written.
 *
 * Times of a trace count from its own zero, of which CLOCK_MONOTONIC and CLOCK_BOOTTIME are known
 * or not.  Beside a device's trace they are put on that trace's clock by its own clock snapshots,
 * as Perfetto itself would: the latest snapshot at or before a reading counts, so a device that
 * slept in between moves what comes after.  Where no clock is shared both begin together, and the
 * choice is told.
 * Thread: any, once made.
 */
#ifndef TW_EXPORT_PLACE_H
#define TW_EXPORT_PLACE_H

#include "server/export/perfetto/system/export_system.h"
#include "server/trace/trace_file.h"

enum tw_place_choice {
	TW_PLACE_ALONE,     /* nothing to be put beside */
	TW_PLACE_MONOTONIC, /* by readings of CLOCK_MONOTONIC */
	TW_PLACE_BOOTTIME,  /* by readings of CLOCK_BOOTTIME */
	TW_PLACE_START,     /* begins with the other */
	TW_PLACE_SLICE,     /* a slice of that name begins with the other's */
	TW_PLACE_APART      /* the clocks say that they were not recorded together */
};
const char *tw_place_word(enum tw_place_choice choice); /* "monotonic", "start" */

struct tw_place_step { /* from here on, this is added */
	int64_t from_ns, add_ns;
};

struct tw_place {
	enum tw_place_choice choice;
	uint32_t clock; /* Perfetto's number of the clock that times are put on */
	const struct tw_place_step *steps;
	uint32_t n;
	/* What the trace's own BOOTTIME base differs by from where the snapshots put it; INT64_MIN:
	 * cannot be told. */
	int64_t residual_ns;
};

/* system NULL: alone.  Steps live in the arena. */
enum tw_status tw_place_make(const struct tw_trace_info *trace, const struct tw_system *system,
        struct tw_arena *a, struct tw_place *ret, struct tw_err *err) TW_MUST_USE;
/* The same with trace time at_ns put at to_ns of a clock. */
enum tw_status tw_place_at(enum tw_place_choice choice, uint32_t clock, int64_t at_ns,
        int64_t to_ns, struct tw_arena *a, struct tw_place *ret, struct tw_err *err) TW_MUST_USE;

/* NULL when a device's trace goes beside ours, else why not, in words. */
const char *tw_place_why_not(const struct tw_system *system, const struct tw_place *place);

/* *at is a step to begin at, 0 at first: times that rise are found at once. */
static inline int64_t tw_place_time(const struct tw_place *p, uint32_t *at, int64_t ts_ns)
{
	while (*at + 1 < p->n && p->steps[*at + 1].from_ns <= ts_ns)
		++*at;
	while (*at && p->steps[*at].from_ns > ts_ns)
		--*at;
	return ts_ns + p->steps[*at].add_ns;
}
/* The trace time that stands at a time of the file: of several the first. */
int64_t tw_place_back(const struct tw_place *p, int64_t file_ns);

#endif
