#include "decoder/formats/sampled/samples.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/formats/stacks.h"

enum {
	MAX_SAMPLES = 8 << 20,
	MAX_FRAMES = 32 << 20,
	JOINED_FRAMES = 4096, /* further frames of a sample are dropped */
	MEDIAN_OF = 4096,     /* number of gaps used for the interval */
	SHARED = 16 << 10     /* stacks remembered for sharing; power of two */
};

struct kept {
	struct tw_sample_piece p;
	uint32_t seq;
};

struct stack { /* n 0: none */
	uint32_t first, n;
};

struct tw_samples {
	struct tw_arena *arena;
	struct tw_limits limits;
	struct tw_sink *sink;
	struct kept *list;
	uint32_t n, cap;
	uint32_t *frames;
	uint32_t n_frames, cap_frames;
	struct stack *shared; /* by hash */
	uint32_t joined[JOINED_FRAMES];
};

struct tw_samples *tw_samples_new(
        struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink)
{
	struct tw_samples *s = tw_arena_zalloc(a, 1, sizeof *s);

	if (!s)
		return NULL;
	s->arena = a;
	s->limits = *limits;
	s->sink = sink;
	s->shared = tw_arena_zalloc(a, SHARED, sizeof *s->shared);
	return s->shared ? s : NULL;
}

static bool at_limit(struct tw_samples *s, uint32_t n, uint32_t most, uint64_t offset)
{
	if (n < most && n < s->limits.max_slices)
		return false;
	s->sink->ops->repair(s->sink, TW_REPAIR_slice_limit, offset, 1);
	return true;
}

enum tw_status tw_samples_frame(
        struct tw_samples *s, uint32_t sym, uint64_t offset, struct tw_err *err)
{
	if (at_limit(s, s->n_frames, MAX_FRAMES, offset))
		return TW_OK;
	if (!TW_GROW(s->arena, s->frames, s->n_frames, s->cap_frames))
		return tw_oom(err);
	s->frames[s->n_frames++] = sym;
	return TW_OK;
}

uint32_t tw_samples_frames(const struct tw_samples *s)
{
	return s->n_frames;
}

uint32_t tw_samples_share(struct tw_samples *s, uint32_t first)
{
	uint32_t n = s->n_frames - first;
	const uint32_t *frames;
	struct stack *known;
	size_t bytes;

	if (n == 0)
		return first;
	frames = s->frames + first;
	bytes = n * sizeof *frames;
	/* No salt: sharing affects when the limit is reached, and provoked collisions only cost
	 * more frames. */
	known = &s->shared[tw_hash_str((struct tw_str){(const char *)frames, bytes}, 0) &
	                   (SHARED - 1)];
	if (known->n == n && memcmp(s->frames + known->first, frames, bytes) == 0)
		s->n_frames = first;
	else
		*known = (struct stack){first, n};
	return known->first;
}

uint32_t tw_samples_count(const struct tw_samples *s)
{
	return s->n;
}

static bool one_sample(const struct tw_sample_piece *a, const struct tw_sample_piece *b)
{
	return a->joins && b->joins && a->track == b->track && a->ts_ns == b->ts_ns;
}

enum tw_status tw_samples_add(
        struct tw_samples *s, const struct tw_sample_piece *piece, struct tw_err *err)
{
	struct tw_sample_piece *last = s->n ? &s->list[s->n - 1].p : NULL;
	struct tw_sample_piece p = *piece;

	if (p.first > s->n_frames)
		p.first = s->n_frames;
	if (p.n > s->n_frames - p.first)
		p.n = s->n_frames - p.first;
	if (last && one_sample(last, &p) && last->first + last->n == p.first) {
		last->n += p.n;
		return TW_OK;
	}
	if (at_limit(s, s->n, MAX_SAMPLES, p.offset))
		return TW_OK;
	if (!TW_GROW(s->arena, s->list, s->n, s->cap) || !s->list)
		return tw_oom(err);
	s->list[s->n] = (struct kept){p, s->n};
	s->n++;
	return TW_OK;
}

enum tw_status tw_samples_add_stack(
        struct tw_samples *s, struct tw_sample_piece *io, size_t want, struct tw_err *err)
{
	io->n = s->n_frames - io->first;
	if (io->n < want)
		return TW_OK; /* the limit was counted */
	io->first = tw_samples_share(s, io->first);
	return tw_samples_add(s, io, err);
}

void tw_samples_move_zero(struct tw_samples *s, int64_t by_ns)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (__builtin_sub_overflow(s->list[i].p.ts_ns, by_ns, &s->list[i].p.ts_ns))
			s->list[i].p.ts_ns = -1;
}

TW_ORDER_BY(by_track_and_time, struct kept, TW_RISING(p.track), TW_RISING(p.ts_ns), TW_RISING(seq))

/* The list must be sorted. */
static bool find_interval(const struct tw_samples *s, int64_t *ret)
{
	int64_t *gaps = tw_arena_alloc(s->arena, MEDIAN_OF, sizeof *gaps);
	uint32_t n = 0;

	if (!gaps)
		return false;
	for (uint32_t i = 1; i < s->n && n < MEDIAN_OF; i++) {
		const struct tw_sample_piece *a = &s->list[i - 1].p;
		const struct tw_sample_piece *b = &s->list[i].p;

		if (a->track == b->track && a->ts_ns >= 0 && b->ts_ns > a->ts_ns)
			gaps[n++] = b->ts_ns - a->ts_ns;
	}
	TW_SORT(gaps, n, tw_by_i64);
	*ret = n ? gaps[n / 2] : 0;
	return true;
}

/* The frames of the sample whose first piece is list[i]; advances *i to the next sample. */
static const uint32_t *gather(struct tw_samples *s, uint32_t *i, size_t *ret_n)
{
	const struct tw_sample_piece *first = &s->list[*i].p;
	size_t n = 0;

	if (*i + 1 == s->n || !one_sample(first, &s->list[*i + 1].p)) {
		*ret_n = first->n;
		(*i)++;
		return first->n ? s->frames + first->first : NULL;
	}
	do {
		const struct tw_sample_piece *p = &s->list[*i].p;
		size_t room = JOINED_FRAMES - n;
		size_t take = p->n < room ? p->n : room;

		if (take)
			memcpy(s->joined + n, s->frames + p->first, take * sizeof *s->joined);
		if (take < p->n)
			s->sink->ops->repair(
			        s->sink, TW_REPAIR_depth_clipped, p->offset, p->n - take);
		n += take;
	} while (++*i < s->n && one_sample(first, &s->list[*i].p));
	*ret_n = n;
	return s->joined;
}

enum tw_status tw_samples_emit(struct tw_samples *s, int64_t interval_ns, struct tw_err *err)
{
	struct tw_stacks *stacks;
	enum tw_status st = TW_OK;

	if (s->n == 0)
		return TW_OK;
	TW_SORT(s->list, s->n, by_track_and_time);
	if (interval_ns <= 0 && !find_interval(s, &interval_ns))
		return tw_oom(err);
	stacks = tw_stacks_new(s->arena, &s->limits, s->sink, interval_ns);
	if (!stacks)
		return tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && i < s->n;) {
		const struct tw_sample_piece *p = &s->list[i].p;
		struct tw_sample sample = {.track = p->track,
		        .ts_ns = p->ts_ns,
		        .offset = p->offset,
		        .continued = p->continued,
		        .has_cpu = p->has_cpu,
		        .cpu_ns = p->cpu_ns};

		sample.syms = gather(s, &i, &sample.n);
		st = tw_stacks_add(stacks, &sample, err);
	}
	return st == TW_OK ? tw_stacks_finish(stacks, err) : st;
}

/* --- sums --- */

/* By track, then by path: equal callers become neighbours. */
static int by_track_and_path(const void *pa, const void *pb, void *frames_of)
{
	const struct kept *a = pa;
	const struct kept *b = pb;
	const uint32_t *frames = frames_of;

	if (a->p.track != b->p.track)
		return a->p.track < b->p.track ? -1 : 1;
	for (uint32_t i = 0; i < a->p.n && i < b->p.n; i++) {
		uint32_t x = frames[a->p.first + i];
		uint32_t y = frames[b->p.first + i];

		if (x != y)
			return x < y ? -1 : 1;
	}
	if (a->p.n != b->p.n)
		return a->p.n < b->p.n ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* One track's stacks, from list[i] on; returns the index after them. */
static uint32_t emit_track_sums(struct tw_samples *s, uint32_t i, struct tw_stacks *stacks,
        enum tw_status *ret_st, struct tw_err *err)
{
	uint32_t track = s->list[i].p.track;
	int64_t at_ns = 0;

	for (; *ret_st == TW_OK && i < s->n && s->list[i].p.track == track; i++) {
		const struct tw_sample_piece *p = &s->list[i].p;
		const struct tw_sample sample = {.track = track,
		        .ts_ns = at_ns,
		        .offset = p->offset,
		        .syms = p->n ? s->frames + p->first : NULL,
		        .n = p->n,
		        .continued = true};

		if (p->ts_ns < 0 || __builtin_add_overflow(at_ns, p->ts_ns, &at_ns)) {
			s->sink->ops->repair(s->sink, TW_REPAIR_impossible_time, p->offset, 1);
			continue;
		}
		*ret_st = tw_stacks_add(stacks, &sample, err);
	}
	if (*ret_st == TW_OK)
		*ret_st = tw_stacks_add(stacks,
		        &(struct tw_sample){.track = track,
		                .ts_ns = at_ns,
		                .offset = TW_NO_OFFSET,
		                .continued = true},
		        err);
	return i;
}

enum tw_status tw_samples_emit_sums(struct tw_samples *s, enum tw_source source, struct tw_err *err)
{
	struct tw_stacks *stacks = tw_stacks_new(s->arena, &s->limits, s->sink, 0);
	enum tw_status st = TW_OK;

	if (!stacks)
		return tw_oom(err);
	if (s->n)
		qsort_r(s->list, s->n, sizeof *s->list, by_track_and_path, s->frames);
	for (uint32_t i = 0; st == TW_OK && i < s->n;)
		i = emit_track_sums(s, i, stacks, &st, err);
	if (st == TW_OK)
		st = tw_stacks_finish(stacks, err);
	for (uint32_t i = 0; st == TW_OK && i < s->n; i++)
		if (i == 0 || s->list[i].p.track != s->list[i - 1].p.track)
			s->sink->ops->source(s->sink, s->list[i].p.track, source, TW_INTERVAL_NONE);
	return st;
}
