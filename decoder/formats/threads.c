/*
 * threads.c - the thread list that goes with a btrace 2.0 trace.
 *
 * Text, a thread a line: `<tid decimal>,<name>`.  A name may hold anything but a
 * line end.  Lines that do not begin with a number and a comma are counted.
 */
#include "formats/format.h"

#include <string.h>

enum { LINE_MAX_BYTES = 1 << 16 };

struct threads {
	struct tw_sink *sink;
	uint64_t offset; /* of the next input byte */
	uint64_t line_start;
	uint32_t max_name;
	uint64_t named;
	size_t len; /* bytes of the line kept so far */
	bool too_long;
	char line[LINE_MAX_BYTES];
};

static bool parse(struct tw_str line, uint64_t *ret_tid, struct tw_str *ret_name)
{
	struct tw_str rest = line;
	struct tw_str tid = tw_str_split(&rest, ',');

	if (tid.len == line.len || !tw_str_u64(tid, UINT32_MAX, ret_tid) || *ret_tid == 0)
		return false;
	if (rest.len && rest.ptr[rest.len - 1] == '\r')
		rest.len--;
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
			break; /* may be cut */
		if (line.len == 0)
			continue;
		if (!looks_like_thread(line))
			return 0;
		good++;
	}
	return good ? 50 : 0;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct threads *s = state;

	(void)a, (void)err;
	s->sink = sink;
	s->max_name = limits->max_name_bytes;
	return TW_OK;
}

static void end_line(struct threads *s)
{
	struct tw_str line = {s->line, s->len};
	struct tw_str name;
	uint64_t tid;

	if (s->too_long || (line.len && !parse(line, &tid, &name))) {
		s->sink->ops->repair(s->sink, TW_REPAIR_line_malformed, s->line_start, 1);
	} else if (line.len) {
		if (name.len > s->max_name) {
			s->sink->ops->repair(s->sink, TW_REPAIR_name_cut, s->line_start, 1);
			name.len = s->max_name;
		}
		s->sink->ops->thread_name(s->sink, 0, tid, name);
		s->named++;
	}
	s->len = 0;
	s->too_long = false;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct threads *s = state;

	(void)err;
	for (size_t i = 0; i < n; i++) {
		s->offset++;
		if (p[i] == '\n') {
			end_line(s);
			s->line_start = s->offset;
		} else if (s->len < sizeof s->line) {
			s->line[s->len++] = (char)p[i];
		} else {
			s->too_long = true;
		}
	}
	return TW_OK;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct threads *s = state;

	(void)cut;
	if (s->len || s->too_long)
		end_line(s);
	if (s->named == 0)
		return tw_fail(err, TW_CORRUPT, 0, "not one line is a thread (tid,name)");
	return TW_OK;
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
