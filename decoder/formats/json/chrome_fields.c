#include "decoder/formats/json/chrome_event.h"

#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/formats/json/json_scan.h"

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

/* Their names as numbers, as in word_of. */
#define WORD2(a, b)       ((uint64_t)(b) << 8 | (a))
#define WORD3(a, b, c)    (WORD2(a, b) | (uint64_t)(c) << 16)
#define WORD4(a, b, c, d) (WORD2(a, b) | WORD2(c, d) << 16)
static const uint64_t field_keys[TW_CHROME_FIELDS] = {[TW_CHROME_S] = 's',
        [TW_CHROME_PH] = WORD2('p', 'h'),
        [TW_CHROME_TS] = WORD2('t', 's'),
        [TW_CHROME_ID] = WORD2('i', 'd'),
        [TW_CHROME_CAT] = WORD3('c', 'a', 't'),
        [TW_CHROME_DUR] = WORD3('d', 'u', 'r'),
        [TW_CHROME_TTS] = WORD3('t', 't', 's'),
        [TW_CHROME_PID] = WORD3('p', 'i', 'd'),
        [TW_CHROME_TID] = WORD3('t', 'i', 'd'),
        [TW_CHROME_NAME] = WORD4('n', 'a', 'm', 'e'),
        [TW_CHROME_TDUR] = WORD4('t', 'd', 'u', 'r'),
        [TW_CHROME_BIND_ID] = WORD4('b', 'i', 'n', 'd') | (uint64_t)WORD3('_', 'i', 'd') << 32,
        [TW_CHROME_FLOW_IN] = WORD4('f', 'l', 'o', 'w') | (uint64_t)WORD3('_', 'i', 'n') << 32,
        [TW_CHROME_FLOW_OUT] = WORD4('f', 'l', 'o', 'w') | (uint64_t)WORD4('_', 'o', 'u', 't')
                                                                   << 32};

/* The first field whose name has at least this length. */
static const uint8_t first_of[MAX_NAME + 2] = {TW_CHROME_S, TW_CHROME_S, TW_CHROME_PH,
        TW_CHROME_CAT, TW_CHROME_NAME, TW_CHROME_BIND_ID, TW_CHROME_BIND_ID, TW_CHROME_BIND_ID,
        TW_CHROME_FLOW_OUT, TW_CHROME_FIELDS};

/* Inlined into the loop over members, which keeps the reader in registers. */
#define ALWAYS static inline __attribute__((always_inline))

struct reader {
	const char *at, *end;
	uint64_t high; /* bytes of the texts so far, or-ed: whether all are ASCII */
};

ALWAYS void skip_blanks(struct reader *r)
{
	while (r->at < r->end &&
	        (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
		r->at++;
}

ALWAYS bool take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* The first quote, backslash or control character of a text, or its end. */
ALWAYS const char *end_of_plain(struct reader *r)
{
	const char *p = r->at;

	for (; r->end - p >= 8; p += 8) {
		uint64_t w = tw_u64le((const uint8_t *)p);
		uint64_t ends = tw_json_text_ends(w);

		if (ends) {
			r->high |= w & ((ends & -ends) - 1);
			return p + __builtin_ctzll(ends) / 8;
		}
		r->high |= w;
	}
	for (; p < r->end && *p != '"' && *p != '\\' && (unsigned char)*p >= ' '; p++)
		r->high |= (unsigned char)*p;
	return p;
}

/* After its opening quote. */
ALWAYS bool read_text(struct reader *r, struct tw_str *ret)
{
	const char *p = end_of_plain(r);

	if (p == r->end || *p != '"')
		return false;
	*ret = (struct tw_str){r->at, (size_t)(p - r->at)};
	r->at = p + 1;
	return true;
}

/* The value of up to eight digits: one per byte, 0 to 9, the last digit in the highest byte. */
static uint64_t value_of(uint64_t digits)
{
	const uint64_t pair = UINT64_C(0x000000FF000000FF);

	digits = digits * 10 + (digits >> 8);
	return ((digits & pair) * UINT64_C(0x000F424000000064) +
	               (digits >> 16 & pair) * UINT64_C(0x0000271000000001)) >>
	       32;
}

/* Appends digits to *v, of which all may have n at most. */
ALWAYS bool read_digits(struct reader *r, int64_t *v, unsigned *n)
{
	static const int64_t powers[] = {
	        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
	const char *begin = r->at;
	unsigned k = 8;

	while (k == 8 && r->end - r->at >= 8) {
		uint64_t w = tw_u64le((const uint8_t *)r->at) ^ TW_EACH('0');
		uint64_t others = ((w & TW_EACH(0x7F)) + TW_EACH(0x76)) | w;

		others &= TW_EACH(0x80);
		k = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
		*n += k;
		if (*n > MAX_DIGITS)
			return false;
		if (k)
			*v = *v * powers[k] + (int64_t)value_of(w << (64 - 8 * k));
		r->at += k;
	}
	for (; k == 8 && r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		if (++*n > MAX_DIGITS)
			return false;
		*v = *v * 10 + (*r->at - '0');
	}
	return r->at > begin;
}

ALWAYS bool read_number(struct reader *r, struct tw_chrome_value *ret)
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

ALWAYS bool read_word(struct reader *r, struct tw_str word)
{
	if ((size_t)(r->end - r->at) < word.len || memcmp(r->at, word.ptr, word.len) != 0)
		return false;
	r->at += word.len;
	return true;
}

ALWAYS bool read_scalar(struct reader *r, struct tw_chrome_value *ret)
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

/* The first bytes of a text as a number, the first lowest. */
static uint64_t word_of(const char *p, size_t len)
{
	uint64_t w = 0;

	while (len)
		w = w << 8 | (unsigned char)p[--len];
	return w;
}

/* TW_CHROME_FIELDS: none of them. */
static unsigned field_of(const struct reader *r, struct tw_str key)
{
	uint64_t word;

	if (key.len == 0 || key.len > MAX_NAME)
		return TW_CHROME_FIELDS;
	word = r->end - key.ptr < 8
	               ? word_of(key.ptr, key.len)
	               : tw_u64le((const uint8_t *)key.ptr) & UINT64_MAX >> (64 - 8 * key.len);
	for (unsigned i = first_of[key.len]; i < first_of[key.len + 1]; i++)
		if (field_keys[i] == word)
			return i;
	return TW_CHROME_FIELDS;
}

static bool is_utf8(const char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = tw_utf8_len(p + i, n - i);

		if (len == 0)
			return false;
		i += len;
	}
	return true;
}

ALWAYS bool is_at(const struct reader *r, const struct tw_chrome_key *key)
{
	const uint8_t *p = (const uint8_t *)r->at;

	return key->len && ((tw_u64le(p) ^ key->low) & key->low_mask) == 0 &&
	       ((tw_u64le(p + 8) ^ key->high) & key->high_mask) == 0;
}

/* Returns the cached key at this position or the next (a member may be missing), otherwise NULL. */
ALWAYS const struct tw_chrome_key *cached_key(
        const struct reader *r, const struct tw_chrome_key_cache *cache, unsigned next)
{
	const struct tw_chrome_key *key = &cache->keys[next];

	if (next >= TW_CHROME_CACHED_KEYS || r->end - r->at <= TW_CHROME_KEY_BYTES)
		return NULL;
	if (is_at(r, key))
		return key;
	return next + 1 < TW_CHROME_CACHED_KEYS && is_at(r, key + 1) ? key + 1 : NULL;
}

/* From its quote to its value. */
static void cache_key(
        struct tw_chrome_key_cache *cache, unsigned next, struct tw_str text, unsigned field)
{
	struct tw_chrome_key key = {.len = (uint8_t)text.len, .field = (uint8_t)field};
	size_t len = text.len;

	if (next >= TW_CHROME_CACHED_KEYS || len > TW_CHROME_KEY_BYTES)
		return;
	key.low_mask = len < 8 ? UINT64_MAX >> (64 - 8 * len) : UINT64_MAX;
	key.high_mask = len <= 8 ? 0 : UINT64_MAX >> (128 - 8 * len);
	key.low = word_of(text.ptr, len < 8 ? len : 8);
	key.high = len <= 8 ? 0 : word_of(text.ptr + 8, len - 8);
	if (((key.low | key.high) & TW_EACH(0x80)) == 0)
		cache->keys[next] = key;
}

/* Reads an uncached key, up to the first byte of its value.  Here and in skip_value, `at` is NULL
 * in the result if the object is not plain. */
static struct reader read_new_key(
        struct reader r, struct tw_chrome_key_cache *cache, unsigned next, unsigned *ret_field)
{
	const char *begin = r.at;
	struct tw_str key;

	if (!read_key(&r, &key) || r.at == r.end) {
		r.at = NULL;
		return r;
	}
	*ret_field = field_of(&r, key);
	cache_key(cache, next, (struct tw_str){begin, (size_t)(r.at - begin)}, *ret_field);
	return r;
}

static struct reader skip_value(struct reader r)
{
	if (!skip_nested(&r))
		r.at = NULL;
	return r;
}

static struct reader read_members(
        struct reader r, struct tw_chrome_key_cache *cache, struct tw_chrome_fields *ret)
{
	const struct reader none = {0};
	struct tw_chrome_value ignored;
	unsigned next = 0;

	if (!take(&r, '{'))
		return none;
	skip_blanks(&r);
	if (take(&r, '}'))
		return r;
	do {
		const struct tw_chrome_key *known;
		struct tw_chrome_value *to = &ignored;
		unsigned field = TW_CHROME_FIELDS;

		skip_blanks(&r);
		known = cached_key(&r, cache, next);
		if (known) {
			r.at += known->len;
			next = (unsigned)(known - cache->keys) + 1;
			field = known->field;
		} else {
			r = read_new_key(r, cache, next++, &field);
			if (!r.at)
				return none;
		}
		if (field < TW_CHROME_FIELDS) /* of several, the last counts */
			to = &ret->of[field];
		if (*r.at != '{' && *r.at != '[') {
			if (!read_scalar(&r, to))
				return none;
		} else {
			r = skip_value(r);
			if (!r.at)
				return none;
			*to = (struct tw_chrome_value){.kind = TW_CHROME_OTHER};
		}
		skip_blanks(&r);
	} while (take(&r, ','));
	return take(&r, '}') ? r : none;
}

size_t tw_chrome_fields_read(
        struct tw_str text, struct tw_chrome_key_cache *cache, struct tw_chrome_fields *ret)
{
	struct reader r = {text.ptr, text.ptr + text.len, 0};
	size_t n;

	*ret = (struct tw_chrome_fields){0};
	r = read_members(r, cache, ret);
	if (!r.at)
		return 0;
	n = (size_t)(r.at - text.ptr);
	return r.high & TW_EACH(0x80) && !is_utf8(text.ptr, n) ? 0 : n;
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
