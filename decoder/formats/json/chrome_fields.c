#include "decoder/formats/json/chrome_event.h"

#include <string.h>

enum { MAX_NESTED = 32, MAX_DIGITS = 18, MAX_NAME = 8 };

/* A decimal number below this, divided by an exact power of ten, is rounded once, as by strtod. */
#define REAL_DIGITS INT64_C(1000000000000000)

static const struct tw_str names[TW_CHROME_FIELDS] = {[TW_CHROME_S] = {"s", 1},
        [TW_CHROME_PH] = {"ph", 2},
        [TW_CHROME_TS] = {"ts", 2},
        [TW_CHROME_ID] = {"id", 2},
        [TW_CHROME_CAT] = {"cat", 3},
        [TW_CHROME_DUR] = {"dur", 3},
        [TW_CHROME_TTS] = {"tts", 3},
        [TW_CHROME_PID] = {"pid", 3},
        [TW_CHROME_TID] = {"tid", 3},
        [TW_CHROME_NAME] = {"name", 4},
        [TW_CHROME_TDUR] = {"tdur", 4},
        [TW_CHROME_BIND_ID] = {"bind_id", 7},
        [TW_CHROME_FLOW_IN] = {"flow_in", 7},
        [TW_CHROME_FLOW_OUT] = {"flow_out", 8}};

/* The first field whose name has at least this length. */
static const uint8_t first_of[MAX_NAME + 2] = {TW_CHROME_S, TW_CHROME_S, TW_CHROME_PH,
        TW_CHROME_CAT, TW_CHROME_NAME, TW_CHROME_BIND_ID, TW_CHROME_BIND_ID, TW_CHROME_BIND_ID,
        TW_CHROME_FLOW_OUT, TW_CHROME_FIELDS};

struct reader {
	const char *at, *end;
};

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end &&
	        (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
		r->at++;
}

static bool take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* After its opening quote. */
static bool read_text(struct reader *r, struct tw_str *ret)
{
	const char *p = r->at;

	while (p < r->end && *p != '"' && *p != '\\' && (unsigned char)*p >= ' ')
		p++;
	if (p == r->end || *p != '"')
		return false;
	*ret = (struct tw_str){r->at, (size_t)(p - r->at)};
	r->at = p + 1;
	return true;
}

/* Appends digits to *v, of which all may have n at most. */
static bool read_digits(struct reader *r, int64_t *v, unsigned *n)
{
	const char *begin = r->at;

	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		if (++*n > MAX_DIGITS)
			return false;
		*v = *v * 10 + (*r->at - '0');
	}
	return r->at > begin;
}

static bool read_number(struct reader *r, struct tw_chrome_value *ret)
{
	static const double powers[MAX_DIGITS + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8,
	        1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
	bool negative = take(r, '-');
	const char *begin = r->at;
	int64_t v = 0;
	unsigned n = 0;
	unsigned whole;

	if (!read_digits(r, &v, &n) || (*begin == '0' && n > 1))
		return false;
	whole = n;
	if (!take(r, '.')) {
		*ret = (struct tw_chrome_value){
		        .kind = TW_CHROME_INTEGER, .integer = negative ? -v : v};
		return true;
	}
	if (!read_digits(r, &v, &n) || v >= REAL_DIGITS)
		return false;
	*ret = (struct tw_chrome_value){
	        .kind = TW_CHROME_REAL, .real = (double)v / powers[n - whole]};
	if (negative)
		ret->real = -ret->real;
	return true;
}

static bool read_word(struct reader *r, struct tw_str word)
{
	if ((size_t)(r->end - r->at) < word.len || memcmp(r->at, word.ptr, word.len) != 0)
		return false;
	r->at += word.len;
	return true;
}

static bool read_scalar(struct reader *r, struct tw_chrome_value *ret)
{
	struct tw_str text;

	if (r->at == r->end)
		return false;
	*ret = (struct tw_chrome_value){.kind = TW_CHROME_OTHER};
	switch (*r->at) {
	case '"':
		r->at++;
		if (!read_text(r, &text))
			return false;
		*ret = (struct tw_chrome_value){
		        .kind = TW_CHROME_TEXT, .len = (uint32_t)text.len, .text = text.ptr};
		return true;
	case 't':
		ret->kind = TW_CHROME_TRUE;
		return read_word(r, TW_STR("true"));
	case 'f':
		return read_word(r, TW_STR("false"));
	case 'n':
		return read_word(r, TW_STR("null"));
	default:
		return read_number(r, ret);
	}
}

static bool read_key(struct reader *r, struct tw_str *ret)
{
	skip_blanks(r);
	if (!take(r, '"') || !read_text(r, ret))
		return false;
	skip_blanks(r);
	if (!take(r, ':'))
		return false;
	skip_blanks(r);
	return true;
}

/* After the opening bracket: whether it closes at once. */
static bool is_empty(struct reader *r, char close)
{
	skip_blanks(r);
	return take(r, close);
}

/* The value of a member that is not used.  Its brackets are in `open`. */
static bool skip_nested(struct reader *r)
{
	char open[MAX_NESTED];
	unsigned depth = 0;
	struct tw_chrome_value v;
	struct tw_str key;

	do {
		bool begins = r->at < r->end && (*r->at == '{' || *r->at == '[');

		if (begins && depth == MAX_NESTED)
			return false;
		if (begins) {
			open[depth++] = *r->at++ == '{' ? '}' : ']';
			if (!is_empty(r, open[depth - 1])) {
				if (open[depth - 1] == '}' && !read_key(r, &key))
					return false;
				continue;
			}
			depth--;
		} else if (!read_scalar(r, &v)) {
			return false;
		}
		for (skip_blanks(r); depth && take(r, open[depth - 1]); skip_blanks(r))
			depth--;
		if (depth == 0)
			return true;
		if (!take(r, ','))
			return false;
		skip_blanks(r);
		if (open[depth - 1] == '}' && !read_key(r, &key))
			return false;
	} while (true);
}

/* TW_CHROME_FIELDS: none of them. */
static unsigned field_of(struct tw_str key)
{
	unsigned end = key.len <= MAX_NAME ? first_of[key.len + 1] : 0;

	for (unsigned i = key.len <= MAX_NAME ? first_of[key.len] : 0; i < end; i++)
		if (memcmp(names[i].ptr, key.ptr, key.len) == 0)
			return i;
	return TW_CHROME_FIELDS;
}

bool tw_chrome_fields_read(struct tw_str text, struct tw_chrome_fields *ret)
{
	struct reader r = {text.ptr, text.ptr + text.len};
	struct tw_str key;

	*ret = (struct tw_chrome_fields){0};
	if (!take(&r, '{'))
		return false;
	if (is_empty(&r, '}'))
		return r.at == r.end;
	do {
		struct tw_chrome_value v = {.kind = TW_CHROME_OTHER};
		unsigned field;

		if (!read_key(&r, &key) || r.at == r.end)
			return false;
		if (!(*r.at == '{' || *r.at == '[' ? skip_nested(&r) : read_scalar(&r, &v)))
			return false;
		field = field_of(key);
		if (field < TW_CHROME_FIELDS) /* of several, the last counts */
			ret->of[field] = v;
		skip_blanks(&r);
	} while (take(&r, ','));
	return take(&r, '}') && r.at == r.end;
}

struct tw_chrome_value tw_chrome_value_of(const json_t *v)
{
	struct tw_chrome_value ret = {.kind = v ? TW_CHROME_OTHER : TW_CHROME_ABSENT};

	if (json_is_integer(v)) {
		ret.kind = TW_CHROME_INTEGER;
		ret.integer = json_integer_value(v);
	} else if (json_is_real(v)) {
		ret.kind = TW_CHROME_REAL;
		ret.real = json_real_value(v);
	} else if (json_is_string(v)) {
		ret.kind = TW_CHROME_TEXT;
		ret.len = (uint32_t)json_string_length(v);
		ret.text = json_string_value(v);
	} else if (json_is_true(v)) {
		ret.kind = TW_CHROME_TRUE;
	}
	return ret;
}

void tw_chrome_fields_of(const json_t *root, struct tw_chrome_fields *ret)
{
	for (unsigned i = 0; i < TW_CHROME_FIELDS; i++)
		ret->of[i] = tw_chrome_value_of(json_object_get(root, names[i].ptr));
}

bool tw_chrome_i64(const struct tw_chrome_value *v, int64_t *ret)
{
	const double most = 9.2e18;

	if (v->kind == TW_CHROME_TEXT)
		return tw_str_i64((struct tw_str){v->text, v->len}, ret);
	if (v->kind == TW_CHROME_REAL) {
		if (!(v->real >= -most && v->real <= most))
			return false;
		*ret = (int64_t)v->real;
		return true;
	}
	*ret = v->integer;
	return v->kind == TW_CHROME_INTEGER;
}
