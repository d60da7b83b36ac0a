/*
 * sums.h - stacks with a value each, as pprof's and OpenTelemetry's profiles have them.
 *
 * Frames arrive innermost first and are added to samples.h with their thread.  A thread without an
 * id gets one made of its name; stacks without a thread are those of "all stacks".
 */
#ifndef TW_SUMS_H
#define TW_SUMS_H

#include "decoder/formats/sampled/samples.h"

enum { TW_SUMS_STACK = 4096 }; /* further frames are counted and dropped */

struct tw_sums {
	struct tw_sink *sink;
	struct tw_samples *samples;
	uint32_t track; /* of the previous stack */
	size_t n;       /* frames of this stack, the dropped ones too */
	uint64_t reads, most_reads;
	uint32_t stack[TW_SUMS_STACK];
};

/* False: out of memory. */
bool tw_sums_init(struct tw_sums *s, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);

/* A one-byte reference may refer to a long message, so the bytes read through references are
 * limited by the profile's size. Profiles of real tools stay far below the limit. */
void tw_sums_limit(struct tw_sums *s, size_t profile_bytes);
/* False: the limit is reached; do not read these bytes. */
bool tw_sums_may_read(struct tw_sums *s, size_t bytes);
/* TW_TOO_LARGE once the limit was reached. */
enum tw_status tw_sums_status(
        const struct tw_sums *s, uint64_t offset, struct tw_err *err) TW_MUST_USE;

/* Whether further frames of the current stack are dropped. */
static inline bool tw_sums_is_full(const struct tw_sums *s)
{
	return s->n >= TW_SUMS_STACK;
}
/* The next frame outwards of the current stack. */
void tw_sums_frame(struct tw_sums *s, uint32_t sym);

struct tw_sum {
	int64_t value; /* or the time of a sample */
	uint64_t offset;
	uint32_t pid; /* 0: the trace's process */
	bool has_tid;
	uint64_t tid;
	struct tw_str thread; /* name, also with an id (label.h); "" unknown */
};

/* Ends the current stack. */
enum tw_status tw_sums_add(struct tw_sums *s, struct tw_sum *sum, struct tw_err *err) TW_MUST_USE;

/* Nanoseconds per unit ("milliseconds", "ms"); 0: not a unit of time. */
int64_t tw_sums_unit_ns(struct tw_str unit);

struct tw_sums_location {       /* a frame without a function */
	struct tw_str path;     /* of its mapping, "" unknown */
	struct tw_str build_id; /* hex digits, "" unknown */
	uint64_t address;
	/* the mapping in memory; an address outside is one of the file's symbol table */
	uint64_t start, limit;
	uint64_t offset; /* of `start` in the file */
};
/* The name of a frame without a function: that of native_frame.h if the build id is known,
 * otherwise its file, otherwise its address. */
uint32_t tw_sums_address(struct tw_sums *s, const struct tw_sums_location *p);

#endif
