/*
 * perfetto_stacks.h - interned data and stack samples of a Perfetto trace.
 *
 * Stacks are numbers of frames, frames are numbers of functions, each valid within its sequence
 * (perfetto_intern.h).  A stack is assembled once, when it is defined, and shared by its samples
 * (samples.h).
 */
#ifndef TW_PERFETTO_STACKS_H
#define TW_PERFETTO_STACKS_H

#include "decoder/base/pbread.h"
#include "decoder/formats/perfetto/perfetto_tracks.h"
#include "decoder/formats/sampled/samples.h"

struct tw_perfetto_stacks {
	struct tw_sink *sink;
	struct tw_marks *marks;
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
