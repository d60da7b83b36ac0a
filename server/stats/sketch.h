/*
 * sketch.h - a compact summary of many numbers: count, sum, minimum, maximum and quantiles.
 *
 * Numbers are counted in the buckets of trace/buckets.h, so quantiles are accurate to within 1/64
 * (1.6 %).  Written sketches can be added to any other in any order with the same result; sums that
 * would overflow stay at the largest number.
 * Thread: one at a time.
 */
#ifndef TW_SKETCH_H
#define TW_SKETCH_H

#include "decoder/base/buf.h"
#include "decoder/trace/buckets.h"

/* The relative error bound of quantiles. */
#define TW_SKETCH_ERROR (1.0 / 64)

struct tw_sketch { /* 15 KB: use one accumulator, not one per series */
	uint64_t n;
	int64_t sum, min, max;
	uint32_t first, last; /* buckets in use, when n > 0 */
	uint64_t counts[TW_BUCKETS];
};

/* Empties it, at less cost than setting it to zero. */
void tw_sketch_clear(struct tw_sketch *s);
/* Adds one number; negative ones count as 0. */
void tw_sketch_add(struct tw_sketch *s, int64_t value);
/* Adds the numbers of one bucket, n of them. */
struct tw_sketch_bucket {
	uint32_t bucket;
	uint64_t n;
	int64_t sum, min, max;
};
void tw_sketch_add_bucket(struct tw_sketch *s, const struct tw_sketch_bucket *b);
/* Adds all numbers of another sketch. */
void tw_sketch_add_all(struct tw_sketch *s, const struct tw_sketch *other);
/* Appends the stored form: a few bytes and about two per bucket in use. */
void tw_sketch_write(const struct tw_sketch *s, struct tw_buf *out);
/* The same with the buckets in use one by one, for callers that store data next to each. */
void tw_sketch_write_pairs(const struct tw_sketch *s, struct tw_buf *out);
/* Adds a stored sketch at *p, not past end, and moves *p after it.  False: it is damaged, and s is
 * undefined. */
bool tw_sketch_merge(struct tw_sketch *s, const uint8_t **p, const uint8_t *end) TW_MUST_USE;
/* The number that `percent` (1 to 100) of them do not exceed, by nearest rank; 0 if empty. */
int64_t tw_sketch_quantile(const struct tw_sketch *s, unsigned percent);
/* The number of that rank, from 1 (smallest) to n. */
int64_t tw_sketch_rank(const struct tw_sketch *s, uint64_t rank);
/* 0 if empty. */
int64_t tw_sketch_mean(const struct tw_sketch *s);

/* Saturating sum of numbers that are not negative. */
static inline int64_t tw_sketch_sum(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
