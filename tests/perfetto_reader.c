/* perfetto_reader.c - see perfetto_reader.h. */
#include "perfetto_reader.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { MAX_SEQS = 600, MAX_TRACKS = 2000, MAX_NAMES = 1 << 14, MAX_DEPTH = 512, MAX_CPUS = 64 };
enum { MONOTONIC = 3, MONOTONIC_RAW = 5, BOOTTIME = 6, OWN_CLOCK = 64 };
enum { CLEARED = 1, MAX_PAIRS = 4096 };
enum { BEGIN = 1, END = 2, INSTANT = 3, COUNT = 4, OTHER = 0 };
enum { UNFOLD_BYTES = 8 << 20 };

struct seq {
	uint64_t id;
	bool cleared, has_clock;
	int64_t now_ns; /* of its own clock, as the other of its snapshot */
	uint64_t other; /* that clock */
	uint64_t default_clock, default_track, default_counter;
	struct tw_str *names; /* by iid */
	int64_t counter_now;
};

struct track {
	uint64_t uuid, parent;
	int64_t pid, tid; /* of a thread's or process's own */
	struct tw_str name;
	bool counter;
	size_t stack[MAX_DEPTH + 1];
	int64_t cpu_begin[MAX_DEPTH + 1];
	uint32_t depth;
};

struct event {
	int64_t ts_ns;
	size_t order; /* in the file */
	uint64_t track, flow_out, flow_in;
	int64_t cpu_ns, value; /* cpu_ns: reading of the thread's clock, -1 none */
	struct tw_str name;
	int type;
	bool late;
};

struct pair {
	int64_t from_ns, to_ns;
};

struct clock { /* to BOOTTIME */
	struct pair pairs[MAX_PAIRS];
	unsigned n;
};

struct reader {
	struct perfetto_trace *out;
	struct tw_arena *arena;
	struct seq seqs[MAX_SEQS];
	unsigned n_seqs;
	struct track *tracks; /* hashed by uuid */
	struct event *events;
	size_t n_events, cap_events;
	struct clock mono, raw;
	unsigned flushes;     /* since the last extraction */
	size_t may_extract;   /* events read by the last one */
	int64_t extracted_ns; /* the newest that was released */
	struct perfetto_run on_cpu[MAX_CPUS];
	bool no_memory;
};

#define next  perfetto_next
#define get   perfetto_get
#define field perfetto_field

/* Room for one more of a list; false and no_memory without. */
static bool room(struct reader *r, void **list, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 1024;
	void *p;

	if (n < *cap)
		return true;
	p = tw_arena_alloc(r->arena, more, size);
	if (!p) {
		r->no_memory = true;
		return false;
	}
	if (n)
		memcpy(p, *list, n * size);
	*list = p;
	*cap = more;
	return true;
}

static struct seq *seq_of(struct reader *r, uint64_t id)
{
	for (unsigned i = 0; i < r->n_seqs; i++)
		if (r->seqs[i].id == id)
			return &r->seqs[i];
	if (id == 0 || r->n_seqs == MAX_SEQS)
		return NULL;
	r->seqs[r->n_seqs] = (struct seq){.id = id};
	return &r->seqs[r->n_seqs++];
}

static struct track *track_of(struct reader *r, uint64_t uuid, bool make)
{
	for (size_t i = 0; i < MAX_TRACKS; i++) {
		struct track *t = &r->tracks[(uuid % MAX_TRACKS + i) % MAX_TRACKS];

		if (t->uuid == uuid)
			return t;
		if (t->uuid == 0) {
			if (!make)
				return NULL;
			*t = (struct track){.uuid = uuid, .pid = -1, .tid = -1};
			return t;
		}
	}
	return NULL;
}

/* --- clocks --- */

static void add_pair(struct clock *c, const struct field *from, const struct field *boot)
{
	if (from->number && boot->number && c->n < MAX_PAIRS)
		c->pairs[c->n++] = (struct pair){(int64_t)from->value, (int64_t)boot->value};
}

static int64_t to_boot(const struct reader *r, uint64_t clock, int64_t ns)
{
	const struct clock *c = clock == MONOTONIC_RAW ? &r->raw : &r->mono;
	unsigned best = 0;

	if ((clock != MONOTONIC && clock != MONOTONIC_RAW) || c->n == 0)
		return ns;
	for (unsigned i = 0; i < c->n; i++)
		if (c->pairs[i].from_ns <= ns)
			best = i;
	return ns - c->pairs[best].from_ns + c->pairs[best].to_ns;
}

static void read_snapshot(struct reader *r, struct seq *s, struct tw_str m)
{
	struct field f;
	unsigned bad = 0;
	struct field mono = {0}, boot = {0}, raw = {0};
	bool has_own = false;

	while (next(&m, &f, &bad)) {
		uint64_t id = get(f.bytes, 1).value;

		if (id == OWN_CLOCK && get(f.bytes, 3).value == 1)
			has_own = true;
		else if (id == MONOTONIC)
			mono = get(f.bytes, 2);
		else if (id == BOOTTIME)
			boot = get(f.bytes, 2);
		else if (id == MONOTONIC_RAW)
			raw = get(f.bytes, 2);
	}
	add_pair(&r->mono, &mono, &boot);
	add_pair(&r->raw, &raw, &boot);
	if (has_own && s && (mono.number || boot.number)) {
		s->other = boot.number ? BOOTTIME : MONOTONIC;
		s->now_ns = (int64_t)(boot.number ? boot.value : mono.value);
		s->has_clock = true;
	}
}

/* False when nothing relates the packet's time to the trace's. */
static bool read_time(struct reader *r, struct seq *s, struct tw_str m, int64_t *ret_ns)
{
	struct field stamp = get(m, 8);
	uint64_t clock = get(m, 58).value;

	if (!stamp.number)
		return false;
	if (!clock)
		clock = s && s->default_clock ? s->default_clock : BOOTTIME;
	if (clock == OWN_CLOCK && s) {
		s->now_ns += (int64_t)stamp.value;
		*ret_ns = to_boot(r, s->other, s->now_ns);
		return s->has_clock;
	}
	*ret_ns = to_boot(r, clock, (int64_t)stamp.value);
	return clock == BOOTTIME || (clock == MONOTONIC && r->mono.n);
}

/* --- state of sequences --- */

static void read_names(struct reader *r, struct seq *s, struct tw_str interned)
{
	struct field f;

	if (!s->names)
		s->names = tw_arena_zalloc(r->arena, MAX_NAMES, sizeof *s->names);
	if (!s->names) {
		r->no_memory = true;
		return;
	}
	while (next(&interned, &f, &r->out->bad_packets)) {
		uint64_t iid = get(f.bytes, 1).value;

		if (f.number == 2 && iid > 0 && iid < MAX_NAMES)
			s->names[iid] = get(f.bytes, 2).bytes;
	}
}

/* Defaults, names and clocks, which apply before the packet's events, as in trace_processor. */
static void read_state(struct reader *r, struct seq *s, struct tw_str m)
{
	struct field part = get(m, 59);

	if (s && (get(m, 13).value & CLEARED || get(m, 41).value)) {
		*s = (struct seq){.id = s->id,
		        .cleared = true,
		        .has_clock = s->has_clock,
		        .now_ns = s->now_ns,
		        .other = s->other};
	}
	if (part.number && s) {
		s->default_clock = get(part.bytes, 58).value;
		s->default_track = get(get(part.bytes, 11).bytes, 11).value;
		s->default_counter = get(get(part.bytes, 11).bytes, 31).value;
	}
	part = get(m, 12);
	if (part.number && s && s->cleared)
		read_names(r, s, part.bytes);
	else if (part.number)
		r->out->no_state++;
	part = get(m, 6);
	if (part.number)
		read_snapshot(r, s, part.bytes);
}

/* --- tracks and events --- */

static void read_descriptor(struct reader *r, struct tw_str m)
{
	struct track *t = track_of(r, get(m, 1).value, true);
	struct tw_str thread = get(m, 4).bytes;
	struct tw_str process = get(m, 3).bytes;

	if (!t)
		return;
	t->parent = get(m, 5).value;
	t->name = get(m, 2).bytes;
	t->counter = get(m, 8).number != 0;
	if (process.len)
		t->pid = (int64_t)get(process, 1).value;
	if (!thread.len)
		return;
	t->pid = (int64_t)get(thread, 1).value;
	t->tid = (int64_t)get(thread, 2).value;
	for (size_t i = 0; i < MAX_TRACKS; i++)
		if (r->tracks[i].tid == t->tid && r->tracks[i].uuid && &r->tracks[i] != t)
			r->out->two_threads++;
	if (r->out->n_threads < 64)
		r->out->thread_names[r->out->n_threads++] = get(thread, 5).bytes;
}

static struct event *add_event(struct reader *r, int64_t ts_ns)
{
	struct event *e;

	if (!room(r, (void **)&r->events, r->n_events, &r->cap_events, sizeof *e))
		return NULL;
	e = &r->events[r->n_events];
	*e = (struct event){.ts_ns = ts_ns, .order = r->n_events, .cpu_ns = -1};
	e->late = ts_ns < r->extracted_ns;
	r->out->unsorted += e->order > 0 && ts_ns < e[-1].ts_ns;
	r->out->too_late += e->late;
	r->n_events++;
	return e;
}

static void read_event(struct reader *r, struct seq *s, struct tw_str m, struct event *e)
{
	uint64_t iid = get(m, 10).value;
	struct field counter = get(m, 12);

	e->track = get(m, 11).value;
	if (!e->track && s)
		e->track = s->default_track;
	e->type = (int)get(m, 9).value;
	e->value = (int64_t)get(m, 30).value;
	e->flow_out = get(m, 47).value;
	e->flow_in = get(m, 48).value;
	e->name = get(m, 23).bytes;
	if (s && s->default_counter && counter.number) {
		s->counter_now += (int64_t)counter.value;
		e->cpu_ns = s->counter_now;
	}
	if (!iid)
		return;
	if (!s || !s->names || iid >= MAX_NAMES || !s->names[iid].ptr)
		r->out->no_name++;
	else
		e->name = s->names[iid];
}

/* --- statements of the recorder --- */

/* Releases events read before the previous flush, up to the first event read since. */
static void extract(struct reader *r)
{
	int64_t stop = INT64_MAX;

	for (size_t i = r->may_extract; i < r->n_events; i++)
		if (r->events[i].ts_ns < stop)
			stop = r->events[i].ts_ns;
	for (size_t i = 0; i < r->may_extract; i++)
		if (r->events[i].ts_ns <= stop && r->events[i].ts_ns > r->extracted_ns)
			r->extracted_ns = r->events[i].ts_ns;
	r->may_extract = r->n_events;
	r->flushes = 0;
}

static void read_service(struct reader *r, struct tw_str m)
{
	r->flushes += get(m, 3).number != 0;
	if (get(m, 4).number && r->flushes >= 2)
		extract(r);
}

/* --- the kernel --- */

static void switch_to(struct reader *r, uint64_t cpu, int64_t ts_ns, int64_t tid)
{
	struct perfetto_run *on = &r->on_cpu[cpu % MAX_CPUS];

	if (on->tid > 0 && room(r, (void **)&r->out->runs, r->out->n_runs, &r->out->cap_runs,
	                           sizeof *r->out->runs)) {
		on->end_ns = ts_ns;
		r->out->runs[r->out->n_runs++] = *on;
	}
	*on = (struct perfetto_run){.tid = tid, .begin_ns = ts_ns};
}

/* A reading of the bundle's clock: BOOTTIME, or one that the bundle relates to it, or
 * MONOTONIC_RAW, which snapshots do. */
static int64_t kernel_time(const struct reader *r, struct tw_str bundle, uint64_t reading)
{
	uint64_t kind = get(bundle, 5).value;
	struct field own = get(bundle, 6), boot = get(bundle, 7);

	if (kind != 0 && own.number && boot.number)
		return (int64_t)(reading - own.value + boot.value);
	return to_boot(r, kind == 4 ? MONOTONIC_RAW : BOOTTIME, (int64_t)reading);
}

static void read_compact(struct reader *r, struct tw_str bundle, struct tw_str m)
{
	struct tw_str times = get(m, 1).bytes;
	struct tw_str tids = get(m, 3).bytes;
	const uint8_t *t = (const uint8_t *)times.ptr;
	const uint8_t *p = (const uint8_t *)tids.ptr;
	uint64_t now = 0, delta, tid;

	while (t && p && tw_get_varint(&t, (const uint8_t *)times.ptr + times.len, &delta) &&
	        tw_get_varint(&p, (const uint8_t *)tids.ptr + tids.len, &tid)) {
		now += delta;
		switch_to(r, get(bundle, 1).value, kernel_time(r, bundle, now), (int64_t)tid);
	}
}

static void read_ftrace(struct reader *r, struct tw_str m)
{
	const struct tw_str bundle = m;
	uint64_t cpu = get(m, 1).value;
	struct field f;
	unsigned bad = 0;

	while (next(&m, &f, &bad)) {
		struct field sw = f.number == 2 ? get(f.bytes, 4) : (struct field){0};

		if (f.number == 4)
			read_compact(r, bundle, f.bytes);
		if (sw.number)
			switch_to(r, cpu, kernel_time(r, bundle, get(f.bytes, 1).value),
			        (int64_t)get(sw.bytes, 6).value);
	}
}

/* --- packets --- */

static void read_all(struct reader *r, struct tw_str bytes);

static void unfold(struct reader *r, struct field f)
{
	char *out = tw_arena_alloc(r->arena, UNFOLD_BYTES, 1);
	uLongf n = UNFOLD_BYTES;

	if (!out) {
		r->no_memory = true;
		return;
	}
	if (f.number == 133)
		n = ZSTD_decompress(out, UNFOLD_BYTES, f.bytes.ptr, f.bytes.len);
	else if (uncompress((Bytef *)out, &n, (const Bytef *)f.bytes.ptr, f.bytes.len) != Z_OK)
		n = (uLongf)-1;
	if (n > UNFOLD_BYTES)
		r->out->bad_packets++;
	else
		read_all(r, (struct tw_str){out, n});
}

static bool find_attribute(const struct perfetto_trace *t, struct tw_str key, struct field *ret)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < t->n_attributes; i++) {
		struct tw_str m = t->attributes[i];

		while (next(&m, ret, &bad))
			if (tw_str_eq(get(ret->bytes, 1).bytes, key))
				return true;
	}
	return false;
}

static void add_attributes(struct perfetto_trace *t, struct tw_str m)
{
	struct field f, before;
	unsigned bad = 0;

	t->attributes[t->n_attributes] = m;
	while (next(&m, &f, &bad))
		t->told_twice += find_attribute(t, get(f.bytes, 1).bytes, &before);
	t->n_attributes += t->n_attributes < 3;
}

static void read_packet(struct reader *r, struct tw_str m)
{
	uint64_t id = get(m, 10).value;
	struct seq *s = seq_of(r, id);
	struct field event = get(m, 11);
	struct event *e = NULL;
	struct perfetto_trace *t = r->out;
	int64_t ts = 0;
	bool timed;

	if (room(r, (void **)&t->packets, t->n_packets, &t->cap_packets, sizeof *t->packets))
		t->packets[t->n_packets++] = (struct perfetto_packet){m, id};
	read_state(r, s, m);
	timed = read_time(r, s, m, &ts);
	if (timed)
		e = add_event(r, ts);
	if (get(m, 60).number)
		read_descriptor(r, get(m, 60).bytes);
	if (get(m, 1).number)
		read_ftrace(r, get(m, 1).bytes);
	if (get(m, 69).number)
		read_service(r, get(m, 69).bytes);
	if (get(m, 126).number)
		add_attributes(t, get(m, 126).bytes);
	if (get(m, 50).number)
		unfold(r, get(m, 50));
	if (get(m, 133).number)
		unfold(r, get(m, 133));
	if (event.number && e)
		read_event(r, s, event.bytes, e);
	else if (event.number)
		t->no_clock++;
}

static void read_all(struct reader *r, struct tw_str bytes)
{
	struct field f;

	while (!r->no_memory && next(&bytes, &f, &r->out->bad_packets)) {
		if (f.number == 1)
			read_packet(r, f.bytes);
		else
			r->out->bad_packets++;
	}
}

/* --- tracks, by time --- */

static int by_time(const void *pa, const void *pb)
{
	const struct event *a = pa;
	const struct event *b = pb;

	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static struct track *owner_of(struct reader *r, struct track *t)
{
	for (int i = 0; t && t->pid < 0 && i < 8; i++)
		t = t->parent ? track_of(r, t->parent, false) : NULL;
	return t;
}

static void play_begin(struct reader *r, struct track *t, const struct event *e)
{
	struct track *owner = owner_of(r, t);
	struct perfetto_trace *out = r->out;
	bool instant = e->type == INSTANT;

	if (t->depth >= MAX_DEPTH) {
		out->too_deep++;
		return;
	}
	/* a track without a parent belongs to the trace */
	if ((!owner && t->parent) ||
	        !room(r, (void **)&out->slices, out->n, &out->cap, sizeof *out->slices)) {
		out->no_track++;
		return;
	}
	out->slices[out->n] = (struct perfetto_slice){.pid = owner ? owner->pid : -1,
	        .tid = owner ? owner->tid : -1,
	        .begin_ns = e->ts_ns,
	        .end_ns = instant ? e->ts_ns : -1,
	        .cpu_ns = -1,
	        .depth = t->depth,
	        .name = e->name,
	        .track = t->name,
	        .flow_out = e->flow_out,
	        .flow_in = e->flow_in,
	        .instant = instant};
	if (!instant) {
		t->cpu_begin[t->depth] = e->cpu_ns;
		t->stack[t->depth++] = out->n;
	}
	out->n++;
}

static void play(struct reader *r, const struct event *e)
{
	struct track *t = track_of(r, e->track, false);
	struct perfetto_trace *out = r->out;
	struct track *owner;

	if (e->type == OTHER || e->late)
		return;
	if (!t) {
		out->no_track++;
	} else if (e->type == BEGIN || e->type == INSTANT) {
		play_begin(r, t, e);
	} else if (e->type == END && t->depth) {
		struct perfetto_slice *s = &out->slices[t->stack[--t->depth]];

		s->end_ns = e->ts_ns;
		if (e->cpu_ns >= 0 && t->cpu_begin[t->depth] >= 0)
			s->cpu_ns = e->cpu_ns - t->cpu_begin[t->depth];
	} else if (e->type == COUNT && t->counter) {
		owner = owner_of(r, t);
		if (room(r, (void **)&out->counts, out->n_counts, &out->cap_counts,
		            sizeof *out->counts))
			out->counts[out->n_counts++] = (struct perfetto_count){
			        t->name, owner ? owner->pid : -1, e->ts_ns, e->value};
	} else {
		out->unmatched++;
	}
}

bool perfetto_read(struct perfetto_trace *t, struct tw_str bytes, struct tw_arena *a)
{
	struct reader *r = tw_arena_zalloc(a, 1, sizeof *r);

	*t = (struct perfetto_trace){0};
	if (!r)
		return false;
	r->out = t;
	r->arena = a;
	r->extracted_ns = INT64_MIN;
	r->tracks = tw_arena_zalloc(a, MAX_TRACKS, sizeof *r->tracks);
	if (!r->tracks)
		return false;
	read_all(r, bytes);
	if (r->n_events)
		qsort(r->events, r->n_events, sizeof *r->events, by_time);
	for (size_t i = 0; i < r->n_events && !r->no_memory; i++)
		play(r, &r->events[i]);
	return !r->no_memory;
}

unsigned perfetto_errors(const struct perfetto_trace *t)
{
	return t->bad_packets + t->no_state + t->no_name + t->no_clock + t->no_track + t->too_deep +
	       t->unmatched + t->too_late + t->two_threads + t->told_twice;
}

bool perfetto_attribute(const struct perfetto_trace *t, const char *key, struct tw_str *ret_text,
        int64_t *ret_number)
{
	struct field f;
	bool found = find_attribute(t, tw_str_of(key), &f);

	if (found)
		*ret_text = get(f.bytes, 3).bytes;
	if (found)
		*ret_number = (int64_t)get(f.bytes, 2).value;
	return found;
}
