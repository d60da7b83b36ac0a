#include "name_pattern.h"

#include "frame_rules.h"

bool tw_name_pattern_is_expression(struct tw_str text)
{
	return text.len > 2 && text.ptr[0] == '/' && text.ptr[text.len - 1] == '/';
}

static bool is_plain(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F)
			return false;
	return true;
}

enum tw_status tw_name_pattern_init(
        struct tw_name_pattern *p, struct tw_str text, struct tw_err *err)
{
	char inner[TW_NAME_PATTERN_BYTES + 1];

	*p = (struct tw_name_pattern){.text = text};
	if (text.len == 0 || text.len > TW_NAME_PATTERN_BYTES || !is_plain(text))
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
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

/* What does not fit is tried one place further from the last * on: earlier ones need not be. */
bool tw_name_fits(struct tw_str name, struct tw_str gaps)
{
	size_t n = 0, g = 0, star = SIZE_MAX, from = 0;

	while (n < name.len) {
		if (g < gaps.len && gaps.ptr[g] == '*') {
			star = g++;
			from = n;
		} else if (g < gaps.len && gaps.ptr[g] == name.ptr[n]) {
			g++;
			n++;
		} else if (star != SIZE_MAX) {
			g = star + 1;
			n = ++from;
		} else {
			return false;
		}
	}
	while (g < gaps.len && gaps.ptr[g] == '*')
		g++;
	return g == gaps.len;
}

enum tw_status tw_name_pattern_judge(
        const struct tw_name_pattern *p, struct tw_str name, bool *ret_fits, struct tw_err *err)
{
	if (p->match)
		return tw_match_judge(p->match, name, ret_fits, err);
	*ret_fits = p->gaps ? tw_name_fits(name, p->text) : tw_frame_begins(name, p->text);
	return TW_OK;
}
