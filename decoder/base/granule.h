/*
 * granule.h - repacks a stream into pieces of a fixed size.
 *
 * Checks made while reading, such as the compression ratio, see the same pieces however the input
 * was split, so they fail at the same offset (I3).  Pieces that arrive complete are passed on
 * without a copy.
 * Thread: one at a time.
 */
#ifndef TW_GRANULE_H
#define TW_GRANULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_GRANULE = 32 << 10 };

struct tw_granules {
	uint8_t *held; /* TW_GRANULE bytes; owned by the caller */
	size_t n_held;
	uint64_t at; /* bytes consumed so far; pieces end at multiples of TW_GRANULE */
};

/* Consumes input from *p.  True with a piece, which is valid until the next call. */
bool tw_granules_next(
        struct tw_granules *g, const uint8_t **p, size_t *n, const uint8_t **ret, size_t *ret_n);
/* At the end of the stream: the remaining bytes, possibly none. */
size_t tw_granules_rest(struct tw_granules *g);

#endif
