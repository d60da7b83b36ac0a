/*
 * catalogue_throttle.h - rate limits for all servers on one catalogue: leaky buckets on the
 * database's clock (auth_throttle.h).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_THROTTLE_H
#define TW_CATALOGUE_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

struct tw_catalogue;

struct tw_throttle_bucket {
	uint64_t key; /* hash of subject and purpose */
	int64_t cost_ms, most_ms;
};
struct tw_throttle_cost {
	struct tw_throttle_bucket buckets[2];
	size_t n;
};
enum { TW_THROTTLE_ROWS = 16384 }; /* beyond that, the bucket that is empty first is dropped */

/* *ret_wait_ms: time until all buckets have space; 0: all have space, and `count` adds the
 * attempts. */
enum tw_status tw_catalogue_throttle(struct tw_catalogue *c, const struct tw_throttle_cost *cost,
        bool count, int64_t *ret_wait_ms, struct tw_err *err) TW_MUST_USE;
/* Gives back attempts that were taken. */
enum tw_status tw_catalogue_throttle_back(
        struct tw_catalogue *c, const struct tw_throttle_cost *cost, struct tw_err *err);

#endif
