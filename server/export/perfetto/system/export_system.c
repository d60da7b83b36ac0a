/* export_system.c - see the header. */
#include "server/export/perfetto/system/export_system.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/order.h"
#include "server/base/file/io.h"

/* --- packets one by one, with their times ---
 *
 * The time range of a bundle of kernel events is that of its events: the bundle's packet often has
 * no time, or the time of writing.
 */

enum { STEP_BYTES = 64 << 10, READER_ARENA_BYTES = 256 << 20, UNPACK_BYTES = 4 << 20 };

/* One packet, as passed to tw_system_packet_fn. */
struct tw_system_packet {
	const uint8_t *p; /* the message, without its tag and length */
	size_t n;
	bool inside; /* of a compressed packet */
	struct tw_perfetto_packet head;
	/* after reader_time */
	int64_t first_ns, last_ns;           /* on the trace's clock; -1 unknown */
	uint32_t index;                      /* of its sequence, 0 none */
	struct tw_perfetto_own_clock *moved; /* the clock of which this packet's time is a step */
};

typedef enum tw_status (*tw_system_packet_fn)(
        void *arg, struct tw_system_packet *p, struct tw_err *err);

/* Decompresses the file and resynchronises after damage, as the decoder does.  Packets inside
 * compressed ones are reported after the one that contains them. */
struct tw_system_reader {
	int fd;
	uint64_t at; /* offset in the file */
	tw_system_packet_fn each;
	void *arg;
	struct tw_arena *arena;
	struct tw_sink sink;
	struct tw_unzip *unzip;
	struct tw_perfetto_packets packets, inner;
	struct tw_perfetto_clocks *clocks;
	struct tw_perfetto_sequences sequences;
	uint64_t inner_offset, damages, step_bytes;
	bool inside, cut, done;
	uint8_t *piece;
};

static void count_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct tw_system_reader *r =
	        (struct tw_system_reader *)(void *)((char *)s -
	                                            offsetof(struct tw_system_reader, sink));

	(void)offset;
	r->cut = r->cut || what == TW_REPAIR_input_truncated;
	r->damages += what == TW_REPAIR_begin_clamped ? 0 : n;
}

/* --- compressed packets --- */

static enum tw_status push_inner(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_system_reader *r = arg;

	return tw_perfetto_packets_push(&r->inner, p, n, err);
}

/* Damage in a compressed packet loses only the damaged packets. */
static enum tw_status decompress_packet(
        struct tw_system_reader *r, const struct tw_system_packet *p, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(UNPACK_BYTES);
	struct tw_unzip *z = a ? tw_unzip_new(a, &limits, push_inner, r) : NULL;
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	enum tw_status st = z ? TW_OK : tw_oom(err);

	r->inside = true;
	if (st == TW_OK)
		st = tw_unzip_push(z, p->head.content.bytes, p->head.content.len, err);
	if (st == TW_OK)
		st = tw_unzip_finish(z, &end, err);
	if (st == TW_OK)
		st = tw_perfetto_packets_finish(&r->inner, err);
	if (z)
		r->step_bytes += tw_unzip_bytes(z);
	r->damages += end != TW_UNZIP_COMPLETE;
	r->inside = false;
	tw_unzip_free(z);
	tw_arena_free(a);
	return st;
}

static enum tw_status each_packet(
        void *arg, const struct tw_perfetto_piece *piece, bool *ret_damaged, struct tw_err *err)
{
	struct tw_system_reader *r = arg;
	struct tw_system_packet p = {.p = piece->p, .n = piece->n, .inside = r->inside};
	enum tw_status st;

	if (!tw_perfetto_packet_read(tw_pb_of(p.p, p.n), &p.head)) {
		r->damages++;
		*ret_damaged = true;
		return TW_OK;
	}
	st = r->each(r->arg, &p, err);
	if (st != TW_OK || r->inside)
		return st;
	if (p.head.content.number == TW_SYSTEM_ZLIB || p.head.content.number == TW_SYSTEM_ZSTD)
		st = decompress_packet(r, &p, err);
	return st;
}

/* --- the file --- */

static enum tw_status push_packets(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_system_reader *r = arg;

	r->step_bytes += n;
	if (r->step_bytes > TW_SYSTEM_PUSH_MAX_BYTES)
		return tw_fail_at(err, TW_TOO_LARGE, r->at,
		        "the decompressed size of the device's Perfetto trace is too large");
	return tw_perfetto_packets_push(&r->packets, p, n, err);
}

/* clocks must outlive it and collects the snapshots.  The caller frees with reader_close, also on
 * failure. */
static enum tw_status reader_open(struct tw_system_reader *r, int fd,
        struct tw_perfetto_clocks *clocks, tw_system_packet_fn each, void *arg, struct tw_err *err)
{
	static const struct tw_sink_ops ops = {.repair = count_repair};
	struct tw_limits limits = tw_limits_default();

	*r = (struct tw_system_reader){
	        .fd = fd, .clocks = clocks, .each = each, .arg = arg, .sink = {&ops}};
	r->arena = tw_arena_new(READER_ARENA_BYTES);
	if (!r->arena)
		return tw_oom(err);
	r->sequences.arena = r->arena;
	r->sequences.salt = (uintptr_t)r->arena;
	tw_perfetto_packets_init(&r->packets, r->arena, &r->sink, each_packet, r);
	tw_perfetto_packets_init(&r->inner, r->arena, &r->sink, each_packet, r);
	r->inner.inside = &r->inner_offset;
	r->piece = tw_arena_alloc(r->arena, STEP_BYTES, 1);
	r->unzip = tw_unzip_new(r->arena, &limits, push_packets, r);
	return r->piece && r->unzip ? TW_OK : tw_oom(err);
}

static enum tw_status finish(struct tw_system_reader *r, struct tw_err *err)
{
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	enum tw_status st = tw_unzip_finish(r->unzip, &end, err);

	r->cut = r->cut || end != TW_UNZIP_COMPLETE;
	if (st == TW_OK)
		st = tw_perfetto_packets_finish(&r->packets, err);
	r->done = true;
	return st;
}

/* Reports the packets in the next piece of the file; r->done: end. */
static enum tw_status reader_step(struct tw_system_reader *r, struct tw_err *err)
{
	ssize_t n = tw_pread_full(r->fd, r->piece, STEP_BYTES, r->at);

	if (n < 0)
		return tw_fail_errno(err, TW_IO, "the device's Perfetto trace cannot be read");
	r->step_bytes = 0;
	if (n == 0)
		return finish(r, err);
	r->at += (uint64_t)n;
	return tw_unzip_push(r->unzip, r->piece, (size_t)n, err);
}

static void reader_close(struct tw_system_reader *r)
{
	tw_unzip_free(r->unzip);
	tw_arena_free(r->arena);
	r->unzip = NULL;
	r->arena = NULL;
}

/* --- times --- */

static void widen(struct tw_system_packet *p, int64_t ns)
{
	if (p->first_ns < 0 || ns < p->first_ns)
		p->first_ns = ns;
	if (ns > p->last_ns)
		p->last_ns = ns;
}

struct bundle {
	struct tw_perfetto_kernel clock;
	struct tw_pb_field first, last, compact; /* events */
};

static struct bundle read_bundle(struct tw_pb message)
{
	struct bundle b = {.clock = {0, 0}};
	uint64_t number[8] = {0};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 2 && f.type == TW_PB_BYTES) {
			b.last = f;
			if (!b.first.number)
				b.first = f;
		} else if (f.number == 4 && f.type == TW_PB_BYTES) {
			b.compact = f;
		} else if (f.number < 8 && f.type == TW_PB_VARINT) {
			number[f.number] = f.value;
		}
	b.clock = tw_perfetto_clocks_kernel(number[5], number[6], number[7]);
	return b;
}

/* Converts a kernel time to the trace's clock. */
static bool kernel_time(
        const struct tw_system_reader *r, const struct bundle *b, uint64_t reading, int64_t *ret_ns)
{
	int64_t ns;

	return reading <= INT64_MAX &&
	       !__builtin_add_overflow((int64_t)reading, b->clock.shift_ns, &ns) &&
	       tw_perfetto_clocks_convert(r->clocks, b->clock.clock, ns, ret_ns);
}

static void add_kernel_time(const struct tw_system_reader *r, const struct bundle *b,
        uint64_t reading, struct tw_system_packet *p)
{
	int64_t ns;

	if (kernel_time(r, b, reading, &ns))
		widen(p, ns);
}

static void add_event(const struct tw_system_reader *r, const struct bundle *b,
        const struct tw_pb_field *event, struct tw_system_packet *p)
{
	struct tw_pb message = tw_pb_in(event);
	struct tw_pb_field f;

	if (!event->number)
		return;
	while (tw_pb_next(&message, &f))
		if (f.number == 1 && f.type == TW_PB_VARINT) {
			add_kernel_time(r, b, f.value, p);
			return;
		}
}

/* Columns of time differences: switches (1) and wake-ups (7). */
static void add_compact(
        const struct tw_system_reader *r, const struct bundle *b, struct tw_system_packet *p)
{
	struct tw_pb message = tw_pb_in(&b->compact);
	struct tw_pb_field f;

	while (b->compact.number && tw_pb_next(&message, &f)) {
		struct tw_pb numbers = tw_pb_in(&f);
		uint64_t now = 0;
		uint64_t delta;
		bool first = true;

		if ((f.number != 1 && f.number != 7) || f.type != TW_PB_BYTES)
			continue;
		while (tw_pb_number(&numbers, &delta)) {
			now += delta;
			if (first)
				add_kernel_time(r, b, now, p);
			first = false;
		}
		if (!first)
			add_kernel_time(r, b, now, p);
	}
}

static void read_defaults(struct tw_perfetto_sequence *q, struct tw_pb message)
{
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 58)
			q->clock = (uint32_t)f.value;
}

/* Adds the packet's own time, which advances its sequence's clock. */
static void add_packet_time(
        struct tw_system_reader *r, struct tw_perfetto_sequence *q, struct tw_system_packet *p)
{
	uint32_t clock = p->head.clock ? p->head.clock : q->clock;
	int64_t ns;

	if (clock == 0)
		clock = r->clocks->trace_clock ? r->clocks->trace_clock : TW_PERFETTO_BOOTTIME;
	if (clock < 64 || clock > 127) {
		if (p->head.time <= INT64_MAX &&
		        tw_perfetto_clocks_convert(r->clocks, clock, (int64_t)p->head.time, &ns))
			widen(p, ns);
		return;
	}
	for (unsigned i = 0; i < TW_PERFETTO_OWN_CLOCKS; i++)
		if (q->own[i].id == clock && q->own[i].incremental)
			p->moved = &q->own[i];
	if (tw_perfetto_clocks_own(q->own, clock, p->head.time, &ns))
		widen(p, ns);
}

/* Call once per packet, in order: updates the packet's sequence and sets the times. */
static enum tw_status reader_time(
        struct tw_system_reader *r, struct tw_system_packet *p, struct tw_err *err)
{
	struct tw_perfetto_sequence *q = tw_perfetto_sequences_get(&r->sequences, p->head.sequence);
	enum tw_status st = TW_OK;
	struct bundle b;

	if (!q)
		return tw_oom(err);
	p->first_ns = p->last_ns = -1;
	p->index = q->id ? q->scope.sequence : 0;
	if (p->head.flags & TW_PERFETTO_STATE_CLEARED)
		q->clock = 0;
	if (p->head.defaults.number)
		read_defaults(q, tw_pb_in(&p->head.defaults));
	if (p->head.snapshot.number)
		st = tw_perfetto_clocks_snapshot(
		        r->clocks, tw_pb_in(&p->head.snapshot), q->id ? q->own : NULL, err);
	if (st != TW_OK || p->head.machine)
		return st;
	if (p->head.content.number == TW_SYSTEM_FTRACE) {
		b = read_bundle(tw_pb_in(&p->head.content));
		add_event(r, &b, &b.first, p);
		add_event(r, &b, &b.last, p);
		add_compact(r, &b, p);
	} else if (p->head.has_time && !p->head.snapshot.number) {
		add_packet_time(r, q, p);
	}
	return TW_OK;
}

/* --- what our packets must avoid --- */

enum { ARENA_BYTES = 64 << 20, ARENA_SPARE = 16 << 20, READ_COMPLETED = 4 };

struct scan {
	struct tw_system *s;
	uint32_t order; /* of descriptors */
	bool crowded;   /* most descriptors are of different threads */
	struct tw_system_reader reader;
};

/* --- tracks --- */

static void use_id(struct tw_system *s, uint64_t id)
{
	s->prefixes[id >> 51] |= (uint8_t)(1U << (id >> 48) % 8);
}

TW_ORDER_BY(by_thread, struct tw_system_thread, TW_RISING(tid), TW_RISING(pid), TW_RISING(order))

/* Sorts threads and keeps the latest descriptor of each. */
static void finish_threads(struct tw_system *s)
{
	struct tw_system_thread *t = s->threads;
	uint32_t n = 0;

	TW_SORT(t, s->n_threads, by_thread);
	for (uint32_t i = 0; i < s->n_threads; i++) {
		if (n && t[n - 1].tid == t[i].tid && t[n - 1].pid == t[i].pid)
			n--;
		t[n++] = t[i];
	}
	s->n_threads = n;
}

/* Recorders describe their threads repeatedly. */
static enum tw_status note_thread(struct scan *c, uint64_t tid, uint64_t pid, uint64_t uuid)
{
	struct tw_system *s = c->s;

	if (!s->threads)
		s->threads = tw_arena_alloc(s->arena, TW_SYSTEM_THREADS, sizeof *s->threads);
	if (!s->threads)
		return TW_NOMEM;
	if (s->n_threads == TW_SYSTEM_THREADS && !c->crowded) {
		finish_threads(s);
		c->crowded = s->n_threads > TW_SYSTEM_THREADS / 2;
	}
	if (s->n_threads < TW_SYSTEM_THREADS)
		s->threads[s->n_threads++] =
		        (struct tw_system_thread){(uint32_t)pid, c->order++, tid, uuid};
	return TW_OK;
}

static uint64_t number_in(struct tw_pb message, uint32_t number)
{
	struct tw_pb_field f;
	uint64_t value = 0;

	while (tw_pb_next(&message, &f))
		if (f.number == number && f.type != TW_PB_BYTES)
			value = f.value;
	return value;
}

static enum tw_status note_track(struct scan *c, struct tw_pb message)
{
	uint64_t uuid = number_in(message, 1);
	struct tw_pb_field f;
	enum tw_status st = TW_OK;

	use_id(c->s, uuid);
	while (st == TW_OK && tw_pb_next(&message, &f)) {
		if (f.number == 5 && f.type != TW_PB_BYTES)
			use_id(c->s, f.value); /* its parent */
		if (f.type != TW_PB_BYTES)
			continue;
		if (f.number == 4) /* thread */
			st = note_thread(
			        c, number_in(tw_pb_in(&f), 2), number_in(tw_pb_in(&f), 1), uuid);
		else if (f.number == 3) /* process */
			st = note_thread(c, 0, number_in(tw_pb_in(&f), 1), uuid);
	}
	return st;
}

/* Records the track of an event, and its flows. */
static void note_event(struct scan *c, struct tw_pb message)
{
	static const uint8_t ids[] = {11, 36, 42, 47, 48};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		for (size_t i = 0; i < sizeof ids; i++)
			if (ids[i] == f.number && f.type != TW_PB_BYTES)
				use_id(c->s, f.value);
}

/* --- packets --- */

static enum tw_status note_payload(struct scan *c, const struct tw_system_packet *p)
{
	struct tw_system *s = c->s;
	struct tw_pb message = tw_pb_in(&p->head.content);
	struct tw_pb_field f;

	switch (p->head.content.number) {
	case TW_SYSTEM_ZLIB:
		s->has_zlib = true;
		break;
	case TW_SYSTEM_ZSTD:
		s->has_zstd = true;
		break;
	case TW_SYSTEM_TRACK:
		return note_track(c, message);
	case TW_SYSTEM_TRACK_EVENT:
		note_event(c, message);
		break;
	case TW_SYSTEM_SERVICE_EVENT:
		while (tw_pb_next(&message, &f))
			s->flushed = s->flushed || f.number == READ_COMPLETED;
		break;
	default:
		break;
	}
	return TW_OK;
}

static enum tw_status scan_packet(void *arg, struct tw_system_packet *p, struct tw_err *err)
{
	struct scan *c = arg;
	struct tw_system *s = c->s;
	enum tw_status st = reader_time(&c->reader, p, err);

	s->packets++;
	if (p->head.sequence < TW_SYSTEM_SEQUENCES)
		s->sequences[p->head.sequence / 8] |= (uint8_t)(1U << p->head.sequence % 8);
	if (st == TW_OK && note_payload(c, p) != TW_OK)
		st = tw_oom(err);
	/* The times of snapshots, descriptors and process trees do not bound the recording. */
	if (p->first_ns >= 0 && p->head.content.number != TW_SYSTEM_PROCESS_TREE &&
	        p->head.content.number != TW_SYSTEM_TRACK) {
		if (s->first_ns < 0 || p->first_ns < s->first_ns)
			s->first_ns = p->first_ns;
		if (p->last_ns > s->last_ns)
			s->last_ns = p->last_ns;
	}
	return st;
}

static enum tw_system_fault check_codecs(const struct tw_system *s)
{
	if (s->packets == 0)
		return TW_SYSTEM_NO_TRACE;
	return s->has_zlib && s->has_zstd ? TW_SYSTEM_TWO_CODECS : TW_SYSTEM_FINE;
}

/* Returns whether the file is the cause, which is not a failure. Running out of memory otherwise is
 * one. */
static bool is_fault_of_file(const struct scan *c, enum tw_status st, enum tw_system_fault *ret)
{
	*ret = st == TW_TOO_LARGE ? TW_SYSTEM_TOO_LARGE : TW_SYSTEM_TOO_MUCH;
	return st == TW_TOO_LARGE ||
	       (st == TW_NOMEM &&
	               (!tw_arena_fits(c->s->arena, ARENA_SPARE) ||
	                       (c->reader.arena && !tw_arena_fits(c->reader.arena, ARENA_SPARE))));
}

static enum tw_status read_all(struct scan *c, int fd, struct tw_err *err)
{
	struct tw_system *s = c->s;
	enum tw_status st = reader_open(&c->reader, fd, &s->clocks, scan_packet, c, err);

	while (st == TW_OK && !c->reader.done)
		st = reader_step(&c->reader, err);
	s->bytes = c->reader.at;
	s->damages = c->reader.damages;
	s->cut = c->reader.cut;
	if (st == TW_OK)
		s->fault = check_codecs(s);
	else if (is_fault_of_file(c, st, &s->fault))
		st = TW_OK;
	finish_threads(s);
	reader_close(&c->reader);
	return st;
}

enum tw_status tw_system_scan(int fd, struct tw_system **ret, struct tw_err *err)
{
	struct scan c = {.s = tw_system_new()};
	enum tw_status st;

	if (!c.s)
		return tw_oom(err);
	c.s->clocks.sink = &c.reader.sink;
	st = read_all(&c, fd, err);
	c.s->clocks.sink = NULL;
	if (st == TW_OK)
		*ret = c.s;
	else
		tw_system_free(c.s);
	return st;
}

struct tw_system *tw_system_new(void)
{
	struct tw_system *s = tw_mem_zalloc(1, sizeof *s);

	if (s)
		s->arena = tw_arena_new(ARENA_BYTES);
	if (!s || !s->arena) {
		tw_mem_free(s);
		return NULL;
	}
	s->clocks.arena = s->arena;
	s->first_ns = s->last_ns = -1;
	s->sequences[0] = 1; /* 0 means none */
	return s;
}

struct tw_system *tw_system_free(struct tw_system *s)
{
	if (s) {
		tw_arena_free(s->arena);
		tw_mem_free(s);
	}
	return NULL;
}

const char *tw_system_why(const struct tw_system *s)
{
	static const char *const names[TW_SYSTEM_FAULTS] = {
	        [TW_SYSTEM_TOO_LARGE] = "its decompressed size is too large",
	        [TW_SYSTEM_NO_TRACE] = "it is not a Perfetto trace, or empty",
	        [TW_SYSTEM_TWO_CODECS] = "it mixes two compressions, which Perfetto refuses",
	        [TW_SYSTEM_TOO_MUCH] =
	                "it has more clock and thread data than the memory limit allows",
	};

	return names[s->fault];
}

uint32_t tw_system_sequence(const struct tw_system *s, uint32_t *next)
{
	uint32_t id = *next ? *next : 1;

	while (s && id < TW_SYSTEM_SEQUENCES && s->sequences[id / 8] >> id % 8 & 1)
		id++;
	if (s && id == TW_SYSTEM_SEQUENCES)
		id = UINT32_C(1) << 31; /* recorders count from 1: all 65,535 are in use */
	*next = id + 1;
	return id;
}

uint16_t tw_system_prefix(const struct tw_system *s)
{
	uint32_t prefix = 0x7477;

	for (uint32_t i = 0; s && i < TW_SYSTEM_PREFIXES; i++, prefix++) {
		prefix &= 0xFFFF;
		if (!(s->prefixes[prefix / 8] >> prefix % 8 & 1))
			break;
	}
	return (uint16_t)prefix;
}

/* --- copying its packets --- */

enum { SERVICE_FLUSHED = 3, SERVICE_READ = 4 };

struct skipped { /* omitted steps of one sequence's clock */
	uint64_t steps;
	uint32_t clock;
};

struct tw_system_copy {
	struct tw_system *system;
	struct tw_system_range range;
	struct tw_system_reader reader;
	struct skipped *skipped; /* by index of sequence */
	uint32_t cap_skipped;
	struct tw_buf *out;
	size_t gap;
	/* offset in the output of the compressed packet whose content is being reported */
	size_t container_at;
	bool gap_reported;
	uint64_t packets;
};

static enum tw_status put(struct tw_system_copy *c, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)tw_buf_add_u8(c->out, 0x0A);
	(void)tw_buf_add_varint(c->out, n);
	if (tw_buf_add(c->out, p, n) != TW_OK)
		return tw_oom(err);
	return TW_OK;
}

/* --- selecting packets --- */

/* Packets that later packets depend on, and those that apply to the whole trace. */
static bool is_state(const struct tw_system_packet *p)
{
	static const uint8_t payloads[] = {TW_SYSTEM_PROCESS_TREE, 33, 34, 35, 36, 43, 44, 45, 47,
	        TW_SYSTEM_TRACK, 61, 64, 67, TW_SYSTEM_SERVICE_EVENT, 72, 78, 82, 89, 107, 122, 124,
	        126};

	if (p->head.flags & TW_PERFETTO_STATE_CLEARED || p->head.defaults.number ||
	        p->head.interned.number || p->head.snapshot.number)
		return true;
	for (size_t i = 0; i < sizeof payloads; i++)
		if (payloads[i] == p->head.content.number)
			return true;
	return p->head.content.number == 0;
}

static bool goes(const struct tw_system_copy *c, const struct tw_system_packet *p)
{
	if (!c->range.cut || is_state(p) || p->first_ns < 0)
		return true;
	return p->last_ns >= c->range.from_ns && p->first_ns < c->range.to_ns;
}

/* --- omitted clock steps --- */

static struct skipped *skipped_of(struct tw_system_copy *c, uint32_t index)
{
	uint32_t cap = c->cap_skipped ? c->cap_skipped : 64;
	struct skipped *s;

	while (cap <= index)
		cap *= 2;
	if (index < c->cap_skipped)
		return &c->skipped[index];
	s = tw_mem_resize(c->skipped, cap, sizeof *s);
	if (!s)
		return NULL;
	memset(s + c->cap_skipped, 0, (cap - c->cap_skipped) * sizeof *s);
	c->skipped = s;
	c->cap_skipped = cap;
	return &s[index];
}

/* A packet that contains only a time. */
static enum tw_status put_steps(
        struct tw_system_copy *c, uint32_t sequence, struct skipped *s, struct tw_err *err)
{
	uint8_t bytes[48];
	uint8_t *p = bytes;

	if (s->steps == 0)
		return TW_OK;
	*p++ = 0x40; /* timestamp */
	p = tw_put_varint(p, s->steps);
	*p++ = 0x50; /* trusted_packet_sequence_id */
	p = tw_put_varint(p, sequence);
	*p++ = 0xD0; /* timestamp_clock_id */
	*p++ = 0x03;
	p = tw_put_varint(p, s->clock);
	s->steps = 0;
	return put(c, bytes, (size_t)(p - bytes), err);
}

static enum tw_status keep_steps(
        struct tw_system_copy *c, const struct tw_system_packet *p, bool taken, struct tw_err *err)
{
	struct skipped *s;
	enum tw_status st = TW_OK;

	if (!c->range.cut || p->index == 0)
		return TW_OK;
	s = skipped_of(c, p->index);
	if (!s)
		return tw_oom(err);
	if (p->head.snapshot.number)
		s->steps = 0; /* its clock is set to a new value */
	if (!p->moved)
		return TW_OK;
	if (taken || s->clock != p->moved->id)
		st = put_steps(c, p->head.sequence, s, err);
	s->clock = p->moved->id;
	if (!taken)
		s->steps += p->head.time;
	return st;
}

/* --- packets --- */

static bool is_flush_done(const struct tw_system_packet *p)
{
	struct tw_pb message = tw_pb_in(&p->head.content);
	struct tw_pb_field f;

	if (p->head.content.number != TW_SYSTEM_SERVICE_EVENT)
		return false;
	while (tw_pb_next(&message, &f))
		if (f.number == SERVICE_FLUSHED || f.number == SERVICE_READ)
			return true;
	return false;
}

static enum tw_status copy_packet(void *arg, struct tw_system_packet *p, struct tw_err *err)
{
	struct tw_system_copy *c = arg;
	bool holds = p->head.content.number == TW_SYSTEM_ZLIB ||
	             p->head.content.number == TW_SYSTEM_ZSTD;
	enum tw_status st = reader_time(&c->reader, p, err);
	bool taken;

	if (st != TW_OK)
		return st;
	if (holds && !p->inside && c->range.cut)
		return TW_OK; /* its content follows, packet by packet */
	if (!p->inside || c->range.cut)
		c->container_at = c->out->len;
	if (!c->gap_reported && c->system->flushed && is_flush_done(p)) {
		c->gap = c->container_at;
		c->gap_reported = true;
	}
	if (p->inside && !c->range.cut)
		return TW_OK; /* already copied with the packet that contains it */
	taken = goes(c, p);
	st = keep_steps(c, p, taken, err);
	if (st != TW_OK || !taken)
		return st;
	c->packets++;
	return put(c, p->p, p->n, err);
}

enum tw_status tw_system_copy_open(int fd, struct tw_system *s, const struct tw_system_range *range,
        struct tw_system_copy **ret, struct tw_err *err)
{
	struct tw_system_copy *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	c->system = s;
	c->range = *range;
	st = reader_open(&c->reader, fd, &s->clocks, copy_packet, c, err);
	s->clocks.sink = &c->reader.sink;
	if (st == TW_OK)
		*ret = c;
	else
		tw_system_copy_close(c);
	return st;
}

enum tw_status tw_system_copy_step(struct tw_system_copy *c, struct tw_buf *out, size_t *ret_gap,
        bool *ret_done, struct tw_err *err)
{
	enum tw_status st;

	c->out = out;
	c->gap = SIZE_MAX;
	st = reader_step(&c->reader, err);
	if (st == TW_OK && c->reader.done && !c->gap_reported) {
		c->gap = out->len;
		c->gap_reported = true;
	}
	*ret_gap = c->gap;
	*ret_done = c->reader.done;
	return st;
}

struct tw_system_copy *tw_system_copy_close(struct tw_system_copy *c)
{
	if (!c)
		return NULL;
	reader_close(&c->reader);
	tw_mem_free(c->skipped);
	tw_mem_free(c);
	return NULL;
}

uint64_t tw_system_copy_packets(const struct tw_system_copy *c)
{
	return c ? c->packets : 0;
}
