/*
 * speedscope.c - speedscope's own file format, evented and sampled profiles.
 *
 *   {"shared": {"frames": [{"name"}]},
 *    "profiles": [{"type": "evented", "name", "unit", "startValue", "endValue",
 *                  "events": [{"type": "O" or "C", "frame", "at"}]},
 *                 {"type": "sampled", ..., "samples": [[frame, outermost first]], "weights"}]}
 *
 * A profile is a thread: its id is in its name (label.h), otherwise it is the profile's
 * number in the file.  Events are calls with their exact times; a sample lasts as long as its
 * weight.  A profile whose unit is not a time has counts.  Values before their profile's unit are
 * held until its end.  Files, lines and columns of frames are left out.  Learned from
 * jlfwong/speedscope, whose schema is public.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/formats/format.h"
#include "decoder/formats/json/json_stream.h"
#include "decoder/formats/json/json_text.h"
#include "decoder/formats/label.h"
#include "decoder/formats/stacks.h"

enum {
	SKIPPED,
	ROOT,
	SHARED,
	FRAMES,
	FRAME,
	PROFILES,
	PROFILE,
	EVENTS,
	EVENT,
	SAMPLES,
	SAMPLE,
	WEIGHTS
};

enum { BATCH = 256 };

/* Ids with the highest bit do not occur in a build's method mapping. */
#define FRAME_ID (UINT64_C(1) << 63)

struct value {
	double at;
	uint64_t offset;
	uint32_t frame;
	bool begin;
};

struct stack {
	uint64_t offset;
	uint32_t first, n; /* frames */
};

struct speedscope {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_json_stream json;
	struct tw_stacks *stacks;
	uint64_t read;  /* events and samples */
	uint64_t frame; /* index of the one being named */
	/* the profile being read */
	uint32_t profiles, track; /* track 0: its name has not been read */
	double start, scale;      /* of its values to nanoseconds; 0: unit not read yet */
	bool counts;
	struct value event;
	bool has_frame, has_at, has_type;
	struct tw_list held;    /* struct value: events before the unit */
	struct tw_list frames;  /* uint32_t: of samples */
	struct tw_list samples; /* struct stack */
	struct tw_list weights; /* double */
	struct tw_event batch[BATCH];
	unsigned n_batch;
};

static int probe(const uint8_t *head, size_t len)
{
	if (!tw_json_head(head, len))
		return 0;
	if (tw_json_head_has(head, len, 1, "$schema") && memmem(head, len, "speedscope", 10))
		return 97;
	if (tw_json_head_has(head, len, 1, "shared") && tw_json_head_has(head, len, 2, "frames"))
		return 70;
	return tw_json_head_has(head, len, 1, "profiles") &&
	                       (tw_json_head_has(head, len, 2, "startValue") ||
	                               tw_json_head_has(head, len, 3, "startValue"))
	               ? 85
	               : 0;
}

static void repair(struct speedscope *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, offset, 1);
}

/* False: outside the range of times. */
static bool to_ns(const struct speedscope *s, double at, int64_t *ret)
{
	double ns = at * s->scale;

	if (!(ns > -2e18 && ns < 2e18))
		return false;
	*ret = (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
	return true;
}

static uint32_t sym_of(struct speedscope *s, uint32_t frame)
{
	return s->sink->ops->method(s->sink, FRAME_ID | frame);
}

/* --- a profile --- */

static void name_profile(struct speedscope *s, struct tw_str label)
{
	struct tw_str name = label;
	uint64_t tid = s->profiles;

	(void)tw_thread_label(label, &name, &tid);
	if (name.len)
		s->sink->ops->thread_name(s->sink, 0, tid, name);
	s->track = s->sink->ops->track(s->sink, 0, tid, TW_TID_FULL);
}

static void set_unit(struct speedscope *s, struct tw_str unit)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
	        {"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}};

	s->scale = 1;
	s->counts = true;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (tw_str_eq(unit, tw_str_of(units[i].name))) {
			s->scale = units[i].ns;
			s->counts = false;
		}
}

static enum tw_status flush(struct speedscope *s, struct tw_err *err)
{
	unsigned n = s->n_batch;

	s->n_batch = 0;
	return n ? s->sink->ops->events(s->sink, s->batch, n, err) : TW_OK;
}

static enum tw_status emit(struct speedscope *s, const struct value *v, struct tw_err *err)
{
	struct tw_event *ev = &s->batch[s->n_batch];

	*ev = (struct tw_event){.kind = v->begin ? TW_EV_BEGIN : TW_EV_END,
	        .cpu_ns = -1,
	        .offset = v->offset,
	        .sym = sym_of(s, v->frame)};
	if (!to_ns(s, v->at, &ev->ts_ns) || ev->ts_ns < 0) {
		repair(s, TW_REPAIR_impossible_time, v->offset);
		return TW_OK;
	}
	s->read++;
	if (s->track == 0)
		name_profile(s, (struct tw_str){0});
	ev->track = s->track;
	if (ev->track == 0 || ev->sym == 0)
		return TW_OK;
	return ++s->n_batch == BATCH ? flush(s, err) : TW_OK;
}

static enum tw_status end_event(struct speedscope *s, struct tw_err *err)
{
	struct value *held;

	if (!s->has_frame || !s->has_at || !s->has_type) {
		repair(s, TW_REPAIR_record_malformed, s->event.offset);
		return TW_OK;
	}
	if (s->scale > 0 && s->track)
		return emit(s, &s->event, err);
	held = tw_list_add(&s->held, s->arena, sizeof *held);
	if (!held)
		return tw_oom(err);
	*held = s->event;
	return TW_OK;
}

static enum tw_status emit_samples(struct speedscope *s, struct tw_err *err)
{
	const struct stack *stacks = s->samples.items;
	const double *weights = s->weights.items;
	const uint32_t *frames = s->frames.items;
	struct tw_sample x = {.continued = true, .track = s->track};
	uint32_t *syms = tw_arena_alloc(s->arena, s->frames.n + 1, sizeof *syms);
	double at = s->start;
	enum tw_status st = TW_OK;

	if (!syms)
		return tw_oom(err);
	for (uint32_t i = 0; i < s->frames.n; i++)
		syms[i] = sym_of(s, frames[i]);
	for (uint32_t i = 0; st == TW_OK && i < s->samples.n; i++) {
		if (i >= s->weights.n || weights[i] < 0 || !to_ns(s, at, &x.ts_ns)) {
			repair(s, TW_REPAIR_record_malformed, stacks[i].offset);
			continue;
		}
		x.offset = stacks[i].offset;
		x.syms = syms + stacks[i].first;
		x.n = stacks[i].n;
		st = tw_stacks_add(s->stacks, &x, err);
		at += weights[i];
		s->read++;
	}
	x.n = 0;
	if (st == TW_OK && to_ns(s, at, &x.ts_ns))
		st = tw_stacks_add(s->stacks, &x, err);
	return st;
}

static enum tw_status end_profile(struct speedscope *s, struct tw_err *err)
{
	const struct value *held = s->held.items;
	bool empty = s->held.n == 0 && s->samples.n == 0;
	enum tw_status st = TW_OK;

	if (s->track == 0 && !empty)
		name_profile(s, (struct tw_str){0});
	if (s->scale <= 0)
		set_unit(s, (struct tw_str){0});
	for (uint32_t i = 0; st == TW_OK && i < s->held.n; i++)
		st = emit(s, &held[i], err);
	if (st == TW_OK)
		st = flush(s, err);
	if (st == TW_OK && s->samples.n && s->track)
		st = emit_samples(s, err);
	if (st == TW_OK && s->counts && s->track)
		s->sink->ops->source(s->sink, s->track, TW_SOURCE_COUNTS, 0);
	return st;
}

/* --- the text --- */

static const struct tw_json_container containers[] = {{ROOT, SHARED, "shared", TW_JSON_OBJECT},
        {ROOT, PROFILES, "profiles", TW_JSON_ARRAY}, {SHARED, FRAMES, "frames", TW_JSON_ARRAY},
        {FRAMES, FRAME, NULL, TW_JSON_OBJECT}, {PROFILES, PROFILE, NULL, TW_JSON_OBJECT},
        {PROFILE, EVENTS, "events", TW_JSON_ARRAY}, {EVENTS, EVENT, NULL, TW_JSON_OBJECT},
        {PROFILE, SAMPLES, "samples", TW_JSON_ARRAY}, {SAMPLES, SAMPLE, NULL, TW_JSON_ARRAY},
        {PROFILE, WEIGHTS, "weights", TW_JSON_ARRAY}, {0, ROOT, NULL, TW_JSON_OBJECT}};

static enum tw_status begin(struct speedscope *s, struct tw_json_value *v, struct tw_err *err)
{
	struct stack *stack;

	v->tag = tw_json_tag(containers, sizeof containers / sizeof *containers, v);
	switch (v->tag) {
	case FRAME:
		s->frame = v->index;
		break;
	case PROFILE:
		s->profiles++;
		s->track = 0;
		s->start = s->scale = 0;
		s->counts = false;
		s->held.n = s->frames.n = s->samples.n = s->weights.n = 0;
		break;
	case EVENT:
		s->event = (struct value){.offset = v->offset};
		s->has_frame = s->has_at = s->has_type = false;
		break;
	case SAMPLE:
		stack = tw_list_add(&s->samples, s->arena, sizeof *stack);
		if (!stack)
			return tw_oom(err);
		*stack = (struct stack){v->offset, s->frames.n, 0};
		break;
	default:
		break;
	}
	return TW_OK;
}

static void read_event(struct speedscope *s, const struct tw_json_value *v)
{
	double n;

	if (tw_str_eq(v->key, TW_STR("type"))) {
		s->event.begin = tw_str_eq(v->text, TW_STR("O"));
		s->has_type = s->event.begin || tw_str_eq(v->text, TW_STR("C"));
	} else if (tw_str_eq(v->key, TW_STR("at"))) {
		s->has_at = tw_json_real(v, &s->event.at);
	} else if (tw_str_eq(v->key, TW_STR("frame")) && tw_json_real(v, &n)) {
		s->has_frame = n >= 0 && n < UINT32_MAX;
		s->event.frame = s->has_frame ? (uint32_t)n : 0;
	}
}

static void read_profile(struct speedscope *s, const struct tw_json_value *v)
{
	if (tw_str_eq(v->key, TW_STR("name")) && v->kind == TW_JSON_STRING)
		name_profile(s, v->text);
	else if (tw_str_eq(v->key, TW_STR("unit")) && v->kind == TW_JSON_STRING)
		set_unit(s, v->text);
	else if (tw_str_eq(v->key, TW_STR("startValue")) && !tw_json_real(v, &s->start))
		s->start = 0;
}

static enum tw_status read_frame_of_sample(
        struct speedscope *s, const struct tw_json_value *v, struct tw_err *err)
{
	struct stack *stack = (struct stack *)s->samples.items + s->samples.n - 1;
	uint32_t *frame;
	double n;

	if (!tw_json_real(v, &n) || n < 0 || n >= UINT32_MAX) {
		repair(s, TW_REPAIR_record_malformed, v->offset);
		return TW_OK;
	}
	frame = tw_list_add(&s->frames, s->arena, sizeof *frame);
	if (!frame)
		return tw_oom(err);
	*frame = (uint32_t)n;
	stack->n++;
	return TW_OK;
}

static enum tw_status read_weight(
        struct speedscope *s, const struct tw_json_value *v, struct tw_err *err)
{
	double *weight = tw_list_add(&s->weights, s->arena, sizeof *weight);

	if (!weight)
		return tw_oom(err);
	if (!tw_json_real(v, weight))
		*weight = -1; /* counted with its sample */
	return TW_OK;
}

static enum tw_status take(void *arg, struct tw_json_value *v, struct tw_err *err)
{
	struct speedscope *s = arg;

	if (v->kind == TW_JSON_OBJECT || v->kind == TW_JSON_ARRAY)
		return begin(s, v, err);
	switch (v->in) {
	case FRAME:
		if (v->kind == TW_JSON_STRING && tw_str_eq(v->key, TW_STR("name")))
			s->sink->ops->method_name(s->sink, FRAME_ID | s->frame, v->text);
		return TW_OK;
	case PROFILE:
		if (v->kind == TW_JSON_END)
			return end_profile(s, err);
		read_profile(s, v);
		return TW_OK;
	case EVENT:
		if (v->kind == TW_JSON_END)
			return end_event(s, err);
		read_event(s, v);
		return TW_OK;
	case SAMPLE:
		return v->kind == TW_JSON_END ? TW_OK : read_frame_of_sample(s, v, err);
	case WEIGHTS:
		return v->kind == TW_JSON_END ? TW_OK : read_weight(s, v, err);
	default:
		return TW_OK;
	}
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct speedscope *s = state;

	s->sink = sink;
	s->arena = a;
	s->stacks = tw_stacks_new(a, limits, sink, 0);
	if (!s->stacks || !tw_json_stream_init(&s->json, a, sink, take, s))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct speedscope *s = state;

	return tw_json_stream_push(&s->json, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct speedscope *s = state;
	enum tw_status st = tw_json_stream_finish(&s->json, cut, err);

	if (st == TW_OK)
		st = tw_stacks_finish(s->stacks, err);
	if (st == TW_OK && s->read == 0)
		return tw_fail_at(
		        err, TW_CORRUPT, 0, "no event or sample in this speedscope profile");
	return st;
}

const struct tw_format tw_format_speedscope = {
        .name = "speedscope",
        .title = "speedscope profile (JSON)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct speedscope),
        .start = start,
        .push = push,
        .finish = finish,
};
