/*
 * buckets.h - histogram buckets for durations.
 *
 * Below 32 ns a bucket is one nanosecond; above that, each octave has 32 buckets, so the middle of
 * a bucket is within 1/64 (1.6 %) of every duration in it.  Buckets are the same for all traces, so
 * counts can be added.
 */
#ifndef TW_BUCKETS_H
#define TW_BUCKETS_H

#include <stdint.h>

enum { TW_BUCKET_STEPS_LOG2 = 5, TW_BUCKET_STEPS = 1 << TW_BUCKET_STEPS_LOG2 };
enum { TW_BUCKETS = (63 - TW_BUCKET_STEPS_LOG2 + 1) * TW_BUCKET_STEPS };

/* The bucket of a duration (negative counts as 0): below TW_BUCKETS, rising with the duration. */
static inline uint32_t tw_bucket_of(int64_t ns)
{
	uint64_t v = ns > 0 ? (uint64_t)ns : 0;
	uint32_t octave;

	if (v < TW_BUCKET_STEPS)
		return (uint32_t)v;
	octave = 63 - (uint32_t)__builtin_clzll(v) - TW_BUCKET_STEPS_LOG2;
	return (octave << TW_BUCKET_STEPS_LOG2) + (uint32_t)(v >> octave);
}

/* The middle of a bucket. */
static inline int64_t tw_bucket_ns(uint32_t bucket)
{
	uint32_t octave;
	int64_t low;

	if (bucket < 2 * TW_BUCKET_STEPS)
		return bucket;
	octave = (bucket >> TW_BUCKET_STEPS_LOG2) - 1;
	low = (int64_t)(bucket - (octave << TW_BUCKET_STEPS_LOG2)) << octave;
	return low + ((INT64_C(1) << octave) >> 1);
}

#endif
