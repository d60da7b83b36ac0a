/*
 * digest_run.c - one format's run, and the oracle of cuts; see digest.h.
 *
 * The last byte of an input selects its pieces.  In the byte before, bit 0: its
 * compression ended early; bit 1: limits are small; all other bits: the input is
 * repeated sixteen times, which reveals work that grows faster than the input.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/oracle/digest.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum {
	CUT = 1,
	SMALL = 2,
	AGAIN = 0xFC,
	TIMES = 16,
	MOST_MEMORY = 512 << 20,
	USUAL_MEMORY = 16 << 20
};
enum { JUDGED_BYTES = 64 << 10, MOST_SECONDS = 1 };

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545F4914F6CDD1Du;
}

static size_t piece(uint64_t seed, uint64_t *state, size_t left)
{
	static const uint64_t most[] = {7, 40, 600, 5000};
	uint64_t r;
	size_t n;

	if (seed < 2)
		return seed == 0 ? left : 1;
	r = next_random(state);
	n = (r >> 8) % most[r & 3] + 1;
	return n < left ? n : left;
}

enum tw_status digest_feed(
        const struct digest_task *t, tw_bytes_fn push, void *to, struct tw_err *err)
{
	uint64_t state = t->seed * 0x9E3779B97F4A7C15u + 1;
	enum tw_status st = TW_OK;

	ASAN_POISON_MEMORY_REGION(t->p, t->n);
	for (size_t at = 0; st == TW_OK && at < t->n;) {
		size_t n = piece(t->seed, &state, t->n - at);

		ASAN_UNPOISON_MEMORY_REGION(t->p + at, n);
		st = push(to, t->p + at, n, err);
		ASAN_POISON_MEMORY_REGION(t->p + at, n);
		at += n;
	}
	ASAN_UNPOISON_MEMORY_REGION(t->p, t->n);
	return st;
}

struct alone {
	const struct tw_format *format;
	void *state;
};

static enum tw_status push_only(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	const struct alone *a = arg;

	return a->format->push(a->state, p, n, err);
}

void digest_format(struct digest *d, const struct digest_task *t)
{
	const struct tw_format *f = t->format;
	struct alone alone = {f, tw_arena_zalloc(t->a, 1, f->state_size)};
	int sure = f->probe(t->p, t->n < TW_PROBE_BYTES ? t->n : TW_PROBE_BYTES);

	FUZZ_CHECK(alone.state && sure >= 0 && sure <= 100);
	d->bytes = (uint64_t)sure;
	d->format = f;
	d->status = f->start(alone.state, t->a, &t->limits, &d->sink, &d->err);
	if (d->status == TW_OK)
		d->status = digest_feed(t, push_only, &alone, &d->err);
	if (d->status == TW_OK)
		d->status = f->finish(alone.state, t->cut, &d->err);
	if (d->status == TW_OK && f->inner) {
		struct tw_str inner = f->inner(alone.state);

		(void)d->sink.ops->name(&d->sink, inner);
	}
}

/* --- the oracle --- */

static double cpu_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Refusals are the sender's fault and have words. */
static void check_end(const struct digest *d)
{
	if (d->status == TW_OK)
		return;
	FUZZ_CHECK(d->status == TW_BAD_REQUEST || d->status == TW_TOO_LARGE ||
	           d->status == TW_UNSUPPORTED || d->status == TW_CORRUPT);
	FUZZ_CHECK(d->err.code == d->status && d->err.msg[0]);
}

/* One block that is enough for nearly all runs, so that they cost no calls of the system. */
static struct tw_arena *lend_arena(unsigned which)
{
	static struct tw_arena *arenas[2];

	if (arenas[which] && tw_arena_bytes(arenas[which]) > USUAL_MEMORY)
		arenas[which] = tw_arena_free(arenas[which]);
	if (!arenas[which]) {
		arenas[which] = tw_arena_new(MOST_MEMORY);
		FUZZ_CHECK(arenas[which] && tw_arena_alloc(arenas[which], 1, USUAL_MEMORY - 64));
	}
	tw_arena_reset(arenas[which]);
	return arenas[which];
}

static void run_once(struct digest *d, struct digest_task *t, digest_fn run, unsigned which)
{
	double began = cpu_seconds();

	t->a = lend_arena(which);
	digest_begin(d, which == 0);
	run(d, t);
	check_end(d);
	FUZZ_CHECK(t->n > JUDGED_BYTES || cpu_seconds() - began < MOST_SECONDS);
}

static void compare(struct digest_task *t, digest_fn run, uint64_t seed)
{
	static struct digest whole, pieces;
	const char *differs;

	t->seed = 0;
	run_once(&whole, t, run, 0);
	t->seed = seed;
	run_once(&pieces, t, run, 1);
	differs = digest_differs(&whole, &pieces);
	if (differs) {
		(void)fprintf(stderr, "in pieces, differs: %s\n", differs);
		abort();
	}
}

struct tw_limits digest_limits(uint8_t how)
{
	bool small = how & SMALL;
	struct tw_limits l = tw_limits_default();

	l.max_window_log = 23;
	l.max_decoded_bytes = small ? 64 << 10 : 4 << 20;
	if (small) {
		l.max_depth = 4;
		l.max_threads = 3;
		l.max_methods = 5;
		l.max_name_bytes = 16;
		l.max_notes = 9;
	}
	return l;
}

void digest_cuts(const uint8_t *p, size_t n, const struct tw_format *format, digest_fn run)
{
	struct digest_task t = {.p = p, .format = format};
	uint8_t how;

	if (n < 2)
		return;
	how = p[n - 2];
	t.n = n - 2;
	t.cut = how & CUT;
	t.limits = digest_limits(how);
	compare(&t, run, (uint64_t)p[n - 1] + 1);
	if ((how & AGAIN) == AGAIN && t.n && t.n * TIMES <= JUDGED_BYTES) {
		uint8_t *long_one = tw_mem_alloc(t.n, TIMES);

		FUZZ_CHECK(long_one);
		for (size_t i = 0; i < TIMES; i++)
			memcpy(long_one + i * t.n, p, t.n);
		t.p = long_one;
		t.n *= TIMES;
		compare(&t, run, (uint64_t)p[n - 1] + 2);
		tw_mem_free(long_one);
	}
}
