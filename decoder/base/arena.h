/*
 * arena.h - memory of one request or one decode job.
 *
 * Allocations are not freed one by one; the arena is freed as a whole.  Each arena has a limit on
 * the memory it takes from the system; an allocation past it returns NULL like a failed malloc.
 * tw_mem_fail_at lets tests fail the n-th allocation.
 * Thread: one at a time.
 */
#ifndef TW_ARENA_H
#define TW_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/str.h"

struct tw_arena;

/* NULL if memory is short.  max_bytes limits the arena's total. */
struct tw_arena *tw_arena_new(size_t max_bytes);

/* Frees the arena and all its allocations.  Accepts NULL; returns NULL. */
struct tw_arena *tw_arena_free(struct tw_arena *a);

/* n objects of `size` bytes, aligned to 16; tw_arena_zalloc zeroes them.  NULL at the limit or if n
 * × size overflows. */
void *tw_arena_alloc(struct tw_arena *a, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
void *tw_arena_zalloc(struct tw_arena *a, size_t n, size_t size) __attribute__((alloc_size(2, 3)));

/* A NUL-terminated copy of s, valid until the arena is freed. */
char *tw_arena_str(struct tw_arena *a, struct tw_str s);

/* printf into the arena; NULL at the limit. */
char *tw_arena_printf(struct tw_arena *a, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/* Whether an allocation of `bytes` stays within the limit.  The allocation itself can still
 * fail. */
bool tw_arena_fits(const struct tw_arena *a, size_t bytes);

/* Bytes taken from the system so far. */
size_t tw_arena_bytes(const struct tw_arena *a);

/* Invalidates all allocations; keeps one block for reuse. */
void tw_arena_reset(struct tw_arena *a);

/* malloc, calloc and realloc with an overflow check and the test hook.  All code of the project
 * allocates through these or through an arena. */
void *tw_mem_alloc(size_t n, size_t size) __attribute__((alloc_size(1, 2)));
void *tw_mem_zalloc(size_t n, size_t size) __attribute__((alloc_size(1, 2)));
void *tw_mem_resize(void *p, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
void tw_mem_free(void *p);
/* The first `bytes` of the block will all be written: the system may use large pages, which cost
 * fewer faults. */
void tw_mem_will_fill(void *p, size_t bytes);
/* A block that will be filled from its start, in large pages. */
void *tw_mem_alloc_to_fill(size_t bytes) __attribute__((alloc_size(1)));
/* A block that is filled from its start, perhaps only a small part of it: in large pages after the
 * first 2 MiB. */
void *tw_mem_alloc_to_grow(size_t bytes) __attribute__((alloc_size(1)));
/* The size nearest to `bytes` at which all of a block can be in large pages; `bytes` if that is
 * less than one. */
size_t tw_mem_fill_pages(size_t bytes);
/* Returns the pages of the first `bytes` of a block to the kernel, large pages as a whole.  Their
 * contents are lost. */
void tw_mem_drop(void *p, size_t bytes);

/*
 * A memory account with a limit, for one task.
 *
 * While a thread has an account, its allocations and frees through the functions above are counted
 * there.  If use exceeds the grant, `more` is called: it either raises the grant and returns true,
 * or returns false, and the allocation fails.
 */
struct tw_mem_account {
	_Atomic int64_t used; /* bytes, as malloc rounds them */
	_Atomic int64_t granted;
	_Atomic bool refused; /* an allocation failed because of the account */
	bool (*more)(struct tw_mem_account *a, int64_t used);
};

/* Sets this thread's account (NULL for none) and returns the previous one. */
struct tw_mem_account *tw_mem_count_for(struct tw_mem_account *a);
struct tw_mem_account *tw_mem_counted_for(void);
/* Counts memory that a library allocates itself.  False: refused. */
bool tw_mem_charge(size_t bytes);

/* Tests: the n-th allocation from now (1 is the next) and all later ones fail; 0 disables this.
 * tw_mem_count returns the number of allocations requested since the last call of
 * tw_mem_fail_at. */
void tw_mem_fail_at(uint64_t n);
uint64_t tw_mem_count(void);

#endif
