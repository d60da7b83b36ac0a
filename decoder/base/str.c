#include "base/str.h"

static size_t continuation(const unsigned char *p, size_t len, size_t want)
{
	if (len < want)
		return 0;
	for (size_t i = 1; i < want; i++)
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	return want;
}

size_t tw_utf8_len(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xC2 && p[0] <= 0xDF)
		return continuation(p, len, 2);
	if (p[0] >= 0xE0 && p[0] <= 0xEF) {
		if (continuation(p, len, 3) == 0)
			return 0;
		/* overlong forms and UTF-16 surrogates */
		if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F))
			return 0;
		return 3;
	}
	if (p[0] >= 0xF0 && p[0] <= 0xF4) {
		if (continuation(p, len, 4) == 0)
			return 0;
		if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
			return 0;
		return 4;
	}
	return 0;
}

size_t tw_utf8_clean(char *out, size_t cap, struct tw_str s)
{
	static const char replacement[] = "\xEF\xBF\xBD";
	size_t at = 0;
	size_t i = 0;

	while (i < s.len) {
		size_t n = s.ptr[i] ? tw_utf8_len(s.ptr + i, s.len - i) : 0;
		const char *from = n ? s.ptr + i : replacement;
		size_t put = n ? n : 3;

		if (at + put >= cap)
			break;
		memcpy(out + at, from, put);
		at += put;
		i += n ? n : 1;
	}
	out[at] = '\0';
	return at;
}

bool tw_str_u64(struct tw_str s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		unsigned d = (unsigned)(unsigned char)s.ptr[i] - '0';

		if (d > 9 || v > (UINT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	if (v > max)
		return false;
	*ret = v;
	return true;
}

struct tw_str tw_str_split(struct tw_str *s, char sep)
{
	const char *at = s->len ? memchr(s->ptr, sep, s->len) : NULL;
	struct tw_str piece = *s;

	if (!at) {
		*s = (struct tw_str){s->ptr + s->len, 0};
		return piece;
	}
	piece.len = (size_t)(at - s->ptr);
	*s = (struct tw_str){at + 1, s->len - piece.len - 1};
	return piece;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct tw_str tw_str_trim(struct tw_str s)
{
	while (s.len && is_blank(s.ptr[0]))
		s = (struct tw_str){s.ptr + 1, s.len - 1};
	while (s.len && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}
