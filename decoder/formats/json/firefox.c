/*
 * firefox.c - processed profiles of the Firefox Profiler, as its page saves them and this server
 * exports them.
 *
 *   meta {interval}                                       milliseconds between samples
 *   threads[] {name, pid, tid, samples {stack[], time[] or timeDeltas[], weight[], weightType}}
 *             markers {name[], startTime[], endTime[], phase[]: 0 moment, 1 span, 2 begin, 3 end}}
 *   stackTable {frame[], prefix[] or prefixOffset[]}      of all threads in "shared", or of each
 *   frameTable {func[]}   funcTable {name[]}              thread in older versions
 *   stringArray[]  (stringTable[])
 *
 * Tables are columns that may come after the threads, so columns are kept and read at the end of
 * the text, or of the thread for its own.  Samples of weightType "tracing-ms" last as long as their
 * weight; others until the next one, at most a few intervals (stacks.h).  Times are milliseconds.
 * Markers are events of their thread, without their data.  Counters, categories and addresses are
 * left out.  A raw Gecko profile, whose tables are rows, has to be opened and saved by the Firefox
 * Profiler first.  Learned from firefox-devtools/profiler, docs-developer.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/formats/format.h"
#include "decoder/formats/json/json_stream.h"
#include "decoder/formats/json/json_text.h"
#include "decoder/formats/label.h"
#include "decoder/formats/stacks.h"

enum { MAX_STACK = 4096, MAX_OPEN = 64 /* markers that have begun */, NONE = -1 };

enum phase { MOMENT, SPAN, SPAN_BEGIN, SPAN_END };

#define MS_NS 1e6

/* Tags of containers.  Columns follow in the order of enum column. */
enum {
	SKIPPED,
	ROOT,
	META,
	SHARED,
	THREADS,
	THREAD,
	SAMPLES,
	MARKERS,
	STACK_TABLE,
	FRAME_TABLE,
	FUNC_TABLE,
	STRINGS,
	COLUMN
};

enum column {
	STACK_FRAME,
	STACK_PREFIX,
	STACK_OFFSET,
	FRAME_FUNC,
	FUNC_NAME,
	TABLE_COLUMNS,
	SAMPLE_STACK = TABLE_COLUMNS,
	SAMPLE_TIME,
	SAMPLE_DELTA,
	SAMPLE_WEIGHT,
	MARKER_NAME,
	MARKER_PHASE,
	MARKER_START,
	MARKER_END,
	COLUMNS
};

struct string {
	uint32_t sym;
	struct tw_str text;
};

struct tables {
	struct tw_list columns[TABLE_COLUMNS]; /* int32_t, NONE for null */
	struct tw_list strings;                /* struct string */
	/* of each stack, once all are read: */
	uint32_t *depths;
	int32_t *clipped; /* its frame, or its caller, at MAX_STACK at most */
};

struct thread {
	uint32_t track;
	uint64_t offset;
	bool exact;                      /* weights are durations */
	struct tw_list columns[COLUMNS]; /* as in is_real(); not of tables */
};

struct firefox {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_limits limits;
	struct tw_json_stream json;
	double interval_ms;
	struct tables shared, own; /* own: of the thread being read */
	bool in_shared;
	struct tw_list threads; /* struct thread: those that use the shared tables */
	struct thread thread;
	uint32_t n_threads;
	bool has_tid;
	uint64_t tid; /* by default the number of the thread */
	uint32_t pid;
	char *name; /* of the thread, of TW_JSON_TEXT_BYTES */
	size_t n_name;
	struct tw_stacks *sampled, *exact;
	uint64_t read; /* samples */
	uint32_t syms[MAX_STACK];
};

static int probe(const uint8_t *head, size_t len)
{
	if (!tw_json_head(head, len))
		return 0;
	if (tw_json_head_has(head, len, 2, "preprocessedProfileVersion"))
		return 97;
	if (tw_json_head_has(head, len, 1, "meta") &&
	        (tw_json_head_has(head, len, 2, "stackwalk") ||
	                tw_json_head_has(head, len, 2, "processType")))
		return 80;
	return 0;
}

static void repair(struct firefox *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, offset, 1);
}

/* --- samples of a thread --- */

static int32_t cell(const struct tw_list *column, int64_t i)
{
	return i >= 0 && i < column->n ? ((const int32_t *)column->items)[i] : NONE;
}

static double real(const struct tw_list *column, uint32_t i)
{
	return i < column->n ? ((const double *)column->items)[i] : 0;
}

static uint32_t sym_of(struct firefox *s, const struct tables *t, int32_t stack)
{
	int32_t frame = cell(&t->columns[STACK_FRAME], stack);
	int32_t func = cell(&t->columns[FRAME_FUNC], frame);
	int32_t name = cell(&t->columns[FUNC_NAME], func);

	if (name < 0 || (uint32_t)name >= t->strings.n)
		return s->sink->ops->name(s->sink, TW_STR("(unknown)"));
	return ((const struct string *)t->strings.items)[name].sym;
}

/* A caller always precedes its callees in the table, so a damaged one cannot loop. */
static int32_t caller_of(const struct tables *t, int32_t stack)
{
	int32_t prefix = cell(&t->columns[STACK_PREFIX], stack);
	int32_t offset = cell(&t->columns[STACK_OFFSET], stack);

	if (t->columns[STACK_OFFSET].n)
		prefix = offset > 0 ? stack - offset : NONE;
	return prefix >= 0 && prefix < stack ? prefix : NONE;
}

/* Limits the time per sample to MAX_STACK frames, however deep its stack is. */
static bool measure_stacks(struct firefox *s, struct tables *t)
{
	const uint32_t n = t->columns[STACK_FRAME].n;

	t->depths = tw_arena_alloc(s->arena, (size_t)n + 1, sizeof *t->depths);
	t->clipped = tw_arena_alloc(s->arena, (size_t)n + 1, sizeof *t->clipped);
	if (!t->depths || !t->clipped)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		int32_t caller = caller_of(t, (int32_t)i);

		t->depths[i] = caller == NONE ? 1 : t->depths[caller] + 1;
		t->clipped[i] = t->depths[i] > MAX_STACK ? t->clipped[caller] : (int32_t)i;
	}
	return true;
}

/* Frames, outermost first, at the end of s->syms; the innermost are dropped past the limit. */
static const uint32_t *frames_of(
        struct firefox *s, const struct tables *t, int32_t stack, uint64_t offset, size_t *ret_n)
{
	const bool known = stack >= 0 && (uint32_t)stack < t->columns[STACK_FRAME].n;
	size_t n = known ? t->depths[stack] : stack >= 0;

	if (n > MAX_STACK) {
		s->sink->ops->repair(s->sink, TW_REPAIR_depth_clipped, offset, n - MAX_STACK);
		stack = t->clipped[stack];
		n = MAX_STACK;
	}
	for (size_t i = n; i-- > 0; stack = caller_of(t, stack))
		s->syms[i] = sym_of(s, t, stack);
	*ret_n = n;
	return s->syms;
}

static bool to_ns(double ms, int64_t *ret)
{
	double ns = ms * MS_NS;

	if (!(ns >= 0 && ns < 2e18))
		return false;
	*ret = (int64_t)(ns + 0.5);
	return true;
}

static struct tw_stacks *stacks_of(struct firefox *s, bool exact)
{
	struct tw_stacks **stacks = exact ? &s->exact : &s->sampled;
	int64_t interval_ns = 0;

	if (!exact && !to_ns(s->interval_ms, &interval_ns))
		interval_ns = 0; /* the interval is computed from the samples */
	if (!*stacks)
		*stacks = tw_stacks_new(s->arena, &s->limits, s->sink, interval_ns);
	return *stacks;
}

static enum tw_status emit_thread(
        struct firefox *s, const struct thread *t, const struct tables *tables, struct tw_err *err)
{
	const struct tw_list *columns = t->columns;
	struct tw_stacks *stacks = stacks_of(s, t->exact);
	struct tw_sample x = {.track = t->track, .offset = t->offset, .continued = t->exact};
	bool deltas = columns[SAMPLE_DELTA].n > 0;
	int64_t end_ns = -1; /* of the previous exact sample */
	double at_ms = 0;
	enum tw_status st = TW_OK;

	if (!stacks)
		return tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && i < columns[SAMPLE_STACK].n; i++) {
		at_ms = deltas ? at_ms + real(&columns[SAMPLE_DELTA], i)
		               : real(&columns[SAMPLE_TIME], i);
		if (i >= columns[deltas ? SAMPLE_DELTA : SAMPLE_TIME].n ||
		        !to_ns(at_ms, &x.ts_ns)) {
			repair(s, TW_REPAIR_impossible_time, t->offset);
			continue;
		}
		if (end_ns >= 0 && end_ns < x.ts_ns) { /* idle since the previous one */
			st = tw_stacks_add(stacks,
			        &(struct tw_sample){
			                .track = t->track, .ts_ns = end_ns, .continued = true},
			        err);
			if (st != TW_OK)
				break;
		}
		x.syms = frames_of(s, tables, cell(&columns[SAMPLE_STACK], i), t->offset, &x.n);
		st = tw_stacks_add(stacks, &x, err);
		if (t->exact && !to_ns(at_ms + real(&columns[SAMPLE_WEIGHT], i), &end_ns))
			end_ns = -1;
		s->read++;
	}
	if (st == TW_OK && end_ns >= 0)
		st = tw_stacks_add(stacks,
		        &(struct tw_sample){.track = t->track, .ts_ns = end_ns, .continued = true},
		        err);
	return st;
}

/* --- markers --- */

static struct tw_str text_of(const struct tables *t, int32_t name)
{
	if (name < 0 || (uint32_t)name >= t->strings.n)
		return TW_STR("(unknown)");
	return ((const struct string *)t->strings.items)[name].text;
}

/* False: no time there. */
static bool to_ns_at(const struct tw_list *column, uint32_t i, int64_t *ret)
{
	return i < column->n && to_ns(real(column, i), ret);
}

struct open_marker {
	int32_t name;
	int64_t ts_ns;
};

static enum tw_status put_marker(struct firefox *s, const struct thread *t, struct tw_str name,
        int64_t from_ns, int64_t to_ns, struct tw_err *err)
{
	const struct tw_note note = {.kind = to_ns < 0 ? TW_NOTE_instant : TW_NOTE_section,
	        .track = t->track,
	        .ts_ns = from_ns,
	        .dur_ns = to_ns < 0 ? -1 : to_ns - from_ns,
	        .offset = t->offset,
	        .text = name};

	return s->sink->ops->note(s->sink, &note, err);
}

/* The last marker of this name that has begun; NULL: none. */
static struct open_marker *last_open(struct open_marker *open, uint32_t n, int32_t name)
{
	while (n > 0 && open[n - 1].name != name)
		n--;
	return n ? &open[n - 1] : NULL;
}

static enum tw_status emit_markers(
        struct firefox *s, const struct thread *t, const struct tables *tables, struct tw_err *err)
{
	const struct tw_list *columns = t->columns;
	struct open_marker open[MAX_OPEN];
	uint32_t n_open = 0;
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < columns[MARKER_NAME].n; i++) {
		const int32_t name = cell(&columns[MARKER_NAME], i);
		const int32_t phase = cell(&columns[MARKER_PHASE], i);
		struct open_marker *begun;
		int64_t from_ns = 0;
		int64_t to_ns = 0;

		if ((phase != SPAN_END && !to_ns_at(&columns[MARKER_START], i, &from_ns)) ||
		        ((phase == SPAN || phase == SPAN_END) &&
		                !to_ns_at(&columns[MARKER_END], i, &to_ns))) {
			repair(s, TW_REPAIR_impossible_time, t->offset);
			continue;
		}
		if (phase == SPAN_BEGIN && n_open < MAX_OPEN) {
			open[n_open++] = (struct open_marker){name, from_ns};
			continue;
		}
		begun = phase == SPAN_END ? last_open(open, n_open, name) : NULL;
		if (phase == SPAN_END && !begun) {
			repair(s, TW_REPAIR_exit_without_enter, t->offset);
			continue;
		}
		if (begun) {
			from_ns = begun->ts_ns;
			n_open--;
			memmove(begun, begun + 1, (size_t)(open + n_open - begun) * sizeof *begun);
		}
		if (phase != SPAN && phase != SPAN_END)
			to_ns = -1;
		else if (to_ns < from_ns)
			to_ns = from_ns;
		st = put_marker(s, t, text_of(tables, name), from_ns, to_ns, err);
	}
	if (st == TW_OK && n_open)
		s->sink->ops->repair(s->sink, TW_REPAIR_enter_without_exit, t->offset, n_open);
	for (uint32_t i = 0; st == TW_OK && i < n_open; i++) /* shown where it began */
		st = put_marker(s, t, text_of(tables, open[i].name), open[i].ts_ns, -1, err);
	return st;
}

static enum tw_status emit_all(
        struct firefox *s, const struct thread *t, const struct tables *tables, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (t->columns[SAMPLE_STACK].n)
		st = emit_thread(s, t, tables, err);
	return st == TW_OK ? emit_markers(s, t, tables, err) : st;
}

/* --- threads --- */

static void begin_thread(struct firefox *s, uint64_t offset)
{
	s->thread = (struct thread){.offset = offset};
	s->has_tid = false;
	s->tid = ++s->n_threads;
	s->pid = 0;
	s->n_name = 0;
	for (int i = 0; i < TABLE_COLUMNS; i++)
		s->own.columns[i].n = 0;
	s->own.strings.n = 0;
}

static enum tw_status end_thread(struct firefox *s, struct tw_err *err)
{
	struct tw_str name = {s->name, s->n_name};
	struct thread *kept;
	uint64_t tid;

	if (tw_thread_label((struct tw_str){s->name, s->n_name}, &name, &tid) && !s->has_tid)
		s->tid = tid;
	if (s->thread.columns[SAMPLE_STACK].n + s->thread.columns[MARKER_NAME].n == 0)
		return TW_OK;
	if (name.len)
		s->sink->ops->thread_name(s->sink, s->pid, s->tid, name);
	s->thread.track = s->sink->ops->track(s->sink, s->pid, s->tid, TW_TID_FULL);
	if (s->thread.track == 0)
		return TW_OK;
	if (s->own.columns[STACK_FRAME].n && !measure_stacks(s, &s->own))
		return tw_oom(err);
	if (s->own.columns[STACK_FRAME].n || s->own.strings.n)
		return emit_all(s, &s->thread, &s->own, err);
	kept = tw_list_add(&s->threads, s->arena, sizeof *kept);
	if (!kept)
		return tw_oom(err);
	*kept = s->thread;
	return TW_OK;
}

/* Ids are numbers, or texts that begin with one ("1234.1"). */
static bool id_of(const struct tw_json_value *v, uint64_t *ret)
{
	struct tw_str text = v->text;

	return (v->kind == TW_JSON_NUMBER || v->kind == TW_JSON_STRING) &&
	       tw_str_u64(tw_str_split(&text, '.'), INT32_MAX, ret);
}

static void read_thread(struct firefox *s, const struct tw_json_value *v)
{
	uint64_t id;

	if (tw_str_eq(v->key, TW_STR("name")) && v->kind == TW_JSON_STRING) {
		s->n_name = v->text.len;
		memcpy(s->name, v->text.ptr, v->text.len);
	} else if (tw_str_eq(v->key, TW_STR("tid")) && id_of(v, &id)) {
		s->tid = id;
		s->has_tid = true;
	} else if (tw_str_eq(v->key, TW_STR("pid")) && id_of(v, &id)) {
		s->pid = (uint32_t)id;
	}
}

/* --- the text --- */

static const struct tw_json_container containers[] = {{0, ROOT, NULL, TW_JSON_OBJECT},
        {ROOT, META, "meta", TW_JSON_OBJECT}, {ROOT, SHARED, "shared", TW_JSON_OBJECT},
        {ROOT, THREADS, "threads", TW_JSON_ARRAY}, {THREADS, THREAD, NULL, TW_JSON_OBJECT},
        {THREAD, SAMPLES, "samples", TW_JSON_OBJECT}, {THREAD, MARKERS, "markers", TW_JSON_OBJECT},
        {SHARED, STACK_TABLE, "stackTable", TW_JSON_OBJECT},
        {THREAD, STACK_TABLE, "stackTable", TW_JSON_OBJECT},
        {SHARED, FRAME_TABLE, "frameTable", TW_JSON_OBJECT},
        {THREAD, FRAME_TABLE, "frameTable", TW_JSON_OBJECT},
        {SHARED, FUNC_TABLE, "funcTable", TW_JSON_OBJECT},
        {THREAD, FUNC_TABLE, "funcTable", TW_JSON_OBJECT},
        {SHARED, STRINGS, "stringArray", TW_JSON_ARRAY},
        {THREAD, STRINGS, "stringArray", TW_JSON_ARRAY},
        {THREAD, STRINGS, "stringTable", TW_JSON_ARRAY},
        {STACK_TABLE, COLUMN + STACK_FRAME, "frame", TW_JSON_ARRAY},
        {STACK_TABLE, COLUMN + STACK_PREFIX, "prefix", TW_JSON_ARRAY},
        {STACK_TABLE, COLUMN + STACK_OFFSET, "prefixOffset", TW_JSON_ARRAY},
        {FRAME_TABLE, COLUMN + FRAME_FUNC, "func", TW_JSON_ARRAY},
        {FUNC_TABLE, COLUMN + FUNC_NAME, "name", TW_JSON_ARRAY},
        {SAMPLES, COLUMN + SAMPLE_STACK, "stack", TW_JSON_ARRAY},
        {SAMPLES, COLUMN + SAMPLE_TIME, "time", TW_JSON_ARRAY},
        {SAMPLES, COLUMN + SAMPLE_DELTA, "timeDeltas", TW_JSON_ARRAY},
        {SAMPLES, COLUMN + SAMPLE_WEIGHT, "weight", TW_JSON_ARRAY},
        {MARKERS, COLUMN + MARKER_NAME, "name", TW_JSON_ARRAY},
        {MARKERS, COLUMN + MARKER_PHASE, "phase", TW_JSON_ARRAY},
        {MARKERS, COLUMN + MARKER_START, "startTime", TW_JSON_ARRAY},
        {MARKERS, COLUMN + MARKER_END, "endTime", TW_JSON_ARRAY}};

static bool is_real(enum column column)
{
	return column == SAMPLE_TIME || column == SAMPLE_DELTA || column == SAMPLE_WEIGHT ||
	       column == MARKER_START || column == MARKER_END;
}

static enum tw_status read_cell(
        struct firefox *s, const struct tw_json_value *v, enum column column, struct tw_err *err)
{
	struct tables *tables = s->in_shared ? &s->shared : &s->own;
	double value = NONE;
	bool is_number = tw_json_real(v, &value);

	if (is_real(column)) {
		double *item = tw_list_add(&s->thread.columns[column], s->arena, sizeof *item);

		if (!item)
			return tw_oom(err);
		*item = is_number ? value : column >= MARKER_NAME ? NONE : 0;
	} else {
		struct tw_list *list = column < TABLE_COLUMNS ? &tables->columns[column]
		                                              : &s->thread.columns[column];
		int32_t *item = tw_list_add(list, s->arena, sizeof *item);

		if (!item)
			return tw_oom(err);
		*item = is_number && value >= 0 && value < INT32_MAX ? (int32_t)value : NONE;
	}
	return TW_OK;
}

static enum tw_status read_string(
        struct firefox *s, const struct tw_json_value *v, struct tw_err *err)
{
	struct tables *tables = s->in_shared ? &s->shared : &s->own;
	const struct tw_str text = v->text.len ? v->text : TW_STR("(unknown)");
	struct string *string = tw_list_add(&tables->strings, s->arena, sizeof *string);
	const char *copy = tw_arena_str(s->arena, text);

	if (!string || !copy)
		return tw_oom(err);
	*string = (struct string){s->sink->ops->name(s->sink, text), {copy, text.len}};
	return TW_OK;
}

static enum tw_status take(void *arg, struct tw_json_value *v, struct tw_err *err)
{
	struct firefox *s = arg;

	if (v->kind == TW_JSON_OBJECT || v->kind == TW_JSON_ARRAY) {
		v->tag = tw_json_tag(containers, sizeof containers / sizeof *containers, v);
		if (v->tag == THREAD)
			begin_thread(s, v->offset);
		if (v->tag == SHARED || v->tag == THREAD)
			s->in_shared = v->tag == SHARED;
		return TW_OK;
	}
	if (v->kind == TW_JSON_END)
		return v->in == THREAD ? end_thread(s, err) : TW_OK;
	if (v->in >= COLUMN)
		return read_cell(s, v, v->in - COLUMN, err);
	if (v->in == STRINGS)
		return read_string(s, v, err);
	if (v->in == THREAD)
		read_thread(s, v);
	else if (v->in == META && tw_str_eq(v->key, TW_STR("interval")))
		(void)tw_json_real(v, &s->interval_ms);
	else if (v->in == SAMPLES && tw_str_eq(v->key, TW_STR("weightType")))
		s->thread.exact = tw_str_eq(v->text, TW_STR("tracing-ms"));
	return TW_OK;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct firefox *s = state;

	s->sink = sink;
	s->arena = a;
	s->limits = *limits;
	s->name = tw_arena_alloc(a, TW_JSON_TEXT_BYTES, 1);
	if (!s->name || !tw_json_stream_init(&s->json, a, sink, take, s))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct firefox *s = state;

	return tw_json_stream_push(&s->json, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct firefox *s = state;
	const struct thread *threads;
	enum tw_status st = tw_json_stream_finish(&s->json, cut, err);

	threads = s->threads.items;
	if (st == TW_OK && !measure_stacks(s, &s->shared))
		st = tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && i < s->threads.n; i++)
		st = emit_all(s, &threads[i], &s->shared, err);
	if (st == TW_OK && s->sampled)
		st = tw_stacks_finish(s->sampled, err);
	if (st == TW_OK && s->exact)
		st = tw_stacks_finish(s->exact, err);
	if (st == TW_OK && s->read == 0)
		return tw_fail_at(err, TW_CORRUPT, 0,
		        "no sample in this profile; open a raw Gecko profile in the Firefox "
		        "Profiler and save it first");
	return st;
}

const struct tw_format tw_format_firefox = {
        .name = "firefox",
        .title = "Firefox Profiler profile (JSON)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct firefox),
        .start = start,
        .push = push,
        .finish = finish,
};
