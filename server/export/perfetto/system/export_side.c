/*
 * export_side.c - see the header.
 *
 * Times are readings of the file's clock, not steps, so a span's end may be written right after
 * its begin: Perfetto sorts events, and no span is held back until it ends. Spans of one track
 * must nest. Others are put on a further track of the same name. A span that fits on none of
 * LEVELS tracks is truncated to the enclosing span and counted.
 */
#include "server/export/perfetto/export_calls.h"

#include <stdlib.h>

#include "decoder/base/order.h"

enum { BATCH = 512, LEVELS = 4, DEPTH = 16, MAX_COUNTERS = 4096, TEXT_BYTES = 1024 };

enum group { LOCKS, EVENTS, STATES, ANR, SCENARIO, GROUPS };

static const char *const group_names[GROUPS] = {"locks", "events", "states", "ANR", "scenario"};

enum shape { OMITTED, SPAN, COUNTER };

/* Thread states are exported only if the file has no device's trace, which has them. Wake-ups are
 * visible as the ends of states. The other omitted kinds describe calls that are exported. */
static const struct {
	enum shape shape;
	enum group group;
	bool of_call; /* if the thread has calls, the event is one of them */
} rules[TW_NOTE_COUNT] = {
        [TW_NOTE_instant] = {SPAN, EVENTS, false},
        [TW_NOTE_async] = {SPAN, EVENTS, false},
        [TW_NOTE_counter] = {COUNTER, EVENTS, false},
        [TW_NOTE_state] = {SPAN, STATES, false},
        [TW_NOTE_contention] = {SPAN, LOCKS, false},
        [TW_NOTE_wait] = {SPAN, LOCKS, false},
        [TW_NOTE_notify] = {SPAN, LOCKS, false},
        [TW_NOTE_park] = {SPAN, LOCKS, false},
        [TW_NOTE_unpark] = {SPAN, LOCKS, false},
        [TW_NOTE_thread_created] = {SPAN, EVENTS, false},
        [TW_NOTE_gc] = {SPAN, EVENTS, false},
        [TW_NOTE_class_load] = {SPAN, EVENTS, true},
        [TW_NOTE_io] = {SPAN, EVENTS, true},
        [TW_NOTE_binder] = {SPAN, EVENTS, true},
        [TW_NOTE_render] = {SPAN, EVENTS, true},
        [TW_NOTE_message] = {SPAN, EVENTS, true},
        [TW_NOTE_section] = {SPAN, EVENTS, false},
        [TW_NOTE_anr] = {SPAN, ANR, false},
};

struct track_group {                 /* the tracks of one group of one thread, or of the process */
	int64_t ends[LEVELS][DEPTH]; /* ends of the open spans, outermost first */
	uint8_t depth[LEVELS];
	bool described[LEVELS];
};

struct tw_side {
	struct tw_export_trace *ours;
	bool has_system;
	const struct tw_thread_info *threads;
	uint32_t n_threads;
	const struct tw_thread_info **by_tid; /* rising */
	struct track_group **track_groups;    /* by thread_id * GROUPS + group; 0 the process */
	bool *described;                      /* by thread_id: described on this sequence */
	uint64_t counters[MAX_COUNTERS * 2];  /* hash set of described counter tracks */
	uint32_t n_counters;
	uint64_t after; /* id of the last note read */
	uint32_t step;
	bool begun, done;
	/* of the current batch */
	struct tw_buf *out;
	enum tw_status status;
	uint32_t n;
	struct tw_arena *scratch;
};

static const struct tw_thread_info *thread_of(const struct tw_side *s, uint32_t thread_id)
{
	return thread_id && thread_id <= s->n_threads ? &s->threads[thread_id - 1] : NULL;
}

/* --- tracks --- */

static uint64_t parent_of(const struct tw_side *s, const struct tw_thread_info *t)
{
	bool known;

	return t ? tw_export_trace_thread_uuid(s->ours, t, &known)
	         : tw_export_trace_process_uuid(s->ours, tw_export_trace_pid(s->ours, NULL));
}

static uint64_t track_of(
        const struct tw_side *s, uint32_t thread_id, enum group group, unsigned level)
{
	return tw_track_uuid(s->ours->salt, TW_TRACK_SIDE, s->ours->number,
	        ((uint64_t)thread_id * GROUPS + group) * LEVELS + level);
}

/* Describes the thread at its first known event: before, its id may have belonged to another
 * thread. */
static enum tw_status describe_thread(
        struct tw_side *s, const struct tw_thread_info *t, int64_t ts_ns, int64_t at_ns)
{
	uint32_t step = 0;

	if (!t || s->described[t->thread_id])
		return TW_OK;
	s->described[t->thread_id] = true;
	if (t->slices && t->start_ns < ts_ns)
		at_ns = tw_export_trace_time(s->ours, &step, t->start_ns);
	return tw_export_trace_put_thread(s->ours, s->out, s->ours->side_seq, at_ns, t);
}

static enum tw_status describe_track(
        struct tw_side *s, uint32_t thread_id, enum group group, unsigned level, int64_t at_ns)
{
	const uint64_t uuids[] = {
	        track_of(s, thread_id, group, level), parent_of(s, thread_of(s, thread_id))};

	return tw_track_put_child(
	        s->out, s->ours->side_seq, at_ns, uuids, group_names[group], NULL);
}

/* Finds or creates the track on which a span fits. If it fits on none, *end_ns is reduced. */
static enum tw_status find_level(struct tw_side *s, struct track_group *k, int64_t ts_ns,
        int64_t *end_ns, unsigned *ret_level)
{
	for (unsigned i = 0; i < LEVELS; i++) {
		while (k->depth[i] && k->ends[i][k->depth[i] - 1] <= ts_ns)
			k->depth[i]--;
		if (k->depth[i] && (k->depth[i] == DEPTH || k->ends[i][k->depth[i] - 1] < *end_ns))
			continue;
		k->ends[i][k->depth[i]++] = *end_ns;
		*ret_level = i;
		return TW_OK;
	}
	s->ours->sides_left++;
	if (k->ends[0][k->depth[0] - 1] < *end_ns)
		*end_ns = k->ends[0][k->depth[0] - 1];
	*ret_level = 0;
	return TW_OK;
}

static struct track_group *track_group_of(struct tw_side *s, uint32_t thread_id, enum group group)
{
	struct track_group **k = &s->track_groups[thread_id * GROUPS + group];

	if (!*k)
		*k = tw_arena_zalloc(s->ours->arena, 1, sizeof **k);
	return *k;
}

/* --- events --- */

struct track_event { /* an event on a track */
	uint32_t thread_id;
	enum group group;
	int64_t ts_ns, end_ns; /* in trace time; equal: an instant */
	char *name;
	uint64_t flow; /* flow that begins here, or ends if flow_ends */
	bool flow_ends;
	const char *detail_name; /* NULL: no detail */
	char *detail;
};

static enum tw_status put_event(
        struct tw_side *s, int64_t ts_ns, uint64_t track, int type, const struct track_event *m)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__TrackEvent e = TW_PERFETTO__TRACK_EVENT__INIT;
	TwPerfetto__DebugAnnotation note = TW_PERFETTO__DEBUG_ANNOTATION__INIT;
	TwPerfetto__DebugAnnotation *notes[] = {&note};
	uint64_t flow = m ? m->flow : 0;

	e.has_type = e.has_track_uuid = 1;
	e.type = type;
	e.track_uuid = track;
	if (m) {
		e.name = m->name;
		e.n_flow_ids = flow && !m->flow_ends;
		e.n_terminating_flow_ids = flow && m->flow_ends;
		e.flow_ids = e.terminating_flow_ids = &flow;
		if (m->detail_name) {
			note.name = (char *)(uintptr_t)m->detail_name;
			note.string_value = m->detail;
			e.n_debug_annotations = 1;
			e.debug_annotations = notes;
		}
	}
	p.has_trusted_packet_sequence_id = p.has_timestamp = 1;
	p.trusted_packet_sequence_id = s->ours->side_seq;
	p.timestamp = (uint64_t)ts_ns;
	p.track_event = &e;
	return tw_track_put(s->out, &p);
}

static enum tw_status put_spanning(struct tw_side *s, const struct track_event *m)
{
	struct track_group *k = track_group_of(s, m->thread_id, m->group);
	bool moment = m->end_ns <= m->ts_ns;
	int64_t begin = tw_export_trace_time(s->ours, &s->step, m->ts_ns);
	int64_t end = moment ? begin : tw_export_trace_time(s->ours, &s->step, m->end_ns);
	unsigned level = 0;
	enum tw_status st = k ? TW_OK : TW_NOMEM;

	if (st == TW_OK && !moment)
		st = find_level(s, k, begin, &end, &level);
	if (st == TW_OK)
		st = describe_thread(s, thread_of(s, m->thread_id), m->ts_ns, begin);
	if (st == TW_OK && !k->described[level])
		st = describe_track(s, m->thread_id, m->group, level, begin);
	if (st != TW_OK)
		return st;
	k->described[level] = true;
	st = put_event(s, begin, track_of(s, m->thread_id, m->group, level),
	        moment ? TW_TRACK_INSTANT : TW_TRACK_BEGIN, m);
	if (st == TW_OK && !moment)
		st = put_event(
		        s, end, track_of(s, m->thread_id, m->group, level), TW_TRACK_END, NULL);
	return st;
}

/* --- counters --- */

/* ret_new: first use of this counter. False: too many counters. */
static bool know_counter(struct tw_side *s, uint64_t uuid, bool *ret_new)
{
	uint32_t at = (uint32_t)uuid % (MAX_COUNTERS * 2);

	while (s->counters[at] && s->counters[at] != uuid)
		at = (at + 1) % (MAX_COUNTERS * 2);
	*ret_new = s->counters[at] == 0;
	if (*ret_new && s->n_counters == MAX_COUNTERS)
		return false;
	s->n_counters += *ret_new;
	s->counters[at] = uuid;
	return true;
}

static enum tw_status put_count(struct tw_side *s, const struct tw_note_row *n, char *name)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__TrackEvent e = TW_PERFETTO__TRACK_EVENT__INIT;
	uint32_t pid = tw_export_trace_pid(s->ours, thread_of(s, n->thread_id));
	int64_t now = tw_export_trace_time(s->ours, &s->step, n->ts_ns);
	uint64_t uuids[2] = {tw_track_mix(pid), tw_export_trace_process_uuid(s->ours, pid)};
	enum tw_status st = TW_OK;
	bool is_new;

	for (const char *c = name; *c; c++)
		uuids[0] = tw_track_mix(uuids[0] ^ (unsigned char)*c);
	uuids[0] = tw_track_uuid(s->ours->salt, TW_TRACK_COUNTER, s->ours->number, uuids[0]);
	if (!know_counter(s, uuids[0], &is_new)) {
		s->ours->sides_left++;
		return TW_OK;
	}
	if (is_new)
		st = tw_track_put_counter(s->out, s->ours->side_seq, now, uuids, name);
	if (st != TW_OK)
		return st;
	e.has_type = e.has_track_uuid = e.has_counter_value = 1;
	e.type = TW_TRACK_COUNT;
	e.track_uuid = uuids[0];
	e.counter_value = n->value;
	p.has_trusted_packet_sequence_id = p.has_timestamp = 1;
	p.trusted_packet_sequence_id = s->ours->side_seq;
	p.timestamp = (uint64_t)now;
	p.track_event = &e;
	return tw_track_put(s->out, &p);
}

/* --- flows --- */

static const struct tw_thread_info *find_tid(const struct tw_side *s, int64_t tid)
{
	uint32_t at;

	TW_BISECT(at, s->n_threads, s->by_tid[at]->tid < (uint64_t)tid);
	return tid > 0 && at < s->n_threads && s->by_tid[at]->tid == (uint64_t)tid ? s->by_tid[at]
	                                                                           : NULL;
}

TW_ORDER_BY(by_tid, struct tw_thread_info *, TW_ORDER((*a)->tid, (*b)->tid))

static uint64_t flow_of(const struct tw_side *s, const struct tw_note_row *n)
{
	uint64_t what = (uint64_t)n->kind << 32 ^ n->thread_id;

	return tw_track_uuid(s->ours->salt, TW_TRACK_FLOW, s->ours->number,
	        tw_track_mix((uint64_t)n->ts_ns) ^ what ^ tw_track_mix((uint64_t)n->value));
}

static char *name_or_id(struct tw_side *s, const struct tw_thread_info *t)
{
	char *name = t->name.len ? tw_track_text(s->scratch, t->name) : NULL;

	return name ? tw_arena_printf(s->scratch, "%.200s (%llu)", name, (unsigned long long)t->tid)
	            : tw_arena_printf(s->scratch, "thread %llu", (unsigned long long)t->tid);
}

/* The other end of a wait for a lock, a moment later: Perfetto derives a flow's direction from
 * times. */
static enum tw_status put_holder(
        struct tw_side *s, const struct track_event *waiter, const struct tw_thread_info *holder)
{
	const struct tw_thread_info *t = thread_of(s, waiter->thread_id);
	char *who = t ? name_or_id(s, t) : NULL;
	struct track_event m = {.thread_id = holder->thread_id,
	        .group = LOCKS,
	        .ts_ns = waiter->ts_ns + (waiter->end_ns > waiter->ts_ns),
	        .flow = waiter->flow,
	        .flow_ends = true};

	m.end_ns = m.ts_ns;
	m.name = who ? tw_arena_printf(s->scratch, "holds what %s waits for", who) : NULL;
	return m.name ? put_spanning(s, &m) : TW_NOMEM;
}

/* Begins the flow from the creation of a thread to its first call. */
static void start_flow(struct tw_side *s, const struct tw_note_row *n, struct track_event *m)
{
	const struct tw_thread_info *t = find_tid(s, n->value);

	if (!t || t->slices == 0 || t->start_ns < n->ts_ns || t->start_ns < s->ours->sel.from_ns ||
	        t->start_ns >= s->ours->sel.to_ns || !tw_selection_has(&s->ours->sel, t))
		return;
	m->flow = flow_of(s, n);
	s->ours->flows[t->thread_id - 1] = m->flow;
}

/* --- notes --- */

static char *event_name(struct tw_side *s, const struct tw_note_row *n, const char *text)
{
	const char *kind = tw_note_info(n->kind)->name;

	if (n->kind == TW_NOTE_contention)
		return tw_arena_printf(s->scratch, "waits for lock%s%s", *text ? " " : "", text);
	if (n->kind == TW_NOTE_thread_created)
		return tw_arena_printf(s->scratch, "starts %s (%lld)", *text ? text : "thread",
		        (long long)n->value);
	if (n->kind == TW_NOTE_anr)
		return tw_arena_printf(s->scratch, "ANR%s%s", *text ? ": " : "", text);
	if (n->kind != TW_NOTE_instant && n->kind != TW_NOTE_async && n->kind != TW_NOTE_section &&
	        n->kind != TW_NOTE_state)
		return tw_arena_printf(s->scratch, "%s%s%s", kind, *text ? ": " : "", text);
	return tw_arena_printf(s->scratch, "%s", *text ? text : kind);
}

/* Truncates texts to the displayed length of names. */
static bool make_event(struct tw_side *s, const struct tw_note_row *n, struct track_event *ret)
{
	const struct tw_selection *sel = &s->ours->sel;
	int64_t end = n->dur_ns > 0 ? n->ts_ns + n->dur_ns : n->ts_ns;
	struct tw_str cut = {n->text.ptr, n->text.len < TEXT_BYTES ? n->text.len : TEXT_BYTES};
	char *text = tw_track_text(s->scratch, cut);

	*ret = (struct track_event){.thread_id = thread_of(s, n->thread_id) ? n->thread_id : 0,
	        .group = rules[n->kind].group,
	        .ts_ns = n->ts_ns > sel->from_ns ? n->ts_ns : sel->from_ns,
	        .end_ns = end < sel->to_ns ? end : sel->to_ns};
	if (!text)
		return false;
	ret->name = event_name(s, n, text);
	if (n->detail.len) {
		ret->detail_name = "detail";
		ret->detail = tw_track_text(s->scratch, n->detail);
	}
	return ret->name && (!ret->detail_name || ret->detail);
}

/* The holder of the lock that a thread waits for, if it is another exported thread. */
static const struct tw_thread_info *holder_of(
        const struct tw_side *s, const struct tw_note_row *n, const struct track_event *m)
{
	const struct tw_thread_info *t =
	        n->kind == TW_NOTE_contention ? find_tid(s, n->value) : NULL;

	if (!t || m->thread_id == 0 || t->thread_id == m->thread_id ||
	        !tw_selection_has(&s->ours->sel, t))
		return NULL;
	return t;
}

static enum tw_status put_note(struct tw_side *s, const struct tw_note_row *n)
{
	const struct tw_thread_info *holder;
	struct track_event m;
	enum tw_status st;

	if (!make_event(s, n, &m))
		return TW_NOMEM;
	if (n->kind == TW_NOTE_thread_created)
		start_flow(s, n, &m);
	holder = holder_of(s, n, &m);
	if (holder)
		m.flow = flow_of(s, n);
	st = put_spanning(s, &m);
	return st == TW_OK && holder ? put_holder(s, &m, holder) : st;
}

static bool is_exported(const struct tw_side *s, const struct tw_note_row *n)
{
	const struct tw_thread_info *t = thread_of(s, n->thread_id);

	if (rules[n->kind].shape == OMITTED)
		return false;
	if (t && !tw_selection_has(&s->ours->sel, t))
		return false;
	if (rules[n->kind].of_call && t && t->slices && t->source == TW_SOURCE_CALLS)
		return false;
	if (n->kind == TW_NOTE_state && !t)
		return false;
	return !(s->has_system && (n->from_system || n->kind == TW_NOTE_state));
}

static bool each_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct tw_side *s = arg;
	char *name;

	s->after = id;
	s->n++;
	if (!is_exported(s, n))
		return true;
	if (rules[n->kind].shape == COUNTER) {
		name = tw_track_text(s->scratch, n->text);
		if (!name)
			s->status = TW_NOMEM;
		else if (*name && n->ts_ns >= s->ours->sel.from_ns)
			s->status = put_count(s, n, name);
	} else {
		s->status = put_note(s, n);
	}
	tw_arena_reset(s->scratch);
	return s->status == TW_OK;
}

/* --- the process, the scenario --- */

static enum tw_status put_process(struct tw_side *s, uint32_t pid, const char *name)
{
	const struct tw_export_trace *o = s->ours;
	uint64_t uuid = tw_export_trace_process_uuid(o, pid);
	const struct tw_trace_info *i = tw_trace_file_info(o->file);
	uint32_t step = 0;
	char *full = tw_arena_printf(o->arena, "%s%s", o->prefix, name);

	if (!full)
		return TW_NOMEM;
	if (!pid || uuid != tw_track_uuid(o->salt, TW_TRACK_PROCESS, o->machine, pid))
		return TW_OK; /* the device's trace describes it */
	return tw_track_put_process(s->out, o->side_seq,
	        tw_export_trace_time(o, &step, i->start_ns), uuid, (int32_t)(pid + o->pid_shift),
	        full);
}

/* The trace's own process is described by its facts, others by their names in the trace. */
static enum tw_status put_processes(struct tw_side *s)
{
	const struct tw_export_trace *o = s->ours;
	uint32_t own = tw_export_trace_pid(o, NULL);
	struct tw_trace_process *list;
	struct tw_err err;
	uint32_t n;
	enum tw_status st = tw_trace_processes(o->file, o->arena, &list, &n, &err);

	if (st == TW_OK)
		st = put_process(s, own, o->facts.process[0] ? o->facts.process : o->facts.app);
	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		char *name = tw_track_text(o->arena, list[i].name);

		if (!name)
			return TW_NOMEM;
		if (list[i].pid != own)
			st = put_process(s, list[i].pid, name);
	}
	return st;
}

static enum tw_status put_scenario(struct tw_side *s)
{
	const struct tw_trace_info *i = tw_trace_file_info(s->ours->file);
	const struct tw_selection *sel = &s->ours->sel;
	struct track_event m = {.group = SCENARIO,
	        .ts_ns = i->start_ns > sel->from_ns ? i->start_ns : sel->from_ns,
	        .end_ns = i->end_ns < sel->to_ns ? i->end_ns : sel->to_ns};

	if (!s->ours->facts.scenario[0] || m.end_ns <= m.ts_ns)
		return TW_OK;
	m.name = (char *)(uintptr_t)s->ours->facts.scenario;
	return put_spanning(s, &m);
}

static enum tw_status begin(struct tw_side *s)
{
	const struct tw_track_sequence q = {.seq = s->ours->side_seq, .clock = s->ours->sync.clock};
	enum tw_status st = tw_track_put_sequence(s->out, &q);

	s->begun = true;
	if (st == TW_OK)
		st = put_processes(s);
	return st == TW_OK ? put_scenario(s) : st;
}

enum tw_status tw_side_step(
        struct tw_side *s, struct tw_buf *out, bool *ret_done, struct tw_err *err)
{
	const struct tw_note_query q = {.kind = TW_NOTE_COUNT,
	        .from_ns = s->ours->sel.from_ns,
	        .to_ns = s->ours->sel.to_ns,
	        .after = s->after,
	        .limit = BATCH};
	enum tw_status st = TW_OK;

	s->out = out;
	if (!s->begun)
		s->status = begin(s);
	else {
		s->n = 0;
		st = tw_trace_file_notes(s->ours->file, &q, each_note, s, err);
		s->done = s->n < BATCH;
	}
	if (st == TW_OK && s->status != TW_OK)
		st = tw_oom(err);
	*ret_done = s->done;
	return st;
}

enum tw_status tw_side_new(
        struct tw_export_trace *o, bool has_system, struct tw_side **ret, struct tw_err *err)
{
	struct tw_side *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return tw_oom(err);
	s->ours = o;
	s->has_system = has_system;
	s->threads = tw_trace_file_threads(o->file, &s->n_threads);
	s->scratch = tw_arena_new(4 << 20);
	s->by_tid = tw_arena_alloc(o->arena, (size_t)s->n_threads + 1, sizeof(void *));
	s->track_groups =
	        tw_arena_zalloc(o->arena, ((size_t)s->n_threads + 1) * GROUPS, sizeof(void *));
	s->described = tw_arena_zalloc(o->arena, (size_t)s->n_threads + 1, sizeof *s->described);
	o->flows = tw_arena_zalloc(o->arena, (size_t)s->n_threads + 1, sizeof *o->flows);
	if (!s->scratch || !s->by_tid || !s->track_groups || !s->described || !o->flows) {
		tw_side_free(s);
		return tw_oom(err);
	}
	for (uint32_t i = 0; i < s->n_threads; i++)
		s->by_tid[i] = &s->threads[i];
	qsort(s->by_tid, s->n_threads, sizeof(void *), by_tid);
	*ret = s;
	return TW_OK;
}

struct tw_side *tw_side_free(struct tw_side *s)
{
	if (s) {
		tw_arena_free(s->scratch);
		tw_mem_free(s);
	}
	return NULL;
}
