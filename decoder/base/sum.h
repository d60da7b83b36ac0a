/*
 * sum.h - saturating sums of times from the input.
 *
 * Single times are checked when read, but a sum of many large ones can overflow.  It then stays at
 * the limit of its type.
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
