/*
 * btrace2.c - btrace 2.0's packed method trace, rhea-atrace.bin, version 5.
 *
 * All integers little-endian.  Header, 32 bytes:
 *    0 u32 version = 5     4 u32 pid (tid of the thread that started tracing, in full)
 *    8 u64 CLOCK_BOOTTIME  16 u64 CLOCK_MONOTONIC at first init: the zero of all records
 *   24 u64 CLOCK_MONOTONIC at the start of this recording (later starts rewrite it)
 * Record, 16 bytes, written when a call ends; two u64 a, b:
 *   start = a >> 19 (45 bits, ns since header[16])
 *   dur   = (a & 0x7FFFF) << 26 | b >> 38 (45 bits, ns)
 *   tid   = b >> 23 & 0x7FFF (low 15 bits)      method = b & 0x7FFFFF
 * No count, checksum or end mark.  Learned from bytedance/btrace v2.0.0.
 *
 * Begins wrap at 45 bits and may be negative; the end is always inside the recording, so the end
 * decides: it is the value modulo 2^45 within [session - 1 s, session - 1 s + 2^45), and begin =
 * end - dur.  A begin before the recording is clamped to its start.  An end in the later half of
 * that range is from before the recording, unless earlier ends in the file have advanced that far:
 * a recording may last for hours, but has no gaps of hours.  If header[24] is not plausible the
 * base is used, which is correct for a process's first recording.
 *
 * The file is a reused mmap: unused slots are zero or contain records of an earlier recording.  b
 * == 0 is an empty slot.  An end at or before the recording's start is stale.  Ends rise through
 * the file, except for threads delayed between reading the clock and taking their slot, so:
 *   - an end more than FAR_AHEAD_NS past the largest so far waits for the next record; if that does
 *   not agree, the lone record's time is impossible;
 *   - ends more than LATE_NS before the largest so far wait too; TAIL_RUN of them in a row are the
 *   tail of an older recording and end the reading, fewer were merely late.
 * A complete buffer file has a round size, a multiple of SIZE_STEP and at least MIN_FILE_BYTES.  If
 * all its slots except the last are used, the phone filled it and dropped later records:
 * buffer_overrun, if the last one is live.  Uploads that end where the records end give no
 * information about it.
 *
 * A lone record far ahead is accepted if nothing follows it, so a prefix may give one last event
 * that the complete file does not.
 */
#include "decoder/formats/format.h"

#include <string.h>

enum {
	HEADER = 32,
	RECORD = 16,
	VERSION = 5,
	BATCH = 512,
	TAIL_RUN = 16,
	MIN_FILE_BYTES = 2000000,
	SIZE_STEP = 1000000,
	METHOD_CACHE = 8192, /* power of two */
	TIDS = 1 << 15
};

#define MOD45        ((int64_t)1 << 45)
#define LATE_NS      ((int64_t)1000000000)
#define FAR_AHEAD_NS ((int64_t)60 * 1000000000)
#define MAX_CLOCK_NS ((uint64_t)1 << 62)
/* The lifetime of a process: two years. */
#define MAX_SESSION_NS ((uint64_t)1 << 56)

struct record {
	int64_t start_ns, end_ns;
	uint64_t offset;
	uint32_t tid, method;
};

struct btrace2 {
	struct tw_sink *sink;
	uint64_t offset; /* of the next input byte */
	uint8_t carry[HEADER];
	unsigned n_carry;
	bool have_header, tail_found;
	bool last_stale; /* the last used slot is from an earlier recording */
	uint32_t pid;
	int64_t session_ns; /* start of the recording, relative to header[16] */
	int64_t max_end_ns;
	uint64_t records;           /* emitted to the sink */
	uint64_t zeros, first_zero; /* run of empty slots not reported yet */
	struct record ahead;        /* delayed: far ahead */
	bool has_ahead;
	struct record late[TAIL_RUN];
	unsigned n_late;
	unsigned n_batch;
	struct tw_event batch[BATCH];
	int64_t start_ns[BATCH], dur_ns[BATCH]; /* of calls that are passed on together */
	uint32_t call_tracks[BATCH], syms[BATCH];
	uint32_t tracks[TIDS]; /* sink handle by tid; 0 none yet */
	struct {
		uint32_t id_plus_1, sym;
	} methods[METHOD_CACHE];
};

static int probe(const uint8_t *head, size_t len)
{
	uint32_t version = len >= 4 ? tw_u32le(head) : 0;
	uint32_t pid = len >= 8 ? tw_u32le(head + 4) : 0;

	if (version == 0 || version > 32)
		return 0;
	if (len < HEADER)
		return version == VERSION ? 20 : 0;
	if (pid == 0 || pid >= 1u << 22)
		return 0;
	if (tw_u64le(head + 8) >= MAX_CLOCK_NS || tw_u64le(head + 16) >= MAX_CLOCK_NS)
		return 0;
	return version == VERSION ? 90 : 60;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct btrace2 *s = state;

	(void)a, (void)limits, (void)err;
	s->sink = sink;
	return TW_OK;
}

static void repair(struct btrace2 *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	s->sink->ops->repair(s->sink, what, offset, n);
}

static enum tw_status read_header(struct btrace2 *s, struct tw_err *err)
{
	const uint8_t *p = s->carry;
	uint32_t version = tw_u32le(p);
	uint64_t boot = tw_u64le(p + 8);
	uint64_t mono = tw_u64le(p + 16);
	uint64_t session = tw_u64le(p + 24);

	if (version != VERSION)
		return tw_fail_at(err, TW_UNSUPPORTED, 0,
		        "btrace 2.0 trace of version %u; this server reads version %d", version,
		        VERSION);
	s->pid = tw_u32le(p + 4);
	if (session > mono && session - mono < MAX_SESSION_NS) /* otherwise it is not plausible: use
	                                                        * the base */
		s->session_ns = (int64_t)(session - mono);
	s->max_end_ns = s->session_ns;
	s->have_header = true;
	s->n_carry = 0;
	s->sink->ops->clock(
	        s->sink, &(struct tw_clock){
	                         .pid = s->pid,
	                         .mono_base_ns = mono < MAX_CLOCK_NS ? (int64_t)mono : -1,
	                         .boot_base_ns = boot < MAX_CLOCK_NS ? (int64_t)boot : -1,
	                         .session_ns = s->session_ns,
	                 });
	return TW_OK;
}

static enum tw_status flush(struct btrace2 *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (s->n_batch)
		st = s->sink->ops->events(s->sink, s->batch, s->n_batch, err);
	s->n_batch = 0;
	return st;
}

/* Refusals at a limit are not cached, so that the sink counts each. */
static uint32_t track_of(struct btrace2 *s, uint32_t tid)
{
	if (!s->tracks[tid])
		s->tracks[tid] = s->sink->ops->track(s->sink, s->pid, tid, TW_TID_LOW15);
	return s->tracks[tid];
}

static uint32_t method_of(struct btrace2 *s, uint32_t id)
{
	uint32_t slot = id & (METHOD_CACHE - 1);

	if (s->methods[slot].id_plus_1 != id + 1) {
		uint32_t sym = s->sink->ops->method(s->sink, id);

		if (!sym)
			return 0;
		s->methods[slot].id_plus_1 = id + 1;
		s->methods[slot].sym = sym;
	}
	return s->methods[slot].sym;
}

/* An accepted record: clamps it to the recording and emits it. */
static enum tw_status emit(struct btrace2 *s, const struct record *r, struct tw_err *err)
{
	int64_t begin = r->start_ns;
	struct tw_event *ev = &s->batch[s->n_batch];

	if (r->end_ns > s->max_end_ns)
		s->max_end_ns = r->end_ns;
	if (begin < s->session_ns) {
		repair(s, TW_REPAIR_begin_clamped, r->offset, 1);
		begin = s->session_ns;
	}
	ev->kind = TW_EV_SLICE;
	ev->ts_ns = begin;
	ev->dur_ns = r->end_ns - begin;
	ev->cpu_ns = -1;
	ev->offset = r->offset;
	ev->track = track_of(s, r->tid);
	ev->sym = method_of(s, r->method);
	s->records++;
	if (ev->track == 0 || ev->sym == 0)
		return TW_OK; /* at a limit, which the sink counts */
	return ++s->n_batch == BATCH ? flush(s, err) : TW_OK;
}

static enum tw_status emit_late(struct btrace2 *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (unsigned i = 0; i < s->n_late && st == TW_OK; i++)
		st = emit(s, &s->late[i], err);
	s->n_late = 0;
	return st;
}

static void drop_tail(struct btrace2 *s)
{
	repair(s, TW_REPAIR_stale_tail, s->late[0].offset, s->n_late);
	s->n_late = 0;
	s->tail_found = true;
}

/* The record after one that was far ahead decides whether that one is plausible. */
static enum tw_status settle_ahead(struct btrace2 *s, int64_t next_end_ns, struct tw_err *err)
{
	s->has_ahead = false;
	if (next_end_ns >= s->ahead.end_ns - LATE_NS) {
		enum tw_status st = emit_late(s, err); /* late records precede it in the file */

		return st == TW_OK ? emit(s, &s->ahead, err) : st;
	}
	repair(s, TW_REPAIR_impossible_time, s->ahead.offset, 1);
	return TW_OK;
}

static enum tw_status accept(struct btrace2 *s, const struct record *r, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (s->has_ahead)
		st = settle_ahead(s, r->end_ns, err);
	if (st != TW_OK)
		return st;
	if (r->end_ns > s->max_end_ns + FAR_AHEAD_NS) {
		s->ahead = *r;
		s->has_ahead = true;
		return TW_OK;
	}
	if (r->end_ns < s->max_end_ns - LATE_NS) {
		s->late[s->n_late++] = *r;
		if (s->n_late == TAIL_RUN)
			drop_tail(s);
		return TW_OK;
	}
	if (s->n_late)
		st = emit_late(s, err);
	return st == TW_OK ? emit(s, r, err) : st;
}

/* The time that matches `end` in its low 45 bits and lies in [lowest, lowest + 2^45). */
static int64_t unwrap(int64_t end, int64_t lowest, bool *ret_wrapped)
{
	*ret_wrapped = end < lowest || end - lowest >= MOD45;
	return lowest + (int64_t)((uint64_t)(end - lowest) & (uint64_t)(MOD45 - 1));
}

static bool is_from_before(const struct btrace2 *s, int64_t end_ns)
{
	return end_ns - s->session_ns + LATE_NS >= MOD45 / 2 &&
	       end_ns > s->max_end_ns + FAR_AHEAD_NS;
}

static enum tw_status read_record(
        struct btrace2 *s, const uint8_t *p, uint64_t offset, struct tw_err *err)
{
	uint64_t a = tw_u64le(p);
	uint64_t b = tw_u64le(p + 8);
	int64_t lowest = s->session_ns - LATE_NS;
	int64_t dur = (int64_t)((a & 0x7FFFF) << 26 | b >> 38);
	int64_t end = (int64_t)(a >> 19) + dur;
	struct record r;
	bool wrapped;

	if (b == 0) {
		if (s->zeros++ == 0)
			s->first_zero = offset;
		return TW_OK;
	}
	if (s->zeros)
		repair(s, TW_REPAIR_empty_slot, s->first_zero, s->zeros);
	s->zeros = 0;
	if (s->tail_found) {
		repair(s, TW_REPAIR_stale_tail, offset, 1);
		return TW_OK;
	}
	end = unwrap(end, lowest, &wrapped);
	s->last_stale = s->session_ns > 0 && (end <= s->session_ns || is_from_before(s, end));
	if (s->last_stale) {
		repair(s, TW_REPAIR_stale_record, offset, 1);
		return TW_OK;
	}
	if (wrapped)
		repair(s, TW_REPAIR_time_wrapped, offset, 1);
	if (end < 0) {
		repair(s, TW_REPAIR_impossible_time, offset, 1);
		return TW_OK;
	}
	r = (struct record){.start_ns = end - dur,
	        .end_ns = end,
	        .offset = offset,
	        .tid = (uint32_t)(b >> 23) & 0x7FFF,
	        .method = (uint32_t)b & 0x7FFFFF};
	return accept(s, &r, err);
}

/* Returns whether no earlier record is held back. */
static bool has_none_held(const struct btrace2 *s)
{
	return s->zeros == 0 && s->n_late == 0 && !s->has_ahead && !s->tail_found;
}

/* Passes on calls.  The events before them were passed on. */
static enum tw_status emit_calls(
        struct btrace2 *s, const struct tw_call_batch *c, struct tw_err *err)
{
	if (s->sink->ops->calls)
		return s->sink->ops->calls(s->sink, c, err);
	for (size_t i = 0; i < c->n; i++)
		s->batch[i] = tw_call_batch_event(c, i);
	s->n_batch = (unsigned)c->n;
	return flush(s, err);
}

/* Reads and passes on records of the usual kind: of known threads and methods, within the
 * recording, in time order, up to BATCH of them.  *ret_used: their bytes. */
static enum tw_status read_plain(
        struct btrace2 *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	const int64_t session_ns = s->session_ns;
	const int64_t most_ns = session_ns - LATE_NS + (MOD45 - 1);
	const size_t most = n / RECORD < BATCH ? n / RECORD : BATCH;
	int64_t max_end_ns = s->max_end_ns;
	size_t i = 0;
	enum tw_status st;

	*ret_used = 0;
	for (; i < most; i++, p += RECORD) {
		uint64_t a = tw_u64le(p);
		uint64_t b = tw_u64le(p + 8);
		int64_t dur = (int64_t)((a & 0x7FFFF) << 26 | b >> 38);
		int64_t begin = (int64_t)(a >> 19);
		int64_t end = begin + dur;
		uint32_t track = s->tracks[b >> 23 & 0x7FFF];
		uint32_t method = (uint32_t)b & 0x7FFFFF;
		uint32_t slot = method & (METHOD_CACHE - 1);

		if (b == 0 || track == 0 || begin <= session_ns || end > most_ns ||
		        (uint64_t)(end - (max_end_ns - LATE_NS)) > LATE_NS + FAR_AHEAD_NS ||
		        s->methods[slot].id_plus_1 != method + 1)
			break;
		if (end > max_end_ns)
			max_end_ns = end;
		s->start_ns[i] = begin;
		s->dur_ns[i] = dur;
		s->call_tracks[i] = track;
		s->syms[i] = s->methods[slot].sym;
	}
	if (i == 0)
		return TW_OK;
	s->max_end_ns = max_end_ns;
	s->records += i;
	s->last_stale = false;
	*ret_used = i * RECORD;
	st = flush(s, err);
	return st == TW_OK ? emit_calls(s,
	                             &(struct tw_call_batch){.start_ns = s->start_ns,
	                                     .dur_ns = s->dur_ns,
	                                     .tracks = s->call_tracks,
	                                     .syms = s->syms,
	                                     .n = i,
	                                     .record_bytes = RECORD,
	                                     .offset = s->offset},
	                             err)
	                   : st;
}

/* Completes `want` carried bytes from the input; false while some are missing. */
static bool carry(struct btrace2 *s, const uint8_t **p, size_t *n, unsigned want)
{
	return tw_gather(s->carry, &s->n_carry, want, &s->offset, p, n);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct btrace2 *s = state;
	enum tw_status st = TW_OK;

	if (!s->have_header) {
		if (!carry(s, &p, &n, HEADER))
			return TW_OK;
		st = read_header(s, err);
	}
	if (st == TW_OK && s->n_carry) {
		if (!carry(s, &p, &n, RECORD))
			return TW_OK;
		s->n_carry = 0;
		st = read_record(s, s->carry, s->offset - RECORD, err);
	}
	while (st == TW_OK && n >= RECORD) {
		size_t used = 0;

		if (has_none_held(s))
			st = read_plain(s, p, n, &used, err);
		if (st == TW_OK && used == 0) {
			used = RECORD;
			st = read_record(s, p, s->offset, err);
		}
		p += used;
		n -= used;
		s->offset += used;
	}
	if (st == TW_OK && n)
		(void)carry(s, &p, &n, RECORD);
	return st;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* The phone writes slots while `next + 16 < size`, so the last slot of a full buffer stays empty.
 * If the last used slots are from an earlier recording, that recording filled the buffer. */
static bool was_filled(const struct btrace2 *s)
{
	uint64_t size = s->offset;
	uint64_t capacity = size >= MIN_FILE_BYTES ? (size - 49) / RECORD + 1 : 0;

	return capacity && size % SIZE_STEP == 0 && s->zeros && !s->tail_found && !s->last_stale &&
	       s->first_zero >= HEADER + capacity * RECORD;
}

static void report_end(struct btrace2 *s, bool cut)
{
	if (s->zeros)
		repair(s, TW_REPAIR_zero_tail, s->first_zero, s->zeros);
	if (s->n_carry && !all_zero(s->carry, s->n_carry) && !cut)
		repair(s, TW_REPAIR_input_truncated, s->offset - s->n_carry, 1);
	if (!cut && was_filled(s))
		repair(s, TW_REPAIR_buffer_overrun, s->first_zero, 1);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct btrace2 *s = state;
	enum tw_status st = TW_OK;

	if (!s->have_header)
		return tw_fail_at(err, TW_CORRUPT, s->offset,
		        "a btrace 2.0 header has %u bytes, this file only %u", (unsigned)HEADER,
		        s->n_carry);
	if (s->has_ahead) /* no record contradicts it */
		st = settle_ahead(s, s->ahead.end_ns, err);
	if (s->n_late)
		drop_tail(s);
	if (st == TW_OK)
		st = flush(s, err);
	if (st != TW_OK)
		return st;
	report_end(s, cut);
	if (s->records == 0)
		return tw_fail_at(err, TW_CORRUPT, HEADER, "no readable record");
	return TW_OK;
}

const struct tw_format tw_format_btrace2 = {
        .name = "btrace2",
        .title = "btrace 2.0 method trace (rhea-atrace.bin)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct btrace2),
        .start = start,
        .push = push,
        .finish = finish,
};
