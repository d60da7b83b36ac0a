/*
 * retrace_frame.c - frames with lines, and stacks, in a retrace image.
 *
 * A frame's line picks the members whose range covers it.  Those that follow each
 * other with one range were inlined into each other; other groups are alternatives.
 * A stack is asked for from the top down, as what stands in an outline (code that the
 * compiler took out of several methods) belongs to the frame that called it.
 */
#include "symbols/retrace.h"

#include <string.h>

#include "symbols/retrace_read.h"

enum { MAX_LINES = 16, MAX_COMMENTS = 64 };

struct frames {
	struct tw_retraced *list;
	size_t n, cap;
};

static void add_frame(struct frames *f, const struct retrace_class *c,
        const struct retrace_member *m, uint32_t line, uint32_t alternative)
{
	if (f->n == f->cap)
		return;
	f->list[f->n] = tw_retrace_told(c, m);
	f->list[f->n].line = line;
	f->list[f->n++].alternative = alternative;
}

static bool any_range(const struct tw_retrace *r, struct retrace_range range)
{
	for (uint32_t i = range.first; i < range.end; i++)
		if (retrace_member_at(r, i).e > 0)
			return true;
	return false;
}

static uint32_t original_line(const struct retrace_member *m, uint32_t line)
{
	if (m->oe == 0 || m->oe == m->os)
		return m->os;
	return m->os + (line - m->s);
}

/* Members whose range covers the line; those of one range that follow each other were inlined. */
static void frames_in_range(const struct tw_retrace *r, const struct retrace_class *c,
        struct retrace_range range, uint32_t line, struct frames *f)
{
	uint32_t alternative = 0;
	bool inlined = false;

	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(r, i);

		if (m.e == 0 || line < m.s || line > m.e)
			continue;
		if (f->n && !inlined)
			alternative++;
		add_frame(f, c, &m, original_line(&m, line), alternative);
		inlined = (m.flags & RETRACE_INLINED) != 0;
	}
}

/* Only members without a range: each is an alternative, and each line of a known span. */
static void frames_without_range(const struct tw_retrace *r, const struct retrace_class *c,
        struct retrace_range range, uint32_t line, struct frames *f)
{
	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(r, i);
		uint32_t last = m.oe > m.os && m.oe - m.os < MAX_LINES ? m.oe : m.os;

		if (m.os == 0 && m.oe == 0)
			add_frame(f, c, &m, (m.flags & RETRACE_RANGE) ? 0 : line, (uint32_t)f->n);
		for (uint32_t at = m.os; at && at <= last; at++)
			add_frame(f, c, &m, at, (uint32_t)f->n);
	}
}

static bool is_base(const struct retrace_member *m)
{
	return m->e == 0;
}

/* `0:0:` members are one inline group; their lines are known when each has a single one. */
static void frames_of_zero_range(const struct tw_retrace *r, const struct retrace_class *c,
        struct retrace_range range, struct frames *f)
{
	bool single = true;

	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(r, i);

		if (is_base(&m) && (m.flags & RETRACE_RANGE))
			single = single && m.os == m.oe;
	}
	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(r, i);

		if (is_base(&m) && (m.flags & RETRACE_RANGE))
			add_frame(f, c, &m, single ? m.os : 0, 0);
	}
}

static bool has_zero_range(const struct tw_retrace *r, struct retrace_range range)
{
	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(r, i);

		if (is_base(&m) && (m.flags & RETRACE_RANGE))
			return true;
	}
	return false;
}

/* The first run of members with one range, when it is longer than one, is what was inlined. */
static void frames_of_first_group(const struct tw_retrace *r, const struct retrace_class *c,
        struct retrace_range range, struct frames *f)
{
	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(r, i);

		add_frame(f, c, &m, m.os == m.oe ? m.os : 0, 0);
		if (!(m.flags & RETRACE_INLINED))
			return;
	}
}

static size_t frame_without_line(const struct tw_retrace *r, const struct retrace_class *c,
        struct retrace_range range, struct frames *f)
{
	struct tw_retraced one;
	struct retrace_member m = retrace_member_at(r, range.first);
	bool ranged = any_range(r, range);

	if (has_zero_range(r, range)) {
		frames_of_zero_range(r, c, range, f);
		return f->n;
	}
	if (ranged && (m.flags & RETRACE_INLINED)) {
		frames_of_first_group(r, c, range, f);
		return f->n;
	}
	for (uint32_t i = range.first; i < range.end; i++) {
		m = retrace_member_at(r, i);
		if (ranged && !is_base(&m) && (m.flags & RETRACE_INLINED))
			continue;
		one = tw_retrace_told(c, &m);
		one.args = TW_STR("");
		one.line = range.end - range.first == 1 && !(m.flags & RETRACE_RANGE) ? m.os : 0;
		f->n = tw_retrace_add_different(f->list, f->n, f->cap, &one);
	}
	return f->n;
}

/* Of many members those that are looked at: from where the line can be, as compilers write the
 * ranges of a name in their order. */
static struct retrace_range window(
        const struct tw_retrace *r, struct retrace_range all, uint32_t line)
{
	uint32_t high = all.end;

	if (all.end - all.first <= RETRACE_LOOKED_AT)
		return all;
	while (line && all.first < high) {
		uint32_t middle = all.first + (high - all.first) / 2;

		if (retrace_member_at(r, middle).e < line)
			all.first = middle + 1;
		else
			high = middle;
	}
	return tw_retrace_clip(all);
}

size_t tw_retrace_frame(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        uint32_t line, struct tw_retraced *ret, size_t cap)
{
	struct frames f = {ret, 0, cap};
	struct retrace_class c;
	struct retrace_range range;

	if (!tw_retrace_find_class(r, class_name, &c))
		return 0;
	range = window(r, tw_retrace_find_members(r, &c, method), line);
	if (range.first == range.end)
		return 0;
	if (line == 0)
		return frame_without_line(r, &c, range, &f);
	if (any_range(r, range))
		frames_in_range(r, &c, range, line, &f);
	else
		frames_without_range(r, &c, range, line, &f);
	return f.n;
}

/* --- stacks --- */

static bool is_outline(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method)
{
	struct retrace_class c;
	struct retrace_range range;

	if (!tw_retrace_find_class(r, class_name, &c))
		return false;
	range = tw_retrace_find_members(r, &c, method);
	return range.first < range.end &&
	       (retrace_member_at(r, range.first).flags & RETRACE_OUTLINE) != 0;
}

/* What stands behind the first `what`, blanks skipped; "" when it is nowhere. */
static struct tw_str behind(struct tw_str s, struct tw_str what)
{
	while (s.len >= what.len && memcmp(s.ptr, what.ptr, what.len) != 0)
		s = (struct tw_str){s.ptr + 1, s.len - 1};
	if (s.len < what.len)
		return TW_STR("");
	s = (struct tw_str){s.ptr + what.len, s.len - what.len};
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == ':'))
		s = (struct tw_str){s.ptr + 1, s.len - 1};
	return s;
}

/* "La/b;m(" names the outline a.b.m. */
static bool names_outline(struct tw_str json, const struct tw_retrace_walk *w)
{
	struct tw_str at = behind(json, TW_STR("\"outline\""));
	size_t n = w->outline_class.len;

	if (at.len < n + w->outline_method.len + 4 || memcmp(at.ptr, "\"L", 2) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((at.ptr[2 + i] == '/' ? '.' : at.ptr[2 + i]) != w->outline_class.ptr[i])
			return false;
	return at.ptr[2 + n] == ';' &&
	       memcmp(at.ptr + 3 + n, w->outline_method.ptr, w->outline_method.len) == 0 &&
	       at.ptr[3 + n + w->outline_method.len] == '(';
}

static uint32_t number_in_front(struct tw_str s)
{
	uint64_t v = 0;
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	return n && tw_str_u64((struct tw_str){s.ptr, n}, UINT32_MAX, &v) ? (uint32_t)v : 0;
}

/* {"1": 4, "2": 5}: the value of the line; 0 none. */
static uint32_t position(struct tw_str json, uint32_t line)
{
	struct tw_str list = behind(json, TW_STR("\"positions\""));
	struct tw_str inside = tw_str_split(&list, '}');

	while (inside.len) {
		struct tw_str pair = tw_str_split(&inside, ',');
		struct tw_str key = behind(pair, TW_STR("\""));

		if (number_in_front(key) == line && line)
			return number_in_front(behind(key, TW_STR("\"")));
	}
	return 0;
}

/* The comments behind a member's line are its own. */
static uint32_t callsite(const struct tw_retrace_walk *w, const struct retrace_member *m)
{
	const struct tw_retrace *r = w->r;
	size_t at = (size_t)(m->obf.ptr + m->obf.len - r->text);
	struct tw_str rest = {r->text + at, r->text_len - at};

	(void)tw_str_split(&rest, '\n');
	for (unsigned i = 0; i < MAX_COMMENTS && rest.len; i++) {
		struct tw_str line = tw_str_trim(tw_str_split(&rest, '\n'));
		uint32_t to;

		if (line.len == 0 || line.ptr[0] != '#')
			return 0;
		to = names_outline(line, w) ? position(line, w->outline_line) : 0;
		if (to)
			return to;
	}
	return 0;
}

/* The line of a frame that called the outline above it: where the outline's code was taken from. */
static uint32_t line_at_call(const struct tw_retrace_walk *w, const struct tw_retrace_at *at)
{
	struct retrace_class c;
	struct retrace_range range;

	if (!w->outline_line || !tw_retrace_find_class(w->r, at->class_name, &c))
		return at->line;
	range = window(w->r, tw_retrace_find_members(w->r, &c, at->method), at->line);
	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(w->r, i);
		bool covers = m.e == 0 || (at->line >= m.s && at->line <= m.e);
		uint32_t to =
		        covers && (m.flags & RETRACE_CALLSITE) && m.obf.len ? callsite(w, &m) : 0;

		if (to)
			return to;
	}
	return at->line;
}

/* Frames that the compiler made are left out where others of their group remain. */
static size_t without_synthesized(struct tw_retraced *f, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0, end; i < n; i = end) {
		bool real = false;

		for (end = i; end < n && f[end].alternative == f[i].alternative; end++)
			real = real || !f[end].synthesized;
		for (size_t k = i; k < end; k++)
			if (!real || !f[k].synthesized)
				f[kept++] = f[k];
	}
	return kept;
}

/* Of a class that is known without a member that fits: the method and its line as they were. */
static size_t class_only(
        const struct tw_retrace *r, const struct tw_retrace_at *at, struct tw_retraced *ret)
{
	struct retrace_class c;
	const struct retrace_member m = {.name = at->method};

	if (!tw_retrace_find_class(r, at->class_name, &c))
		return 0;
	*ret = tw_retrace_told(&c, &m);
	ret->line = at->line;
	return 1;
}

size_t tw_retrace_next(struct tw_retrace_walk *w, const struct tw_retrace_at *at,
        struct tw_retraced *ret, size_t cap, bool *ret_outline)
{
	uint32_t line;
	size_t n;

	*ret_outline = at->line && is_outline(w->r, at->class_name, at->method);
	if (*ret_outline) {
		w->outline_class = at->class_name;
		w->outline_method = at->method;
		w->outline_line = at->line;
		return 0;
	}
	line = line_at_call(w, at);
	w->outline_line = 0;
	n = tw_retrace_frame(w->r, at->class_name, at->method, line, ret, cap);
	if (n == 0 && cap)
		return class_only(w->r, at, ret);
	return without_synthesized(ret, n);
}

/* --- files --- */

static struct tw_str behind_last(struct tw_str s, char c)
{
	size_t at = s.len;

	while (at && s.ptr[at - 1] != c)
		at--;
	return (struct tw_str){s.ptr + at, s.len - at};
}

static bool ends_with(struct tw_str s, struct tw_str end)
{
	return s.len > end.len && memcmp(s.ptr + s.len - end.len, end.ptr, end.len) == 0;
}

struct tw_retrace_file tw_retrace_file(const struct tw_retraced *f)
{
	struct tw_str source = f->source;
	struct tw_str rest = behind_last(f->class_name, '.');
	struct tw_str outer = {0};

	if (tw_str_eq(source, TW_STR("R8$$SyntheticClass")))
		source = TW_STR("");
	if (source.len && !f->moved)
		return (struct tw_retrace_file){source, TW_STR("")};
	while (rest.len) {
		struct tw_str part = tw_str_split(&rest, '$');

		if (outer.len == 0)
			outer = part;
		if (ends_with(part, TW_STR("Kt")))
			return (struct tw_retrace_file){{part.ptr, part.len - 2}, TW_STR(".kt")};
	}
	return (struct tw_retrace_file){
	        outer, ends_with(source, TW_STR(".kt")) ? TW_STR(".kt") : TW_STR(".java")};
}
