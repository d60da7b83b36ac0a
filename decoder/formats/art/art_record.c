/*
 * art_record.c - records of versions 1, 2 and 3, in a file or a stream.
 *
 * Header, 32 bytes: SLOW, u16 version (| 0xF0 streaming), u16 offset of the first record, u64 start
 * in microseconds (CLOCK_MONOTONIC; Dalvik: time of day), u16 record size of version 3.
 *
 *   version   record
 *      1      u8  thread, u32 method | action, u32 time          9 bytes
 *      2      u16 thread, u32 method | action, u32 time          10, wall or thread CPU by `clock`
 *      3      u16 thread, u32 method | action, u32 CPU, u32 wall  14, or the size in the header
 * Times are microseconds and wrap at 2^32; action: 0 enter, 1 exit, 2 left by an exception.
 *
 * A stream consists of records, whose thread is never 0, and items that begin with a u16 0 and an
 * operation: 1 method {u16 len, line}, 2 thread {u16 id, u16 len, name}, 3 summary {u32 len, text};
 * the summary is last.
 */
#include "decoder/formats/art/art_internal.h"

enum { SIZE_V1 = 9, SIZE_V2 = 10, SIZE_V3 = 14 };
enum { OP_METHOD = 1, OP_THREAD = 2, OP_SUMMARY = 3 };

static size_t record_size(const struct tw_art *s, unsigned written)
{
	if (s->version == 1)
		return SIZE_V1;
	if (s->version == 2)
		return s->streaming && written ? written : SIZE_V2;
	return written ? written : SIZE_V3;
}

enum tw_status tw_art_record_header(struct tw_art *s, const uint8_t *p, struct tw_err *err)
{
	unsigned first = tw_u16le(p + 6);
	uint64_t start_us = tw_u64le(p + 8);

	s->record_bytes = record_size(s, tw_u16le(p + 16));
	if (first < TW_ART_HEADER)
		return tw_fail_at(err, TW_CORRUPT, s->offset + 6,
		        "the first ART record would be at byte %u of the header", first);
	if (s->record_bytes < (s->version == 3 ? SIZE_V3 : s->version == 2 ? SIZE_V2 : SIZE_V1))
		return tw_fail_at(err, TW_CORRUPT, s->offset + 16,
		        "ART records of %zu bytes do not fit version %u", s->record_bytes,
		        s->version);
	if (start_us < TW_ART_TIME_MAX / 1000)
		s->start_ns = start_us * 1000;
	if (s->clock == TW_ART_CLOCK_UNKNOWN) {
		if (s->version == 3)
			s->clock = TW_ART_CLOCK_DUAL;
		else /* a stream's text comes last */
			s->clock = s->has_text ? TW_ART_CLOCK_CPU : TW_ART_CLOCK_WALL;
	}
	s->skip = first - TW_ART_HEADER;
	s->state = s->skip ? TW_ART_SKIP : s->streaming ? TW_ART_ITEMS : TW_ART_RECORDS;
	return TW_OK;
}

static int64_t unwrap_ns(
        struct tw_art *s, uint32_t now, uint32_t *last, int64_t *high, uint64_t offset)
{
	return (int64_t)tw_art_unwrap(s, now, last, high, offset) * 1000;
}

static void read_times(
        struct tw_art *s, struct tw_art_thread *t, const uint8_t *times, struct tw_art_call *call)
{
	bool dual = s->version == 3 && s->clock == TW_ART_CLOCK_DUAL;
	bool cpu = dual || s->clock == TW_ART_CLOCK_CPU;

	if (cpu)
		call->cpu_ns =
		        unwrap_ns(s, tw_u32le(times), &t->raw_cpu, &t->high_cpu, call->offset);
	if (dual || !cpu)
		call->ts_ns = unwrap_ns(s, tw_u32le(times + (dual ? 4 : 0)), &t->raw_wall,
		        &t->high_wall, call->offset);
	else
		call->ts_ns = call->cpu_ns;
}

static enum tw_status read_record(
        struct tw_art *s, const uint8_t *p, uint64_t offset, struct tw_err *err)
{
	size_t id_bytes = s->version == 1 ? 1 : 2;
	uint32_t word = tw_u32le(p + id_bytes);
	struct tw_art_call call = {.action = word & 3,
	        .named = true,
	        .method = word & ~(uint32_t)3,
	        .cpu_ns = -1,
	        .offset = offset};
	struct tw_art_thread *t;

	s->records++;
	if (call.action == TW_ART_NO_ACTION) {
		tw_art_repair(s, TW_REPAIR_record_malformed, offset);
		return TW_OK;
	}
	t = tw_art_thread_of(s, id_bytes == 1 ? p[0] : tw_u16le(p), offset);
	if (!t)
		return TW_OK;
	read_times(s, t, p + id_bytes + 4, &call);
	return tw_art_event(s, t, &call, err);
}

/* A single record is read and passed on in less time by itself. */
enum { LEAST_RUN = 2 };

/* The times of the records. */
enum times { TIMES_WALL, TIMES_CPU, TIMES_BOTH };

static enum times times_of(const struct tw_art *s)
{
	if (s->clock == TW_ART_CLOCK_CPU)
		return TIMES_CPU;
	return s->version == 3 && s->clock == TW_ART_CLOCK_DUAL ? TIMES_BOTH : TIMES_WALL;
}

/* The reading, without its wraparounds, from which on times do not fall: the last one, or the time
 * to which it was corrected. */
static uint64_t least_reading(uint32_t last, int64_t high, int64_t last_ns)
{
	const int64_t least = last_ns / 1000 - high;

	return least > (int64_t)last ? (uint64_t)least : last;
}

/* read_run for records with these times. */
static inline size_t read_run_of(
        struct tw_art *s, struct tw_art_thread *t, const uint8_t *p, size_t n, enum times times)
{
	const struct tw_art_thread was = *t;
	const size_t bytes = s->record_bytes;
	const bool has_wall = times != TIMES_CPU;
	const bool has_cpu = times != TIMES_WALL;
	uint64_t wall = least_reading(was.raw_wall, was.high_wall, was.last_ns);
	uint64_t cpu = least_reading(was.raw_cpu, was.high_cpu, was.last_cpu_ns);
	size_t i = 0;

	for (; i < n; i++, p += bytes) {
		const uint32_t word = tw_u32le(p + 2);
		const struct tw_art_symbol *known = tw_art_symbol_of(s, word);
		const uint32_t next_cpu = has_cpu ? tw_u32le(p + 6) : 0;
		const uint32_t next_wall = has_wall ? tw_u32le(p + (has_cpu ? 10 : 6)) : 0;

		if (tw_u16le(p) != was.tid || (word & 3) > TW_ART_EXIT ||
		        known->id_plus_1 != (word & ~(uint32_t)3) + (uint64_t)1)
			break;
		if ((has_wall && next_wall < wall) || (has_cpu && next_cpu < cpu))
			break;
		wall = next_wall;
		cpu = next_cpu;
		if (has_cpu)
			s->edge_cpu_ns[i] = (was.high_cpu + next_cpu) * 1000;
		if (has_wall)
			s->edge_ns[i] = (was.high_wall + next_wall) * 1000;
		s->edge_syms_2[i] = known->sym << 1 | (word & 1);
	}
	if (i < LEAST_RUN)
		return 0;
	t->last_ns = (has_wall ? s->edge_ns : s->edge_cpu_ns)[i - 1];
	if (has_wall)
		t->raw_wall = (uint32_t)wall;
	if (has_cpu) {
		t->raw_cpu = (uint32_t)cpu;
		t->last_cpu_ns = s->edge_cpu_ns[i - 1];
	}
	return i;
}

/* Reads and passes on the leading records that need no special case, as nearly all: several of one
 * thread, of methods in use, with times that do not fall.  `n` holds at least one record.
 * *ret_used: their bytes. */
static enum tw_status read_run(struct tw_art *s, const uint8_t *p, size_t n, uint64_t offset,
        size_t *ret_used, struct tw_err *err)
{
	const enum times times = times_of(s);
	struct tw_art_thread *t;
	struct tw_edge_batch run = {.ts_ns = times == TIMES_CPU ? s->edge_cpu_ns : s->edge_ns,
	        .cpu_ns = times == TIMES_WALL ? NULL : s->edge_cpu_ns,
	        .syms_2 = s->edge_syms_2,
	        .n = n < TW_ART_BATCH * s->record_bytes ? n / s->record_bytes : TW_ART_BATCH,
	        .record_bytes = (uint32_t)s->record_bytes,
	        .offset = offset,
	        .end_dur_ns = s->unit_ns};

	*ret_used = 0;
	if (s->version == 1 || s->n_examined < TW_ART_GAPS)
		return TW_OK;
	t = tw_art_known_thread(s, tw_u16le(p));
	if (!t || !t->seen || !t->track)
		return TW_OK;
	run.track = t->track;
	if (times == TIMES_BOTH)
		run.n = read_run_of(s, t, p, run.n, TIMES_BOTH);
	else if (times == TIMES_CPU)
		run.n = read_run_of(s, t, p, run.n, TIMES_CPU);
	else
		run.n = read_run_of(s, t, p, run.n, TIMES_WALL);
	s->events += run.n;
	s->records += run.n;
	*ret_used = run.n * s->record_bytes;
	return run.n ? tw_art_edges(s, &run, err) : TW_OK;
}

/* Reads complete records.  Those of a stream end before a thread id of 0, which begins an item. */
static enum tw_status read_records(struct tw_art *s, const uint8_t *p, size_t n, bool in_stream,
        size_t *ret_used, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	size_t at = 0;
	size_t used;

	while (st == TW_OK && n - at >= s->record_bytes && !(in_stream && tw_u16le(p + at) == 0)) {
		st = read_run(s, p + at, n - at, s->offset + at, &used, err);
		if (used == 0) {
			st = read_record(s, p + at, s->offset + at, err);
			used = s->record_bytes;
		}
		at += used;
	}
	*ret_used = at;
	return st;
}

enum tw_status tw_art_record_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	s->want = s->record_bytes;
	return read_records(s, p, n, false, ret_used, err);
}

/* --- streams --- */

static struct tw_str text_at(const uint8_t *p, size_t len)
{
	return (struct tw_str){(const char *)p, len};
}

static enum tw_status method_item(
        struct tw_art *s, const uint8_t *p, size_t len, struct tw_err *err)
{
	struct tw_str line = text_at(p, len);

	if (len && line.ptr[len - 1] == '\n')
		line.len--;
	return tw_art_text_method_line(s, line, s->offset, err);
}

/* An item of operation p[2]; 0 used: it needs s->want bytes. */
static enum tw_status one_item(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	size_t head = n < 3 ? 3 : p[2] == OP_METHOD ? 5 : 7;

	s->want = head;
	if (n >= 3 && (p[2] < OP_METHOD || p[2] > OP_SUMMARY)) {
		tw_art_drop(s, s->offset);
		*ret_used = 3;
		return TW_OK;
	}
	if (n < head)
		return TW_OK;
	if (p[2] == OP_SUMMARY) {
		s->state = TW_ART_TEXT;
		*ret_used = head;
		return TW_OK;
	}
	s->want = head + tw_u16le(p + head - 2);
	if (n < s->want)
		return TW_OK;
	*ret_used = s->want;
	if (p[2] == OP_METHOD)
		return method_item(s, p + head, s->want - head, err);
	tw_art_text_thread(s, tw_u16le(p + 3), text_at(p + head, s->want - head), s->offset);
	return TW_OK;
}

enum tw_status tw_art_item_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	s->want = 2;
	if (n < 2)
		return TW_OK;
	if (tw_u16le(p) == 0)
		return one_item(s, p, n, ret_used, err);
	s->want = s->record_bytes;
	return read_records(s, p, n, true, ret_used, err);
}
