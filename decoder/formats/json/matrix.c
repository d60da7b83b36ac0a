/*
 * matrix.c - issues of Tencent Matrix's trace canary: JSON objects, an array of them, or one per
 * line.
 *
 * tag Trace_EvilMethod, detail NORMAL, ANR, LAG, STARTUP, ...: `stack` is text, one call per line,
 *   depth,methodId,count,cost
 * in pre-order, depth 0 outermost, cost in ms.  The phone keeps at most about 30 lines, so a depth
 * may jump; then the parent is the nearest line above with a smaller depth.  Equal neighbours are
 * merged: `count` calls of `cost` ms in total.  The build's methodMapping.txt names the ids.
 * Learned from Tencent/matrix.
 *
 * Each line becomes one slice as long as its cost, children side by side from their parent's begin
 * (order is known, times are not).  The phone's clock advances every 5 ms, and calls that took less
 * or did not fit are missing: so the thread is marked as sampled at 5 ms, so that the number of
 * slices is not read as a number of calls.  Merged calls also give a note with their number.  A
 * cost is clipped to the rest of its parent (costs of calls that never ended are absurd in real
 * reports), and to an hour.
 *
 * threadStack (lines `at a.b.C.m(C.java:1)`, top first; or native frames) is one sample at the
 * issue's time.  Other members are in the note of the issue.  Numbers of Trace_StartUp, Trace_FPS
 * and similar become counters.
 */
#include <string.h>

#include "decoder/formats/anr/anr_line.h"
#include "decoder/formats/format.h"
#include "decoder/formats/json/json_text.h"
#include "decoder/formats/label.h"
#include "decoder/formats/sampled/samples.h"

enum { MAIN = 1, MAX_OPEN = 1024, DETAIL_BYTES = 60 << 10 };

#define MS_NS       ((int64_t)1000000)
#define INTERVAL_NS (5 * MS_NS)
#define HOUR_NS     ((int64_t)3600 * 1000 * MS_NS)
#define MAX_MS      ((int64_t)1 << 42)
#define LATEST_NS   ((int64_t)1 << 61) /* times stop here, so that sums do not overflow */

struct open_line {
	int64_t depth, begin_ns, end_ns;
	int64_t next_ns; /* begin of its next child */
	uint32_t sym;
};

struct lines {
	struct open_line open[MAX_OPEN];
	unsigned n;
	int64_t next_ns; /* begin of the next outermost line */
};

struct matrix {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_json_text text;
	struct tw_samples *samples; /* of threadStack */
	uint32_t track;
	bool described, has_zero;
	bool has_costs;  /* a stack line had a duration */
	int64_t zero_ms; /* wall time at which the first issue began */
	int64_t end_ns;  /* latest end so far */
	uint64_t read;
	struct lines lines;        /* of the current issue */
	char detail[DETAIL_BYTES]; /* of its note */
};

static int probe(const uint8_t *head, size_t len)
{
	if (!tw_json_head(head, len))
		return 0;
	if (memmem(head, len, "\"Trace_", 7))
		return 95;
	for (unsigned depth = 1; depth <= 2; depth++) {
		if (tw_json_head_has(head, len, depth, "stackKey"))
			return 90;
		if (tw_json_head_has(head, len, depth, "machine") &&
		        tw_json_head_has(head, len, depth, "cpu_app"))
			return 85;
	}
	return 0;
}

static void repair(struct matrix *s, enum tw_repair what)
{
	s->sink->ops->repair(s->sink, what, TW_NO_OFFSET, 1);
}

static bool have_track(struct matrix *s)
{
	if (!s->track)
		s->track = s->sink->ops->track(s->sink, 0, MAIN, TW_TID_FULL);
	if (s->track && !s->described) {
		s->sink->ops->source(s->sink, s->track, TW_SOURCE_SAMPLES, INTERVAL_NS);
		s->sink->ops->thread_name(s->sink, 0, MAIN, TW_STR("main"));
		s->described = true;
	}
	return s->track != 0;
}

/* --- the stack --- */

struct call {
	int64_t depth, method, count, cost_ms;
};

static bool read_line(struct tw_str line, struct call *ret)
{
	int64_t *const fields[] = {&ret->depth, &ret->method, &ret->count, &ret->cost_ms};

	for (size_t i = 0; i < 4; i++)
		if (!tw_str_i64(tw_str_trim(tw_str_split(&line, ',')), fields[i]))
			return false;
	return line.len == 0 && ret->depth >= 0 && ret->method >= 0 && ret->method <= INT32_MAX &&
	       ret->count >= 0 && ret->cost_ms >= 0;
}

/* Emits the lines at this depth or deeper, as calls are emitted when they end. */
static enum tw_status close_lines(
        struct matrix *s, struct lines *l, int64_t depth, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && l->n && l->open[l->n - 1].depth >= depth) {
		const struct open_line *o = &l->open[--l->n];
		const struct tw_event ev = {.kind = TW_EV_SLICE,
		        .ts_ns = o->begin_ns,
		        .dur_ns = o->end_ns - o->begin_ns,
		        .cpu_ns = -1,
		        .offset = TW_NO_OFFSET,
		        .track = s->track,
		        .sym = o->sym};

		if (ev.sym)
			st = s->sink->ops->events(s->sink, &ev, 1, err);
	}
	return st;
}

/* The position of the line, after its siblings and within its parent. */
static void position_call(
        struct matrix *s, struct lines *l, const struct call *c, struct open_line *ret)
{
	struct open_line *parent = l->n ? &l->open[l->n - 1] : NULL;
	bool capped = c->cost_ms > HOUR_NS / MS_NS;
	int64_t dur = capped ? HOUR_NS : c->cost_ms * MS_NS;
	int64_t begin = parent ? parent->next_ns : l->next_ns;

	if (begin > LATEST_NS)
		dur = 0;
	if (parent && dur > parent->end_ns - begin) {
		dur = parent->end_ns - begin;
		capped = true;
	}
	if (capped)
		repair(s, TW_REPAIR_cost_capped);
	*(parent ? &parent->next_ns : &l->next_ns) = begin + dur;
	*ret = (struct open_line){c->depth, begin, begin + dur, begin, 0};
}

static enum tw_status emit_call(
        struct matrix *s, struct lines *l, const struct call *c, struct tw_err *err)
{
	enum tw_status st = close_lines(s, l, c->depth, err);
	struct tw_note note = {.kind = TW_NOTE_merged,
	        .track = s->track,
	        .value = c->count,
	        .offset = TW_NO_OFFSET};
	struct open_line line;

	s->read++;
	s->has_costs = true;
	if (st == TW_OK && l->n == MAX_OPEN) {
		repair(s, TW_REPAIR_depth_clipped);
		return TW_OK;
	}
	if (st != TW_OK)
		return st;
	position_call(s, l, c, &line);
	line.sym = s->sink->ops->method(s->sink, (uint64_t)c->method);
	l->open[l->n++] = line;
	note.ts_ns = line.begin_ns;
	note.dur_ns = line.end_ns - line.begin_ns;
	return c->count > 1 ? s->sink->ops->note(s->sink, &note, err) : TW_OK;
}

static enum tw_status read_stack(
        struct matrix *s, struct tw_str stack, int64_t at_ns, struct tw_err *err)
{
	struct lines *l = &s->lines;
	enum tw_status st = TW_OK;
	struct call c;

	l->n = 0;
	l->next_ns = at_ns;
	while (st == TW_OK && stack.len) {
		struct tw_str line = tw_str_trim(tw_str_split(&stack, '\n'));

		if (line.len == 0)
			continue;
		if (read_line(line, &c))
			st = emit_call(s, l, &c, err);
		else
			repair(s, TW_REPAIR_line_malformed);
	}
	if (st == TW_OK)
		st = close_lines(s, l, 0, err);
	if (l->next_ns > s->end_ns)
		s->end_ns = l->next_ns;
	return st;
}

/* --- threadStack --- */

/* `#00 pc 0004a5c8 /system/lib64/libc.so (read+8)`: the function, or its file if there is no
 * function */
static bool native_frame_of(struct tw_str line, struct tw_str *ret)
{
	struct tw_anr_line l = tw_anr_line_parse(line);

	*ret = l.name.len ? l.name : l.text;
	return l.kind == TW_ANR_NATIVE && ret->len;
}

/* `at a.b.C.m(C.java:1)` or without the `at` */
static bool frame_of(struct tw_str line, char buf[TW_FRAME_NAME_BYTES], struct tw_str *ret)
{
	line = tw_str_trim(line);
	if (line.len && line.ptr[0] == '#')
		return native_frame_of(line, ret);
	if (tw_str_starts(line, TW_STR("at ")))
		line = tw_str_from(line, 3);
	*ret = tw_str_trim(tw_str_split(&line, '('));
	if (ret->len == 0 || line.len == 0 || !memchr(ret->ptr, '.', ret->len))
		return false;
	*ret = tw_frame_name(buf, *ret, tw_str_trim(line));
	return true;
}

static enum tw_status add_frames(struct matrix *s, struct tw_str text, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && text.len) { /* from the last line on: outermost first */
		size_t at = text.len;
		char buf[TW_FRAME_NAME_BYTES];
		struct tw_str frame;

		while (at && text.ptr[at - 1] != '\n')
			at--;
		if (frame_of(tw_str_from(text, at), buf, &frame))
			st = tw_samples_frame(
			        s->samples, s->sink->ops->name(s->sink, frame), TW_NO_OFFSET, err);
		text.len = at ? at - 1 : 0;
	}
	return st;
}

static enum tw_status read_thread_stack(
        struct matrix *s, struct tw_str text, int64_t at_ns, struct tw_err *err)
{
	struct tw_sample_piece p = {.track = s->track,
	        .ts_ns = at_ns,
	        .offset = TW_NO_OFFSET,
	        .first = tw_samples_frames(s->samples)};
	enum tw_status st = add_frames(s, text, err);

	p.n = tw_samples_frames(s->samples) - p.first;
	if (st != TW_OK || p.n == 0)
		return st;
	s->read++;
	if (at_ns + INTERVAL_NS > s->end_ns)
		s->end_ns = at_ns + INTERVAL_NS;
	return tw_samples_add(s->samples, &p, err);
}

/* --- issues --- */

static enum tw_note_kind kind_of(struct tw_str detail)
{
	return tw_str_eq(detail, TW_STR("ANR")) || tw_str_starts(detail, TW_STR("SIGNAL_ANR"))
	               ? TW_NOTE_anr
	               : TW_NOTE_message;
}

/* A note for the issue, with all members except its stack. */
static enum tw_status note_issue(
        struct matrix *s, const json_t *issue, int64_t at_ns, int64_t cost_ms, struct tw_err *err)
{
	struct tw_str detail = tw_json_text_of(issue, "detail");
	struct tw_str scene = tw_json_text_of(issue, "scene");
	struct tw_note note = {.kind = kind_of(detail),
	        .track = s->track,
	        .ts_ns = at_ns,
	        .dur_ns = cost_ms * MS_NS,
	        .value = cost_ms,
	        .offset = TW_NO_OFFSET,
	        .text = scene.len ? scene : detail};
	json_t *rest = json_deep_copy(issue);
	enum tw_status st;

	if (!rest)
		return tw_oom(err);
	(void)json_object_del(rest, "stack");
	note.detail = (struct tw_str){
	        s->detail, json_dumpb(rest, s->detail, DETAIL_BYTES,
	                           JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15))};
	if (note.detail.len > DETAIL_BYTES) { /* its stack is emitted as a sample */
		(void)json_object_del(rest, "threadStack");
		note.detail.len = json_dumpb(rest, s->detail, DETAIL_BYTES,
		        JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
	}
	if (note.detail.len > DETAIL_BYTES)
		note.detail.len = 0;
	st = s->sink->ops->note(s->sink, &note, err);
	json_decref(rest);
	return st;
}

/* Issues follow each other, at the distance of their times if that is plausible. */
static int64_t begin_of(struct matrix *s, const json_t *issue, int64_t cost_ms)
{
	int64_t time_ms;
	int64_t at_ns;

	if (s->end_ns > LATEST_NS)
		s->end_ns = LATEST_NS;
	if (!tw_json_i64(json_object_get(issue, "time"), &time_ms) || time_ms < cost_ms ||
	        time_ms > MAX_MS)
		return s->end_ns;
	if (!s->has_zero)
		s->zero_ms = time_ms - cost_ms;
	s->has_zero = true;
	at_ns = (time_ms - cost_ms - s->zero_ms) * MS_NS;
	return at_ns > s->end_ns ? at_ns : s->end_ns;
}

static enum tw_status read_evil_method(struct matrix *s, const json_t *issue, struct tw_err *err)
{
	struct tw_str stack = tw_json_text_of(issue, "stack");
	struct tw_str thread_stack = tw_json_text_of(issue, "threadStack");
	int64_t cost_ms = 0;
	int64_t at_ns;
	enum tw_status st;

	if (!have_track(s))
		return TW_OK;
	if (!tw_json_i64(json_object_get(issue, "cost"), &cost_ms) || cost_ms < 0)
		cost_ms = 0;
	if (cost_ms > HOUR_NS / MS_NS) {
		repair(s, TW_REPAIR_cost_capped);
		cost_ms = HOUR_NS / MS_NS;
	}
	at_ns = begin_of(s, issue, cost_ms);
	st = note_issue(s, issue, at_ns, cost_ms, err);
	if (st == TW_OK)
		st = read_stack(s, stack, at_ns, err);
	if (at_ns + cost_ms * MS_NS > s->end_ns)
		s->end_ns = at_ns + cost_ms * MS_NS;
	if (st == TW_OK)
		st = read_thread_stack(s, thread_stack, s->end_ns, err);
	s->read++;
	return st;
}

/* Emits numbers of the issue, and of objects in it, as counters. */
static enum tw_status note_numbers(
        struct matrix *s, json_t *issue, const char *of, int64_t at_ns, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	const char *key;
	json_t *v;

	json_object_foreach(issue, key, v)
	{
		struct tw_note note = {.kind = TW_NOTE_counter,
		        .ts_ns = at_ns,
		        .dur_ns = -1,
		        .offset = TW_NO_OFFSET};
		char *name = *of ? tw_arena_printf(s->arena, "%s.%s", of, key) : NULL;

		note.text = tw_str_of(name ? name : key);
		if (st == TW_OK && json_is_number(v) && strcmp(key, "time") != 0 &&
		        tw_json_i64(v, &note.value)) {
			st = s->sink->ops->note(s->sink, &note, err);
			s->read++;
		}
	}
	return st;
}

static enum tw_status read_numbers(struct matrix *s, json_t *issue, struct tw_err *err)
{
	int64_t at_ns = begin_of(s, issue, 0);
	enum tw_status st = note_numbers(s, issue, "", at_ns, err);
	const char *key;
	json_t *v;

	json_object_foreach(issue, key, v)
	{
		if (st == TW_OK && json_is_object(v))
			st = note_numbers(s, v, key, at_ns, err);
	}
	s->end_ns = at_ns;
	return st;
}

static enum tw_status read_issue(struct matrix *s, json_t *issue, struct tw_err *err)
{
	struct tw_str tag = tw_json_text_of(issue, "tag");

	if (tw_str_eq(tag, TW_STR("Trace_EvilMethod")) || json_object_get(issue, "stack") ||
	        json_object_get(issue, "threadStack"))
		return read_evil_method(s, issue, err);
	if (tw_str_starts(tag, TW_STR("Trace_")))
		return read_numbers(s, issue, err);
	repair(s, TW_REPAIR_record_malformed);
	return TW_OK;
}

/* --- the format --- */

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct matrix *s = state;

	s->sink = sink;
	s->arena = a;
	s->samples = tw_samples_new(a, limits, sink);
	tw_json_text_init(&s->text, a, sink, "Matrix issue");
	return s->samples ? TW_OK : tw_oom(err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct matrix *s = state;

	return tw_json_text_push(&s->text, p, n, err);
}

static enum tw_status read_one(void *arg, json_t *root, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (!json_is_array(root))
		return read_issue(arg, root, err);
	for (size_t i = 0; st == TW_OK && i < json_array_size(root); i++)
		st = read_issue(arg, json_array_get(root, i), err);
	return st;
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct matrix *s = state;
	enum tw_status st = tw_json_text_each(&s->text, cut, read_one, s, err);

	if (st == TW_OK && tw_samples_count(s->samples))
		st = tw_samples_emit(s->samples, INTERVAL_NS, err);
	if (tw_samples_count(s->samples) && s->has_costs) /* its stacks may be snapshots */
		s->sink->ops->source(s->sink, s->track, TW_SOURCE_SAMPLES, INTERVAL_NS);
	if (st == TW_OK && s->read == 0)
		return tw_fail_at(err, TW_CORRUPT, 0, "no Matrix issue with a tag or a stack");
	return st;
}

const struct tw_format tw_format_matrix = {
        .name = "matrix",
        .title = "Matrix trace canary issue (JSON)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct matrix),
        .start = start,
        .push = push,
        .finish = finish,
};
