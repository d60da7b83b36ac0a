#include "decoder/base/native_frame.h"

#include <stdio.h>
#include <string.h>

enum { MODULE_BYTES = 200 };

#define TAG    TW_STR("(BuildId:")
#define OFFSET TW_STR(",offset")

bool tw_build_id_hex(const uint8_t *id, size_t n, char out[TW_BUILD_ID_HEX])
{
	static const char digits[] = "0123456789abcdef";

	if (n < TW_BUILD_ID_MIN || n > TW_BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[id[i] >> 4];
		out[2 * i + 1] = digits[id[i] & 15];
	}
	out[2 * n] = '\0';
	return true;
}

static bool is_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_build_id(struct tw_str text)
{
	if (text.len % 2 || text.len / 2 < TW_BUILD_ID_MIN || text.len / 2 > TW_BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (!is_digit(text.ptr[i]))
			return false;
	return true;
}

bool tw_build_id_clean(struct tw_str text, char out[TW_BUILD_ID_HEX])
{
	if (text.len >= TW_BUILD_ID_HEX)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		out[i] = text.ptr[i];
		if (out[i] >= 'A' && out[i] <= 'F')
			out[i] = (char)(out[i] - 'A' + 'a');
	}
	out[text.len] = '\0';
	return is_build_id((struct tw_str){out, text.len});
}

static struct tw_str module_of(struct tw_str path)
{
	struct tw_str name = tw_str_last_component(path);

	if (name.len == 0)
		name = TW_STR("unknown");
	return (struct tw_str){name.ptr, name.len < MODULE_BYTES ? name.len : MODULE_BYTES};
}

struct tw_str tw_native_frame_name(const struct tw_native_frame *f, char out[TW_NATIVE_FRAME_BYTES])
{
	const struct tw_str module = module_of(f->module);
	const int n = snprintf(out, TW_NATIVE_FRAME_BYTES, "%.*s+0x%llx(BuildId:%.*s%s)",
	        (int)module.len, module.ptr, (unsigned long long)f->address, (int)f->build_id.len,
	        f->build_id.ptr, f->is_offset ? ",offset" : "");

	return (struct tw_str){out, n > 0 ? (size_t)n : 0};
}

struct tw_str tw_native_frame_tagged(
        struct tw_str location, struct tw_str build_id, char out[TW_NATIVE_FRAME_BYTES])
{
	const int n = snprintf(out, TW_NATIVE_FRAME_BYTES, "%.*s(BuildId:%.*s)", (int)location.len,
	        location.ptr, (int)build_id.len, build_id.ptr);

	return (struct tw_str){out, n > 0 && n < TW_NATIVE_FRAME_BYTES ? (size_t)n : 0};
}

/* "0x1a2b" */
static bool parse_address(struct tw_str text, uint64_t *ret)
{
	uint64_t v = 0;

	if (!tw_str_starts(text, TW_STR("0x")) || text.len == 2 || text.len > 2 + 16)
		return false;
	for (size_t i = 2; i < text.len; i++) {
		const char c = text.ptr[i];

		if (!is_digit(c))
			return false;
		v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = v;
	return true;
}

bool tw_native_frame_parse(struct tw_str name, struct tw_native_frame *ret)
{
	struct tw_native_frame f = {0};
	size_t open, plus;

	if (name.len == 0 || name.ptr[name.len - 1] != ')') /* true of most names */
		return false;
	open = tw_str_find_last(name, TAG);
	if (open == name.len)
		return false;
	f.build_id = tw_str_from(name, open + TAG.len);
	f.build_id.len--; /* ')' */
	f.is_offset = f.build_id.len > OFFSET.len &&
	              tw_str_eq(tw_str_from(f.build_id, f.build_id.len - OFFSET.len), OFFSET);
	if (f.is_offset)
		f.build_id.len -= OFFSET.len;
	f.module = (struct tw_str){name.ptr, open};
	plus = tw_str_find_last(f.module, TW_STR("+"));
	if (!is_build_id(f.build_id) || plus == f.module.len ||
	        !parse_address(tw_str_from(f.module, plus + 1), &f.address))
		return false;
	f.module.len = plus;
	*ret = f;
	return true;
}

struct tw_str tw_native_frame_module(
        const struct tw_native_frame *f, char out[TW_NATIVE_MODULE_BYTES])
{
	const struct tw_str module = module_of(f->module);
	const int n = snprintf(out, TW_NATIVE_MODULE_BYTES, "[%.*s]", (int)module.len, module.ptr);

	return (struct tw_str){out, n > 0 ? (size_t)n : 0};
}
