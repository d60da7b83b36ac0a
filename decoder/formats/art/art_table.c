/*
 * art_table.c - threads and methods of an ART trace, and conversion of records to events.
 *
 * Methods are passed to the sink by number and named when the trace names them, before or after
 * their use.  Methods without a name get their number as a name at the end, so that no mapping of a
 * build, in which numbers have another meaning, names them.
 *
 * The file does not state whether it was sampled: the sampler turns differences of stacks into
 * enters and exits, so the times of a thread are a sampling interval apart, and no call is left by
 * an exception.  The shortest fifth of the first gaps decides (as in Firefox' profiler).  In a
 * trace with few gaps, its first sample must also have entered a whole stack at one time.
 */
#include "decoder/formats/art/art_internal.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/order.h"

enum { FIRST_SLOTS = 1024, GAPS_ENOUGH = 16, GAPS_FIFTH = 5, STACK_ENTERS = 4 };

#define SAMPLED_FROM_NS 100000

bool tw_art_table_init(struct tw_art *s)
{
	s->n_thread_slots = 16;
	while (s->n_thread_slots < s->limits.max_threads * (uint64_t)2 &&
	        s->n_thread_slots < UINT32_C(1) << 31)
		s->n_thread_slots *= 2;
	s->threads = tw_arena_zalloc(s->arena, s->n_thread_slots, sizeof(void *));
	s->n_method_slots = FIRST_SLOTS;
	s->methods = tw_arena_zalloc(s->arena, s->n_method_slots, sizeof(void *));
	return s->threads && s->methods;
}

static uint32_t hash_of(const struct tw_art *s, uint64_t id)
{
	return (uint32_t)tw_hash_id(id, s->limits.hash_salt);
}

/* --- threads --- */

static struct tw_art_thread *add_thread(
        struct tw_art *s, struct tw_art_thread **slot, uint32_t tid, uint64_t offset)
{
	struct tw_art_thread *t;

	if (s->n_threads >= s->limits.max_threads) {
		tw_art_repair(s, TW_REPAIR_thread_limit, offset);
		return NULL;
	}
	t = tw_arena_zalloc(s->arena, 1, sizeof *t);
	if (!t) {
		s->no_memory = true;
		return NULL;
	}
	t->tid = tid;
	s->n_threads++;
	return *slot = t;
}

static struct tw_art_thread **thread_slot(const struct tw_art *s, uint32_t tid)
{
	uint32_t mask = s->n_thread_slots - 1;
	/* few, and emitted in table order: so the hash has no salt */
	uint32_t at = (uint32_t)(tid * 0x9E3779B97F4A7C15u >> 32) & mask;

	while (s->threads[at] && s->threads[at]->tid != tid)
		at = (at + 1) & mask;
	return &s->threads[at];
}

struct tw_art_thread *tw_art_known_thread(struct tw_art *s, uint32_t tid)
{
	struct tw_art_thread *t = s->last_thread;

	if (!t || t->tid != tid)
		t = *thread_slot(s, tid);
	return t ? (s->last_thread = t) : NULL;
}

struct tw_art_thread *tw_art_find_thread(struct tw_art *s, uint32_t tid, uint64_t offset)
{
	struct tw_art_thread **slot = thread_slot(s, tid);

	if (!*slot && !add_thread(s, slot, tid, offset))
		return NULL;
	return s->last_thread = *slot;
}

/* --- methods --- */

static struct tw_art_method **method_slot(const struct tw_art *s, uint64_t id)
{
	uint32_t mask = s->n_method_slots - 1;
	uint32_t at = hash_of(s, id) & mask;

	while (s->methods[at] && s->methods[at]->id != id)
		at = (at + 1) & mask;
	return &s->methods[at];
}

static bool widen_methods(struct tw_art *s)
{
	struct tw_art_method **larger;

	if (s->n_methods < s->n_method_slots / 2)
		return true;
	larger = tw_arena_zalloc(s->arena, s->n_method_slots, 2 * sizeof(void *));
	if (!larger)
		return false;
	s->methods = larger;
	s->n_method_slots *= 2;
	for (struct tw_art_method *m = s->first_method; m; m = m->next)
		*method_slot(s, m->id) = m;
	return true;
}

/* NULL: at the limit (reported), or out of memory. */
static struct tw_art_method *method_of(struct tw_art *s, uint64_t id, uint64_t offset)
{
	struct tw_art_method **slot = method_slot(s, id);
	struct tw_art_method *m;

	if (*slot)
		return *slot;
	if (s->n_methods >= s->limits.max_methods) {
		tw_art_repair(s, TW_REPAIR_slice_limit, offset);
		return NULL;
	}
	m = widen_methods(s) ? tw_arena_zalloc(s->arena, 1, sizeof *m) : NULL;
	if (!m) {
		s->no_memory = true;
		return NULL;
	}
	m->id = id;
	*method_slot(s, id) = m;
	*s->last_method = m;
	s->last_method = &m->next;
	s->n_methods++;
	return m;
}

bool tw_art_knows(const struct tw_art *s, uint64_t method)
{
	const struct tw_art_method *m = *method_slot(s, method);

	return m && m->name.ptr;
}

struct tw_art_method *tw_art_unnamed(struct tw_art *s, uint64_t id, uint64_t offset)
{
	struct tw_art_method *m = method_of(s, id, offset);

	return m && !m->name.ptr ? m : NULL;
}

void tw_art_name_method(
        struct tw_art *s, struct tw_art_method *m, struct tw_str name, uint64_t offset)
{
	if (name.len > s->limits.max_name_bytes) {
		tw_art_repair(s, TW_REPAIR_name_cut, offset);
		name.len = s->limits.max_name_bytes;
	}
	m->name = name;
	s->n_named++;
	if (m->sym)
		s->sink->ops->method_name(s->sink, m->id, name);
}

/* A method's first use: only methods in use are passed to the sink. */
static uint32_t first_use(struct tw_art *s, struct tw_art_method *m, uint64_t offset)
{
	m->sym = s->sink->ops->method(s->sink, m->id);
	m->offset = offset;
	if (m->sym && m->name.ptr)
		s->sink->ops->method_name(s->sink, m->id, m->name);
	return m->sym;
}

/* --- samples or calls --- */

/* The interval of samples, TW_INTERVAL_NONE for a single one; 0: every call was recorded. */
static int64_t interval_of(struct tw_art *s)
{
	unsigned n = s->n_gaps < GAPS_FIFTH ? 1 : s->n_gaps / GAPS_FIFTH;
	bool few = s->n_gaps < GAPS_ENOUGH;
	int64_t sum = 0;

	if (s->unrolled || s->form == TW_ART_FORM_COUNTS || (few && s->first_enters < STACK_ENTERS))
		return 0;
	if (s->n_gaps == 0)
		return TW_INTERVAL_NONE;
	TW_SORT(s->gaps, s->n_gaps, tw_by_i64);
	for (unsigned i = 0; i < n; i++)
		sum += s->gaps[i] / n;
	return sum >= SAMPLED_FROM_NS ? sum : 0;
}

/* The first batch contains all gaps examined, so the decision is made before any event is emitted.
 * A sampler starts from an empty stack: an exit without an enter is then not a call from before the
 * recording, and adopts no calls. */
static void decide_source(struct tw_art *s)
{
	if (!s->source_decided)
		s->interval_ns = interval_of(s);
	s->source_decided = true;
	if (s->interval_ns == 0)
		return;
	for (unsigned i = 0; i < s->n_batch; i++)
		if (s->batch[i].kind == TW_EV_END_EARLIER)
			s->batch[i].kind = TW_EV_END;
}

static enum tw_status flush(struct tw_art *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	decide_source(s);
	if (s->n_batch)
		st = s->sink->ops->events(s->sink, s->batch, s->n_batch, err);
	s->n_batch = 0;
	return st;
}

/* --- events --- */

static uint32_t track_of(struct tw_art *s, struct tw_art_thread *t)
{
	enum tw_tid_kind kind = s->version == 2 || s->version == 3 ? TW_TID_LOW16 : TW_TID_FULL;

	if (!t->track) {
		t->track = s->sink->ops->track(s->sink, 0, t->tid, kind);
		if (t->track && s->form == TW_ART_FORM_COUNTS)
			s->sink->ops->source(s->sink, t->track, TW_SOURCE_COUNTS, 0);
	}
	return t->track;
}

/* The symbol of a call's method.  0: at a limit (reported), or out of memory. */
static uint32_t symbol_of(struct tw_art *s, const struct tw_art_call *call)
{
	struct tw_art_symbol *known = tw_art_symbol_of(s, call->method);
	struct tw_art_method *m;

	if (known->sym && known->id_plus_1 == call->method + 1)
		return known->sym;
	m = method_of(s, call->method, call->offset);
	if (!m || (!m->sym && !first_use(s, m, call->offset)))
		return 0;
	*known = (struct tw_art_symbol){m->id + 1, m->sym};
	return m->sym;
}

static void examine_gap(struct tw_art *s, struct tw_art_thread *t, const struct tw_art_call *call)
{
	s->unrolled |= call->action == TW_ART_UNROLL;
	s->n_examined++;
	if (t->seen && call->ts_ns > t->last_ns) {
		s->gaps[s->n_gaps++] = call->ts_ns - t->last_ns;
		t->had_gap = true;
	}
	t->first_enters += !t->had_gap && call->action == TW_ART_ENTER;
	if (t->first_enters > s->first_enters)
		s->first_enters = t->first_enters;
}

/* Keeps the times of a thread from falling. */
static void clamp(struct tw_art *s, struct tw_art_thread *t, struct tw_art_call *call)
{
	if (t->seen && (call->ts_ns < t->last_ns ||
	                       (call->cpu_ns >= 0 && call->cpu_ns < t->last_cpu_ns))) {
		tw_art_repair(s, TW_REPAIR_time_fell, call->offset);
		if (call->ts_ns < t->last_ns)
			call->ts_ns = t->last_ns;
		if (call->cpu_ns >= 0 && call->cpu_ns < t->last_cpu_ns)
			call->cpu_ns = t->last_cpu_ns;
	}
	t->seen = true;
	t->last_ns = call->ts_ns;
	if (call->cpu_ns >= 0)
		t->last_cpu_ns = call->cpu_ns;
}

static enum tw_status note_unroll(struct tw_art *s, const struct tw_event *ev,
        const struct tw_art_call *call, struct tw_err *err)
{
	const struct tw_art_method *m = call->named ? *method_slot(s, call->method) : NULL;
	struct tw_str name = m && m->name.ptr ? m->name : TW_STR("");
	struct tw_note note = {.kind = TW_NOTE_unroll,
	        .track = ev->track,
	        .ts_ns = ev->ts_ns,
	        .dur_ns = -1,
	        .offset = ev->offset,
	        .text = tw_str_split(&name, '('), /* without its signature */
	        .detail = TW_STR("")};

	return s->sink->ops->note(s->sink, &note, err);
}

enum tw_status tw_art_event(
        struct tw_art *s, struct tw_art_thread *t, struct tw_art_call *call, struct tw_err *err)
{
	struct tw_event *ev = &s->batch[s->n_batch];
	uint32_t sym = 0;

	s->events++; /* a readable record, even if dropped at a limit */
	if (call->named) {
		sym = symbol_of(s, call);
		if (sym == 0)
			return s->no_memory ? tw_oom(err) : TW_OK;
	}
	if (s->n_examined < TW_ART_GAPS)
		examine_gap(s, t, call);
	clamp(s, t, call);
	ev->kind = call->action == TW_ART_ENTER ? TW_EV_BEGIN : TW_EV_END_EARLIER;
	ev->any_order = false;
	ev->ts_ns = call->ts_ns;
	ev->dur_ns = s->unit_ns;
	ev->cpu_ns = call->cpu_ns;
	ev->offset = call->offset;
	ev->sym = sym;
	ev->track = t->track ? t->track : track_of(s, t);
	if (ev->track == 0)
		return TW_OK; /* at a limit, which the sink counts */
	if (call->action == TW_ART_UNROLL) {
		enum tw_status st = note_unroll(s, ev, call, err);

		if (st != TW_OK)
			return st;
	}
	return ++s->n_batch == TW_ART_BATCH ? flush(s, err) : TW_OK;
}

enum tw_status tw_art_edges(struct tw_art *s, struct tw_edge_batch *edges, struct tw_err *err)
{
	enum tw_status st = flush(s, err);

	edges->end = s->interval_ns ? TW_EV_END : TW_EV_END_EARLIER;
	if (st != TW_OK || s->sink->ops->edges)
		return st == TW_OK ? s->sink->ops->edges(s->sink, edges, err) : st;
	for (size_t i = 0; i < edges->n; i++)
		s->batch[i] = tw_edge_batch_event(edges, i);
	s->n_batch = (unsigned)edges->n;
	return flush(s, err);
}

/* --- the end --- */

static enum tw_status end_thread(
        struct tw_art *s, const struct tw_art_thread *t, struct tw_err *err)
{
	/* The thread's own last time, if threads have separate clocks or were lost one by one. */
	bool alone = s->overflow || s->clock == TW_ART_CLOCK_CPU || s->form == TW_ART_FORM_COUNTS;

	if (!alone || !t->track)
		return TW_OK;
	s->batch[s->n_batch] = (struct tw_event){.kind = TW_EV_END_ALL,
	        .ts_ns = t->last_ns,
	        .cpu_ns = t->last_cpu_ns,
	        .offset = s->offset,
	        .track = t->track};
	return ++s->n_batch == TW_ART_BATCH ? flush(s, err) : TW_OK;
}

static void name_by_number(struct tw_art *s, const struct tw_art_method *m)
{
	char name[32];
	int n = snprintf(name, sizeof name, "<unknown 0x%llx>", (unsigned long long)m->id);

	tw_art_repair(s, TW_REPAIR_method_unnamed, m->offset);
	s->sink->ops->method_name(s->sink, m->id, (struct tw_str){name, (size_t)n});
}

enum tw_status tw_art_table_finish(struct tw_art *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	decide_source(s);
	for (uint32_t i = 0; st == TW_OK && i < s->n_thread_slots; i++) {
		const struct tw_art_thread *t = s->threads[i];

		if (!t)
			continue;
		st = end_thread(s, t, err);
		if (t->track && s->pid)
			s->sink->ops->thread_process(s->sink, t->tid, s->pid);
		if (t->track && s->interval_ns)
			s->sink->ops->source(s->sink, t->track, TW_SOURCE_SAMPLES, s->interval_ns);
	}
	if (st == TW_OK)
		st = flush(s, err);
	for (const struct tw_art_method *m = s->first_method; m; m = m->next)
		if (m->sym && !m->name.ptr)
			name_by_number(s, m);
	return st;
}
