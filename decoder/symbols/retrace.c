/*
 * retrace.c - look-ups in a retrace image.  Nothing in it is trusted: every
 * offset is checked where it is used.
 */
#include "symbols/retrace.h"

#include <string.h>

#include "symbols/retrace_image.h"

enum { MAX_ALTERNATIVES = 8, CLASS_BYTES = 1024, MAX_LINES = 16 };

struct member {
	struct tw_str obf, name, class_name, args, type, residual;
	uint32_t s, e, os, oe;
	uint32_t flags;
};

struct class_record {
	struct tw_str obf, orig;
	uint32_t first, n;
	uint32_t flags;
};

enum tw_status tw_retrace_open(
        const void *data, size_t len, struct tw_retrace *ret, struct tw_err *err)
{
	const uint8_t *p = data;
	uint64_t classes;
	uint64_t members;

	if (len < RETRACE_HEADER || memcmp(p, retrace_magic, sizeof retrace_magic) != 0)
		return tw_fail(err, TW_CORRUPT, 0, "no retrace image");
	classes = (uint64_t)tw_u32le(p + 8) * RETRACE_CLASS;
	members = (uint64_t)tw_u32le(p + 12) * RETRACE_MEMBER;
	if (classes + members > len - RETRACE_HEADER ||
	        tw_u64le(p + 16) != len - RETRACE_HEADER - classes - members)
		return tw_fail(
		        err, TW_CORRUPT, 8, "a retrace image of another length than it says");
	*ret = (struct tw_retrace){
	        .data = p,
	        .len = len,
	        .classes = tw_u32le(p + 8),
	        .members = tw_u32le(p + 12),
	        .class_records = p + RETRACE_HEADER,
	        .member_records = p + RETRACE_HEADER + classes,
	        .text = (const char *)p + RETRACE_HEADER + classes + members,
	        .text_len = (size_t)tw_u64le(p + 16),
	};
	return TW_OK;
}

static struct tw_str piece(const struct tw_retrace *r, uint32_t at, uint32_t len)
{
	if (at > r->text_len || len > r->text_len - at)
		return TW_STR("");
	return (struct tw_str){r->text + at, len};
}

static struct tw_str piece_at(const struct tw_retrace *r, const uint8_t *p)
{
	return piece(r, tw_u32le(p), tw_u32le(p + 4));
}

static struct class_record class_at(const struct tw_retrace *r, uint32_t i)
{
	const uint8_t *p = r->class_records + (size_t)i * RETRACE_CLASS;
	struct class_record c = {
	        .obf = piece_at(r, p),
	        .orig = piece_at(r, p + 8),
	        .first = tw_u32le(p + 16),
	        .n = tw_u32le(p + 20),
	        .flags = tw_u32le(p + 24),
	};

	if (c.first > r->members || c.n > r->members - c.first)
		c.n = 0;
	return c;
}

static struct member member_at(const struct tw_retrace *r, uint32_t i)
{
	const uint8_t *p = r->member_records + (size_t)i * RETRACE_MEMBER;

	return (struct member){
	        .obf = piece_at(r, p),
	        .name = piece_at(r, p + 8),
	        .class_name = piece_at(r, p + 16),
	        .args = piece_at(r, p + 24),
	        .type = piece_at(r, p + 32),
	        .s = tw_u32le(p + 40),
	        .e = tw_u32le(p + 44),
	        .os = tw_u32le(p + 48),
	        .oe = tw_u32le(p + 52),
	        .residual = piece(r, tw_u32le(p + 56), tw_u32le(p + 60) & 0xFFFFFF),
	        .flags = tw_u32le(p + 60) >> 24,
	};
}

static bool find_class(const struct tw_retrace *r, struct tw_str obf, struct class_record *ret)
{
	uint32_t low = 0;
	uint32_t high = r->classes;

	while (low < high) { /* the first that is not less */
		uint32_t middle = low + (high - low) / 2;

		if (tw_str_cmp(class_at(r, middle).obf, obf) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == r->classes)
		return false;
	*ret = class_at(r, low);
	return tw_str_eq(ret->obf, obf);
}

bool tw_retrace_class(const struct tw_retrace *r, struct tw_str obf, struct tw_str *ret)
{
	struct class_record c;

	if (!find_class(r, obf, &c))
		return false;
	*ret = c.orig;
	return true;
}

/* The members of a class with this obfuscated name: [*ret_first, *ret_end). */
static void find_members(const struct tw_retrace *r, const struct class_record *c,
        struct tw_str obf, uint32_t *ret_first, uint32_t *ret_end)
{
	uint32_t low = c->first;
	uint32_t high = c->first + c->n;
	uint32_t end = high;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tw_str_cmp(member_at(r, middle).obf, obf) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_first = low;
	while (low < end && tw_str_eq(member_at(r, low).obf, obf))
		low++;
	*ret_end = low;
}

/* --- descriptors --- */

static struct tw_str primitive(char c)
{
	switch (c) {
	case 'Z':
		return TW_STR("boolean");
	case 'B':
		return TW_STR("byte");
	case 'C':
		return TW_STR("char");
	case 'S':
		return TW_STR("short");
	case 'I':
		return TW_STR("int");
	case 'J':
		return TW_STR("long");
	case 'F':
		return TW_STR("float");
	case 'D':
		return TW_STR("double");
	case 'V':
		return TW_STR("void");
	default:
		return TW_STR("");
	}
}

/* The type at the front of a descriptor, as the original's Java name without its brackets. */
static bool take_type(const struct tw_retrace *r, struct tw_str *d, char buf[CLASS_BYTES],
        struct tw_str *ret, size_t *ret_arrays)
{
	struct tw_str name;

	for (*ret_arrays = 0; d->len && d->ptr[0] == '['; ++*ret_arrays)
		*d = (struct tw_str){d->ptr + 1, d->len - 1};
	if (d->len == 0)
		return false;
	if (d->ptr[0] != 'L') {
		*ret = primitive(d->ptr[0]);
		*d = (struct tw_str){d->ptr + 1, d->len - 1};
		return ret->len > 0;
	}
	*d = (struct tw_str){d->ptr + 1, d->len - 1};
	name = tw_str_split(d, ';');
	if (name.len == 0 || name.len > CLASS_BYTES)
		return false;
	for (size_t i = 0; i < name.len; i++)
		buf[i] = (char)(name.ptr[i] == '/' ? '.' : name.ptr[i]);
	*ret = (struct tw_str){buf, name.len};
	(void)tw_retrace_class(r, *ret, ret);
	return true;
}

/* Is `java` the type with so many brackets? */
static bool same_type(struct tw_str java, struct tw_str type, size_t arrays)
{
	if (java.len != type.len + 2 * arrays || memcmp(java.ptr, type.ptr, type.len) != 0)
		return false;
	for (size_t i = 0; i < arrays; i++)
		if (memcmp(java.ptr + type.len + 2 * i, "[]", 2) != 0)
			return false;
	return true;
}

/* Does the obfuscated JVM descriptor say these original arguments and this type? */
static bool fits(const struct tw_retrace *r, const struct member *m, struct tw_str descriptor)
{
	struct tw_str args = m->args;
	char buf[CLASS_BYTES];
	struct tw_str type;
	size_t arrays;

	if (descriptor.len == 0 || descriptor.ptr[0] != '(')
		return false;
	descriptor = (struct tw_str){descriptor.ptr + 1, descriptor.len - 1};
	while (descriptor.len && descriptor.ptr[0] != ')') {
		if (args.len == 0 || !take_type(r, &descriptor, buf, &type, &arrays) ||
		        !same_type(tw_str_split(&args, ','), type, arrays))
			return false;
	}
	if (args.len || descriptor.len == 0)
		return false;
	descriptor = (struct tw_str){descriptor.ptr + 1, descriptor.len - 1};
	return descriptor.len == 0 ||
	       (take_type(r, &descriptor, buf, &type, &arrays) && same_type(m->type, type, arrays));
}

/* --- methods --- */

static struct tw_retraced retraced(const struct class_record *c, const struct member *m)
{
	return (struct tw_retraced){
	        .class_name = m->class_name.len ? m->class_name : c->orig,
	        .method = m->name,
	        .args = m->args,
	        .synthesized = ((m->flags | c->flags) & RETRACE_SYNTHESIZED) != 0,
	};
}

static bool same_method(const struct tw_retraced *a, const struct tw_retraced *b)
{
	return tw_str_eq(a->class_name, b->class_name) && tw_str_eq(a->method, b->method) &&
	       tw_str_eq(a->args, b->args);
}

static size_t add_different(
        struct tw_retraced *list, size_t n, size_t cap, const struct tw_retraced *one)
{
	for (size_t i = 0; i < n; i++)
		if (same_method(&list[i], one))
			return n;
	if (n == cap)
		return n;
	list[n] = *one;
	list[n].alternative = (uint32_t)n;
	return n + 1;
}

/* How a member is told from others of its name, the best way first. */
enum telling { BY_RESIDUAL, BY_TYPES, BY_NAME };

static bool told(const struct tw_retrace *r, const struct member *m, struct tw_str descriptor,
        enum telling how)
{
	if (m->flags & RETRACE_INLINED)
		return false;
	if (how == BY_RESIDUAL)
		return m->residual.len && tw_str_eq(m->residual, descriptor);
	if (how == BY_TYPES)
		return m->residual.len == 0 && fits(r, m, descriptor);
	return true;
}

size_t tw_retrace_method(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        struct tw_str descriptor, struct tw_retraced *ret, size_t cap)
{
	struct class_record c;
	uint32_t first;
	uint32_t end;
	size_t n = 0;

	if (!find_class(r, class_name, &c))
		return 0;
	find_members(r, &c, method, &first, &end);
	for (int how = descriptor.len ? BY_RESIDUAL : BY_NAME; n == 0 && how <= BY_NAME; how++)
		for (uint32_t i = first; i < end; i++) {
			struct member m = member_at(r, i);
			struct tw_retraced one = retraced(&c, &m);

			if (told(r, &m, descriptor, (enum telling)how))
				n = add_different(ret, n, cap, &one);
		}
	return n;
}

/* --- frames with lines --- */

struct frames {
	struct tw_retraced *list;
	size_t n, cap;
};

static void add_frame(struct frames *f, const struct class_record *c, const struct member *m,
        uint32_t line, uint32_t alternative)
{
	if (f->n == f->cap)
		return;
	f->list[f->n] = retraced(c, m);
	f->list[f->n].line = line;
	f->list[f->n++].alternative = alternative;
}

static bool any_range(const struct tw_retrace *r, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (member_at(r, i).e > 0)
			return true;
	return false;
}

static uint32_t original_line(const struct member *m, uint32_t line)
{
	if (m->oe == 0 || m->oe == m->os)
		return m->os;
	return m->os + (line - m->s);
}

/* Members whose range covers the line; those of one range that follow each other were inlined. */
static void frames_in_range(const struct tw_retrace *r, const struct class_record *c,
        const uint32_t range[2], uint32_t line, struct frames *f)
{
	uint32_t alternative = 0;
	bool inlined = false;

	for (uint32_t i = range[0]; i < range[1]; i++) {
		struct member m = member_at(r, i);

		if (m.e == 0 || line < m.s || line > m.e)
			continue;
		if (f->n && !inlined)
			alternative++;
		add_frame(f, c, &m, original_line(&m, line), alternative);
		inlined = (m.flags & RETRACE_INLINED) != 0;
	}
}

/* Only members without a range: each is an alternative, and each line of a known span. */
static void frames_without_range(const struct tw_retrace *r, const struct class_record *c,
        const uint32_t range[2], uint32_t line, struct frames *f)
{
	for (uint32_t i = range[0]; i < range[1]; i++) {
		struct member m = member_at(r, i);
		uint32_t last = m.oe > m.os && m.oe - m.os < MAX_LINES ? m.oe : m.os;

		if (m.os == 0 && m.oe == 0)
			add_frame(f, c, &m, (m.flags & RETRACE_RANGE) ? 0 : line, (uint32_t)f->n);
		for (uint32_t at = m.os; at && at <= last; at++)
			add_frame(f, c, &m, at, (uint32_t)f->n);
	}
}

static bool is_base(const struct member *m)
{
	return m->e == 0;
}

/* `0:0:` members are one inline group; their lines are known when each has a single one. */
static void frames_of_zero_range(const struct tw_retrace *r, const struct class_record *c,
        const uint32_t range[2], struct frames *f)
{
	bool single = true;

	for (uint32_t i = range[0]; i < range[1]; i++) {
		struct member m = member_at(r, i);

		if (is_base(&m) && (m.flags & RETRACE_RANGE))
			single = single && m.os == m.oe;
	}
	for (uint32_t i = range[0]; i < range[1]; i++) {
		struct member m = member_at(r, i);

		if (is_base(&m) && (m.flags & RETRACE_RANGE))
			add_frame(f, c, &m, single ? m.os : 0, 0);
	}
}

static bool has_zero_range(const struct tw_retrace *r, const uint32_t range[2])
{
	for (uint32_t i = range[0]; i < range[1]; i++) {
		struct member m = member_at(r, i);

		if (is_base(&m) && (m.flags & RETRACE_RANGE))
			return true;
	}
	return false;
}

/* The first run of members with one range, when it is longer than one, is what was inlined. */
static void frames_of_first_group(const struct tw_retrace *r, const struct class_record *c,
        const uint32_t range[2], struct frames *f)
{
	for (uint32_t i = range[0]; i < range[1]; i++) {
		struct member m = member_at(r, i);

		add_frame(f, c, &m, m.os == m.oe ? m.os : 0, 0);
		if (!(m.flags & RETRACE_INLINED))
			return;
	}
}

static size_t frame_without_line(const struct tw_retrace *r, const struct class_record *c,
        const uint32_t range[2], struct frames *f)
{
	struct tw_retraced one;
	struct member m = member_at(r, range[0]);
	bool ranged = any_range(r, range[0], range[1]);

	if (has_zero_range(r, range)) {
		frames_of_zero_range(r, c, range, f);
		return f->n;
	}
	if (ranged && (m.flags & RETRACE_INLINED)) {
		frames_of_first_group(r, c, range, f);
		return f->n;
	}
	for (uint32_t i = range[0]; i < range[1]; i++) {
		m = member_at(r, i);
		if (ranged && !is_base(&m) && (m.flags & RETRACE_INLINED))
			continue;
		one = retraced(c, &m);
		one.args = TW_STR("");
		one.line = range[1] - range[0] == 1 && !(m.flags & RETRACE_RANGE) ? m.os : 0;
		f->n = add_different(f->list, f->n, f->cap, &one);
	}
	return f->n;
}

size_t tw_retrace_frame(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        uint32_t line, struct tw_retraced *ret, size_t cap)
{
	struct frames f = {ret, 0, cap};
	struct class_record c;
	uint32_t range[2];

	if (!find_class(r, class_name, &c))
		return 0;
	find_members(r, &c, method, &range[0], &range[1]);
	if (range[0] == range[1])
		return 0;
	if (line == 0)
		return frame_without_line(r, &c, range, &f);
	if (any_range(r, range[0], range[1]))
		frames_in_range(r, &c, range, line, &f);
	else
		frames_without_range(r, &c, range, line, &f);
	return f.n;
}

/* --- display --- */

static size_t put(char *out, size_t cap, size_t at, struct tw_str s)
{
	return at + tw_utf8_clean(out + at, cap - at, s);
}

static size_t put_method(
        char *out, size_t cap, size_t at, struct tw_str class_name, struct tw_str method)
{
	at = put(out, cap, at, class_name);
	if (class_name.len)
		at = put(out, cap, at, TW_STR("."));
	return put(out, cap, at, method);
}

/* Overloads look the same without their arguments. */
static bool shown_before(const struct tw_retraced *list, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (tw_str_eq(list[k].class_name, list[i].class_name) &&
		        tw_str_eq(list[k].method, list[i].method))
			return true;
	return false;
}

bool tw_retrace_display(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        struct tw_str descriptor, char *out, size_t cap)
{
	struct tw_retraced list[MAX_ALTERNATIVES];
	size_t n = tw_retrace_method(r, class_name, method, descriptor, list, MAX_ALTERNATIVES);
	struct tw_str orig;
	size_t at = 0;

	if (n == 0) {
		bool known = tw_retrace_class(r, class_name, &orig);

		(void)put_method(out, cap, 0, known ? orig : class_name, method);
		return known;
	}
	for (size_t i = 0; i < n; i++) {
		if (shown_before(list, i))
			continue;
		if (at)
			at = put(out, cap, at, TW_STR(" | "));
		at = put_method(out, cap, at, list[i].class_name, list[i].method);
	}
	return true;
}
