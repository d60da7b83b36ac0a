/*
 * order.h - comparisons for qsort and bsearch.  Thread: any.
 */
#ifndef TW_ORDER_H
#define TW_ORDER_H

#include <stdint.h>
#include <string.h>

/* Compares uint64_t. */
static inline int tw_by_u64(const void *pa, const void *pb)
{
	const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* Compares const char *. */
static inline int tw_by_text(const void *pa, const void *pb)
{
	return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

#endif
