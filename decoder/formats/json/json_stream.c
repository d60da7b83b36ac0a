#include "decoder/formats/json/json_stream.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/formats/json/json_scan.h"

bool tw_json_stream_init(struct tw_json_stream *s, struct tw_arena *a, struct tw_sink *sink,
        tw_json_value_fn each, void *arg)
{
	*s = (struct tw_json_stream){.sink = sink, .each = each, .arg = arg};
	s->text = tw_arena_alloc(a, TW_JSON_TEXT_BYTES, 1);
	return s->text != NULL;
}

/* --- values --- */

static struct tw_json_open *top(struct tw_json_stream *s)
{
	return s->depth ? &s->open[s->depth - 1] : NULL;
}

/* Returns whether the format reads the values of this container. */
static bool is_read(struct tw_json_stream *s)
{
	return s->depth == 0 || top(s)->tag;
}

static enum tw_status emit(struct tw_json_stream *s, enum tw_json_kind kind, struct tw_str text,
        unsigned *ret_tag, struct tw_err *err)
{
	const struct tw_json_open *in = top(s);
	struct tw_json_value v = {.kind = kind,
	        .in = in ? in->tag : 0,
	        .index = in ? in->index : 0,
	        .text = text,
	        .offset = s->start};
	enum tw_status st;

	if (!is_read(s))
		return TW_OK;
	if (in && in->object)
		v.key = (struct tw_str){s->key, s->long_key ? 0 : s->n_key};
	st = s->each(s->arg, &v, err);
	if (ret_tag)
		*ret_tag = v.tag;
	return st;
}

static void after_value(struct tw_json_stream *s)
{
	if (s->depth)
		top(s)->index++;
	s->part = s->depth ? TW_JSON_AFTER : TW_JSON_COMPLETE;
}

static enum tw_status begin(struct tw_json_stream *s, bool object, struct tw_err *err)
{
	unsigned tag = 0;
	enum tw_status st;

	if (s->depth == TW_JSON_DEPTH) {
		s->part = TW_JSON_DAMAGED;
		return TW_OK;
	}
	st = emit(s, object ? TW_JSON_OBJECT : TW_JSON_ARRAY, (struct tw_str){0}, &tag, err);
	s->open[s->depth++] = (struct tw_json_open){.tag = tag, .object = object};
	s->part = object ? TW_JSON_AT_NAME : TW_JSON_AT_FIRST;
	return st;
}

static enum tw_status end(struct tw_json_stream *s, struct tw_err *err)
{
	enum tw_status st;

	s->n_key = 0; /* the end has no name */
	st = emit(s, TW_JSON_END, (struct tw_str){0}, NULL, err);
	s->depth--;
	after_value(s);
	return st;
}

static enum tw_status end_scalar(
        struct tw_json_stream *s, enum tw_json_kind kind, struct tw_str text, struct tw_err *err)
{
	enum tw_status st = emit(s, kind, text, NULL, err);

	after_value(s);
	return st;
}

/* --- texts --- */

static void add_byte(struct tw_json_stream *s, char c)
{
	if (s->part == TW_JSON_IN_NAME) {
		if (s->n_key < TW_JSON_KEY_BYTES)
			s->key[s->n_key++] = c;
		else
			s->long_key = true;
	} else if (s->n_text < TW_JSON_TEXT_BYTES && is_read(s)) {
		s->text[s->n_text++] = c;
	}
}

/* A character as UTF-8; half a surrogate pair becomes U+FFFD. */
static void add_character(struct tw_json_stream *s, uint32_t c)
{
	if (c >= 0xD800 && c < 0xE000)
		c = 0xFFFD;
	if (c < 0x80) {
		add_byte(s, (char)c);
		return;
	}
	if (c >= 0x10000) {
		add_byte(s, (char)(0xF0 | c >> 18));
		add_byte(s, (char)(0x80 | (c >> 12 & 0x3F)));
	} else if (c >= 0x800) {
		add_byte(s, (char)(0xE0 | c >> 12));
	}
	if (c >= 0x800)
		add_byte(s, (char)(0x80 | (c >> 6 & 0x3F)));
	else
		add_byte(s, (char)(0xC0 | c >> 6));
	add_byte(s, (char)(0x80 | (c & 0x3F)));
}

static void end_high(struct tw_json_stream *s)
{
	if (s->high)
		add_character(s, 0xFFFD);
	s->high = 0;
}

static void add_code(struct tw_json_stream *s, uint32_t c)
{
	if (s->high && c >= 0xDC00 && c < 0xE000) {
		c = 0x10000 + ((s->high - 0xD800) << 10) + (c - 0xDC00);
		s->high = 0;
	}
	end_high(s);
	if (c >= 0xD800 && c < 0xDC00)
		s->high = c;
	else
		add_character(s, c);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The character of an escape of one letter; 0: there is none. */
static char escape_of(char c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/':
		return c;
	case 'b':
		return 8;
	case 'f':
		return 12;
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return 0;
	}
}

static void take_escape(struct tw_json_stream *s, char c)
{
	s->escaped = false;
	if (c == 'u') {
		s->n_code = 4;
		s->code = 0;
	} else if (escape_of(c)) {
		end_high(s);
		add_byte(s, escape_of(c));
	} else {
		s->part = TW_JSON_DAMAGED;
	}
}

static void take_digit(struct tw_json_stream *s, char c)
{
	int digit = hex_digit(c);

	if (digit < 0) {
		s->part = TW_JSON_DAMAGED;
		return;
	}
	s->code = s->code << 4 | (uint32_t)digit;
	if (--s->n_code == 0)
		add_code(s, s->code);
}

/* A byte within quotes. */
static enum tw_status take_text(struct tw_json_stream *s, char c, struct tw_err *err)
{
	if (s->n_code) {
		take_digit(s, c);
	} else if (s->escaped) {
		take_escape(s, c);
	} else if (c == '\\') {
		s->escaped = true;
	} else if (c == '"') {
		end_high(s);
		if (s->part == TW_JSON_IN_NAME) {
			s->part = TW_JSON_AT_COLON;
			return TW_OK;
		}
		return end_scalar(s, TW_JSON_STRING, (struct tw_str){s->text, s->n_text}, err);
	} else if ((unsigned char)c < 0x20) {
		s->part = TW_JSON_DAMAGED;
	} else {
		end_high(s);
		add_byte(s, c);
	}
	return TW_OK;
}

/* --- structure --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool in_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static bool in_word(char c)
{
	return c >= 'a' && c <= 'z';
}

static enum tw_status take_value(struct tw_json_stream *s, char c, struct tw_err *err)
{
	s->start = s->offset;
	s->n_text = 0;
	if (c == '{' || c == '[')
		return begin(s, c == '{', err);
	if (c == ']' && s->part == TW_JSON_AT_FIRST)
		return end(s, err);
	if (c == '"') {
		s->part = TW_JSON_IN_TEXT;
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		s->part = TW_JSON_IN_NUMBER;
		add_byte(s, c);
	} else if (in_word(c)) {
		s->part = TW_JSON_IN_WORD;
		add_byte(s, c);
	} else {
		s->part = TW_JSON_DAMAGED;
	}
	return TW_OK;
}

static enum tw_status take_name(struct tw_json_stream *s, char c, struct tw_err *err)
{
	if (c == '}' && s->part == TW_JSON_AT_NAME)
		return end(s, err);
	s->n_key = 0;
	s->long_key = false;
	s->part = c == '"' ? TW_JSON_IN_NAME : TW_JSON_DAMAGED;
	return TW_OK;
}

static enum tw_status take_after(struct tw_json_stream *s, char c, struct tw_err *err)
{
	const struct tw_json_open *in = top(s);
	bool object = in && in->object;

	if (c == (object ? '}' : ']'))
		return end(s, err);
	if (c != ',')
		s->part = TW_JSON_DAMAGED;
	else
		s->part = object ? TW_JSON_AT_NEXT_NAME : TW_JSON_AT_VALUE;
	return TW_OK;
}

static enum tw_status end_bare(struct tw_json_stream *s, struct tw_err *err)
{
	return end_scalar(s, s->part == TW_JSON_IN_NUMBER ? TW_JSON_NUMBER : TW_JSON_OTHER,
	        (struct tw_str){s->text, s->n_text}, err);
}

static enum tw_status take(struct tw_json_stream *s, char c, struct tw_err *err)
{
	bool bare = s->part == TW_JSON_IN_NUMBER || s->part == TW_JSON_IN_WORD;

	if (bare && (s->part == TW_JSON_IN_NUMBER ? in_number(c) : in_word(c))) {
		add_byte(s, c);
		return TW_OK;
	}
	if (bare) {
		enum tw_status st = end_bare(s, err);

		if (st != TW_OK)
			return st;
	}
	if (s->part == TW_JSON_IN_TEXT || s->part == TW_JSON_IN_NAME)
		return take_text(s, c, err);
	if (is_blank(c))
		return TW_OK;
	switch (s->part) {
	case TW_JSON_AT_VALUE:
	case TW_JSON_AT_FIRST:
		return take_value(s, c, err);
	case TW_JSON_AT_NAME:
	case TW_JSON_AT_NEXT_NAME:
		return take_name(s, c, err);
	case TW_JSON_AT_COLON:
		s->part = c == ':' ? TW_JSON_AT_VALUE : TW_JSON_DAMAGED;
		return TW_OK;
	case TW_JSON_AFTER:
		return take_after(s, c, err);
	case TW_JSON_COMPLETE:
		if (!s->trailing)
			s->sink->ops->repair(s->sink, TW_REPAIR_trailing_data, s->offset, 1);
		s->trailing = true;
		return TW_OK;
	case TW_JSON_IN_TEXT:
	case TW_JSON_IN_NAME:
	case TW_JSON_IN_NUMBER:
	case TW_JSON_IN_WORD:
	case TW_JSON_DAMAGED:
		break;
	}
	return TW_OK;
}

/* --- tokens that are complete in the pushed bytes --- */

/* Number of bytes of a text before the next quote, backslash or control character. */
static size_t plain_run(const uint8_t *p, size_t n)
{
	size_t i = 0;

	for (; n - i >= 8; i += 8) {
		uint64_t ends = tw_json_text_ends(tw_u64le(p + i));

		if (ends)
			return i + (size_t)__builtin_ctzll(ends) / 8;
	}
	while (i < n && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20)
		i++;
	return i;
}

/* Continues a text that began in an earlier push. */
static size_t continue_text(struct tw_json_stream *s, const uint8_t *p, size_t n)
{
	size_t space = TW_JSON_TEXT_BYTES - s->n_text;
	size_t run;

	if (s->escaped || s->n_code || s->high)
		return 0;
	run = plain_run(p, n);
	if (is_read(s)) {
		memcpy(s->text + s->n_text, p, run < space ? run : space);
		s->n_text += run < space ? run : space;
	}
	return run;
}

/* Emits a view of a complete number or a string without escapes. */
static enum tw_status read_scalar(
        struct tw_json_stream *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	bool string = *p == '"';
	size_t len = 0;

	if (string) {
		len = plain_run(p + 1, n - 1);
		if (len + 1 == n || p[1 + len] != '"')
			return TW_OK;
	} else if (*p == '-' || (*p >= '0' && *p <= '9')) {
		while (len < n && in_number((char)p[len]))
			len++;
		if (len == n)
			return TW_OK;
	} else {
		return TW_OK;
	}
	if (len > TW_JSON_TEXT_BYTES)
		return TW_OK;
	*ret_used = len + (string ? 2 : 0);
	s->start = s->offset;
	return end_scalar(s, string ? TW_JSON_STRING : TW_JSON_NUMBER,
	        (struct tw_str){(const char *)p + string, len}, err);
}

/* A name without escapes, and its colon if that follows. */
static size_t read_name(struct tw_json_stream *s, const uint8_t *p, size_t n)
{
	size_t len;

	if (*p != '"')
		return 0;
	len = plain_run(p + 1, n - 1);
	if (len + 1 == n || p[1 + len] != '"')
		return 0;
	s->long_key = len > TW_JSON_KEY_BYTES;
	s->n_key = s->long_key ? TW_JSON_KEY_BYTES : len;
	memcpy(s->key, p + 1, s->n_key);
	len += 2;
	s->part = len < n && p[len] == ':' ? TW_JSON_AT_VALUE : TW_JSON_AT_COLON;
	return len + (s->part == TW_JSON_AT_VALUE);
}

/* *ret_used is 0 if the next byte must go through the state machine. */
static enum tw_status read_token(
        struct tw_json_stream *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	*ret_used = 0;
	if (s->part == TW_JSON_IN_TEXT)
		*ret_used = continue_text(s, p, n);
	else if (s->part == TW_JSON_AT_VALUE || s->part == TW_JSON_AT_FIRST)
		return read_scalar(s, p, n, ret_used, err);
	else if (s->part == TW_JSON_AT_NAME || s->part == TW_JSON_AT_NEXT_NAME)
		*ret_used = read_name(s, p, n);
	return TW_OK;
}

enum tw_status tw_json_stream_push(
        struct tw_json_stream *s, const uint8_t *p, size_t n, struct tw_err *err)
{
	static const uint8_t bom[] = {0xEF, 0xBB, 0xBF}; /* the byte order mark */
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n && s->part != TW_JSON_DAMAGED;) {
		size_t used;

		st = read_token(s, p + i, n - i, &used, err);
		if (st == TW_OK && used == 0) {
			used = 1;
			if (s->depth || s->part != TW_JSON_AT_VALUE || s->offset >= sizeof bom ||
			        p[i] != bom[s->offset])
				st = take(s, (char)p[i], err);
			if (s->part == TW_JSON_DAMAGED)
				s->sink->ops->repair(
				        s->sink, TW_REPAIR_input_corrupt, s->offset, 1);
		}
		s->offset += used;
		i += used;
	}
	return st;
}

enum tw_status tw_json_stream_finish(struct tw_json_stream *s, bool cut, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool damaged = s->part == TW_JSON_DAMAGED;

	if (s->depth == 0 && s->part == TW_JSON_IN_NUMBER)
		st = end_bare(s, err);
	if (s->depth && !damaged && !cut)
		s->sink->ops->repair(s->sink, TW_REPAIR_input_truncated, s->offset, 1);
	s->start = s->offset;
	while (st == TW_OK && s->depth)
		st = end(s, err);
	return st;
}

unsigned tw_json_tag(
        const struct tw_json_container *containers, size_t n, const struct tw_json_value *v)
{
	for (size_t i = 0; i < n; i++)
		if (v->in == containers[i].in && v->kind == containers[i].kind &&
		        tw_str_eq(v->key, tw_str_of(containers[i].key)))
			return containers[i].tag;
	return 0;
}

/* A decimal number of at most 15 digits is an integer divided by a power of ten, both exact, so
 * that the result is rounded once, as by strtod. */
static bool exact_decimal(struct tw_str text, double *ret)
{
	enum { MAX_DIGITS = 15 };
	static const double powers[MAX_DIGITS + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8,
	        1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	bool negative = text.len && text.ptr[0] == '-';
	size_t i = negative;
	size_t point = text.len; /* its position */
	int64_t v = 0;

	if (text.len - i > MAX_DIGITS || i == text.len)
		return false;
	for (; i < text.len; i++) {
		if (text.ptr[i] == '.' && point == text.len && i > negative)
			point = i;
		else if (text.ptr[i] >= '0' && text.ptr[i] <= '9')
			v = v * 10 + (text.ptr[i] - '0');
		else
			return false;
	}
	if (point + 1 == text.len)
		return false;
	*ret = point < text.len ? (double)v / powers[text.len - point - 1] : (double)v;
	if (negative)
		*ret = -*ret;
	return true;
}

bool tw_json_real(const struct tw_json_value *v, double *ret)
{
	char buf[64];
	char *rest;

	if (v->kind != TW_JSON_NUMBER || v->text.len >= sizeof buf)
		return false;
	if (exact_decimal(v->text, ret))
		return true;
	memcpy(buf, v->text.ptr, v->text.len);
	buf[v->text.len] = '\0';
	*ret = strtod(buf, &rest);
	return *rest == '\0' && *ret > -1e300 && *ret < 1e300;
}
