/*
 * samples.h - buffers stack samples that come in any order.
 *
 * Logs and JSON files order samples by batch, by thread or not at all, and samples share stacks.
 * Frames are stored in one list and samples as ranges of it (4 and 64 bytes, limited in number),
 * sorted by thread and time, and emitted as calls (stacks.h).
 */
#ifndef TW_SAMPLES_H
#define TW_SAMPLES_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

struct tw_samples;

/* NULL: out of memory. */
struct tw_samples *tw_samples_new(
        struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink);

/* Appends a frame, outermost first; at the limit it is counted and dropped.  offset is for the
 * repair report. */
enum tw_status tw_samples_frame(
        struct tw_samples *s, uint32_t sym, uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* Number of frames so far: the index of the next one. */
uint32_t tw_samples_frames(const struct tw_samples *s);

/* The frames from `first` on are a complete stack: returns its index.  If the same stack was added
 * recently, its frames are removed again. */
uint32_t tw_samples_share(struct tw_samples *s, uint32_t first);

struct tw_sample_piece {
	uint32_t track; /* a handle of the sink, not 0 */
	int64_t ts_ns;
	uint64_t offset;
	uint32_t first, n; /* frames; none if past the end of the list */
	bool continued;    /* see struct tw_sample */
	bool has_cpu;
	int64_t cpu_ns; /* has_cpu: reading of the thread's CPU clock */
	bool joins;     /* forms one sample with other pieces of its track and time */
};

enum tw_status tw_samples_add(
        struct tw_samples *s, const struct tw_sample_piece *piece, struct tw_err *err) TW_MUST_USE;
/* Adds a sample whose stack is the frames from io->first on, of which there should be `want`.  If
 * the same stack was added recently, io->first becomes its index and the frames are removed again.
 * A stack that a limit has cut is left out: io->n is below `want`. */
enum tw_status tw_samples_add_stack(struct tw_samples *s, struct tw_sample_piece *io, size_t want,
        struct tw_err *err) TW_MUST_USE;
uint32_t tw_samples_count(const struct tw_samples *s);

/* Shifts the times of all samples added so far. */
void tw_samples_move_zero(struct tw_samples *s, int64_t by_ns);

/* Emits all samples, once.  interval_ns 0: the median interval of a thread's samples. */
enum tw_status tw_samples_emit(
        struct tw_samples *s, int64_t interval_ns, struct tw_err *err) TW_MUST_USE;

/* For profiles that are sums without times: a piece's ts_ns is the sum of its stack.  Emits, once,
 * the stacks of each track end to end, equal callers together, so that each path is one call.
 * source: SAMPLES for sums of time, COUNTS for others. */
enum tw_status tw_samples_emit_sums(
        struct tw_samples *s, enum tw_source source, struct tw_err *err) TW_MUST_USE;

#endif
