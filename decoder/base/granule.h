/*
 * granule.h - a stream in pieces of one size, however it was cut.
 *
 * What judges its input while it reads (how much came out of how much) sees the
 * same pieces each time, and so gives the same verdict at the same place (I3).
 * Pieces that come whole are passed on where they are.
 * Thread: one at a time.
 */
#ifndef TW_GRANULE_H
#define TW_GRANULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_GRANULE = 32 << 10 };

struct tw_granules {
	uint8_t *held; /* TW_GRANULE bytes, the owner's */
	size_t n_held;
	uint64_t at; /* bytes taken so far; pieces end at its multiples of TW_GRANULE */
};

/* Takes from *p; true with a piece, which is valid until the next call. */
bool tw_granules_next(
        struct tw_granules *g, const uint8_t **p, size_t *n, const uint8_t **ret, size_t *ret_n);
/* At the end of the stream: what is left of it; may be empty. */
size_t tw_granules_rest(struct tw_granules *g);

#endif
