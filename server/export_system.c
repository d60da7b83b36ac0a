/* export_system.c - see the header. */
#include "export_system.h"

enum { ARENA_BYTES = 64 << 20 };
enum { READ_COMPLETED = 4 };

struct scan {
	struct tw_system *s;
	const struct tw_system_ask *ask;
	struct tw_system_reader reader;
};

/* --- tracks --- */

static void use_id(struct tw_system *s, uint64_t id)
{
	s->prefixes[id >> 51] |= (uint8_t)(1U << (id >> 48) % 8);
}

static void note_thread(const struct tw_system_ask *ask, uint64_t tid, uint64_t pid, uint64_t uuid)
{
	size_t low = 0;
	size_t high = ask->n_threads;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ask->threads[mid].tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < ask->n_threads && ask->threads[low].tid == tid; low++)
		if (ask->threads[low].pid == pid)
			ask->threads[low].uuid = uuid;
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

static void note_track(struct scan *c, struct tw_pb message)
{
	uint64_t uuid = number_in(message, 1);
	struct tw_pb_field f;

	use_id(c->s, uuid);
	while (tw_pb_next(&message, &f)) {
		if (f.number == 5 && f.type != TW_PB_BYTES)
			use_id(c->s, f.value); /* its parent */
		if (f.type != TW_PB_BYTES)
			continue;
		if (f.number == 4) /* thread */
			note_thread(c->ask, number_in(tw_pb_in(&f), 2),
			        (uint32_t)number_in(tw_pb_in(&f), 1), uuid);
		else if (f.number == 3) /* process */
			note_thread(c->ask, 0, (uint32_t)number_in(tw_pb_in(&f), 1), uuid);
	}
}

/* The track of an event, and the flows through it. */
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

static void note_payload(struct scan *c, const struct tw_system_packet *p)
{
	struct tw_system *s = c->s;
	struct tw_pb message = tw_pb_in(&p->payload);
	struct tw_pb_field f;

	switch (p->payload.number) {
	case TW_SYSTEM_ZLIB:
		s->has_zlib = true;
		break;
	case TW_SYSTEM_ZSTD:
		s->has_zstd = true;
		break;
	case TW_SYSTEM_TRACK:
		note_track(c, message);
		break;
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
}

static enum tw_status each(void *arg, struct tw_system_packet *p, struct tw_err *err)
{
	struct scan *c = arg;
	struct tw_system *s = c->s;
	enum tw_status st = tw_system_reader_time(&c->reader, p, err);

	s->packets++;
	if (p->sequence < TW_SYSTEM_SEQUENCES)
		s->sequences[p->sequence / 8] |= (uint8_t)(1U << p->sequence % 8);
	note_payload(c, p);
	/* A snapshot's, a descriptor's or a tree's time says nothing of when there was tracing. */
	if (p->first_ns >= 0 && p->payload.number != TW_SYSTEM_PROCESS_TREE &&
	        p->payload.number != TW_SYSTEM_TRACK) {
		if (s->first_ns < 0 || p->first_ns < s->first_ns)
			s->first_ns = p->first_ns;
		if (p->last_ns > s->last_ns)
			s->last_ns = p->last_ns;
	}
	return st;
}

static void judge(struct tw_system *s, bool too_large)
{
	if (too_large)
		s->unusable = "it unfolds to too much";
	else if (s->packets == 0)
		s->unusable = "it is no Perfetto trace, or empty";
	else if (s->has_zlib && s->has_zstd)
		s->unusable = "it mixes two compressions, which Perfetto refuses";
}

enum tw_status tw_system_scan(
        int fd, const struct tw_system_ask *ask, struct tw_system **ret, struct tw_err *err)
{
	struct scan c = {.s = tw_mem_zalloc(1, sizeof *c.s), .ask = ask};
	struct tw_system *s = c.s;
	enum tw_status st;
	bool too_large = false;

	if (!s)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to read a trace");
	s->first_ns = s->last_ns = -1;
	s->sequences[0] = 1; /* 0 is none */
	s->arena = tw_arena_new(ARENA_BYTES);
	s->clocks = (struct tw_perfetto_clocks){.arena = s->arena, .sink = &c.reader.sink};
	st = s->arena ? tw_system_reader_open(&c.reader, fd, &s->clocks, each, &c, err)
	              : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to read a trace");
	while (st == TW_OK && !c.reader.done)
		st = tw_system_reader_step(&c.reader, err);
	if (st == TW_TOO_LARGE) {
		too_large = true;
		st = TW_OK;
	}
	s->bytes = c.reader.at;
	s->damages = c.reader.damages;
	s->cut = c.reader.cut;
	s->clocks.sink = NULL;
	tw_system_reader_close(&c.reader);
	judge(s, too_large);
	if (st == TW_OK)
		*ret = s;
	else
		tw_system_free(s);
	return st;
}

struct tw_system *tw_system_free(struct tw_system *s)
{
	if (s) {
		tw_arena_free(s->arena);
		tw_mem_free(s);
	}
	return NULL;
}

uint32_t tw_system_sequence(const struct tw_system *s, uint32_t *next)
{
	uint32_t id = *next ? *next : 1;

	while (s && id < TW_SYSTEM_SEQUENCES && s->sequences[id / 8] >> id % 8 & 1)
		id++;
	if (s && id == TW_SYSTEM_SEQUENCES)
		id = UINT32_C(1) << 31; /* recorders count from 1: not one of 65,535 was left */
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
