/*
 * profilo.c - logs of Facebook's Profilo, version 3.
 *
 * Text.  Header lines `dt`, `ver|3`, `id|...`, `prec|6` (digits of a second in times), `pid|...`
 * and more, an empty line, then entries:
 *   id|TYPE|timestamp|tid|callid|matchid|extra   each number is the difference from the previous
 *       standard entry (id, tid, callid, matchid wrap at 32 bits, timestamp and extra at 64); the
 *       first is absolute
 *   id|STRING_KEY, STRING_VALUE or STRING_NAME|parent id|text   absolute; text may hold '|'
 * Ids rise by one across both kinds.  Learned from facebookarchive/profilo and a real log.
 *
 * X_PUSH or X_START begins a marker on the entry's thread, X_POP, X_END or X_FAILED ends the
 * innermost one; a name follows as KEY `__name` of the begin or the end and its VALUE, or as NAME.
 * STACK_FRAMEs of one thread and time are a sample, outermost first; `extra` is the method's index
 * << 32 | its dex file's number; its name, if the log has it, is a string of a JAVA_FRAME_NAME
 * entry with that extra. Times are CLOCK_MONOTONIC; the first entry's is zero.
 *
 * After a damaged standard entry the numbers are off by its differences: it is counted, and the
 * rest is read.  Kept: markers, samples, counters, thread and process names, and any other entry as
 * an instant.  Dropped: priorities, annotations, properties of markers.
 */
#include <stdio.h>
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/lines.h"
#include "decoder/formats/sampled/profilo_hold.h"

enum { LINE_MAX_BYTES = 64 << 10, RECENT = 1 << 13 /* power of two */, VERSION = 3 };
enum field { ID, TIMESTAMP, TID, CALL_ID, MATCH_ID, EXTRA, FIELDS };

#define MAX_TIME_NS ((int64_t)1 << 61)

enum ref { REF_NONE, REF_MARK, REF_FRAME, REF_THREAD, REF_PROCESS, REF_KEY_NAME, REF_KEY_THREAD };

/* The purpose of a recent entry's strings. */
struct recent {
	int32_t id;
	enum ref ref;
	uint64_t value; /* marker, frame or thread id */
};

struct profilo {
	struct tw_sink *sink;
	struct tw_profilo_hold *hold;
	struct tw_lines lines;
	bool in_entries, started;
	unsigned precision;
	uint32_t pid;
	uint64_t entries;
	int64_t now[FIELDS]; /* of the last standard entry */
	int64_t first_time, last_ns;
	struct recent recent[RECENT];
};

static int probe(const uint8_t *head, size_t len)
{
	static const char start[] = "dt\nver|";

	return len > sizeof start && memcmp(head, start, sizeof start - 1) == 0 ? 95 : 0;
}

static void repair(struct profilo *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, offset, 1);
}

static void remember(struct profilo *s, int64_t id, enum ref ref, uint64_t value)
{
	s->recent[(uint32_t)id & (RECENT - 1)] = (struct recent){(int32_t)id, ref, value};
}

/* --- header --- */

static enum tw_status read_header(struct profilo *s, const struct tw_line *line, struct tw_err *err)
{
	struct tw_str value = line->text;
	struct tw_str key = tw_str_split(&value, '|');
	uint64_t n;

	if (line->text.len == 0)
		s->in_entries = true;
	else if (tw_str_eq(key, TW_STR("ver")) && !tw_str_eq(value, TW_STR("3")))
		return tw_fail_at(err, TW_UNSUPPORTED, line->offset,
		        "a Profilo log of version %.*s; this server reads version %d",
		        (int)(value.len < 20 ? value.len : 20), value.ptr, VERSION);
	else if (tw_str_eq(key, TW_STR("prec")) && tw_str_u64(value, 9, &n))
		s->precision = (unsigned)n;
	else if (tw_str_eq(key, TW_STR("pid")) && tw_str_u64(value, INT32_MAX, &n))
		s->pid = (uint32_t)n;
	return TW_OK;
}

/* --- strings --- */

/* `com.a(17),com.b(23)` */
static enum tw_status note_processes(struct profilo *s, struct tw_str list, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && list.len) {
		struct tw_str pid = tw_str_split(&list, ',');
		struct tw_str name = tw_str_split(&pid, '(');
		struct tw_note note = {.kind = TW_NOTE_process, .dur_ns = -1, .text = name};
		uint64_t number;

		if (pid.len && pid.ptr[pid.len - 1] == ')')
			pid.len--;
		if (!tw_str_u64(pid, INT32_MAX, &number))
			continue;
		note.value = (int64_t)number;
		st = s->sink->ops->note(s->sink, &note, err);
	}
	return st;
}

/* Handles a key of an entry. */
static void read_key(struct profilo *s, int64_t id, const struct recent *of, struct tw_str text)
{
	uint64_t tid;

	if (of->ref == REF_MARK && tw_str_eq(text, TW_STR("__name")))
		remember(s, id, REF_KEY_NAME, of->value);
	else if (of->ref == REF_THREAD && tw_str_u64(text, INT32_MAX, &tid))
		remember(s, id, REF_KEY_THREAD, tid);
	else if (of->ref == REF_PROCESS)
		remember(s, id, REF_PROCESS, 0);
}

static enum tw_status read_text(
        struct profilo *s, const struct recent *of, struct tw_str text, struct tw_err *err)
{
	switch (of->ref) {
	case REF_MARK: /* a NAME of the entry itself */
	case REF_KEY_NAME:
		return tw_profilo_hold_name(s->hold, (uint32_t)of->value, text, err);
	case REF_FRAME:
		s->sink->ops->method_name(s->sink, of->value, text);
		return TW_OK;
	case REF_KEY_THREAD:
		s->sink->ops->thread_name(s->sink, s->pid, of->value, text);
		return TW_OK;
	case REF_PROCESS:
		return note_processes(s, text, err);
	case REF_NONE:
	case REF_THREAD:
		break; /* a property */
	}
	return TW_OK;
}

static enum tw_status read_bytes(struct profilo *s, const struct tw_line *line, int64_t id,
        struct tw_str type, struct tw_str rest, struct tw_err *err)
{
	struct tw_str parent = tw_str_split(&rest, '|');
	const struct recent *of;
	int64_t parent_id;

	if (!tw_str_i64(parent, &parent_id)) {
		repair(s, TW_REPAIR_line_malformed, line->offset);
		return TW_OK;
	}
	of = &s->recent[(uint32_t)parent_id & (RECENT - 1)];
	if (of->id != parent_id || of->ref == REF_NONE)
		return TW_OK;
	if (tw_str_eq(type, TW_STR("STRING_KEY"))) {
		read_key(s, id, of, rest);
		return TW_OK;
	}
	if (of->ref == REF_MARK && tw_str_eq(type, TW_STR("STRING_VALUE")))
		return TW_OK; /* belongs to no key */
	return read_text(s, of, rest, err);
}

/* --- standard entries --- */

static const char *counter_name(int64_t id)
{
	static const struct {
		int32_t id;
		const char *name;
	} known[] = {{9240579, "process CPU ms"}, {9240581, "thread CPU ms"},
	        {9240593, "allocations"}, {9240594, "allocated bytes"}, {9240626, "run queue wait"},
	        {9240628, "voluntary switches"}, {9240629, "involuntary switches"},
	        {9240630, "IO waits"}, {9240631, "IO wait time"}, {9240634, "Java free bytes"},
	        {9240635, "Java max bytes"}, {9240636, "Java allocated bytes"},
	        {9240637, "Java total bytes"}, {9240640, "CPU"}, {9240642, "CPU frequency"},
	        {9240665, "GC time"}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].id == id)
			return known[i].name;
	return NULL;
}

static bool is_of_thread(int64_t counter)
{
	return counter == 9240581 || counter == 9240626 ||
	       (counter >= 9240628 && counter <= 9240631) || counter == 9240640;
}

static enum tw_status emit_counter(
        struct profilo *s, int64_t ts_ns, uint64_t offset, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_counter,
	        .ts_ns = ts_ns,
	        .dur_ns = -1,
	        .value = s->now[EXTRA],
	        .offset = offset};
	const char *name = counter_name(s->now[CALL_ID]);
	char other[32];

	if (!name) {
		(void)snprintf(other, sizeof other, "counter_%u", (unsigned)s->now[CALL_ID]);
		name = other;
	}
	note.text = tw_str_of(name);
	if (is_of_thread(s->now[CALL_ID])) {
		note.track =
		        s->sink->ops->track(s->sink, s->pid, (uint32_t)s->now[TID], TW_TID_FULL);
		if (note.track == 0)
			return TW_OK;
	}
	return s->sink->ops->note(s->sink, &note, err);
}

static enum tw_status emit_instant(
        struct profilo *s, struct tw_str type, int64_t ts_ns, uint64_t offset, struct tw_err *err)
{
	const struct tw_note note = {.kind = TW_NOTE_instant,
	        .track = s->sink->ops->track(s->sink, s->pid, (uint32_t)s->now[TID], TW_TID_FULL),
	        .ts_ns = ts_ns,
	        .dur_ns = -1,
	        .offset = offset,
	        .text = type};

	return note.track ? s->sink->ops->note(s->sink, &note, err) : TW_OK;
}

/* The X of X_PUSH, X_START, X_POP, X_END, X_FAILED; false for everything else. */
static bool is_marker(struct tw_str type, struct tw_str *ret_what, bool *ret_begins)
{
	static const struct {
		const char *end;
		bool begins;
	} ends[] = {{"_PUSH", true}, {"_START", true}, {"_POP", false}, {"_END", false},
	        {"_FAILED", false}};

	if (tw_str_starts(type, TW_STR("TRACE_")) || tw_str_starts(type, TW_STR("QPL_")) ||
	        tw_str_starts(type, TW_STR("STKERR_")))
		return false;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct tw_str end = tw_str_of(ends[i].end);

		if (!tw_str_ends(type, end))
			continue;
		*ret_what = (struct tw_str){type.ptr, type.len - end.len};
		*ret_begins = ends[i].begins;
		return true;
	}
	return false;
}

static enum tw_note_kind kind_of(struct tw_str what)
{
	static const struct {
		const char *what;
		enum tw_note_kind kind;
	} kinds[] = {{"IO", TW_NOTE_io}, {"BINDER", TW_NOTE_binder},
	        {"CLASS_LOAD", TW_NOTE_class_load}, {"WAIT", TW_NOTE_wait},
	        {"MESSAGE", TW_NOTE_message}};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (tw_str_eq(tw_str_of(kinds[i].what), what))
			return kinds[i].kind;
	return TW_NOTE_section;
}

static enum tw_status emit_marker(struct profilo *s, struct tw_str what, bool begins, int64_t ts_ns,
        uint64_t offset, struct tw_err *err)
{
	const struct tw_profilo_marker marker = {
	        (uint32_t)s->now[TID], ts_ns, offset, kind_of(what), what};
	uint32_t number;
	enum tw_status st = begins ? tw_profilo_hold_begin(s->hold, &marker, &number, err)
	                           : tw_profilo_hold_end(s->hold, &marker, &number, err);

	if (st == TW_OK && number != TW_PROFILO_NO_MARKER)
		remember(s, s->now[ID], REF_MARK, number);
	return st;
}

static bool is_frame(struct tw_str type)
{
	return tw_str_eq(type, TW_STR("STACK_FRAME")) ||
	       tw_str_eq(type, TW_STR("NATIVE_STACK_FRAME")) ||
	       tw_str_eq(type, TW_STR("CPU_STACK_SAMPLE")) ||
	       tw_str_eq(type, TW_STR("WALL_STACK_SAMPLE"));
}

/* Entries without information of their own. */
static bool is_silent(struct tw_str type)
{
	return tw_str_eq(type, TW_STR("TRACE_START")) || tw_str_eq(type, TW_STR("TRACE_END")) ||
	       tw_str_eq(type, TW_STR("TRACE_PRE_END")) ||
	       tw_str_eq(type, TW_STR("TRACE_THREAD_PRI")) ||
	       tw_str_eq(type, TW_STR("TRACE_ANNOTATION"));
}

static enum tw_status emit(
        struct profilo *s, struct tw_str type, int64_t ts_ns, uint64_t offset, struct tw_err *err)
{
	int64_t id = s->now[ID];
	struct tw_str what;
	bool begins;

	s->entries++;
	remember(s, id, REF_NONE, 0);
	if (tw_str_eq(type, TW_STR("COUNTER")))
		return emit_counter(s, ts_ns, offset, err);
	if (is_frame(type))
		return tw_profilo_hold_frame(s->hold,
		        &(struct tw_profilo_frame){s->pid, (uint32_t)s->now[TID], ts_ns,
		                (uint64_t)s->now[EXTRA], offset},
		        err);
	if (is_marker(type, &what, &begins))
		return emit_marker(s, what, begins, ts_ns, offset, err);
	if (tw_str_ends(type, TW_STR("_FRAME_NAME")))
		remember(s, id, REF_FRAME, (uint64_t)s->now[EXTRA]);
	else if (tw_str_eq(type, TW_STR("TRACE_THREAD_NAME")))
		remember(s, id, REF_THREAD, 0);
	else if (tw_str_eq(type, TW_STR("PROCESS_LIST")))
		remember(s, id, REF_PROCESS, 0);
	else if (tw_str_starts(type, TW_STR("STKERR_")))
		repair(s, TW_REPAIR_sample_failed, offset);
	else if (!is_silent(type))
		return emit_instant(s, type, ts_ns, offset, err);
	return TW_OK;
}

/* False: an impossible time. */
static bool time_of(struct profilo *s, uint64_t offset, int64_t *ret)
{
	int64_t unit = 1;
	int64_t ns;

	for (unsigned i = s->precision; i < 9; i++)
		unit *= 10;
	if (!s->started)
		s->first_time = s->now[TIMESTAMP];
	if (__builtin_sub_overflow(s->now[TIMESTAMP], s->first_time, &ns) ||
	        __builtin_mul_overflow(ns, unit, &ns) || ns > MAX_TIME_NS)
		return false;
	if (ns < 0) {
		repair(s, TW_REPAIR_begin_clamped, offset);
		ns = 0;
	}
	if (ns > s->last_ns)
		s->last_ns = ns;
	if (!s->started) {
		int64_t base;

		if (__builtin_mul_overflow(s->first_time, unit, &base) || base < 0)
			base = -1;
		s->sink->ops->clock(
		        s->sink, &(struct tw_clock){
		                         .pid = s->pid, .mono_base_ns = base, .boot_base_ns = -1});
		s->started = true;
	}
	*ret = ns;
	return true;
}

/* Adds the differences; false, without adding any, if a field is not a number. */
static bool read_numbers(struct profilo *s, struct tw_str id, struct tw_str rest)
{
	int64_t by[FIELDS];

	if (!tw_str_i64(id, &by[ID]))
		return false;
	for (unsigned i = 1; i < FIELDS; i++)
		if (rest.len == 0 || !tw_str_i64(tw_str_split(&rest, '|'), &by[i]))
			return false;
	if (rest.len)
		return false;
	for (unsigned i = 0; i < FIELDS; i++) {
		uint64_t sum = (uint64_t)s->now[i] + (uint64_t)by[i];

		s->now[i] = i == TIMESTAMP || i == EXTRA ? (int64_t)sum : (int32_t)(uint32_t)sum;
	}
	return true;
}

static enum tw_status read_entry(struct profilo *s, const struct tw_line *line, struct tw_err *err)
{
	struct tw_str rest = line->text;
	struct tw_str id = tw_str_split(&rest, '|');
	struct tw_str type = tw_str_split(&rest, '|');
	int64_t ts_ns;
	int64_t number;

	if (tw_str_starts(type, TW_STR("STRING_")) && tw_str_i64(id, &number))
		return read_bytes(s, line, number, type, rest, err);
	if (type.len == 0 || !read_numbers(s, id, rest)) {
		repair(s, TW_REPAIR_line_malformed, line->offset);
		return TW_OK;
	}
	if (!time_of(s, line->offset, &ts_ns)) {
		repair(s, TW_REPAIR_impossible_time, line->offset);
		return TW_OK;
	}
	return emit(s, type, ts_ns, line->offset, err);
}

static enum tw_status each_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct profilo *s = arg;

	if (!s->in_entries)
		return read_header(s, line, err);
	if (line->text.len == 0)
		return TW_OK;
	if (tw_line_is_cut(line, s->sink))
		return TW_OK;
	if (line->too_long)
		repair(s, TW_REPAIR_name_cut, line->offset);
	return read_entry(s, line, err);
}

/* --- the format --- */

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct profilo *s = state;

	s->sink = sink;
	s->precision = 6;
	s->hold = tw_profilo_hold_new(a, limits, sink);
	if (!s->hold || !tw_lines_init(&s->lines, a, LINE_MAX_BYTES, each_line, s))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct profilo *s = state;

	return tw_lines_push(&s->lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct profilo *s = state;
	enum tw_status st = tw_lines_finish(&s->lines, cut ? TW_LINES_CUT : TW_LINES_OPEN, err);

	if (st != TW_OK)
		return st;
	if (s->entries == 0)
		return tw_fail_at(
		        err, TW_CORRUPT, s->lines.offset, "no readable entry in this Profilo log");
	return tw_profilo_hold_emit(s->hold, s->pid, s->last_ns, err);
}

const struct tw_format tw_format_profilo = {
        .name = "profilo",
        .title = "Profilo log",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct profilo),
        .start = start,
        .push = push,
        .finish = finish,
};
