#include "decoder/formats/json/json_stream.h"

#include <stdlib.h>
#include <string.h>

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

static enum tw_status emit(
        struct tw_json_stream *s, enum tw_json_kind kind, unsigned *ret_tag, struct tw_err *err)
{
	const struct tw_json_open *in = top(s);
	struct tw_json_value v = {.kind = kind,
	        .in = in ? in->tag : 0,
	        .index = in ? in->index : 0,
	        .offset = s->start};
	enum tw_status st;

	if (!is_read(s))
		return TW_OK;
	if (in && in->object)
		v.key = (struct tw_str){s->key, s->long_key ? 0 : s->n_key};
	if (kind >= TW_JSON_STRING)
		v.text = (struct tw_str){s->text, s->n_text};
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
	st = emit(s, object ? TW_JSON_OBJECT : TW_JSON_ARRAY, &tag, err);
	s->open[s->depth++] = (struct tw_json_open){.tag = tag, .object = object};
	s->part = object ? TW_JSON_AT_NAME : TW_JSON_AT_FIRST;
	return st;
}

static enum tw_status end(struct tw_json_stream *s, struct tw_err *err)
{
	enum tw_status st;

	s->n_key = 0; /* the end has no name of its own */
	st = emit(s, TW_JSON_END, NULL, err);
	s->depth--;
	after_value(s);
	return st;
}

static enum tw_status end_scalar(
        struct tw_json_stream *s, enum tw_json_kind kind, struct tw_err *err)
{
	enum tw_status st = emit(s, kind, NULL, err);

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
		return end_scalar(s, TW_JSON_STRING, err);
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
	return end_scalar(s, s->part == TW_JSON_IN_NUMBER ? TW_JSON_NUMBER : TW_JSON_OTHER, err);
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

/* Number of bytes of a text before the next special one. */
static size_t plain(const struct tw_json_stream *s, const uint8_t *p, size_t n)
{
	size_t i = 0;

	if (s->part != TW_JSON_IN_TEXT || s->escaped || s->n_code || s->high)
		return 0;
	while (i < n && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20)
		i++;
	return i;
}

enum tw_status tw_json_stream_push(
        struct tw_json_stream *s, const uint8_t *p, size_t n, struct tw_err *err)
{
	static const uint8_t mark[] = {0xEF, 0xBB, 0xBF}; /* a byte order mark */
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n;) {
		size_t run = plain(s, p + i, n - i);

		if (s->part == TW_JSON_DAMAGED)
			break;
		if (run) {
			size_t space = TW_JSON_TEXT_BYTES - s->n_text;
			size_t kept = is_read(s) ? (run < space ? run : space) : 0;

			memcpy(s->text + s->n_text, p + i, kept);
			s->n_text += kept;
			s->offset += run;
			i += run;
			continue;
		}
		if (s->offset < sizeof mark && p[i] == mark[s->offset] && s->depth == 0) {
			s->offset++;
			i++;
			continue;
		}
		st = take(s, (char)p[i], err);
		if (s->part == TW_JSON_DAMAGED)
			s->sink->ops->repair(s->sink, TW_REPAIR_input_corrupt, s->offset, 1);
		s->offset++;
		i++;
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

unsigned tw_json_tag(const struct tw_json_place *places, size_t n, const struct tw_json_value *v)
{
	for (size_t i = 0; i < n; i++)
		if (v->in == places[i].in && v->kind == places[i].kind &&
		        tw_str_eq(v->key, tw_str_of(places[i].key)))
			return places[i].tag;
	return 0;
}

bool tw_json_real(const struct tw_json_value *v, double *ret)
{
	char buf[64];
	char *rest;

	if (v->kind != TW_JSON_NUMBER || v->text.len >= sizeof buf)
		return false;
	memcpy(buf, v->text.ptr, v->text.len);
	buf[v->text.len] = '\0';
	*ret = strtod(buf, &rest);
	return *rest == '\0' && *ret > -1e300 && *ret < 1e300;
}
