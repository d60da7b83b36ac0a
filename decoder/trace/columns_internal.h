/*
 * columns_internal.h - shared by writing and reading of chunks: schema/columns.md.
 *
 * A duration is a bucket and the bits below it.  Buckets are octaves of eight steps, so their
 * distribution is narrow and the bits below are noise.  A bucket is stored as the difference from
 * the expected one: the moving average of earlier ones in the same context.
 */
#ifndef TW_COLUMNS_INTERNAL_H
#define TW_COLUMNS_INTERNAL_H

#include "decoder/trace/columns.h"

enum tw_column {
	TW_COL_OPEN,
	TW_COL_BITS,
	TW_COL_CALL,
	TW_COL_LEAF,
	TW_COL_TAIL,
	TW_COL_GAP,
	TW_COL_CPU,
	TW_COL_MERGED,
	TW_COLUMNS
};
enum { TW_CHUNK_MAGIC = 0x32435754 /* "TWC2" */ };
/* Which of the last two columns exist. */
enum { TW_FLAG_MERGED = 2, TW_FLAG_CPU = 4 };

/* Times stay below 2^62, so that the sum of two never overflows. */
#define TW_TIME_MAX ((int64_t)1 << 62)

enum { TW_STEPS_LOG2 = 3, TW_WIDE_BUCKET = 255, TW_HALF_BITS = 32, TW_SLOTS_LOG2 = 12 };
#define TW_NO_PARENT UINT32_MAX

/* Number of bits below the bucket's step; for all but TW_WIDE_BUCKET, whose value has all 64. */
static inline unsigned tw_bits_below(uint64_t v)
{
	return 60u - (unsigned)__builtin_clzll(v | 1u << TW_STEPS_LOG2);
}

/* Rising with v; TW_WIDE_BUCKET or more for values that are stored in full. */
static inline unsigned tw_time_bucket(uint64_t v, unsigned below)
{
	return (below << TW_STEPS_LOG2) + (unsigned)(v >> below);
}

/* The moving averages of a context's buckets, in 1/256; 0 none yet. */
struct tw_averages {
	uint16_t slots[1 << TW_SLOTS_LOG2];
};

static inline unsigned tw_expected_bucket(uint16_t average)
{
	return (average + 128u) >> 8;
}

static inline uint16_t tw_next_average(uint16_t average, unsigned bucket)
{
	int now = (int)bucket << 8;

	return average ? (uint16_t)(average + ((now - average) >> 2)) : (uint16_t)now;
}

/* Contexts: of a gap, the method, its caller, and whether the caller called before; of a tail, the
 * method and the one it called last. */
#define TW_METHOD_HASH 0x9E3779B1u
#define TW_OTHER_HASH  0x85EBCA77u /* of the caller, or the one called last */
#define TW_LATER_CHILD 0xC2B2AE3Du

static inline uint32_t tw_slot_of(uint32_t hash)
{
	return hash >> (32 - TW_SLOTS_LOG2);
}

static inline uint32_t tw_gap_slot(uint32_t method, uint32_t parent, bool first)
{
	return tw_slot_of(
	        method * TW_METHOD_HASH ^ parent * TW_OTHER_HASH ^ (first ? 0 : TW_LATER_CHILD));
}

static inline uint32_t tw_tail_slot(uint32_t method, uint32_t last_child)
{
	return tw_slot_of(method * TW_METHOD_HASH ^ last_child * TW_OTHER_HASH);
}

#endif
