/*
 * sketch.h - many numbers in few bytes: how many, their sum, least, most, and quantiles.
 *
 * Numbers are counted in the buckets of trace/buckets.h, so a quantile is at most
 * 1/64 (1.6 %) beside the number of that rank, whatever the numbers are.  What is
 * written can be added to any other, in any order, with the same result: sums
 * that would overflow stay at the largest number there is.
 * Thread: one at a time.
 */
#ifndef TW_SKETCH_H
#define TW_SKETCH_H

#include "decoder/base/buf.h"
#include "decoder/trace/buckets.h"

/* What quantiles may be beside the truth, as a share of it. */
#define TW_SKETCH_ERROR (1.0 / 64)

struct tw_sketch { /* 15 KB: one that others are added to, not one per thing counted */
	uint64_t n;
	int64_t sum, min, max;
	uint32_t first, last; /* buckets in use, when n > 0 */
	uint64_t counts[TW_BUCKETS];
};

void tw_sketch_init(struct tw_sketch *s);
/* Empty again; cheaper than init. */
void tw_sketch_clear(struct tw_sketch *s);
/* One more number; one below 0 counts as 0. */
void tw_sketch_add(struct tw_sketch *s, int64_t value);
/* Adds all of another's numbers. */
void tw_sketch_add_all(struct tw_sketch *s, const struct tw_sketch *other);
/* Appends what tw_sketch_merge reads: a few bytes and about two for each bucket in use. */
void tw_sketch_write(const struct tw_sketch *s, struct tw_buf *out);
/* The same with the buckets in use one by one, for those who keep something beside each. */
void tw_sketch_write_pairs(const struct tw_sketch *s, struct tw_buf *out);
/* Adds a written one at *p, not past end, and moves *p behind it.  False: it is damaged, and s is
 * worth nothing any more. */
bool tw_sketch_merge(struct tw_sketch *s, const uint8_t **p, const uint8_t *end) TW_MUST_USE;
/* The number that `percent` (1 to 100) of them do not exceed, by nearest rank; 0 when there are
 * none. */
int64_t tw_sketch_quantile(const struct tw_sketch *s, unsigned percent);
/* The number of that rank, from 1 for the least up to n. */
int64_t tw_sketch_rank(const struct tw_sketch *s, uint64_t rank);
/* 0 when there are none. */
int64_t tw_sketch_mean(const struct tw_sketch *s);

/* Numbers that cannot be negative; stays at INT64_MAX. */
static inline int64_t tw_sketch_sum(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
