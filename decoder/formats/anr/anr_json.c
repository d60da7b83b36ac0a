/*
 * anr_json.c - ANR events of monitoring services as JSON, in the form of Measure's SDK and server.
 *
 *   { "exceptions": [ { "type", "message", "frames": [ FRAME ] } ],
 *     "threads": [ { "name", "frames": [ FRAME ] } ], "foreground": true }
 *   [ { "type": "anr", "exception_types": [ ".." ], "exception_frames": [ [ FRAME ] ],
 *       "thread_frames": [ [ FRAME ] ] } ]
 *   FRAME: { "class_name", "method_name", "file_name", "line_num" }, top first; line -2 is native
 *
 * The first exception is the stack of the main thread.  One event is one sample; several, in an
 * array or one after another, are samples at intervals.  The result uses the same model as a dump
 * (anr_model.h), without states and locks.  Threads have no ids: they are numbered in order.
 * Learned from measure-sh/measure.
 */
#include <stdio.h>

#include "decoder/formats/anr/anr_model.h"
#include "decoder/formats/anr/anr_report.h"
#include "decoder/formats/format.h"
#include "decoder/formats/json/json_text.h"

enum { NAME_BYTES = 4096, LOCATION_BYTES = 512 };

struct anr_json {
	struct tw_json_text text;
	struct tw_anr model;
};

static int probe(const uint8_t *head, size_t len)
{
	bool one = tw_json_head_has(head, len, 1, "exceptions");
	bool several = tw_json_head_has(head, len, 2, "exceptions");
	bool stored = tw_json_head_has(head, len, 2, "exception_frames");

	if (!tw_json_head(head, len))
		return 0;
	if ((one || stored) && tw_json_head_has(head, len, 5, "class_name"))
		return 85;
	return several && tw_json_head_has(head, len, 6, "class_name") ? 85 : 0;
}

static struct tw_str printed(const char *buf, int n, size_t cap)
{
	return (struct tw_str){buf, n < 0 ? 0 : (size_t)n < cap ? (size_t)n : cap - 1};
}

static void add_frame(struct anr_json *s, const json_t *frame)
{
	struct tw_str cls = tw_json_text_of(frame, "class_name");
	struct tw_str method = tw_json_text_of(frame, "method_name");
	struct tw_str file = tw_json_text_of(frame, "file_name");
	struct tw_anr_line l = {.kind = TW_ANR_AT};
	char name[NAME_BYTES];
	char location[LOCATION_BYTES];
	int64_t line = 0;

	if (cls.len + method.len == 0)
		return;
	l.name = printed(name,
	        snprintf(name, sizeof name, "%.*s%s%.*s", (int)cls.len, cls.ptr,
	                cls.len && method.len ? "." : "", (int)method.len, method.ptr),
	        sizeof name);
	(void)tw_json_i64(json_object_get(frame, "line_num"), &line);
	if (line == -2)
		l.text = TW_STR("Native method");
	else if (line > 0 && file.len)
		l.text = printed(location,
		        snprintf(location, sizeof location, "%.*s:%lld", (int)file.len, file.ptr,
		                (long long)line),
		        sizeof location);
	else
		l.text = file;
	(void)tw_anr_add_frame(&s->model, &l, TW_NO_OFFSET);
}

static void add_thread(struct anr_json *s, struct tw_str name, uint64_t tid, const json_t *frames)
{
	struct tw_anr_line l = {.name = name, .tid = tid, .attached = true};

	if (!tw_anr_add_thread(&s->model, &l, TW_NO_OFFSET))
		return;
	for (size_t i = 0; i < json_array_size(frames); i++)
		add_frame(s, json_array_get(frames, i));
}

static void add_reason(struct anr_json *s, const json_t *event)
{
	const json_t *first = json_array_get(json_object_get(event, "exceptions"), 0);
	const json_t *type = json_array_get(json_object_get(event, "exception_types"), 0);
	uint32_t *reason = &s->model.facts[TW_ANR_FACT_reason];
	struct tw_str text = tw_json_text_of(first, "message");

	if (text.len == 0)
		text = tw_json_text_of(first, "type");
	if (text.len == 0 && json_is_string(type))
		text = (struct tw_str){json_string_value(type), json_string_length(type)};
	if (!*reason)
		*reason = tw_anr_text(&s->model, text, TW_NO_OFFSET);
}

static void read_event(struct anr_json *s, const json_t *event)
{
	const json_t *first = json_array_get(json_object_get(event, "exceptions"), 0);
	const json_t *main_frames = json_object_get(first, "frames");
	const json_t *threads = json_object_get(event, "threads");
	const json_t *stacks = json_object_get(event, "thread_frames");

	if (!main_frames)
		main_frames = json_array_get(json_object_get(event, "exception_frames"), 0);
	if (json_array_size(main_frames) + json_array_size(threads) + json_array_size(stacks) == 0)
		return;
	if (!tw_anr_add_dump(&s->model, 0, -1, TW_NO_OFFSET))
		return;
	add_reason(s, event);
	if (main_frames)
		add_thread(s, TW_STR("main"), 1, main_frames);
	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *t = json_array_get(threads, i);

		add_thread(s, tw_json_text_of(t, "name"), i + 2, json_object_get(t, "frames"));
	}
	for (size_t i = 0; i < json_array_size(stacks); i++)
		add_thread(s, TW_STR(""), i + 2, json_array_get(stacks, i));
}

static enum tw_status read_document(void *state, json_t *doc, struct tw_err *err)
{
	struct anr_json *s = state;

	if (json_is_object(doc))
		read_event(s, doc);
	for (size_t i = 0; i < json_array_size(doc); i++)
		read_event(s, json_array_get(doc, i));
	if (s->model.no_memory)
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct anr_json *s = state;

	tw_json_text_init(&s->text, a, sink, "ANR event");
	if (!tw_anr_init(&s->model, a, limits, sink))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct anr_json *s = state;

	return tw_json_text_push(&s->text, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct anr_json *s = state;
	enum tw_status st = tw_json_text_each(&s->text, cut, read_document, s, err);

	if (st == TW_OK && s->model.n_frames == 0)
		return tw_fail_at(err, TW_CORRUPT, 0, "no readable stack in this ANR event");
	return st == TW_OK ? tw_anr_emit(&s->model, err) : st;
}

const struct tw_format tw_format_anr_json = {
        .name = "anr_json",
        .title = "ANR event (JSON)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct anr_json),
        .start = start,
        .push = push,
        .finish = finish,
};
