/*
 * list.h - a growing array in an arena.
 *
 * Its memory doubles; earlier copies stay in the arena.  Emptied by n = 0, it is used again.
 */
#ifndef TW_LIST_H
#define TW_LIST_H

#include <string.h>

#include "decoder/base/arena.h"

struct tw_list {
	void *items;
	uint32_t n, cap;
};

/* A new last item, uninitialised; NULL: out of memory.  Items have one size per list. */
static inline void *tw_list_add(struct tw_list *l, struct tw_arena *a, size_t size)
{
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 256;
		void *items = cap > l->cap ? tw_arena_alloc(a, cap, size) : NULL;

		if (!items)
			return NULL;
		if (l->n)
			memcpy(items, l->items, l->n * size);
		l->items = items;
		l->cap = cap;
	}
	return (char *)l->items + (size_t)l->n++ * size;
}

#endif
