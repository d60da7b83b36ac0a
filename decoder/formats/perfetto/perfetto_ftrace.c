#include "decoder/formats/perfetto/perfetto_parts.h"
#include "decoder/formats/perfetto/perfetto_tracks.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"

enum { MAX_EVENTS = 4 << 20, FIRST_EVENTS = 1024, CLONE_THREAD = 0x10000 };

enum kind { PRINT, SWITCH, WAKE, BLOCKED, CREATED, FREQUENCY, BINDER_SENT, BINDER_RECEIVED };

/* state of BINDER_SENT */
enum { REPLY = 1, ONE_WAY = 2 };

struct tw_perfetto_ftrace_event {
	int64_t ts_ns;
	uint64_t offset;
	uint32_t order; /* of arrival */
	uint32_t tid;   /* the writer; SWITCH: the thread leaving the CPU, UINT32_MAX unknown;
	                 * FREQUENCY: kHz */
	uint32_t other; /* SWITCH: the next thread; WAKE: the woken thread; CREATED: the new thread;
	                 * FREQUENCY: the CPU; BINDER: the transaction */
	uint32_t text;  /* PRINT: the marker; otherwise the name of `other` */
	uint16_t cpu;
	uint8_t kind;
	char state; /* SWITCH: the kernel's letter; BLOCKED: 1 if it waits for a disk; CREATED: 1
	             * for a thread of the same process; BINDER_SENT: bits */
};

#define UNKNOWN_TID UINT32_MAX

struct bundle {
	uint32_t cpu;
	struct tw_perfetto_kernel clock;
	uint64_t offset;
	bool lost;
};

static void repair(struct tw_perfetto_ftrace *t, enum tw_repair what, uint64_t offset)
{
	t->markers->sink->ops->repair(t->markers->sink, what, offset, 1);
}

static uint32_t thread_id(uint64_t value)
{
	return value < UNKNOWN_TID ? (uint32_t)value : UNKNOWN_TID;
}

/* --- storage --- */

/* ts_ns of ev is a reading of the bundle's clock. */
static enum tw_status keep(struct tw_perfetto_ftrace *t, const struct bundle *b,
        const struct tw_perfetto_ftrace_event *ev, struct tw_err *err)
{
	int64_t ns;

	if (__builtin_add_overflow(ev->ts_ns, b->clock.shift_ns, &ns) ||
	        !tw_perfetto_clocks_convert(t->clocks, b->clock.clock, ns, &ns)) {
		repair(t, TW_REPAIR_clock_unknown, b->offset);
		return TW_OK;
	}
	if (t->n == MAX_EVENTS) {
		repair(t, TW_REPAIR_note_limit, b->offset);
		return TW_OK;
	}
	if (!TW_GROW_FROM(FIRST_EVENTS, t->arena, t->list, t->n, t->cap))
		return tw_oom(err);
	t->list[t->n] = *ev;
	t->list[t->n].ts_ns = tw_perfetto_clocks_event(t->clocks, ns, b->offset);
	t->list[t->n].offset = b->offset;
	t->list[t->n].cpu = (uint16_t)b->cpu;
	t->list[t->n].order = t->n;
	t->n++;
	return TW_OK;
}

/* --- events --- */

/* The kernel's bit for the state that a thread was switched away in. */
static char state_letter(uint64_t bits)
{
	static const char letters[] = "SDTtXZPI";

	for (unsigned i = 0; letters[i]; i++)
		if (bits >> i & 1)
			return letters[i];
	return 'R';
}

struct fields { /* the small numbers and one text of an event, by field number */
	uint64_t number[8];
	struct tw_str text[8];
};

static struct fields read_fields(struct tw_pb message)
{
	struct fields all = {0};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f)) {
		if (f.number >= 8)
			continue;
		if (f.type == TW_PB_BYTES)
			all.text[f.number] = tw_pb_str(&f);
		else
			all.number[f.number] = f.value;
	}
	return all;
}

/* Markers of applications end in a line feed. */
static struct tw_str marker_text(struct tw_str s)
{
	while (s.len && (s.ptr[s.len - 1] == '\n' || s.ptr[s.len - 1] == '\0'))
		s.len--;
	return s;
}

/* Fills *ev from the message of field `number`; false: an unsupported event. */
static bool read_event(uint32_t number, struct tw_pb message, struct tw_perfetto_ftrace_event *ev,
        struct tw_str *ret_text)
{
	struct fields f = read_fields(message);

	switch (number) {
	case 3:
		ev->kind = PRINT;
		*ret_text = marker_text(f.text[2]);
		return ret_text->len > 0;
	case 4:
		ev->kind = SWITCH;
		ev->tid = thread_id(f.number[2]);
		ev->state = state_letter(f.number[4]);
		ev->other = thread_id(f.number[6]);
		*ret_text = f.text[5];
		return true;
	case 11:
		ev->kind = FREQUENCY;
		ev->tid = thread_id(f.number[1]);
		ev->other = (uint32_t)(f.number[2] & (TW_PERFETTO_CPUS - 1));
		return true;
	case 17:
	case 20:
	case 114:
		ev->kind = WAKE;
		ev->other = thread_id(f.number[2]);
		*ret_text = f.text[1];
		return true;
	case 18:
		ev->kind = BLOCKED;
		ev->other = thread_id(f.number[1]);
		ev->state = (char)(f.number[3] != 0);
		return true;
	case 50:
		ev->kind = BINDER_SENT;
		ev->other = thread_id(f.number[1]);
		ev->state = (char)((f.number[5] ? REPLY : 0) | (f.number[7] & 1 ? ONE_WAY : 0));
		return true;
	case 51:
		ev->kind = BINDER_RECEIVED;
		ev->other = thread_id(f.number[1]);
		return true;
	case 235:
		ev->kind = CREATED;
		ev->other = thread_id(f.number[1]);
		ev->state = (char)((f.number[3] & CLONE_THREAD) != 0);
		*ret_text = f.text[2];
		return true;
	default:
		return false;
	}
}

static bool is_supported(uint32_t number)
{
	return number == 3 || number == 4 || number == 11 || number == 17 || number == 18 ||
	       number == 20 || number == 50 || number == 51 || number == 114 || number == 235;
}

static enum tw_status take_event(struct tw_perfetto_ftrace *t, const struct bundle *b,
        struct tw_pb message, struct tw_err *err)
{
	struct tw_perfetto_ftrace_event ev = {0};
	struct tw_pb_field f;
	struct tw_pb_field what = {0};
	struct tw_str text = {0};

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			ev.ts_ns = (int64_t)f.value;
		else if (f.number == 2)
			ev.tid = thread_id(f.value);
		else if (is_supported(f.number) && f.type == TW_PB_BYTES)
			what = f;
	if (tw_pb_bad(&message)) {
		repair(t, TW_REPAIR_record_malformed, b->offset);
		return TW_OK;
	}
	if (!what.number || !read_event(what.number, tw_pb_in(&what), &ev, &text))
		return TW_OK;
	if (text.len && !tw_perfetto_intern_text(t->texts, text, b->offset, &ev.text))
		return tw_oom(err);
	if (ev.kind == SWITCH)
		t->running[b->cpu] = (uint64_t)ev.other + 1;
	return keep(t, b, &ev, err);
}

/* --- compact events: one column per field --- */

enum { MAX_NAMES = 4096, COLUMNS = 12 };

struct compact {
	struct tw_pb switch_ts, state, next, next_name;
	struct tw_pb waking_ts, woken, woken_name;
	uint32_t *names; /* by index: a text's number */
	uint32_t n_names;
};

static bool read_names(
        struct tw_perfetto_ftrace *t, struct tw_pb message, uint64_t offset, struct compact *c)
{
	struct tw_pb_field f;
	uint32_t n = 0;
	struct tw_pb again = message;

	while (tw_pb_next(&again, &f))
		n += f.number == 5;
	if (n > MAX_NAMES)
		n = MAX_NAMES;
	c->names = n ? tw_arena_alloc(t->arena, n, sizeof *c->names) : NULL;
	if (n && !c->names)
		return false;
	while (c->n_names < n && tw_pb_next(&message, &f))
		if (f.number == 5 && !tw_perfetto_intern_text(t->texts, tw_pb_str(&f), offset,
		                             &c->names[c->n_names++]))
			return false;
	return true;
}

static void read_columns(struct tw_pb message, struct compact *c)
{
	struct tw_pb *const columns[COLUMNS] = {[1] = &c->switch_ts,
	        [2] = &c->state,
	        [3] = &c->next,
	        [6] = &c->next_name,
	        [7] = &c->waking_ts,
	        [8] = &c->woken,
	        [11] = &c->woken_name};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.type == TW_PB_BYTES && f.number < COLUMNS && columns[f.number])
			*columns[f.number] = tw_pb_in(&f);
}

static uint32_t name_at(const struct compact *c, uint64_t index)
{
	return index < c->n_names ? c->names[index] : 0;
}

static enum tw_status take_switches(
        struct tw_perfetto_ftrace *t, const struct bundle *b, struct compact *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	uint64_t now = 0;
	uint64_t delta;
	uint64_t state;
	uint64_t next;
	uint64_t name;

	while (st == TW_OK && tw_pb_number(&c->switch_ts, &delta)) {
		struct tw_perfetto_ftrace_event ev = {.kind = SWITCH};
		uint64_t *running = &t->running[b->cpu];

		if (!tw_pb_number(&c->state, &state) || !tw_pb_number(&c->next, &next) ||
		        !tw_pb_number(&c->next_name, &name)) {
			repair(t, TW_REPAIR_record_malformed, b->offset);
			break;
		}
		now += delta;
		ev.ts_ns = (int64_t)now;
		ev.tid = *running ? (uint32_t)(*running - 1) : UNKNOWN_TID;
		ev.state = state_letter(state);
		ev.other = thread_id(next);
		ev.text = name_at(c, name);
		*running = (uint64_t)ev.other + 1;
		st = keep(t, b, &ev, err);
	}
	return st;
}

static enum tw_status take_wakings(
        struct tw_perfetto_ftrace *t, const struct bundle *b, struct compact *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	uint64_t now = 0;
	uint64_t delta;
	uint64_t woken;
	uint64_t name;

	while (st == TW_OK && tw_pb_number(&c->waking_ts, &delta)) {
		/* the waker is not stored: the thread running on that CPU */
		struct tw_perfetto_ftrace_event ev = {.kind = WAKE, .tid = UNKNOWN_TID};

		if (!tw_pb_number(&c->woken, &woken) || !tw_pb_number(&c->woken_name, &name)) {
			repair(t, TW_REPAIR_record_malformed, b->offset);
			break;
		}
		now += delta;
		ev.ts_ns = (int64_t)now;
		ev.other = thread_id(woken);
		ev.text = name_at(c, name);
		st = keep(t, b, &ev, err);
	}
	return st;
}

static enum tw_status take_compact(struct tw_perfetto_ftrace *t, const struct bundle *b,
        struct tw_pb message, struct tw_err *err)
{
	struct compact c = {0};
	enum tw_status st;

	if (!read_names(t, message, b->offset, &c))
		return tw_oom(err);
	read_columns(message, &c);
	st = take_switches(t, b, &c, err);
	return st == TW_OK ? take_wakings(t, b, &c, err) : st;
}

/* --- bundles --- */

static struct bundle read_bundle(struct tw_pb message, uint64_t offset)
{
	struct bundle b = {.offset = offset};
	struct tw_pb_field f;
	uint64_t number[8] = {0};

	while (tw_pb_next(&message, &f))
		if (f.number < 8 && f.type == TW_PB_VARINT)
			number[f.number] = f.value;
	b.cpu = number[1] < TW_PERFETTO_CPUS ? (uint32_t)number[1] : TW_PERFETTO_CPUS - 1;
	b.lost = number[3] != 0;
	b.clock = tw_perfetto_clocks_kernel(number[5], number[6], number[7]);
	return b;
}

enum tw_status tw_perfetto_ftrace_bundle(
        struct tw_perfetto_ftrace *t, struct tw_pb message, uint64_t offset, struct tw_err *err)
{
	struct bundle b = read_bundle(message, offset);
	struct tw_pb_field f;
	enum tw_status st = TW_OK;

	if (b.lost) {
		repair(t, TW_REPAIR_kernel_overrun, offset);
		t->running[b.cpu] = 0;
	}
	while (st == TW_OK && tw_pb_next(&message, &f)) {
		if (f.type != TW_PB_BYTES)
			continue;
		if (f.number == 2)
			st = take_event(t, &b, tw_pb_in(&f), err);
		else if (f.number == 4)
			st = take_compact(t, &b, tw_pb_in(&f), err);
	}
	if (tw_pb_bad(&message))
		repair(t, TW_REPAIR_record_malformed, offset);
	return st;
}

/* --- output --- */

TW_ORDER_BY(by_time, struct tw_perfetto_ftrace_event, TW_RISING(ts_ns), TW_RISING(order))

/* NULL: the idle thread, or an unknown one. */
static struct tw_tid *thread_of(struct tw_perfetto_ftrace *t, uint32_t tid, uint64_t offset)
{
	struct tw_tid *k;

	if (tid == 0 || tid == UNKNOWN_TID)
		return NULL;
	k = tw_tids_get(&t->markers->tids, tid, offset);
	if (k)
		tw_perfetto_tracks_known(t->tracks, k);
	return k;
}

static enum tw_status emit_created(struct tw_perfetto_ftrace *t,
        const struct tw_perfetto_ftrace_event *ev, struct tw_str name, struct tw_err *err)
{
	struct tw_tid *by = thread_of(t, ev->tid, ev->offset);
	struct tw_tid *created = thread_of(t, ev->other, ev->offset);
	struct tw_note note = {.kind = TW_NOTE_thread_created,
	        .ts_ns = ev->ts_ns,
	        .dur_ns = -1,
	        .value = ev->other,
	        .offset = ev->offset,
	        .text = name};

	if (by && created && ev->state)
		tw_tids_process(&t->markers->tids, created, by->pid);
	if (!by)
		return TW_OK;
	note.track = tw_tids_track(&t->markers->tids, by);
	return note.track ? tw_markers_note(t->markers, &note, err) : TW_OK;
}

static enum tw_status emit_switch(struct tw_perfetto_ftrace *t,
        const struct tw_perfetto_ftrace_event *ev, struct tw_str name, struct tw_err *err)
{
	const struct tw_sched_event at = {ev->ts_ns, ev->offset, ev->cpu};
	struct tw_tid *prev = thread_of(t, ev->tid, ev->offset);
	struct tw_tid *next = thread_of(t, ev->other, ev->offset);

	t->running[ev->cpu] = (uint64_t)ev->other + 1;
	if (next)
		tw_tids_name(&t->markers->tids, next, name);
	return tw_sched_switch(t->markers, &at, prev, (struct tw_str){&ev->state, 1}, next, err);
}

static enum tw_status emit_wake(struct tw_perfetto_ftrace *t,
        const struct tw_perfetto_ftrace_event *ev, struct tw_str name, struct tw_err *err)
{
	const struct tw_sched_event at = {ev->ts_ns, ev->offset, ev->cpu};
	uint64_t running = t->running[ev->cpu];
	uint32_t by = ev->tid == UNKNOWN_TID && running ? (uint32_t)(running - 1) : ev->tid;
	struct tw_tid *woken = thread_of(t, ev->other, ev->offset);

	if (woken)
		tw_tids_name(&t->markers->tids, woken, name);
	return tw_sched_wake(t->markers, &at, thread_of(t, by, ev->offset), woken, name, err);
}

static enum tw_status emit_binder(
        struct tw_perfetto_ftrace *t, const struct tw_perfetto_ftrace_event *ev, struct tw_err *err)
{
	const struct tw_binder_event at = {.id = ev->other,
	        .ts_ns = ev->ts_ns,
	        .offset = ev->offset,
	        .by = thread_of(t, ev->tid, ev->offset),
	        .reply = ev->state & REPLY,
	        .one_way = ev->state & ONE_WAY};

	return ev->kind == BINDER_SENT ? tw_binder_sent(&t->binder, t->markers, &at, err)
	                               : tw_binder_received(&t->binder, t->markers, &at, err);
}

static enum tw_status emit_frequency(
        struct tw_perfetto_ftrace *t, const struct tw_perfetto_ftrace_event *ev, struct tw_err *err)
{
	char name[40];

	(void)snprintf(name, sizeof name, "cpu%u frequency (kHz)", ev->other);
	return tw_markers_note(t->markers,
	        &(struct tw_note){.kind = TW_NOTE_counter,
	                .ts_ns = ev->ts_ns,
	                .dur_ns = -1,
	                .value = ev->tid,
	                .offset = ev->offset,
	                .text = tw_str_of(name)},
	        err);
}

static enum tw_status emit(
        struct tw_perfetto_ftrace *t, const struct tw_perfetto_ftrace_event *ev, struct tw_err *err)
{
	struct tw_str text = tw_perfetto_intern_str(t->texts, ev->text);
	struct tw_marker marker = {.ts_ns = ev->ts_ns, .offset = ev->offset, .text = text};
	struct tw_tid *k;

	switch ((enum kind)ev->kind) {
	case PRINT:
		marker.by = thread_of(t, ev->tid, ev->offset);
		return marker.by ? tw_markers_emit(t->markers, &marker, err) : TW_OK;
	case SWITCH:
		return emit_switch(t, ev, text, err);
	case WAKE:
		return emit_wake(t, ev, text, err);
	case BLOCKED:
		k = thread_of(t, ev->other, ev->offset);
		if (k)
			tw_sched_blocked(k, ev->state, TW_STR(""));
		return TW_OK;
	case CREATED:
		return emit_created(t, ev, text, err);
	case FREQUENCY:
		return emit_frequency(t, ev, err);
	case BINDER_SENT:
	case BINDER_RECEIVED:
		return emit_binder(t, ev, err);
	}
	return TW_OK;
}

enum tw_status tw_perfetto_ftrace_finish(struct tw_perfetto_ftrace *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	TW_SORT(t->list, t->n, by_time);
	memset(t->running, 0, sizeof t->running);
	for (uint32_t i = 0; st == TW_OK && i < t->n; i++)
		st = emit(t, &t->list[i], err);
	return st == TW_OK ? tw_sched_finish(t->markers, err) : st;
}
