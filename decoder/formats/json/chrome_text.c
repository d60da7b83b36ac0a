#include "decoder/formats/json/chrome_text.h"

#include <string.h>

enum { KERNEL_PIECE_BYTES = 4096, UTF8_MAX = 4 };

bool tw_chrome_text_init(struct tw_chrome_text *t, struct tw_arena *a, struct tw_sink *sink,
        tw_chrome_fn each, tw_chrome_plain_fn plain, void *arg)
{
	*t = (struct tw_chrome_text){.sink = sink, .each = each, .plain = plain, .arg = arg};
	t->held = tw_arena_alloc(a, TW_CHROME_EVENT_MAX_BYTES, 1);
	return t->held != NULL;
}

void tw_chrome_text_restart(struct tw_chrome_text *t, uint64_t offset)
{
	*t = (struct tw_chrome_text){.sink = t->sink,
	        .each = t->each,
	        .plain = t->plain,
	        .arg = t->arg,
	        .held = t->held,
	        .offset = offset};
}

static void repair(struct tw_chrome_text *t, enum tw_repair what, uint64_t offset)
{
	t->sink->ops->repair(t->sink, what, offset, 1);
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* --- values --- */

/* Tracks brackets and strings.  True: the byte closed the outermost bracket. */
static bool follow(struct tw_chrome_text *t, uint8_t c)
{
	if (t->in_string) {
		t->in_string = t->escaped || c != '"';
		t->escaped = !t->escaped && c == '\\';
		return false;
	}
	if (c == '"')
		t->in_string = true;
	else if (c == '{' || c == '[')
		t->depth++;
	else if ((c == '}' || c == ']') && t->depth)
		return --t->depth == 0;
	return false;
}

static void hold(struct tw_chrome_text *t, enum tw_chrome_piece what, enum tw_chrome_part after)
{
	t->start = t->offset;
	t->what = what;
	t->after = after;
	t->part = TW_CHROME_HOLD;
	t->held[0] = '{';
	t->n_held = 1;
	t->depth = 1;
	t->in_string = t->escaped = false;
}

static size_t ascii_run(const char *p, size_t n)
{
	const uint64_t high = 0x8080808080808080u;
	uint64_t word = 0;
	size_t i = 0;

	for (; n - i >= sizeof word; i += sizeof word) {
		memcpy(&word, p + i, sizeof word);
		if (word & high)
			break;
	}
	while (i < n && (unsigned char)p[i] < 0x80)
		i++;
	return i;
}

/* JSON is UTF-8. */
static void make_utf8(struct tw_chrome_text *t)
{
	for (size_t i = ascii_run(t->held, t->n_held); i < t->n_held;) {
		size_t n = tw_utf8_len(t->held + i, t->n_held - i);

		if (n == 0) {
			repair(t, TW_REPAIR_text_not_utf8, t->start + i);
			t->held[i] = '?';
			n = 1;
		}
		i += n;
		i += ascii_run(t->held + i, t->n_held - i);
	}
}

static enum tw_status push_held(struct tw_chrome_text *t, uint8_t c, struct tw_err *err)
{
	bool fits = t->n_held < TW_CHROME_EVENT_MAX_BYTES;

	if (fits)
		t->held[t->n_held] = (char)c;
	t->n_held += t->n_held <= TW_CHROME_EVENT_MAX_BYTES;
	if (!follow(t, c))
		return TW_OK;
	t->part = t->after;
	if (!fits) {
		repair(t, TW_REPAIR_record_too_large, t->start);
		return TW_OK;
	}
	make_utf8(t);
	return t->each(t->arg, t->what, (struct tw_str){t->held, t->n_held}, t->start, err);
}

/* Skips the value of an ignored member; plain words have no closing bracket. */
static void push_passed(struct tw_chrome_text *t, uint8_t c)
{
	bool plain = t->depth == 0 && !t->in_string;

	if (plain && (c == ',' || c == '}'))
		t->part = c == ',' ? TW_CHROME_MEMBERS : TW_CHROME_OVER;
	else
		(void)follow(t, c);
}

/* --- the kernel's text --- */

static enum tw_status flush_kernel(struct tw_chrome_text *t, struct tw_err *err)
{
	struct tw_str piece = {t->held, t->n_held};

	t->n_held = 0;
	return piece.len ? t->each(t->arg, TW_CHROME_KERNEL, piece, t->offset, err) : TW_OK;
}

static void put(struct tw_chrome_text *t, uint32_t code)
{
	char *p = t->held + t->n_held;

	if (code < 0x80) {
		p[0] = (char)code;
		t->n_held += 1;
	} else if (code < 0x800) {
		p[0] = (char)(0xC0 | code >> 6);
		p[1] = (char)(0x80 | (code & 63));
		t->n_held += 2;
	} else {
		p[0] = (char)(0xE0 | code >> 12);
		p[1] = (char)(0x80 | (code >> 6 & 63));
		p[2] = (char)(0x80 | (code & 63));
		t->n_held += 3;
	}
}

static uint32_t hex(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10 : 0;
}

static void put_escape(struct tw_chrome_text *t, uint8_t c)
{
	static const char names[] = "nrtbf";
	static const char codes[] = "\n\r\t\b\f";
	const char *at = c ? strchr(names, c) : NULL;
	char plain = (char)c;

	if (at)
		plain = codes[at - names];
	t->escaped = false;
	if (c == 'u')
		t->n_code = 4;
	else
		t->held[t->n_held++] = plain;
}

static enum tw_status push_string(struct tw_chrome_text *t, uint8_t c, struct tw_err *err)
{
	enum tw_status st;

	if (t->n_code) {
		t->code = t->code << 4 | hex(c);
		if (--t->n_code == 0)
			put(t, t->code & 0xFFFF);
	} else if (t->escaped) {
		t->code = 0;
		put_escape(t, c);
	} else if (c == '\\') {
		t->escaped = true;
	} else if (c == '"') {
		t->part = TW_CHROME_MEMBERS;
		st = flush_kernel(t, err);
		return st == TW_OK ? t->each(t->arg, TW_CHROME_KERNEL, TW_STR(""), t->offset, err)
		                   : st;
	} else {
		t->held[t->n_held++] = (char)c;
	}
	return t->n_held > KERNEL_PIECE_BYTES - UTF8_MAX ? flush_kernel(t, err) : TW_OK;
}

/* --- outermost value --- */

static void push_members(struct tw_chrome_text *t, uint8_t c)
{
	if (c == '"') {
		t->part = TW_CHROME_KEY;
		t->n_key = 0;
		t->escaped = false;
	} else if (c == '}') {
		t->part = TW_CHROME_OVER;
	}
}

static void push_key(struct tw_chrome_text *t, uint8_t c)
{
	if (c == '"' && !t->escaped) {
		t->part = TW_CHROME_COLON;
		return;
	}
	t->escaped = !t->escaped && c == '\\';
	if (t->n_key < sizeof t->key)
		t->key[t->n_key] = (char)c;
	t->n_key += t->n_key <= sizeof t->key;
}

static bool key_is(const struct tw_chrome_text *t, struct tw_str name)
{
	return t->n_key <= sizeof t->key && tw_str_eq((struct tw_str){t->key, t->n_key}, name);
}

static void push_value(struct tw_chrome_text *t, uint8_t c)
{
	if (is_blank(c))
		return;
	t->depth = 0;
	t->in_string = t->escaped = false;
	t->n_held = t->n_code = 0;
	if (c == '[' && key_is(t, TW_STR("traceEvents"))) {
		t->part = TW_CHROME_EVENTS;
		t->found = true;
	} else if (c == '{' && key_is(t, TW_STR("metadata"))) {
		hold(t, TW_CHROME_METADATA, TW_CHROME_MEMBERS);
	} else if (c == '"' && key_is(t, TW_STR("systemTraceEvents"))) {
		t->part = TW_CHROME_STRING;
		t->found = true;
	} else {
		t->part = TW_CHROME_PASS;
		push_passed(t, c);
	}
}

static void push_events(struct tw_chrome_text *t, uint8_t c)
{
	if (c == '{') {
		hold(t, TW_CHROME_EVENT, TW_CHROME_EVENTS);
	} else if (c == ']') {
		t->part = t->bare ? TW_CHROME_OVER : TW_CHROME_MEMBERS;
	} else if (c == ',') {
		t->strange = false;
	} else if (!is_blank(c) && !t->strange) {
		t->strange = true;
		repair(t, TW_REPAIR_record_malformed, t->offset);
	}
}

static void push_behind(struct tw_chrome_text *t, uint8_t c)
{
	if (is_blank(c) || c == '\0' || t->trailing)
		return;
	t->trailing = true;
	repair(t, TW_REPAIR_trailing_data, t->offset);
}

static enum tw_status push_byte(struct tw_chrome_text *t, uint8_t c, struct tw_err *err)
{
	switch (t->part) {
	case TW_CHROME_START:
		t->bare = c == '[';
		t->found |= t->bare;
		if (c == '[')
			t->part = TW_CHROME_EVENTS;
		else if (c == '{')
			t->part = TW_CHROME_MEMBERS;
		break;
	case TW_CHROME_MEMBERS:
		push_members(t, c);
		break;
	case TW_CHROME_KEY:
		push_key(t, c);
		break;
	case TW_CHROME_COLON:
		if (c == ':')
			t->part = TW_CHROME_VALUE;
		break;
	case TW_CHROME_VALUE:
		push_value(t, c);
		break;
	case TW_CHROME_PASS:
		push_passed(t, c);
		break;
	case TW_CHROME_EVENTS:
		push_events(t, c);
		break;
	case TW_CHROME_HOLD:
		return push_held(t, c, err);
	case TW_CHROME_STRING:
		return push_string(t, c, err);
	case TW_CHROME_OVER:
		push_behind(t, c);
		break;
	}
	return TW_OK;
}

/* --- runs of bytes --- */

/* How many bytes change neither brackets nor strings (follow). */
static size_t quiet_run(const struct tw_chrome_text *t, const uint8_t *p, size_t n)
{
	static const bool loud[256] = {
	        ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true};
	size_t i = 0;

	if (t->in_string)
		while (i < n && !t->escaped && p[i] != '"' && p[i] != '\\')
			i++;
	else
		while (i < n && !loud[p[i]])
			i++;
	return i;
}

static size_t hold_run(struct tw_chrome_text *t, const uint8_t *p, size_t n)
{
	n = quiet_run(t, p, n);
	if (n == 0)
		return 0;
	if (t->n_held <= TW_CHROME_EVENT_MAX_BYTES && n <= TW_CHROME_EVENT_MAX_BYTES - t->n_held) {
		memcpy(t->held + t->n_held, p, n);
		t->n_held += n;
	} else {
		t->n_held = TW_CHROME_EVENT_MAX_BYTES + 1;
	}
	return n;
}

/* Of the kernel's text, as far as no piece of it is full. */
static size_t kernel_run(struct tw_chrome_text *t, const uint8_t *p, size_t n)
{
	size_t room = KERNEL_PIECE_BYTES - UTF8_MAX - t->n_held;
	size_t i = 0;

	if (t->n_code || t->escaped)
		return 0;
	while (i < n && i < room && p[i] != '"' && p[i] != '\\')
		i++;
	memcpy(t->held + t->n_held, p, i);
	t->n_held += i;
	return i;
}

/* Takes bytes that need no decision; returns their number. */
static size_t take_run(struct tw_chrome_text *t, const uint8_t *p, size_t n)
{
	if (t->part == TW_CHROME_HOLD)
		return hold_run(t, p, n);
	if (t->part == TW_CHROME_STRING)
		return kernel_run(t, p, n);
	return t->part == TW_CHROME_PASS && (t->depth || t->in_string) ? quiet_run(t, p, n) : 0;
}

/* *ret_used: 0 if the event must be buffered. */
static enum tw_status take_plain(
        struct tw_chrome_text *t, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	struct tw_str text = {
	        (const char *)p, n < TW_CHROME_EVENT_MAX_BYTES ? n : TW_CHROME_EVENT_MAX_BYTES};

	*ret_used = 0;
	if (t->part != TW_CHROME_EVENTS || *p != '{')
		return TW_OK;
	return t->plain(t->arg, text, t->offset, ret_used, err);
}

enum tw_status tw_chrome_text_push(
        struct tw_chrome_text *t, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n;) {
		size_t used;

		st = take_plain(t, p + i, n - i, &used, err);
		if (st == TW_OK && used == 0)
			used = take_run(t, p + i, n - i);
		if (st == TW_OK && used == 0) {
			st = push_byte(t, p[i], err);
			used = 1;
		}
		i += used;
		t->offset += used;
	}
	return st;
}

enum tw_status tw_chrome_text_finish(struct tw_chrome_text *t, bool cut, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool whole = t->part == TW_CHROME_OVER || (t->bare && t->part == TW_CHROME_EVENTS);

	if (t->part == TW_CHROME_STRING) {
		st = flush_kernel(t, err);
		if (st == TW_OK)
			st = t->each(t->arg, TW_CHROME_KERNEL, TW_STR(""), t->offset, err);
	}
	if (!whole && !cut)
		repair(t, TW_REPAIR_input_truncated,
		        t->part == TW_CHROME_HOLD ? t->start : t->offset);
	return st;
}
