#include "decoder/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"

enum { VARINT_MAX = 10 };

void tw_buf_init(struct tw_buf *b, size_t max_bytes)
{
	*b = (struct tw_buf){.max = max_bytes, .status = TW_OK};
}

void tw_buf_done(struct tw_buf *b)
{
	tw_mem_free(b->data);
	tw_buf_init(b, b->max);
}

void tw_buf_clear(struct tw_buf *b)
{
	b->len = 0;
	b->status = TW_OK;
}

enum tw_status tw_buf_status(const struct tw_buf *b)
{
	return b->status;
}

enum tw_status tw_buf_grow(struct tw_buf *b, size_t n)
{
	size_t want = b->cap ? b->cap : 256;
	uint8_t *p;

	if (b->status != TW_OK)
		return b->status;
	if (n > b->max - b->len)
		return b->status = TW_TOO_LARGE;
	if (n <= b->cap - b->len)
		return TW_OK;
	while (want < b->len + n)
		want = want > SIZE_MAX / 2 ? b->len + n : want * 2;
	if (want > b->max)
		want = b->max;
	p = tw_mem_resize(b->data, want, 1);
	if (!p)
		return b->status = TW_NOMEM;
	b->data = p;
	b->cap = want;
	return TW_OK;
}

enum tw_status tw_buf_grow_add(struct tw_buf *b, const void *p, size_t n)
{
	enum tw_status st = tw_buf_reserve(b, n);

	if (st != TW_OK || n == 0)
		return st;
	memcpy(b->data + b->len, p, n);
	b->len += n;
	return TW_OK;
}

enum tw_status tw_buf_add_str(struct tw_buf *b, struct tw_str s)
{
	return tw_buf_add(b, s.ptr, s.len);
}

enum tw_status tw_buf_add_u8(struct tw_buf *b, uint8_t v)
{
	return tw_buf_add(b, &v, 1);
}

enum tw_status tw_buf_add_u32le(struct tw_buf *b, uint32_t v)
{
	uint8_t p[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};

	return tw_buf_add(b, p, sizeof p);
}

enum tw_status tw_buf_add_u64le(struct tw_buf *b, uint64_t v)
{
	(void)tw_buf_add_u32le(b, (uint32_t)v);
	return tw_buf_add_u32le(b, (uint32_t)(v >> 32));
}

enum tw_status tw_buf_add_varint(struct tw_buf *b, uint64_t v)
{
	uint8_t p[VARINT_MAX];

	if (b->status == TW_OK && b->cap - b->len >= VARINT_MAX) {
		b->len = (size_t)(tw_put_varint(b->data + b->len, v) - b->data);
		return TW_OK;
	}
	return tw_buf_add(b, p, (size_t)(tw_put_varint(p, v) - p));
}

enum tw_status tw_buf_printf(struct tw_buf *b, const char *fmt, ...)
{
	va_list ap;
	va_list again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		b->status = TW_BUG;
	else if (tw_buf_reserve(b, (size_t)len + 1) == TW_OK) {
		(void)vsnprintf((char *)b->data + b->len, (size_t)len + 1, fmt, again);
		b->len += (size_t)len;
	}
	va_end(again);
	return b->status;
}
