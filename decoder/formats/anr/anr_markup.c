#include "decoder/formats/anr/anr_markup.h"

#include <string.h>

enum { NAME_BYTES = 160 };

static bool is_markup(char c)
{
	return c >= TW_ANR_MARKUP_METHOD[0] && c <= TW_ANR_MARKUP_END[0];
}

static size_t until_markup(struct tw_str s)
{
	size_t n = 0;

	while (n < s.len && !is_markup(s.ptr[n]))
		n++;
	return n;
}

static void skip(struct tw_str *s, size_t n)
{
	*s = (struct tw_str){s->ptr + n, s->len - n};
}

bool tw_anr_next_part(struct tw_str *with_markup, struct tw_str *ret, enum tw_anr_part *ret_kind)
{
	enum tw_anr_part kind = TW_ANR_PART_TEXT;

	if (with_markup->len && with_markup->ptr[0] == TW_ANR_MARKUP_END[0])
		skip(with_markup, 1);
	if (with_markup->len == 0)
		return false;
	if (with_markup->ptr[0] == TW_ANR_MARKUP_METHOD[0])
		kind = TW_ANR_PART_METHOD;
	else if (with_markup->ptr[0] == TW_ANR_MARKUP_CLASS[0])
		kind = TW_ANR_PART_CLASS;
	if (kind != TW_ANR_PART_TEXT)
		skip(with_markup, 1);
	*ret = (struct tw_str){with_markup->ptr, until_markup(*with_markup)};
	*ret_kind = kind;
	skip(with_markup, ret->len);
	return true;
}

struct tw_str tw_anr_short(struct tw_str name, enum tw_anr_part kind)
{
	unsigned parts = kind == TW_ANR_PART_METHOD ? 2 : 1;
	size_t at = name.len;

	if (kind == TW_ANR_PART_TEXT)
		return name;
	while (at && parts) {
		at--;
		parts -= name.ptr[at] == '.';
	}
	skip(&name, parts ? 0 : at + 1);
	if (name.len <= NAME_BYTES)
		return name;
	name.len = NAME_BYTES;
	while (name.len && ((unsigned char)name.ptr[name.len] & 0xC0) == 0x80)
		name.len--;
	return name;
}

char *tw_anr_plain(struct tw_arena *a, const char *with_markup)
{
	struct tw_str rest = tw_str_of(with_markup);
	char *out = tw_arena_alloc(a, rest.len + 1, 1);
	enum tw_anr_part kind;
	struct tw_str part;
	size_t n = 0;

	if (!out)
		return NULL;
	while (tw_anr_next_part(&rest, &part, &kind)) {
		part = tw_anr_short(part, kind);
		if (part.len)
			memcpy(out + n, part.ptr, part.len);
		n += part.len;
	}
	out[n] = '\0';
	return out;
}
