/* anr_emit.c - emits dumps as samples, and reasons and waits as notes; see anr_report.h. */
#include <stdio.h>

#include "decoder/base/native_frame.h"
#include "decoder/base/order.h"
#include "decoder/formats/anr/anr_markup.h"
#include "decoder/formats/anr/anr_report.h"
#include "decoder/formats/label.h"
#include "decoder/formats/stacks.h"

#define DAY_NS       INT64_C(86400000000000)
#define NOMINAL_NS   INT64_C(1000000)
#define NAMED_TID    (UINT64_C(1) << 32) /* derived from a name: above every kernel id */
#define PROCESS_NONE 1                   /* process id of reports without one */

struct emitter {
	struct tw_anr *m;
	struct tw_anr_summary s;
	int64_t *times_ns;
	int64_t interval_ns;
	struct tw_stacks *stacks;
	uint32_t *names; /* by text: the sink's symbol, 0 none yet */
	uint32_t *syms;  /* of one stack, outermost first */
};

static uint32_t pid_of(const struct tw_anr_dump *d)
{
	return d->pid && d->pid <= UINT32_MAX ? (uint32_t)d->pid : PROCESS_NONE;
}

uint64_t tw_anr_track_tid(const struct tw_anr *m, const struct tw_anr_dump *d,
        const struct tw_anr_finding *f, uint32_t thread)
{
	const struct tw_anr_thread *t = &m->threads[d->thread + thread];

	if (t->track)
		return t->track;
	if (t->sys_tid)
		return t->sys_tid;
	if (thread == f->main)
		return pid_of(d);
	return t->tid ? t->tid : NAMED_TID + t->name;
}

/* --- times --- */

/* The median interval of samples. */
static int64_t usual_distance(const struct tw_anr *m, const int64_t *times, int64_t *work)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < m->n_dumps; i++)
		if (times[i] > times[i - 1])
			work[n++] = times[i] - times[i - 1];
	if (n == 0)
		return NOMINAL_NS;
	TW_SORT(work, n, tw_by_i64);
	return work[n / 2];
}

/* The time of each dump on the trace's clock: from the dates in the file if present, otherwise
 * sequential.  *ret_interval_ns is the usual interval of samples, or a nominal millisecond.  NULL:
 * out of memory. */
static int64_t *dump_times(
        const struct tw_anr *m, const struct tw_anr_summary *s, int64_t *ret_interval_ns)
{
	int64_t *times = tw_arena_zalloc(m->arena, (size_t)m->n_dumps + 1, 2 * sizeof *times);
	int64_t base = -1;

	if (!times)
		return NULL;
	for (uint32_t i = 0; i < m->n_dumps; i++) {
		int64_t at = m->dumps[i].at_ns;

		if (base < 0)
			base = at;
		if (at >= base && base >= 0 && at - base <= DAY_NS)
			times[i] = at - base;
		else if (i)
			times[i] = times[i - 1] + NOMINAL_NS;
	}
	*ret_interval_ns =
	        s->sampled ? usual_distance(m, times, times + m->n_dumps + 1) : NOMINAL_NS;
	return times;
}

/* --- samples --- */

/* The name by which the sink knows the frame; views of the model or of buf. */
static struct tw_str sink_name(
        const struct tw_anr *m, const struct tw_anr_frame *f, char buf[TW_FRAME_NAME_BYTES])
{
	struct tw_str name = tw_anr_str(m, f->name);

	if (f->kind == TW_ANR_JAVA)
		return tw_frame_name(buf, name, tw_anr_str(m, f->where));
	return f->build_id ? tw_native_frame_tagged(name, tw_anr_str(m, f->build_id), buf) : name;
}

static uint32_t sym_of(struct emitter *t, const struct tw_anr_frame *f)
{
	struct tw_sink *sink = t->m->sink;
	uint32_t text = f->name;
	struct tw_str name = tw_anr_str(t->m, text);
	char buf[TW_FRAME_NAME_BYTES];
	struct tw_str placed = sink_name(t->m, f, buf);

	if (placed.len > name.len)
		return sink->ops->name(sink, placed);
	if (!t->names[text])
		t->names[text] =
		        sink->ops->name(sink, text ? tw_anr_str(t->m, text) : TW_STR("(no name)"));
	return t->names[text];
}

static enum tw_status emit_stack(
        struct emitter *t, uint32_t dump, uint32_t thread, uint32_t track, struct tw_err *err)
{
	const struct tw_anr_thread *th = &t->m->threads[t->m->dumps[dump].thread + thread];

	if (th->n_frames == 0)
		return TW_OK;
	for (uint32_t i = 0; i < th->n_frames; i++)
		t->syms[i] = sym_of(t, &t->m->frames[th->frame + th->n_frames - 1 - i]);
	return tw_stacks_add(t->stacks,
	        &(struct tw_sample){.track = track,
	                .ts_ns = t->times_ns[dump],
	                .offset = th->offset,
	                .syms = t->syms,
	                .n = th->n_frames},
	        err);
}

/* --- notes --- */

static enum tw_status emit_wait(
        struct emitter *t, uint32_t dump, uint32_t thread, uint32_t track, struct tw_err *err)
{
	const struct tw_anr_dump *d = &t->m->dumps[dump];
	const struct tw_anr_finding *f = &t->s.findings[dump];
	const struct tw_anr_edge *e = &f->graph.edges[thread];
	struct tw_sink *sink = t->m->sink;
	struct tw_note note = {.kind = TW_NOTE_contention,
	        .track = track,
	        .ts_ns = t->times_ns[dump],
	        .dur_ns = -1,
	        .value = -1};
	const struct tw_anr_lock *l;

	if (e->lock < 0)
		return TW_OK;
	l = &t->m->locks[t->m->threads[d->thread].lock + (uint32_t)e->lock];
	if (e->to >= 0)
		note.value = (int64_t)(tw_anr_track_tid(t->m, d, f, (uint32_t)e->to) & INT64_MAX);
	note.offset = t->m->threads[d->thread + thread].offset;
	note.text = l->type ? tw_anr_str(t->m, l->type) : TW_STR("unknown object");
	return sink->ops->note(sink, &note, err);
}

static enum tw_status emit_thread(
        struct emitter *t, uint32_t dump, uint32_t thread, struct tw_err *err)
{
	const struct tw_anr_dump *d = &t->m->dumps[dump];
	const struct tw_anr_thread *th = &t->m->threads[d->thread + thread];
	uint64_t tid = tw_anr_track_tid(t->m, d, &t->s.findings[dump], thread);
	struct tw_sink *sink = t->m->sink;
	uint32_t track = sink->ops->track(sink, pid_of(d), tid, TW_TID_FULL);
	enum tw_status st;

	if (track == 0)
		return TW_OK; /* the sink counts it */
	if (th->name)
		sink->ops->thread_name(sink, pid_of(d), tid, tw_anr_str(t->m, th->name));
	st = emit_stack(t, dump, thread, track, err);
	return st == TW_OK ? emit_wait(t, dump, thread, track, err) : st;
}

static enum tw_status emit_process(struct emitter *t, uint32_t dump, struct tw_err *err)
{
	const struct tw_anr_dump *d = &t->m->dumps[dump];
	struct tw_sink *sink = t->m->sink;
	struct tw_note note = {.kind = TW_NOTE_process,
	        .ts_ns = t->times_ns[dump],
	        .dur_ns = -1,
	        .value = pid_of(d),
	        .offset = d->offset,
	        .text = tw_anr_str(t->m, d->facts[TW_ANR_FACT_command])};

	return d->process ? sink->ops->note(sink, &note, err) : TW_OK;
}

static enum tw_status emit_reason(struct emitter *t, struct tw_err *err)
{
	struct tw_sink *sink = t->m->sink;
	uint32_t blamed = t->s.blamed;
	struct tw_note note = {
	        .kind = TW_NOTE_anr, .dur_ns = -1, .value = t->s.waited_ms, .text = t->s.reason};

	if (note.text.len == 0)
		note.text = tw_str_of(tw_anr_plain(t->m->arena, t->s.verdict));
	if (!note.text.ptr)
		return tw_oom(err);
	if (blamed != TW_ANR_NO_INDEX) {
		const struct tw_anr_dump *d = &t->m->dumps[blamed];
		const struct tw_anr_finding *f = &t->s.findings[blamed];

		note.ts_ns = t->times_ns[blamed];
		note.offset = d->offset;
		if (f->main != TW_ANR_NO_INDEX)
			note.track = sink->ops->track(sink, pid_of(d),
			        tw_anr_track_tid(t->m, d, f, f->main), TW_TID_FULL);
	}
	return sink->ops->note(sink, &note, err);
}

/* --- the complete report --- */

static bool prepare(struct emitter *t)
{
	struct tw_anr *m = t->m;
	uint32_t deepest = 0;

	if (!tw_anr_classify(m, &t->s))
		return false;
	for (uint32_t i = 0; i < m->n_threads; i++)
		if (m->threads[i].n_frames > deepest)
			deepest = m->threads[i].n_frames;
	t->times_ns = dump_times(m, &t->s, &t->interval_ns);
	t->stacks = tw_stacks_new(m->arena, &m->limits, m->sink, t->interval_ns);
	t->names = tw_arena_zalloc(m->arena, m->n_texts, sizeof *t->names);
	t->syms = tw_arena_alloc(m->arena, (size_t)deepest + 1, sizeof *t->syms);
	return t->times_ns && t->stacks && t->names && t->syms;
}

static void emit_clock(struct emitter *t)
{
	struct tw_clock clock = {.mono_base_ns = -1, .boot_base_ns = -1};

	if (t->s.blamed != TW_ANR_NO_INDEX)
		clock.pid = pid_of(&t->m->dumps[t->s.blamed]);
	t->m->sink->ops->clock(t->m->sink, &clock);
}

static enum tw_status emit_dumps(struct emitter *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t d = 0; st == TW_OK && d < t->m->n_dumps; d++) {
		st = emit_process(t, d, err);
		for (uint32_t i = 0; st == TW_OK && i < t->m->dumps[d].n_threads; i++)
			st = emit_thread(t, d, i, err);
	}
	return st;
}

enum tw_status tw_anr_emit(struct tw_anr *m, struct tw_err *err)
{
	struct emitter t = {.m = m};
	enum tw_status st;
	struct tw_str json;

	if (!prepare(&t))
		return tw_oom(err);
	emit_clock(&t);
	st = emit_reason(&t, err);
	if (st == TW_OK)
		st = emit_dumps(&t, err);
	if (st == TW_OK)
		st = tw_stacks_finish(t.stacks, err);
	if (st != TW_OK)
		return st;
	json = tw_anr_document(m, &t.s, t.times_ns);
	if (!json.ptr)
		return tw_oom(err);
	return m->sink->ops->document(m->sink, "anr", json, err);
}
