/*
 * systrace.c - kernel traces inside an HTML page: written by systrace and its descendants.
 *
 *   2014 on     <script class="trace-data" type="application/text"> ... </script>, several:
 *               the events, "PROCESS DUMP" (rows of ps), "CGROUP DUMP", JSON
 *   2012        var linuxPerfData = "\   then the lines, each ending with \n\ and the last with
 *               \n";  and with the escapes of JavaScript
 *   trace2html  <script id="viewer-data" ...> base64 of a text, usually gzip
 *
 * The page is read as a stream: outside a script only tags and the variable are searched for, so a
 * viewer of any size before the data costs no memory.  All sections are read, including Chrome's
 * own JSON (chrome_event.h). Offsets refer to the page, inside base64 to its content.
 */
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/inflate.h"
#include "decoder/formats/json/chrome_event.h"
#include "decoder/formats/json/chrome_text.h"

enum { TOKEN_BYTES = 512, SNIFF_BYTES = 4, PIECE_BYTES = 3072, PS_LONG = 10, PS_SHORT = 4 };

enum part { OUTSIDE, SNIFF, LINES, ESCAPED, BASE64, JSON };
enum dump { EVENTS, PROCESSES, OTHER };

struct systrace {
	struct tw_ftrace trace;
	struct tw_lines lines;
	struct tw_arena *arena;
	struct tw_limits limits;
	uint64_t offset; /* of the next byte of the page */
	enum part part;
	enum dump dump;
	bool viewer; /* the section is base64, whatever it begins with */
	bool long_rows;
	struct tw_chrome chrome;
	uint64_t section; /* start of a JSON section */
	bool coded_json;  /* the base64 contains JSON */
	char token[TOKEN_BYTES];
	size_t n_token;
	char sniff[SNIFF_BYTES];
	size_t n_sniff;
	/* base64 */
	uint32_t bits;
	unsigned n_bits;
	uint8_t piece[PIECE_BYTES + 3];
	size_t n_piece;
	bool piece_known;       /* its first bytes were examined */
	struct tw_inflate *zip; /* NULL until a section needs it */
	bool zipped;            /* this section needs it */
	char *line;             /* an unescaped line */
};

static void repair(struct systrace *s, enum tw_repair what, uint64_t offset)
{
	s->trace.markers.sink->ops->repair(s->trace.markers.sink, what, offset, 1);
}

static bool has(struct tw_str s, const char *what)
{
	return tw_str_find(s, tw_str_of(what)) < s.len;
}

/* Ignores case; `what` is in lower case. */
static bool begins(struct tw_str s, struct tw_str what)
{
	if (s.len < what.len)
		return false;
	for (size_t i = 0; i < what.len; i++) {
		char c = s.ptr[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c != what.ptr[i])
			return false;
	}
	return true;
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_str s = {(const char *)head, len};

	if (tw_str_starts(s, TW_STR("\xEF\xBB\xBF")))
		s = tw_str_from(s, 3);
	s = tw_str_trim(s);
	if (!begins(s, TW_STR("<html")) && !begins(s, TW_STR("<!doctype html")))
		return 0;
	return has(s, "linuxPerfData") || has(s, "\"trace-data\"") ? 90 : 60;
}

/* --- sections --- */

static void leave_section(struct systrace *s)
{
	s->part = OUTSIDE;
	s->n_token = 0;
}

/* The first words of a row, at most `most`; returns their number. */
static unsigned split_words(struct tw_str row, struct tw_str *piece, unsigned most)
{
	unsigned n = 0;

	row = tw_str_trim(row);
	while (row.len && n < most) {
		piece[n++] = tw_str_split(&row, ' ');
		row = tw_str_trim(row);
	}
	return n;
}

static void name_thread(struct systrace *s, uint32_t pid, uint64_t tid, struct tw_str name)
{
	struct tw_tids *t = &s->trace.markers.tids;
	struct tw_tid *k;

	/* a phone has thousands of threads: leave space for those with events */
	if (t->n >= t->max / 2 || tid == 0)
		return;
	k = tw_tids_get(t, tid, s->lines.start);
	if (!k)
		return;
	tw_tids_process(t, k, pid);
	tw_tids_name(t, k, name);
}

/* USER PID PPID VSZ RSS WCHAN PC S NAME COMM, or USER PID TID CMD */
static enum tw_status read_process(
        struct systrace *s, const struct tw_line *line, struct tw_err *err)
{
	struct tw_str w[PS_LONG];
	unsigned n = split_words(line->text, w, PS_LONG);
	uint64_t pid;
	uint64_t tid;

	if (n && tw_str_eq(w[0], TW_STR("USER"))) {
		s->long_rows = n > 3 && tw_str_eq(w[3], TW_STR("VSZ"));
		return TW_OK;
	}
	if (n < PS_SHORT || !tw_str_u64(w[1], UINT32_MAX, &pid) || (s->long_rows && n < PS_LONG) ||
	        !tw_str_u64(w[2], UINT32_MAX, &tid)) {
		if (n)
			repair(s, TW_REPAIR_line_malformed, line->offset);
		return TW_OK;
	}
	if (!s->long_rows) {
		/* the name extends to the end of the row */
		w[3].len = (size_t)(line->text.ptr + line->text.len - w[3].ptr);
		name_thread(s, (uint32_t)pid, tid, tw_str_trim(w[3]));
		return TW_OK;
	}
	name_thread(s, (uint32_t)pid, pid, w[8]);
	return tw_markers_note(&s->trace.markers,
	        &(struct tw_note){.kind = TW_NOTE_process,
	                .dur_ns = -1,
	                .value = (int64_t)pid,
	                .offset = line->offset,
	                .text = w[8]},
	        err);
}

static enum tw_status read_line(struct systrace *s, const struct tw_line *line, struct tw_err *err)
{
	struct tw_str text = tw_str_trim(line->text);

	if (tw_str_starts(text, TW_STR("PROCESS DUMP"))) {
		s->dump = PROCESSES;
		return TW_OK;
	}
	if (tw_str_starts(text, TW_STR("CGROUP DUMP"))) {
		s->dump = OTHER;
		return TW_OK;
	}
	if (text.len && text.ptr[0] == '#' && (has(text, "TASK-PID") || has(text, "tracer:")))
		s->dump = EVENTS;
	if (s->dump == EVENTS)
		return tw_ftrace_line(&s->trace, line, err);
	return s->dump == PROCESSES ? read_process(s, line, err) : TW_OK;
}

/* Removes "\n" at the end of the line and decodes the other escapes. */
static struct tw_str unescape(struct systrace *s, struct tw_str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '\\' && i + 1 < text.len) {
			c = text.ptr[++i];
			if (c == 'n')
				continue;
		} else if (c == '\\') {
			continue; /* a line continuation in JavaScript */
		}
		s->line[n++] = c;
	}
	return (struct tw_str){s->line, n};
}

/* An unescaped quote and a semicolon: the end of the string. */
static bool ends_string(struct tw_str *text)
{
	struct tw_str t = tw_str_trim(*text);

	if (t.len < 2 || memcmp(t.ptr + t.len - 2, "\";", 2) != 0 ||
	        (t.len > 2 && t.ptr[t.len - 3] == '\\'))
		return false;
	t.len -= 2;
	*text = t;
	return true;
}

static enum tw_status each_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct systrace *s = arg;
	struct tw_line read = *line;
	size_t end;

	if (s->part == ESCAPED) {
		bool last = ends_string(&read.text);

		read.text = unescape(s, read.text);
		if (last)
			leave_section(s);
		return tw_str_trim(read.text).len ? read_line(s, &read, err) : TW_OK;
	}
	if (s->part != LINES)
		return read_line(s, line, err); /* from base64 */
	end = tw_str_find(line->text, TW_STR("</script>"));
	if (end == line->text.len)
		return read_line(s, line, err);
	leave_section(s);
	read.text.len = end;
	return tw_str_trim(read.text).len ? read_line(s, &read, err) : TW_OK;
}

/* --- JSON --- */

static void start_json(struct systrace *s, uint64_t offset)
{
	s->section = offset;
	tw_chrome_text_restart(&s->chrome.text, offset);
}

/* Ends a section of JSON; `whole`: its end was in the page. */
static enum tw_status end_json(struct systrace *s, bool whole, struct tw_err *err)
{
	struct tw_chrome_text *t = &s->chrome.text;

	if (!t->found && whole)
		repair(s, TW_REPAIR_section_unknown, s->section);
	return tw_chrome_text_finish(t, !whole, err);
}

static enum tw_status push_json(struct systrace *s, uint8_t c, struct tw_err *err)
{
	struct tw_chrome_text *t = &s->chrome.text;
	bool of_string = t->in_string || t->part == TW_CHROME_KEY || t->part == TW_CHROME_STRING;
	enum tw_status st;

	if (c != '<' || of_string)
		return tw_chrome_text_push(t, &c, 1, err);
	st = end_json(s, true, err);
	leave_section(s);
	s->token[s->n_token++] = '<';
	return st;
}

/* --- base64 --- */

static enum tw_status plain(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct systrace *s = arg;

	while (!s->piece_known && n && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
		p++;
		n--;
	}
	if (!s->piece_known && n && (*p == '{' || *p == '[')) {
		s->coded_json = true;
		start_json(s, 0);
	}
	s->piece_known |= n > 0;
	return s->coded_json ? tw_chrome_text_push(&s->chrome.text, p, n, err)
	                     : tw_lines_push(&s->lines, p, n, err);
}

/* False: out of memory. */
static bool start_zip(struct systrace *s)
{
	if (s->zip)
		tw_inflate_restart(s->zip);
	else
		s->zip = tw_inflate_new(s->arena, &s->limits, plain, s);
	return s->zipped = s->zip != NULL;
}

static enum tw_status flush_piece(struct systrace *s, struct tw_err *err)
{
	size_t n = s->n_piece;
	enum tw_status st;

	s->n_piece = 0;
	if (n >= 2 && !s->piece_known && !s->zipped && s->piece[0] == 0x1F && s->piece[1] == 0x8B &&
	        !start_zip(s))
		return tw_oom(err);
	st = s->zipped ? tw_inflate_push(s->zip, s->piece, n, err) : plain(s, s->piece, n, err);
	if (st == TW_OK && s->zipped)
		s->piece_known |= n > 0;
	return st;
}

/* how: what is known about its end in the page. */
static enum tw_status end_base64(struct systrace *s, enum tw_lines_end how, struct tw_err *err)
{
	enum tw_status st = flush_piece(s, err);
	enum tw_inflate_state zip = s->zipped ? tw_inflate_state(s->zip) : TW_INFLATE_DONE;

	if (s->zipped) /* truncation is counted below */
		how = zip == TW_INFLATE_DONE ? TW_LINES_WHOLE : TW_LINES_CUT;
	if (st == TW_OK)
		st = s->coded_json ? end_json(s, zip == TW_INFLATE_DONE, err)
		                   : tw_lines_finish(&s->lines, how, err);
	if (zip == TW_INFLATE_DAMAGED)
		repair(s, TW_REPAIR_input_corrupt, s->offset);
	else if (zip == TW_INFLATE_MORE)
		repair(s, TW_REPAIR_input_truncated, s->offset);
	s->coded_json = s->zipped = false;
	return st;
}

static enum tw_status push_base64(struct systrace *s, uint8_t c, struct tw_err *err)
{
	int v = tw_base64_digit((char)c);
	enum tw_status st;

	if (c == '<') {
		st = end_base64(s, TW_LINES_WHOLE, err);
		leave_section(s);
		s->token[s->n_token++] = '<';
		return st;
	}
	if (v < 0)
		return TW_OK; /* line ends, and the padding at the end */
	s->bits = s->bits << 6 | (uint32_t)v;
	s->n_bits += 6;
	if (s->n_bits >= 8) {
		s->n_bits -= 8;
		s->piece[s->n_piece++] = (uint8_t)(s->bits >> s->n_bits);
	}
	return s->n_piece >= PIECE_BYTES ? flush_piece(s, err) : TW_OK;
}

/* --- the page --- */

static void start_lines(struct systrace *s, enum part part, uint64_t offset)
{
	s->part = part;
	s->dump = EVENTS;
	s->lines.offset = s->lines.start = offset;
	s->lines.n_held = 0;
	s->lines.too_long = false;
}

/* A tag, or a line outside of one. */
static void end_token(struct systrace *s, bool tag)
{
	struct tw_str t = tw_str_trim((struct tw_str){s->token, s->n_token});

	s->n_token = 0;
	if (!tag && tw_str_starts(t, TW_STR("var linuxPerfData = \""))) {
		start_lines(s, ESCAPED, s->offset);
		return;
	}
	if (!tag || !begins(t, TW_STR("<script")))
		return;
	s->viewer = has(t, "\"viewer-data\"");
	if (s->viewer || has(t, "\"trace-data\"")) {
		s->part = SNIFF;
		s->n_sniff = 0;
	}
}

/* The first non-blank bytes of a section determine its content. */
static enum tw_status push_sniff(struct systrace *s, uint8_t c, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (s->n_sniff == 0 && (c == '\n' || c == '\r' || c == '\t'))
		return TW_OK;
	s->sniff[s->n_sniff++] = (char)c;
	if (s->sniff[0] == '{' || s->sniff[0] == '[') {
		s->part = JSON;
		start_json(s, s->offset - 1);
		return push_json(s, c, err);
	}
	if (s->n_sniff < SNIFF_BYTES && c != '\n')
		return TW_OK;
	if (s->viewer || memcmp(s->sniff, "H4sI", s->n_sniff) == 0) {
		start_lines(s, BASE64, 0);
		s->bits = s->n_bits = 0;
		s->n_piece = 0;
		s->piece_known = false;
		for (size_t i = 0; st == TW_OK && i < s->n_sniff && s->part == BASE64; i++)
			st = push_base64(s, (uint8_t)s->sniff[i], err);
		return st;
	}
	start_lines(s, LINES, s->offset - s->n_sniff);
	return tw_lines_push(&s->lines, (const uint8_t *)s->sniff, s->n_sniff, err);
}

static enum tw_status push_byte(struct systrace *s, uint8_t c, struct tw_err *err)
{
	s->offset++;
	switch (s->part) {
	case SNIFF:
		return push_sniff(s, c, err);
	case BASE64:
		return push_base64(s, c, err);
	case JSON:
		return push_json(s, c, err);
	case OUTSIDE:
	case LINES: /* these two are handled line by line */
	case ESCAPED:
	default:
		if (s->n_token < sizeof s->token && c != '\n')
			s->token[s->n_token++] = (char)c;
		if (c == '>' || c == '\n')
			end_token(s, c == '>');
		return TW_OK;
	}
}

/* Lines of a section are handled one at a time, as any may be its last. */
static enum tw_status push_line(
        struct systrace *s, const uint8_t **p, size_t *n, struct tw_err *err)
{
	const uint8_t *end = memchr(*p, '\n', *n);
	size_t take = end ? (size_t)(end - *p) + 1 : *n;
	enum tw_status st = tw_lines_push(&s->lines, *p, take, err);

	*p += take;
	*n -= take;
	s->offset += take;
	return st;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct systrace *s = state;
	enum tw_status st = TW_OK;

	while (st == TW_OK && n) {
		if (s->part == LINES || s->part == ESCAPED) {
			st = push_line(s, &p, &n, err);
		} else {
			st = push_byte(s, *p++, err);
			n--;
		}
	}
	return st;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct systrace *s = state;

	s->arena = a;
	s->limits = *limits;
	s->line = tw_arena_alloc(a, TW_FTRACE_LINE_MAX + 1, 1);
	if (!s->line || !tw_ftrace_init(&s->trace, a, limits, sink) ||
	        !tw_chrome_init(&s->chrome, a, &s->trace) ||
	        !tw_lines_init(&s->lines, a, TW_FTRACE_LINE_MAX, each_line, s))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status end_section(struct systrace *s, bool cut, struct tw_err *err)
{
	if (s->part == OUTSIDE)
		return TW_OK;
	if (s->part == BASE64)
		return end_base64(s, cut ? TW_LINES_CUT : TW_LINES_OPEN, err);
	if (!cut)
		repair(s, TW_REPAIR_input_truncated, s->offset);
	if (s->part == JSON)
		return end_json(s, false, err);
	return s->part == LINES || s->part == ESCAPED
	               ? tw_lines_finish(&s->lines, TW_LINES_CUT, err)
	               : TW_OK;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct systrace *s = state;
	enum tw_status st = end_section(s, cut, err);

	if (st == TW_OK)
		st = tw_chrome_finish(&s->chrome, err);
	if (st == TW_OK)
		st = tw_ftrace_finish(&s->trace, err);
	if (st != TW_OK || s->trace.events + s->chrome.events)
		return st;
	return tw_fail_at(err, TW_CORRUPT, s->offset,
	        "the page contains no events of a kernel trace or of Chrome");
}

const struct tw_format tw_format_systrace = {
        .name = "systrace",
        .title = "systrace page (HTML)",
        .part = "trace atrace system",
        .probe = probe,
        .state_size = sizeof(struct systrace),
        .start = start,
        .push = push,
        .finish = finish,
};
