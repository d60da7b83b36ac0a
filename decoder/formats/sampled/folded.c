/*
 * folded.c - folded stacks, as stackcollapse scripts, async-profiler and this server's export
 * write them for flame graph tools.
 *
 *   frame;frame;frame value       a line per stack, outermost frame first
 *
 * The value has no unit: the trace is one of counts (TW_SOURCE_COUNTS).  If the outermost frame of
 * every line is a thread with its id (label.h), it is that thread and not a frame; otherwise
 * all stacks are one thread's.  Suffixes as "_[j]" belong to the name.  Learned from
 * brendangregg/FlameGraph.
 */
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/label.h"
#include "decoder/formats/lines.h"
#include "decoder/formats/sampled/samples.h"

enum { LINE_BYTES = 256 << 10, ALL = 1 };

struct folded {
	struct tw_sink *sink;
	struct tw_samples *samples;
	struct tw_lines lines;
	uint32_t track;        /* of the previous line */
	bool started, threads; /* the first line decides whether lines name threads */
};

/* Splits a line into its stack and its value; false: not such a line.  A fraction is cut off. */
static bool split(struct tw_str line, struct tw_str *ret_stack, int64_t *ret_value)
{
	size_t blank = tw_str_find_last(line, TW_STR(" "));
	struct tw_str value;
	struct tw_str whole;

	if (blank == 0 || blank >= line.len)
		return false;
	value = tw_str_from(line, blank + 1);
	whole = tw_str_split(&value, '.');
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] < '0' || value.ptr[i] > '9')
			return false;
	*ret_stack = (struct tw_str){line.ptr, blank};
	return tw_str_i64(whole, ret_value) && *ret_value >= 0;
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_str rest = {(const char *)head, len};
	unsigned lines = 0;
	unsigned bad = 0;
	unsigned deep = 0;

	while (rest.len) {
		bool complete = memchr(rest.ptr, '\n', rest.len) != NULL;
		struct tw_str line = tw_str_split(&rest, '\n');
		struct tw_str stack;
		int64_t value;

		if (!complete && (lines || len == TW_PROBE_BYTES))
			break; /* the last line continues beyond the head */
		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (line.len == 0)
			continue;
		lines++;
		if (split(line, &stack, &value))
			deep += memchr(stack.ptr, ';', stack.len) != NULL;
		else
			bad++;
		if (memchr(line.ptr, '\0', line.len) || (bad && lines == 1))
			return 0;
	}
	return deep && deep >= lines / 2 && bad <= lines / 3 ? (lines > 1 ? 60 : 45) : 0;
}

static enum tw_status add(
        struct folded *s, struct tw_str stack, int64_t value, uint64_t offset, struct tw_err *err)
{
	struct tw_sample_piece p = {
	        .ts_ns = value, .offset = offset, .first = tw_samples_frames(s->samples)};
	enum tw_status st = TW_OK;
	uint64_t tid = ALL;
	struct tw_str name = TW_STR("all stacks");
	uint32_t n = 0;

	if (s->threads) {
		struct tw_str label = tw_str_split(&stack, ';');

		if (!tw_thread_label(label, &name, &tid))
			name = label; /* rare: one line of another kind */
	}
	p.track = s->sink->ops->track(s->sink, 0, tid, TW_TID_FULL);
	if (p.track != s->track)
		s->sink->ops->thread_name(s->sink, 0, tid, name);
	s->track = p.track;
	for (; st == TW_OK && stack.len; n++) {
		struct tw_str frame = tw_str_split(&stack, ';');
		uint32_t sym = s->sink->ops->name(s->sink, frame.len ? frame : TW_STR("?"));

		st = tw_samples_frame(s->samples, sym, offset, err);
	}
	return st == TW_OK && p.track ? tw_samples_add_stack(s->samples, &p, n, err) : st;
}

static enum tw_status take_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct folded *s = arg;
	struct tw_str stack;
	struct tw_str name;
	uint64_t tid;
	int64_t value;

	if (tw_line_is_cut(line, s->sink) || line->text.len == 0)
		return TW_OK;
	if (line->too_long || !split(line->text, &stack, &value)) {
		s->sink->ops->repair(s->sink, TW_REPAIR_line_malformed, line->offset, 1);
		return TW_OK;
	}
	if (!s->started) {
		struct tw_str rest = stack;

		s->threads = tw_thread_label(tw_str_split(&rest, ';'), &name, &tid) && rest.len;
	}
	s->started = true;
	return add(s, stack, value, line->offset, err);
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct folded *s = state;

	s->sink = sink;
	s->samples = tw_samples_new(a, limits, sink);
	if (!s->samples || !tw_lines_init(&s->lines, a, LINE_BYTES, take_line, s))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct folded *s = state;

	return tw_lines_push(&s->lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct folded *s = state;
	enum tw_status st = tw_lines_finish(&s->lines, cut ? TW_LINES_CUT : TW_LINES_OPEN, err);

	if (st == TW_OK && tw_samples_count(s->samples) == 0)
		return tw_fail_at(err, TW_CORRUPT, 0, "no folded stack with a value");
	return st == TW_OK ? tw_samples_emit_sums(s->samples, TW_SOURCE_COUNTS, err) : st;
}

const struct tw_format tw_format_folded = {
        .name = "folded",
        .title = "Folded stacks",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct folded),
        .start = start,
        .push = push,
        .finish = finish,
};
