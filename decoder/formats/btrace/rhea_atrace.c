/*
 * rhea_atrace.c - btrace 2.0's rhea-atrace.gz: system and library sections that accompany the
 * method trace.
 *
 * Lines as in rhea.h, with nine digits of CLOCK_MONOTONIC, the clock of the method trace: as part
 * "atrace" its sections nest among the methods of the same threads.  A method with parameter values
 * is here and not in the method trace.  The phone writes only B and E; binder calls get names from
 * binder.txt.
 */
#include "decoder/formats/btrace/rhea.h"
#include "decoder/formats/format.h"

static int probe(const uint8_t *head, size_t len)
{
	return tw_rhea_probe(head, len, 9);
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct tw_rhea *r = state;

	r->digits = 9;
	r->each = tw_rhea_emit;
	return tw_rhea_start(r, a, limits, sink, err);
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_lines_push(&((struct tw_rhea *)state)->lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	enum tw_status st = tw_rhea_end(state, cut, err);

	return st == TW_OK ? tw_rhea_finish(state, cut, err) : st;
}

const struct tw_format tw_format_rhea_atrace = {
        .name = "rhea_atrace",
        .title = "btrace 2.0 sections (rhea-atrace.gz)",
        .part = "trace atrace",
        .probe = probe,
        .state_size = sizeof(struct tw_rhea),
        .start = start,
        .push = push,
        .finish = finish,
};
