/*
 * sentry.c - profiles of Sentry's SDKs and its profiling service as JSON.
 *
 * Sample format, versions 1 and 2 (also the `profile` object alone, and several documents, one per
 * line): profile.frames[], profile.stacks[][] of frame indexes leaf first, profile.samples[] of
 * stack_id, thread_id and a time: v1 elapsed_since_start_ns, v2 timestamp in seconds since 1970;
 * profile.thread_metadata names threads.  Samples are sorted by thread and time; equal outer frames
 * of consecutive samples continue (stacks.h); zero is v1's start, v2's first sample.  Sentry's own
 * pages use the last sample only as an end; here it lasts an interval.
 *
 * Legacy Android (no version): profile.events[] of action Enter, Exit or Unwind, thread_id,
 * method_id and time {Monotonic {wall, cpu}} or {Global} of secs and nanos since the start;
 * profile.methods[] names the ids.  It comes from the runtime's sampling, so its calls are samples.
 *
 * sampled_profile, sent by the Android SDK itself: an ART trace in base64, decoded as such; the
 * envelope adds transactions and measurements.
 *
 * Transactions become spans, measurements counters (truncated to integers).  Numbers may be
 * strings, and `profile` a string with JSON.  A line is kept if the file is not named after the
 * class (label.h).  Dropped: other lines, inlined frames of legacy methods, queues, device
 * facts. Learned from getsentry/vroom and sentry-java.
 */
#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/formats/format.h"
#include "decoder/formats/json/json_stacks.h"
#include "decoder/formats/label.h"

enum { NAME_BYTES = 2048, EVENTS = 256 };

#define SECOND_NS   ((int64_t)1000000000)
#define MAX_SECONDS ((int64_t)1 << 30)

struct sentry {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_limits limits;
	struct tw_json_text text;
	struct tw_samples *samples;
	bool has_zero; /* zero_s is set: by the first document with seconds since 1970 */
	double zero_s;
	struct tw_str inner; /* of sampled_profile */
	uint64_t read;       /* samples and events */
	uint32_t *described; /* tracks of legacy events */
	uint32_t n_described;
	struct tw_event batch[EVENTS];
	unsigned n_batch;
};

/* --- recognition --- */

static int probe(const uint8_t *head, size_t len)
{
	static const struct {
		const char *key;
		unsigned depth;
		int sure;
	} keys[] = {{"sampled_profile", 1, 90}, {"profiler_id", 1, 85}, {"profile_id", 1, 75},
	        {"chunk_id", 1, 85}, {"thread_metadata", 2, 85}, {"thread_metadata", 1, 80},
	        {"stack_id", 3, 85}, {"stack_id", 4, 85}, {"android_api_level", 1, 70},
	        {"method_id", 4, 80}, {"debug_meta", 1, 60}, {"transaction", 1, 55}};
	int best = 0;

	if (!tw_json_head(head, len))
		return 0;
	if (!tw_json_head_has(head, len, 1, "profile") &&
	        !tw_json_head_has(head, len, 1, "samples") &&
	        !tw_json_head_has(head, len, 1, "frames") &&
	        !tw_json_head_has(head, len, 1, "sampled_profile") &&
	        !tw_json_head_has(head, len, 1, "platform"))
		return 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].sure > best && tw_json_head_has(head, len, keys[i].depth, keys[i].key))
			best = keys[i].sure;
	return best;
}

/* --- names --- */

static void repair(struct sentry *s, enum tw_repair what)
{
	s->sink->ops->repair(s->sink, what, TW_NO_OFFSET, 1);
}

/* "a.b", or the only part present. */
static struct tw_str joined(char buf[NAME_BYTES], struct tw_str a, struct tw_str b)
{
	size_t n = a.len < NAME_BYTES / 2 ? a.len : NAME_BYTES / 2;
	size_t m = b.len < NAME_BYTES / 2 - 1 ? b.len : NAME_BYTES / 2 - 1;

	if (a.len == 0 || b.len == 0)
		return a.len ? a : b;
	memcpy(buf, a.ptr, n);
	buf[n] = '.';
	memcpy(buf + n + 1, b.ptr, m);
	return (struct tw_str){buf, n + 1 + m};
}

static uint32_t frame_sym(struct sentry *s, const json_t *frame)
{
	static const char *const instead[] = {"instruction_addr", "filename", "package"};
	struct tw_str name = tw_json_text_of(frame, "function");
	struct tw_str module = tw_json_text_of(frame, "module");
	struct tw_str file = tw_json_text_of(frame, "filename");
	char buf[NAME_BYTES];
	char placed[TW_FRAME_NAME_BYTES];
	int64_t line = 0;

	if (name.len)
		name = joined(buf, module, name);
	if (name.len && module.len && file.len &&
	        tw_json_i64(json_object_get(frame, "lineno"), &line) && line > 0)
		name = tw_frame_name_at(placed, name, file, (uint64_t)line);
	for (size_t i = 0; name.len == 0 && i < sizeof instead / sizeof *instead; i++)
		name = tw_json_text_of(frame, instead[i]);
	return s->sink->ops->name(s->sink, name.len ? name : TW_STR("(unknown)"));
}

/* Thread ids are numbers, possibly in strings; other words are hashed. */
static uint64_t tid_of_word(struct tw_str word)
{
	uint64_t tid;

	return tw_str_u64(word, UINT32_MAX, &tid) ? tid : tw_fnv32(word);
}

static uint64_t tid_of(const json_t *v)
{
	int64_t tid;

	if (json_is_string(v))
		return tid_of_word((struct tw_str){json_string_value(v), json_string_length(v)});
	return tw_json_i64(v, &tid) && tid > 0 ? (uint64_t)tid : 0;
}

static void name_threads(struct sentry *s, json_t *metadata)
{
	const char *key;
	json_t *v;

	json_object_foreach(metadata, key, v)
	{
		struct tw_str name = tw_json_text_of(v, "name");

		if (name.len)
			s->sink->ops->thread_name(s->sink, 0, tid_of_word(tw_str_of(key)), name);
	}
}

/* --- sample format --- */

static bool seconds(const json_t *v, double *ret)
{
	int64_t whole;

	if (json_is_number(v))
		*ret = json_number_value(v);
	else if (tw_json_i64(v, &whole))
		*ret = (double)whole;
	else
		return false;
	return *ret >= 0 && *ret < 1e11;
}

/* Seconds since 1970. */
static bool timestamp(const json_t *o, double *ret)
{
	if (!seconds(json_object_get(o, "timestamp_ms"), ret))
		return seconds(json_object_get(o, "timestamp"), ret);
	*ret /= 1000;
	return true;
}

/* Time of a sample or a measurement.  Seconds since 1970 are relative to s->zero_s. */
static bool time_of(const struct sentry *s, const json_t *o, int64_t *ret_ns)
{
	double at;

	if (tw_json_i64(json_object_get(o, "elapsed_since_start_ns"), ret_ns) ||
	        tw_json_i64(json_object_get(o, "relative_timestamp_ns"), ret_ns))
		return *ret_ns >= 0;
	if (!timestamp(o, &at))
		return false;
	at = (at - s->zero_s) * 1e9 + 0.5;
	*ret_ns = at < 0 || at > 1e18 ? -1 : (int64_t)at;
	return *ret_ns >= 0;
}

static void find_zero(struct sentry *s, const json_t *samples)
{
	bool found = false;

	for (size_t i = 0; !s->has_zero && i < json_array_size(samples); i++) {
		double at;

		if (!timestamp(json_array_get(samples, i), &at))
			continue;
		if (!found || at < s->zero_s)
			s->zero_s = at;
		found = true;
	}
	s->has_zero = s->has_zero || found;
}

static enum tw_status read_samples(struct sentry *s, const json_t *samples,
        const struct tw_json_stacks *stacks, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < json_array_size(samples); i++) {
		const json_t *o = json_array_get(samples, i);
		const json_t *thread = json_object_get(o, "thread_id");
		const struct tw_json_stack *stack =
		        tw_json_stacks_at(stacks, json_object_get(o, "stack_id"));
		struct tw_sample_piece p = {.offset = TW_NO_OFFSET};

		if (!stack || !thread || !time_of(s, o, &p.ts_ns)) {
			repair(s, TW_REPAIR_record_malformed);
			continue;
		}
		p.first = stack->first;
		p.n = stack->n;
		p.track = s->sink->ops->track(s->sink, 0, tid_of(thread), TW_TID_FULL);
		s->read++;
		if (p.track)
			st = tw_samples_add(s->samples, &p, err);
	}
	return st;
}

static enum tw_status read_profile(struct sentry *s, const json_t *profile, struct tw_err *err)
{
	const json_t *frames = json_object_get(profile, "frames");
	const json_t *samples = json_object_get(profile, "samples");
	size_t n = json_array_size(frames);
	uint32_t *syms = tw_arena_alloc(s->arena, n, sizeof *syms);
	struct tw_json_stacks stacks;
	enum tw_status st;

	if (!syms)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++)
		syms[i] = frame_sym(s, json_array_get(frames, i));
	find_zero(s, samples);
	st = tw_json_stacks_read(
	        &stacks, s->arena, s->samples, json_object_get(profile, "stacks"), syms, n, err);
	if (st == TW_OK)
		st = read_samples(s, samples, &stacks, err);
	name_threads(s, json_object_get(profile, "thread_metadata"));
	return st;
}

/* --- legacy Android --- */

static enum tw_status flush(struct sentry *s, struct tw_err *err)
{
	unsigned n = s->n_batch;

	s->n_batch = 0;
	return n ? s->sink->ops->events(s->sink, s->batch, n, err) : TW_OK;
}

/* {"secs":1,"nanos":5}; absent members are 0.  False: absent or invalid. */
static bool duration(const json_t *o, int64_t *ret_ns)
{
	int64_t secs = 0;
	int64_t nanos = 0;

	if (!json_is_object(o))
		return false;
	(void)tw_json_i64(json_object_get(o, "secs"), &secs);
	(void)tw_json_i64(json_object_get(o, "nanos"), &nanos);
	*ret_ns = secs * (secs >= 0 && secs < MAX_SECONDS ? SECOND_NS : 0) + nanos;
	return secs >= 0 && secs < MAX_SECONDS && nanos >= 0 && nanos < SECOND_NS;
}

static const json_t *either(const json_t *o, const char *a, const char *b)
{
	const json_t *v = json_object_get(o, a);

	return v ? v : json_object_get(o, b);
}

static bool event_times(const json_t *time, struct tw_event *ev)
{
	const json_t *both = either(time, "Monotonic", "monotonic");
	const json_t *wall =
	        both ? json_object_get(both, "wall") : either(time, "global", "Global");

	ev->cpu_ns = -1;
	if (!duration(json_object_get(both, "cpu"), &ev->cpu_ns))
		ev->cpu_ns = -1;
	if (duration(wall, &ev->ts_ns))
		return true;
	ev->ts_ns = ev->cpu_ns; /* it used the thread's own clock */
	return ev->ts_ns >= 0;
}

static enum tw_status describe(struct sentry *s, uint32_t track, struct tw_err *err)
{
	for (uint32_t i = 0; i < s->n_described; i++)
		if (s->described[i] == track)
			return TW_OK;
	if (!s->described)
		s->described =
		        tw_arena_alloc(s->arena, s->limits.max_threads, sizeof *s->described);
	if (!s->described)
		return tw_oom(err);
	if (s->n_described < s->limits.max_threads)
		s->described[s->n_described++] = track;
	s->sink->ops->source(s->sink, track, TW_SOURCE_SAMPLES, 0);
	return TW_OK;
}

static enum tw_status read_event(struct sentry *s, const json_t *o, struct tw_err *err)
{
	struct tw_str action = tw_json_text_of(o, "action");
	struct tw_event *ev = &s->batch[s->n_batch];
	int64_t method = 0;
	enum tw_status st;

	*ev = (struct tw_event){.offset = TW_NO_OFFSET};
	(void)tw_json_i64(json_object_get(o, "method_id"), &method);
	if (action.len == 0 || !event_times(json_object_get(o, "time"), ev)) {
		repair(s, TW_REPAIR_record_malformed);
		return TW_OK;
	}
	ev->kind = tw_str_eq(action, TW_STR("Enter")) ? TW_EV_BEGIN : TW_EV_END;
	ev->sym = s->sink->ops->method(s->sink, (uint64_t)method);
	ev->track = s->sink->ops->track(
	        s->sink, 0, tid_of(json_object_get(o, "thread_id")), TW_TID_FULL);
	s->read++;
	if (ev->track == 0 || ev->sym == 0)
		return TW_OK;
	st = describe(s, ev->track, err);
	s->n_batch++;
	return st == TW_OK && s->n_batch == EVENTS ? flush(s, err) : st;
}

static enum tw_status read_legacy(struct sentry *s, const json_t *profile, struct tw_err *err)
{
	const json_t *methods = json_object_get(profile, "methods");
	const json_t *threads = json_object_get(profile, "threads");
	const json_t *events = json_object_get(profile, "events");
	enum tw_status st = TW_OK;
	char buf[NAME_BYTES];

	for (size_t i = 0; i < json_array_size(methods); i++) {
		const json_t *m = json_array_get(methods, i);
		int64_t id = 0;

		(void)tw_json_i64(json_object_get(m, "id"), &id);
		s->sink->ops->method_name(s->sink, (uint64_t)id,
		        joined(buf, tw_json_text_of(m, "class_name"), tw_json_text_of(m, "name")));
	}
	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *t = json_array_get(threads, i);

		s->sink->ops->thread_name(
		        s->sink, 0, tid_of(json_object_get(t, "id")), tw_json_text_of(t, "name"));
	}
	for (size_t i = 0; st == TW_OK && i < json_array_size(events); i++)
		st = read_event(s, json_array_get(events, i), err);
	return st == TW_OK ? flush(s, err) : st;
}

/* --- transactions and measurements --- */

static enum tw_status note_transaction(struct sentry *s, const json_t *t, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_async, .offset = TW_NO_OFFSET};
	int64_t end;

	note.text = tw_json_text_of(t, "name");
	if (note.text.len == 0 || !tw_json_i64(json_object_get(t, "relative_end_ns"), &end))
		return TW_OK;
	(void)tw_json_i64(json_object_get(t, "relative_start_ns"), &note.ts_ns);
	if (note.ts_ns < 0 || end < note.ts_ns)
		return TW_OK;
	note.dur_ns = end - note.ts_ns;
	return s->sink->ops->note(s->sink, &note, err);
}

static enum tw_status note_measurement(
        struct sentry *s, const char *name, const json_t *m, struct tw_err *err)
{
	const json_t *values = json_object_get(m, "values");
	enum tw_status st = TW_OK;
	char buf[NAME_BYTES];

	for (size_t i = 0; st == TW_OK && i < json_array_size(values); i++) {
		const json_t *v = json_array_get(values, i);
		struct tw_note note = {
		        .kind = TW_NOTE_counter, .dur_ns = -1, .offset = TW_NO_OFFSET};

		note.text = joined(buf, tw_str_of(name), tw_json_text_of(m, "unit"));
		if (time_of(s, v, &note.ts_ns) &&
		        tw_json_i64(json_object_get(v, "value"), &note.value))
			st = s->sink->ops->note(s->sink, &note, err);
		else
			repair(s, TW_REPAIR_record_malformed);
	}
	return st;
}

static enum tw_status note_rest(struct sentry *s, const json_t *root, struct tw_err *err)
{
	const json_t *transactions = json_object_get(root, "transactions");
	json_t *measurements = json_object_get(root, "measurements");
	enum tw_status st = TW_OK;
	const char *name;
	json_t *m;

	for (size_t i = 0; st == TW_OK && i < json_array_size(transactions); i++)
		st = note_transaction(s, json_array_get(transactions, i), err);
	json_object_foreach(measurements, name, m)
	{
		if (st == TW_OK)
			st = note_measurement(s, name, m, err);
	}
	return st;
}

/* --- the SDK's payload: an ART trace in base64 --- */

/* Skips line ends; padding may be missing; reading stops at an invalid byte. */
static enum tw_status keep_inner(struct sentry *s, struct tw_str text, struct tw_err *err)
{
	uint8_t *out = tw_arena_alloc(s->arena, text.len / 4 + 1, 3);
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t len = 0;

	if (!out)
		return tw_oom(err);
	for (size_t i = 0; i < text.len && text.ptr[i] != '='; i++) {
		int digit = tw_base64_digit(text.ptr[i]);

		if (text.ptr[i] == '\r' || text.ptr[i] == '\n')
			continue;
		if (digit < 0) {
			repair(s, TW_REPAIR_input_corrupt);
			break;
		}
		bits = bits << 6 | (uint32_t)digit;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[len++] = (uint8_t)(bits >> n_bits);
		}
	}
	if (s->inner.len) { /* only one is decoded */
		repair(s, TW_REPAIR_record_malformed);
		return TW_OK;
	}
	s->inner = (struct tw_str){(const char *)out, len};
	s->read += len > 0;
	return TW_OK;
}

static struct tw_str inner(const void *state)
{
	const struct sentry *s = state;

	return s->inner;
}

/* --- documents --- */

static enum tw_status read_object(
        struct sentry *s, const json_t *root, const json_t *profile, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (json_is_array(json_object_get(profile, "events")))
		st = read_legacy(s, profile, err);
	else if (json_is_array(json_object_get(profile, "samples")))
		st = read_profile(s, profile, err);
	else if (json_is_string(json_object_get(root, "sampled_profile")))
		st = keep_inner(s, tw_json_text_of(root, "sampled_profile"), err);
	return st == TW_OK ? note_rest(s, root, err) : st;
}

static enum tw_status read_document(void *arg, json_t *root, struct tw_err *err)
{
	struct sentry *s = arg;
	const json_t *profile = json_object_get(root, "profile");
	json_error_t why;
	json_t *inner;
	enum tw_status st;

	if (!json_is_string(profile))
		return read_object(s, root, profile ? profile : root, err);
	inner = json_loadb(
	        json_string_value(profile), json_string_length(profile), JSON_ALLOW_NUL, &why);
	if (!inner) {
		repair(s, TW_REPAIR_record_malformed);
		return TW_OK;
	}
	st = read_object(s, root, inner, err);
	json_decref(inner);
	return st;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct sentry *s = state;

	s->sink = sink;
	s->arena = a;
	s->limits = *limits;
	s->samples = tw_samples_new(a, limits, sink);
	tw_json_text_init(&s->text, a, sink, "Sentry profile");
	return s->samples ? TW_OK : tw_oom(err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct sentry *s = state;

	return tw_json_text_push(&s->text, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct sentry *s = state;
	enum tw_status st = tw_json_text_each(&s->text, cut, read_document, s, err);

	if (st == TW_OK)
		st = tw_samples_emit(s->samples, 0, err);
	if (st == TW_OK && s->read == 0)
		return tw_fail_at(err, TW_CORRUPT, 0,
		        "no sample with a time and a stack in this Sentry profile");
	return st;
}

const struct tw_format tw_format_sentry = {
        .name = "sentry",
        .title = "Sentry profile (JSON)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct sentry),
        .start = start,
        .push = push,
        .finish = finish,
        .inner = inner,
};
