/*
 * preflight.c - a look at the first bytes of an upload, before it is accepted.
 *
 * Called in limited children only (judge.h of the server, a bundle's decoder).  Runs the real chain
 * with a sink that keeps nothing, so that what is refused here is what a worker would refuse, with
 * the same words and offset.
 */
#include "decoder/decoder.h"
#include "decoder/formats/null_sink.h"

enum { PREFLIGHT_MEMORY = 160 << 20 /* a zstd window of 128 MiB and the chain */ };

static enum tw_status look(struct tw_decoder *d, const void *head, size_t n, bool whole,
        const struct tw_format **ret_format, struct tw_err *err)
{
	enum tw_status st = tw_decoder_push(d, head, n, err);

	/* The head of a longer upload ends anywhere; what it lacks is not yet a fault, but what it
	 * is must show, and finishing brings that out of short heads too. */
	if (st == TW_OK)
		st = tw_decoder_finish(d, err);
	if (st == TW_CORRUPT && !whole && tw_decoder_format(d))
		st = TW_OK;
	if (st == TW_OK)
		*ret_format = tw_decoder_format(d);
	return st;
}

enum tw_status tw_decoder_preflight(const void *head, size_t n, bool whole,
        const struct tw_format *forced, const struct tw_limits *limits,
        const struct tw_format **ret_format, struct tw_err *err)
{
	struct tw_sink sink = tw_null_sink();
	struct tw_arena *a = tw_arena_new(PREFLIGHT_MEMORY);
	struct tw_decoder *d = a ? tw_decoder_new(a, limits, forced, NULL, &sink) : NULL;
	enum tw_status st;

	st = d ? look(d, head, n, whole, ret_format, err) : tw_oom(err);
	tw_decoder_free(d);
	tw_arena_free(a);
	return st;
}
