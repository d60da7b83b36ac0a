/*
 * sum.h - sums of times that an input chose.
 *
 * A single time is checked where it comes in; many of the largest together may
 * leave the range of numbers.  A sum stays at its end then.
 */
#ifndef TW_SUM_H
#define TW_SUM_H

#include <stdint.h>

static inline int64_t tw_sum_ns(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

#endif
