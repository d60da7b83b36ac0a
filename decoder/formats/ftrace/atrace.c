/*
 * atrace.c - the kernel's text trace as a file: atrace, trace-cmd report, tracefs.
 *
 *   messages of the tool                    up to the line "TRACE:", if there is one
 *   TRACE:                                  a zlib stream may follow directly (atrace -z)
 *   # tracer: nop                           comments
 *   <task>-<tid> (<tgid>) [cpu] ....        lines of ftrace.h
 *
 * Bytes after a zlib stream are ignored.  A shell in between may have turned every "\n" into
 * "\r\n", also inside the stream: the line "TRACE:" then ends the same way, which shows how many
 * "\r" to remove before each "\n".  Offsets past the beginning of a zlib stream refer to its
 * content.
 */
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/ftrace/ftrace.h"
#include "decoder/formats/inflate.h"

enum { PREAMBLE_MAX_BYTES = TW_PROBE_BYTES, FILTER_BYTES = 4096, MAX_CRS = 4 };

enum part { PREAMBLE, AFTER_TRACE_LINE, TEXT, ZLIB };

struct atrace {
	struct tw_ftrace trace;
	struct tw_lines lines;
	struct tw_arena *arena;
	struct tw_limits limits;
	enum part part;
	bool has_trace_line; /* the line was "TRACE:" */
	uint64_t trace_line_offset;
	struct tw_inflate *zlib;
	uint8_t head[2]; /* after the "TRACE:" line */
	unsigned n_head;
	unsigned crs, pending; /* "\r" to remove before each "\n"; those not passed on yet */
};

/* More of them than shells add do not come from a shell: one may belong to the line's end. */
static bool is_trace_line(struct tw_str line)
{
	for (int i = 0; i < MAX_CRS && line.len && line.ptr[line.len - 1] == '\r'; i++)
		line.len--;
	return tw_str_eq(line, TW_STR("TRACE:"));
}

/* 0: inconclusive, 1: an event, -1: another format. */
static int classify_line(struct tw_str line)
{
	struct tw_ftrace_event e;
	struct tw_str bare = tw_str_trim(line);

	if (bare.len == 0 || bare.ptr[0] == '#')
		return 0;
	if (tw_ftrace_parse(bare, &e))
		return 1;
	return tw_str_starts(bare, TW_STR("cpus=")) || tw_str_starts(bare, TW_STR("CPU:")) ? 0 : -1;
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_str rest = {(const char *)head, len};
	bool strange = false;

	if (len && (head[0] == '<' || head[0] == '{'))
		return 0;
	while (rest.len) {
		struct tw_str line = tw_str_split(&rest, '\n');
		int verdict;

		if (is_trace_line(line) || tw_str_starts(tw_str_trim(line), TW_STR("# tracer: ")))
			return 90;
		if (line.len && memchr(line.ptr, '\0', line.len))
			return 0;
		verdict = classify_line(line);
		if (verdict > 0)
			return strange ? 30 : 80;
		strange |= verdict < 0;
	}
	return 0;
}

static enum tw_status read_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct atrace *s = arg;
	struct tw_ftrace_event e;

	if (s->part != PREAMBLE)
		return tw_ftrace_line(&s->trace, line, err);
	if (line->offset > PREAMBLE_MAX_BYTES) {
		s->part = TEXT;
	} else if (is_trace_line(line->text)) {
		s->has_trace_line = true;
		s->trace_line_offset = line->offset;
		return TW_OK;
	}
	if ((line->text.len && line->text.ptr[0] == '#') || tw_ftrace_parse(line->text, &e))
		s->part = TEXT;
	return s->part == TEXT ? tw_ftrace_line(&s->trace, line, err) : TW_OK;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct atrace *s = state;

	s->arena = a;
	s->limits = *limits;
	if (!tw_ftrace_init(&s->trace, a, limits, sink) ||
	        !tw_lines_init(&s->lines, a, TW_FTRACE_LINE_MAX, read_line, s))
		return tw_oom(err);
	return TW_OK;
}

/* Line by line, as a stream may begin after the "TRACE:" line. */
static enum tw_status push_preamble(
        struct atrace *s, const uint8_t **p, size_t *n, struct tw_err *err)
{
	const uint8_t *end = memchr(*p, '\n', *n);
	size_t take = end ? (size_t)(end - *p) + 1 : *n;
	enum tw_status st = tw_lines_push(&s->lines, *p, take, err);

	*p += take;
	*n -= take;
	if (s->has_trace_line && s->part == PREAMBLE) {
		s->part = AFTER_TRACE_LINE;
		s->crs = (unsigned)(s->lines.offset - s->trace_line_offset - sizeof "TRACE:");
	}
	return st;
}

static enum tw_status inflated(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_lines_push(&((struct atrace *)arg)->lines, p, n, err);
}

/* Removes a shell's line ends from the stream. */
static enum tw_status push_zlib(struct atrace *s, const uint8_t *p, size_t n, struct tw_err *err)
{
	uint8_t clean[FILTER_BYTES];
	size_t at = 0;
	enum tw_status st = TW_OK;

	if (s->crs == 0)
		return tw_inflate_push(s->zlib, p, n, err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		if (p[i] == '\r' && s->pending < s->crs) {
			s->pending++;
			continue;
		}
		if (p[i] == '\n' && s->pending == s->crs)
			s->pending = 0;
		for (; s->pending && p[i] != '\r'; s->pending--)
			clean[at++] = '\r';
		clean[at++] = p[i];
		if (at + MAX_CRS + 2 > sizeof clean) {
			st = tw_inflate_push(s->zlib, clean, at, err);
			at = 0;
		}
	}
	return st == TW_OK ? tw_inflate_push(s->zlib, clean, at, err) : st;
}

static enum tw_status start_zlib(struct atrace *s, struct tw_err *err)
{
	s->part = ZLIB;
	s->zlib = tw_inflate_new(s->arena, &s->limits, inflated, s);
	if (!s->zlib)
		return tw_oom(err);
	s->lines.offset = s->lines.start = 0;
	return push_zlib(s, s->head, s->n_head, err);
}

static enum tw_status start_text(struct atrace *s, struct tw_err *err)
{
	s->part = TEXT;
	return tw_lines_push(&s->lines, s->head, s->n_head, err);
}

/* The two bytes after the "TRACE:" line show what follows. */
static enum tw_status push_head(struct atrace *s, const uint8_t **p, size_t *n, struct tw_err *err)
{
	while (s->n_head < 2 && *n) {
		s->head[s->n_head++] = *(*p)++;
		--*n;
	}
	if (s->n_head < 2)
		return TW_OK;
	return tw_inflate_is_zlib(s->head) ? start_zlib(s, err) : start_text(s, err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct atrace *s = state;
	enum tw_status st = TW_OK;

	while (st == TW_OK && n) {
		if (s->part == PREAMBLE) {
			st = push_preamble(s, &p, &n, err);
		} else if (s->part == AFTER_TRACE_LINE) {
			st = push_head(s, &p, &n, err);
		} else {
			return s->part == TEXT ? tw_lines_push(&s->lines, p, n, err)
			                       : push_zlib(s, p, n, err);
		}
	}
	return st;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct atrace *s = state;
	struct tw_sink *sink = s->trace.markers.sink;
	enum tw_status st = s->part == AFTER_TRACE_LINE ? start_text(s, err) : TW_OK;
	enum tw_lines_end how = cut ? TW_LINES_CUT : TW_LINES_OPEN;

	if (s->zlib) /* truncation is counted below */
		how = tw_inflate_state(s->zlib) == TW_INFLATE_DONE ? TW_LINES_WHOLE : TW_LINES_CUT;
	if (st == TW_OK)
		st = tw_lines_finish(&s->lines, how, err);
	if (st == TW_OK)
		st = tw_ftrace_finish(&s->trace, err);
	if (st != TW_OK)
		return st;
	if (s->trace.events == 0)
		return tw_fail_at(
		        err, TW_CORRUPT, s->lines.offset, "no line is an event of a kernel trace");
	if (s->zlib && tw_inflate_state(s->zlib) == TW_INFLATE_DAMAGED)
		sink->ops->repair(sink, TW_REPAIR_input_corrupt, s->lines.offset, 1);
	else if (s->zlib && !cut && tw_inflate_state(s->zlib) == TW_INFLATE_MORE)
		sink->ops->repair(sink, TW_REPAIR_input_truncated, s->lines.offset, 1);
	return TW_OK;
}

const struct tw_format tw_format_atrace = {
        .name = "atrace",
        .title = "kernel trace text (atrace, ftrace, trace-cmd report)",
        .part = "trace atrace system",
        .probe = probe,
        .state_size = sizeof(struct atrace),
        .start = start,
        .push = push,
        .finish = finish,
};
