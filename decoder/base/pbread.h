/*
 * pbread.h - a reader of protobuf's wire format.
 *
 * One pass over the fields of a message that is completely in memory.  Nothing is copied: a field
 * is a number or a view of its bytes, and a nested message is read by another reader.  A damaged
 * message yields the fields before the damage; tw_pb_bad reports it.  Fields may be repeated or
 * missing.
 * Thread: one at a time.
 */
#ifndef TW_PBREAD_H
#define TW_PBREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/str.h"

enum tw_pb_type { TW_PB_VARINT = 0, TW_PB_FIXED64 = 1, TW_PB_BYTES = 2, TW_PB_FIXED32 = 5 };

struct tw_pb {
	const uint8_t *at, *end;
	uint64_t bad; /* a bool, 64 bits wide: copying the struct would stall on a narrower store */
};

struct tw_pb_field {
	uint32_t number;
	enum tw_pb_type type;
	uint64_t value; /* VARINT, FIXED64, FIXED32; 0 for BYTES */
	const uint8_t *bytes;
	size_t len; /* BYTES; 0 for other types */
};

static inline struct tw_pb tw_pb_of(const uint8_t *p, size_t n)
{
	return (struct tw_pb){p, n ? p + n : p, 0};
}

/* A reader of the message, or of the packed numbers, in a field; empty if the field is not
 * BYTES. */
static inline struct tw_pb tw_pb_in(const struct tw_pb_field *f)
{
	return tw_pb_of(f->bytes, f->len);
}

static inline struct tw_str tw_pb_str(const struct tw_pb_field *f)
{
	return (struct tw_str){(const char *)f->bytes, f->len};
}

/* Reads the next field if it is a number with a tag of one byte and a value of at most eight bytes,
 * as most are.  False: it is not, or there is no field; nothing was read. */
static inline bool tw_pb_small(struct tw_pb *r, uint32_t *ret_number, uint64_t *ret_value)
{
	const uint64_t high = 0x8080808080808080u;
	const uint8_t *p = r->at;
	uint64_t w;
	uint64_t stop;

	if (r->end - p < 2 || p[0] < 1 << 3 || p[0] >= 0x80 || (p[0] & 7) != TW_PB_VARINT)
		return false;
	*ret_number = p[0] >> 3;
	if (p[1] < 0x80) {
		*ret_value = p[1];
		r->at = p + 2;
		return true;
	}
	if (r->end - p < 9) {
		if (r->end - p < 3 || p[2] >= 0x80)
			return false;
		*ret_value = (uint64_t)(p[1] & 0x7F) | (uint64_t)p[2] << 7;
		r->at = p + 3;
		return true;
	}
	w = tw_u64le(p + 1);
	stop = ~w & high;
	if (stop == 0)
		return false;
	r->at = p + 2 + __builtin_ctzll(stop) / 8;
	w &= (stop ^ (stop - 1)) & ~high; /* joins groups of 7 bits to 14, 28 and 56 */
	w = (w & 0x007F007F007F007Fu) | (w & 0x7F007F007F007F00u) >> 1;
	w = (w & 0x00003FFF00003FFFu) | (w & 0x3FFF00003FFF0000u) >> 2;
	*ret_value = (w & 0x000000000FFFFFFFu) | (w & 0x0FFFFFFF00000000u) >> 4;
	return true;
}

/* The same for a field of this number (below 16) with fewer than 128 bytes. */
static inline bool tw_pb_small_bytes(
        struct tw_pb *r, uint32_t number, const uint8_t **ret, size_t *ret_len)
{
	const uint8_t *p = r->at;

	if (r->end - p < 2 || p[0] != (number << 3 | TW_PB_BYTES) || p[1] >= 0x80 ||
	        p[1] > r->end - p - 2)
		return false;
	*ret = p + 2;
	*ret_len = p[1];
	r->at = p + 2 + p[1];
	return true;
}

/* tw_pb_next of any field. */
bool tw_pb_next_field(struct tw_pb *r, struct tw_pb_field *ret);

/* The next field; false at the end or at damage, and for every call after that.  Most fields have a
 * tag of one byte and a number or a length of one byte. */
static inline bool tw_pb_next(struct tw_pb *r, struct tw_pb_field *ret)
{
	const uint8_t *p = r->at;
	const uint8_t *bytes;

	if (r->end - p < 2 || p[0] < 1 << 3 || p[0] >= 0x80 || p[1] >= 0x80)
		return tw_pb_next_field(r, ret);
	bytes = p + 2;
	if ((p[0] & 7) == TW_PB_VARINT) {
		*ret = (struct tw_pb_field){
		        .number = p[0] >> 3, .type = TW_PB_VARINT, .value = p[1]};
		r->at = bytes;
		return true;
	}
	if ((p[0] & 7) != TW_PB_BYTES || p[1] > r->end - bytes)
		return tw_pb_next_field(r, ret);
	*ret = (struct tw_pb_field){
	        .number = p[0] >> 3, .type = TW_PB_BYTES, .bytes = bytes, .len = p[1]};
	r->at = bytes + p[1];
	return true;
}

/* The next packed varint; false at the end or at damage. */
bool tw_pb_number(struct tw_pb *r, uint64_t *ret);
/* The last number of this field in a message; 0 if there is none. */
uint64_t tw_pb_number_of(struct tw_pb message, uint32_t field);
/* Whether all fields of this message are complete.  Nested messages are not checked. */
bool tw_pb_is_complete(const uint8_t *p, size_t n);

static inline bool tw_pb_bad(const struct tw_pb *r)
{
	return r->bad != 0;
}

#endif
