#include "decoder/formats/btrace/rhea.h"

#include <string.h>

enum { LINE_MAX_BYTES = 16 << 10 };

#define SECOND_NS ((int64_t)1000000000)

struct line { /* a parsed line */
	int64_t time_ns;
	unsigned digits;
	uint64_t tid; /* 0: absent */
	struct tw_str text;
};

struct border { /* TRACE_START or TRACE_END */
	bool start;
	uint32_t pid;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t count_digits(struct tw_str s)
{
	size_t n = 0;

	while (n < s.len && is_digit(s.ptr[n]))
		n++;
	return n;
}

/* Removes "<seconds>.<six or nine digits>" from *s; a phone omits the seconds while they are 0. */
static bool take_time(struct tw_str *s, struct line *ret)
{
	size_t n = count_digits(*s);
	uint64_t seconds = 0;
	uint64_t fraction;

	if (n == s->len || s->ptr[n] != '.' ||
	        (n && !tw_str_u64((struct tw_str){s->ptr, n}, (uint64_t)1 << 33, &seconds)))
		return false;
	*s = tw_str_from(*s, n + 1);
	n = count_digits(*s);
	if ((n != 6 && n != 9) || !tw_str_u64((struct tw_str){s->ptr, n}, UINT64_MAX, &fraction))
		return false;
	*s = tw_str_from(*s, n);
	ret->digits = (unsigned)n;
	ret->time_ns = (int64_t)(seconds * (uint64_t)SECOND_NS + fraction * (n == 6 ? 1000 : 1));
	return true;
}

/* B or E, alone or before a bar and the process. */
static bool is_marker(struct tw_str s)
{
	if (s.len == 0 || (s.ptr[0] != 'B' && s.ptr[0] != 'E'))
		return false;
	if (s.len == 1)
		return s.ptr[0] == 'E';
	return s.ptr[1] == '|' && s.len > 2 && is_digit(s.ptr[2]);
}

static bool parse(struct tw_str s, struct line *ret)
{
	size_t n;

	if (!take_time(&s, ret))
		return false;
	ret->tid = 0;
	if (s.len && s.ptr[0] == ' ') {
		while (s.len && s.ptr[0] == ' ')
			s = tw_str_from(s, 1);
		n = count_digits(s);
		if (!tw_str_u64((struct tw_str){s.ptr, n}, UINT32_MAX, &ret->tid))
			return false;
		s = tw_str_from(s, n);
	}
	if (!tw_str_starts(s, TW_STR(": ")))
		return false;
	ret->text = tw_str_from(s, 2);
	return is_marker(ret->text);
}

static bool parse_border(struct tw_str s, struct border *ret)
{
	struct tw_str number = tw_str_split(&s, '|');
	struct tw_str word = tw_str_split(&s, '|');
	struct tw_str boot = tw_str_split(&s, '|');
	uint64_t ignored;
	uint64_t pid;

	ret->start = tw_str_eq(word, TW_STR("TRACE_START"));
	if (!ret->start && !tw_str_eq(word, TW_STR("TRACE_END")))
		return false;
	if (!tw_str_u64(number, UINT64_MAX, &ignored) || !tw_str_u64(boot, UINT64_MAX, &ignored) ||
	        !tw_str_u64(tw_str_split(&s, '|'), UINT32_MAX, &pid))
		return false;
	ret->pid = (uint32_t)pid;
	return true;
}

int tw_rhea_probe(const uint8_t *head, size_t len, unsigned digits)
{
	struct tw_str rest = {(const char *)head, len};
	bool border = false;
	struct border b;
	struct line l;

	while (rest.len) {
		struct tw_str s = tw_str_trim(tw_str_split(&rest, '\n'));

		if (s.len == 0)
			continue;
		if (parse(s, &l))
			return l.digits == digits ? 90 : 0;
		if (!border && !parse_border(s, &b))
			return 0;
		border = true;
	}
	/* only the start is there: assume the newer 2.0 */
	return !border ? 0 : digits == 9 ? 50 : 40;
}

static void repair(struct tw_rhea *r, enum tw_repair what, uint64_t offset)
{
	r->markers.sink->ops->repair(r->markers.sink, what, offset, 1);
}

enum tw_status tw_rhea_emit(struct tw_rhea *r, const struct tw_marker *marker, struct tw_err *err)
{
	return tw_markers_emit(&r->markers, marker, err);
}

static void set_zero(struct tw_rhea *r, int64_t first_ns)
{
	int64_t second = first_ns / SECOND_NS;

	r->zero_ns = second > 0 ? (second - 1) * SECOND_NS : 0;
	r->have_zero = true;
	r->clock.pid = r->pid;
	if (r->digits == 9)
		r->clock.mono_base_ns = r->zero_ns;
	else
		r->clock.boot_base_ns = r->zero_ns;
	r->markers.sink->ops->clock(r->markers.sink, &r->clock);
}

/* The thread of a line without one: the main thread, whose id is the process's. */
static uint64_t main_tid(const struct tw_rhea *r, struct tw_str text)
{
	struct tw_str rest = text;
	uint64_t pid;

	(void)tw_str_split(&rest, '|');
	if (tw_str_u64(tw_str_split(&rest, '|'), UINT32_MAX, &pid) && pid)
		return pid;
	return r->pid;
}

static enum tw_status read_marker(
        struct tw_rhea *r, const struct line *l, uint64_t offset, struct tw_err *err)
{
	struct tw_marker marker = {.offset = offset, .text = l->text};
	uint64_t tid = l->tid ? l->tid : main_tid(r, l->text);

	if (!r->have_zero)
		set_zero(r, l->time_ns);
	r->events++;
	marker.ts_ns = l->time_ns - r->zero_ns;
	if (marker.ts_ns < 0 || tid == 0) {
		repair(r, marker.ts_ns < 0 ? TW_REPAIR_impossible_time : TW_REPAIR_line_malformed,
		        offset);
		return TW_OK;
	}
	marker.by = tw_tids_get(&r->markers.tids, tid, offset);
	if (!marker.by)
		return TW_OK;
	if (!r->pid && !l->tid)
		r->pid = (uint32_t)tid;
	tw_tids_process(&r->markers.tids, marker.by, r->pid);
	return r->each(r, &marker, err);
}

static enum tw_status read_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct tw_rhea *r = arg;
	struct border b;
	struct line l;

	if (line->text.len == 0)
		return TW_OK;
	if (line->ended && !line->too_long && parse(line->text, &l) && l.digits == r->digits)
		return read_marker(r, &l, line->offset, err);
	if (!line->too_long && parse_border(line->text, &b)) {
		if (b.start && !r->pid)
			r->pid = b.pid;
		r->ended = !b.start;
		return TW_OK;
	}
	if (!tw_line_is_cut(line, r->markers.sink))
		repair(r, TW_REPAIR_line_malformed, line->offset);
	return TW_OK;
}

enum tw_status tw_rhea_start(struct tw_rhea *r, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	r->clock = (struct tw_clock){.mono_base_ns = -1, .boot_base_ns = -1};
	if (!tw_markers_init(&r->markers, a, limits, sink) ||
	        !tw_lines_init(&r->lines, a, LINE_MAX_BYTES, read_line, r))
		return tw_oom(err);
	return TW_OK;
}

enum tw_status tw_rhea_end(struct tw_rhea *r, bool cut, struct tw_err *err)
{
	enum tw_status st = tw_lines_finish(&r->lines, cut ? TW_LINES_CUT : TW_LINES_OPEN, err);

	if (st == TW_OK && r->events == 0)
		st = tw_fail_at(err, TW_CORRUPT, r->lines.offset, "no line is a trace event");
	return st;
}

enum tw_status tw_rhea_finish(struct tw_rhea *r, bool cut, struct tw_err *err)
{
	if (!r->ended && !cut)
		repair(r, TW_REPAIR_end_mark_missing, r->lines.offset);
	return tw_markers_finish(&r->markers, err);
}
