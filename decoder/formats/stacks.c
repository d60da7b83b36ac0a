#include "decoder/formats/stacks.h"

#include "decoder/base/list.h"

enum { BATCH = 256, GAP_INTERVALS = 4 };

#define MAX_TIME_NS ((int64_t)1 << 61)

struct stack { /* of a track, as of its last sample */
	uint32_t track;
	uint32_t *syms;
	uint32_t n, cap;
	int64_t last_ns;
	int64_t cpu_ns; /* of the last sample, -1 unknown */
};

struct tw_stacks {
	struct tw_arena *arena;
	struct tw_sink *sink;
	int64_t interval_ns;
	uint32_t max_depth;
	uint64_t frames_left; /* limit of frames that may still be entered */
	struct stack *stacks;
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 by hash of the track; 0 free */
	bool followed;   /* some sample followed its predecessor without a gap */
	struct tw_event batch[BATCH];
	unsigned n_batch;
};

struct tw_stacks *tw_stacks_new(struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, int64_t interval_ns)
{
	struct tw_stacks *s = tw_arena_zalloc(a, 1, sizeof *s);

	if (!s)
		return NULL;
	s->arena = a;
	s->sink = sink;
	s->interval_ns = interval_ns > 0 && interval_ns < MAX_TIME_NS ? interval_ns : 0;
	s->max_depth = limits->max_depth;
	s->frames_left = limits->max_slices;
	return s;
}

static enum tw_status flush(struct tw_stacks *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (s->n_batch)
		st = s->sink->ops->events(s->sink, s->batch, s->n_batch, err);
	s->n_batch = 0;
	return st;
}

static enum tw_status emit(struct tw_stacks *s, const struct tw_event *ev, struct tw_err *err)
{
	if (ev->sym == 0) /* a frame that the sink refused keeps its place but is not emitted */
		return TW_OK;
	s->batch[s->n_batch++] = *ev;
	return s->n_batch == BATCH ? flush(s, err) : TW_OK;
}

static uint32_t *slot_of(const struct tw_stacks *s, uint32_t track)
{
	uint32_t mask = s->cap * 2 - 1;
	uint32_t at = (track * 0x9E3779B1u) & mask;

	while (s->slots[at] && s->stacks[s->slots[at] - 1].track != track)
		at = (at + 1) & mask;
	return &s->slots[at];
}

static bool widen(struct tw_stacks *s)
{
	if (!TW_WIDEN(s->arena, s->stacks, s->n, s->cap, s->slots))
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		*slot_of(s, s->stacks[i].track) = i + 1;
	return true;
}

/* Valid until the next call; NULL: out of memory.  A new one is described to the sink. */
static struct stack *stack_of(struct tw_stacks *s, uint32_t track)
{
	uint32_t *slot;

	if (s->n == s->cap && !widen(s))
		return NULL;
	slot = slot_of(s, track);
	if (!*slot) {
		s->stacks[s->n++] =
		        (struct stack){.track = track, .last_ns = INT64_MIN, .cpu_ns = -1};
		*slot = s->n;
		s->sink->ops->source(s->sink, track, TW_SOURCE_SAMPLES, s->interval_ns);
	}
	return &s->stacks[*slot - 1];
}

/* Ends the calls above the first `keep` frames. */
static enum tw_status leave(struct tw_stacks *s, struct stack *k, uint32_t keep, int64_t at_ns,
        uint64_t offset, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && k->n > keep) {
		const struct tw_event ev = {.kind = TW_EV_END,
		        .ts_ns = at_ns,
		        .cpu_ns = k->cpu_ns,
		        .offset = offset,
		        .track = k->track,
		        .sym = k->syms[--k->n]};

		st = emit(s, &ev, err);
	}
	return st;
}

static enum tw_status enter(struct tw_stacks *s, struct stack *k, const struct tw_sample *sample,
        uint32_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	uint32_t from = k->n;

	/* a few bytes may refer to a deep stack, so frames that a trace cannot hold are not
	 * emitted */
	if (n - from > s->frames_left) {
		s->sink->ops->repair(
		        s->sink, TW_REPAIR_slice_limit, sample->offset, n - from - s->frames_left);
		n = from + (uint32_t)s->frames_left;
	}
	s->frames_left -= n - from;
	for (uint32_t i = from; st == TW_OK && i < n; i++) {
		const struct tw_event ev = {.kind = TW_EV_BEGIN,
		        .ts_ns = sample->ts_ns,
		        .cpu_ns = k->cpu_ns,
		        .offset = sample->offset,
		        .track = k->track,
		        .sym = sample->syms[i]};

		k->syms[k->n++] = sample->syms[i];
		st = emit(s, &ev, err);
	}
	return st;
}

/* Whether the sample comes too late to continue the open calls. */
static bool after_gap(const struct tw_stacks *s, const struct stack *k, int64_t ts_ns)
{
	return s->interval_ns > 0 && k->n && (ts_ns - k->last_ns) / GAP_INTERVALS > s->interval_ns;
}

static uint32_t common(const struct stack *k, const uint32_t *syms, uint32_t n)
{
	uint32_t same = 0;

	while (same < k->n && same < n && k->syms[same] == syms[same])
		same++;
	return same;
}

static uint32_t within_depth(struct tw_stacks *s, const struct tw_sample *sample)
{
	if (sample->n <= s->max_depth)
		return (uint32_t)sample->n;
	s->sink->ops->repair(
	        s->sink, TW_REPAIR_depth_clipped, sample->offset, sample->n - s->max_depth);
	return s->max_depth;
}

enum tw_status tw_stacks_add(
        struct tw_stacks *s, const struct tw_sample *sample, struct tw_err *err)
{
	struct stack *k = stack_of(s, sample->track);
	enum tw_status st = TW_OK;
	uint32_t n;

	if (!k)
		return tw_oom(err);
	if (sample->ts_ns < k->last_ns || sample->ts_ns < 0 || sample->ts_ns > MAX_TIME_NS) {
		s->sink->ops->repair(s->sink, TW_REPAIR_impossible_time, sample->offset, 1);
		return TW_OK;
	}
	n = within_depth(s, sample);
	if (!TW_RESERVE(s->arena, k->syms, k->n, n, k->cap))
		return tw_oom(err);
	if (sample->continued || !after_gap(s, k, sample->ts_ns)) {
		s->followed |= sample->ts_ns > k->last_ns && k->last_ns != INT64_MIN;
	} else {
		s->sink->ops->repair(s->sink, TW_REPAIR_sample_gap, sample->offset, 1);
		st = leave(s, k, 0, k->last_ns + s->interval_ns, sample->offset, err);
	}
	k->cpu_ns = sample->has_cpu && sample->cpu_ns >= 0 ? sample->cpu_ns : -1;
	if (st == TW_OK)
		st = leave(s, k, common(k, sample->syms, n), sample->ts_ns, sample->offset, err);
	k->last_ns = sample->ts_ns;
	return st == TW_OK ? enter(s, k, sample, n, err) : st;
}

enum tw_status tw_stacks_finish(struct tw_stacks *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < s->n; i++) {
		struct stack *k = &s->stacks[i];

		if (!s->followed)
			s->sink->ops->source(
			        s->sink, k->track, TW_SOURCE_SAMPLES, TW_INTERVAL_NONE);
		st = leave(s, k, 0, k->last_ns + s->interval_ns, TW_NO_OFFSET, err);
	}
	return st == TW_OK ? flush(s, err) : st;
}
