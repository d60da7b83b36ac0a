/*
 * blockcanary.c - logs of BlockCanary (looper-*.log): a message that blocked the main thread, and
 * stacks of that thread.
 *
 *   **********************
 *   2026-01-02 03:04:05(write log time)
 *
 *   qua = ...                         more "key = value": versionName, process, model, ...
 *   time = 1520                       the message's duration in ms
 *   thread-time = 90                  CPU time in ms
 *   time-start = 01-02 03:04:03.480   month, day and local time; so are time-end and the stacks'
 *   time-end = 01-02 03:04:05.000
 *   cpu-busy = false
 *   cpu-rate = ...                    several lines
 *   stack = 01-02 03:04:04.012        then a time for each further stack
 *
 *   java.lang.Thread.sleep(Thread.java:373)     innermost first
 *
 * Lines end with CR LF.  A stack ends at the next time or head.  A file may have several logs; the
 * first time of the file is zero, and a year is taken to have 366 days, so that a log that crosses
 * the new year has impossible times.  The main thread's id is not in the file: 1.  Learned from
 * markzhai/AndroidPerformanceMonitor.
 */
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/label.h"
#include "decoder/formats/lines.h"
#include "decoder/formats/sampled/samples.h"

enum { LINE_BYTES = 16 << 10, MAIN = 1, MAX_FRAMES = 4096, TIME_LEN = 18 };

#define STARS  "**********************"
#define MS_NS  ((int64_t)1000000)
#define DAY_MS ((int64_t)86400000)

struct blockcanary {
	struct tw_sink *sink;
	struct tw_samples *samples;
	struct tw_lines lines;
	uint32_t track;
	int64_t zero_ms, start_ms; /* -1: none yet */
	struct {
		bool open;
		int64_t ts_ns;
		uint64_t offset;
		uint32_t n, syms[MAX_FRAMES]; /* innermost first */
	} stack;
};

/* --- lines --- */

static bool take_number(struct tw_str *io, size_t digits, char end, int64_t *ret)
{
	int64_t v = 0;

	if (io->len < digits + (end != '\0') || (end && io->ptr[digits] != end))
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (io->ptr[i] < '0' || io->ptr[i] > '9')
			return false;
		v = v * 10 + (io->ptr[i] - '0');
	}
	*ret = v;
	*io = tw_str_from(*io, digits + (end != '\0'));
	return true;
}

/* "01-02 03:04:05.678" as ms since the beginning of a leap year. */
static bool time_of(struct tw_str s, int64_t *ret_ms)
{
	static const int64_t before[] = {
	        0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335}; /* days of a leap year */
	int64_t month, day, hour, minute, second, ms;

	if (s.len != TIME_LEN || !take_number(&s, 2, '-', &month) ||
	        !take_number(&s, 2, ' ', &day) || !take_number(&s, 2, ':', &hour) ||
	        !take_number(&s, 2, ':', &minute) || !take_number(&s, 2, '.', &second) ||
	        !take_number(&s, 3, '\0', &ms) || month < 1 || month > 12 || day < 1 || day > 31 ||
	        hour > 23 || minute > 59 || second > 60)
		return false;
	*ret_ms = (before[month - 1] + day - 1) * DAY_MS +
	          ((hour * 60 + minute) * 60 + second) * 1000 + ms;
	return true;
}

static bool value_of(struct tw_str line, struct tw_str key, struct tw_str *ret)
{
	if (line.len < key.len || memcmp(line.ptr, key.ptr, key.len) != 0)
		return false;
	*ret = tw_str_from(line, key.len);
	return true;
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_str rest = {(const char *)head, len};
	bool stars = false, start = false;

	while (rest.len) {
		struct tw_str line = tw_str_split(&rest, '\n');
		struct tw_str value;

		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		stars = stars || tw_str_eq(line, TW_STR(STARS));
		start = start || value_of(line, TW_STR("time-start = "), &value);
	}
	return stars && start ? 90 : 0;
}

/* --- stacks --- */

static enum tw_status end_stack(struct blockcanary *b, struct tw_err *err)
{
	struct tw_sample_piece p = {.track = b->track,
	        .ts_ns = b->stack.ts_ns,
	        .offset = b->stack.offset,
	        .first = tw_samples_frames(b->samples)};
	enum tw_status st = TW_OK;

	if (!b->stack.open)
		return TW_OK;
	b->stack.open = false;
	for (uint32_t i = b->stack.n; st == TW_OK && i-- > 0;)
		st = tw_samples_frame(b->samples, b->stack.syms[i], p.offset, err);
	return st == TW_OK && b->track ? tw_samples_add_stack(b->samples, &p, b->stack.n, err) : st;
}

static void malformed(struct blockcanary *b, uint64_t offset)
{
	b->sink->ops->repair(b->sink, TW_REPAIR_line_malformed, offset, 1);
}

static bool since_zero(struct blockcanary *b, int64_t ms, int64_t *ret_ns)
{
	if (b->zero_ms < 0)
		b->zero_ms = ms;
	*ret_ns = (ms - b->zero_ms) * MS_NS;
	return *ret_ns >= 0;
}

static enum tw_status begin_stack(
        struct blockcanary *b, int64_t ms, uint64_t offset, struct tw_err *err)
{
	enum tw_status st = end_stack(b, err);

	b->stack.n = 0;
	b->stack.offset = offset;
	b->stack.open = since_zero(b, ms, &b->stack.ts_ns);
	if (!b->stack.open)
		malformed(b, offset);
	return st;
}

static void add_frame(struct blockcanary *b, struct tw_str line)
{
	char buf[TW_FRAME_NAME_BYTES];

	if (b->stack.n < MAX_FRAMES)
		b->stack.syms[b->stack.n++] =
		        b->sink->ops->name(b->sink, tw_frame_name_of(buf, line));
}

/* --- heads --- */

static enum tw_status end_message(
        struct blockcanary *b, struct tw_str value, const struct tw_line *line, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_message, .offset = line->offset, .track = b->track};
	int64_t end_ms;

	if (!time_of(value, &end_ms) || b->start_ms < 0 || end_ms < b->start_ms ||
	        !since_zero(b, b->start_ms, &note.ts_ns)) {
		malformed(b, line->offset);
		return TW_OK;
	}
	note.dur_ns = (end_ms - b->start_ms) * MS_NS;
	return note.track ? b->sink->ops->note(b->sink, &note, err) : TW_OK;
}

static enum tw_status take_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct blockcanary *b = arg;
	struct tw_str value;
	int64_t ms;

	if (tw_line_is_cut(line, b->sink)) {
		b->stack.open = false; /* its outer frames are missing */
		return TW_OK;
	}
	if (line->text.len == 0)
		return TW_OK;
	if (line->too_long) {
		malformed(b, line->offset);
		return TW_OK;
	}
	if (tw_str_eq(line->text, TW_STR(STARS))) {
		b->start_ms = -1;
		return end_stack(b, err);
	}
	if (value_of(line->text, TW_STR("time-start = "), &value)) {
		b->start_ms = time_of(value, &ms) ? ms : -1;
		return TW_OK;
	}
	if (value_of(line->text, TW_STR("time-end = "), &value))
		return end_message(b, value, line, err);
	if (!value_of(line->text, TW_STR("stack = "), &value))
		value = line->text;
	if (time_of(value, &ms))
		return begin_stack(b, ms, line->offset, err);
	if (b->stack.open)
		add_frame(b, line->text);
	return TW_OK;
}

/* --- the format --- */

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct blockcanary *b = state;

	b->sink = sink;
	b->zero_ms = b->start_ms = -1;
	b->samples = tw_samples_new(a, limits, sink);
	if (!b->samples || !tw_lines_init(&b->lines, a, LINE_BYTES, take_line, b))
		return tw_oom(err);
	b->track = sink->ops->track(sink, 0, MAIN, TW_TID_FULL);
	sink->ops->thread_name(sink, 0, MAIN, TW_STR("main"));
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct blockcanary *b = state;

	return tw_lines_push(&b->lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct blockcanary *b = state;
	enum tw_status st = tw_lines_finish(&b->lines, cut ? TW_LINES_CUT : TW_LINES_OPEN, err);

	if (cut)
		b->stack.open = false;
	if (st == TW_OK)
		st = end_stack(b, err);
	if (st == TW_OK && tw_samples_count(b->samples) == 0)
		return tw_fail_at(
		        err, TW_CORRUPT, 0, "no stack with a time in this BlockCanary log");
	return st == TW_OK ? tw_samples_emit(b->samples, 0, err) : st;
}

const struct tw_format tw_format_blockcanary = {
        .name = "blockcanary",
        .title = "BlockCanary log",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct blockcanary),
        .start = start,
        .push = push,
        .finish = finish,
};
