/* perfetto_reader.c - see perfetto_reader.h. */
#include "perfetto_reader.h"

#include <string.h>

enum { MAX_SEQS = 80, MAX_TRACKS = 200, MAX_NAMES = 1 << 14, MAX_DEPTH = 512 };
enum { MONOTONIC = 3, OWN_CLOCK = 64, CLEARED = 1, BEGIN = 1, END = 2 };

struct seq {
	uint64_t id;
	bool cleared, has_clock;
	int64_t now_ns; /* of its own clock, as MONOTONIC */
	uint64_t default_clock, default_track;
	struct tw_str *names; /* by iid */
};

struct track {
	uint64_t uuid, parent;
	int64_t pid, tid; /* of a thread's own */
	int64_t last_ns;
	size_t stack[MAX_DEPTH + 1];
	uint32_t depth;
};

struct reader {
	struct perfetto_trace *out;
	struct tw_arena *arena;
	struct seq seqs[MAX_SEQS];
	unsigned n_seqs;
	struct track *tracks;
	unsigned n_tracks;
	bool no_memory;
};

struct field {
	uint32_t number;
	uint64_t value;
	struct tw_str bytes;
};

/* Takes the next field off *m; false at its end or where it is damaged (*bad). */
static bool next(struct tw_str *m, struct field *f, unsigned *bad)
{
	const uint8_t *p = (const uint8_t *)m->ptr;
	const uint8_t *end = p + m->len;
	uint64_t tag;

	if (m->len == 0)
		return false;
	*f = (struct field){0};
	if (!tw_get_varint(&p, end, &tag) || !tw_get_varint(&p, end, &f->value) ||
	        ((tag & 7) != 0 && (tag & 7) != 2)) {
		++*bad;
		m->len = 0;
		return false;
	}
	f->number = (uint32_t)(tag >> 3);
	if ((tag & 7) == 2) {
		if (f->value > (uint64_t)(end - p)) {
			++*bad;
			m->len = 0;
			return false;
		}
		f->bytes = (struct tw_str){(const char *)p, (size_t)f->value};
		p += f->value;
	}
	*m = (struct tw_str){(const char *)p, (size_t)(end - p)};
	return true;
}

/* The last field of this number; zero when there is none. */
static struct field get(struct tw_str m, uint32_t number)
{
	struct field f, found = {0};
	unsigned bad = 0;

	while (next(&m, &f, &bad))
		if (f.number == number)
			found = f;
	return found;
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

static struct track *track_of(struct reader *r, uint64_t uuid)
{
	for (unsigned i = 0; i < r->n_tracks; i++)
		if (r->tracks[i].uuid == uuid)
			return &r->tracks[i];
	return NULL;
}

static void read_snapshot(struct seq *s, struct tw_str m)
{
	struct field f;
	unsigned bad = 0;
	uint64_t real = 0;
	bool has_own = false, has_real = false;

	while (next(&m, &f, &bad)) {
		uint64_t id = get(f.bytes, 1).value;

		if (id == OWN_CLOCK && get(f.bytes, 3).value == 1) {
			/* the next delta is relative to its value here, which is the real clock's
			 */
			has_own = true;
		} else if (id == MONOTONIC) {
			real = get(f.bytes, 2).value;
			has_real = true;
		}
	}
	if (has_own && has_real) {
		s->now_ns = (int64_t)real;
		s->has_clock = true;
	}
}

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

static void read_descriptor(struct reader *r, struct tw_str m)
{
	uint64_t uuid = get(m, 1).value;
	struct track *t = track_of(r, uuid);
	struct tw_str thread = get(m, 4).bytes;

	if (!t && r->n_tracks < MAX_TRACKS) {
		t = &r->tracks[r->n_tracks++];
		*t = (struct track){.uuid = uuid, .pid = -1, .tid = -1, .last_ns = INT64_MIN};
	}
	if (!t)
		return;
	t->parent = get(m, 5).value;
	if (thread.len) {
		t->pid = (int64_t)get(thread, 1).value;
		t->tid = (int64_t)get(thread, 2).value;
		if (r->out->n_threads < 64)
			r->out->thread_names[r->out->n_threads++] = get(thread, 5).bytes;
	}
}

static const struct track *thread_above(struct reader *r, const struct track *t)
{
	for (int i = 0; t && t->tid < 0 && i < 8; i++)
		t = t->parent ? track_of(r, t->parent) : NULL;
	return t;
}

static void begin_slice(struct reader *r, struct seq *s, struct track *t, int64_t ts, uint64_t iid)
{
	const struct track *thread = thread_above(r, t);
	struct perfetto_trace *out = r->out;

	if (t->depth >= MAX_DEPTH) {
		out->too_deep++;
		return;
	}
	if (!thread || out->n == out->cap) {
		out->no_track++;
		return;
	}
	if (!s->names || iid == 0 || iid >= MAX_NAMES || !s->names[iid].ptr) {
		out->no_name++;
		return;
	}
	out->slices[out->n] =
	        (struct perfetto_slice){thread->pid, thread->tid, ts, -1, t->depth, s->names[iid]};
	t->stack[t->depth++] = out->n++;
}

static void read_event(struct reader *r, struct seq *s, struct tw_str m, int64_t ts)
{
	uint64_t uuid = get(m, 11).value;
	struct track *t = track_of(r, uuid ? uuid : s->default_track);
	uint64_t type = get(m, 9).value;

	if (!t) {
		r->out->no_track++;
		return;
	}
	if (ts < t->last_ns)
		r->out->backwards++;
	t->last_ns = ts;
	if (type == BEGIN)
		begin_slice(r, s, t, ts, get(m, 10).value);
	else if (type == END && t->depth)
		r->out->slices[t->stack[--t->depth]].end_ns = ts;
	else
		r->out->unmatched++;
}

static void read_defaults(struct seq *s, struct tw_str m)
{
	s->default_clock = get(m, 58).value;
	s->default_track = get(get(m, 11).bytes, 11).value;
}

/* Defaults, names and clocks, which come before what the packet says, as in trace_processor. */
static void read_state(struct reader *r, struct seq *s, struct tw_str m)
{
	struct field part = get(m, 59);

	if (get(m, 13).value & CLEARED) {
		s->cleared = true;
		if (s->names)
			memset(s->names, 0, MAX_NAMES * sizeof *s->names);
	}
	if (part.number)
		read_defaults(s, part.bytes);
	part = get(m, 12);
	if (part.number && s->cleared)
		read_names(r, s, part.bytes);
	else if (part.number)
		r->out->no_state++;
	part = get(m, 6);
	if (part.number)
		read_snapshot(s, part.bytes);
}

/* False when the packet's time is not on the sequence's own clock. */
static bool read_time(struct seq *s, struct tw_str m)
{
	struct field stamp = get(m, 8);
	uint64_t clock = get(m, 58).value;

	if (!stamp.number || (clock ? clock : s->default_clock) != OWN_CLOCK)
		return false;
	s->now_ns += (int64_t)stamp.value;
	return s->has_clock;
}

static void read_packet(struct reader *r, struct tw_str m)
{
	struct seq *s = seq_of(r, get(m, 10).value);
	struct field track = get(m, 60);
	struct field event = get(m, 11);
	bool timed;

	if (s)
		read_state(r, s, m);
	timed = s && read_time(s, m);
	if (track.number)
		read_descriptor(r, track.bytes);
	if (event.number && timed)
		read_event(r, s, event.bytes, s->now_ns);
	else if (event.number)
		r->out->no_clock++;
}

bool perfetto_read(struct perfetto_trace *t, struct tw_str bytes, struct tw_arena *a)
{
	struct reader *r = tw_arena_zalloc(a, 1, sizeof *r);
	struct field f;

	*t = (struct perfetto_trace){.cap = bytes.len / 8 + 1};
	t->slices = tw_arena_alloc(a, t->cap, sizeof *t->slices);
	if (!r || !t->slices)
		return false;
	r->out = t;
	r->arena = a;
	r->tracks = tw_arena_alloc(a, MAX_TRACKS, sizeof *r->tracks);
	if (!r->tracks)
		return false;
	while (next(&bytes, &f, &t->bad_packets)) {
		if (f.number == 1)
			read_packet(r, f.bytes);
		else
			t->bad_packets++;
	}
	return !r->no_memory;
}

unsigned perfetto_errors(const struct perfetto_trace *t)
{
	return t->bad_packets + t->no_state + t->no_name + t->no_clock + t->no_track +
	       t->backwards + t->too_deep + t->unmatched;
}
