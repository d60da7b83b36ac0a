#include "decoder/base/pbread.h"

enum { MAX_NUMBER = (1 << 29) - 1, TYPE_BITS = 3 };

static bool damaged(struct tw_pb *r)
{
	r->bad = true;
	r->at = r->end;
	return false;
}

static bool read_fixed(struct tw_pb *r, size_t n, struct tw_pb_field *ret)
{
	if ((size_t)(r->end - r->at) < n)
		return damaged(r);
	ret->value = n == 8 ? tw_u64le(r->at) : tw_u32le(r->at);
	r->at += n;
	return true;
}

static bool read_bytes(struct tw_pb *r, struct tw_pb_field *ret)
{
	uint64_t n;

	if (!tw_get_varint(&r->at, r->end, &n) || n > (uint64_t)(r->end - r->at))
		return damaged(r);
	ret->bytes = r->at;
	ret->len = (size_t)n;
	r->at += n;
	return true;
}

bool tw_pb_next_field(struct tw_pb *r, struct tw_pb_field *ret)
{
	uint64_t tag;

	if (r->at == r->end)
		return false;
	if (!tw_get_varint(&r->at, r->end, &tag) || tag >> TYPE_BITS == 0 ||
	        tag >> TYPE_BITS > MAX_NUMBER)
		return damaged(r);
	*ret = (struct tw_pb_field){.number = (uint32_t)(tag >> TYPE_BITS),
	        .type = (enum tw_pb_type)(tag & ((1 << TYPE_BITS) - 1))};
	switch (ret->type) {
	case TW_PB_VARINT:
		return tw_get_varint(&r->at, r->end, &ret->value) || damaged(r);
	case TW_PB_FIXED64:
		return read_fixed(r, 8, ret);
	case TW_PB_BYTES:
		return read_bytes(r, ret);
	case TW_PB_FIXED32:
		return read_fixed(r, 4, ret);
	}
	return damaged(r); /* groups, which are obsolete, and undefined types */
}

bool tw_pb_number(struct tw_pb *r, uint64_t *ret)
{
	if (r->at == r->end)
		return false;
	return tw_get_varint(&r->at, r->end, ret) || damaged(r);
}

bool tw_pb_is_complete(const uint8_t *p, size_t n)
{
	struct tw_pb r = tw_pb_of(p, n);
	struct tw_pb_field f;

	while (tw_pb_next(&r, &f))
		;
	return !tw_pb_bad(&r);
}

uint64_t tw_pb_number_of(struct tw_pb message, uint32_t field)
{
	struct tw_pb_field f;
	uint64_t value = 0;

	while (tw_pb_next(&message, &f))
		if (f.number == field)
			value = f.value;
	return value;
}
