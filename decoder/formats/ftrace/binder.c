/*
 * binder.c - btrace 2.0's binder.txt: names of the codes of binder calls.
 *
 *   #android.os.IHintManager            an interface
 *   TRANSACTION_createHintSession:1     its static numbers, with any name
 *
 * Written when a recording stops, and sometimes fetched before it is complete.  Of several names of
 * a code the last one is used, as in btrace's own tool.  A negative number is not a code, but a
 * constant of the same class.
 */
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/lines.h"

enum { LINE_MAX_BYTES = 1024 };

struct binder {
	struct tw_sink *sink;
	struct tw_lines lines;
	char interface[LINE_MAX_BYTES];
	size_t n_interface;
	bool in_interface; /* the following codes belong to it */
	uint64_t interfaces;
};

static bool is_name(struct tw_str s, bool dots)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;

		if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '$' &&
		        !(dots && c == '.'))
			return false;
	}
	return s.len > 0;
}

static bool is_interface(struct tw_str line)
{
	return line.len > 1 && line.ptr[0] == '#' && is_name(tw_str_from(line, 1), true);
}

struct code {
	struct tw_str name;
	int64_t number; /* negative: not a call */
};

static bool parse_code(struct tw_str line, struct code *ret)
{
	struct tw_str rest = line;

	ret->name = tw_str_split(&rest, ':');
	return is_name(ret->name, false) && tw_str_i64(rest, &ret->number) &&
	       ret->number >= INT32_MIN && ret->number <= UINT32_MAX;
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_str rest = {(const char *)head, len};
	struct code code;
	unsigned interfaces = 0;
	unsigned codes = 0;
	unsigned strange = 0;

	while (rest.len && codes < 4) {
		bool last = !memchr(rest.ptr, '\n', rest.len);
		struct tw_str line = tw_str_trim(tw_str_split(&rest, '\n'));

		if (line.len == 0 || (last && interfaces))
			continue; /* it may be truncated */
		if (is_interface(line) && memchr(line.ptr, '.', line.len))
			interfaces++;
		else if (interfaces == 0)
			return 0;
		else if (parse_code(line, &code))
			codes++;
		else
			strange++;
	}
	if (codes <= strange)
		return codes || strange || !interfaces ? 0 : 30;
	return strange ? 40 : 85;
}

static enum tw_status read_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct binder *s = arg;
	struct code code;

	(void)err;
	if (line->text.len == 0)
		return TW_OK;
	if (tw_line_is_cut(line, s->sink))
		return TW_OK;
	if (!line->too_long && is_interface(line->text)) {
		s->n_interface = line->text.len - 1;
		memcpy(s->interface, line->text.ptr + 1, s->n_interface);
		s->in_interface = true;
		s->interfaces++;
	} else if (!line->too_long && s->in_interface && parse_code(line->text, &code)) {
		if (code.number >= 0)
			s->sink->ops->transaction(s->sink,
			        (struct tw_str){s->interface, s->n_interface},
			        (uint64_t)code.number, code.name);
	} else {
		s->in_interface = s->in_interface && line->text.ptr[0] != '#';
		s->sink->ops->repair(s->sink, TW_REPAIR_line_malformed, line->offset, 1);
	}
	return TW_OK;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct binder *s = state;

	(void)limits;
	s->sink = sink;
	if (!tw_lines_init(&s->lines, a, LINE_MAX_BYTES, read_line, s))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_lines_push(&((struct binder *)state)->lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct binder *s = state;
	enum tw_status st = tw_lines_finish(&s->lines, cut ? TW_LINES_CUT : TW_LINES_OPEN, err);

	if (st == TW_OK && s->interfaces == 0)
		st = tw_fail_at(err, TW_CORRUPT, 0, "no line names a binder interface");
	return st;
}

const struct tw_format tw_format_binder = {
        .name = "binder",
        .title = "names of binder calls (binder.txt)",
        .part = "binder",
        .probe = probe,
        .state_size = sizeof(struct binder),
        .start = start,
        .push = push,
        .finish = finish,
};
