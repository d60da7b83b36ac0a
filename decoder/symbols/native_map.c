#include "decoder/symbols/native_map.h"

#include <string.h>

#include "decoder/base/order.h"
#include "decoder/symbols/native_image.h"

enum tw_status tw_native_open(
        const void *data, size_t len, struct tw_native_map *ret, struct tw_err *err)
{
	const uint8_t *p = data;
	struct tw_native_map m = {0};
	uint64_t names;

	if (len < NATIVE_HEADER || memcmp(p, NATIVE_MAGIC, NATIVE_MAGIC_BYTES) != 0)
		return tw_fail(err, TW_CORRUPT, "not an image of native symbols");
	m.n_functions = tw_u32le(p + 8);
	m.n_segments = tw_u32le(p + 12);
	names = tw_u64le(p + 16);
	if (!tw_build_id_hex(p + 32, p[24], m.build_id) ||
	        names != len - NATIVE_HEADER - (uint64_t)NATIVE_RECORD * m.n_segments -
	                         (uint64_t)NATIVE_RECORD * m.n_functions ||
	        names > len)
		return tw_fail(err, TW_CORRUPT, "an image of native symbols is damaged");
	m.segments = p + NATIVE_HEADER;
	m.functions = m.segments + (size_t)NATIVE_RECORD * m.n_segments;
	m.names = (const char *)m.functions + (size_t)NATIVE_RECORD * m.n_functions;
	m.names_len = (size_t)names;
	*ret = m;
	return TW_OK;
}

/* The address of an offset in the file. */
static bool address_of(const struct tw_native_map *m, uint64_t offset, uint64_t *ret)
{
	for (uint32_t i = 0; i < m->n_segments; i++) {
		const uint8_t *s = m->segments + (size_t)NATIVE_RECORD * i;
		const uint64_t from = tw_u64le(s + 8);

		if (offset >= from && offset - from < tw_u64le(s + 16)) {
			*ret = tw_u64le(s) + (offset - from);
			return true;
		}
	}
	return false;
}

static bool find(const struct tw_native_map *m, uint64_t address, struct tw_str *ret)
{
	uint32_t at;
	const uint8_t *f;
	uint64_t bytes;

	TW_BISECT(
	        at, m->n_functions, tw_u64le(m->functions + (size_t)NATIVE_RECORD * at) <= address);
	if (at == 0)
		return false;
	f = m->functions + (size_t)NATIVE_RECORD * (at - 1);
	bytes = tw_u64le(f + 8);
	if (address - tw_u64le(f) >= bytes)
		return false;
	if (tw_u32le(f + 16) > m->names_len || tw_u32le(f + 20) > m->names_len - tw_u32le(f + 16))
		return false;
	*ret = (struct tw_str){m->names + tw_u32le(f + 16), tw_u32le(f + 20)};
	return ret->len > 0;
}

bool tw_native_find(
        const struct tw_natives *n, const struct tw_native_frame *frame, struct tw_str *ret)
{
	for (size_t i = 0; n && i < n->n; i++) {
		const struct tw_native_map *m = &n->maps[i];
		uint64_t address = frame->address;

		if (tw_str_eq(tw_str_of(m->build_id), frame->build_id))
			return (!frame->is_offset || address_of(m, address, &address)) &&
			       find(m, address, ret);
	}
	return false;
}
