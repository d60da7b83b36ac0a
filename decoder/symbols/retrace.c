/*
 * retrace.c - resolves names obfuscated by R8 or ProGuard: classes, and methods without lines, by a
 * retrace image (a compiled mapping). Frames with lines are in retrace_frame.c.
 */
#include "decoder/symbols/retrace.h"

#include <string.h>

#include "decoder/base/order.h"
#include "decoder/symbols/retrace_read.h"

enum { MAX_ALTERNATIVES = 8, CLASS_BYTES = 1024 };

enum tw_status tw_retrace_open(
        const void *data, size_t len, struct tw_retrace *ret, struct tw_err *err)
{
	const uint8_t *p = data;
	uint64_t classes;
	uint64_t members;
	uint64_t sources;

	if (len < RETRACE_HEADER || memcmp(p, retrace_magic, sizeof retrace_magic) != 0)
		return tw_fail_at(err, TW_CORRUPT, 0, "no retrace image");
	classes = (uint64_t)tw_u32le(p + 8) * RETRACE_CLASS;
	members = (uint64_t)tw_u32le(p + 12) * RETRACE_MEMBER;
	sources = (uint64_t)tw_u32le(p + 32) * sizeof(uint32_t);
	if (classes + members + sources > len - RETRACE_HEADER ||
	        tw_u64le(p + 16) != len - RETRACE_HEADER - classes - members - sources)
		return tw_fail_at(err, TW_CORRUPT, 8,
		        "the length of the retrace image does not match its header");
	*ret = (struct tw_retrace){
	        .classes = tw_u32le(p + 8),
	        .members = tw_u32le(p + 12),
	        .class_records = p + RETRACE_HEADER,
	        .member_records = p + RETRACE_HEADER + classes,
	        .sources = tw_u32le(p + 32),
	        .source_records = p + RETRACE_HEADER + classes + members,
	        .text = (const char *)p + RETRACE_HEADER + classes + members + sources,
	        .text_len = (size_t)tw_u64le(p + 16),
	};
	return TW_OK;
}

static struct tw_str obf_class(const struct tw_retrace *r, uint32_t i)
{
	return retrace_piece_at(r, r->class_records + (size_t)i * RETRACE_CLASS);
}

static struct tw_str obf_member(const struct tw_retrace *r, uint32_t i)
{
	return retrace_piece_at(r, r->member_records + (size_t)i * RETRACE_MEMBER);
}

static struct retrace_class class_at(const struct tw_retrace *r, uint32_t i)
{
	const uint8_t *p = r->class_records + (size_t)i * RETRACE_CLASS;
	uint32_t packed = tw_u32le(p + 24);
	struct retrace_class c = {
	        .obf = retrace_piece_at(r, p),
	        .orig = retrace_piece_at(r, p + 8),
	        .source = retrace_piece(r, tw_u32le(p + 28), packed >> 8),
	        .first = tw_u32le(p + 16),
	        .n = tw_u32le(p + 20),
	};

	if (c.first > r->members || c.n > r->members - c.first)
		c.n = 0;
	return c;
}

bool tw_retrace_find_class(const struct tw_retrace *r, struct tw_str obf, struct retrace_class *ret)
{
	uint32_t at;

	TW_BISECT(at, r->classes, tw_str_cmp(obf_class(r, at), obf) < 0);
	if (at == r->classes)
		return false;
	*ret = class_at(r, at);
	return tw_str_eq(ret->obf, obf);
}

/* The first member in the range whose name is not less than obf, or greater with `greater`. */
static uint32_t bound(
        const struct tw_retrace *r, struct retrace_range in, struct tw_str obf, bool greater)
{
	while (in.first < in.end) {
		uint32_t middle = in.first + (in.end - in.first) / 2;
		int c = tw_str_cmp(obf_member(r, middle), obf);

		if (c < 0 || (greater && c == 0))
			in.first = middle + 1;
		else
			in.end = middle;
	}
	return in.first;
}

struct retrace_range tw_retrace_find_members(
        const struct tw_retrace *r, const struct retrace_class *c, struct tw_str obf)
{
	struct retrace_range all = {c->first, c->first + c->n};

	all.first = bound(r, all, obf, false);
	all.end = bound(r, all, obf, true);
	return all;
}

struct retrace_range tw_retrace_clip(struct retrace_range members)
{
	if (members.end - members.first > RETRACE_EXAMINED_MAX)
		members.end = members.first + RETRACE_EXAMINED_MAX;
	return members;
}

bool tw_retrace_class(const struct tw_retrace *r, struct tw_str obf, struct tw_str *ret)
{
	struct retrace_class c;

	if (!tw_retrace_find_class(r, obf, &c))
		return false;
	*ret = c.orig;
	return true;
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

/* The type at the front of a descriptor, as the original's Java name without brackets. */
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

/* Whether `java` is the type with that many brackets. */
static bool same_type(struct tw_str java, struct tw_str type, size_t arrays)
{
	if (java.len != type.len + 2 * arrays || memcmp(java.ptr, type.ptr, type.len) != 0)
		return false;
	for (size_t i = 0; i < arrays; i++)
		if (memcmp(java.ptr + type.len + 2 * i, "[]", 2) != 0)
			return false;
	return true;
}

/* Whether the obfuscated JVM descriptor matches these original arguments and type. */
static bool fits(
        const struct tw_retrace *r, const struct retrace_member *m, struct tw_str descriptor)
{
	struct tw_str args = m->args;
	char buf[CLASS_BYTES];
	struct tw_str type;
	size_t arrays;

	if (descriptor.len == 0 || descriptor.ptr[0] != '(')
		return false;
	descriptor = tw_str_from(descriptor, 1);
	while (descriptor.len && descriptor.ptr[0] != ')') {
		if (args.len == 0 || !take_type(r, &descriptor, buf, &type, &arrays) ||
		        !same_type(tw_str_split(&args, ','), type, arrays))
			return false;
	}
	if (args.len || descriptor.len == 0)
		return false;
	descriptor = tw_str_from(descriptor, 1);
	return descriptor.len == 0 ||
	       (take_type(r, &descriptor, buf, &type, &arrays) && same_type(m->type, type, arrays));
}

/* --- methods --- */

/* The file of the class with this original name; "" unknown. */
static struct tw_str source_of(const struct tw_retrace *r, struct tw_str orig)
{
	uint32_t low = 0;
	uint32_t high = r->sources;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t number = tw_u32le(r->source_records + (size_t)middle * sizeof number);
		struct retrace_class c = {0};
		int order;

		if (number < r->classes)
			c = class_at(r, number);
		order = tw_str_cmp(c.orig, orig);
		if (order == 0)
			return c.source;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return TW_STR("");
}

/* R8 writes this placeholder for classes that it generated. */
static bool is_file(struct tw_str source)
{
	return source.len && !tw_str_eq(source, TW_STR("R8$$SyntheticClass"));
}

struct tw_retraced tw_retrace_reported(
        const struct tw_retrace *r, const struct retrace_class *c, const struct retrace_member *m)
{
	bool moved = m->class_name.len && !tw_str_eq(m->class_name, c->orig);
	struct tw_str source = moved ? source_of(r, m->class_name) : c->source;

	return (struct tw_retraced){
	        .class_name = moved ? m->class_name : c->orig,
	        .method = m->name,
	        .args = m->args,
	        .type = m->type,
	        .source = is_file(source) ? source : TW_STR(""),
	        .kotlin = c->source.len > 3 &&
	                  memcmp(c->source.ptr + c->source.len - 3, ".kt", 3) == 0,
	        .synthesized = (m->flags & (RETRACE_SYNTHESIZED | RETRACE_OUTLINE)) != 0,
	};
}

static bool same_method(const struct tw_retraced *a, const struct tw_retraced *b)
{
	return tw_str_eq(a->class_name, b->class_name) && tw_str_eq(a->method, b->method) &&
	       tw_str_eq(a->args, b->args);
}

size_t tw_retrace_add_different(
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

struct tw_retraced tw_retrace_method_of(const struct tw_retrace *r, const struct retrace_class *c,
        struct retrace_range range, uint32_t i)
{
	struct retrace_member m = retrace_member_at(r, i);
	struct retrace_member inner = m;

	if ((m.flags & RETRACE_SYNTHESIZED) && i > range.first) {
		inner = retrace_member_at(r, i - 1);
		m = inner.flags & RETRACE_INLINED ? inner : m;
	}
	return tw_retrace_reported(r, c, &m);
}

/* How a member is distinguished from others of its name, most reliable first. */
enum criterion { BY_RESIDUAL, BY_TYPES, BY_NAME };

static bool matches(const struct tw_retrace *r, const struct retrace_member *m,
        struct tw_str descriptor, enum criterion how)
{
	if (m->flags & RETRACE_INLINED)
		return false;
	if (how == BY_RESIDUAL)
		return m->residual.len && tw_str_eq(m->residual, descriptor);
	if (how == BY_TYPES)
		return m->residual.len == 0 && fits(r, m, descriptor);
	return true;
}

bool tw_retrace_split(struct tw_str name, struct tw_str *ret_class, struct tw_str *ret_method)
{
	size_t dot = name.len;

	while (dot && name.ptr[dot - 1] != '.')
		dot--;
	if (dot < 2 || dot == name.len)
		return false;
	*ret_class = (struct tw_str){name.ptr, dot - 1};
	*ret_method = tw_str_from(name, dot);
	return true;
}

size_t tw_retrace_method(const struct tw_retrace *r, struct tw_str class_name, struct tw_str method,
        struct tw_str descriptor, struct tw_retraced *ret, size_t cap)
{
	struct retrace_class c;
	struct retrace_range range;
	size_t n = 0;

	if (!tw_retrace_find_class(r, class_name, &c))
		return 0;
	range = tw_retrace_clip(tw_retrace_find_members(r, &c, method));
	for (int how = descriptor.len ? BY_RESIDUAL : BY_NAME; n == 0 && how <= BY_NAME; how++)
		for (uint32_t i = range.first; i < range.end; i++) {
			struct retrace_member m = retrace_member_at(r, i);
			struct tw_retraced one = tw_retrace_method_of(r, &c, range, i);

			if (matches(r, &m, descriptor, (enum criterion)how))
				n = tw_retrace_add_different(ret, n, cap, &one);
		}
	return n;
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

/* Overloads look the same, as arguments are not shown. */
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

/* --- descriptors of originals --- */

/* One type of Java as in a descriptor: "int[]" becomes "[I". */
static size_t put_type(char *out, size_t cap, size_t at, struct tw_str java)
{
	static const char letters[] = "ZBCSIJFDV";

	while (java.len > 2 && memcmp(java.ptr + java.len - 2, "[]", 2) == 0) {
		java.len -= 2;
		at = put(out, cap, at, TW_STR("["));
	}
	for (const char *c = letters; *c; c++)
		if (tw_str_eq(java, primitive(*c)))
			return put(out, cap, at, (struct tw_str){c, 1});
	at = put(out, cap, at, TW_STR("L"));
	for (struct tw_str rest = java; rest.len;) {
		at = put(out, cap, at, tw_str_split(&rest, '.'));
		if (rest.len)
			at = put(out, cap, at, TW_STR("/"));
	}
	return put(out, cap, at, TW_STR(";"));
}

static void put_java(char *out, size_t cap, const struct tw_retraced *m)
{
	struct tw_str args = m->args;
	size_t at = put(out, cap, 0, TW_STR("("));

	while (args.len)
		at = put_type(out, cap, at, tw_str_split(&args, ','));
	at = put(out, cap, at, TW_STR(")"));
	(void)put_type(out, cap, at, m->type);
}

/* The descriptor with the original names of its classes. */
static void put_obfuscated(
        const struct tw_retrace *r, struct tw_str descriptor, char *out, size_t cap)
{
	char buf[CLASS_BYTES];
	size_t at = 0;

	while (descriptor.len) {
		struct tw_str type;
		size_t arrays;

		if (descriptor.ptr[0] == '(' || descriptor.ptr[0] == ')') {
			at = put(out, cap, at, (struct tw_str){descriptor.ptr, 1});
			descriptor = tw_str_from(descriptor, 1);
			continue;
		}
		if (!take_type(r, &descriptor, buf, &type, &arrays))
			break;
		for (; arrays; arrays--)
			at = put(out, cap, at, TW_STR("["));
		at = put_type(out, cap, at, type);
	}
}

void tw_retrace_descriptor(const struct tw_retrace *r, struct tw_str class_name,
        struct tw_str method, struct tw_str descriptor, char *out, size_t cap)
{
	struct tw_retraced list[MAX_ALTERNATIVES];
	size_t n = tw_retrace_method(r, class_name, method, descriptor, list, MAX_ALTERNATIVES);

	out[0] = '\0';
	for (size_t i = 1; i < n; i++)
		if (!tw_str_eq(list[i].args, list[0].args) ||
		        !tw_str_eq(list[i].type, list[0].type))
			return;
	if (n && list[0].type.len)
		put_java(out, cap, &list[0]);
	else if (n == 0)
		put_obfuscated(r, descriptor, out, cap);
}
