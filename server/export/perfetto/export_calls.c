/*
 * export_calls.c - see the header.
 *
 * CPU times: a trace has one per call, and Perfetto expects readings of the thread's CPU clock.
 * Readings are computed so that their difference is each call's CPU time: a call begins at the
 * clock's value and sets it to its begin plus its CPU time, or further if its callees did so
 * already.  A call of unknown CPU time has no readings.
 */
#include "server/export/perfetto/export_calls.h"

#include <stdio.h>

#include "server/export/perfetto/export_cursor.h"
#include "server/export/perfetto/export_packet.h"

enum { RUN_EVENTS = 4096, NAME_MAX_BYTES = 16384, AHEAD_MAX = 4 };
#define CPU_UNKNOWN INT64_MIN

struct lane { /* the export of one thread */
	const struct tw_thread_info *thread;
	struct tw_cursor cursor;
	bool open;       /* the cursor is open */
	bool introduced; /* the first packets of its sequence are written */
	uint32_t seq;
	struct tw_packet_seq packets;
	uint32_t step;   /* current step of the clock sync */
	int64_t last_ns; /* time of the previous event */
	uint32_t *iids;  /* interned name by method; 0: not written yet */
	uint32_t n_iids;
	uint64_t flow;      /* flow that ends at its next call; 0 none */
	int64_t cpu_now_ns; /* computed CPU clock */
	/* its value at the end of each open call; NULL: the trace has no CPU times */
	int64_t *cpu_ends;
	uint32_t depth;
};

struct tw_call_writer {
	struct tw_export_trace *ours;
	const struct tw_method_ref *methods;
	uint32_t n_methods;
	struct lane *lanes;
	uint32_t n_lanes, n_merged; /* the first n_merged are merged by time, the rest follows */
	uint32_t *heap;             /* merged lanes with more events, earliest on top */
	uint32_t n_heap, next_single;
	bool begun;
	struct tw_read_ahead *ahead;
	char *name; /* NAME_MAX_BYTES */
};

/* --- a thread's first packets --- */

/* Describes the thread's track: samples or calls. */
static void describe(const struct tw_thread_info *t, char name[64], const char **ret_description)
{
	double ms = (double)t->interval_ns / 1e6;

	*ret_description = NULL;
	(void)snprintf(name, 64, "methods");
	if (t->source == TW_SOURCE_SAMPLES) {
		*ret_description = "Stacks were sampled: a slice is a frame that was present in "
		                   "all of its samples. Calls between two samples are not seen, "
		                   "and several in a row may look like one.";
		if (t->interval_ns > 0)
			(void)snprintf(name, 64, "methods (sampled every %.4g ms)", ms);
		else
			(void)snprintf(name, 64, "methods (sampled)");
	} else if (t->source == TW_SOURCE_COUNTS) {
		*ret_description = "Lengths are numbers of calls, not times.";
		(void)snprintf(name, 64, "methods (counts, not times)");
	}
}

static enum tw_status introduce(struct tw_call_writer *c, struct lane *l, struct tw_buf *out)
{
	const struct tw_export_trace *o = c->ours;
	bool known;
	const uint64_t thread = tw_export_trace_thread_uuid(o, l->thread, &known);
	const uint64_t calls[] = {
	        tw_track_uuid(o->salt, TW_TRACK_CALLS, o->number, l->thread->thread_id), thread};
	const uint64_t cpu[] = {
	        tw_track_uuid(o->salt, TW_TRACK_CPU, o->number, l->thread->thread_id), thread};
	const char *description;
	char name[64];
	struct tw_track_sequence s = {.seq = l->seq, .clock = o->sync.clock, .steps = true};
	enum tw_status st;

	l->last_ns = tw_export_trace_time(o, &l->step, l->cursor.next_ns);
	s.base_ns = l->last_ns;
	s.track = calls[0];
	s.cpu_counter = l->cpu_ends ? cpu[0] : 0;
	st = tw_track_put_sequence(out, &s);
	/* all at the thread's first event: its id may have been another thread's before */
	if (st == TW_OK)
		st = tw_export_trace_put_thread(o, out, l->seq, 0, l->thread);
	describe(l->thread, name, &description);
	if (st == TW_OK)
		st = tw_track_put_child(out, l->seq, 0, calls, name, description);
	if (st == TW_OK && l->cpu_ends)
		st = tw_track_put_cpu_counter(out, l->seq, 0, cpu);
	l->flow = o->flows && l->thread->start_ns >= o->sel.from_ns
	                  ? o->flows[l->thread->thread_id - 1]
	                  : 0;
	l->introduced = true;
	return st;
}

/* --- events --- */

static struct tw_str name_of(struct tw_call_writer *c, uint32_t method)
{
	const struct tw_named what = tw_method_named(&c->methods[method]);

	(void)tw_names_display(&c->ours->names, &what, c->name, NAME_MAX_BYTES);
	return tw_trace_file_is_sanitized(c->ours->file) ? tw_sanitized_name(tw_str_of(c->name))
	                                                 : tw_str_of(c->name);
}

/* False: the call began without a CPU time. */
static bool end_cpu(struct lane *l, uint64_t *ret_step)
{
	int64_t end = l->cpu_ends[--l->depth];

	*ret_step = end > l->cpu_now_ns ? (uint64_t)(end - l->cpu_now_ns) : 0;
	l->cpu_now_ns += (int64_t)*ret_step;
	return end != CPU_UNKNOWN;
}

/* Time since the sequence's previous packet, at *last_ns, which becomes ts_ns. */
static inline uint64_t step_to(int64_t *last_ns, int64_t ts_ns)
{
	uint64_t delta = ts_ns > *last_ns ? (uint64_t)(ts_ns - *last_ns) : 0;

	*last_ns += (int64_t)delta;
	return delta;
}

/* A begin that also defines its name or ends a flow. */
static enum tw_status put_begin(struct tw_call_writer *c, struct lane *l, struct tw_buf *out,
        const struct tw_edge *e, uint64_t delta)
{
	struct tw_packet_named b = {.seq = &l->packets, .delta_ns = delta, .flow = l->flow};

	if (e->method < c->n_methods) {
		if (l->iids[e->method] == 0) {
			l->iids[e->method] = ++l->n_iids;
			b.name = name_of(c, e->method);
		}
		b.name_iid = l->iids[e->method];
	}
	if (l->cpu_ends) {
		l->cpu_ends[l->depth++] = e->cpu_ns < 0 ? CPU_UNKNOWN : l->cpu_now_ns + e->cpu_ns;
		b.cpu = e->cpu_ns >= 0;
	}
	l->flow = 0;
	return tw_packet_begin_named(out, &b);
}

static enum tw_status put_edge(
        struct tw_call_writer *c, struct lane *l, struct tw_buf *out, const struct tw_edge *e)
{
	uint64_t delta = step_to(&l->last_ns, tw_export_trace_time(c->ours, &l->step, e->ts_ns));
	uint32_t iid = e->begin && e->method < c->n_methods ? l->iids[e->method] : 0;
	uint64_t cpu_ns;
	uint8_t *p;

	if (e->begin && (iid == 0 || l->cpu_ends || l->flow))
		return put_begin(c, l, out, e, delta);
	if (tw_buf_reserve(out, TW_PACKET_MAX_BYTES) != TW_OK)
		return tw_buf_status(out);
	p = out->data + out->len;
	if (e->begin)
		p = tw_packet_begin(p, &l->packets, delta, iid);
	else if (l->cpu_ends && end_cpu(l, &cpu_ns))
		p = tw_packet_end_cpu(p, &l->packets, delta, cpu_ns);
	else
		p = tw_packet_end(p, &l->packets, delta);
	out->len = (size_t)(p - out->data);
	return TW_OK;
}

/* --- lanes --- */

static void close_lane(struct tw_call_writer *c, struct lane *l)
{
	if (l->open)
		c->ours->clipped += l->cursor.clipped;
	tw_cursor_close(&l->cursor);
	tw_mem_free(l->iids);
	tw_mem_free(l->cpu_ends);
	l->iids = NULL;
	l->cpu_ends = NULL;
	l->open = false;
}

static enum tw_status open_lane(struct tw_call_writer *c, struct lane *l, struct tw_err *err)
{
	const struct tw_export_trace *o = c->ours;

	l->iids = tw_mem_zalloc(c->n_methods ? c->n_methods : 1, sizeof *l->iids);
	if (tw_trace_file_info(o->file)->has_cpu)
		l->cpu_ends = tw_mem_alloc(TW_PERFETTO_MAX_DEPTH, sizeof *l->cpu_ends);
	if (!l->iids || (tw_trace_file_info(o->file)->has_cpu && !l->cpu_ends))
		return tw_oom(err);
	l->open = true;
	return tw_cursor_open_range(&l->cursor, o->file, l->thread->thread_id,
	        TW_PERFETTO_MAX_DEPTH, o->sel.from_ns, o->sel.to_ns, err);
}

/* Whether a call needs a begin and an end only: no name, and no edge of the range within it. */
static inline bool is_plain(const struct tw_cursor *at, const uint32_t *iids, uint32_t n_methods,
        const struct tw_slice *s)
{
	return s->start_ns >= at->from_ns && s->start_ns + s->dur_ns <= at->to_ns &&
	       s->depth < TW_PERFETTO_MAX_DEPTH && s->method < n_methods && iids[s->method];
}

/* The plain calls of a chunk, which nearly all are, in one loop with the positions in local
 * variables.  Stops at the first other one. */
static enum tw_status run_plain(const struct tw_call_writer *c, struct lane *l, int64_t until_ns,
        int *left, struct tw_buf *out, struct tw_err *err)
{
	const struct tw_clock_sync *sync = &c->ours->sync;
	const struct tw_packet_seq packets = l->packets;
	const uint32_t *iids = l->iids;
	struct tw_cursor *at = &l->cursor;
	const struct tw_slice *s = at->slices + at->at;
	const struct tw_slice *end = at->slices + at->n;
	int64_t add_ns = tw_clock_sync_time(sync, &l->step, at->next_ns) - at->next_ns;
	int64_t last_ns = l->last_ns;
	uint32_t depth = at->depth;
	int n = *left;
	uint8_t *p;

	if (tw_buf_reserve(out, (size_t)n * TW_PACKET_MAX_BYTES) != TW_OK)
		return tw_oom(err);
	p = out->data + out->len;
	if (l->step + 1 < sync->n && sync->steps[l->step + 1].from_ns <= until_ns)
		until_ns = sync->steps[l->step + 1].from_ns - 1;
	for (; s < end && is_plain(at, iids, c->n_methods, s); s++) {
		for (; depth > s->depth && n > 0 && at->ends[depth - 1] <= until_ns; n--)
			p = tw_packet_end(
			        p, &packets, step_to(&last_ns, at->ends[--depth] + add_ns));
		if (depth > s->depth || n == 0 || s->start_ns > until_ns)
			break;
		p = tw_packet_begin(
		        p, &packets, step_to(&last_ns, s->start_ns + add_ns), iids[s->method]);
		at->ends[depth] = s->start_ns + s->dur_ns;
		at->methods[depth++] = s->method;
		n--;
	}
	out->len = (size_t)(p - out->data);
	l->last_ns = last_ns;
	at->at = (size_t)(s - at->slices);
	at->depth = depth;
	*left = n;
	return tw_cursor_reposition(at, err);
}

/* Writes events of one thread up to until_ns, at most *left, which is reduced. */
static enum tw_status run(struct tw_call_writer *c, struct lane *l, int64_t until_ns, int *left,
        struct tw_buf *out, struct tw_err *err)
{
	const struct tw_cursor *at = &l->cursor;
	enum tw_status st = TW_OK;

	if (!l->introduced && !at->done && introduce(c, l, out) != TW_OK)
		return tw_oom(err);
	while (st == TW_OK && *left > 0 && !at->done && at->next_ns <= until_ns) {
		struct tw_edge e;

		if (!l->cpu_ends && !l->flow)
			st = run_plain(c, l, until_ns, left, out, err);
		if (st != TW_OK || *left == 0 || at->done || at->next_ns > until_ns)
			continue; /* ends the loop */
		st = tw_cursor_next(&l->cursor, &e, err);
		if (st == TW_OK && put_edge(c, l, out, &e) != TW_OK)
			st = tw_oom(err);
		--*left;
	}
	return st;
}

static bool earlier(const struct tw_call_writer *c, uint32_t a, uint32_t b)
{
	int64_t ta = c->lanes[a].cursor.next_ns;
	int64_t tb = c->lanes[b].cursor.next_ns;

	return ta != tb ? ta < tb : a < b;
}

static void sift_down(struct tw_call_writer *c)
{
	uint32_t lane = c->heap[0];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= c->n_heap)
			break;
		if (child + 1 < c->n_heap && earlier(c, c->heap[child + 1], c->heap[child]))
			child++;
		if (!earlier(c, c->heap[child], lane))
			break;
		c->heap[at] = c->heap[child];
		at = child;
	}
	c->heap[at] = lane;
}

static void heap_add(struct tw_call_writer *c, uint32_t lane)
{
	uint32_t at = c->n_heap++;

	while (at && earlier(c, lane, c->heap[(at - 1) / 2])) {
		c->heap[at] = c->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	c->heap[at] = lane;
}

static enum tw_status begin(struct tw_call_writer *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	c->begun = true;
	c->ahead = tw_read_ahead_new();
	if (!c->ahead)
		return tw_oom(err);
	for (uint32_t i = 0; i < c->n_lanes; i++) {
		c->lanes[i].seq = c->ours->seqs[i];
		c->lanes[i].packets = tw_packet_seq(c->lanes[i].seq);
	}
	for (uint32_t i = 0; st == TW_OK && i < c->n_merged; i++) {
		st = open_lane(c, &c->lanes[i], err);
		if (st == TW_OK)
			heap_add(c, i);
	}
	c->next_single = c->n_merged;
	return st;
}

/* Decodes the chunk that is probably needed next, and a few at most. */
static void read_ahead(struct tw_call_writer *c)
{
	struct tw_cursor *next = NULL;
	uint32_t held = 0;

	if (tw_read_ahead_is_busy(c->ahead))
		return;
	for (uint32_t i = 0; i < c->n_heap; i++) {
		struct tw_cursor *one = &c->lanes[c->heap[i]].cursor;

		held += one->next_row != NULL;
		if (tw_cursor_wants_ahead(one) && (!next || one->n - one->at < next->n - next->at))
			next = one;
	}
	if (c->n_heap == 0 && c->next_single < c->n_lanes && c->lanes[c->next_single].open &&
	        tw_cursor_wants_ahead(&c->lanes[c->next_single].cursor))
		next = &c->lanes[c->next_single].cursor;
	if (next && held < AHEAD_MAX)
		tw_read_ahead_start(c->ahead, next);
}

/* The time of the next event of the other merged lanes. */
static int64_t next_other_ns(const struct tw_call_writer *c)
{
	int64_t next = INT64_MAX;

	for (uint32_t i = 1; i < c->n_heap && i <= 2; i++)
		if (c->lanes[c->heap[i]].cursor.next_ns < next)
			next = c->lanes[c->heap[i]].cursor.next_ns;
	return next;
}

static enum tw_status step_merged(struct tw_call_writer *c, struct tw_buf *out, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (int left = RUN_EVENTS; st == TW_OK && left > 0 && c->n_heap;) {
		struct lane *l = &c->lanes[c->heap[0]];

		st = run(c, l, next_other_ns(c), &left, out, err);
		if (l->cursor.done) {
			close_lane(c, l);
			c->heap[0] = c->heap[--c->n_heap];
		}
		if (c->n_heap)
			sift_down(c);
	}
	return st;
}

static enum tw_status step_single(struct tw_call_writer *c, struct tw_buf *out, struct tw_err *err)
{
	struct lane *l = &c->lanes[c->next_single];
	enum tw_status st = l->open ? TW_OK : open_lane(c, l, err);

	if (st == TW_OK)
		st = run(c, l, INT64_MAX, &(int){RUN_EVENTS}, out, err);
	if (l->cursor.done) {
		close_lane(c, l);
		c->next_single++;
	}
	return st;
}

enum tw_status tw_call_writer_step(
        struct tw_call_writer *c, struct tw_buf *out, bool *ret_done, struct tw_err *err)
{
	enum tw_status st = c->begun ? TW_OK : begin(c, err);

	if (st == TW_OK)
		read_ahead(c);
	if (st == TW_OK && c->n_heap)
		st = step_merged(c, out, err);
	else if (st == TW_OK && c->next_single < c->n_lanes)
		st = step_single(c, out, err);
	*ret_done = c->n_heap == 0 && c->next_single >= c->n_lanes;
	return st;
}

/* --- opening --- */

static bool make_lanes(struct tw_call_writer *c, uint64_t merge_bytes)
{
	const struct tw_selection *sel = &c->ours->sel;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(c->ours->file, &n);
	uint64_t bytes = 0;

	c->lanes = tw_mem_zalloc(n ? n : 1, sizeof *c->lanes);
	c->heap = tw_mem_alloc(n ? n : 1, sizeof *c->heap);
	c->name = tw_mem_alloc(NAME_MAX_BYTES, 1);
	if (!c->lanes || !c->heap || !c->name)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t held = t[i].slices < TW_CHUNK_SLICES ? t[i].slices : TW_CHUNK_SLICES;

		if (t[i].slices == 0 || !tw_selection_has(sel, &t[i]) ||
		        t[i].end_ns < sel->from_ns || t[i].start_ns >= sel->to_ns)
			continue;
		bytes += held * sizeof(struct tw_slice) + (uint64_t)c->n_methods * sizeof(uint32_t);
		c->lanes[c->n_lanes++].thread = &t[i];
		if (bytes <= merge_bytes)
			c->n_merged = c->n_lanes;
	}
	return true;
}

enum tw_status tw_call_writer_new(struct tw_export_trace *o, uint64_t merge_bytes,
        struct tw_call_writer **ret, uint32_t *ret_n, struct tw_err *err)
{
	struct tw_call_writer *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	c->ours = o;
	st = tw_trace_file_method_refs(o->file, &c->methods, &c->n_methods, err);
	if (st == TW_OK && !make_lanes(c, merge_bytes))
		st = tw_oom(err);
	if (st != TW_OK) {
		tw_call_writer_free(c);
		return st;
	}
	*ret = c;
	*ret_n = c->n_lanes;
	return TW_OK;
}

struct tw_call_writer *tw_call_writer_free(struct tw_call_writer *c)
{
	if (!c)
		return NULL;
	for (uint32_t i = 0; c->lanes && i < c->n_lanes; i++)
		close_lane(c, &c->lanes[i]);
	tw_read_ahead_free(c->ahead);
	tw_mem_free(c->lanes);
	tw_mem_free(c->heap);
	tw_mem_free(c->name);
	tw_mem_free(c);
	return NULL;
}
