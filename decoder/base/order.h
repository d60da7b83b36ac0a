/*
 * order.h - comparisons for qsort and bsearch.
 *
 * TW_ORDER_BY defines one from its keys, as ORDER BY does in SQL:
 *
 *	TW_ORDER_BY(by_time, struct call, TW_FALLING(total_ns), TW_RISING(method))
 *
 * A key is a member: a number, a truth value (false first), a text or a struct tw_str.  A later key
 * decides among rows that are equal in the earlier ones.  Any comparison of a and b is a key too.
 * Thread: any.
 */
#ifndef TW_ORDER_H
#define TW_ORDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/str.h"

static inline int tw_order_int(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static inline int tw_order_uint(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static inline int tw_order_double(double a, double b)
{
	return a < b ? -1 : a > b;
}

/* Less than, equal to or greater than 0. */
#define TW_ORDER(x, y)                                                                             \
	_Generic((x), struct tw_str                                                                \
	         : tw_str_cmp, const char *                                                        \
	         : strcmp, char *                                                                  \
	         : strcmp, double                                                                  \
	         : tw_order_double, uint64_t                                                       \
	         : tw_order_uint, default                                                          \
	         : tw_order_int)((x), (y))

/* The keys of TW_ORDER_BY, up to five. */
#define TW_RISING(member)  TW_ORDER(a->member, b->member)
#define TW_FALLING(member) TW_ORDER(b->member, a->member)

#define TW_ORDER_BY(name, type, ...)                                                               \
	static int name(const void *pa, const void *pb)                                            \
	{                                                                                          \
		type const *const a = pa;                                                          \
		type const *const b = pb;                                                          \
		int order;                                                                         \
                                                                                                   \
		(void)(TW_ORDER_KEYS(__VA_ARGS__, 5, 4, 3, 2, 1, )(__VA_ARGS__));                  \
		return order;                                                                      \
	}
#define TW_ORDER_KEYS(a, b, c, d, e, n, ...) TW_ORDER_KEYS_##n
#define TW_ORDER_KEYS_1(key)                 (order = (key))
#define TW_ORDER_KEYS_2(key, ...)            TW_ORDER_KEYS_1(key) || TW_ORDER_KEYS_1(__VA_ARGS__)
#define TW_ORDER_KEYS_3(key, ...)            TW_ORDER_KEYS_1(key) || TW_ORDER_KEYS_2(__VA_ARGS__)
#define TW_ORDER_KEYS_4(key, ...)            TW_ORDER_KEYS_1(key) || TW_ORDER_KEYS_3(__VA_ARGS__)
#define TW_ORDER_KEYS_5(key, ...)            TW_ORDER_KEYS_1(key) || TW_ORDER_KEYS_4(__VA_ARGS__)

/* qsort, which accepts no null pointer, even for 0 rows. */
#define TW_SORT(rows, n, by) tw_sort((rows), (n), sizeof *(rows), (by))
static inline void tw_sort(
        void *rows, size_t n, size_t row_bytes, int (*by)(const void *, const void *))
{
	if (n)
		qsort(rows, n, row_bytes, by);
}

/* Sets i to the number of leading rows for which is_before, an expression of i, is true.  Once it
 * is false for a row, it must be false for all later rows. */
#define TW_BISECT(i, n, is_before)                                                                 \
	do {                                                                                       \
		__typeof__(i) tw_low = 0, tw_high = (n);                                           \
                                                                                                   \
		while (tw_low < tw_high) {                                                         \
			(i) = tw_low + (tw_high - tw_low) / 2;                                     \
			if (is_before)                                                             \
				tw_low = (i) + 1;                                                  \
			else                                                                       \
				tw_high = (i);                                                     \
		}                                                                                  \
		(i) = tw_low;                                                                      \
	} while (0)

/* Compares uint64_t. */
static inline int tw_by_u64(const void *pa, const void *pb)
{
	return tw_order_uint(*(const uint64_t *)pa, *(const uint64_t *)pb);
}

/* Compares int64_t. */
static inline int tw_by_i64(const void *pa, const void *pb)
{
	return tw_order_int(*(const int64_t *)pa, *(const int64_t *)pb);
}

/* Compares const char *. */
static inline int tw_by_text(const void *pa, const void *pb)
{
	return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

#endif
