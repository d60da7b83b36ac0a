/*
 * rhea1.c - RheaTrace 1.0's rhea-atrace.gz: methods and sections as text.
 *
 * Lines as in rhea.h, with six digits of CLOCK_BOOTTIME.  Every event of a method is a begin with a
 * prefix in its name: B:METHOD enter, E:METHOD return, T:METHOD an explicit throw; METHOD is
 * Class:method or an id of the build's mapping.  Sections without a prefix are begun and ended as
 * usual and paired separately. "monotonic_time: SECONDS" is CLOCK_MONOTONIC at its line.
 *
 * Methods left by an exception write nothing, so calls are paired forward, per thread, on a stack:
 *   E:m  ends the innermost open m.  Calls open inside it were left by an exception (call_unwound).
 *        They end at the previous event of their thread: m caught the exception, and the time after
 *        that is its own.
 *   T:m  calls open inside m end as at E:m.  m itself either catches its own throw or is left; the
 *        time is recorded and m stays open.  A later E:m shows that it continued; the end of an
 *        enclosing call shows that it ended at the throw.  If the directly enclosing call is one of
 *        m too, an E:m belongs to that one: throws that leave a method are more common than throws
 *        caught in it.  A new call of m ends it at the throw as well.
 * Calls still open at the end of the trace end with its last event.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/formats/btrace/rhea.h"
#include "decoder/formats/format.h"

enum { FIRST_CALLS = 16, MAX_CALLS = 1 << 16 };

struct call { /* open */
	int64_t start_ns;
	int64_t thrown_ns; /* time of its throw; -1 none */
	uint64_t offset;
	uint32_t sym;
};

struct stack {
	struct call *calls;
	uint32_t n, cap;
	uint32_t hidden; /* open calls past MAX_CALLS */
	int64_t last_ns; /* time of the thread's previous event */
};

struct rhea1 {
	struct tw_rhea rhea; /* first member */
	struct tw_arena *arena;
	struct stack *stacks; /* by index of the thread */
};

static void repair(struct rhea1 *s, enum tw_repair what, uint64_t offset)
{
	s->rhea.markers.sink->ops->repair(s->rhea.markers.sink, what, offset, 1);
}

static struct stack *stack_of(struct rhea1 *s, const struct tw_tid *by)
{
	return &s->stacks[by - s->rhea.markers.tids.list];
}

/* Ends the innermost call. */
static enum tw_status close_top(
        struct rhea1 *s, struct tw_tid *by, int64_t end_ns, struct tw_err *err)
{
	struct stack *k = stack_of(s, by);
	const struct call *c = &k->calls[--k->n];

	return tw_markers_event(&s->rhea.markers,
	        &(struct tw_event){.kind = TW_EV_SLICE,
	                .ts_ns = c->start_ns,
	                .dur_ns = end_ns > c->start_ns ? end_ns - c->start_ns : 0,
	                .cpu_ns = -1,
	                .any_order = c->thrown_ns >= 0, /* its end is known late */
	                .offset = c->offset,
	                .track = tw_tids_track(&s->rhea.markers.tids, by),
	                .sym = c->sym},
	        err);
}

/* Closes the calls from index `down_to` on: at their throw, otherwise at `end_ns`. */
static enum tw_status unwind(struct rhea1 *s, struct tw_tid *by, uint32_t down_to, int64_t end_ns,
        enum tw_repair why, struct tw_err *err)
{
	struct stack *k = stack_of(s, by);
	enum tw_status st = TW_OK;

	while (st == TW_OK && k->n > down_to) {
		const struct call *c = &k->calls[k->n - 1];

		if (c->thrown_ns < 0)
			repair(s, why, c->offset);
		st = close_top(s, by, c->thrown_ns < 0 ? end_ns : c->thrown_ns, err);
	}
	return st;
}

/* Index of the innermost open call of sym; k->n if there is none. */
static uint32_t find(const struct stack *k, uint32_t sym)
{
	for (uint32_t i = k->n; i-- > 0;)
		if (k->calls[i].sym == sym)
			return i;
	return k->n;
}

static enum tw_status enter(
        struct rhea1 *s, const struct tw_marker *marker, uint32_t sym, struct tw_err *err)
{
	struct stack *k = stack_of(s, marker->by);
	uint32_t again = k->n;
	enum tw_status st = TW_OK;

	for (uint32_t i = k->n; i-- > 0 && k->calls[i].thrown_ns >= 0;)
		if (k->calls[i].sym == sym)
			again = i;
	st = unwind(s, marker->by, again, k->last_ns, TW_REPAIR_call_unwound, err);
	if (st != TW_OK)
		return st;
	if (k->hidden || k->n >= MAX_CALLS) {
		k->hidden++;
		repair(s, TW_REPAIR_depth_clipped, marker->offset);
		return TW_OK;
	}
	if (!TW_GROW_FROM(FIRST_CALLS, s->arena, k->calls, k->n, k->cap))
		return tw_oom(err);
	k->calls[k->n++] = (struct call){marker->ts_ns, -1, marker->offset, sym};
	return TW_OK;
}

static enum tw_status leave(
        struct rhea1 *s, const struct tw_marker *marker, uint32_t sym, struct tw_err *err)
{
	struct stack *k = stack_of(s, marker->by);
	uint32_t at = find(k, sym);
	enum tw_status st;

	if (k->hidden) {
		k->hidden--;
		return TW_OK;
	}
	if (at == k->n) {
		repair(s, TW_REPAIR_exit_without_enter, marker->offset);
		return TW_OK;
	}
	if (at > 0 && k->calls[at].thrown_ns >= 0 && k->calls[at - 1].sym == sym)
		at--;
	st = unwind(s, marker->by, at + 1, k->last_ns, TW_REPAIR_call_unwound, err);
	return st == TW_OK ? close_top(s, marker->by, marker->ts_ns, err) : st;
}

static enum tw_status thrown(
        struct rhea1 *s, const struct tw_marker *marker, uint32_t sym, struct tw_err *err)
{
	struct stack *k = stack_of(s, marker->by);
	uint32_t at = find(k, sym);
	enum tw_status st;

	if (k->hidden)
		return TW_OK;
	if (at == k->n) {
		repair(s, TW_REPAIR_exit_without_enter, marker->offset);
		return TW_OK;
	}
	if (at > 0 && k->calls[at].thrown_ns >= 0 && k->calls[at - 1].sym == sym)
		at--; /* it left the inner one and now leaves the outer one */
	st = unwind(s, marker->by, at + 1, k->last_ns, TW_REPAIR_call_unwound, err);
	k->calls[at].thrown_ns = marker->ts_ns;
	return st;
}

/* A decimal number is an id of the mapping, anything else the name. */
static uint32_t symbol(struct rhea1 *s, struct tw_str method)
{
	struct tw_sink *sink = s->rhea.markers.sink;
	uint64_t id;

	if (tw_str_u64(method, UINT32_MAX, &id))
		return sink->ops->method(sink, id);
	return sink->ops->name(sink, method);
}

/* "SECONDS.FRACTION": CLOCK_MONOTONIC at a line of CLOCK_BOOTTIME. */
static void read_monotonic(struct rhea1 *s, const struct tw_marker *marker, struct tw_str text)
{
	struct tw_clock *clock = &s->rhea.clock;
	struct tw_str fraction = tw_str_trim(text);
	struct tw_str whole = tw_str_split(&fraction, '.');
	uint64_t seconds;
	uint64_t micros;
	int64_t mono_ns;

	if (fraction.len != 6 || !tw_str_u64(whole, (uint64_t)1 << 33, &seconds) ||
	        !tw_str_u64(fraction, UINT64_MAX, &micros)) {
		repair(s, TW_REPAIR_line_malformed, marker->offset);
		return;
	}
	mono_ns = (int64_t)(seconds * 1000000000 + micros * 1000) - marker->ts_ns;
	clock->mono_base_ns = mono_ns >= 0 ? mono_ns : -1;
	s->rhea.markers.sink->ops->clock(s->rhea.markers.sink, clock);
}

static enum tw_status read_event(
        struct tw_rhea *r, const struct tw_marker *marker, struct tw_err *err)
{
	static const struct tw_str clock_line = {"monotonic_time: ", sizeof "monotonic_time: " - 1};
	struct rhea1 *s = (struct rhea1 *)(void *)r;
	struct tw_str rest = marker->text;
	uint32_t sym;

	if (!tw_str_eq(tw_str_split(&rest, '|'), TW_STR("B")))
		return tw_rhea_emit(r, marker, err);
	(void)tw_str_split(&rest, '|');
	if (tw_str_starts(rest, clock_line)) {
		read_monotonic(s, marker, tw_str_from(rest, clock_line.len));
		return TW_OK;
	}
	if (rest.len < 3 || rest.ptr[1] != ':' || !strchr("BET", rest.ptr[0]) || !rest.ptr[0])
		return tw_rhea_emit(r, marker, err);
	if (marker->ts_ns > r->markers.last_ns)
		r->markers.last_ns = marker->ts_ns;
	sym = symbol(s, tw_str_from(rest, 2));
	if (rest.ptr[0] == 'B')
		return enter(s, marker, sym, err);
	return rest.ptr[0] == 'E' ? leave(s, marker, sym, err) : thrown(s, marker, sym, err);
}

static enum tw_status each(struct tw_rhea *r, const struct tw_marker *marker, struct tw_err *err)
{
	enum tw_status st = read_event(r, marker, err);

	stack_of((struct rhea1 *)(void *)r, marker->by)->last_ns = marker->ts_ns;
	return st;
}

static int probe(const uint8_t *head, size_t len)
{
	return tw_rhea_probe(head, len, 6);
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct rhea1 *s = state;

	s->arena = a;
	s->rhea.digits = 6;
	s->rhea.each = each;
	s->stacks = tw_arena_zalloc(a, limits->max_threads, sizeof *s->stacks);
	if (!s->stacks)
		return tw_oom(err);
	return tw_rhea_start(&s->rhea, a, limits, sink, err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_lines_push(&((struct rhea1 *)state)->rhea.lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct rhea1 *s = state;
	struct tw_markers *m = &s->rhea.markers;
	enum tw_status st = tw_rhea_end(&s->rhea, cut, err);

	for (uint32_t i = 0; st == TW_OK && i < m->tids.n; i++)
		st = unwind(s, &m->tids.list[i], 0, m->last_ns, TW_REPAIR_enter_without_exit, err);
	return st == TW_OK ? tw_rhea_finish(&s->rhea, cut, err) : st;
}

const struct tw_format tw_format_rhea1 = {
        .name = "rhea1",
        .title = "RheaTrace 1.0 trace (rhea-atrace.gz)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct rhea1),
        .start = start,
        .push = push,
        .finish = finish,
};
