/* ftrace_parse.c - parses one event line; the grammar is in ftrace.h. */
#include "decoder/formats/ftrace/ftrace.h"

enum { FRACTION_DIGITS = 9 };

#define MAX_SECONDS ((uint64_t)1 << 33)

struct cursor {
	const char *p, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Inlined, so that the cursor stays in registers. */
#define ALWAYS static inline __attribute__((always_inline))

ALWAYS char now(const struct cursor *c)
{
	if (c->p < c->end)
		return *c->p;
	return '\0';
}

ALWAYS bool skip(struct cursor *c, char what)
{
	if (now(c) != what)
		return false;
	c->p++;
	return true;
}

ALWAYS unsigned skip_blanks(struct cursor *c)
{
	const char *from = c->p;

	while (now(c) == ' ' || now(c) == '\t')
		c->p++;
	return (unsigned)(c->p - from);
}

ALWAYS bool number(struct cursor *c, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!is_digit(now(c)))
		return false;
	for (; is_digit(now(c)); c->p++) {
		v = v * 10 + (uint64_t)(*c->p - '0');
		if (v > max)
			return false;
	}
	*ret = v;
	return true;
}

/* "(TGID)", "(-----)", with blanks inside, or nothing. */
ALWAYS bool process(struct cursor *c, uint32_t *ret)
{
	uint64_t tgid = 0;

	(void)skip(c, '(');
	(void)skip_blanks(c);
	if (is_digit(now(c)) && !number(c, UINT32_MAX, &tgid))
		return false;
	while (now(c) == '-')
		c->p++;
	(void)skip(c, ')');
	(void)skip(c, ' ');
	*ret = (uint32_t)tgid;
	return true;
}

ALWAYS bool time_ns(struct cursor *c, int64_t *ret)
{
	uint64_t seconds;
	uint64_t fraction = 0;
	unsigned digits = 0;

	if (!number(c, MAX_SECONDS, &seconds) || !skip(c, '.') || !is_digit(now(c)))
		return false;
	for (; is_digit(now(c)); c->p++)
		if (digits < FRACTION_DIGITS) {
			fraction = fraction * 10 + (uint64_t)(*c->p - '0');
			digits++;
		}
	for (; digits < FRACTION_DIGITS; digits++)
		fraction *= 10;
	*ret = (int64_t)(seconds * 1000000000 + fraction);
	return skip(c, ':');
}

static bool is_flag(char c)
{
	return c == '.' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_depth(char c)
{
	return c == '.' || is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Three letters or dots, then one or two of 0-9a-f and the dot; they may touch the time. */
ALWAYS bool flags_and_time(struct cursor *c, int64_t *ret)
{
	for (unsigned depth = 2; depth > 0; depth--) {
		struct cursor at = *c;

		if (c->end - c->p <= 3 + (int)depth || !is_flag(c->p[0]) || !is_flag(c->p[1]) ||
		        !is_flag(c->p[2]) || !is_depth(c->p[3]) ||
		        (depth == 2 && !is_depth(c->p[4])))
			continue;
		at.p += 3 + depth;
		(void)skip_blanks(&at);
		if (time_ns(&at, ret)) {
			*c = at;
			return true;
		}
	}
	return time_ns(c, ret);
}

/* "EVENT: ARGUMENTS": the name extends to the last colon before a blank. */
ALWAYS bool name_and_args(struct cursor *c, struct tw_ftrace_event *ret)
{
	const char *from;
	const char *colon;

	if (skip_blanks(c) == 0)
		return false;
	for (from = c->p; c->p < c->end && *c->p != ' ' && *c->p != '\t'; c->p++)
		;
	colon = memrchr(from, ':', (size_t)(c->p - from));
	if (!colon || colon == from)
		return false;
	ret->name = (struct tw_str){from, (size_t)(colon - from)};
	ret->args = tw_str_trim((struct tw_str){colon + 1, (size_t)(c->end - colon - 1)});
	return true;
}

/* The rest of a line from the "-" before the thread id on. */
ALWAYS bool rest(struct cursor c, struct tw_ftrace_event *ret)
{
	uint64_t cpu;

	if (!skip(&c, '-') || !number(&c, UINT32_MAX, &ret->tid) || skip_blanks(&c) == 0)
		return false;
	if (!process(&c, &ret->tgid) || !skip(&c, '[') || !number(&c, UINT16_MAX, &cpu) ||
	        !skip(&c, ']'))
		return false;
	ret->cpu = (uint32_t)cpu;
	(void)skip_blanks(&c);
	return flags_and_time(&c, &ret->time_ns) && name_and_args(&c, ret);
}

bool tw_ftrace_parse(struct tw_str line, struct tw_ftrace_event *ret)
{
	const char *end = line.ptr + line.len;
	const char *at = line.ptr;

	while (at < end && (at = memchr(at, '-', (size_t)(end - at))) != NULL) {
		if (end - at > 1 && is_digit(at[1]) && rest((struct cursor){at, end}, ret)) {
			ret->task = tw_str_trim((struct tw_str){line.ptr, (size_t)(at - line.ptr)});
			return true;
		}
		at++;
	}
	return false;
}
