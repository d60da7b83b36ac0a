/*
 * retrace_frame.c - looks up frames with lines, and stacks, in a retrace image.
 *
 * The members of a name are split where the outermost method changes: each part is an overload, and
 * gives an alternative.  Within a part a line selects the first range that covers it, with the
 * members after it that have the same range: each was inlined into the next.
 * A stack is retraced from the top down, because the code of an outline (which the compiler moved
 * out of several methods) belongs to the frame that called it.
 */
#include "decoder/symbols/retrace.h"

#include <string.h>

#include "decoder/symbols/retrace_read.h"

enum { MAX_LINES = 16, MAX_COMMENTS = 64 };

struct frames {
	const struct tw_retrace *r;
	struct retrace_class c;
	struct tw_str thrown; /* see struct tw_retrace_walk */
	uint32_t line;        /* 0 unknown */
	struct tw_retraced *list;
	size_t n, cap;
	uint32_t alternatives;
	bool outline; /* one of them is from an outline */
};

/* --- comments after a member's line --- */

/* The text after the first `what`, without leading blanks; "" if absent. */
static struct tw_str text_after(struct tw_str s, struct tw_str what)
{
	size_t at = tw_str_find(s, what);

	if (at == s.len)
		return TW_STR("");
	s = tw_str_from(s, at + what.len);
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == ':'))
		s = tw_str_from(s, 1);
	return s;
}

static uint32_t number_in_front(struct tw_str s)
{
	uint64_t v = 0;
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	return n && tw_str_u64((struct tw_str){s.ptr, n}, UINT32_MAX, &v) ? (uint32_t)v : 0;
}

/* The text after the member's line. */
static struct tw_str after_member(const struct tw_retrace *r, const struct retrace_member *m)
{
	struct tw_str rest = TW_STR("");

	if (m->obf.len == 0)
		return rest;
	rest.ptr = m->obf.ptr + m->obf.len;
	rest.len = (size_t)(r->text + r->text_len - rest.ptr);
	(void)tw_str_split(&rest, '\n');
	return rest;
}

static bool take_comment(struct tw_str *rest, struct tw_str *ret)
{
	*ret = rest->len ? tw_str_trim(tw_str_split(rest, '\n')) : TW_STR("");
	return ret->len && ret->ptr[0] == '#';
}

/* Whether the descriptor's class is the thrown one, obfuscated or original. */
static bool is_thrown(const struct frames *f, struct tw_str descriptor)
{
	struct tw_str original = f->thrown;
	bool same = true;
	bool same_original;

	(void)tw_retrace_class(f->r, f->thrown, &original);
	same = descriptor.len == f->thrown.len;
	same_original = descriptor.len == original.len;
	for (size_t i = 0; i < descriptor.len; i++) {
		char c = descriptor.ptr[i];

		c = (char)(c == '/' ? '.' : c);
		same = same && f->thrown.ptr[i] == c;
		same_original = same_original && original.ptr[i] == c;
	}
	return same || same_original;
}

/* Number of inner frames that a comment removes for the thrown exception. */
static uint32_t removed_by(const struct frames *f, struct tw_str json)
{
	struct tw_str at = json;

	if (tw_str_find(json, TW_STR("r8.rewriteFrame\"")) == json.len)
		return 0;
	while ((at = text_after(at, TW_STR("throws(L"))).len) {
		struct tw_str rest = at;

		if (!is_thrown(f, tw_str_split(&rest, ';')))
			return 0;
	}
	return number_in_front(text_after(json, TW_STR("removeInnerFrames(")));
}

static uint32_t removed(const struct frames *f, struct retrace_range group)
{
	uint32_t n = 0;

	for (uint32_t i = group.first; f->thrown.len && i < group.end; i++) {
		struct retrace_member m = retrace_member_at(f->r, i);
		struct tw_str rest = after_member(f->r, &m);
		struct tw_str comment;

		for (unsigned k = 0; (m.flags & RETRACE_REWRITE) && k < MAX_COMMENTS &&
		                     take_comment(&rest, &comment);
		        k++)
			n += removed_by(f, comment);
	}
	return n <= group.end - group.first ? n : 0;
}

/* --- parts: overloads --- */

static bool same_signature(const struct retrace_member *a, const struct retrace_member *b)
{
	return tw_str_eq(a->name, b->name) && tw_str_eq(a->class_name, b->class_name) &&
	       tw_str_eq(a->args, b->args) && tw_str_eq(a->type, b->type);
}

/* The members from range.first on with the same outermost method. */
static struct retrace_range part_of(const struct tw_retrace *r, struct retrace_range range)
{
	struct retrace_range part = {range.first, retrace_group_end(r, range.first, range.end)};
	struct retrace_member own = retrace_member_at(r, part.end - 1);
	struct retrace_member last = retrace_member_at(r, range.end - 1);

	if (same_signature(&own, &last)) /* no overloads */
		return range;
	while (part.end < range.end) {
		uint32_t end = retrace_group_end(r, part.end, range.end);
		struct retrace_member m = retrace_member_at(r, end - 1);

		if (!same_signature(&own, &m))
			break;
		part.end = end;
	}
	return part;
}

/* The comment that marks a method as synthesized follows one of its ranges. */
static bool is_synthesized(
        const struct tw_retrace *r, struct retrace_range part, uint32_t outermost)
{
	struct retrace_member own = retrace_member_at(r, outermost);

	for (uint32_t i = part.first; i < part.end; i++) {
		struct retrace_member m = retrace_member_at(r, i);

		if ((m.flags & RETRACE_SYNTHESIZED) && !(m.flags & RETRACE_INLINED) &&
		        same_signature(&m, &own))
			return true;
	}
	return (own.flags & (RETRACE_SYNTHESIZED | RETRACE_OUTLINE)) != 0;
}

/* --- frames of a part --- */

/* Whether the line stands for one of several. */
static bool is_ambiguous(const struct retrace_member *m)
{
	return m->oe > m->os && (!(m->flags & RETRACE_RANGE) || m->oe - m->os != m->e - m->s);
}

static uint32_t original_line(const struct retrace_member *m, uint32_t line)
{
	if (!(m->flags & RETRACE_RANGE))
		return m->os || (m->flags & RETRACE_LINES) ? m->os : line;
	if (m->oe <= m->os || line < m->s)
		return m->os;
	return m->os + (line - m->s);
}

/* One alternative: the group's methods, the innermost with the resolved line. */
static void add_chain(
        struct frames *f, struct retrace_range part, struct retrace_range group, uint32_t line)
{
	struct retrace_member top = retrace_member_at(f->r, group.first);
	bool lines = f->line || !is_ambiguous(&top);

	for (uint32_t i = group.first + removed(f, group); i < group.end && f->n < f->cap; i++) {
		struct retrace_member m = retrace_member_at(f->r, i);
		struct tw_retraced *one = &f->list[f->n++];

		*one = tw_retrace_reported(f->r, &f->c, &m);
		one->line = i == group.first ? line : lines ? original_line(&m, f->line) : 0;
		one->alternative = f->alternatives;
		one->synthesized = i + 1 == group.end && is_synthesized(f->r, part, i);
		f->outline = f->outline || (i + 1 == group.end && (m.flags & RETRACE_OUTLINE));
	}
	f->alternatives++;
}

static void add_group(struct frames *f, struct retrace_range part, struct retrace_range group)
{
	struct retrace_member top = retrace_member_at(f->r, group.first);

	if (!is_ambiguous(&top)) {
		add_chain(f, part, group, original_line(&top, f->line));
	} else if (f->line == 0 || top.oe - top.os >= MAX_LINES) {
		add_chain(f, part, group, 0);
	} else {
		for (uint32_t line = top.os; line <= top.oe; line++)
			add_chain(f, part, group, line);
	}
}

static void add_one(struct frames *f, struct retrace_range part, uint32_t i)
{
	add_group(f, part, (struct retrace_range){i, i + 1});
}

/* Adds the range that covers the line; 0 is covered by a range starting at 0. */
static bool add_covering(struct frames *f, struct retrace_range part)
{
	for (uint32_t i = part.first; i < part.end; i++) {
		struct retrace_member m = retrace_member_at(f->r, i);

		if ((m.flags & RETRACE_RANGE) && f->line >= m.s && f->line <= m.e) {
			add_group(f, part,
			        (struct retrace_range){i, retrace_group_end(f->r, i, part.end)});
			return true;
		}
	}
	return false;
}

/* Members without a range: all of them, or the first. */
static void add_without_range(struct frames *f, struct retrace_range part, bool all)
{
	for (uint32_t i = part.first; i < part.end; i++)
		if (!(retrace_member_at(f->r, i).flags & RETRACE_RANGE)) {
			add_one(f, part, i);
			if (!all)
				return;
		}
}

static void add_method(struct frames *f, struct retrace_range part)
{
	struct tw_retraced one = tw_retrace_method_of(f->r, &f->c, part, part.end - 1);

	one.args = TW_STR("");
	one.type = TW_STR("");
	f->n = tw_retrace_add_different(f->list, f->n, f->cap, &one);
}

enum pick { COVERING, WITHOUT_RANGE, COVERING_OR_FIRST, METHOD };

static void pick(struct frames *f, struct retrace_range range, enum pick how)
{
	struct retrace_range part;

	for (; range.first < range.end; range.first = part.end) {
		part = part_of(f->r, range);
		if (how == METHOD)
			add_method(f, part);
		else if (how == WITHOUT_RANGE || !add_covering(f, part)) {
			if (how != COVERING)
				add_without_range(f, part, how == WITHOUT_RANGE);
		}
	}
}

/* Limits the members examined if there are many, starting where the line can occur, as compilers
 * write the ranges of a name in order. */
static struct retrace_range window(
        const struct tw_retrace *r, struct retrace_range all, uint32_t line)
{
	uint32_t high = all.end;

	if (all.end - all.first <= RETRACE_EXAMINED_MAX)
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

/* False: the mapping lacks the class. */
static bool find_frames(struct frames *f, struct tw_str class_name, struct tw_str method)
{
	struct retrace_range range;

	if (!tw_retrace_find_class(f->r, class_name, &f->c))
		return false;
	range = window(f->r, tw_retrace_find_members(f->r, &f->c, method), f->line);
	pick(f, range, f->line ? COVERING : COVERING_OR_FIRST);
	if (f->n == 0 && !f->outline)
		pick(f, range, f->line ? WITHOUT_RANGE : METHOD);
	if (f->line == 0 && f->alternatives > 1)
		for (size_t i = 0; i < f->n; i++)
			f->list[i].line = 0;
	return true;
}

size_t tw_retrace_frame(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        uint32_t line, struct tw_retraced *ret, size_t cap)
{
	struct frames f = {.r = r, .line = line, .list = ret, .cap = cap};

	(void)find_frames(&f, class_name, method);
	return f.n;
}

/* --- stacks --- */

/* "La/b;m(" is the outline a.b.m; mappings before version 2.2 name none. */
static bool is_outline(struct tw_str json, const struct tw_retrace_walk *w)
{
	struct tw_str at = text_after(json, TW_STR("\"outline\""));
	size_t n = w->outline_class.len;

	if (at.len == 0)
		return true;
	if (at.len < n + w->outline_method.len + 4 || memcmp(at.ptr, "\"L", 2) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((at.ptr[2 + i] == '/' ? '.' : at.ptr[2 + i]) != w->outline_class.ptr[i])
			return false;
	return at.ptr[2 + n] == ';' &&
	       memcmp(at.ptr + 3 + n, w->outline_method.ptr, w->outline_method.len) == 0 &&
	       at.ptr[3 + n + w->outline_method.len] == '(';
}

/* {"1": 4, "2": 5}: the value for the line; 0 none. */
static uint32_t position(struct tw_str json, uint32_t line)
{
	struct tw_str list = text_after(json, TW_STR("\"positions\""));
	struct tw_str inside = tw_str_split(&list, '}');

	while (inside.len) {
		struct tw_str pair = tw_str_split(&inside, ',');
		struct tw_str key = text_after(pair, TW_STR("\""));

		if (number_in_front(key) == line && line)
			return number_in_front(text_after(key, TW_STR("\"")));
	}
	return 0;
}

static uint32_t callsite(const struct tw_retrace_walk *w, const struct retrace_member *m)
{
	struct tw_str rest = after_member(w->r, m);
	struct tw_str comment;

	for (unsigned i = 0; i < MAX_COMMENTS && take_comment(&rest, &comment); i++) {
		uint32_t to = is_outline(comment, w) ? position(comment, w->outline_line) : 0;

		if (to)
			return to;
	}
	return 0;
}

/* The line of a frame that called the outline above it: where the outline's code came from. */
static uint32_t line_at_call(const struct tw_retrace_walk *w, const struct tw_retrace_at *at)
{
	struct retrace_class c;
	struct retrace_range range;

	if (!w->outline_line || !tw_retrace_find_class(w->r, at->class_name, &c))
		return at->line;
	range = window(w->r, tw_retrace_find_members(w->r, &c, at->method), at->line);
	for (uint32_t i = range.first; i < range.end; i++) {
		struct retrace_member m = retrace_member_at(w->r, i);
		bool covers = !(m.flags & RETRACE_RANGE) || (at->line >= m.s && at->line <= m.e);
		uint32_t to = covers && (m.flags & RETRACE_CALLSITE) ? callsite(w, &m) : 0;

		if (to)
			return to;
	}
	return at->line;
}

/* Whether the compiler generated every method of this name. */
static bool is_compilers(const struct frames *f, struct tw_str method)
{
	struct retrace_range range = tw_retrace_find_members(f->r, &f->c, method);
	bool all = range.first < range.end;

	range = tw_retrace_clip(range);
	for (uint32_t i = range.first; all && i < range.end; i++) {
		uint32_t flags = retrace_member_at(f->r, i).flags;

		all = (flags & (RETRACE_INLINED | RETRACE_SYNTHESIZED | RETRACE_OUTLINE)) != 0;
	}
	return all;
}

static size_t without_synthesized(struct tw_retraced *f, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!f[i].synthesized)
			f[kept++] = f[i];
	return kept;
}

/* For a known class without a matching member: method and line unchanged. */
static size_t class_only(
        const struct frames *f, const struct tw_retrace_at *at, struct tw_retraced *ret)
{
	const struct retrace_member m = {.name = at->method};

	*ret = tw_retrace_reported(f->r, &f->c, &m);
	ret->line = at->line;
	return 1;
}

size_t tw_retrace_next(struct tw_retrace_walk *w, const struct tw_retrace_at *at,
        struct tw_retraced *ret, size_t cap, bool *ret_known)
{
	struct frames f = {.r = w->r,
	        .thrown = w->thrown,
	        .line = line_at_call(w, at),
	        .list = ret,
	        .cap = cap};

	*ret_known = find_frames(&f, at->class_name, at->method);
	w->thrown = TW_STR("");
	w->outline_line = 0;
	if (f.outline) {
		w->outline_class = at->class_name;
		w->outline_method = at->method;
		w->outline_line = f.line;
	}
	if (f.alternatives == 0 && f.n == 0 && cap && *ret_known && !is_compilers(&f, at->method))
		return class_only(&f, at, ret);
	return without_synthesized(ret, f.n);
}

size_t tw_retrace_select_one(struct tw_retraced *f, size_t n, bool *ret_one)
{
	size_t chain = 0;

	while (chain < n && f[chain].alternative == f[0].alternative)
		chain++;
	*ret_one = n > 0 && n % chain == 0;
	for (size_t i = chain; *ret_one && i < n; i++) {
		const struct tw_retraced *first = &f[i % chain];

		*ret_one = f[i].alternative == f[i - i % chain].alternative &&
		           tw_str_eq(f[i].class_name, first->class_name) &&
		           tw_str_eq(f[i].method, first->method);
	}
	for (size_t i = chain; *ret_one && i < n; i++)
		if (f[i].line != f[i % chain].line)
			f[i % chain].line = 0;
	return *ret_one ? chain : n;
}

/* --- files --- */

struct tw_retrace_file tw_retrace_file(const struct tw_retraced *f, struct tw_str seen)
{
	size_t dot = tw_str_find_last(f->class_name, TW_STR("."));
	struct tw_str rest =
	        dot < f->class_name.len ? tw_str_from(f->class_name, dot + 1) : f->class_name;
	struct tw_str simple = rest;
	struct tw_str outer = tw_str_split(&rest, '$');
	bool kotlin = f->kotlin || tw_str_ends(seen, TW_STR(".kt"));

	if (tw_str_eq(seen, TW_STR("Native Method")) || tw_str_eq(seen, TW_STR("Native method")))
		return (struct tw_retrace_file){seen, TW_STR("")};
	if (f->source.len)
		return (struct tw_retrace_file){f->source, TW_STR("")};
	if (outer.len == 0)
		outer = simple;
	if (outer.len > 2 && tw_str_ends(outer, TW_STR("Kt")) &&
	        (kotlin || tw_str_find(seen, TW_STR(".")) == seen.len))
		return (struct tw_retrace_file){{outer.ptr, outer.len - 2}, TW_STR(".kt")};
	return (struct tw_retrace_file){outer, kotlin ? TW_STR(".kt") : TW_STR(".java")};
}
