#include "decoder/formats/json/json_text.h"

#include <string.h>

#include "decoder/base/list.h"

enum {
	FIRST_BYTES = 64 << 10,
	DEPTH = 2048, /* jansson's limit */
	TRIES = 8,
	LONG_STRING = 4096, /* not a name: part of it is useful */
	UNICODE_ESCAPE = 6,
	/* how much of a document is scanned first, until it ends or breaks */
	FIRST_SCAN = 256,
	SCAN_FACTOR = 8,
	TOKEN_MAX = 16 /* a truncated word, escape or character */
};

void tw_json_text_init(
        struct tw_json_text *t, struct tw_arena *a, struct tw_sink *sink, const char *what)
{
	*t = (struct tw_json_text){.arena = a, .sink = sink, .what = what};
}

enum tw_status tw_json_text_push(
        struct tw_json_text *t, const uint8_t *p, size_t n, struct tw_err *err)
{
	if (n > TW_JSON_MAX_BYTES - t->len)
		return tw_fail_at(err, TW_TOO_LARGE, TW_JSON_MAX_BYTES,
		        "a %s of more than %zu bytes", t->what, (size_t)TW_JSON_MAX_BYTES);
	/* with space to close open brackets */
	if (!TW_RESERVE_FROM(
	            FIRST_BYTES, t->arena, t->data, t->len, t->len + n + DEPTH + 1, t->cap))
		return tw_fail(err, TW_NOMEM, "no memory for a %s", t->what);
	memcpy(t->data + t->len, p, n);
	t->len += n;
	return TW_OK;
}

/* --- complete text --- */

static void make_utf8(struct tw_json_text *t)
{
	for (size_t i = 0; i < t->len;) {
		size_t n =
		        (unsigned char)t->data[i] < 0x80 ? 1 : tw_utf8_len(t->data + i, t->len - i);

		if (n == 0) {
			t->sink->ops->repair(t->sink, TW_REPAIR_text_not_utf8, i, 1);
			t->data[i] = '?';
			n = 1;
		}
		i += n;
	}
	t->clean = true;
}

struct tw_json_scan { /* state of brackets, outside strings */
	size_t values;
	size_t safe;   /* the text up to here, with `depth` brackets closed, is valid */
	size_t string; /* start of the last one */
	unsigned depth, safe_depth;
	bool in_string, escaped, too_deep, closed;
	char open[DEPTH]; /* the closing bracket of each */
};

static void scan_byte(struct tw_json_scan *s, char c, size_t at)
{
	if (s->in_string) {
		s->in_string = s->escaped || c != '"';
		s->escaped = !s->escaped && c == '\\';
		return;
	}
	if (c == '"') {
		s->in_string = true;
		s->string = at;
	} else if (c == '{' || c == '[') {
		s->values++;
		if (s->depth == DEPTH) {
			s->too_deep = true;
			return;
		}
		s->open[s->depth++] = c == '{' ? '}' : ']';
		s->safe = at + 1;
		s->safe_depth = s->depth;
	} else if ((c == '}' || c == ']') && s->depth) {
		s->depth--;
		s->safe = at + 1;
		s->safe_depth = s->depth;
		s->closed = s->depth == 0;
	} else if (c == ',' && s->depth) {
		s->values++;
		s->safe = at;
		s->safe_depth = s->depth;
	}
}

static void start_scan(struct tw_json_scan *s)
{
	s->values = s->safe = 0;
	s->depth = s->safe_depth = 0;
	s->in_string = s->escaped = s->too_deep = s->closed = false;
}

/* Continues the scan, up to `end` bytes of the document. */
static void scan_on(struct tw_json_scan *s, const char *p, size_t from, size_t end)
{
	for (size_t i = from; i < end && !s->too_deep && !s->closed; i++)
		scan_byte(s, p[i], i);
}

/* Scans one document, up to `end` bytes. */
static void scan(struct tw_json_scan *s, const char *p, size_t end)
{
	start_scan(s);
	scan_on(s, p, 0, end);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0';
}

/* A long string at the truncated end, such as a payload in base64, is kept as far as it goes:
 * returns where to truncate it, 0 if there is none. */
static size_t cut_string(const struct tw_json_scan *s, const char *p, size_t end)
{
	size_t at = s->string;

	if (!s->in_string || end - at < LONG_STRING)
		return 0;
	while (at && is_blank(p[at - 1]))
		at--;
	if (at == 0 || p[at - 1] != ':')
		return 0; /* an array's element is one of many */
	at = end;
	for (size_t i = end - UNICODE_ESCAPE; i < end; i++) /* not within an escape */
		if (p[i] == '\\' && p[i - 1] != '\\')
			at = i;
	return at;
}

/* The complete part before `end`, with brackets closed; NULL if there is none. */
static json_t *read_whole_part(struct tw_json_text *t, size_t end)
{
	struct tw_json_scan *s = t->scan;
	char *p = t->data + t->at;

	for (unsigned i = 0; i < TRIES && end; i++) {
		char saved[DEPTH + 1];
		unsigned depth;
		size_t stop;
		size_t at;
		json_error_t why;
		json_t *root;

		scan(s, p, end);
		if (s->safe == 0)
			return NULL;
		stop = cut_string(s, p, end);
		depth = stop ? s->depth : s->safe_depth;
		at = stop ? stop : s->safe;
		memcpy(saved, p + at, depth + 1);
		stop = at;
		if (s->in_string && at > s->string)
			p[at++] = '"';
		for (unsigned k = 0; k < depth; k++)
			p[at++] = s->open[depth - 1 - k];
		root = json_loadb(p, at, JSON_ALLOW_NUL, &why);
		memcpy(p + stop, saved, depth + 1);
		if (root)
			return root;
		end = s->safe - 1; /* the comma itself was the error */
	}
	return NULL;
}

/* After a broken document the next begins with a '{' at the start of a line. */
static void resync(struct tw_json_text *t, size_t from)
{
	while (from < t->len) {
		const char *line = memchr(t->data + from, '\n', t->len - from);

		if (!line)
			break;
		from = (size_t)(line - t->data) + 1;
		if (from < t->len && t->data[from] == '{') {
			t->at = from;
			return;
		}
	}
	t->at = t->len;
}

static void skip_blanks(struct tw_json_text *t)
{
	if (t->at == 0 && t->len >= 3 && memcmp(t->data, "\xEF\xBB\xBF", 3) == 0)
		t->at = 3;
	while (t->at < t->len && is_blank(t->data[t->at]))
		t->at++;
}

static enum tw_status repair_value(
        struct tw_json_text *t, const json_error_t *why, bool cut, json_t **ret, struct tw_err *err)
{
	size_t begin = t->at;
	size_t end = why->position > 0 ? (size_t)why->position : 0;
	bool at_end;

	if (end > t->len - begin)
		end = t->len - begin;
	at_end = begin + end == t->len;
	*ret = read_whole_part(t, end);
	if (*ret && !(at_end && cut))
		t->sink->ops->repair(t->sink,
		        at_end ? TW_REPAIR_input_truncated : TW_REPAIR_input_corrupt, begin + end,
		        1);
	resync(t, begin + end);
	if (*ret)
		return TW_OK;
	return tw_fail_at(err,
	        json_error_code(why) == json_error_out_of_memory ? TW_NOMEM : TW_CORRUPT,
	        begin + end, "the value of a %s is incomplete: %s", t->what, why->text);
}

/* Whether the error is caused by the truncation. */
static bool at_the_cut(const json_error_t *why, size_t len)
{
	return why->position < 0 || (size_t)why->position + TOKEN_MAX >= len;
}

/* Parses the document at t->at; *ret NULL: invalid, with the reason in *why.
 *
 * Its values are counted first.  Of a broken document at most a few times its valid part is
 * scanned, so that many of them do not cost more than their size. */
static enum tw_status load(
        struct tw_json_text *t, json_t **ret, json_error_t *why, struct tw_err *err)
{
	const char *p = t->data + t->at;
	size_t rest = t->len - t->at;
	size_t end = 0;
	bool known = false;

	start_scan(t->scan);
	*ret = NULL;
	while (!*ret && !known) {
		size_t from = end;

		end = from == 0 ? FIRST_SCAN : from * SCAN_FACTOR;
		end = end < rest ? end : rest;
		scan_on(t->scan, p, from, end);
		if (t->scan->values > TW_JSON_MAX_VALUES)
			return tw_fail_at(err, TW_TOO_LARGE, t->at, "a %s of more than %d values",
			        t->what, TW_JSON_MAX_VALUES);
		known = t->scan->closed || t->scan->too_deep || end == rest;
		*ret = json_loadb(
		        p, known ? rest : end, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, why);
		known |= !at_the_cut(why, end);
	}
	return TW_OK;
}

/* *ret NULL at the end. */
static enum tw_status next(struct tw_json_text *t, bool cut, json_t **ret, struct tw_err *err)
{
	enum tw_status st;
	json_error_t why = {.position = 0};

	if (!t->scan)
		t->scan = tw_arena_alloc(t->arena, 1, sizeof *t->scan);
	if (!t->scan)
		return tw_fail(err, TW_NOMEM, "no memory for a %s", t->what);
	if (!t->clean)
		make_utf8(t);
	skip_blanks(t);
	*ret = NULL;
	if (t->at == t->len)
		return TW_OK;
	st = load(t, ret, &why, err);
	if (st == TW_OK && !*ret)
		return repair_value(t, &why, cut, ret, err);
	if (st == TW_OK)
		t->at += (size_t)why.position;
	return st;
}

enum tw_status tw_json_text_each(
        struct tw_json_text *t, bool cut, tw_json_fn each, void *arg, struct tw_err *err)
{
	enum tw_status st;
	json_t *root = NULL;

	for (size_t n = 0;; n++) {
		size_t begin = t->at;

		st = next(t, cut, &root, err);
		if (st == TW_CORRUPT && n) {
			t->sink->ops->repair(t->sink, TW_REPAIR_record_malformed, begin, 1);
			continue;
		}
		if (st != TW_OK || !root)
			return st;
		st = each(arg, root, err);
		json_decref(root);
		if (st != TW_OK)
			return st;
	}
}

/* --- the head --- */

bool tw_json_head(const uint8_t *head, size_t len)
{
	size_t i = len >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;

	while (i < len && is_blank((char)head[i]))
		i++;
	return i < len && (head[i] == '{' || head[i] == '[');
}

/* The end of a string that starts after its quote at `at`; len if there is none. */
static size_t string_end(const uint8_t *p, size_t len, size_t at)
{
	while (at < len && p[at] != '"')
		at += p[at] == '\\' ? 2 : 1;
	return at < len ? at : len;
}

bool tw_json_head_has(const uint8_t *head, size_t len, unsigned depth, const char *key)
{
	unsigned now = 0;

	for (size_t i = 0; i < len; i++) {
		size_t begin = i + 1;

		if (head[i] == '{' || head[i] == '[')
			now++;
		else if (head[i] == '}' || head[i] == ']')
			now -= now > 0;
		if (head[i] != '"')
			continue;
		i = string_end(head, len, begin);
		if (now != depth || i - begin != strlen(key) ||
		        memcmp(head + begin, key, i - begin) != 0)
			continue;
		for (size_t k = i + 1; k < len && (is_blank((char)head[k]) || head[k] == ':'); k++)
			if (head[k] == ':')
				return true;
	}
	return false;
}

/* --- values --- */

bool tw_json_i64(const json_t *v, int64_t *ret)
{
	const double most = 9.2e18;
	double d;

	if (json_is_integer(v)) {
		*ret = json_integer_value(v);
		return true;
	}
	if (json_is_real(v)) {
		d = json_real_value(v);
		if (!(d >= -most && d <= most))
			return false;
		*ret = (int64_t)d;
		return true;
	}
	if (!json_is_string(v))
		return false;
	return tw_str_i64((struct tw_str){json_string_value(v), json_string_length(v)}, ret);
}

struct tw_str tw_json_text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		return TW_STR("");
	return (struct tw_str){json_string_value(v), json_string_length(v)};
}
