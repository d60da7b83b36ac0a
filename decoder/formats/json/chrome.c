/*
 * chrome.c - Chrome's JSON trace as a file, as written by Chrome, Catapult's tools and many others.
 *
 * Events are described in chrome_event.h, the reading of the text in chrome_text.h.
 */
#include "decoder/formats/format.h"
#include "decoder/formats/json/chrome_event.h"
#include "decoder/formats/json/chrome_text.h"

struct chrome {
	struct tw_ftrace trace;
	struct tw_chrome events;
};

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct chrome *s = state;

	if (!tw_ftrace_init(&s->trace, a, limits, sink) ||
	        !tw_chrome_init(&s->events, a, &s->trace))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_chrome_text_push(&((struct chrome *)state)->events.text, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct chrome *s = state;
	enum tw_status st = tw_chrome_text_finish(&s->events.text, cut, err);

	if (st == TW_OK)
		st = tw_chrome_finish(&s->events, err);
	if (st == TW_OK)
		st = tw_ftrace_finish(&s->trace, err);
	if (st == TW_OK && s->events.events + s->trace.events == 0)
		return tw_fail_at(err, TW_CORRUPT, s->events.text.offset,
		        "no event with a phase and a time in this Chrome trace");
	return st;
}

const struct tw_format tw_format_chrome = {
        .name = "chrome",
        .title = "Chrome trace (JSON)",
        .part = "trace",
        .probe = tw_chrome_probe,
        .state_size = sizeof(struct chrome),
        .start = start,
        .push = push,
        .finish = finish,
};
