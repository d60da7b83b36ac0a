/*
 * whole.h - collects an input that can be interpreted only when it is complete, in an arena.
 *
 * Its memory doubles; earlier copies stay in the arena.  The caller limits its size.
 */
#ifndef TW_WHOLE_H
#define TW_WHOLE_H

#include <string.h>

#include "decoder/base/arena.h"

struct tw_whole {
	uint8_t *data;
	size_t n, cap;
};

/* Appends bytes.  False: out of memory. */
static inline bool tw_whole_push(struct tw_whole *w, struct tw_arena *a, const uint8_t *p, size_t n)
{
	size_t cap = w->cap ? w->cap : (size_t)1 << 16;

	while (cap - w->n < n)
		cap *= 2;
	if (cap != w->cap) {
		uint8_t *data = tw_arena_alloc(a, cap, 1);

		if (!data)
			return false;
		if (w->n)
			memcpy(data, w->data, w->n);
		w->data = data;
		w->cap = cap;
	}
	if (n)
		memcpy(w->data + w->n, p, n);
	w->n += n;
	return true;
}

#endif
