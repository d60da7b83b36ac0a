/*
 * decoder.c - the chain: unzip, then the recognised format, then the sink.
 *
 * The first TW_PROBE_BYTES decoded bytes are held back until the format is known (or the input
 * ends), then pushed with the rest, so that recognition does not depend on how the input was split
 * (I3).
 */
#include "decoder/decoder.h"

#include <string.h>

#include "decoder/base/ahead.h"
#include "decoder/formats/sinks/null_sink.h"
#include "decoder/symbols/map_text.h"

/* Of a piece that is worth decompressing in parallel, these bytes tell whether it is compressed. */
enum { WORTH_A_THREAD = 512 << 10, HEAD_BYTES = 4 << 10 };

struct tw_decoder {
	struct tw_arena *arena;
	struct tw_limits limits;
	struct tw_sink *sink;
	const char *part;
	const struct tw_format *format;
	void *state;
	struct tw_unzip *unzip;
	struct tw_ahead *ahead; /* NULL: decompresses in the caller's thread */
	bool wants_ahead;
	bool started;
	void (*on_format)(void *arg, const struct tw_format *format); /* may be NULL */
	void *on_format_arg;
	uint8_t head[TW_PROBE_BYTES];
	size_t n_head;
	struct tw_err failed; /* sticky; code TW_OK without a failure */
};

static enum tw_status unzipped(void *arg, const uint8_t *p, size_t n, struct tw_err *err);

struct tw_decoder *tw_decoder_new(struct tw_arena *a, const struct tw_limits *limits,
        const struct tw_format *forced, const char *part, struct tw_sink *sink)
{
	struct tw_decoder *d = tw_arena_zalloc(a, 1, sizeof *d);

	if (!d)
		return NULL;
	d->arena = a;
	d->limits = *limits;
	d->sink = sink;
	d->part = part;
	d->format = forced;
	d->unzip = tw_unzip_new(a, limits, unzipped, d);
	return d->unzip ? d : NULL;
}

struct tw_decoder *tw_decoder_free(struct tw_decoder *d)
{
	if (!d)
		return NULL;
	d->ahead = tw_ahead_free(d->ahead);
	d->unzip = tw_unzip_free(d->unzip);
	tw_mem_free(d->state);
	d->state = NULL;
	return NULL;
}

void tw_decoder_on_format(
        struct tw_decoder *d, void (*fn)(void *arg, const struct tw_format *format), void *arg)
{
	d->on_format = fn;
	d->on_format_arg = arg;
}

void tw_decoder_read_ahead(struct tw_decoder *d)
{
	d->wants_ahead = true;
}

/* For a build's mapping sent as a trace, the error names the right endpoint; for a heap dump, the
 * reason. */
static enum tw_status refuse_unknown(const struct tw_decoder *d, struct tw_err *err)
{
	const struct tw_str head = {(const char *)d->head, d->n_head};
	const char *belongs = tw_map_text_belongs(tw_map_text_of(head));

	if (tw_str_starts(head, TW_STR("JAVA PROFILE 1.0")))
		return tw_fail_at(err, TW_UNSUPPORTED, 0,
		        "a heap dump (HPROF) contains no method calls; open it in Android Studio");
	return tw_fail_at(err, TW_UNSUPPORTED, 0, "not a trace in a known format%s%s",
	        belongs ? "; " : "", belongs ? belongs : "");
}

static enum tw_status start_format(struct tw_decoder *d, struct tw_err *err)
{
	if (!d->format) {
		const struct tw_format *f = tw_format_probe(d->head, d->n_head);

		if (f && !tw_format_fits(f, d->part))
			return tw_fail_at(err, TW_UNSUPPORTED, 0, "%s does not belong in part %s",
			        f->title, d->part);
		d->format = f;
	}
	if (!d->format)
		return refuse_unknown(d, err);
	if (d->on_format)
		d->on_format(d->on_format_arg, d->format);
	/* not from the arena: the zeros of a large state are new pages, of which little is used */
	d->state = tw_mem_zalloc(1, d->format->state_size);
	if (!d->state)
		return tw_oom(err);
	d->started = true;
	return d->format->start(d->state, d->arena, &d->limits, d->sink, err);
}

static enum tw_status push_head(struct tw_decoder *d, struct tw_err *err)
{
	enum tw_status st = start_format(d, err);

	if (st == TW_OK)
		st = d->format->push(d->state, d->head, d->n_head, err);
	return st;
}

static enum tw_status decoded(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_decoder *d = arg;
	enum tw_status st;
	size_t take;

	if (!d->started) {
		take = sizeof d->head - d->n_head;
		if (take > n)
			take = n;
		memcpy(d->head + d->n_head, p, take);
		d->n_head += take;
		p += take;
		n -= take;
		if (d->n_head < sizeof d->head)
			return TW_OK;
		st = push_head(d, err);
		if (st != TW_OK)
			return st;
	}
	return n ? d->format->push(d->state, p, n, err) : TW_OK;
}

static enum tw_status unzipped(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_decoder *d = arg;

	return d->ahead ? tw_ahead_put(d->ahead, p, n, err) : decoded(d, p, n, err);
}

/* Called once the input is known to be compressed. */
static void start_ahead(struct tw_decoder *d)
{
	d->wants_ahead = false;
	d->ahead = tw_ahead_new(decoded, d);
	if (d->ahead)
		tw_unzip_write_to(d->unzip, tw_ahead_space, d->ahead);
}

static enum tw_status keep_failure(
        struct tw_decoder *d, enum tw_status st, const struct tw_err *why, struct tw_err *err)
{
	if (st != TW_OK) {
		d->failed = *why;
		tw_err_copy(err, why);
	}
	return st;
}

static enum tw_status failed_before(const struct tw_decoder *d, struct tw_err *err)
{
	if (d->failed.code != TW_OK)
		tw_err_copy(err, &d->failed);
	return d->failed.code;
}

static enum tw_status push(struct tw_decoder *d, const uint8_t *p, size_t n, struct tw_err *err)
{
	if (d->wants_ahead && *tw_unzip_kinds(d->unzip))
		start_ahead(d);
	return d->ahead ? tw_ahead_push(d->ahead, d->unzip, p, n, err)
	                : tw_unzip_push(d->unzip, p, n, err);
}

enum tw_status tw_decoder_push(struct tw_decoder *d, const void *p, size_t n, struct tw_err *err)
{
	const uint8_t *from = p;
	const size_t head = d->wants_ahead && n >= WORTH_A_THREAD ? HEAD_BYTES : 0;
	struct tw_err why = {0};
	enum tw_status st = failed_before(d, err);

	if (st != TW_OK)
		return st;
	if (head)
		st = push(d, from, head, &why);
	if (st == TW_OK)
		st = push(d, from + head, n - head, &why);
	return keep_failure(d, st, &why, err);
}

/* Decodes the contained format, which cannot contain another one: nesting is one level. */
static enum tw_status decode_inner(struct tw_decoder *d, struct tw_err *err)
{
	struct tw_str bytes = d->format->inner(d->state);
	const uint8_t *p = (const uint8_t *)bytes.ptr;
	const struct tw_format *f;
	enum tw_status st;
	void *state;

	if (bytes.len == 0)
		return TW_OK;
	f = tw_format_probe(p, bytes.len < TW_PROBE_BYTES ? bytes.len : TW_PROBE_BYTES);
	if (!f || f->inner || !tw_format_fits(f, d->part))
		return tw_fail_at(err, TW_UNSUPPORTED, 0,
		        "this %s does not contain a trace in a known format", d->format->title);
	state = tw_arena_zalloc(d->arena, 1, f->state_size);
	if (!state)
		return tw_oom(err);
	st = f->start(state, d->arena, &d->limits, d->sink, err);
	if (st == TW_OK)
		st = f->push(state, p, bytes.len, err);
	return st == TW_OK ? f->finish(state, false, err) : st;
}

static enum tw_status finish(struct tw_decoder *d, struct tw_err *err)
{
	enum tw_unzip_end end;
	enum tw_status st = d->ahead ? tw_ahead_finish(d->ahead, err) : TW_OK;
	uint64_t at;

	if (st == TW_OK)
		st = tw_unzip_finish(d->unzip, &end, err);
	if (st != TW_OK)
		return st;
	at = tw_unzip_bytes(d->unzip);
	if (at == 0 && end == TW_UNZIP_COMPLETE)
		return tw_fail_at(err, TW_BAD_REQUEST, 0, "the body is empty");
	if (at == 0)
		return tw_fail_at(err, TW_CORRUPT, 0,
		        "no byte could be decompressed: the data is damaged or truncated");
	if (!d->started) {
		st = push_head(d, err);
		if (st != TW_OK)
			return st;
	}
	if (end == TW_UNZIP_DAMAGED)
		d->sink->ops->repair(d->sink, TW_REPAIR_input_corrupt, at, 1);
	else if (end == TW_UNZIP_CUT)
		d->sink->ops->repair(d->sink, TW_REPAIR_input_truncated, at, 1);
	st = d->format->finish(d->state, end != TW_UNZIP_COMPLETE, err);
	return st == TW_OK && d->format->inner ? decode_inner(d, err) : st;
}

enum tw_status tw_decoder_finish(struct tw_decoder *d, struct tw_err *err)
{
	struct tw_err why = {0};
	enum tw_status st = failed_before(d, err);

	if (st != TW_OK)
		return st;
	st = finish(d, &why);
	return keep_failure(d, st, &why, err);
}

const struct tw_format *tw_decoder_format(const struct tw_decoder *d)
{
	return d->started ? d->format : NULL;
}

uint64_t tw_decoder_bytes(const struct tw_decoder *d)
{
	return tw_unzip_bytes(d->unzip);
}

/* --- preflight: only in limited child processes (the server's preflight.h, a bundle's decoder).
 * Runs the real chain with a sink that stores nothing, so that it fails exactly as decoding would,
 * with the same message and offset. --- */

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
