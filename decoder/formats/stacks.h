/*
 * stacks.h - converts stack samples to calls.
 *
 * Two consecutive samples of a thread share their equal frames from the outermost on: those
 * continued.  Further frames of the earlier sample ended at the later sample's time; further frames
 * of the later one began there (the rule of Android's own sampling tracer).  After a gap of several
 * intervals nothing continued: open calls ended one interval after their last sample.
 * The tracks are described to the sink as sampled, so that counts of slices are not mistaken for
 * counts of calls.  If no sample of any track followed another without a gap, the samples are
 * snapshots (TW_INTERVAL_NONE).
 */
#ifndef TW_STACKS_H
#define TW_STACKS_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

struct tw_stacks;

/* interval_ns: usual interval of samples; 0 unknown, then gaps are not detected.  NULL: out of
 * memory. */
struct tw_stacks *tw_stacks_new(struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, int64_t interval_ns);

struct tw_sample {
	uint32_t track; /* a handle of the sink, not 0 */
	int64_t ts_ns;
	uint64_t offset;
	const uint32_t *syms; /* outermost first; 0: a frame that the sink refused */
	size_t n;             /* 0: the thread was sampled without a stack */
	/* the previous sample's stack is known to have lasted until this sample: no gap */
	bool continued;
	bool has_cpu;
	int64_t cpu_ns; /* has_cpu: reading of the thread's CPU clock */
};

/* Samples of a track come in time order; one earlier than its predecessor is counted as
 * impossible_time and dropped. */
enum tw_status tw_stacks_add(
        struct tw_stacks *s, const struct tw_sample *sample, struct tw_err *err) TW_MUST_USE;
/* Ends open calls one interval after their last sample. */
enum tw_status tw_stacks_finish(struct tw_stacks *s, struct tw_err *err) TW_MUST_USE;

#endif
