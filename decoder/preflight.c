/*
 * preflight.c - checks the first bytes of an upload before it is accepted.
 *
 * Called only in limited child processes (the server's preflight.h, a bundle's decoder).  Runs the
 * real chain with a sink that stores nothing, so that it fails exactly as decoding would, with the
 * same message and offset.
 */
#include "decoder/decoder.h"
#include "decoder/formats/sinks/null_sink.h"

enum { PREFLIGHT_MEMORY = 160 << 20 /* a zstd window of 128 MiB and the chain */ };

static enum tw_status probe(struct tw_decoder *d, const void *head, size_t n, bool whole,
        const struct tw_format **ret_format, struct tw_err *err)
{
	enum tw_status st = tw_decoder_push(d, head, n, err);

	/* The head of a longer upload is truncated: missing data is not an error yet.  Finishing
	 * makes short heads be recognised too. */
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

	st = d ? probe(d, head, n, whole, ret_format, err) : tw_oom(err);
	tw_decoder_free(d);
	tw_arena_free(a);
	return st;
}
