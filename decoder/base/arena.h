/*
 * arena.h - memory of one request or one decode job.
 *
 * Pieces are handed out and never freed singly; the whole arena goes at once.
 * An arena cannot be made without a limit on what it may take from the system,
 * and asking for more than that gives NULL like any failed malloc.
 * tw_mem_fail_at is the hook by which tests fail the n-th allocation.
 * Thread: one at a time.
 */
#ifndef TW_ARENA_H
#define TW_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/str.h"

struct tw_arena;

/* NULL when memory is short.  max_bytes bounds all that the arena takes. */
struct tw_arena *tw_arena_new(size_t max_bytes);

/* Frees everything.  NULL is fine; returns NULL. */
struct tw_arena *tw_arena_free(struct tw_arena *a);

/* n objects of size bytes, aligned to 16, not zeroed / zeroed; NULL at the limit or when
 * n * size overflows. */
void *tw_arena_alloc(struct tw_arena *a, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
void *tw_arena_zalloc(struct tw_arena *a, size_t n, size_t size) __attribute__((alloc_size(2, 3)));

/* A NUL-terminated copy of s that lives as long as the arena. */
char *tw_arena_str(struct tw_arena *a, struct tw_str s);

/* printf into the arena; NULL at the limit. */
char *tw_arena_printf(struct tw_arena *a, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/* Is a piece of so many bytes within the limit?  Memory may be short all the same. */
bool tw_arena_fits(const struct tw_arena *a, size_t bytes);

/* Bytes taken from the system so far. */
size_t tw_arena_bytes(const struct tw_arena *a);

/* Makes all pieces invalid and keeps one block for what comes next. */
void tw_arena_reset(struct tw_arena *a);

/* malloc, calloc, realloc with an overflow check and the test hook; all other code in the
 * project allocates through these or an arena. */
void *tw_mem_alloc(size_t n, size_t size) __attribute__((alloc_size(1, 2)));
void *tw_mem_zalloc(size_t n, size_t size) __attribute__((alloc_size(1, 2)));
void *tw_mem_resize(void *p, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
void tw_mem_free(void *p);

/*
 * Memory of one piece of work, counted against a limit of its owner.
 *
 * While a thread has an account, all that it allocates and frees through the functions above is
 * counted there.  When more is used than was granted, `more` is called: it grants more and
 * returns true, or returns false, and the allocation fails like any other.
 */
struct tw_mem_account {
	_Atomic int64_t used; /* bytes, as malloc rounds them */
	_Atomic int64_t granted;
	_Atomic bool refused; /* an allocation failed because of the account */
	bool (*more)(struct tw_mem_account *a, int64_t used);
};

/* Sets this thread's account, NULL for none, and returns the one before. */
struct tw_mem_account *tw_mem_count_for(struct tw_mem_account *a);
struct tw_mem_account *tw_mem_counted_for(void);
/* Counts memory that a library allocates by other means.  False: refused. */
bool tw_mem_charge(size_t bytes);

/* Tests: the n-th allocation from now on (1 is the next) and all later ones fail; 0 ends it.
 * tw_mem_count tells how many were asked for since. */
void tw_mem_fail_at(uint64_t n);
uint64_t tw_mem_count(void);

#endif
