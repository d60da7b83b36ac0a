#include "decoder/formats/inflate.h"

#include <zlib.h>

enum { OUT_BYTES = 64 << 10, ANY_HEADER = 15 + 32, RATIO_FROM_BYTES = 1 << 20 };

struct tw_inflate {
	z_stream z;
	tw_bytes_fn out;
	void *arg;
	uint64_t taken, made, max_bytes;
	uint32_t max_ratio;
	enum tw_inflate_state state;
	uint8_t space[OUT_BYTES];
};

static voidpf take(voidpf arena, uInt n, uInt size)
{
	return tw_arena_zalloc(arena, n, size);
}

static void give_back(voidpf arena, voidpf p)
{
	(void)arena, (void)p; /* freed with the arena */
}

struct tw_inflate *tw_inflate_new(
        struct tw_arena *a, const struct tw_limits *limits, tw_bytes_fn out, void *arg)
{
	struct tw_inflate *z = tw_arena_zalloc(a, 1, sizeof *z);

	if (!z)
		return NULL;
	z->out = out;
	z->arg = arg;
	z->max_bytes = limits->max_decoded_bytes;
	z->max_ratio = limits->max_ratio;
	z->z.zalloc = take;
	z->z.zfree = give_back;
	z->z.opaque = a;
	return inflateInit2(&z->z, ANY_HEADER) == Z_OK ? z : NULL;
}

void tw_inflate_restart(struct tw_inflate *z)
{
	(void)inflateReset(&z->z); /* fails only for an uninitialised stream */
	z->state = TW_INFLATE_MORE;
}

static enum tw_status within_limits(const struct tw_inflate *z, struct tw_err *err)
{
	if (z->made > z->max_bytes)
		return tw_fail_at(err, TW_TOO_LARGE, z->made, "more than %llu decoded bytes",
		        (unsigned long long)z->max_bytes);
	if (z->made > RATIO_FROM_BYTES && z->made / z->max_ratio > z->taken)
		return tw_fail_at(err, TW_TOO_LARGE, z->made,
		        "its decoded size exceeds %u times its size", z->max_ratio);
	return TW_OK;
}

/* One step; *ret_idle: the input is used up. */
static enum tw_status step(struct tw_inflate *z, bool *ret_idle, struct tw_err *err)
{
	uInt before = z->z.avail_in;
	enum tw_status st;
	size_t n;
	int rc;

	z->z.next_out = z->space;
	z->z.avail_out = sizeof z->space;
	rc = inflate(&z->z, Z_NO_FLUSH);
	n = sizeof z->space - z->z.avail_out;
	z->taken += before - z->z.avail_in;
	z->made += n;
	if (rc == Z_STREAM_END)
		z->state = TW_INFLATE_DONE;
	else if (rc == Z_MEM_ERROR)
		return tw_oom(err);
	else if (rc != Z_OK && rc != Z_BUF_ERROR)
		z->state = TW_INFLATE_DAMAGED;
	*ret_idle = z->z.avail_in == 0 && z->z.avail_out > 0;
	st = within_limits(z, err);
	return st == TW_OK && n ? z->out(z->arg, z->space, n, err) : st;
}

enum tw_status tw_inflate_push(struct tw_inflate *z, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && n && z->state == TW_INFLATE_MORE) {
		uInt piece = n < UINT32_MAX / 2 ? (uInt)n : UINT32_MAX / 2;
		bool idle = false;

		z->z.next_in = (z_const Bytef *)(uintptr_t)p;
		z->z.avail_in = piece;
		while (st == TW_OK && !idle && z->state == TW_INFLATE_MORE)
			st = step(z, &idle, err);
		p += piece;
		n -= piece;
	}
	return st;
}

enum tw_inflate_state tw_inflate_state(const struct tw_inflate *z)
{
	return z->state;
}

bool tw_inflate_is_zlib(const uint8_t head[2])
{
	return (head[0] & 0x0F) == 8 && head[0] >> 4 <= 7 && (head[0] << 8 | head[1]) % 31 == 0;
}
