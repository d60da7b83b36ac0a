/*
 * builder_pair.c - turns BEGIN and END events into finished calls.
 *
 * An END without a symbol closes the top call.  One with a symbol closes the nearest open call of
 * that symbol, and the calls above it end there too; if none is open the END is an exit without an
 * enter.  In a recording of all calls, an END while nothing is open belongs to a call that was
 * running when the recording began.
 *
 * Two limits keep a flood of BEGINs, which no phone writes, from costing unbounded memory and time:
 * BEGINs past MAX_OPEN are only counted, far deeper than a trace keeps calls; and the call of an
 * END is searched only SEARCH_DEPTH calls deep.
 */
#include "decoder/base/newer_cpu.h"
#include "decoder/trace/builder_internal.h"

enum { MAX_OPEN = 1 << 16, SEARCH_DEPTH = 2048 };

enum tw_status tw_builder_begin(struct tw_builder *b, struct track *t, const struct tw_event *ev)
{
	if (t->n_open == MAX_OPEN) {
		tw_builder_repair(b, TW_REPAIR_depth_clipped, ev->offset, 1);
		t->n_hidden++;
		return TW_OK;
	}
	if (!TW_GROW_MEM(t->open, t->n_open, t->cap_open))
		return TW_NOMEM;
	t->open[t->n_open++] = (struct open_call){ev->ts_ns, ev->cpu_ns, ev->offset, ev->sym};
	if (ev->ts_ns > b->last_ns)
		b->last_ns = ev->ts_ns;
	return TW_OK;
}

/* cpu_ns: reading of the thread's CPU clock at the end, -1 unknown. */
static enum tw_status close_top(
        struct tw_builder *b, struct track *t, int64_t end_ns, int64_t cpu_ns)
{
	const struct open_call *o = &t->open[--t->n_open];
	const struct call c = {
	        o->start_ns, end_ns > o->start_ns ? end_ns - o->start_ns : 0, o->sym};

	return tw_builder_record(b, t, &c, tw_open_call_cpu(o, cpu_ns), o->offset);
}

static enum tw_status close_early(
        struct tw_builder *b, struct track *t, int64_t end_ns, int64_t cpu_ns)
{
	tw_builder_repair(b, TW_REPAIR_enter_without_exit, t->open[t->n_open - 1].offset, 1);
	return close_top(b, t, end_ns, cpu_ns);
}

/* Adds a call from before the recording as the parent of all the track's calls so far. */
static enum tw_status adopt(struct tw_builder *b, struct track *t, const struct tw_event *ev)
{
	struct call c = {.sym = ev->sym};

	c.start_ns = (t->n && t->first_ns < ev->ts_ns ? t->first_ns : ev->ts_ns) - ev->dur_ns;
	if (c.start_ns < 0)
		c.start_ns = 0;
	c.dur_ns = ev->ts_ns - c.start_ns;
	tw_builder_repair(b, TW_REPAIR_begin_clamped, ev->offset, 1);
	/* its CPU clock may have begun before the recording */
	return tw_builder_record(
	        b, t, &c, ev->cpu_ns > c.dur_ns ? c.dur_ns : ev->cpu_ns, ev->offset);
}

static enum tw_status close_all(struct tw_builder *b, struct track *t, const struct tw_event *ev)
{
	enum tw_status st = TW_OK;

	t->n_hidden = 0;
	while (st == TW_OK && t->n_open)
		st = close_early(b, t, ev->ts_ns, ev->cpu_ns);
	return st;
}

/* Number of open calls up to and including the one that ends; 0: it is not open. */
static uint32_t find_open(const struct track *t, uint32_t sym)
{
	uint32_t last = t->n_open > SEARCH_DEPTH ? t->n_open - SEARCH_DEPTH : 0;

	if (sym == 0)
		return t->n_open;
	for (uint32_t at = t->n_open; at > last; at--)
		if (t->open[at - 1].sym == sym)
			return at;
	return 0;
}

enum tw_status tw_builder_end(struct tw_builder *b, struct track *t, const struct tw_event *ev)
{
	enum tw_status st = TW_OK;
	uint32_t at;

	if (ev->kind == TW_EV_END_ALL)
		return close_all(b, t, ev);
	if (ev->kind == TW_EV_END_EARLIER && t->n_open == 0 && ev->sym != 0)
		return adopt(b, t, ev);
	if (t->n_hidden) {
		t->n_hidden--;
		return TW_OK;
	}
	at = find_open(t, ev->sym);
	if (at == 0) {
		tw_builder_repair(b, TW_REPAIR_exit_without_enter, ev->offset, 1);
		return TW_OK;
	}
	while (st == TW_OK && t->n_open > at)
		st = close_early(b, t, ev->ts_ns, ev->cpu_ns);
	return st == TW_OK ? close_top(b, t, ev->ts_ns, ev->cpu_ns) : st;
}

enum tw_status tw_builder_close_open(struct tw_builder *b, struct track *t)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && t->n_open)
		st = close_early(b, t, b->last_ns, -1);
	return st;
}

/* --- many edges of one track at once --- */

/* Numbers are combined by OR: if one is negative, so is the result.  There is at least one edge. */
TW_NEWER_CPU bool tw_builder_are_edges_plain(
        const struct tw_builder *b, const struct tw_edge_batch *e)
{
	const uint32_t max_sym =
	        b->n_symbols < TW_RECORD_MAX_SYM ? b->n_symbols : TW_RECORD_MAX_SYM;
	uint64_t negative = (uint64_t)e->ts_ns[0];
	uint32_t wrong = 0;

	for (size_t i = 1; i < e->n; i++)
		negative |=
		        (uint64_t)e->ts_ns[i] | ((uint64_t)e->ts_ns[i] - (uint64_t)e->ts_ns[i - 1]);
	for (size_t i = 0; i < e->n; i++)
		wrong |= ((e->syms_2[i] >> 1) - 1) | (max_sym - (e->syms_2[i] >> 1));
	return negative >> 63 == 0 && wrong >> 31 == 0 && e->ts_ns[e->n - 1] <= TW_MAX_NS &&
	       (uint64_t)e->end_dur_ns <= TW_MAX_NS;
}

/* tw_builder_take_edges for a track with or without CPU times. */
static inline size_t take_edges(struct tw_builder *b, struct track *t,
        const struct tw_edge_batch *e, size_t from, bool has_cpu)
{
	const uint64_t left_in_all = b->limits.max_slices - b->slices;
	const uint64_t left = left_in_all < t->cap - t->n ? left_in_all : t->cap - t->n;
	const size_t end =
	        left < e->n - from ? from + left : e->n; /* an edge ends a call at most */
	const int64_t base_ns = t->records.base_ns;
	struct record *const first = t->records.at + (t->n - t->n_spilled);
	struct record *at = first;
	uint32_t *cpu = has_cpu ? t->records.cpu + (t->n - t->n_spilled) : NULL;
	struct symbol *symbols = b->symbols;
	struct open_call *const open = t->open;
	struct open_call *const open_end = open + t->cap_open;
	struct open_call *top = open + t->n_open; /* after the innermost call */
	int64_t first_ns = t->first_ns;
	size_t i = from;

	for (; i < end; i++) {
		const int64_t ts_ns = e->ts_ns[i];
		const int64_t clock_ns = has_cpu ? e->cpu_ns[i] : -1;
		const uint32_t sym = e->syms_2[i] >> 1;
		int64_t start_ns;

		if (!(e->syms_2[i] & 1)) {
			if (top == open_end)
				break;
			*top++ = (struct open_call){
			        ts_ns, clock_ns, e->offset + i * e->record_bytes, sym};
			continue;
		}
		if (top == open || top[-1].sym != sym)
			break;
		start_ns = top[-1].start_ns;
		if ((uint64_t)ts_ns - (uint64_t)start_ns >= TW_RECORD_WIDE)
			break;
		if (has_cpu) {
			const int64_t cpu_ns = clock_ns - top[-1].cpu_ns;

			if ((uint64_t)cpu_ns >= TW_CPU_LONG || top[-1].cpu_ns < 0)
				break;
			*cpu++ = (uint32_t)cpu_ns;
		}
		top--;
		first_ns = start_ns < first_ns ? start_ns : first_ns;
		*at++ = (struct record){(uint64_t)(start_ns - base_ns) << TW_RECORD_SYM_BITS | sym,
		        (uint32_t)(ts_ns - start_ns), tw_short_offset(top->offset)};
		symbols[sym - 1].count++;
	}
	if (i == from)
		return 0;
	if (at > first) {
		const struct call last = tw_record_call(
		        &t->records, t->n - t->n_spilled + (uint64_t)(at - first) - 1);

		t->last_end_ns = last.start_ns + last.dur_ns;
	}
	t->n += (uint64_t)(at - first);
	t->n_open = (uint32_t)(top - open);
	t->first_ns = first_ns;
	b->slices += (uint64_t)(at - first);
	if (e->ts_ns[i - 1] > b->last_ns)
		b->last_ns = e->ts_ns[i - 1];
	return i - from;
}

/* If a call ends after all others and is short, it fits a record: the base is long before the end
 * of the first one. */
size_t tw_builder_take_edges(
        struct tw_builder *b, struct track *t, const struct tw_edge_batch *edges, size_t from)
{
	const struct tw_edge_batch e = *edges;

	if (t->n == 0 || !t->open || t->n_hidden || !t->records.cpu != !e.cpu_ns ||
	        e.ts_ns[from] < t->last_end_ns ||
	        e.ts_ns[e.n - 1] - t->records.base_ns >= (int64_t)TW_RECORD_SPAN)
		return 0;
	return t->records.cpu ? take_edges(b, t, &e, from, true)
	                      : take_edges(b, t, &e, from, false);
}
