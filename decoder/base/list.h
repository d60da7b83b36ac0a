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

/* Makes space for `want` items, the first n of which are in *items, the caller's array, whose
 * capacity begins at `first`.  a: NULL if the caller frees the array (tw_mem_free).  False: out of
 * memory; nothing changed. */
static inline bool tw_list_reserve(struct tw_arena *a, void **items, size_t n, size_t want,
        uint32_t *cap, size_t size, uint32_t first)
{
	uint64_t wider = *cap ? *cap : first;
	void *p;

	if (want <= *cap)
		return true;
	while (wider < want)
		wider *= 2;
	if (wider > UINT32_MAX)
		return false;
	p = a ? tw_arena_alloc(a, wider, size) : tw_mem_resize(*items, wider, size);
	if (!p)
		return false;
	if (a && n)
		memcpy(p, *items, n * size);
	*items = p;
	*cap = (uint32_t)wider;
	return true;
}
#define TW_RESERVE_FROM(first, a, items, n, want, cap)                                             \
	tw_list_reserve((a), (void **)&(items), (n), (want), &(cap), sizeof *(items), (first))
#define TW_GROW_FROM(first, a, items, n, cap)                                                      \
	TW_RESERVE_FROM(first, a, items, n, (size_t)(n) + 1, cap)
#define TW_RESERVE(a, items, n, want, cap) TW_RESERVE_FROM(TW_LIST_FIRST, a, items, n, want, cap)
#define TW_GROW(a, items, n, cap)          TW_GROW_FROM(TW_LIST_FIRST, a, items, n, cap)
#define TW_GROW_MEM(items, n, cap)         TW_GROW_FROM(16, NULL, items, n, cap)

/* A new last item, uninitialised; NULL: out of memory.  Items have one size per list. */
static inline void *tw_list_add(struct tw_list *l, struct tw_arena *a, size_t size)
{
	if (!tw_list_reserve(a, &l->items, l->n, l->n + (size_t)1, &l->cap, size, TW_LIST_FIRST))
		return NULL;
	return (char *)l->items + (size_t)l->n++ * size;
}

/* Doubles a hash table: *rows, and *slots, of which there are twice as many as rows fit: number + 1
 * of a row, by its hash; 0: free.  The caller enters its n rows in the slots, which are all free.
 * False: out of memory; nothing changed. */
static inline bool tw_table_widen(struct tw_arena *a, void **rows, uint32_t n, uint32_t *cap,
        size_t size, uint32_t **slots, uint32_t first)
{
	uint32_t *wider = tw_arena_zalloc(a, *cap ? *cap * 2 : first, 2 * sizeof *wider);

	if (!wider || !tw_list_reserve(a, rows, n, *cap + (size_t)1, cap, size, first))
		return false;
	*slots = wider;
	return true;
}
#define TW_WIDEN_FROM(first, a, rows, n, cap, slots)                                               \
	tw_table_widen((a), (void **)&(rows), (n), &(cap), sizeof *(rows), &(slots), (first))
#define TW_WIDEN(a, rows, n, cap, slots) TW_WIDEN_FROM(TW_LIST_FIRST, a, rows, n, cap, slots)

struct tw_bytes {
	uint8_t *data;
	uint32_t n, cap;
};

/* Appends n bytes.  False: out of memory. */
static inline bool tw_bytes_add(struct tw_bytes *b, struct tw_arena *a, const uint8_t *p, size_t n)
{
	if (!TW_RESERVE_FROM(4096, a, b->data, b->n, b->n + n, b->cap))
		return false;
	if (n)
		memcpy(b->data + b->n, p, n);
	b->n += (uint32_t)n;
	return true;
}

#endif
