/*
 * stacks.h - stack samples to calls.
 *
 * Two samples of a thread that follow each other share the frames from the
 * outermost on that are the same: those went on.  What the earlier had beyond
 * them ended at the later sample's time, what the later has beyond began there
 * (the rule of Android's own sampling tracer).  After a gap of several intervals
 * nothing went on: what was open ended an interval after its last sample.
 * The tracks are described to the sink as sampled, so that nobody takes counts
 * of slices for counts of calls.  If no sample of any track followed another before
 * a gap, the samples are snapshots (TW_INTERVAL_NONE).
 */
#ifndef TW_STACKS_H
#define TW_STACKS_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

struct tw_stacks;

/* interval_ns: usual distance of samples; 0 unknown, then there are no gaps.  NULL: no memory. */
struct tw_stacks *tw_stacks_new(struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, int64_t interval_ns);

struct tw_sample {
	uint32_t track; /* a handle of the sink, not 0 */
	int64_t ts_ns;
	uint64_t offset;
	const uint32_t *syms; /* outermost first; 0: a frame that the sink did not take */
	size_t n;             /* 0: the thread was seen without a stack */
	bool went_on; /* it is known that the stack of the sample before stood until now: no gap */
	bool has_cpu;
	int64_t cpu_ns; /* has_cpu: what the thread's CPU clock said */
};

/* Samples of a track come in the order of their times; one that is earlier than the one before it
 * is counted as impossible_time and left out. */
enum tw_status tw_stacks_add(
        struct tw_stacks *s, const struct tw_sample *sample, struct tw_err *err) TW_MUST_USE;
/* Closes what is open an interval after its last sample. */
enum tw_status tw_stacks_finish(struct tw_stacks *s, struct tw_err *err) TW_MUST_USE;

#endif
