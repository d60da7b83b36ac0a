/*
 * perfetto_packets.c - framing, and resynchronisation.
 *
 * The search for a packet uses a window of fixed size, of which the first half is tried: it
 * requires two consecutive packets whose fields have the right types, and the beginning of a third
 * or the input's end.  As the window is full or the input over when it is searched, splits make no
 * difference.
 *
 * A packet with damaged fields may have a wrong length and contain others: its bytes are searched
 * again.  Bytes to process again are in a queue; a packet that begins there and ends in later input
 * is buffered like any split packet, and by then the queue is empty and can be reused.
 */
#include "decoder/formats/perfetto/perfetto_packets.h"

#include <string.h>

#include "decoder/base/buf.h"

enum {
	WINDOW_BYTES = 256 << 10,
	MAX_FIELDS = 64, /* of a packet being searched for */
	MAX_FIELD = 1023,
	MIN_CUT_HEAD = 16,
	PACKET_TAG = 0x0A
};

void tw_perfetto_packets_init(struct tw_perfetto_packets *s, struct tw_arena *a,
        struct tw_sink *sink, tw_perfetto_packet_fn each, void *arg)
{
	*s = (struct tw_perfetto_packets){.each = each, .arg = arg, .arena = a, .sink = sink};
}

static uint64_t file_offset(const struct tw_perfetto_packets *s, uint64_t offset)
{
	return s->inside ? *s->inside : offset;
}

static void repair(struct tw_perfetto_packets *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, file_offset(s, offset), 1);
}

/* --- shape of a packet --- */

/* Number fields of a packet; all others contain bytes. */
static bool is_number(uint32_t field)
{
	static const uint8_t numbers[] = {3, 8, 10, 13, 41, 42, 58, 79, 87, 98};

	for (size_t i = 0; i < sizeof numbers; i++)
		if (numbers[i] == field)
			return true;
	return false;
}

static bool fits(const struct tw_pb_field *f)
{
	if (f->number > MAX_FIELD)
		return false;
	return f->type == (is_number(f->number) ? TW_PB_VARINT : TW_PB_BYTES);
}

/* Whether this is a packet.  cut: its end is not here. */
static bool is_packet(const uint8_t *p, size_t n, bool cut)
{
	struct tw_pb r = tw_pb_of(p, n);
	struct tw_pb_field f;
	unsigned fields = 0;

	while (tw_pb_next(&r, &f))
		if (!fits(&f) || ++fields > MAX_FIELDS)
			return false;
	return cut || (fields && !tw_pb_bad(&r));
}

/* "\n", length: returns the packet's bytes, as far as they are here; false if it is not a
 * packet. */
static bool open_packet(
        const uint8_t *p, size_t n, const uint8_t **ret, size_t *ret_n, bool *ret_cut)
{
	const uint8_t *at = p + 1;
	uint64_t length;

	if (n < 2 || p[0] != PACKET_TAG || !tw_get_varint(&at, p + n, &length) ||
	        length > TW_PERFETTO_PACKET_MAX)
		return false;
	*ret = at;
	*ret_cut = length > (uint64_t)(p + n - at);
	*ret_n = *ret_cut ? (size_t)(p + n - at) : (size_t)length;
	return true;
}

/* Whether two consecutive packets are here.  last: no bytes follow. */
static bool is_chain(const uint8_t *p, size_t n, bool last)
{
	const uint8_t *end = p + n;

	for (int i = 0; i < 2; i++) {
		const uint8_t *body;
		size_t len;
		bool cut;

		if (!open_packet(p, (size_t)(end - p), &body, &len, &cut) || cut || len == 0 ||
		        !is_packet(body, len, false))
			return false;
		p = body + len;
		if (p == end)
			return last;
	}
	return *p == PACKET_TAG;
}

/* Fields that recorders put first in a packet, and those of long packets. */
static bool is_first(uint64_t field, enum tw_pb_type type)
{
	static const uint8_t fields[] = {1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 33, 34, 35, 36, 37, 45,
	        47, 50, 54, 56, 58, 59, 60, 66, 69, 79, 87, 89, 133, 135};

	for (size_t i = 0; i < sizeof fields; i++)
		if (fields[i] == field)
			return type == (is_number(fields[i]) ? TW_PB_VARINT : TW_PB_BYTES);
	return false;
}

/* A truncated first packet is recognised only by its first field. */
bool tw_perfetto_packets_begin(const uint8_t *p, size_t n)
{
	const uint8_t *body;
	const uint8_t *end = p + n;
	unsigned whole = 0;
	size_t len;
	bool cut = false;
	uint64_t tag = 0;

	while (p < end && !cut && whole < 4) {
		if (!open_packet(p, (size_t)(end - p), &body, &len, &cut))
			return whole > 1 || (whole && end - p < 6 && *p == PACKET_TAG);
		if (len && !is_packet(body, len, cut))
			return whole > 1;
		whole += !cut && len;
		p = body + len;
	}
	if (whole)
		return true;
	return cut && n >= MIN_CUT_HEAD && tw_get_varint(&body, end, &tag) &&
	       is_first(tag >> 3, (enum tw_pb_type)(tag & 7));
}

/* --- framing --- */

static bool enqueue(struct tw_perfetto_packets *s, const uint8_t *p, size_t n)
{
	if (s->at_queue)
		memmove(s->queue.data, s->queue.data + s->at_queue, s->queue.n - s->at_queue);
	s->queue.n -= s->at_queue;
	s->at_queue = 0;
	return tw_bytes_add(&s->queue, s->arena, p, n);
}

/* Queues the buffered bytes to be processed again.  The queue must be empty. */
static void read_again(struct tw_perfetto_packets *s)
{
	const struct tw_bytes queue = s->queue;

	s->queue = s->held;
	s->at_queue = 0;
	s->held = queue;
	s->held.n = 0;
	s->offset -= s->queue.n;
	s->state = TW_PERFETTO_LOST;
}

/* *ret_used: number of input bytes in the packet; 0 if they are to be processed again. */
static enum tw_status emit_packet(struct tw_perfetto_packets *s, const uint8_t *p, size_t n,
        size_t *ret_used, struct tw_err *err)
{
	const struct tw_perfetto_piece piece = {p, n, file_offset(s, s->start)};
	bool damaged = false;
	enum tw_status st = n ? s->each(s->arg, &piece, &damaged, err) : TW_OK;

	s->state = damaged ? TW_PERFETTO_LOST : TW_PERFETTO_TAG;
	if (damaged && s->held.n)
		read_again(s);
	else if (damaged)
		*ret_used = 0;
	s->held.n = 0;
	return st;
}

static enum tw_status read_body(struct tw_perfetto_packets *s, const uint8_t *p, size_t n,
        size_t *ret_used, struct tw_err *err)
{
	size_t want = (size_t)s->length - s->held.n;
	size_t take = n < want ? n : want;

	*ret_used = take;
	if (s->held.n == 0 && take == want)
		return emit_packet(s, p, take, ret_used, err);
	if (take && !tw_bytes_add(&s->held, s->arena, p, take))
		return tw_oom(err);
	return take == want ? emit_packet(s, s->held.data, s->held.n, ret_used, err) : TW_OK;
}

static void lose_framing(struct tw_perfetto_packets *s, enum tw_repair what)
{
	repair(s, what, s->start);
	s->state = TW_PERFETTO_LOST;
}

/* The tag and a length of one or two bytes, as nearly all packets begin; 0: any other. */
static size_t read_head(struct tw_perfetto_packets *s, const uint8_t *p, size_t n)
{
	size_t two = n >= 3 && p[1] >= 0x80;

	if (n < 3 || p[0] != PACKET_TAG || (two && p[2] >= 0x80))
		return 0;
	s->start = s->offset;
	s->length = two ? (uint64_t)(p[1] & 0x7F) | (uint64_t)p[2] << 7 : p[1];
	s->shift = two ? 14 : 7;
	s->state = TW_PERFETTO_BODY;
	return 2 + two;
}

/* One byte of the length. */
static void read_length(struct tw_perfetto_packets *s, uint8_t byte)
{
	s->length |= (uint64_t)(byte & 0x7F) << s->shift;
	s->shift += 7;
	if (byte < 0x80) {
		s->state = TW_PERFETTO_BODY;
		if (s->length > TW_PERFETTO_PACKET_MAX)
			lose_framing(s, TW_REPAIR_record_too_large);
	} else if (s->shift > 28) {
		lose_framing(s, TW_REPAIR_framing_lost);
	}
}

/* Reads until the bytes are used up or the chain breaks. */
static enum tw_status frame(struct tw_perfetto_packets *s, const uint8_t *p, size_t n,
        size_t *ret_used, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	size_t at = 0;

	while (st == TW_OK && s->state != TW_PERFETTO_LOST &&
	        (at < n || (s->state == TW_PERFETTO_BODY && s->length == 0))) {
		size_t used = 1;

		if (s->state == TW_PERFETTO_LENGTH) {
			read_length(s, p[at]);
		} else if (s->state == TW_PERFETTO_BODY) {
			st = read_body(s, p + at, n - at, &used, err);
		} else if ((used = read_head(s, p + at, n - at)) == 0) {
			used = 1;
			s->start = s->offset;
			s->length = s->shift = 0;
			s->state = TW_PERFETTO_LENGTH;
			if (p[at] != PACKET_TAG) {
				lose_framing(s, TW_REPAIR_framing_lost);
				used = 0;
			}
		}
		at += used;
		s->offset += used;
	}
	*ret_used = at;
	return st;
}

/* --- resynchronisation --- */

static size_t queued(const struct tw_perfetto_packets *s)
{
	return s->queue.n - s->at_queue;
}

/* Call when the window is full, or contains all remaining bytes. */
static void search(struct tw_perfetto_packets *s)
{
	bool last = queued(s) < WINDOW_BYTES;
	size_t n = last ? queued(s) : WINDOW_BYTES;
	size_t tried = last ? n : WINDOW_BYTES / 2;
	const uint8_t *p = s->queue.data + s->at_queue;
	size_t at = 0;

	while (at < tried && !is_chain(p + at, n - at, last))
		at++;
	s->at_queue += (uint32_t)at;
	s->offset += at;
	if (at < tried)
		s->state = TW_PERFETTO_TAG;
}

/* Processes the queue as far as possible.  over: no more input. */
static enum tw_status read_queue(struct tw_perfetto_packets *s, bool over, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && queued(s)) {
		size_t used = 0;

		if (s->state != TW_PERFETTO_LOST) {
			st = frame(s, s->queue.data + s->at_queue, queued(s), &used, err);
			s->at_queue += (uint32_t)used;
		} else if (queued(s) >= WINDOW_BYTES || over) {
			search(s);
		} else {
			break;
		}
	}
	return st;
}

enum tw_status tw_perfetto_packets_push(
        struct tw_perfetto_packets *s, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && n) {
		size_t used = 0;

		if (s->state == TW_PERFETTO_LOST) {
			size_t room = WINDOW_BYTES - queued(s);

			used = n < room ? n : room;
			if (!enqueue(s, p, used))
				return tw_oom(err);
		} else {
			st = frame(s, p, n, &used, err);
		}
		p += used;
		n -= used;
		if (st == TW_OK)
			st = read_queue(s, false, err);
	}
	return st;
}

enum tw_status tw_perfetto_packets_finish(struct tw_perfetto_packets *s, struct tw_err *err)
{
	enum tw_status st = read_queue(s, true, err);

	/* a truncated packet may have a wrong length, and contain others */
	while (st == TW_OK && s->state == TW_PERFETTO_BODY) {
		repair(s, TW_REPAIR_input_truncated, s->start);
		if (s->held.n == 0)
			break;
		read_again(s);
		st = read_queue(s, true, err);
	}
	if (s->state == TW_PERFETTO_LENGTH)
		repair(s, TW_REPAIR_input_truncated, s->start);
	s->state = TW_PERFETTO_TAG;
	s->held.n = s->queue.n = s->at_queue = 0;
	return st;
}
