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
