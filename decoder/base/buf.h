/*
 * buf.h - a growing byte buffer with a maximum size.
 *
 * Appends return TW_OK, TW_TOO_LARGE (past the maximum) or TW_NOMEM.  The status is sticky: after a
 * failure every later append returns the same status and changes nothing, so a writer can check
 * once at the end with tw_buf_status.
 * Also contains readers of little-endian integers and varints.
 * Thread: one at a time.
 */
#ifndef TW_BUF_H
#define TW_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

struct tw_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max;
	enum tw_status status;
};

void tw_buf_init(struct tw_buf *b, size_t max_bytes);
void tw_buf_done(struct tw_buf *b);  /* frees; the buffer can be initialised again */
void tw_buf_clear(struct tw_buf *b); /* length 0, status OK; keeps the memory */

enum tw_status tw_buf_status(const struct tw_buf *b);

enum tw_status tw_buf_grow(struct tw_buf *b, size_t n); /* slow path of tw_buf_reserve */
/* Reserves space for n more bytes; `data` may move. */
static inline enum tw_status tw_buf_reserve(struct tw_buf *b, size_t n)
{
	return b->status == TW_OK && n <= b->cap - b->len ? TW_OK : tw_buf_grow(b, n);
}
enum tw_status tw_buf_grow_add(struct tw_buf *b, const void *p, size_t n); /* slow path of
                                                                            * tw_buf_add */
static inline enum tw_status tw_buf_add(struct tw_buf *b, const void *p, size_t n)
{
	if (b->status != TW_OK || n == 0 || n > b->cap - b->len)
		return tw_buf_grow_add(b, p, n);
	memcpy(b->data + b->len, p, n);
	b->len += n;
	return TW_OK;
}
/* Its bytes, valid until the buffer is changed. */
static inline struct tw_str tw_buf_str(const struct tw_buf *b)
{
	return (struct tw_str){(const char *)b->data, b->len};
}
enum tw_status tw_buf_add_str(struct tw_buf *b, struct tw_str s);
enum tw_status tw_buf_add_u8(struct tw_buf *b, uint8_t v);
enum tw_status tw_buf_add_u32le(struct tw_buf *b, uint32_t v);
enum tw_status tw_buf_add_u64le(struct tw_buf *b, uint64_t v);
enum tw_status tw_buf_add_varint(struct tw_buf *b, uint64_t v); /* unsigned LEB128, ≤ 10 bytes */
enum tw_status tw_buf_printf(struct tw_buf *b, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

static inline uint16_t tw_u16le(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t tw_u32le(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t tw_u64le(const uint8_t *p)
{
	return (uint64_t)tw_u32le(p) | (uint64_t)tw_u32le(p + 4) << 32;
}

static inline void tw_put_u32le(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

static inline void tw_put_u64le(uint8_t *p, uint64_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
	p[4] = (uint8_t)(v >> 32);
	p[5] = (uint8_t)(v >> 40);
	p[6] = (uint8_t)(v >> 48);
	p[7] = (uint8_t)(v >> 56);
}

/* Completes the `want` bytes at `held`, of which *have are present, from the input *p, *n.
 * Advances the input and its byte counter *read.  True once all are present. */
static inline bool tw_gather(
        uint8_t *held, uint32_t *have, uint32_t want, uint64_t *read, const uint8_t **p, size_t *n)
{
	size_t take = want - *have < *n ? want - *have : *n;

	if (take)
		memcpy(held + *have, *p, take);
	*have += (uint32_t)take;
	*read += take;
	*p += take;
	*n -= take;
	return *have == want;
}

/* Writes v at p (10 bytes must be free) and returns the position after it. */
static inline uint8_t *tw_put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* The same for sizes that cannot be predicted: no branch decides between one and four bytes. */
static inline uint8_t *tw_put_varint_branchless(uint8_t *p, uint64_t v)
{
	uint32_t groups = (uint32_t)((v & 0x7F) | (v << 1 & 0x7F00) | (v << 2 & 0x7F0000) |
	                             (v << 3 & 0x7F000000));
	unsigned more = v > 0x7F;

	more += v > 0x3FFF;
	more += v > 0x1FFFFF;
	if (v >> 28)
		return tw_put_varint(p, v);
	tw_put_u32le(p, groups | (0x80808080u & ((1u << 8 * more) - 1)));
	return p + 1 + more;
}

/* Reads a varint at *p, not past `end`, and moves *p after it.  False if truncated or overlong. */
static inline bool tw_get_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	const uint8_t *q = *p;
	uint64_t v = 0;

	for (unsigned shift = 0; q < end && shift < 64; shift += 7) {
		uint8_t byte = *q++;

		if (shift == 63 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7F) << shift;
		if (byte < 0x80) {
			*p = q;
			*ret = v;
			return true;
		}
	}
	return false;
}

/* Reads a signed LEB128 (sign in bit 6 of the last byte; not zigzag); otherwise like
 * tw_get_varint. */
static inline bool tw_get_sleb(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
	const uint8_t *q = *p;
	uint64_t v = 0;

	for (unsigned shift = 0; q < end && shift < 64; shift += 7) {
		uint8_t byte = *q++;

		if (shift == 63 && byte != 0 && byte != 0x7F)
			return false;
		v |= (uint64_t)(byte & 0x7F) << shift;
		if (byte < 0x80) {
			if ((byte & 0x40) && shift < 57)
				v |= UINT64_MAX << (shift + 7);
			*p = q;
			*ret = (int64_t)v;
			return true;
		}
	}
	return false;
}

#endif
