/*
 * retrace_write.c - converts mapping text to an image.
 *
 * The complete text is kept, and the image ends with it: records are offsets, so a mapping of a
 * hundred thousand members is compiled in one pass and a sort.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/symbols/map_text.h"
#include "decoder/symbols/retrace.h"
#include "decoder/symbols/retrace_image.h"

/* Compilers write no longer lines, and none with a NUL, but binaries contain them. */
enum { MAX_LINE = 64 << 10 };

struct slice { /* of the text */
	uint32_t at, len;
};

struct class_line {
	struct slice obf, orig, source;
	uint32_t first, n; /* members, in file order until sorted */
	uint32_t seq;
	uint32_t flags;
};

struct member_line {
	struct slice obf, name, class_name, args, type, residual;
	uint32_t s, e, os, oe;
	uint32_t flags, seq;
};

struct tw_retrace_writer {
	struct tw_buf text;
	struct class_line *classes;
	struct member_line *members;
	uint32_t n_classes, cap_classes, n_members, cap_members;
	bool last_is_member; /* the element to which a JSON comment belongs */
	bool failed;         /* memory ran out */
	struct tw_retrace_stats stats;
};

struct tw_retrace_writer *tw_retrace_writer_new(uint64_t max_bytes)
{
	struct tw_retrace_writer *w = tw_mem_zalloc(1, sizeof *w);

	if (!w)
		return NULL;
	tw_buf_init(&w->text, max_bytes < UINT32_MAX ? (size_t)max_bytes : UINT32_MAX);
	w->stats.first_malformed = TW_NO_OFFSET;
	return w;
}

struct tw_retrace_writer *tw_retrace_writer_free(struct tw_retrace_writer *w)
{
	if (!w)
		return NULL;
	tw_buf_done(&w->text);
	tw_mem_free(w->classes);
	tw_mem_free(w->members);
	tw_mem_free(w);
	return NULL;
}

enum tw_status tw_retrace_writer_push(
        struct tw_retrace_writer *w, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = tw_buf_add(&w->text, p, n);

	if (st == TW_TOO_LARGE)
		return tw_fail_at(err, st, w->text.max, "the mapping is longer than %llu bytes",
		        (unsigned long long)w->text.max);
	return st == TW_OK ? TW_OK : tw_fail(err, st, "no memory for a mapping");
}

/* --- lines --- */

static struct slice slice_of(const struct tw_retrace_writer *w, struct tw_str s)
{
	return (struct slice){
	        s.len ? (uint32_t)((const uint8_t *)s.ptr - w->text.data) : 0, (uint32_t)s.len};
}

/* Splits at the first `what`; false if there is none. */
static bool cut_at(
        struct tw_str s, struct tw_str what, struct tw_str *ret_before, struct tw_str *ret_after)
{
	for (size_t i = 0; i + what.len <= s.len; i++)
		if (memcmp(s.ptr + i, what.ptr, what.len) == 0) {
			*ret_before = (struct tw_str){s.ptr, i};
			*ret_after = (struct tw_str){s.ptr + i + what.len, s.len - i - what.len};
			return true;
		}
	return false;
}

static bool take_number(struct tw_str *s, uint32_t *ret)
{
	size_t digits = 0;
	uint64_t v = 0;

	while (digits < s->len && s->ptr[digits] >= '0' && s->ptr[digits] <= '9')
		digits++;
	if (!tw_str_u64((struct tw_str){s->ptr, digits}, UINT32_MAX, &v))
		return false;
	*ret = (uint32_t)v;
	s->ptr += digits;
	s->len -= digits;
	return true;
}

static bool take_colon(struct tw_str *s)
{
	if (s->len == 0 || s->ptr[0] != ':')
		return false;
	s->ptr++;
	s->len--;
	return true;
}

static void order(uint32_t *a, uint32_t *b)
{
	if (*a > *b) {
		uint32_t swap = *a;

		*a = *b;
		*b = swap;
	}
}

/* `[s:e:]` */
static bool take_range(struct tw_str *s, struct member_line *m)
{
	struct tw_str rest = *s;

	if (!take_number(&rest, &m->s))
		return true;
	if (!take_colon(&rest) || !take_number(&rest, &m->e) || !take_colon(&rest))
		return false;
	order(&m->s, &m->e);
	m->flags |= RETRACE_RANGE;
	*s = rest;
	return true;
}

/* `[:os[:oe]]`; without it the lines are unchanged. */
static bool take_original_lines(struct tw_str s, struct member_line *m)
{
	if (s.len == 0) {
		m->os = m->s;
		m->oe = m->e;
		return true;
	}
	if (!take_colon(&s) || !take_number(&s, &m->os))
		return false;
	m->flags |= RETRACE_LINES;
	m->oe = m->os;
	if (s.len && (!take_colon(&s) || !take_number(&s, &m->oe)))
		return false;
	order(&m->os, &m->oe);
	return s.len == 0;
}

static void split_name(struct tw_str full, struct tw_str *ret_class, struct tw_str *ret_name)
{
	size_t dot = full.len;

	while (dot > 0 && full.ptr[dot - 1] != '.')
		dot--;
	*ret_name = tw_str_from(full, dot);
	*ret_class = (struct tw_str){full.ptr, dot ? dot - 1 : 0};
}

/* A member line without leading blanks.  *ret_field: a field, which is ignored. */
static bool parse_member(const struct tw_retrace_writer *w, struct tw_str line,
        struct member_line *ret, bool *ret_field)
{
	struct tw_str left;
	struct tw_str obf;
	struct tw_str type;
	struct tw_str full;
	struct tw_str args;
	struct tw_str lines;
	struct tw_str name;
	struct tw_str class_name;

	*ret = (struct member_line){0};
	if (!cut_at(line, TW_STR(" -> "), &left, &obf) || obf.len == 0 || !take_range(&left, ret))
		return false;
	if (!cut_at(left, TW_STR(" "), &type, &left) || type.len == 0)
		return false;
	*ret_field = !cut_at(left, TW_STR("("), &full, &args);
	if (*ret_field)
		return left.len > 0;
	if (!cut_at(args, TW_STR(")"), &args, &lines) || !take_original_lines(lines, ret))
		return false;
	split_name(full, &class_name, &name);
	ret->obf = slice_of(w, obf);
	ret->name = slice_of(w, name);
	ret->class_name = slice_of(w, class_name);
	ret->args = slice_of(w, args);
	ret->type = slice_of(w, type);
	return name.len > 0;
}

static void malformed(struct tw_retrace_writer *w, struct tw_str line)
{
	if (w->stats.malformed++ == 0)
		w->stats.first_malformed = (uint64_t)((const uint8_t *)line.ptr - w->text.data);
}

static void take_class(struct tw_retrace_writer *w, struct tw_str line)
{
	struct tw_str orig;
	struct tw_str obf;

	if (!cut_at(line, TW_STR(" -> "), &orig, &obf) || orig.len == 0 || obf.len < 2 ||
	        obf.ptr[obf.len - 1] != ':') {
		malformed(w, line);
		return;
	}
	if (!TW_GROW_MEM(w->classes, w->n_classes, w->cap_classes)) {
		w->failed = true;
		return;
	}
	obf.len--;
	w->classes[w->n_classes] = (struct class_line){.obf = slice_of(w, obf),
	        .orig = slice_of(w, orig),
	        .first = w->n_members,
	        .seq = w->n_classes};
	w->n_classes++;
	w->last_is_member = false;
}

static void take_member(struct tw_retrace_writer *w, struct tw_str line)
{
	struct class_line *c = w->n_classes ? &w->classes[w->n_classes - 1] : NULL;
	struct member_line m;
	bool field = false;

	if (!c || !parse_member(w, line, &m, &field)) {
		malformed(w, line);
		return;
	}
	w->last_is_member = !field;
	if (field)
		return;
	if (!TW_GROW_MEM(w->members, w->n_members, w->cap_members)) {
		w->failed = true;
		return;
	}
	m.seq = c->n++;
	w->members[w->n_members++] = m;
}

/* --- comments --- */

/* The string within the line, if it needs no unescaping. */
static struct slice unescaped_string(
        const struct tw_retrace_writer *w, struct tw_str line, const char *value)
{
	struct tw_str what = tw_str_of(value ? value : "");
	struct tw_str before;
	struct tw_str after;

	if (what.len == 0 || !cut_at(line, what, &before, &after))
		return (struct slice){0};
	return slice_of(w, (struct tw_str){before.ptr + before.len, what.len});
}

static void set_flag_of(uint32_t *flags, struct tw_str id)
{
	if (tw_str_eq(id, TW_STR("com.android.tools.r8.synthesized")))
		*flags |= RETRACE_SYNTHESIZED;
	if (tw_str_eq(id, TW_STR("com.android.tools.r8.outline")))
		*flags |= RETRACE_OUTLINE;
	if (tw_str_eq(id, TW_STR("com.android.tools.r8.outlineCallsite")))
		*flags |= RETRACE_CALLSITE;
	if (tw_str_eq(id, TW_STR("com.android.tools.r8.rewriteFrame")))
		*flags |= RETRACE_REWRITE;
}

/* A comment applies to the class or method above it. */
static void take_json(struct tw_retrace_writer *w, struct tw_str line)
{
	struct class_line *c = w->n_classes ? &w->classes[w->n_classes - 1] : NULL;
	struct member_line *m =
	        w->last_is_member && w->n_members ? &w->members[w->n_members - 1] : NULL;
	json_t *o = json_loadb(line.ptr, line.len, 0, NULL);
	const char *id = json_string_value(json_object_get(o, "id"));
	const char *signature = json_string_value(json_object_get(o, "signature"));
	const char *file = json_string_value(json_object_get(o, "fileName"));
	struct tw_str what = tw_str_of(id ? id : "");

	if (m)
		set_flag_of(&m->flags, what);
	else if (c)
		set_flag_of(&c->flags, what);
	if (m && tw_str_eq(what, TW_STR("com.android.tools.r8.residualsignature")))
		m->residual = unescaped_string(w, line, signature);
	if (c && tw_str_eq(what, TW_STR("sourceFile")))
		c->source = unescaped_string(w, line, file);
	json_decref(o);
}

static void take_comment(struct tw_retrace_writer *w, struct tw_str text)
{
	struct tw_str key;
	struct tw_str value;

	text = tw_str_trim(text);
	if (text.len && text.ptr[0] == '{') {
		take_json(w, text);
	} else if (cut_at(text, TW_STR(":"), &key, &value) && tw_str_eq(key, TW_STR("pg_map_id"))) {
		(void)tw_utf8_clean(w->stats.id, sizeof w->stats.id, tw_str_trim(value));
	}
}

static void take_line(struct tw_retrace_writer *w, struct tw_str line)
{
	struct tw_str text = tw_str_trim(line);

	if (text.len == 0)
		return;
	if (text.len > MAX_LINE || memchr(text.ptr, 0, text.len))
		malformed(w, text);
	else if (text.ptr[0] == '#')
		take_comment(w, tw_str_from(text, 1));
	else if (text.ptr == line.ptr)
		take_class(w, text);
	else
		take_member(w, text);
}

/* --- image --- */

static int compare(const uint8_t *text, struct slice a, struct slice b)
{
	return tw_str_cmp((struct tw_str){(const char *)text + a.at, a.len},
	        (struct tw_str){(const char *)text + b.at, b.len});
}

/* If a class occurs twice, the last wins. */
static int by_obf_class(const void *pa, const void *pb, void *text)
{
	const struct class_line *a = pa;
	const struct class_line *b = pb;
	int c = compare(text, a->obf, b->obf);

	return c ? c : a->seq > b->seq ? -1 : a->seq < b->seq;
}

static int by_obf_member(const void *pa, const void *pb, void *text)
{
	const struct member_line *a = pa;
	const struct member_line *b = pb;
	int c = compare(text, a->obf, b->obf);

	return c ? c : a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Consecutive members of one name with one range: each was inlined into the next. */
static void note_inlining(struct tw_retrace_writer *w, const struct class_line *c)
{
	for (uint32_t i = 1; i < c->n; i++) {
		struct member_line *before = &w->members[c->first + i - 1];
		const struct member_line *m = &w->members[c->first + i];

		if ((before->flags & m->flags & RETRACE_RANGE) && before->s == m->s &&
		        before->e == m->e && compare(w->text.data, before->obf, m->obf) == 0)
			before->flags |= RETRACE_INLINED;
	}
}

static void put_slice(struct tw_buf *out, struct slice s)
{
	(void)tw_buf_add_u32le(out, s.at);
	(void)tw_buf_add_u32le(out, s.len);
}

static void put_member(struct tw_buf *out, const struct member_line *m)
{
	const uint32_t most = (1u << 24) - 1;

	put_slice(out, m->obf);
	put_slice(out, m->name);
	put_slice(out, m->class_name);
	put_slice(out, m->args);
	put_slice(out, m->type);
	(void)tw_buf_add_u32le(out, m->s);
	(void)tw_buf_add_u32le(out, m->e);
	(void)tw_buf_add_u32le(out, m->os);
	(void)tw_buf_add_u32le(out, m->oe);
	(void)tw_buf_add_u32le(out, m->residual.at);
	(void)tw_buf_add_u32le(
	        out, (m->residual.len < most ? m->residual.len : 0) | m->flags << 24);
}

static int by_original_class(const void *pa, const void *pb, void *writer)
{
	const struct tw_retrace_writer *w = writer;
	uint32_t a = tw_u32le(pa);
	uint32_t b = tw_u32le(pb);
	int c = compare(w->text.data, w->classes[a].orig, w->classes[b].orig);

	return c ? c : a < b ? -1 : a > b;
}

static uint32_t put_sources(struct tw_retrace_writer *w, struct tw_buf *out)
{
	size_t first = out->len;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_classes; i++)
		if (w->classes[i].source.len) {
			(void)tw_buf_add_u32le(out, i);
			n++;
		}
	if (n && tw_buf_status(out) == TW_OK)
		qsort_r(out->data + first, n, sizeof n, by_original_class, w);
	return n;
}

static void write_image(struct tw_retrace_writer *w, struct tw_buf *out)
{
	static const uint8_t zero[28];
	struct tw_buf sources;
	uint32_t n_sources;

	(void)tw_buf_add(out, retrace_magic, sizeof retrace_magic);
	(void)tw_buf_add_u32le(out, w->n_classes);
	(void)tw_buf_add_u32le(out, w->n_members);
	(void)tw_buf_add_u64le(out, w->text.len);
	(void)tw_buf_add_u64le(out, w->stats.malformed);
	tw_buf_init(&sources, SIZE_MAX / 2);
	n_sources = put_sources(w, &sources);
	(void)tw_buf_add_u32le(out, n_sources);
	(void)tw_buf_add(out, zero, sizeof zero);
	for (uint32_t i = 0; i < w->n_classes; i++) {
		const struct class_line *c = &w->classes[i];

		put_slice(out, c->obf);
		put_slice(out, c->orig);
		(void)tw_buf_add_u32le(out, c->first);
		(void)tw_buf_add_u32le(out, c->n);
		(void)tw_buf_add_u32le(
		        out, c->flags | (c->source.len <= MAX_LINE ? c->source.len << 8 : 0));
		(void)tw_buf_add_u32le(out, c->source.at);
	}
	for (uint32_t i = 0; i < w->n_members; i++)
		put_member(out, &w->members[i]);
	w->failed = w->failed || tw_buf_status(&sources) != TW_OK;
	(void)tw_buf_add(out, sources.data, sources.len);
	tw_buf_done(&sources);
	(void)tw_buf_add(out, w->text.data, w->text.len);
}

static void parse(struct tw_retrace_writer *w)
{
	struct tw_str rest = {(const char *)w->text.data, w->text.len};

	if (rest.len >= 3 && memcmp(rest.ptr, "\xEF\xBB\xBF", 3) == 0)
		rest = tw_str_from(rest, 3);
	while (rest.len && !w->failed)
		take_line(w, tw_str_split(&rest, '\n'));
	w->stats.classes = w->n_classes;
	w->stats.methods = w->n_members;
}

static const char *guess(const struct tw_retrace_writer *w)
{
	struct tw_str rest = {(const char *)w->text.data, w->text.len};

	if (rest.len && memchr(rest.ptr, 0, rest.len))
		return "it is a binary file";
	if (tw_str_trim(rest).len == 0)
		return "it is empty";
	return tw_map_text_of(rest) == TW_MAP_TEXT_METHODS
	               ? tw_map_text_belongs(TW_MAP_TEXT_METHODS)
	               : "is this R8's or ProGuard's mapping.txt?";
}

enum tw_status tw_retrace_writer_finish(struct tw_retrace_writer *w, struct tw_buf *out,
        struct tw_retrace_stats *ret, struct tw_err *err)
{
	parse(w);
	if (w->failed)
		return tw_oom(err);
	if (w->n_classes == 0 || w->n_members == 0)
		return tw_fail_at(err, TW_CORRUPT,
		        w->stats.first_malformed == TW_NO_OFFSET ? 0 : w->stats.first_malformed,
		        "no class with a method (`a.B -> c:`, `    void m() -> d`) is in it: %s",
		        guess(w));
	for (uint32_t i = 0; i < w->n_classes; i++) {
		const struct class_line *c = &w->classes[i];

		if (c->n)
			qsort_r(w->members + c->first, c->n, sizeof *w->members, by_obf_member,
			        w->text.data);
		note_inlining(w, c);
	}
	qsort_r(w->classes, w->n_classes, sizeof *w->classes, by_obf_class, w->text.data);
	write_image(w, out);
	if (w->failed)
		return tw_oom(err);
	if (tw_buf_status(out) != TW_OK)
		return tw_fail(err, tw_buf_status(out), "the mapping's image is too large");
	*ret = w->stats;
	return TW_OK;
}
