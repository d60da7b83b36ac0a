/*
 * btrace3.c - btrace 3.0's stack samples, the file `sampling`, versions 3 to 5.
 *
 * All integers little-endian.  Header, 28 bytes:
 *    0 u32 0x01020304   4 u32 data type, 0   8 u32 version
 *   12 u64 CLOCK_BOOTTIME of the dump, ms   20 u32 records (not trusted)
 *   24 i32 length of the JSON that follows: {"processId":N}, perhaps "startTime" (boottime ms)
 * Record:
 *    0 u16 type   2 u16 low 16 bits of the tid   4 u32 message id
 *    8 u64 begin, boottime ns   16 u64 end, 0: a moment   24 u64 thread CPU ns at begin   32 at end
 *   [u64 argument, type 15]  [v4: u64 objects, u64 bytes that the thread allocated so far]
 *   [v5: u32 major faults, voluntary, involuntary context switches so far]
 *   u32 saved depth, u32 actual depth, then saved u64 method pointers, leaf first
 * The file `sampling-mapping` names the pointers (btrace3_names.c).  Neither a count nor a mark
 * shows where a record begins: after an implausible one, reading stops.  Learned from
 * bytedance/btrace 3.0.
 *
 * Each record is a sample at its begin, and one with an end is another at its end, with the same
 * stack in between.  Types 17, 22 and 23 (a thread released main) have main's wait in their begin:
 * they are samples at their end, and wake-ups.  A record whose depths differ has no usable stack.
 * Time 0 is the earliest sample: records are in ring order, so all are buffered to the end. A
 * thread's allocations, faults and switches since its first sample are counters of the thread,
 * emitted where they changed but at most every 10 ms, and at its last sample; waits are notes with
 * their duration, frames and scenes are instants.
 */
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/formats/format.h"
#include "decoder/formats/sampled/samples.h"
#include "decoder/formats/sink.h"

/* --- facts other than the stacks --- */

enum type {
	T_BINDER = 2,
	T_JANK = 3,
	T_WAIT = 6,
	T_PARK = 7,
	T_MONITOR = 8,
	T_GC = 11,
	T_MUTEX = 12,
	T_VSYNC = 13,
	T_DRAW = 14,
	T_ARGUMENT = 15,
	T_UNPARK = 17,
	T_SCENE = 18,
	T_LOAD_LIBRARY = 20,
	T_NOTIFY = 22,
	T_UNLOCK = 23
};

struct totals { /* of a thread so far */
	uint64_t objects, bytes;
	uint32_t faults, switches, forced;
};

struct fact { /* a note that is held until time 0 is known */
	int64_t ts_ns, dur_ns;
	uint64_t offset;
	uint32_t track;
	uint32_t type;
	struct totals totals;
};

struct facts { /* the owner sets arena, sink and max */
	struct tw_arena *arena;
	struct tw_sink *sink;
	uint32_t max;
	struct fact *list;
	uint32_t n, cap;
	uint32_t pid;
	int64_t zero_ns;
};

enum { FIRST_FACTS = 256, COUNTERS = 5 };

#define STEP_NS ((int64_t)10000000) /* between two values of a counter */

/* A thread released the main thread. */
static bool is_release(unsigned type)
{
	return type == T_UNPARK || type == T_NOTIFY || type == T_UNLOCK;
}

/* Past the maximum the fact is counted and dropped. */
static enum tw_status facts_keep(struct facts *s, const struct fact *f, struct tw_err *err)
{
	if (s->n >= s->max) {
		s->sink->ops->repair(s->sink, TW_REPAIR_note_limit, f->offset, 1);
		return TW_OK;
	}
	if (!TW_GROW_FROM(FIRST_FACTS, s->arena, s->list, s->n, s->cap))
		return tw_oom(err);
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
	case T_BINDER:
		return TW_NOTE_binder;
	case T_WAIT:
		return TW_NOTE_wait;
	case T_PARK:
		return TW_NOTE_park;
	case T_MONITOR:
	case T_MUTEX:
		return TW_NOTE_contention;
	case T_GC:
		return TW_NOTE_gc;
	case T_LOAD_LIBRARY:
		return TW_NOTE_section;
	case T_JANK:
	case T_VSYNC:
	case T_DRAW:
	case T_SCENE:
		return TW_NOTE_instant;
	default:
		return TW_NOTE_sample;
	}
}

TW_ORDER_BY(by_track_and_time, struct fact, TW_RISING(track), TW_RISING(ts_ns), TW_RISING(offset))

/* 0 if the counter fell, or rose by more than JSON readers support. */
static int64_t since(uint64_t now, uint64_t before)
{
	return now > before && now - before <= INT64_MAX ? (int64_t)(now - before) : 0;
}

struct counters { /* of one thread */
	struct totals first;
	struct {
		int64_t value, ts_ns;
	} emitted[COUNTERS];
};

/* Emits the changes on the thread since its first sample; `last`: at its last sample. */
static enum tw_status count(
        struct facts *s, struct counters *c, const struct fact *f, bool last, struct tw_err *err)
{
	const struct totals *t = &f->totals;
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

static enum tw_status emit_fact(struct facts *s, const struct fact *f, struct tw_err *err)
{
	struct tw_note note = {.kind = kind_of(f->type),
	        .track = f->track,
	        .ts_ns = f->ts_ns - s->zero_ns,
	        .dur_ns = f->dur_ns,
	        .value = -1,
	        .offset = f->offset,
	        .text = tw_str_of(type_name(f->type))};

	if (is_release(f->type)) {
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

/* Emits all facts, once; zero_ns is time 0. */
static enum tw_status facts_emit(struct facts *s, uint32_t pid, int64_t zero_ns, struct tw_err *err)
{
	struct counters c = {0};
	enum tw_status st = TW_OK;

	s->pid = pid;
	s->zero_ns = zero_ns;
	TW_SORT(s->list, s->n, by_track_and_time);
	for (uint32_t i = 0; st == TW_OK && i < s->n; i++) {
		const struct fact *f = &s->list[i];
		bool last = i + 1 == s->n || f[1].track != f->track;

		if (i == 0 || f[-1].track != f->track)
			c = (struct counters){.first = f->totals};
		st = count(s, &c, f, last, err);
		if (st == TW_OK)
			st = emit_fact(s, f, err);
	}
	return st;
}

enum {
	HEADER = 28,
	VERSION_MIN = 3,
	VERSION_MAX = 5,
	MAX_EXTRA = 64 << 10,
	MAX_SAVED = 1024,
	MAX_TYPE = 63,
	COMMON = 40,       /* of a record, before the parts that differ by version */
	CARRY = MAX_EXTRA, /* buffer for incomplete items */
	TIDS = 1 << 16
};

#define MAGIC       0x01020304u
#define MAX_TIME_NS ((uint64_t)1 << 61)

struct record {
	uint64_t offset;
	unsigned type;
	uint32_t tid, saved, actual;
	int64_t begin_ns, end_ns, cpu_begin_ns, cpu_end_ns;
	struct totals totals;
};

enum state { IN_HEADER, IN_EXTRA, IN_TYPE, IN_FIXED, IN_STACK, LOST };

struct btrace3 {
	struct tw_sink *sink;
	struct tw_samples *samples;
	enum state state;
	uint64_t offset, record_offset;
	uint32_t version, pid, n_carry, want;
	int64_t start_ns; /* of the recording, 0 unknown */
	int64_t first_ns; /* of all samples */
	struct facts facts;
	uint32_t tracks[TIDS];
	uint32_t monitor_sym, gc_sym;
	struct record now;
	uint8_t carry[CARRY];
};

static int probe(const uint8_t *head, size_t len)
{
	if (len < 12 || tw_u32le(head) != MAGIC || tw_u32le(head + 4) > 64)
		return 0;
	return tw_u32le(head + 8) <= 64 ? 95 : 0;
}

static void repair(struct btrace3 *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, offset, 1);
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct btrace3 *s = state;

	s->sink = sink;
	s->want = HEADER;
	s->first_ns = INT64_MAX;
	s->facts = (struct facts){.arena = a, .sink = sink, .max = limits->max_notes};
	s->samples = tw_samples_new(a, limits, sink);
	return s->samples ? TW_OK : tw_oom(err);
}

/* --- header --- */

static void expect(struct btrace3 *s, enum state state, uint32_t want)
{
	s->state = state;
	s->want = want;
}

static void expect_record(struct btrace3 *s)
{
	s->n_carry = 0;
	s->record_offset = s->offset;
	expect(s, IN_TYPE, 2);
}

static enum tw_status read_header(struct btrace3 *s, struct tw_err *err)
{
	uint32_t type = tw_u32le(s->carry + 4);
	uint32_t extra = tw_u32le(s->carry + 24);

	s->version = tw_u32le(s->carry + 8);
	if (type != 0)
		return tw_fail_at(err, TW_UNSUPPORTED, 4,
		        "btrace 3.0 data of type %u; this server reads type 0, sampling", type);
	if (s->version < VERSION_MIN || s->version > VERSION_MAX)
		return tw_fail_at(err, TW_UNSUPPORTED, 8,
		        "btrace 3.0 samples of version %u; this server reads versions %d to %d",
		        s->version, VERSION_MIN, VERSION_MAX);
	if (extra > MAX_EXTRA)
		return tw_fail_at(err, TW_CORRUPT, 24,
		        "the btrace 3.0 header has an impossible size: %u bytes", extra);
	s->n_carry = 0;
	if (extra)
		expect(s, IN_EXTRA, extra);
	else
		expect_record(s);
	return TW_OK;
}

static void read_extra(struct btrace3 *s)
{
	json_error_t why;
	json_t *o = json_loadb((const char *)s->carry, s->n_carry, 0, &why);
	json_int_t pid = json_integer_value(json_object_get(o, "processId"));
	json_int_t start_ms = json_integer_value(json_object_get(o, "startTime"));

	if (!o)
		repair(s, TW_REPAIR_record_malformed, HEADER);
	if (pid > 0 && pid <= INT32_MAX)
		s->pid = (uint32_t)pid;
	if (start_ms > 0 && start_ms < (json_int_t)(MAX_TIME_NS / 1000000))
		s->start_ns = start_ms * 1000000;
	json_decref(o);
	expect_record(s);
}

/* --- records --- */

static uint32_t fixed_bytes(const struct btrace3 *s, unsigned type)
{
	return COMMON + 8u + (type == T_ARGUMENT ? 8u : 0) + (s->version >= 4 ? 16u : 0) +
	       (s->version >= 5 ? 12u : 0);
}

static void lose(struct btrace3 *s)
{
	repair(s, TW_REPAIR_input_corrupt, s->record_offset);
	s->n_carry = 0;
	s->state = LOST;
}

static void read_type(struct btrace3 *s)
{
	unsigned type = s->carry[0] | (unsigned)s->carry[1] << 8;

	if (type == 0 || type > MAX_TYPE)
		lose(s);
	else
		expect(s, IN_FIXED, fixed_bytes(s, type));
}

static void read_totals(const struct btrace3 *s, const uint8_t *p, struct totals *ret)
{
	*ret = (struct totals){0};
	if (s->version >= 4) {
		ret->objects = tw_u64le(p);
		ret->bytes = tw_u64le(p + 8);
		p += 16;
	}
	if (s->version >= 5) {
		ret->faults = tw_u32le(p);
		ret->switches = tw_u32le(p + 4);
		ret->forced = tw_u32le(p + 8);
	}
}

static int64_t clock_of(const uint8_t *p)
{
	uint64_t ns = tw_u64le(p);

	return ns <= MAX_TIME_NS ? (int64_t)ns : -1;
}

static void read_fixed(struct btrace3 *s)
{
	const uint8_t *p = s->carry;
	struct record *r = &s->now;
	unsigned type = p[0] | (unsigned)p[1] << 8;
	uint32_t fixed = fixed_bytes(s, type);

	*r = (struct record){.offset = s->record_offset,
	        .type = type,
	        .tid = p[2] | (uint32_t)p[3] << 8,
	        .begin_ns = clock_of(p + 8),
	        .end_ns = clock_of(p + 16),
	        .cpu_begin_ns = clock_of(p + 24),
	        .cpu_end_ns = clock_of(p + 32),
	        .saved = tw_u32le(p + fixed - 8),
	        .actual = tw_u32le(p + fixed - 4)};
	read_totals(s, p + COMMON + (type == T_ARGUMENT ? 8 : 0), &r->totals);
	if (r->saved > MAX_SAVED) {
		lose(s);
		return;
	}
	s->n_carry = 0;
	expect(s, IN_STACK, r->saved * 8);
}

static uint32_t track_of(struct btrace3 *s, uint32_t tid)
{
	uint32_t full = tid == (s->pid & (TIDS - 1)) ? s->pid : tid;

	if (!s->tracks[tid])
		s->tracks[tid] = s->sink->ops->track(s->sink, s->pid, full, TW_TID_FULL);
	return s->tracks[tid];
}

/* A leaf frame for waits that the device's stacks do not show. */
static uint32_t leaf_of(struct btrace3 *s, unsigned type)
{
	if (type == T_MONITOR && !s->monitor_sym)
		s->monitor_sym = s->sink->ops->name(s->sink, TW_STR("Monitor.Lock"));
	if (type == T_GC && !s->gc_sym)
		s->gc_sym = s->sink->ops->name(s->sink, TW_STR("Heap.WaitForGcToCompleteLocked"));
	return type == T_MONITOR ? s->monitor_sym : type == T_GC ? s->gc_sym : 0;
}

static enum tw_status add_frames(struct btrace3 *s, const struct record *r, struct tw_err *err)
{
	uint32_t leaf = leaf_of(s, r->type);
	enum tw_status st = TW_OK;

	for (uint32_t i = r->saved; st == TW_OK && i-- > 0;)
		st = tw_samples_frame(s->samples,
		        s->sink->ops->method(s->sink, tw_u64le(s->carry + (size_t)i * 8)),
		        r->offset, err);
	if (st == TW_OK && leaf)
		st = tw_samples_frame(s->samples, leaf, r->offset, err);
	return st;
}

static enum tw_status add_samples(
        struct btrace3 *s, const struct record *r, uint32_t track, struct tw_err *err)
{
	struct tw_sample_piece p = {.track = track,
	        .ts_ns = r->begin_ns,
	        .offset = r->offset,
	        .first = tw_samples_frames(s->samples),
	        .has_cpu = r->cpu_begin_ns > 0,
	        .cpu_ns = r->cpu_begin_ns};
	uint32_t want = r->saved + (leaf_of(s, r->type) != 0);
	enum tw_status st = add_frames(s, r, err);

	if (st == TW_OK)
		st = tw_samples_add_stack(s->samples, &p, want, err);
	if (st != TW_OK || p.n < want || r->end_ns <= r->begin_ns)
		return st;
	p.ts_ns = r->end_ns;
	p.continued = true;
	p.has_cpu = r->cpu_end_ns > 0;
	p.cpu_ns = r->cpu_end_ns;
	return tw_samples_add(s->samples, &p, err);
}

static enum tw_status read_stack(struct btrace3 *s, struct tw_err *err)
{
	struct record r = s->now;
	uint32_t track;
	enum tw_status st;

	if (is_release(r.type) && r.end_ns > 0) {
		r.begin_ns = r.end_ns;
		r.cpu_begin_ns = r.cpu_end_ns;
	}
	if (r.begin_ns <= 0 || r.end_ns < 0 || (r.end_ns && r.end_ns < r.begin_ns)) {
		repair(s, TW_REPAIR_impossible_time, r.offset);
		return TW_OK;
	}
	if (r.saved == 0 || r.saved != r.actual) {
		repair(s, TW_REPAIR_sample_failed, r.offset);
		return TW_OK;
	}
	if (r.begin_ns < s->start_ns && r.end_ns > s->start_ns) {
		repair(s, TW_REPAIR_begin_clamped, r.offset);
		r.begin_ns = s->start_ns;
	}
	track = track_of(s, r.tid);
	if (!track)
		return TW_OK;
	if (r.begin_ns < s->first_ns)
		s->first_ns = r.begin_ns;
	st = add_samples(s, &r, track, err);
	if (st != TW_OK)
		return st;
	return facts_keep(&s->facts,
	        &(struct fact){r.begin_ns, r.end_ns > r.begin_ns ? r.end_ns - r.begin_ns : -1,
	                r.offset, track, r.type, r.totals},
	        err);
}

static enum tw_status read_piece(struct btrace3 *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	switch (s->state) {
	case IN_HEADER:
		return read_header(s, err);
	case IN_EXTRA:
		read_extra(s);
		break;
	case IN_TYPE:
		read_type(s);
		break;
	case IN_FIXED:
		read_fixed(s);
		break;
	case IN_STACK:
		st = read_stack(s, err);
		expect_record(s);
		break;
	case LOST:
		break;
	}
	return st;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct btrace3 *s = state;
	enum tw_status st = TW_OK;

	while (st == TW_OK && s->state != LOST &&
	        tw_gather(s->carry, &s->n_carry, s->want, &s->offset, &p, &n))
		st = read_piece(s, err);
	return st;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct btrace3 *s = state;
	enum tw_status st;

	if (s->state == IN_HEADER || s->state == IN_EXTRA)
		return tw_fail_at(err, TW_CORRUPT, s->offset,
		        "the file ends within the header of btrace 3.0 samples");
	if (s->state != LOST && s->offset > s->record_offset && !cut)
		repair(s, TW_REPAIR_input_truncated, s->record_offset);
	if (tw_samples_count(s->samples) == 0)
		return tw_fail_at(err, TW_CORRUPT, HEADER, "no readable sample");
	s->sink->ops->clock(s->sink,
	        &(struct tw_clock){.pid = s->pid, .mono_base_ns = -1, .boot_base_ns = s->first_ns});
	tw_samples_move_zero(s->samples, s->first_ns);
	st = tw_samples_emit(s->samples, 0, err);
	return st == TW_OK ? facts_emit(&s->facts, s->pid, s->first_ns, err) : st;
}

const struct tw_format tw_format_btrace3 = {
        .name = "btrace3",
        .title = "btrace 3.0 stack samples (sampling)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct btrace3),
        .start = start,
        .push = push,
        .finish = finish,
};
