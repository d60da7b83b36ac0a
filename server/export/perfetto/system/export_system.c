/* export_system.c - see the header. */
#include "server/export/perfetto/system/export_system.h"

#include <stdlib.h>

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

static int by_thread(const void *pa, const void *pb)
{
	const struct tw_system_thread *a = pa;
	const struct tw_system_thread *b = pb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Sorts threads and keeps the latest descriptor of each. */
static void finish_threads(struct tw_system *s)
{
	struct tw_system_thread *t = s->threads;
	uint32_t n = 0;

	if (s->n_threads)
		qsort(t, s->n_threads, sizeof *t, by_thread);
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

static enum tw_status each(void *arg, struct tw_system_packet *p, struct tw_err *err)
{
	struct scan *c = arg;
	struct tw_system *s = c->s;
	enum tw_status st = tw_system_reader_time(&c->reader, p, err);

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
	enum tw_status st = tw_system_reader_open(&c->reader, fd, &s->clocks, each, c, err);

	while (st == TW_OK && !c->reader.done)
		st = tw_system_reader_step(&c->reader, err);
	s->bytes = c->reader.at;
	s->damages = c->reader.damages;
	s->cut = c->reader.cut;
	if (st == TW_OK)
		s->fault = check_codecs(s);
	else if (is_fault_of_file(c, st, &s->fault))
		st = TW_OK;
	finish_threads(s);
	tw_system_reader_close(&c->reader);
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
	static const char *const words[TW_SYSTEM_FAULTS] = {
	        [TW_SYSTEM_TOO_LARGE] = "its decompressed size is too large",
	        [TW_SYSTEM_NO_TRACE] = "it is not a Perfetto trace, or empty",
	        [TW_SYSTEM_TWO_CODECS] = "it mixes two compressions, which Perfetto refuses",
	        [TW_SYSTEM_TOO_MUCH] =
	                "it has more clock and thread data than the memory limit allows",
	};

	return words[s->fault];
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
