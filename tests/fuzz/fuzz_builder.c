/*
 * The builder gets arbitrary events, in the order and form of the input: four bytes per event.
 * The result is always a valid trace, and the same for the same events written by two threads, also
 * with most records in scratch.
 */
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder_internal.h"
#include "fuzz.h"
#include "oracle/trace_oracle.h"
#include "tests/fixtures/reported.h"
#include "tests/fixtures/scratch.h"

enum { STEP = 4, SYMS = 12, SHARED_FROM = 32 };

/* One event; now is the time that has passed. */
static void tell(struct tw_sink *s, const uint8_t *p, int64_t *now)
{
	struct tw_event ev = {.cpu_ns = p[0] & 0x40 ? *now / 2 : -1,
	        .kind = (enum tw_ev_kind)((p[0] & 0x3F) % (TW_EV_END_ALL + 1))};
	unsigned sym = p[1] % SYMS;

	*now += (int8_t)p[2];
	if (p[2] == 0x80)
		*now = (INT64_MAX - (1 << 30)) >>
		       (p[3] & 7); /* far off, also further than there is time */
	ev.ts_ns = *now;
	ev.dur_ns = (int64_t)p[3] << (p[1] >> 4);
	ev.track = s->ops->track(s, p[0] & 0x80, p[1] >> 4, (enum tw_tid_kind)(p[1] % 3));
	if (sym && sym < SYMS / 2)
		ev.sym = s->ops->method(s, sym);
	else if (sym)
		ev.sym = s->ops->name(s, (struct tw_str){&"abcdefghijklmnop"[sym], 3});
	(void)s->ops->events(s, &ev, 1, NULL);
}

/* Calls other than events. */
static void mention(struct tw_builder *b, const uint8_t *p, int64_t now)
{
	struct tw_sink *s = tw_builder_sink(b);
	struct tw_str text = {(const char *)p, STEP};
	struct tw_clock clock = {.pid = p[1],
	        .mono_base_ns = now,
	        .boot_base_ns = p[2] & 1 ? -1 : now / (p[3] + 1),
	        .session_ns = p[3]};

	switch (p[0] & 7) {
	case 0:
		s->ops->clock(s, &clock);
		break;
	case 1:
		tw_builder_next_input(b);
		break;
	case 2:
		s->ops->thread_name(s, p[2] & 0x80, p[1] >> 4, text);
		break;
	case 3:
		s->ops->thread_process(s, p[1] >> 4, p[2]);
		break;
	case 4:
		s->ops->source(s, p[1] & 15, (enum tw_source)(p[2] % 3), p[3]);
		break;
	case 5:
		s->ops->method_name(s, p[1] % SYMS, text);
		break;
	default:
		(void)s->ops->note(s,
		        &(struct tw_note){.kind = (enum tw_note_kind)(p[1] % TW_NOTE_COUNT),
		                .ts_ns = now,
		                .dur_ns = p[2] - 1,
		                .text = text},
		        NULL);
		break;
	}
}

static void feed(struct tw_builder *b, const uint8_t *p, size_t n)
{
	int64_t now = 1000;

	for (size_t at = 0; at + STEP <= n; at += STEP)
		if ((p[at] & 0x38) == 0x38)
			mention(b, p + at, now);
		else
			tell(tw_builder_sink(b), p + at, &now);
}

static void check(const uint8_t *p, size_t n, const struct tw_limits *limits)
{
	struct tw_builder *b = tw_builder_new(limits);
	struct trace_log log;

	FUZZ_CHECK(b);
	feed(b, p, n);
	trace_log_init(&log);
	if (tw_builder_write(b, &log.out, NULL) == TW_OK)
		trace_oracle_check(&log, limits);
	trace_log_done(&log);
	(void)tw_builder_free(b);
}

/* window_bytes 0: without scratch. */
static enum tw_status build(const uint8_t *p, size_t n, const struct tw_limits *limits,
        uint64_t window_bytes, struct reported *ret)
{
	struct tw_builder *b = tw_builder_new(limits);
	struct scratch s = {0};
	enum tw_status st;

	FUZZ_CHECK(b);
	b->shared_from = SHARED_FROM;
	if (window_bytes)
		scratch_begin(&s, b, window_bytes);
	feed(b, p, n);
	reported_init(ret);
	st = tw_builder_write(b, &ret->out, NULL);
	(void)tw_builder_free(b);
	if (window_bytes)
		scratch_done(&s);
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_limits limits = tw_limits_default();
	struct reported a, b;
	enum tw_status st;

	if (size == 0)
		return 0;
	limits.max_methods = data[0] & 1 ? 5 : 100;
	limits.max_threads = data[0] & 2 ? 3 : 100;
	limits.max_depth = data[0] & 4 ? 4 : 100;
	limits.max_notes = data[0] & 8 ? 3 : 100;
	limits.max_tree_nodes = data[0] & 16 ? 6 : 1000;
	limits.max_slices = data[0] & 32 ? 40 : 100000;
	check(data + 1, size - 1, &limits);
	st = build(data + 1, size - 1, &limits, 0, &a);
	FUZZ_CHECK(
	        st == build(data + 1, size - 1, &limits, (uint64_t)1 << (10 + data[0] / 64), &b));
	FUZZ_CHECK(a.calls == b.calls && a.bytes.len == b.bytes.len);
	FUZZ_CHECK(a.bytes.len == 0 || memcmp(a.bytes.data, b.bytes.data, a.bytes.len) == 0);
	reported_done(&a);
	reported_done(&b);
	return 0;
}
