/*
 * threads.c - the thread list of a btrace 2.0 trace.
 *
 * Text, one thread per line: `<tid decimal>,<name>`.  A name may contain anything but a line end.
 * Lines that do not begin with a number and a comma are counted.
 *
 * A last line without its end may have lost the end of its name and is ignored, unless it is the
 * only one: part of a name is better than a refusal.
 */
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/lines.h"

enum { LINE_MAX_BYTES = 1 << 16 };

struct threads {
	struct tw_sink *sink;
	struct tw_lines lines;
	uint32_t max_name;
	uint64_t named;
};

static bool parse(struct tw_str line, uint64_t *ret_tid, struct tw_str *ret_name)
{
	struct tw_str rest = line;
	struct tw_str tid = tw_str_split(&rest, ',');

	if (tid.len == line.len || !tw_str_u64(tid, UINT32_MAX, ret_tid) || *ret_tid == 0)
		return false;
	*ret_name = rest;
	return true;
}

/* `12,comm` and not `12,1,a.b.C m`, which is a method mapping. */
static bool looks_like_thread(struct tw_str line)
{
	uint64_t number;
	struct tw_str name;

	if (!parse(line, &number, &name) || name.len > 64)
		return false;
	return !tw_str_u64(tw_str_split(&name, ','), UINT32_MAX, &number) || name.len == 0;
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_str rest = {(const char *)head, len};
	unsigned good = 0;

	while (rest.len && good < 4) {
		bool last = !memchr(rest.ptr, '\n', rest.len);
		struct tw_str line = tw_str_split(&rest, '\n');

		if (last && good)
			break; /* may be truncated */
		if (line.len == 0)
			continue;
		if (!looks_like_thread(line))
			return 0;
		good++;
	}
	return good ? 50 : 0;
}

static enum tw_status read_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct threads *s = arg;
	struct tw_str name;
	uint64_t tid;

	(void)err;
	if (line->text.len == 0 || (tw_line_is_cut(line, s->sink) && s->named))
		return TW_OK;
	if (line->too_long || !parse(line->text, &tid, &name)) {
		s->sink->ops->repair(s->sink, TW_REPAIR_line_malformed, line->offset, 1);
		return TW_OK;
	}
	if (name.len > s->max_name) {
		s->sink->ops->repair(s->sink, TW_REPAIR_name_cut, line->offset, 1);
		name.len = s->max_name;
	}
	s->sink->ops->thread_name(s->sink, 0, tid, name);
	s->named++;
	return TW_OK;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct threads *s = state;

	s->sink = sink;
	s->max_name = limits->max_name_bytes;
	if (!tw_lines_init(&s->lines, a, LINE_MAX_BYTES, read_line, s))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_lines_push(&((struct threads *)state)->lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct threads *s = state;
	enum tw_status st = tw_lines_finish(&s->lines, cut ? TW_LINES_CUT : TW_LINES_OPEN, err);

	if (st == TW_OK && s->named == 0)
		st = tw_fail_at(err, TW_CORRUPT, 0, "no line is a thread (tid,name)");
	return st;
}

const struct tw_format tw_format_threads = {
        .name = "threads",
        .title = "thread list (tid,name)",
        .part = "threads",
        .probe = probe,
        .state_size = sizeof(struct threads),
        .start = start,
        .push = push,
        .finish = finish,
};
