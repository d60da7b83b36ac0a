/*
 * list.h - a growing array, in an arena or in memory of its own.
 *
 * Its memory doubles; earlier copies stay in the arena.  Emptied by n = 0, it is used again.
 */
#ifndef TW_LIST_H
#define TW_LIST_H

#include <stdbool.h>
#include <string.h>

#include "decoder/base/arena.h"

struct tw_list {
	void *items;
	uint32_t n, cap;
};

enum { TW_LIST_FIRST = 64 };

/* Makes space for one item after the first n of *items, the caller's array, whose initial
 * capacity is `first`.  a: NULL if the caller frees the array (tw_mem_free).  False: out of
 * memory; nothing changed. */
static inline bool tw_list_grow(
        struct tw_arena *a, void **items, size_t n, uint32_t *cap, size_t size, uint32_t first)
{
	const uint32_t wider = *cap ? *cap * 2 : first;
	void *p;

	if (n < *cap)
		return true;
	if (wider <= *cap)
		return false;
	p = a ? tw_arena_alloc(a, wider, size) : tw_mem_resize(*items, wider, size);
	if (!p)
		return false;
	if (a && n)
		memcpy(p, *items, n * size);
	*items = p;
	*cap = wider;
	return true;
}
#define TW_GROW_FROM(first, a, items, n, cap)                                                      \
	tw_list_grow((a), (void **)&(items), (n), &(cap), sizeof *(items), (first))
#define TW_GROW(a, items, n, cap)  TW_GROW_FROM(TW_LIST_FIRST, a, items, n, cap)
#define TW_GROW_MEM(items, n, cap) TW_GROW_FROM(16, NULL, items, n, cap)

/* A new last item, uninitialised; NULL: out of memory.  Items have one size per list. */
static inline void *tw_list_add(struct tw_list *l, struct tw_arena *a, size_t size)
{
	if (!tw_list_grow(a, &l->items, l->n, &l->cap, size, TW_LIST_FIRST))
		return NULL;
	return (char *)l->items + (size_t)l->n++ * size;
}

#endif
