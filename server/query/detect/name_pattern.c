#include "server/query/detect/name_pattern.h"

#include "server/query/detect/frame_rules.h"

bool tw_name_pattern_is_expression(struct tw_str text)
{
	return text.len > 2 && text.ptr[0] == '/' && text.ptr[text.len - 1] == '/';
}

enum tw_status tw_name_pattern_init(
        struct tw_name_pattern *p, struct tw_str text, struct tw_err *err)
{
	char inner[TW_NAME_PATTERN_BYTES + 1];

	*p = (struct tw_name_pattern){.text = text};
	if (text.len == 0 || text.len > TW_NAME_PATTERN_BYTES || tw_str_has_control(text))
		return tw_fail(err, TW_BAD_REQUEST,
		        "a pattern has 1 to %d bytes and no control characters",
		        TW_NAME_PATTERN_BYTES);
	if (!tw_name_pattern_is_expression(text)) {
		p->gaps = memchr(text.ptr, '*', text.len) != NULL;
		return TW_OK;
	}
	memcpy(inner, text.ptr + 1, text.len - 2);
	inner[text.len - 2] = '\0';
	return tw_match_new(inner, true, &p->match, err);
}

void tw_name_pattern_done(struct tw_name_pattern *p)
{
	p->match = tw_match_free(p->match);
}

static bool ends(struct tw_str s, struct tw_str with)
{
	return s.len >= with.len &&
	       tw_str_eq((struct tw_str){s.ptr + (s.len - with.len), with.len}, with);
}

/* Each piece at the first position after the previous one: if any assignment matches, this one
 * does. */
static bool has_pieces(struct tw_str name, struct tw_str pieces)
{
	while (pieces.len) {
		const struct tw_str piece = tw_str_split(&pieces, '*');
		const char *at;

		if (!piece.len)
			continue;
		at = name.len < piece.len ? NULL : memmem(name.ptr, name.len, piece.ptr, piece.len);
		if (!at)
			return false;
		at += piece.len;
		name = (struct tw_str){at, (size_t)(name.ptr + name.len - at)};
	}
	return true;
}

/* The text before the first * and after the last has a fixed position; the rest is between. */
bool tw_name_fits(struct tw_str name, struct tw_str gaps)
{
	struct tw_str middle = gaps, tail;
	const struct tw_str head = tw_str_split(&middle, '*');
	size_t last = middle.len;

	if (head.len == gaps.len)
		return tw_str_eq(name, gaps);
	while (last > 0 && middle.ptr[last - 1] != '*')
		last--;
	tail = tw_str_from(middle, last);
	if (name.len < head.len + tail.len || !tw_str_starts(name, head) || !ends(name, tail))
		return false;
	return has_pieces((struct tw_str){name.ptr + head.len, name.len - head.len - tail.len},
	        (struct tw_str){middle.ptr, last});
}

enum tw_status tw_name_pattern_check(
        const struct tw_name_pattern *p, struct tw_str name, bool *ret_fits, struct tw_err *err)
{
	if (p->match)
		return tw_match_check(p->match, name, ret_fits, err);
	*ret_fits = p->gaps ? tw_name_fits(name, p->text) : tw_frame_begins(name, p->text);
	return TW_OK;
}
