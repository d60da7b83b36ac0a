/*
 * art_early.c - versions 4 and 5 as written by development builds of 2024, form A.
 *
 * A stream has the packets of art_packet.c, but a method's number has four bytes.  A file has the
 * header text in front and only blocks of records: no names of methods, no summary.  The start is
 * in microseconds, like all times.  A block begins with its first record, in full:
 *   u8 2, u32 tid, u32 method | action, [u32 CPU,] [u32 wall,] u16 records - 1, u16 bytes
 * and continues with the others:
 *   signed (method | action) less that of the first, wall [, CPU] since the one before it
 * in LEB128.  A method packet has the method's index in the order of first use, records that index
 * times four.  A build that wrote the same number in both is accepted too: the second method
 * distinguishes the two.
 *
 * A block may have more than 2^16 records and bytes, but only the low 16 bits of both are stored.
 * It ends where both match and a packet can follow.
 */
#include "decoder/formats/art/art_internal.h"

enum { TIMES_AT = 9, SINGLE_HEAD = 17, DUAL_HEAD = 21, COUNTS_BYTES = 4 };
/* Three numbers of at most ten bytes. */
enum { RECORD_MAX = 30, LOW16 = 0xFFFF, LAST_PACKET = 3 };

void tw_art_early_start(struct tw_art *s)
{
	s->form = TW_ART_FORM_A;
	s->unit_ns = 1000;
	s->start_ns = s->start_ns < TW_ART_TIME_MAX / 1000 ? s->start_ns * 1000 : 0;
}

size_t tw_art_early_head(const struct tw_art *s)
{
	return s->version == 5 ? DUAL_HEAD : SINGLE_HEAD;
}

uint64_t tw_art_early_method(struct tw_art *s, uint32_t number)
{
	if (s->early.numbers == TW_ART_NUMBERS_UNKNOWN && number != 0)
		s->early.numbers = number & 3 ? TW_ART_NUMBERS_SHIFTED : TW_ART_NUMBERS_ALIKE;
	return s->early.numbers == TW_ART_NUMBERS_SHIFTED ? (uint64_t)number << 2 : number;
}

static uint64_t micros(uint64_t us)
{
	return us < TW_ART_TIME_MAX / 1000 ? us * 1000 : TW_ART_TIME_MAX;
}

static enum tw_status emit(struct tw_art *s, uint64_t offset, struct tw_err *err)
{
	const struct tw_art_early *e = &s->early;
	uint32_t word = e->word;
	struct tw_art_call call = {.action = word & 3,
	        .named = true,
	        .method = word & ~(uint32_t)3,
	        .ts_ns = (int64_t)micros(e->wall_us),
	        .cpu_ns = -1,
	        .offset = offset};

	s->records++;
	if (s->version == 5)
		call.cpu_ns = (int64_t)micros(e->cpu_us);
	else if (s->clock == TW_ART_CLOCK_CPU)
		call.cpu_ns = call.ts_ns;
	if (call.action == TW_ART_NO_ACTION) {
		tw_art_repair(s, TW_REPAIR_record_malformed, offset);
		return TW_OK;
	}
	return e->thread ? tw_art_event(s, e->thread, &call, err) : TW_OK;
}

static void check_end(struct tw_art_early *e)
{
	e->may_end = (e->records & LOW16) == e->declared_records_low &&
	             (e->bytes & LOW16) == e->declared_bytes_low;
}

enum tw_status tw_art_early_block(struct tw_art *s, const uint8_t *p, struct tw_err *err)
{
	struct tw_art_early *e = &s->early;
	const uint8_t *counts = p + tw_art_early_head(s) - COUNTS_BYTES;
	uint32_t wall = tw_u32le(counts - sizeof(uint32_t));
	uint32_t cpu = s->version == 5 ? tw_u32le(p + TIMES_AT) : 0;

	e->thread = tw_art_thread_of(s, tw_u32le(p + 1), s->offset);
	e->first = e->word = tw_u32le(p + 5);
	e->declared_records_low = tw_u16le(counts);
	e->declared_bytes_low = tw_u16le(counts + 2);
	e->records = e->bytes = 0;
	e->wall_us = wall;
	e->cpu_us = cpu;
	if (e->thread) {
		struct tw_art_thread *t = e->thread;

		e->wall_us = tw_art_unwrap(s, wall, &t->raw_wall, &t->high_wall, s->offset);
		e->cpu_us = tw_art_unwrap(s, cpu, &t->raw_cpu, &t->high_cpu, s->offset);
	}
	s->state = TW_ART_EARLY;
	check_end(e);
	return emit(s, s->offset, err);
}

/* False: incomplete. */
static bool next(struct tw_art *s, const uint8_t **at, const uint8_t *end)
{
	struct tw_art_early *e = &s->early;
	int64_t step;
	uint64_t wall;
	uint64_t cpu = 0;

	if (!tw_get_sleb(at, end, &step) || !tw_get_varint(at, end, &wall) ||
	        (s->version == 5 && !tw_get_varint(at, end, &cpu)))
		return false;
	e->word = e->first + (uint32_t)step;
	e->wall_us += (uint32_t)wall; /* differences of 32 bits */
	e->cpu_us += (uint32_t)cpu;
	return true;
}

/* The first times of the next block are relative to these. */
static void leave_block(const struct tw_art_early *e)
{
	if (!e->thread)
		return;
	e->thread->raw_wall = (uint32_t)e->wall_us;
	e->thread->high_wall = (int64_t)(e->wall_us - (uint32_t)e->wall_us);
	e->thread->raw_cpu = (uint32_t)e->cpu_us;
	e->thread->high_cpu = (int64_t)(e->cpu_us - (uint32_t)e->cpu_us);
}

enum tw_status tw_art_early_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	struct tw_art_early *e = &s->early;
	const uint8_t *at = p;
	const uint8_t *from = p;
	enum tw_status st = TW_OK;

	while (st == TW_OK && at < p + n && !(e->may_end && *at <= LAST_PACKET)) {
		from = at;
		if (!next(s, &at, p + n)) {
			at = from;
			break;
		}
		e->records++;
		e->bytes += (uint64_t)(at - from);
		check_end(e);
		st = emit(s, s->offset + (uint64_t)(from - p), err);
	}
	*ret_used = (size_t)(at - p);
	s->want = n - *ret_used + 1;
	if (e->may_end && at < p + n && *at <= LAST_PACKET) {
		leave_block(e);
		s->state = TW_ART_PACKETS;
		return at == p ? tw_art_packet_step(s, p, n, ret_used, err) : st;
	}
	if (*ret_used == 0 && n >= RECORD_MAX) {
		tw_art_drop(s, s->offset);
		*ret_used = n;
	}
	return st;
}
