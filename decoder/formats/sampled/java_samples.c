/*
 * java_samples.c - stacks that an app took of its own threads with getStackTrace, as JSON.
 *
 * The documented minimal form, "format":"java-stacks/1": schema/java_samples.md.  Any sampler with
 * times and stacks (of the main thread, or a native one like Sliver) can write it.
 *
 * Also the report of BlockCanaryX (.blockInfo): startTime, endTime, sampleInterval (ms), message,
 * stackTraceSamples[] of time (ms) and stackTraceElements[], top first, of declaringClass and
 * methodName; always the main thread, whose id is not in the file: 1.  Learned from
 * Knight-ZXW/BlockCanaryX.
 *
 * Frames are compared by class and method, and by the line if the file is not named after the class
 * (label.h).  Several documents may follow each other; times before the first one's zero are
 * impossible.
 */
#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/json/json_stacks.h"
#include "decoder/formats/label.h"

enum { NAME_BYTES = 2048, MAIN = 1, KEY_BYTES = 24 };

#define MS_NS   ((int64_t)1000000)
#define MAX_MS  ((int64_t)1 << 42)
#define VERSION "java-stacks/1"

struct java_samples {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_json_text text;
	struct tw_samples *samples;
	int64_t interval_ns;
	int64_t zero_ms; /* of BlockCanaryX reports */
	bool has_zero;
};

static int probe(const uint8_t *head, size_t len)
{
	if (!tw_json_head(head, len))
		return 0;
	if (tw_json_head_has(head, len, 1, "stackTraceSamples"))
		return 95;
	if (tw_json_head_has(head, len, 1, "format") && memmem(head, len, "\"java-stacks/", 13))
		return 95;
	return tw_json_head_has(head, len, 1, "startTime") &&
	                       tw_json_head_has(head, len, 1, "dispatchFinish")
	               ? 80
	               : 0;
}

static void malformed(struct java_samples *s)
{
	s->sink->ops->repair(s->sink, TW_REPAIR_record_malformed, TW_NO_OFFSET, 1);
}

static uint32_t sym_of(struct java_samples *s, struct tw_str name)
{
	return s->sink->ops->name(s->sink, name.len ? name : TW_STR("(unknown)"));
}

/* Names of a frame's members, by format. */
struct members {
	const char *class_name, *method, *file, *line;
};

static uint32_t sym_of_members(struct java_samples *s, const json_t *o, const struct members *of)
{
	struct tw_str cls = tw_json_text_of(o, of->class_name);
	struct tw_str method = tw_json_text_of(o, of->method);
	char buf[NAME_BYTES];
	char placed[TW_FRAME_NAME_BYTES];
	int64_t line = 0;
	size_t n = cls.len < NAME_BYTES / 2 ? cls.len : NAME_BYTES / 2;
	size_t m = method.len < NAME_BYTES / 2 - 1 ? method.len : NAME_BYTES / 2 - 1;

	if (n)
		memcpy(buf, cls.ptr, n);
	if (n && m)
		buf[n++] = '.';
	if (m)
		memcpy(buf + n, method.ptr, m);
	if (!tw_json_i64(json_object_get(o, of->line), &line) || line < 0)
		line = 0;
	return sym_of(s, tw_frame_name_at(placed, (struct tw_str){buf, n + m},
	                         tw_json_text_of(o, of->file), (uint64_t)line));
}

/* --- java-stacks/1 --- */

/* "a.b.C.m(C.java:12)" or {"c":"a.b.C","m":"m","f":"C.java","l":12} */
static uint32_t frame_sym(struct java_samples *s, const json_t *frame)
{
	static const struct members members = {"c", "m", "f", "l"};
	char buf[TW_FRAME_NAME_BYTES];

	if (!json_is_string(frame))
		return sym_of_members(s, frame, &members);
	return sym_of(s, tw_frame_name_of(buf, (struct tw_str){json_string_value(frame),
	                                               json_string_length(frame)}));
}

/* The file's data about a thread, by the number or word used in samples. */
static const json_t *thread_of(const json_t *threads, const json_t *key)
{
	char digits[KEY_BYTES];
	size_t at = sizeof digits;
	json_int_t n = json_integer_value(key);

	if (json_is_string(key))
		return json_object_get(threads, json_string_value(key));
	if (!json_is_integer(key) || n < 0)
		return NULL;
	digits[--at] = '\0';
	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	return json_object_get(threads, digits + at);
}

static bool tid_of(const json_t *threads, const json_t *key, uint64_t *ret)
{
	int64_t tid;

	if (!tw_json_i64(json_object_get(thread_of(threads, key), "sys_tid"), &tid) &&
	        !tw_json_i64(key, &tid))
		return false;
	*ret = (uint64_t)tid;
	return tid >= 0 && tid <= UINT32_MAX;
}

static void name_threads(struct java_samples *s, uint32_t pid, json_t *threads)
{
	const char *key;
	json_t *v;

	json_object_foreach(threads, key, v)
	{
		struct tw_str name = tw_json_text_of(v, "name");
		int64_t tid;

		if (name.len && (tw_json_i64(json_object_get(v, "sys_tid"), &tid) ||
		                        tw_str_i64(tw_str_of(key), &tid)))
			s->sink->ops->thread_name(s->sink, pid, (uint64_t)tid, name);
	}
}

/* [time, thread, stack] and optionally the thread's CPU time */
static enum tw_status add_sample(struct java_samples *s, const json_t *o, uint32_t pid,
        const json_t *threads, const struct tw_json_stacks *stacks, struct tw_err *err)
{
	const struct tw_json_stack *stack = tw_json_stacks_at(stacks, json_array_get(o, 2));
	struct tw_sample_piece p = {.offset = TW_NO_OFFSET};
	uint64_t tid;

	if (!stack || !tw_json_i64(json_array_get(o, 0), &p.ts_ns) || p.ts_ns < 0 ||
	        !tid_of(threads, json_array_get(o, 1), &tid)) {
		malformed(s);
		return TW_OK;
	}
	p.track = s->sink->ops->track(s->sink, pid, tid, TW_TID_FULL);
	p.first = stack->first;
	p.n = stack->n;
	p.has_cpu = tw_json_i64(json_array_get(o, 3), &p.cpu_ns);
	return p.track ? tw_samples_add(s->samples, &p, err) : TW_OK;
}

static void emit_clock(struct java_samples *s, const json_t *root, uint32_t pid)
{
	struct tw_str name = tw_json_text_of(root, "clock");
	struct tw_clock clock = {.pid = pid, .mono_base_ns = -1, .boot_base_ns = -1};
	int64_t start_ns;

	if (tw_json_i64(json_object_get(root, "start_ns"), &start_ns) && start_ns >= 0) {
		if (tw_str_eq(name, TW_STR("elapsed_realtime")))
			clock.boot_base_ns = start_ns;
		else if (tw_str_eq(name, TW_STR("uptime")))
			clock.mono_base_ns = start_ns;
	}
	s->sink->ops->clock(s->sink, &clock);
}

static enum tw_status read_minimal(struct java_samples *s, const json_t *root, struct tw_err *err)
{
	const json_t *frames = json_object_get(root, "frames");
	const json_t *samples = json_object_get(root, "samples");
	json_t *threads = json_object_get(root, "threads");
	size_t n = json_array_size(frames);
	uint32_t *syms = tw_arena_alloc(s->arena, n, sizeof *syms);
	double interval_ms = json_number_value(json_object_get(root, "interval_ms"));
	struct tw_json_stacks stacks;
	int64_t pid = 0;
	enum tw_status st;

	if (!syms)
		return tw_oom(err);
	if (!tw_json_i64(json_object_get(root, "pid"), &pid) || pid < 0 || pid > INT32_MAX)
		pid = 0;
	if (interval_ms > 0 && interval_ms < 1e9)
		s->interval_ns = (int64_t)(interval_ms * 1e6);
	emit_clock(s, root, (uint32_t)pid);
	for (size_t i = 0; i < n; i++)
		syms[i] = frame_sym(s, json_array_get(frames, i));
	st = tw_json_stacks_read(
	        &stacks, s->arena, s->samples, json_object_get(root, "stacks"), syms, n, err);
	for (size_t i = 0; st == TW_OK && i < json_array_size(samples); i++)
		st = add_sample(
		        s, json_array_get(samples, i), (uint32_t)pid, threads, &stacks, err);
	name_threads(s, (uint32_t)pid, threads);
	return st;
}

/* --- BlockCanaryX --- */

static bool since_zero(struct java_samples *s, const json_t *time, int64_t *ret_ns)
{
	int64_t ms;

	if (!tw_json_i64(time, &ms) || ms < 0 || ms > MAX_MS)
		return false;
	if (!s->has_zero)
		s->zero_ms = ms;
	s->has_zero = true;
	*ret_ns = (ms - s->zero_ms) * MS_NS;
	return *ret_ns >= 0;
}

static enum tw_status add_elements(struct java_samples *s, const json_t *sample, struct tw_err *err)
{
	static const struct members members = {
	        "declaringClass", "methodName", "fileName", "lineNumber"};
	const json_t *elements = json_object_get(sample, "stackTraceElements");
	size_t n = json_array_size(elements);
	struct tw_sample_piece p = {.offset = TW_NO_OFFSET, .first = tw_samples_frames(s->samples)};
	enum tw_status st = TW_OK;

	if (!json_is_array(elements) || !since_zero(s, json_object_get(sample, "time"), &p.ts_ns)) {
		malformed(s);
		return TW_OK;
	}
	for (size_t i = n; st == TW_OK && i-- > 0;) {
		const json_t *e = json_array_get(elements, i);

		st = tw_samples_frame(
		        s->samples, sym_of_members(s, e, &members), TW_NO_OFFSET, err);
	}
	p.n = tw_samples_frames(s->samples) - p.first;
	p.track = s->sink->ops->track(s->sink, 0, MAIN, TW_TID_FULL);
	if (st != TW_OK || p.n < n || p.track == 0)
		return st; /* at a limit, which was counted */
	return tw_samples_add(s->samples, &p, err);
}

static enum tw_status note_message(struct java_samples *s, const json_t *root, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_message, .offset = TW_NO_OFFSET};
	int64_t end_ns;

	note.text = tw_json_text_of(root, "message");
	if (!since_zero(s, json_object_get(root, "startTime"), &note.ts_ns) ||
	        !since_zero(s, json_object_get(root, "endTime"), &end_ns) || end_ns < note.ts_ns)
		return TW_OK;
	note.dur_ns = end_ns - note.ts_ns;
	note.track = s->sink->ops->track(s->sink, 0, MAIN, TW_TID_FULL);
	return note.track ? s->sink->ops->note(s->sink, &note, err) : TW_OK;
}

static enum tw_status read_block(struct java_samples *s, const json_t *root, struct tw_err *err)
{
	const json_t *samples = json_object_get(root, "stackTraceSamples");
	int64_t interval_ms;
	enum tw_status st = note_message(s, root, err); /* its start is the zero */

	if (tw_json_i64(json_object_get(root, "sampleInterval"), &interval_ms) && interval_ms > 0 &&
	        interval_ms < MAX_MS)
		s->interval_ns = interval_ms * MS_NS;
	for (size_t i = 0; st == TW_OK && i < json_array_size(samples); i++)
		st = add_elements(s, json_array_get(samples, i), err);
	s->sink->ops->thread_name(s->sink, 0, MAIN, TW_STR("main"));
	return st;
}

/* --- the format --- */

static enum tw_status read_document(void *arg, json_t *root, struct tw_err *err)
{
	struct java_samples *s = arg;
	struct tw_str version = tw_json_text_of(root, "format");

	if (json_is_array(json_object_get(root, "stackTraceSamples")))
		return read_block(s, root, err);
	if (version.len && !tw_str_eq(version, TW_STR(VERSION)))
		return tw_fail_at(err, TW_UNSUPPORTED, 0,
		        "stacks as %.*s; this server reads " VERSION,
		        (int)(version.len < 40 ? version.len : 40), version.ptr);
	return read_minimal(s, root, err);
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct java_samples *s = state;

	s->sink = sink;
	s->arena = a;
	s->samples = tw_samples_new(a, limits, sink);
	tw_json_text_init(&s->text, a, sink, "file of Java stacks");
	return s->samples ? TW_OK : tw_oom(err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct java_samples *s = state;

	return tw_json_text_push(&s->text, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct java_samples *s = state;
	enum tw_status st = tw_json_text_each(&s->text, cut, read_document, s, err);

	if (st == TW_OK)
		st = tw_samples_emit(s->samples, s->interval_ns, err);
	if (st == TW_OK && tw_samples_count(s->samples) == 0)
		return tw_fail_at(err, TW_CORRUPT, 0,
		        "no sample with a time and a stack in this file of Java stacks");
	return st;
}

const struct tw_format tw_format_java_samples = {
        .name = "java_samples",
        .title = "Java stack samples (JSON)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct java_samples),
        .start = start,
        .push = push,
        .finish = finish,
};
