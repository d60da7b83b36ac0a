/*
 * samples.h - stack samples in any order, for the formats that have them so.
 *
 * Logs and JSON files tell samples by batches, by thread or not at all in the
 * order of their times, and several samples share one stack.  Frames are kept in
 * one list and samples as pieces of it (4 and 64 bytes, of a bounded number),
 * sorted by thread and time, and told as calls (stacks.h).
 */
#ifndef TW_SAMPLES_H
#define TW_SAMPLES_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

struct tw_samples;

/* NULL: no memory. */
struct tw_samples *tw_samples_new(
        struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink);

/* Appends a frame, outermost first; at the limit it is counted and left out.  offset is for that
 * report. */
enum tw_status tw_samples_frame(
        struct tw_samples *s, uint32_t sym, uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* Frames so far: where the next one will stand. */
uint32_t tw_samples_frames(const struct tw_samples *s);

/* The frames from `first` on are a whole stack: where it stands.  Where the same was lately, they
 * are taken back. */
uint32_t tw_samples_share(struct tw_samples *s, uint32_t first);

struct tw_sample_piece {
	uint32_t track; /* a handle of the sink, not 0 */
	int64_t ts_ns;
	uint64_t offset;
	uint32_t first, n; /* frames; past the end of the list there are none */
	bool went_on;      /* see struct tw_sample */
	bool has_cpu;
	int64_t cpu_ns; /* has_cpu: what the thread's CPU clock said */
	bool joins;     /* with other pieces of its track and time it is one sample */
};

enum tw_status tw_samples_add(
        struct tw_samples *s, const struct tw_sample_piece *piece, struct tw_err *err) TW_MUST_USE;
uint32_t tw_samples_count(const struct tw_samples *s);

/* Moves the zero of all that were added by so much. */
void tw_samples_move_zero(struct tw_samples *s, int64_t by_ns);

/* Tells all of them, once.  interval_ns 0: the median distance of a thread's samples. */
enum tw_status tw_samples_tell(
        struct tw_samples *s, int64_t interval_ns, struct tw_err *err) TW_MUST_USE;

#endif
