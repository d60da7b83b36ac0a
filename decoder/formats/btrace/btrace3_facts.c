#include "decoder/formats/btrace/btrace3_facts.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_FACTS = 256, COUNTERS = 5 };

#define STEP_NS ((int64_t)10000000) /* between two values of a counter */

bool tw_btrace3_is_release(unsigned type)
{
	return type == TW_BTRACE3_UNPARK || type == TW_BTRACE3_NOTIFY || type == TW_BTRACE3_UNLOCK;
}

enum tw_status tw_btrace3_facts_keep(
        struct tw_btrace3_facts *s, const struct tw_btrace3_fact *f, struct tw_err *err)
{
	if (s->n >= s->max) {
		s->sink->ops->repair(s->sink, TW_REPAIR_note_limit, f->offset, 1);
		return TW_OK;
	}
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : FIRST_FACTS;
		struct tw_btrace3_fact *facts = tw_arena_alloc(s->arena, cap, sizeof *facts);

		if (!facts)
			return tw_oom(err);
		if (s->n)
			memcpy(facts, s->list, s->n * sizeof *facts);
		s->list = facts;
		s->cap = cap;
	}
	s->list[s->n++] = *f;
	return TW_OK;
}

static const char *type_name(unsigned type)
{
	static const char *const names[] = {[2] = "binder",
	        "jank message",
	        "custom",
	        "trace stack",
	        "wait",
	        "park",
	        "monitor",
	        "allocation",
	        "JNI",
	        "GC",
	        "mutex",
	        "vsync",
	        "draw frame",
	        "argument",
	        "flush",
	        "unpark",
	        "scene",
	        "GC internal",
	        "load library",
	        "poll",
	        "notify",
	        "unlock"};
	const char *name = type < sizeof names / sizeof *names ? names[type] : NULL;

	return name ? name : "sample";
}

static enum tw_note_kind kind_of(unsigned type)
{
	switch (type) {
	case TW_BTRACE3_BINDER:
		return TW_NOTE_binder;
	case TW_BTRACE3_WAIT:
		return TW_NOTE_wait;
	case TW_BTRACE3_PARK:
		return TW_NOTE_park;
	case TW_BTRACE3_MONITOR:
	case TW_BTRACE3_MUTEX:
		return TW_NOTE_contention;
	case TW_BTRACE3_GC:
		return TW_NOTE_gc;
	case TW_BTRACE3_LOAD_LIBRARY:
		return TW_NOTE_section;
	case TW_BTRACE3_JANK:
	case TW_BTRACE3_VSYNC:
	case TW_BTRACE3_DRAW:
	case TW_BTRACE3_SCENE:
		return TW_NOTE_instant;
	default:
		return TW_NOTE_sample;
	}
}

static int by_track_and_time(const void *pa, const void *pb)
{
	const struct tw_btrace3_fact *a = pa;
	const struct tw_btrace3_fact *b = pb;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* 0 if the counter fell, or rose by more than JSON readers support. */
static int64_t since(uint64_t now, uint64_t before)
{
	return now > before && now - before <= INT64_MAX ? (int64_t)(now - before) : 0;
}

struct counters { /* of one thread */
	struct tw_btrace3_totals first;
	struct {
		int64_t value, ts_ns;
	} emitted[COUNTERS];
};

/* Emits the changes on the thread since its first sample; `last`: at its last sample. */
static enum tw_status count(struct tw_btrace3_facts *s, struct counters *c,
        const struct tw_btrace3_fact *f, bool last, struct tw_err *err)
{
	const struct tw_btrace3_totals *t = &f->totals;
	const struct {
		const char *name;
		int64_t value;
	} now[COUNTERS] = {{"allocated bytes", since(t->bytes, c->first.bytes)},
	        {"allocated objects", since(t->objects, c->first.objects)},
	        {"major faults", since(t->faults, c->first.faults)},
	        {"context switches", since(t->switches, c->first.switches)},
	        {"forced context switches", since(t->forced, c->first.forced)}};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < COUNTERS; i++) {
		struct tw_note note = {.kind = TW_NOTE_counter,
		        .track = f->track,
		        .ts_ns = f->ts_ns - s->zero_ns,
		        .dur_ns = -1,
		        .value = now[i].value,
		        .offset = f->offset,
		        .text = tw_str_of(now[i].name)};

		if (note.value <= c->emitted[i].value)
			continue;
		if (!last && c->emitted[i].value && note.ts_ns - c->emitted[i].ts_ns < STEP_NS)
			continue;
		c->emitted[i].value = note.value;
		c->emitted[i].ts_ns = note.ts_ns;
		st = s->sink->ops->note(s->sink, &note, err);
	}
	return st;
}

static enum tw_status emit_fact(
        struct tw_btrace3_facts *s, const struct tw_btrace3_fact *f, struct tw_err *err)
{
	struct tw_note note = {.kind = kind_of(f->type),
	        .track = f->track,
	        .ts_ns = f->ts_ns - s->zero_ns,
	        .dur_ns = f->dur_ns,
	        .value = -1,
	        .offset = f->offset,
	        .text = tw_str_of(type_name(f->type))};

	if (tw_btrace3_is_release(f->type)) {
		note.kind = TW_NOTE_wakeup;
		note.dur_ns = -1;
		note.value = s->pid;
		note.text = TW_STR("main");
	} else if (note.kind == TW_NOTE_sample || (f->dur_ns < 0 && note.kind != TW_NOTE_instant)) {
		return TW_OK;
	} else if (note.kind == TW_NOTE_instant) {
		note.value = 0;
	}
	return s->sink->ops->note(s->sink, &note, err);
}

enum tw_status tw_btrace3_facts_emit(
        struct tw_btrace3_facts *s, uint32_t pid, int64_t zero_ns, struct tw_err *err)
{
	struct counters c = {0};
	enum tw_status st = TW_OK;

	s->pid = pid;
	s->zero_ns = zero_ns;
	if (s->n)
		qsort(s->list, s->n, sizeof *s->list, by_track_and_time);
	for (uint32_t i = 0; st == TW_OK && i < s->n; i++) {
		const struct tw_btrace3_fact *f = &s->list[i];
		bool last = i + 1 == s->n || f[1].track != f->track;

		if (i == 0 || f[-1].track != f->track)
			c = (struct counters){.first = f->totals};
		st = count(s, &c, f, last, err);
		if (st == TW_OK)
			st = emit_fact(s, f, err);
	}
	return st;
}
