#include "decoder/base/str.h"

/* Ranges of first and second bytes (RFC 3629): the bounds of the second byte exclude overlong
 * forms, surrogates and characters past U+10FFFF. */
static const struct {
	unsigned char first, last, second_low, second_high;
	unsigned len;
} forms[] = {
        {0x00, 0x7F, 0, 0, 1},
        {0xC2, 0xDF, 0x80, 0xBF, 2},
        {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3},
        {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4},
        {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static bool follows(const unsigned char *p, unsigned form)
{
	if (forms[form].len > 1 &&
	        (p[1] < forms[form].second_low || p[1] > forms[form].second_high))
		return false;
	for (unsigned i = 2; i < forms[form].len; i++)
		if ((p[i] & 0xC0) != 0x80)
			return false;
	return true;
}

size_t tw_utf8_len(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	if (len && p[0] < 0x80)
		return 1;
	for (unsigned i = 1; len && i < sizeof forms / sizeof *forms; i++)
		if (p[0] >= forms[i].first && p[0] <= forms[i].last)
			return len >= forms[i].len && follows(p, i) ? forms[i].len : 0;
	return 0;
}

bool tw_utf8_is_control(const char *s, size_t len)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {{0, 0x1F}, {0x7F, 0x9F}, {0x61C, 0x61C}, {0x200B, 0x200F}, {0x2028, 0x202E},
	        {0x2060, 0x206F}, {0xFEFF, 0xFEFF}};
	const unsigned char *p = (const unsigned char *)s;
	uint32_t c = len == 1 ? p[0] : p[0] & (0xFFu >> (len + 1));

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3F);
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* The UTF-8 form of a character encoded as two surrogates of three bytes each; false: not such a
 * pair. */
static bool joined_surrogates(const char *s, size_t len, char out[4])
{
	const unsigned char *b = (const unsigned char *)s;
	uint32_t c;

	if (len < 6 || b[0] != 0xED || (b[1] & 0xF0) != 0xA0 || (b[2] & 0xC0) != 0x80 ||
	        b[3] != 0xED || (b[4] & 0xF0) != 0xB0 || (b[5] & 0xC0) != 0x80)
		return false;
	c = 0x10000 + ((((uint32_t)b[1] & 0xF) << 6 | (b[2] & 0x3F)) << 10) +
	    (((uint32_t)b[4] & 0xF) << 6 | (b[5] & 0x3F));
	out[0] = (char)(0xF0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3F));
	out[2] = (char)(0x80 | (c >> 6 & 0x3F));
	out[3] = (char)(0x80 | (c & 0x3F));
	return true;
}

bool tw_utf8_is_plain(struct tw_str s)
{
	unsigned char bad = 0;

	for (size_t i = 0; i < s.len; i++)
		bad |= (unsigned char)((unsigned char)s.ptr[i] - 1) >= 0x7F;
	return !bad;
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
		size_t took = n ? n : 1;
		char joined[4];

		if (!n && joined_surrogates(s.ptr + i, s.len - i, joined)) {
			from = joined;
			put = 4;
			took = 6;
		}
		if (at + put >= cap)
			break;
		memcpy(out + at, from, put);
		at += put;
		i += took;
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

bool tw_str_i64(struct tw_str s, int64_t *ret)
{
	bool negative = s.len && s.ptr[0] == '-';
	uint64_t v;

	if (negative)
		s = tw_str_from(s, 1);
	if (!tw_str_u64(s, (uint64_t)INT64_MAX + negative, &v))
		return false;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

size_t tw_str_find(struct tw_str s, struct tw_str what)
{
	size_t at = 0;

	while (s.len - at >= what.len) {
		const char *p = memchr(s.ptr + at, what.ptr[0], s.len - at - what.len + 1);

		if (!p)
			break;
		at = (size_t)(p - s.ptr);
		if (memcmp(p, what.ptr, what.len) == 0)
			return at;
		at++;
	}
	return s.len;
}

size_t tw_str_find_last(struct tw_str s, struct tw_str what)
{
	size_t n = s.len < what.len ? 0 : s.len - what.len + 1; /* offsets to try */
	const char *at;

	for (; n && (at = memrchr(s.ptr, what.ptr[0], n)) != NULL; n = (size_t)(at - s.ptr))
		if (memcmp(at, what.ptr, what.len) == 0)
			return (size_t)(at - s.ptr);
	return s.len;
}

struct tw_str tw_str_last_component(struct tw_str path)
{
	size_t at = tw_str_find_last(path, TW_STR("/"));

	return at < path.len ? tw_str_from(path, at + 1) : path;
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

bool tw_str_has_control(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7F)
			return true;
	return false;
}

bool tw_str_is_graphic(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] <= ' ' || (unsigned char)s.ptr[i] >= 0x7F)
			return false;
	return true;
}

struct tw_str tw_str_trim(struct tw_str s)
{
	while (s.len && is_blank(s.ptr[0]))
		s = tw_str_from(s, 1);
	while (s.len && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}
