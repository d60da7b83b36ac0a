/*
 * catalogue_tries.h - how often something was tried, for all servers on one catalogue: buckets that
 * drain by the database's clock (auth_throttle.h).
 */
#ifndef TW_CATALOGUE_TRIES_H
#define TW_CATALOGUE_TRIES_H

#include "server/catalogue/catalogue.h"

struct tw_throttle_bucket {
	uint64_t key; /* hash of whom it is of, and of what for */
	int64_t cost_ms, most_ms;
};
struct tw_throttle_ask {
	struct tw_throttle_bucket buckets[2];
	size_t n;
};
enum { TW_TRIES_ROWS = 16384 }; /* of more the one that is empty first is forgotten */

/* *ret_wait_ms until all have room, 0: they have, and with `count` it is taken. */
enum tw_status tw_catalogue_tries(struct tw_catalogue *c, const struct tw_throttle_ask *ask,
        bool count, int64_t *ret_wait_ms, struct tw_err *err) TW_MUST_USE;
/* What was taken is given back. */
enum tw_status tw_catalogue_tries_back(
        struct tw_catalogue *c, const struct tw_throttle_ask *ask, struct tw_err *err);

#endif
