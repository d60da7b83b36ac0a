#include "decoder/base/arena.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Block sizes double from 4 KiB to 1 MiB; a larger allocation gets its own block.
 *
 * Under the address sanitizer all bytes outside allocations are poisoned, including the gaps
 * between them, and new allocations are filled with bytes that differ between arenas, so that reads
 * of uninitialised memory give visibly different results.
 */
enum { FIRST_BLOCK = 4096, LAST_BLOCK = 1 << 20, ALIGN = 16 };
/* HEADER: of malloc, at most. */
enum { PAGE = 4096, LARGE_PAGE = 2 << 20, HEADER = 32 };

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARDED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GUARDED 1
#endif

#ifdef GUARDED
#include <sanitizer/asan_interface.h>
enum { BORDER = ALIGN, DIRTY = 4096 };

static void hide(void *p, size_t n)
{
	ASAN_POISON_MEMORY_REGION(p, n);
}

static void show(void *p, size_t n, unsigned char dirt)
{
	ASAN_UNPOISON_MEMORY_REGION(p, n);
	memset(p, dirt, n < DIRTY ? n : DIRTY);
}

static unsigned char next_dirt(void)
{
	static _Atomic unsigned char last;

	return (unsigned char)(atomic_fetch_add(&last, 1) | 0x80);
}
#else
enum { BORDER = 0 };
static void hide(void *p, size_t n)
{
	(void)p, (void)n;
}

static void show(void *p, size_t n, unsigned char dirt)
{
	(void)p, (void)n, (void)dirt;
}

static unsigned char next_dirt(void)
{
	return 0;
}
#endif

struct block {
	struct block *next;
	size_t size; /* of data */
	size_t used;
	_Alignas(ALIGN) unsigned char data[];
};

struct tw_arena {
	struct block *head;
	size_t taken;
	size_t max;
	size_t next_size;
	unsigned char dirt;
};

static _Atomic uint64_t mem_count;
static _Atomic uint64_t mem_fail_at;

void tw_mem_fail_at(uint64_t n)
{
	atomic_store(&mem_count, 0);
	atomic_store(&mem_fail_at, n);
}

uint64_t tw_mem_count(void)
{
	return atomic_load(&mem_count);
}

static bool refused(void)
{
	uint64_t at = atomic_load_explicit(&mem_fail_at, memory_order_relaxed);

	if (at == 0)
		return false;
	return atomic_fetch_add(&mem_count, 1) + 1 >= at;
}

static _Thread_local struct tw_mem_account *account;

struct tw_mem_account *tw_mem_count_for(struct tw_mem_account *a)
{
	struct tw_mem_account *before = account;

	account = a;
	return before;
}

struct tw_mem_account *tw_mem_counted_for(void)
{
	return account;
}

static void uncount(size_t bytes)
{
	if (account)
		(void)atomic_fetch_sub_explicit(
		        &account->used, (int64_t)bytes, memory_order_relaxed);
}

bool tw_mem_charge(size_t bytes)
{
	struct tw_mem_account *a = account;
	int64_t used;

	if (!a)
		return true;
	used = atomic_fetch_add_explicit(&a->used, (int64_t)bytes, memory_order_relaxed) +
	       (int64_t)bytes;
	if (used <= atomic_load_explicit(&a->granted, memory_order_relaxed) || a->more(a, used))
		return true;
	uncount(bytes);
	atomic_store(&a->refused, true);
	return false;
}

/* Counts before the allocation, as a large one may not fit into memory at all. */
static void *counted(void *p, size_t total)
{
	size_t real;

	if (!account)
		return p;
	if (!p) {
		uncount(total);
		return NULL;
	}
	real = malloc_usable_size(p);
	(void)atomic_fetch_add_explicit(
	        &account->used, (int64_t)real - (int64_t)total, memory_order_relaxed);
	return p;
}

void *tw_mem_alloc(size_t n, size_t size)
{
	size_t total;

	if (refused() || __builtin_mul_overflow(n, size, &total) || !tw_mem_charge(total))
		return NULL;
	return counted(malloc(total ? total : 1), total);
}

/* Starts at a large page.  All but its end can be in large pages; before large_from it is not. */
static void *alloc_large(size_t bytes, size_t large_from)
{
	char *p;

	if (bytes < LARGE_PAGE)
		return tw_mem_alloc(1, bytes);
	if (refused() || !tw_mem_charge(bytes))
		return NULL;
	p = memalign(LARGE_PAGE, bytes);
	if (p)
		tw_mem_will_fill(p + large_from, bytes - large_from);
	return counted(p, bytes);
}

void *tw_mem_alloc_to_fill(size_t bytes)
{
	return alloc_large(bytes, 0);
}

void *tw_mem_alloc_to_grow(size_t bytes)
{
	return alloc_large(bytes, LARGE_PAGE);
}

void *tw_mem_zalloc(size_t n, size_t size)
{
	size_t total;

	if (refused() || __builtin_mul_overflow(n, size, &total) || !tw_mem_charge(total))
		return NULL;
	return counted(calloc(n ? n : 1, size ? size : 1), total);
}

void *tw_mem_resize(void *p, size_t n, size_t size)
{
	size_t before = account && p ? malloc_usable_size(p) : 0;
	size_t total;
	void *q;

	if (refused() || __builtin_mul_overflow(n, size, &total) ||
	        (total > before && !tw_mem_charge(total - before)))
		return NULL;
	q = realloc(p, total ? total : 1);
	if (!account)
		return q;
	if (!q) {
		uncount(total > before ? total - before : 0);
		return NULL;
	}
	(void)counted(q, total > before ? total : before);
	return q;
}

/* The hint is for each page that has a part of the block: malloc maps a large block separately, and
 * the kernel moves a mapping only as a whole, with the same hints. */
void tw_mem_will_fill(void *p, size_t bytes)
{
	const uintptr_t mask = PAGE - 1;
	uintptr_t from = (uintptr_t)p & ~mask;
	uintptr_t end = ((uintptr_t)p + bytes + mask) & ~mask;

	if (p && bytes >= LARGE_PAGE - HEADER)
		(void)madvise((char *)p - ((uintptr_t)p - from), end - from, MADV_HUGEPAGE);
}

/* The kernel starts a mapping at a large page if its size is a multiple of one. */
size_t tw_mem_fill_pages(size_t bytes)
{
	if (bytes < LARGE_PAGE - 2 * HEADER || bytes > SIZE_MAX - LARGE_PAGE)
		return bytes;
	return (bytes + LARGE_PAGE / 2) / LARGE_PAGE * LARGE_PAGE - HEADER;
}

void tw_mem_drop(void *p, size_t bytes)
{
	const uintptr_t at = (uintptr_t)p;
	const uintptr_t from = (at + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	const uintptr_t end = (at + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);

	if (p && end > from)
		(void)madvise((char *)p + (from - at), end - from, MADV_DONTNEED);
}

void tw_mem_free(void *p)
{
	if (account && p)
		uncount(malloc_usable_size(p));
	free(p);
}

struct tw_arena *tw_arena_new(size_t max_bytes)
{
	struct tw_arena *a = tw_mem_zalloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->max = max_bytes;
	a->next_size = FIRST_BLOCK;
	a->dirt = next_dirt();
	return a;
}

struct tw_arena *tw_arena_free(struct tw_arena *a)
{
	if (!a)
		return NULL;
	while (a->head) {
		struct block *b = a->head;

		a->head = b->next;
		tw_mem_free(b);
	}
	tw_mem_free(a);
	return NULL;
}

/* Of an allocation that does not overflow. */
static size_t padded(size_t bytes)
{
	return ((bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1)) + BORDER;
}

static struct block *add_block(struct tw_arena *a, size_t need)
{
	size_t size = need > a->next_size ? need : a->next_size;
	struct block *b;

	if (size > a->max - a->taken)
		size = need; /* near the limit: only what is needed */
	if (size > SIZE_MAX - sizeof *b || size > a->max - a->taken)
		return NULL;
	b = tw_mem_alloc_to_fill(sizeof *b + size);
	if (!b)
		return NULL;
	*b = (struct block){.size = size, .next = a->head};
	hide(b->data, size);
	a->head = b;
	a->taken += size;
	if (a->next_size < LAST_BLOCK)
		a->next_size *= 2;
	return b;
}

void *tw_arena_alloc(struct tw_arena *a, size_t n, size_t size)
{
	struct block *b = a->head;
	size_t total;
	void *p;

	if (__builtin_mul_overflow(n, size, &total) || total > SIZE_MAX - ALIGN - BORDER)
		return NULL;
	total = padded(total);
	if (!b || b->size - b->used < total) {
		b = add_block(a, total);
		if (!b)
			return NULL;
	}
	p = b->data + b->used;
	b->used += total;
	show(p, n * size, a->dirt);
	return p;
}

bool tw_arena_fits(const struct tw_arena *a, size_t bytes)
{
	size_t total;

	if (__builtin_add_overflow(bytes, ALIGN - 1, &total))
		return false;
	total &= ~(size_t)(ALIGN - 1);
	return (a->head && a->head->size - a->head->used >= total) || total <= a->max - a->taken;
}

void *tw_arena_zalloc(struct tw_arena *a, size_t n, size_t size)
{
	void *p = tw_arena_alloc(a, n, size);

	if (p)
		memset(p, 0, n * size);
	return p;
}

char *tw_arena_str(struct tw_arena *a, struct tw_str s)
{
	char *p = s.len < SIZE_MAX ? tw_arena_alloc(a, s.len + 1, 1) : NULL;

	if (!p)
		return NULL;
	if (s.len)
		memcpy(p, s.ptr, s.len);
	p[s.len] = '\0';
	return p;
}

char *tw_arena_printf(struct tw_arena *a, const char *fmt, ...)
{
	va_list ap;
	va_list again;
	char *p = NULL;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len >= 0)
		p = tw_arena_alloc(a, (size_t)len + 1, 1);
	if (p)
		(void)vsnprintf(p, (size_t)len + 1, fmt, again);
	va_end(again);
	return p;
}

size_t tw_arena_bytes(const struct tw_arena *a)
{
	return a->taken;
}

void tw_arena_reset(struct tw_arena *a)
{
	struct block *keep = a->head;

	if (!keep)
		return;
	while (keep->next) {
		struct block *b = keep->next;

		keep->next = b->next;
		a->taken -= b->size;
		tw_mem_free(b);
	}
	hide(keep->data, keep->used);
	keep->used = 0;
	a->dirt = next_dirt();
}
