/*
 * art_packet.c - packets of versions 4 and 5, and of dumps of always-on recording.
 *
 * Header, 32 bytes: SLOW, u16 version (4 one clock, 5 two; | 0xF0 streaming), u64 start in ns of
 * CLOCK_MONOTONIC at byte 6; form C: u64 its counter then, u64 the counter's frequency at byte 22.
 * Packets, by their first byte:
 *   0 thread   u32 tid, u16 length, name
 *   1 method   u64 id, u16 length, text (a method line without its id)
 *   2 records  u32 tid, u24 number, u32 bytes, records
 *   3 summary  u16 length, text up to *end; last.  In a dump: u64 end, u64 start, ns
 *
 * A record is encoded as differences from the previous one, from 0 at the block's start, in LEB128:
 *   form B        signed method | action, wall ns [, CPU ns]      (the release of Android 16)
 *   form C        signed time << 2 | action [, signed CPU ns], signed method of an enter only
 *                                                    (what Perfetto reads since March 2026)
 *   long-running  signed time << 1 | exit, signed method of an enter only
 *   counts        signed method | exit, without times or the size of the block
 * Forms B and C have the same version: the one in which the first block has no contradiction is
 * used. Form A, of development builds, is in art_early.c.
 *
 * The writer of form B may split one flush into several blocks and then continues its differences
 * and its count: a block is read from 0 unless that contradicts known methods, times or the count.
 *
 * A block is buffered completely, at most TW_ART_BLOCK_MAX bytes.
 */
#include "decoder/formats/art/art_internal.h"

#include <string.h>

enum { THREAD = 0, METHOD = 1, RECORDS = 2, SUMMARY = 3 };
#define NS_PER_S        ((uint64_t)1000000000)
#define TICKS_PER_S_MAX (10 * NS_PER_S) /* higher frequencies would overflow the sums in to_ns */

enum { EARLY_METHOD_HEAD = 7 };
enum { ENTRIES_HEAD = 12, DUMP_HEAD = 17, LEB_MAX = 10, COUNT_BITS = 0xFFFF, WRONG = 1000 };

struct record {
	unsigned action;
	bool named;
	uint64_t method;
	uint64_t ns, cpu_ns;
};

struct cursor {
	const uint8_t *at, *end;
	enum tw_art_form form;
	bool dual;
	uint64_t ticks_per_s;              /* 0: ns */
	uint64_t value, method, wall, cpu; /* so far */
};

enum tw_status tw_art_packet_header(struct tw_art *s, const uint8_t *p, struct tw_err *err)
{
	uint64_t start_ns = tw_u64le(p + 6);

	s->start_ns = start_ns < TW_ART_TIME_MAX ? start_ns : 0;
	s->unit_ns = 1;
	if (s->clock == TW_ART_CLOCK_UNKNOWN)
		s->clock = s->version == 5 ? TW_ART_CLOCK_DUAL : TW_ART_CLOCK_WALL;
	s->state = TW_ART_PACKETS;
	if (s->has_text) { /* released systems write it at the end */
		tw_art_early_start(s);
		return TW_OK;
	}
	if (s->version == 6 || (!tw_u64le(p + 14) && !tw_u64le(p + 22)))
		return TW_OK;
	s->form = TW_ART_FORM_C;
	s->ticks_per_s = tw_u64le(p + 22);
	if (s->ticks_per_s > TICKS_PER_S_MAX)
		return tw_fail_at(err, TW_CORRUPT, s->offset + 22,
		        "the clock of the ART trace has an impossible rate: %llu ticks per second",
		        (unsigned long long)s->ticks_per_s);
	return TW_OK;
}

/* --- records of a block --- */

static bool next_b(struct cursor *c, struct record *r)
{
	int64_t step;
	uint64_t wall;
	uint64_t cpu = 0;

	if (!tw_get_sleb(&c->at, c->end, &step) || !tw_get_varint(&c->at, c->end, &wall) ||
	        (c->dual && !tw_get_varint(&c->at, c->end, &cpu)))
		return false;
	c->value += (uint64_t)step;
	r->action = c->value & 3;
	r->named = true;
	r->method = c->value & ~(uint64_t)3;
	r->ns = c->wall += wall;
	r->cpu_ns = c->cpu += cpu;
	return true;
}

static uint64_t to_ns(const struct cursor *c, uint64_t ticks)
{
	uint64_t rate = c->ticks_per_s;

	if (rate == 0)
		return ticks;
	if (ticks / rate > TW_ART_TIME_MAX / NS_PER_S)
		return UINT64_MAX;
	return ticks / rate * NS_PER_S + ticks % rate * NS_PER_S / rate;
}

static bool next_timed(struct cursor *c, struct record *r)
{
	unsigned bits = c->form == TW_ART_FORM_C ? 2 : 1;
	int64_t step;
	int64_t cpu = 0;

	if (!tw_get_sleb(&c->at, c->end, &step) || (c->dual && !tw_get_sleb(&c->at, c->end, &cpu)))
		return false;
	c->value += (uint64_t)step;
	r->action = (unsigned)c->value & ((1u << bits) - 1);
	r->named = r->action == TW_ART_ENTER;
	r->ns = to_ns(c, c->value >> bits);
	r->cpu_ns = cpu < 0 ? 0 : (uint64_t)cpu;
	if (r->named) {
		if (!tw_get_sleb(&c->at, c->end, &step))
			return false;
		c->method += (uint64_t)step;
	}
	r->method = c->method;
	return true;
}

static bool next(struct cursor *c, struct record *r)
{
	const uint8_t *at = c->at;

	if (at == c->end)
		return false;
	if (c->form == TW_ART_FORM_B ? next_b(c, r) : next_timed(c, r))
		return true;
	c->at = at; /* start of the incomplete record */
	return false;
}

/* The number of contradictions in reading a block this way: `before` is the number of earlier
 * records of its flush, `not_before` the time up to which the thread has been read. */
static uint64_t faults(const struct tw_art *s, struct cursor c, uint32_t count, uint32_t before,
        uint64_t not_before)
{
	uint64_t found = 0;
	uint64_t last = not_before;
	uint32_t records = before;
	struct record r;

	while (next(&c, &r)) {
		records++;
		found += r.action == TW_ART_NO_ACTION;
		found += r.ns < last;
		found += s->n_named && r.named && !tw_art_knows(s, r.method);
		last = r.ns;
	}
	if (c.at != c.end)
		found += WRONG;
	if (((records ^ count) & COUNT_BITS) != 0)
		found += WRONG;
	return found;
}

static struct cursor cursor_of(
        const struct tw_art *s, enum tw_art_form form, const uint8_t *p, const uint8_t *end)
{
	return (struct cursor){.at = p,
	        .end = end,
	        .form = form,
	        .dual = s->version == 5,
	        .ticks_per_s = s->ticks_per_s};
}

static struct cursor carried(const struct cursor *c, const struct tw_art_thread *t)
{
	struct cursor r = *c;

	r.value = t->value;
	r.wall = t->wall;
	r.cpu = t->cpu;
	return r;
}

/* Whether the block continues the thread's previous one. */
static bool continues_previous(const struct tw_art *s, const struct tw_art_thread *t,
        const struct cursor *start, uint32_t count)
{
	struct cursor probe = *start;
	struct record first;

	if (t->flushed == 0)
		return false;
	if (next(&probe, &first) && first.action != TW_ART_NO_ACTION && first.ns >= t->wall &&
	        tw_art_knows(s, first.method))
		return false;
	return faults(s, carried(start, t), count, t->flushed, t->wall) <
	       faults(s, *start, count, 0, t->wall);
}

static enum tw_status emit(struct tw_art *s, struct tw_art_thread *t, const struct record *r,
        uint64_t offset, struct tw_err *err)
{
	struct tw_art_call call = {.action = r->action,
	        .named = r->named,
	        .method = r->method,
	        .ts_ns = (int64_t)r->ns,
	        .cpu_ns = s->version == 5 ? (int64_t)r->cpu_ns : -1,
	        .offset = offset};

	s->records++;
	if (r->ns > TW_ART_TIME_MAX || r->cpu_ns > TW_ART_TIME_MAX) {
		tw_art_repair(s, TW_REPAIR_impossible_time, offset);
		return TW_OK;
	}
	if (r->action == TW_ART_NO_ACTION) {
		tw_art_repair(s, TW_REPAIR_record_malformed, offset);
		return TW_OK;
	}
	return tw_art_event(s, t, &call, err);
}

static enum tw_status read_records(struct tw_art *s, struct tw_art_thread *t, struct cursor *c,
        const uint8_t *packet, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	const uint8_t *at = c->at;
	struct record r;
	uint32_t n = 0;

	while (st == TW_OK && next(c, &r)) {
		st = emit(s, t, &r, s->offset + (uint64_t)(at - packet), err);
		at = c->at;
		n++;
	}
	t->flushed += n;
	t->value = c->value;
	t->wall = c->wall;
	t->cpu = c->cpu;
	return st;
}

static void decide_form(struct tw_art *s, const uint8_t *p, const uint8_t *end, uint32_t count)
{
	if (s->version == 6) {
		s->form = TW_ART_FORM_LONG_RUNNING;
		return;
	}
	s->form = faults(s, cursor_of(s, TW_ART_FORM_C, p, end), count, 0, 0) <
	                          faults(s, cursor_of(s, TW_ART_FORM_B, p, end), count, 0, 0)
	                  ? TW_ART_FORM_C
	                  : TW_ART_FORM_B;
}

/* The packet p..end of records; `cut`: the input ended within it. */
static enum tw_status block(
        struct tw_art *s, const uint8_t *p, const uint8_t *end, bool cut, struct tw_err *err)
{
	uint32_t count = tw_u32le(p + 5) & 0xFFFFFF;
	struct tw_art_thread *t = tw_art_thread_of(s, tw_u32le(p + 1), s->offset);
	struct cursor c;
	enum tw_status st;

	if (!t || p + ENTRIES_HEAD == end)
		return TW_OK;
	if (s->form == TW_ART_FORM_UNKNOWN)
		decide_form(s, p + ENTRIES_HEAD, end, count);
	c = cursor_of(s, s->form, p + ENTRIES_HEAD, end);
	if (s->form == TW_ART_FORM_B && continues_previous(s, t, &c, count))
		c = carried(&c, t);
	else
		t->flushed = 0;
	st = read_records(s, t, &c, p, err);
	if (st == TW_OK && c.at != end && !cut)
		tw_art_repair(s, TW_REPAIR_record_malformed, s->offset + (uint64_t)(c.at - p));
	return st;
}

/* --- packets --- */

static const size_t heads[] = {7, 11, ENTRIES_HEAD, 3}; /* including their lengths, which come
                                                         * last */

static size_t head_of(const struct tw_art *s, unsigned type)
{
	if (s->form == TW_ART_FORM_A && type == METHOD)
		return EARLY_METHOD_HEAD;
	if (s->form == TW_ART_FORM_A && type == RECORDS)
		return tw_art_early_head(s);
	return type == SUMMARY && s->version == 6 ? DUMP_HEAD : heads[type];
}

static uint64_t body_of(const uint8_t *p, size_t head)
{
	if (p[0] == THREAD || p[0] == METHOD)
		return tw_u16le(p + head - 2);
	return p[0] == RECORDS && head == ENTRIES_HEAD ? tw_u32le(p + 8) : 0;
}

/* Whether this is the first method of form A.  With a four-byte number, text is at the position of
 * a pointer's unused bits. */
static bool is_form_a(const struct tw_art *s, const uint8_t *p)
{
	return s->form == TW_ART_FORM_UNKNOWN && s->version != 6 && p[0] == METHOD && p[7] > ' ' &&
	       (p[8] > ' ' || p[8] == '\t') && tw_u16le(p + 5) >= 11 - EARLY_METHOD_HEAD;
}

static enum tw_status method_packet(
        struct tw_art *s, const uint8_t *p, size_t n, struct tw_err *err)
{
	size_t head = head_of(s, METHOD);
	struct tw_str text = {(const char *)p + head, n - head};
	uint64_t id = s->form == TW_ART_FORM_A ? tw_art_early_method(s, tw_u32le(p + 1))
	                                       : tw_u64le(p + 1);

	if (text.len && text.ptr[text.len - 1] == '\n')
		text.len--;
	return tw_art_text_method(s, id, text, s->offset, err);
}

static enum tw_status take_packet(struct tw_art *s, const uint8_t *p, size_t n, struct tw_err *err)
{
	if (p[0] == THREAD) {
		tw_art_text_thread(
		        s, tw_u32le(p + 1), (struct tw_str){(const char *)p + 7, n - 7}, s->offset);
		return TW_OK;
	}
	if (p[0] == METHOD)
		return method_packet(s, p, n, err);
	if (p[0] == RECORDS)
		return block(s, p, p + n, false, err);
	if (s->version != 6)
		s->state = TW_ART_TEXT;
	return TW_OK;
}

/* A block without a stored size: reads record after record. */
static void start_calls(struct tw_art *s, const uint8_t *p)
{
	s->form = TW_ART_FORM_COUNTS;
	s->calls_thread = tw_art_thread_of(s, tw_u32le(p + 1), s->offset);
	s->calls_left = tw_u32le(p + 5) & 0xFFFFFF;
	s->calls_value = 0;
	if (s->calls_left)
		s->state = TW_ART_CALLS;
}

enum tw_status tw_art_packet_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	size_t head = p[0] <= SUMMARY ? head_of(s, p[0]) : 1;
	uint64_t body;

	s->want = head;
	if (n < head)
		return TW_OK;
	if (p[0] <= SUMMARY && is_form_a(s, p)) {
		tw_art_early_start(s);
		tw_art_emit_clock(s);
		head = EARLY_METHOD_HEAD;
	}
	body = p[0] <= SUMMARY ? body_of(p, head) : 0;
	*ret_used = head;
	if (p[0] > SUMMARY || body > TW_ART_BLOCK_MAX) {
		tw_art_drop(s, s->offset);
		return TW_OK;
	}
	if (p[0] == RECORDS && s->form == TW_ART_FORM_A)
		return tw_art_early_block(s, p, err);
	if (p[0] == RECORDS && body == 0 && s->version == 6) {
		start_calls(s, p);
		return TW_OK;
	}
	s->want = head + (size_t)body;
	*ret_used = n < s->want ? 0 : s->want;
	return *ret_used ? take_packet(s, p, s->want, err) : TW_OK;
}

enum tw_status tw_art_packet_cut(struct tw_art *s, const uint8_t *p, size_t n, struct tw_err *err)
{
	if (p[0] != RECORDS || n <= ENTRIES_HEAD || s->form == TW_ART_FORM_A)
		return TW_OK;
	return block(s, p, p + n, true, err);
}

/* --- counts --- */

/* Time advances by one with each call, so a call's duration is the number of calls inside it. */
static enum tw_status count_call(struct tw_art *s, uint64_t offset, struct tw_err *err)
{
	struct tw_art_thread *t = s->calls_thread;
	bool enter = (s->calls_value & 1) == 0;
	struct tw_art_call call = {.action = enter ? TW_ART_ENTER : TW_ART_EXIT,
	        .named = enter,
	        .method = s->calls_value,
	        .cpu_ns = -1,
	        .offset = offset};

	s->calls_left--;
	if (s->calls_left == 0)
		s->state = TW_ART_PACKETS;
	if (!t)
		return TW_OK;
	call.ts_ns = t->calls;
	t->calls += enter;
	return tw_art_event(s, t, &call, err);
}

enum tw_status tw_art_calls_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	const uint8_t *at = p;
	enum tw_status st = TW_OK;
	int64_t step;

	while (st == TW_OK && s->state == TW_ART_CALLS) {
		uint64_t offset = s->offset + (uint64_t)(at - p);

		if (!tw_get_sleb(&at, p + n, &step))
			break;
		s->calls_value += (uint64_t)step;
		st = count_call(s, offset, err);
	}
	*ret_used = (size_t)(at - p);
	s->want = n - *ret_used + 1;
	if (*ret_used == 0 && n >= LEB_MAX) {
		tw_art_drop(s, s->offset);
		*ret_used = n;
	}
	return st;
}

/* --- recognition of a dump without header --- */

static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < ' ' && p[i] != '\t' && p[i] != '\n')
			return false;
	return n > 0;
}

static bool is_time(uint64_t ns)
{
	return ns > 0 && ns < TW_ART_TIME_MAX;
}

/* 3, two times, and then a valid packet. */
bool tw_art_packet_probe(const uint8_t *p, size_t n)
{
	const uint8_t *q = p + DUMP_HEAD;
	uint64_t body;

	if (n < DUMP_HEAD + 12 || p[0] != SUMMARY || !is_time(tw_u64le(p + 1)) ||
	        !is_time(tw_u64le(p + 9)) || q[0] > RECORDS)
		return false;
	n -= DUMP_HEAD;
	body = body_of(q, heads[q[0]]);
	if (q[0] == RECORDS)
		return (tw_u32le(q + 5) & 0xFFFFFF) && body <= TW_ART_BLOCK_MAX &&
		       tw_u32le(q + 1) && tw_u32le(q + 1) < 1u << 22;
	if (q[0] == THREAD)
		return 7 + body <= n && is_text(q + 7, (size_t)body);
	return 11 + body <= n && is_text(q + 11, (size_t)body) &&
	       memchr(q + 11, '\t', (size_t)body);
}
