#include "decoder/formats/markers/markers.h"

#include <stdio.h>
#include <string.h>

#include "decoder/formats/markers/facts.h"

enum { FACT_TEXT_BYTES = 512, OPEN_FACTS_MAX = 2048, RENAMED_BYTES = 2048 };

/* A fact whose section is still open, as an END does not repeat the section's name. */
struct tw_open_fact {
	struct tw_open_fact *outer; /* of the thread, or the next free one */
	struct tw_note note;
	uint32_t depth;
	char text[FACT_TEXT_BYTES];
	char detail[TW_DETAIL_BYTES];
};

bool tw_markers_init(struct tw_markers *m, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink)
{
	m->sink = sink;
	m->arena = a;
	m->salt = m->spans.salt = limits->hash_salt;
	m->spans.arena = a;
	m->renamed = tw_arena_alloc(a, RENAMED_BYTES, 1);
	return m->renamed && tw_tids_init(&m->tids, a, limits, sink);
}

static void repair(struct tw_markers *m, enum tw_repair what, uint64_t offset)
{
	m->sink->ops->repair(m->sink, what, offset, 1);
}

static enum tw_status malformed(struct tw_markers *m, const struct tw_marker *marker)
{
	repair(m, TW_REPAIR_line_malformed, marker->offset);
	return TW_OK;
}

enum tw_status tw_markers_flush(struct tw_markers *m, struct tw_err *err)
{
	unsigned n = m->n_batch;

	m->n_batch = 0;
	return n ? m->sink->ops->events(m->sink, m->batch, n, err) : TW_OK;
}

enum tw_status tw_markers_note(struct tw_markers *m, const struct tw_note *note, struct tw_err *err)
{
	m->emitted++;
	return m->sink->ops->note(m->sink, note, err);
}

/* --- facts --- */

/* NULL: too many are open, or out of memory; the section is emitted anyway. */
static struct tw_open_fact *take_fact(struct tw_markers *m)
{
	struct tw_open_fact *f = m->free_facts;

	if (f) {
		m->free_facts = f->outer;
		return f;
	}
	if (m->n_facts >= OPEN_FACTS_MAX)
		return NULL;
	m->n_facts++;
	return tw_arena_alloc(m->arena, 1, sizeof *f);
}

static struct tw_str keep(char *to, size_t cap, struct tw_str s)
{
	size_t n = s.len < cap ? s.len : cap;

	if (n)
		memcpy(to, s.ptr, n);
	return (struct tw_str){to, n};
}

static enum tw_status emit_fact(struct tw_markers *m, const struct tw_marker *marker,
        struct tw_str name, struct tw_err *err)
{
	struct tw_fact fact;
	struct tw_note note;
	struct tw_open_fact *f;

	if (!tw_fact_of(name, &fact))
		return TW_OK;
	note = (struct tw_note){.kind = fact.kind,
	        .track = tw_tids_track(&m->tids, marker->by),
	        .ts_ns = marker->ts_ns,
	        .dur_ns = -1,
	        .value = fact.value,
	        .offset = marker->offset,
	        .text = fact.text,
	        .detail = fact.detail};
	if (fact.moment)
		return tw_markers_note(m, &note, err);
	f = take_fact(m);
	if (!f) {
		repair(m, TW_REPAIR_note_limit, marker->offset);
		return TW_OK;
	}
	note.text = keep(f->text, sizeof f->text, fact.text);
	note.detail = keep(f->detail, sizeof f->detail, fact.detail);
	f->note = note;
	f->depth = marker->by->depth;
	f->outer = marker->by->facts;
	marker->by->facts = f;
	return TW_OK;
}

static enum tw_status end_fact(
        struct tw_markers *m, struct tw_tid *by, int64_t end_ns, struct tw_err *err)
{
	struct tw_open_fact *f = by->facts;

	by->facts = f->outer;
	f->outer = m->free_facts;
	m->free_facts = f;
	f->note.dur_ns = end_ns > f->note.ts_ns ? end_ns - f->note.ts_ns : 0;
	return tw_markers_note(m, &f->note, err);
}

/* --- sections --- */

/* Inserts the name of a binder call's code if known; otherwise uses the same form without one. */
static struct tw_str with_binder_name(struct tw_markers *m, struct tw_str name)
{
	struct tw_str head;
	struct tw_str interface;
	struct tw_str called;
	uint64_t code;
	int n;

	if (!tw_fact_binder_draft(name, &head, &interface, &code))
		return name;
	called = m->sink->ops->transaction_name(m->sink, interface, code);
	if (called.len == 0)
		called = TW_STR("unknown");
	n = snprintf(m->renamed, RENAMED_BYTES, "%.*sbinder transact[%.*s:%.*s|%u]", (int)head.len,
	        head.ptr, (int)interface.len, interface.ptr, (int)called.len, called.ptr,
	        (unsigned)code);
	return n > 0 && n < RENAMED_BYTES ? (struct tw_str){m->renamed, (size_t)n} : name;
}

static void see(struct tw_markers *m, const struct tw_marker *marker)
{
	if (marker->ts_ns > m->last_ns)
		m->last_ns = marker->ts_ns;
}

uint32_t tw_markers_name(struct tw_markers *m, struct tw_str name)
{
	return m->sink->ops->name(m->sink, name.len ? name : TW_STR("[empty slice name]"));
}

enum tw_status tw_markers_begin(
        struct tw_markers *m, const struct tw_marker *marker, int64_t cpu_ns, struct tw_err *err)
{
	struct tw_event ev = {.kind = TW_EV_BEGIN,
	        .ts_ns = marker->ts_ns,
	        .cpu_ns = cpu_ns,
	        .offset = marker->offset};
	struct tw_str name = with_binder_name(m, marker->text);
	enum tw_status st;

	see(m, marker);
	ev.track = tw_tids_track(&m->tids, marker->by);
	marker->by->calls_of = m;
	ev.sym = marker->sym ? marker->sym : tw_markers_name(m, name);
	if (!ev.track || !ev.sym || marker->by->hidden) {
		marker->by->hidden++;
		return TW_OK;
	}
	marker->by->depth++;
	st = emit_fact(m, marker, name, err);
	return st == TW_OK ? tw_markers_event(m, &ev, err) : st;
}

enum tw_status tw_markers_end(
        struct tw_markers *m, const struct tw_marker *marker, int64_t cpu_ns, struct tw_err *err)
{
	struct tw_event ev = {.kind = TW_EV_END,
	        .ts_ns = marker->ts_ns,
	        .cpu_ns = cpu_ns,
	        .offset = marker->offset};
	struct tw_tid *by = marker->by;
	enum tw_status st = TW_OK;

	see(m, marker);
	if (by->hidden) {
		by->hidden--;
		return TW_OK;
	}
	if (by->depth == 0) {
		repair(m, TW_REPAIR_exit_without_enter, marker->offset);
		return TW_OK;
	}
	if (by->facts && by->facts->depth == by->depth)
		st = end_fact(m, by, marker->ts_ns, err);
	by->depth--;
	ev.track = by->track;
	return st == TW_OK ? tw_markers_event(m, &ev, err) : st;
}

/* --- spans --- */

static enum tw_status emit_span(
        struct tw_markers *m, const struct tw_span *s, int64_t end_ns, struct tw_err *err)
{
	struct tw_detail d;
	struct tw_note note = {.kind = TW_NOTE_async,
	        .track = s->sink_track,
	        .ts_ns = s->start_ns,
	        .dur_ns = end_ns > s->start_ns ? end_ns - s->start_ns : 0,
	        .value = s->key.cookie,
	        .offset = s->offset,
	        .text = s->key.name};

	d.len = 0;
	if (tw_pid_number(s->key.pid))
		tw_detail_int(&d, "pid", s->key.pid);
	tw_detail_str(&d, "track", s->key.track);
	note.detail = tw_detail_text(&d);
	return tw_markers_note(m, &note, err);
}

enum tw_status tw_markers_begin_span(struct tw_markers *m, const struct tw_marker *marker,
        const struct tw_span_key *key, struct tw_err *err)
{
	struct tw_span at = {.start_ns = marker->ts_ns, .offset = marker->offset};
	enum tw_span_outcome outcome;

	see(m, marker);
	at.sink_track = marker->by ? tw_tids_track(&m->tids, marker->by) : 0;
	outcome = tw_spans_begin(&m->spans, key, &at);
	if (outcome == TW_SPAN_NO_MEMORY)
		return tw_oom(err);
	if (outcome == TW_SPAN_FULL)
		repair(m, TW_REPAIR_note_limit, marker->offset);
	m->emitted++;
	return TW_OK;
}

enum tw_status tw_markers_end_span(struct tw_markers *m, const struct tw_marker *marker,
        const struct tw_span_key *key, struct tw_err *err)
{
	const struct tw_span *s = tw_spans_end(&m->spans, key);

	see(m, marker);
	if (!s) {
		repair(m, TW_REPAIR_exit_without_enter, marker->offset);
		return TW_OK;
	}
	return emit_span(m, s, marker->ts_ns, err);
}

/* --- the grammar --- */

/* Fields end at a bar or a NUL. */
static struct tw_str field(struct tw_str *rest)
{
	size_t n = 0;
	struct tw_str f = *rest;

	while (n < f.len && f.ptr[n] != '|' && f.ptr[n] != '\0')
		n++;
	*rest = tw_str_from(f, n < f.len ? n + 1 : n);
	f.len = n;
	return f;
}

static enum tw_status moment(struct tw_markers *m, const struct tw_marker *marker,
        struct tw_str text, struct tw_str detail, struct tw_err *err)
{
	return tw_markers_note(m,
	        &(struct tw_note){.kind = TW_NOTE_instant,
	                .track = tw_tids_track(&m->tids, marker->by),
	                .ts_ns = marker->ts_ns,
	                .dur_ns = -1,
	                .offset = marker->offset,
	                .text = text,
	                .detail = detail},
	        err);
}

static enum tw_status counter(struct tw_markers *m, const struct tw_marker *marker,
        const struct tw_span_key *key, struct tw_err *err)
{
	struct tw_detail d;

	d.len = 0;
	if (key->pid)
		tw_detail_int(&d, "pid", key->pid);
	return tw_markers_note(m,
	        &(struct tw_note){.kind = TW_NOTE_counter,
	                .ts_ns = marker->ts_ns,
	                .dur_ns = -1,
	                .value = key->cookie,
	                .offset = marker->offset,
	                .text = key->name,
	                .detail = tw_detail_text(&d)},
	        err);
}

/* "NAME|NUMBER" */
static bool name_and_number(struct tw_str rest, struct tw_span_key *key)
{
	key->name = field(&rest);
	return key->name.len && tw_str_i64(field(&rest), &key->cookie);
}

/* G: "TRACK|NAME|COOKIE"; H: that, or "TRACK|COOKIE" */
static bool on_track(struct tw_str rest, bool end, struct tw_span_key *key)
{
	struct tw_str cookie;

	key->track = field(&rest);
	key->name = field(&rest);
	cookie = field(&rest);
	if (end && cookie.len == 0)
		cookie = key->name;
	return key->track.len && (end || key->name.len) && tw_str_i64(cookie, &key->cookie);
}

static enum tw_status track_moment(struct tw_markers *m, const struct tw_marker *marker,
        struct tw_str rest, struct tw_err *err)
{
	struct tw_str track = field(&rest);
	struct tw_str name = field(&rest);
	struct tw_detail d;

	if (track.len == 0 || name.len == 0)
		return malformed(m, marker);
	d.len = 0;
	tw_detail_str(&d, "track", track);
	return moment(m, marker, name, tw_detail_text(&d), err);
}

/* Handles the part after "PHASE|PID|", of process `pid`. */
static enum tw_status emit_phase(struct tw_markers *m, const struct tw_marker *marker, uint32_t pid,
        struct tw_str rest, struct tw_err *err)
{
	struct tw_marker section = *marker;
	struct tw_span_key key = {.pid = pid};
	char phase = marker->text.ptr[0];

	switch (phase) {
	case 'B':
		tw_tids_marker_process(marker->by, pid);
		section.text = rest;
		return tw_markers_begin(m, &section, -1, err);
	case 'S':
	case 'F':
		if (!name_and_number(rest, &key))
			return malformed(m, marker);
		return phase == 'S' ? tw_markers_begin_span(m, marker, &key, err)
		                    : tw_markers_end_span(m, marker, &key, err);
	case 'G':
	case 'H':
		if (!on_track(rest, phase == 'H', &key))
			return malformed(m, marker);
		return phase == 'G' ? tw_markers_begin_span(m, marker, &key, err)
		                    : tw_markers_end_span(m, marker, &key, err);
	case 'C':
		return name_and_number(rest, &key) ? counter(m, marker, &key, err)
		                                   : malformed(m, marker);
	case 'I':
		rest = field(&rest);
		return rest.len ? moment(m, marker, rest, TW_STR(""), err) : malformed(m, marker);
	default:
		return track_moment(m, marker, rest, err);
	}
}

enum tw_status tw_markers_emit(
        struct tw_markers *m, const struct tw_marker *marker, struct tw_err *err)
{
	struct tw_marker clean = *marker;
	struct tw_str rest;
	struct tw_str phase;
	uint64_t pid;

	while (clean.text.len && (clean.text.ptr[clean.text.len - 1] == '\n' ||
	                                 clean.text.ptr[clean.text.len - 1] == '\0'))
		clean.text.len--;
	see(m, marker);
	rest = clean.text;
	phase = field(&rest);
	if (phase.len != 1 || !strchr("BESFCINGH", phase.ptr[0]))
		return clean.text.len ? moment(m, &clean, clean.text, TW_STR(""), err)
		                      : malformed(m, &clean);
	if (phase.ptr[0] == 'E') {
		if (tw_str_u64(field(&rest), UINT32_MAX, &pid))
			tw_tids_marker_process(marker->by, (uint32_t)pid);
		return tw_markers_end(m, &clean, -1, err);
	}
	if (!tw_str_u64(field(&rest), UINT32_MAX, &pid))
		return malformed(m, &clean);
	return emit_phase(m, &clean, (uint32_t)pid, rest, err);
}

enum tw_status tw_markers_finish(struct tw_markers *m, struct tw_err *err)
{
	enum tw_status st = tw_markers_flush(m, err);
	const struct tw_span *s;
	uint32_t at = 0;

	tw_tids_apply_markers(&m->tids);
	for (uint32_t i = 0; i < m->tids.n; i++)
		while (st == TW_OK && m->tids.list[i].facts)
			st = end_fact(m, &m->tids.list[i], m->last_ns, err);
	while (st == TW_OK && (s = tw_spans_next_open(&m->spans, &at))) {
		repair(m, TW_REPAIR_enter_without_exit, s->offset);
		st = emit_span(m, s, m->last_ns, err);
	}
	return st;
}
