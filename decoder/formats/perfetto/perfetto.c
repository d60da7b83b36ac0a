/*
 * perfetto.c - Perfetto's traces: of the device, of Android's ProfilingManager, of our own exports.
 *
 * Each packet (perfetto_packets.h) belongs to a sequence, which has its own interned names,
 * defaults and clocks until it clears its state.  These are read: clock snapshots, processes and
 * threads, the kernel's scheduler events and markers (perfetto_ftrace.c), track events
 * (perfetto_tracks.h), stack samples (perfetto_stacks.c), display frames (perfetto_frames.c)
 * and the memory of processes, also in compressed packets.  Unknown fields and packets are skipped:
 * newer recorders write more.
 *
 * Damage costs only the damaged packet.  After a packet dropped by the recorder, the sequence's
 * packets that depend on its state are dropped until it clears its state.
 */
#include <stdio.h>

#include "decoder/base/unzip.h"
#include "decoder/formats/detail.h"
#include "decoder/formats/format.h"
#include "decoder/formats/markers/flows.h"
#include "decoder/formats/perfetto/perfetto_packet.h"
#include "decoder/formats/perfetto/perfetto_packets.h"
#include "decoder/formats/perfetto/perfetto_parts.h"
#include "decoder/formats/perfetto/perfetto_tracks.h"

enum { UNPACK_BYTES = 4 << 20, ASYNC_TRACK_BYTES = 256 };

struct perfetto {
	struct tw_sink *sink;
	struct tw_limits limits;
	struct tw_perfetto_packets packets, inner;
	uint64_t inner_offset; /* of the compressed packet */
	uint64_t unpacked;
	bool inside;
	struct tw_perfetto_clocks clocks;
	struct tw_perfetto_intern texts;
	struct tw_markers markers;
	struct tw_perfetto_tracks tracks;
	struct tw_flows flows;
	struct tw_perfetto_ftrace ftrace;
	struct tw_perfetto_stacks stacks;
	struct tw_perfetto_frames frames;
	struct tw_perfetto_sequences sequences;
	uint64_t n_packets;
	uint64_t n_profiles; /* of heaps, which are not read */
};

static const struct {
	uint32_t field; /* of ProcessStats.Process */
	const char *name;
} counters[] = {{3, "resident kB"}, {7, "swapped kB"}, {10, "oom score"}};
enum { COUNTERS = sizeof counters / sizeof *counters, MAX_FIELD = 10 };

static enum tw_status emit_process(struct tw_markers *m, struct tw_pb message, int64_t ts_ns,
        uint64_t offset, struct tw_err *err)
{
	int64_t value[MAX_FIELD + 1] = {0};
	bool has[MAX_FIELD + 1] = {false};
	enum tw_status st = TW_OK;
	struct tw_pb_field f;
	struct tw_detail d;

	while (tw_pb_next(&message, &f))
		if (f.number <= MAX_FIELD && f.type == TW_PB_VARINT) {
			value[f.number] = (int64_t)f.value;
			has[f.number] = true;
		}
	d.len = 0;
	tw_detail_int(&d, "pid", value[1]);
	for (unsigned i = 0; st == TW_OK && has[1] && i < COUNTERS; i++) {
		struct tw_note note = {.kind = TW_NOTE_counter,
		        .ts_ns = ts_ns,
		        .dur_ns = -1,
		        .value = value[counters[i].field],
		        .offset = offset,
		        .text = tw_str_of(counters[i].name),
		        .detail = tw_detail_text(&d)};

		if (has[counters[i].field])
			st = tw_markers_note(m, &note, err);
	}
	return st;
}

/* A ProcessStats: emits the counters present for each of its processes. */
static enum tw_status emit_stats(struct tw_markers *m, struct tw_pb message, int64_t ts_ns,
        uint64_t offset, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	struct tw_pb_field f;

	if (ts_ns > m->last_ns)
		m->last_ns = ts_ns;
	while (st == TW_OK && tw_pb_next(&message, &f))
		if (f.number == 1 && f.type == TW_PB_BYTES)
			st = emit_process(m, tw_pb_in(&f), ts_ns, offset, err);
	return st;
}

static void repair(struct perfetto *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, offset, 1);
}

static int probe(const uint8_t *head, size_t len)
{
	return tw_perfetto_packets_begin(head, len) ? 85 : 0;
}

/* --- packets --- */

static void read_defaults(struct perfetto *s, struct tw_perfetto_sequence *q, struct tw_pb message)
{
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f)) {
		struct tw_pb event = tw_pb_in(&f);
		struct tw_pb_field g;

		if (f.number == 58)
			q->clock = (uint32_t)f.value;
		else if (f.number == 12 && f.type == TW_PB_BYTES)
			tw_perfetto_stacks_defaults(&s->stacks, tw_pb_in(&f));
		while (f.number == 11 && tw_pb_next(&event, &g))
			if (g.number == 11) {
				q->track = g.value;
				q->has_track = true;
			}
	}
}

/* Applies the packet's changes of its sequence's state, before anything else is read. */
static enum tw_status update_sequence(struct perfetto *s, struct tw_perfetto_sequence *q,
        const struct tw_perfetto_packet *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (p->dropped && q->seen && !p->first)
		repair(s, TW_REPAIR_packet_dropped, p->offset);
	if (p->flags & TW_PERFETTO_STATE_CLEARED) {
		q->scope.generation++;
		q->lost = false;
		q->clock = 0;
		q->has_track = false;
	} else if (p->dropped && q->seen) {
		q->lost = true;
	}
	q->seen = true;
	if (p->defaults.number)
		read_defaults(s, q, tw_pb_in(&p->defaults));
	if (p->interned.number && !q->lost)
		st = tw_perfetto_stacks_intern(
		        &s->stacks, tw_pb_in(&p->interned), q->scope, p->offset, err);
	if (st == TW_OK && p->snapshot.number)
		st = tw_perfetto_clocks_snapshot(
		        &s->clocks, tw_pb_in(&p->snapshot), q->id ? q->own : NULL, err);
	return st;
}

/* --- times --- */

static bool to_event_time(
        struct perfetto *s, uint32_t clock, int64_t reading_ns, uint64_t offset, int64_t *ret_ns)
{
	if (!tw_perfetto_clocks_convert(&s->clocks, clock, reading_ns, ret_ns)) {
		repair(s, TW_REPAIR_clock_unknown, offset);
		return false;
	}
	if (s->clocks.trace_clock == 0)
		s->clocks.trace_clock = clock;
	*ret_ns = tw_perfetto_clocks_event(&s->clocks, *ret_ns, offset);
	return true;
}

/* Differences accumulate over all packets of the sequence, read or not. */
static bool time_of(struct perfetto *s, struct tw_perfetto_sequence *q, uint32_t clock,
        uint64_t time, uint64_t offset, int64_t *ret_ns)
{
	if (clock == 0)
		clock = s->clocks.trace_clock ? s->clocks.trace_clock : TW_PERFETTO_BOOTTIME;
	if (clock < 64 || clock > 127)
		return time <= INT64_MAX && to_event_time(s, clock, (int64_t)time, offset, ret_ns);
	if (!tw_perfetto_clocks_own(q->own, clock, time, ret_ns)) {
		repair(s, TW_REPAIR_clock_unknown, offset);
		return false;
	}
	*ret_ns = tw_perfetto_clocks_event(&s->clocks, *ret_ns, offset);
	return true;
}

/* Once, when the clock at time 0 is known. */
static void emit_clock(struct perfetto *s)
{
	if (!s->clocks.emitted && s->clocks.have_zero)
		tw_perfetto_clocks_emit(&s->clocks, 0);
}

/* --- track events --- */

/* Legacy sequences have their own times, in microseconds of MONOTONIC. */
static bool event_time(struct perfetto *s, struct tw_perfetto_sequence *q,
        const struct tw_perfetto_packet *p, const struct tw_perfetto_track_event *e, bool has_time,
        int64_t *ret_ns)
{
	int64_t us = e->absolute_us;

	if (has_time)
		return true;
	if (p->has_time || !q->tid || (!e->has_delta && !e->has_absolute))
		return false;
	if (e->has_delta) {
		if (__builtin_add_overflow(q->now_us, e->delta_us, &us))
			return false;
		q->now_us = us;
	}
	return !__builtin_mul_overflow(us, (int64_t)1000, &us) &&
	       to_event_time(s, TW_PERFETTO_MONOTONIC, us, p->offset, ret_ns);
}

static enum tw_status interned_name(struct perfetto *s, const struct tw_perfetto_sequence *q,
        uint64_t iid, uint64_t offset, uint32_t *ret, struct tw_err *err)
{
	uint64_t known;

	*ret = 0;
	if (iid == 0)
		return TW_OK;
	if (tw_perfetto_intern_get(&s->texts, q->scope, TW_PERFETTO_EVENT_NAME, iid, &known)) {
		*ret = (uint32_t)known;
		return TW_OK;
	}
	repair(s, TW_REPAIR_method_unnamed, offset);
	return tw_perfetto_intern_text(&s->texts, TW_STR("[unknown]"), offset, ret) ? TW_OK
	                                                                            : tw_oom(err);
}

static enum tw_status name_of(struct perfetto *s, const struct tw_perfetto_sequence *q,
        const struct tw_perfetto_track_event *e, uint64_t offset, uint32_t *ret, struct tw_err *err)
{
	if (e->name.len == 0)
		return interned_name(s, q, e->name_iid, offset, ret, err);
	return tw_perfetto_intern_text(&s->texts, e->name, offset, ret) ? TW_OK : tw_oom(err);
}

/* uuid: of the event, NULL if it has none.  Uuid 0 is the thread of the sequence, unless a
 * non-legacy event sets it itself. */
static enum tw_status track_by_uuid(struct perfetto *s, const struct tw_perfetto_sequence *q,
        const uint64_t *uuid, bool legacy, uint64_t offset, struct tw_perfetto_track **ret,
        struct tw_err *err)
{
	uint64_t id = uuid ? *uuid : q->has_track ? q->track : 0;
	bool of_thread = id == 0 && q->tid && (!uuid || legacy);

	if (of_thread)
		id = (uint64_t)q->pid << 32 | q->tid;
	return tw_perfetto_tracks_get(&s->tracks, id, of_thread, offset, ret, err);
}

static enum tw_status track_of(struct perfetto *s, const struct tw_perfetto_sequence *q,
        const struct tw_perfetto_track_event *e, uint64_t offset, struct tw_perfetto_track **ret,
        struct tw_err *err)
{
	uint32_t pid = e->legacy.pid ? e->legacy.pid : q->pid;

	if (e->legacy.tid)
		return tw_perfetto_tracks_get(
		        &s->tracks, (uint64_t)pid << 32 | e->legacy.tid, true, offset, ret, err);
	return track_by_uuid(s, q, e->has_track ? &e->track : NULL, !e->has_type, offset, ret, err);
}

static int64_t span_ns(int64_t us)
{
	return us >= 0 && us < INT64_MAX / 8000 ? us * 1000 : 0;
}

/* Category and scope of a legacy span, joined as in Perfetto. */
static struct tw_str async_track(struct perfetto *s, const struct tw_perfetto_sequence *q,
        const struct tw_perfetto_track_event *e, char text[ASYNC_TRACK_BYTES])
{
	struct tw_str scope = e->legacy.scope;
	struct tw_str category = e->category;
	uint64_t known;
	int n;

	if (category.len == 0 && e->category_iid &&
	        tw_perfetto_intern_get(
	                &s->texts, q->scope, TW_PERFETTO_CATEGORY, e->category_iid, &known))
		category = tw_perfetto_intern_str(&s->texts, (uint32_t)known);
	if (category.len == 0 || scope.len == 0)
		return category.len ? category : scope.len ? scope : TW_STR("async");
	n = snprintf(text, ASYNC_TRACK_BYTES, "%.*s:%.*s", (int)category.len, category.ptr,
	        (int)scope.len, scope.ptr);
	return (struct tw_str){
	        text, n < ASYNC_TRACK_BYTES ? (size_t)n : (size_t)ASYNC_TRACK_BYTES - 1};
}

/* Spans without a track: begun and ended by an id and their name. */
static enum tw_status emit_async(struct perfetto *s, const struct tw_perfetto_sequence *q,
        struct tw_perfetto_track *k, const struct tw_perfetto_track_event *e,
        const struct tw_perfetto_event *ev, struct tw_err *err)
{
	char text[ASYNC_TRACK_BYTES];
	const struct tw_perfetto_legacy *l = &e->legacy;
	struct tw_marker marker = {.ts_ns = ev->ts_ns,
	        .offset = ev->offset,
	        .by = tw_perfetto_tracks_owner(&s->tracks, k)};
	struct tw_span_key key = {.pid = l->local ? k->pid : 0,
	        .name = tw_perfetto_intern_str(&s->texts, ev->name),
	        .cookie = (int64_t)l->id,
	        .by_name = ev->name != 0};

	if (l->nests)
		key.track = async_track(s, q, e, text);
	return e->type == TW_PERFETTO_ASYNC_BEGIN
	               ? tw_markers_begin_span(&s->markers, &marker, &key, err)
	               : tw_markers_end_span(&s->markers, &marker, &key, err);
}

static enum tw_status emit_event(struct perfetto *s, const struct tw_perfetto_sequence *q,
        struct tw_perfetto_track *k, const struct tw_perfetto_track_event *e,
        const struct tw_perfetto_event *ev, struct tw_err *err)
{
	switch (e->type) {
	case TW_PERFETTO_BEGIN:
		return tw_perfetto_tracks_begin(&s->tracks, k, ev, err);
	case TW_PERFETTO_END:
		return tw_perfetto_tracks_end(&s->tracks, k, ev, err);
	case TW_PERFETTO_INSTANT:
	case TW_PERFETTO_STATE:
		return tw_perfetto_tracks_instant(&s->tracks, k, ev, err);
	case TW_PERFETTO_COUNTER:
		return tw_perfetto_tracks_count(&s->tracks, k, ev, e->value, err);
	case TW_PERFETTO_SPAN:
		return tw_perfetto_tracks_span(&s->tracks, k, ev, span_ns(e->dur_us), err);
	case TW_PERFETTO_ASYNC_BEGIN:
	case TW_PERFETTO_ASYNC_END:
		return emit_async(s, q, k, e, ev, err);
	case TW_PERFETTO_FLOW:
		break;
	case TW_PERFETTO_NONE:
	case TW_PERFETTO_OTHER:
		repair(s, TW_REPAIR_event_unread, ev->offset);
	}
	return TW_OK;
}

/* The times of two events determine the direction of their flow. */
static enum tw_status emit_flows(struct perfetto *s, struct tw_perfetto_track *k,
        const struct tw_perfetto_track_event *e, const struct tw_perfetto_event *ev,
        struct tw_err *err)
{
	struct tw_flow_point p = {.ts_ns = ev->ts_ns,
	        .offset = ev->offset,
	        .thread = tw_perfetto_tracks_owner(&s->tracks, k),
	        .name = tw_perfetto_intern_str(&s->texts, ev->name ? ev->name : k->name)};
	enum tw_status st = TW_OK;

	for (unsigned i = 0; st == TW_OK && i < e->n_flows; i++) {
		p.id = e->flows[i].id;
		st = tw_flows_emit(&s->flows, &p, e->flows[i].ends ? TW_FLOW_END : TW_FLOW_STEP,
		        TW_FLOW_BY_TIME, err);
	}
	return st;
}

static enum tw_status take_track_event(struct perfetto *s, struct tw_perfetto_sequence *q,
        const struct tw_perfetto_packet *p, bool has_time, int64_t ts_ns, struct tw_err *err)
{
	struct tw_perfetto_track_event e;
	struct tw_perfetto_event ev = {.offset = p->offset};
	struct tw_perfetto_track *k;
	enum tw_status st;

	tw_perfetto_event_read(tw_pb_in(&p->payload), &e);
	if (!event_time(s, q, p, &e, has_time, &ts_ns)) {
		if (!p->has_time)
			repair(s, TW_REPAIR_record_malformed, p->offset);
		return TW_OK;
	}
	ev.ts_ns = ts_ns;
	st = name_of(s, q, &e, p->offset, &ev.name, err);
	if (st == TW_OK)
		st = track_of(s, q, &e, p->offset, &k, err);
	if (st != TW_OK || !k)
		return st;
	st = emit_event(s, q, k, &e, &ev, err);
	return st == TW_OK && e.n_flows ? emit_flows(s, k, &e, &ev, err) : st;
}

/* --- other packets --- */

static enum tw_status take_thread(struct perfetto *s, struct tw_perfetto_sequence *q,
        const struct tw_perfetto_packet *p, struct tw_err *err)
{
	struct tw_pb message = tw_pb_in(&p->payload);
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 6)
			q->now_us = (int64_t)f.value;
	return tw_perfetto_tracks_thread(
	        &s->tracks, tw_pb_in(&p->payload), p->offset, &q->pid, &q->tid, err);
}

/* StreamingProfilePacket: stacks of the sequence's thread, and the times between them. */
static enum tw_status take_profile(struct perfetto *s, struct tw_perfetto_sequence *q,
        const struct tw_perfetto_packet *p, struct tw_err *err)
{
	struct tw_pb stacks = tw_pb_in(&p->payload);
	struct tw_pb deltas = tw_pb_in(&p->payload);
	struct tw_perfetto_when when = {.scope = q->scope, .offset = p->offset};
	struct tw_pb_field f;
	struct tw_pb_field d;
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_pb_next(&stacks, &f)) {
		int64_t ns;

		if (f.number != 1)
			continue;
		d.number = 0;
		while (d.number != 2 && tw_pb_next(&deltas, &d))
			;
		if (d.number != 2 || __builtin_add_overflow(q->now_us, (int64_t)d.value, &ns)) {
			repair(s, TW_REPAIR_record_malformed, p->offset);
			break;
		}
		q->now_us = ns;
		if (__builtin_mul_overflow(ns, (int64_t)1000, &ns) ||
		        !to_event_time(s, TW_PERFETTO_MONOTONIC, ns, p->offset, &when.ts_ns))
			continue;
		st = tw_perfetto_stacks_add(&s->stacks, q->pid, q->tid, f.value, &when, err);
	}
	return st;
}

static enum tw_status push_inner(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct perfetto *s = arg;

	return tw_perfetto_packets_push(&s->inner, p, n, err);
}

static enum tw_status unpack(
        struct perfetto *s, const struct tw_perfetto_packet *p, struct tw_err *err)
{
	struct tw_limits limits = s->limits;
	struct tw_arena *a = tw_arena_new(UNPACK_BYTES);
	struct tw_unzip *z = NULL;
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	enum tw_status st;

	limits.max_decoded_bytes -=
	        s->unpacked < limits.max_decoded_bytes ? s->unpacked : limits.max_decoded_bytes;
	if (a)
		z = tw_unzip_new(a, &limits, push_inner, s);
	s->inner_offset = p->offset;
	s->inside = true;
	st = z ? tw_unzip_push(z, p->payload.bytes, p->payload.len, err) : tw_oom(err);
	if (st == TW_OK)
		st = tw_unzip_finish(z, &end, err);
	if (st == TW_OK && end != TW_UNZIP_COMPLETE)
		repair(s, TW_REPAIR_record_malformed, p->offset);
	if (st == TW_OK)
		st = tw_perfetto_packets_finish(&s->inner, err);
	if (z)
		s->unpacked += tw_unzip_made(z);
	s->inside = false;
	tw_unzip_free(z);
	tw_arena_free(a);
	return st;
}

/* A missing time that the payload needs has already been counted. */
static enum tw_status take_timed(struct perfetto *s, struct tw_perfetto_sequence *q,
        const struct tw_perfetto_packet *p, bool has_time, int64_t ts_ns, struct tw_err *err)
{
	const struct tw_perfetto_when when = {q->scope, ts_ns, p->offset};
	struct tw_pb message = tw_pb_in(&p->payload);

	switch (p->payload.number) {
	case 9:
		return has_time ? emit_stats(&s->markers, message, ts_ns, p->offset, err) : TW_OK;
	case 54:
		return take_profile(s, q, p, err);
	case 66:
		return has_time ? tw_perfetto_stacks_perf(&s->stacks, message, &when, err) : TW_OK;
	case 76:
		return has_time
		               ? tw_perfetto_frames_emit(&s->frames, message, ts_ns, p->offset, err)
		               : TW_OK;
	case 135:
		return has_time ? tw_perfetto_stacks_sample(&s->stacks, message, &when, err)
		                : TW_OK;
	default:
		return TW_OK;
	}
}

static enum tw_status take_payload(struct perfetto *s, struct tw_perfetto_sequence *q,
        const struct tw_perfetto_packet *p, bool has_time, int64_t ts_ns, struct tw_err *err)
{
	struct tw_pb message = tw_pb_in(&p->payload);
	uint32_t pid;

	switch (p->payload.number) {
	case 11:
		return take_track_event(s, q, p, has_time, ts_ns, err);
	case 1:
		return tw_perfetto_ftrace_bundle(&s->ftrace, message, p->offset, err);
	case 2:
		return tw_perfetto_tracks_tree(&s->tracks, message, p->offset, err);
	case 43:
		return tw_perfetto_tracks_process(&s->tracks, message, p->offset, &pid, err);
	case 44:
		return take_thread(s, q, p, err);
	case 60:
		return tw_perfetto_tracks_describe(&s->tracks, message, p->offset, err);
	case 50:
	case 133:
		if (s->inside) {
			repair(s, TW_REPAIR_record_malformed, p->offset);
			return TW_OK;
		}
		return unpack(s, p, err);
	default:
		return take_timed(s, q, p, has_time, ts_ns, err);
	}
}

static enum tw_status take_packet(
        struct perfetto *s, const struct tw_perfetto_packet *p, struct tw_err *err)
{
	struct tw_perfetto_sequence *q = tw_perfetto_sequences_get(&s->sequences, p->sequence);
	int64_t ts_ns = 0;
	bool has_time;
	enum tw_status st;

	if (!q)
		return tw_oom(err);
	st = update_sequence(s, q, p, err);
	if (st != TW_OK)
		return st;
	if (q->lost && p->flags & TW_PERFETTO_NEEDS_STATE) {
		repair(s, TW_REPAIR_state_lost, p->offset);
		return TW_OK;
	}
	if (p->snapshot.number || (!p->payload.number && p->clock == 0 && q->clock == 0))
		return p->payload.number ? take_payload(s, q, p, false, 0, err) : TW_OK;
	has_time = p->has_time &&
	           time_of(s, q, p->clock ? p->clock : q->clock, p->time, p->offset, &ts_ns);
	emit_clock(s);
	return take_payload(s, q, p, has_time, ts_ns, err);
}

/* The same as take_packet for such a packet, with fewer checks. */
static enum tw_status take_edge(
        struct perfetto *s, const struct tw_perfetto_edge *e, uint64_t offset, struct tw_err *err)
{
	struct tw_perfetto_sequence *q = tw_perfetto_sequences_get(&s->sequences, e->sequence);
	struct tw_perfetto_event ev = {.offset = offset};
	struct tw_perfetto_track *k;
	enum tw_status st;
	bool has_time;

	if (!q)
		return tw_oom(err);
	q->seen = true;
	if (q->lost && e->flags & TW_PERFETTO_NEEDS_STATE) {
		repair(s, TW_REPAIR_state_lost, offset);
		return TW_OK;
	}
	has_time = time_of(s, q, q->clock, e->time, offset, &ev.ts_ns);
	emit_clock(s);
	if (!has_time)
		return TW_OK;
	st = interned_name(s, q, e->name_iid, offset, &ev.name, err);
	if (st == TW_OK)
		st = track_by_uuid(s, q, e->has_track ? &e->track : NULL, false, offset, &k, err);
	if (st != TW_OK || !k)
		return st;
	return e->begins ? tw_perfetto_tracks_begin(&s->tracks, k, &ev, err)
	                 : tw_perfetto_tracks_end(&s->tracks, k, &ev, err);
}

static enum tw_status read_packet(struct perfetto *s, const struct tw_perfetto_piece *piece,
        bool *ret_damaged, struct tw_err *err)
{
	struct tw_perfetto_packet p = {.offset = piece->offset};

	if (!tw_perfetto_packet_read(tw_pb_of(piece->p, piece->n), &p)) {
		repair(s, TW_REPAIR_record_malformed, piece->offset);
		*ret_damaged = true;
		return TW_OK;
	}
	s->n_packets++;
	if (p.heap_profile) {
		s->n_profiles++;
		repair(s, TW_REPAIR_heap_profile_left_out, piece->offset);
	}
	if (p.machine) {
		repair(s, TW_REPAIR_other_machine, piece->offset);
		return TW_OK;
	}
	return take_packet(s, &p, err);
}

static enum tw_status each_packet(
        void *arg, const struct tw_perfetto_piece *piece, bool *ret_damaged, struct tw_err *err)
{
	struct perfetto *s = arg;
	struct tw_perfetto_edge e;

	if (!tw_perfetto_packet_edge(piece->p, piece->n, &e))
		return read_packet(s, piece, ret_damaged, err);
	s->n_packets++;
	return take_edge(s, &e, piece->offset, err);
}

/* --- the format --- */

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct perfetto *s = state;

	s->sink = sink;
	s->limits = *limits;
	tw_perfetto_packets_init(&s->packets, a, sink, each_packet, s);
	tw_perfetto_packets_init(&s->inner, a, sink, each_packet, s);
	s->inner.inside = &s->inner_offset;
	s->clocks = (struct tw_perfetto_clocks){.arena = a, .sink = sink};
	s->sequences.arena = a;
	s->sequences.salt = limits->hash_salt;
	tw_perfetto_intern_init(&s->texts, a, limits, sink);
	if (!tw_markers_init(&s->markers, a, limits, sink))
		return tw_oom(err);
	s->markers.any_order = true; /* only packets of one sequence are in order */
	s->flows = (struct tw_flows){.arena = a, .markers = &s->markers};
	tw_perfetto_tracks_init(&s->tracks, a, limits, &s->markers, &s->texts);
	s->ftrace = (struct tw_perfetto_ftrace){.arena = a,
	        .markers = &s->markers,
	        .texts = &s->texts,
	        .clocks = &s->clocks,
	        .tracks = &s->tracks};
	s->stacks = (struct tw_perfetto_stacks){
	        .sink = sink, .markers = &s->markers, .texts = &s->texts, .tracks = &s->tracks};
	s->frames =
	        (struct tw_perfetto_frames){.arena = a, .markers = &s->markers, .texts = &s->texts};
	s->stacks.samples = tw_samples_new(a, limits, sink);
	return s->stacks.samples ? TW_OK : tw_oom(err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct perfetto *s = state;

	return tw_perfetto_packets_push(&s->packets, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct perfetto *s = state;
	enum tw_status st = tw_perfetto_packets_finish(&s->packets, err);

	(void)cut;
	if (st != TW_OK)
		return st;
	if (s->n_packets == 0)
		return tw_fail_at(err, TW_CORRUPT, 0, "no readable packet in this Perfetto trace");
	if (s->clocks.have_zero)
		tw_perfetto_clocks_emit(&s->clocks, s->tracks.many_pids ? 0 : s->tracks.pid);
	st = tw_perfetto_ftrace_finish(&s->ftrace, err);
	if (st == TW_OK)
		st = tw_perfetto_tracks_finish(&s->tracks, err);
	if (st == TW_OK)
		st = tw_perfetto_frames_finish(&s->frames, err);
	if (st == TW_OK)
		st = tw_markers_finish(&s->markers, err);
	if (st == TW_OK && s->n_profiles && s->markers.emitted == 0 &&
	        tw_samples_count(s->stacks.samples) == 0)
		return tw_fail(err, TW_UNSUPPORTED,
		        "this Perfetto trace contains a heap profile without timing; open it in "
		        "the Perfetto UI");
	return st == TW_OK ? tw_samples_emit(s->stacks.samples, s->stacks.interval_ns, err) : st;
}

const struct tw_format tw_format_perfetto = {
        .name = "perfetto",
        .title = "Perfetto trace",
        .part = "trace system",
        .probe = probe,
        .state_size = sizeof(struct perfetto),
        .start = start,
        .push = push,
        .finish = finish,
};
