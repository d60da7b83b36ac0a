#include "decoder/bundle.h"

#include <string.h>

#include "decoder/base/unpack.h"
#include "decoder/formats/sinks/aside_sink.h"
#include "decoder/formats/sinks/null_sink.h"

enum { MAX_FILES = 256, PROBE_BYTES = TW_DECODER_HEAD_BYTES };

enum role { ROLE_NONE, ROLE_NAMES, ROLE_TRACE, ROLE_SIDE, ROLE_LAST = ROLE_SIDE };

struct file {
	const struct tw_format *format; /* NULL: unknown */
	uint64_t bytes;
	enum role role;
	bool system; /* the device's own trace */
};

struct walk {
	const struct tw_bundle_task *task;
	struct file files[MAX_FILES];
	uint32_t n, now; /* files seen; the current one */
	enum role role;  /* the role to decode in this pass; ROLE_NONE: only recognise files */
	struct tw_arena *scratch;
	struct tw_sink nothing;
	struct tw_decoder *decoder; /* for the current file; NULL if it is not wanted */
	uint64_t probed, bytes;
	bool whole;
};

/* --- one file --- */

static struct tw_decoder *decoder_for(struct walk *w, const struct file *f)
{
	const struct tw_bundle_task *t = w->task;
	struct tw_limits left = *t->limits;
	struct tw_sink *sink = t->sink;

	/* the limit applies to all compressed files of the archive together */
	left.max_decoded_bytes -=
	        w->bytes < left.max_decoded_bytes ? w->bytes : left.max_decoded_bytes;

	if (w->role == ROLE_NONE)
		return tw_decoder_new(w->scratch, t->limits, NULL, NULL, &w->nothing);
	if (w->role == ROLE_SIDE && tw_format_fits(f->format, "anr"))
		sink = tw_aside_sink_new(t->arena, sink);
	return sink ? tw_decoder_new(t->arena, &left, f->format, NULL, sink) : NULL;
}

static void emit_side(const struct walk *w, const struct file *f)
{
	const struct tw_bundle_task *t = w->task;
	enum tw_bundle_side what = TW_BUNDLE_SIDE;

	if (f->system)
		what = TW_BUNDLE_SYSTEM;
	else if (tw_format_fits(f->format, "anr"))
		what = TW_BUNDLE_ANR;
	if (t->side)
		t->side(t->arg, what);
}

static enum tw_status begin(void *arg, uint32_t index, struct tw_str name, struct tw_err *err)
{
	struct walk *w = arg;

	(void)name; /* only the content decides */
	w->now = index;
	w->probed = 0;
	if (index >= MAX_FILES)
		return TW_OK;
	if (w->role == ROLE_NONE)
		w->files[w->n++] = (struct file){0};
	else if (w->files[index].role != w->role)
		return TW_OK;
	if (w->role == ROLE_SIDE)
		emit_side(w, &w->files[index]);
	w->decoder = decoder_for(w, &w->files[index]);
	return w->decoder ? TW_OK : tw_oom(err);
}

/* The format of its first bytes.  Errors appear when it is decoded, so they are ignored here,
 * except that a lack of memory does not make a file unknown. */
static enum tw_status recognise(struct walk *w, struct tw_err *err)
{
	struct file *f = &w->files[w->now];
	enum tw_status st = tw_decoder_finish(w->decoder, NULL);

	f->format = tw_decoder_format(w->decoder);
	w->decoder = tw_decoder_free(w->decoder);
	tw_arena_reset(w->scratch);
	return st == TW_NOMEM ? tw_fail(err, st, "out of memory while reading the archive") : TW_OK;
}

static enum tw_status probe_file(struct walk *w, const uint8_t *p, size_t n, struct tw_err *err)
{
	size_t room = PROBE_BYTES - (size_t)w->probed;
	size_t take = n < room ? n : room;

	if (tw_decoder_push(w->decoder, p, take, NULL) != TW_OK)
		take = PROBE_BYTES - (size_t)w->probed;
	w->probed += take;
	return w->probed == PROBE_BYTES ? recognise(w, err) : TW_OK;
}

static void close_decoder(struct walk *w)
{
	if (w->decoder)
		w->bytes += tw_decoder_bytes(w->decoder);
	w->decoder = tw_decoder_free(w->decoder);
}

/* Damage to a side file loses only that file. */
static enum tw_status tolerate_side_damage(struct walk *w, enum tw_status st)
{
	struct tw_sink *s = w->task->sink;

	if (st == TW_OK || w->role == ROLE_TRACE || st == TW_NOMEM)
		return st;
	s->ops->repair(s, TW_REPAIR_side_file_unreadable, TW_NO_OFFSET, 1);
	close_decoder(w);
	return TW_OK;
}

/* Files are kept even if their decoder has failed. */
static enum tw_status keep(const struct walk *w, const uint8_t *p, size_t n, struct tw_err *err)
{
	const struct tw_bundle_task *t = w->task;

	if (w->role != ROLE_SIDE || !w->files[w->now].system || !t->keep)
		return TW_OK;
	return t->keep(t->arg, p, n, err);
}

static enum tw_status data(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct walk *w = arg;
	enum tw_status st;

	if (w->now >= MAX_FILES)
		return TW_OK;
	w->files[w->now].bytes += w->role == ROLE_NONE ? n : 0;
	st = keep(w, p, n, err);
	if (st != TW_OK || !w->decoder)
		return st;
	if (w->role == ROLE_NONE)
		return probe_file(w, p, n, err);
	return tolerate_side_damage(w, tw_decoder_push(w->decoder, p, n, err));
}

static enum tw_status end(void *arg, bool cut, struct tw_err *err)
{
	struct walk *w = arg;
	struct tw_sink *s = w->task->sink;
	enum tw_status st;

	if (!w->decoder)
		return TW_OK;
	if (w->role == ROLE_NONE)
		return recognise(w, err);
	if (cut)
		s->ops->repair(s, TW_REPAIR_input_truncated, TW_NO_OFFSET, 1);
	st = tolerate_side_damage(w, tw_decoder_finish(w->decoder, err));
	close_decoder(w);
	return st;
}

/* --- passes over the archive --- */

static enum tw_status push_unpack(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_unpack_push(arg, p, n, err);
}

static enum tw_status push_unzip(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_unzip_push(arg, p, n, err);
}

static enum tw_status pass(struct walk *w, enum role role, struct tw_err *err)
{
	static const struct tw_unpack_ops ops = {begin, data, end};
	const struct tw_bundle_task *t = w->task;
	struct tw_unpack *u = tw_unpack_new(t->arena, t->limits, &ops, w);
	struct tw_unzip *z = u ? tw_unzip_new(t->arena, t->limits, push_unpack, u) : NULL;
	enum tw_unzip_end how;
	enum tw_status st = z ? TW_OK : tw_oom(err);

	w->role = role;
	if (st == TW_OK)
		st = t->feed(t->arg, push_unzip, z, err);
	if (st == TW_OK)
		st = tw_unzip_finish(z, &how, err);
	if (st == TW_OK)
		st = tw_unpack_finish(u, &w->whole, err);
	w->decoder = tw_decoder_free(w->decoder);
	tw_unzip_free(z);
	tw_unpack_free(u);
	return st;
}

static bool is_side(const struct tw_format *f)
{
	return tw_format_fits(f, "atrace") || tw_format_fits(f, "anr") ||
	       tw_format_fits(f, "system");
}

/* Rates how suitable a file is as the main trace. */
static int rank(const struct file *f)
{
	if (!f->format || !tw_format_fits(f->format, "trace") ||
	        strcmp(f->format->name, "bundle") == 0)
		return 0;
	/* a format for side files is the trace only if there is no other */
	return is_side(f->format) ? 1 : 2;
}

static struct file *choose(struct walk *w)
{
	struct file *best = NULL;

	for (uint32_t i = 0; i < w->n; i++) {
		struct file *f = &w->files[i];

		if (rank(f) && (!best || rank(f) > rank(best) ||
		                       (rank(f) == rank(best) && f->bytes > best->bytes)))
			best = f;
	}
	return best;
}

/* The device's trace to merge: Perfetto's own format can be merged, text cannot. */
static void choose_system(struct walk *w, const struct file *trace)
{
	struct file *best = NULL;

	for (uint32_t i = 0; i < w->n; i++) {
		struct file *f = &w->files[i];
		bool text = f->format && tw_format_fits(f->format, "atrace");

		if (f == trace || !f->format || !tw_format_fits(f->format, "system"))
			continue;
		if (!best ||
		        (tw_format_fits(best->format, "atrace") != text ? !text
		                                                        : f->bytes > best->bytes))
			best = f;
	}
	if (best)
		best->system = true;
}

static enum role role_of(const struct walk *w, const struct file *f)
{
	if (f->system && w->task->without_system)
		return ROLE_NONE;
	if (!f->format)
		return ROLE_NONE;
	if (tw_format_fits(f->format, "threads") || tw_format_fits(f->format, "binder"))
		return ROLE_NAMES;
	return is_side(f->format) ? ROLE_SIDE : ROLE_NONE;
}

static void give_roles(struct walk *w, struct file *trace)
{
	struct tw_sink *s = w->task->sink;

	choose_system(w, trace);
	for (uint32_t i = 0; i < w->n; i++) {
		struct file *f = &w->files[i];

		f->role = f == trace ? ROLE_TRACE : role_of(w, f);
		if (f->role == ROLE_NONE)
			s->ops->repair(s, TW_REPAIR_entry_skipped, TW_NO_OFFSET, 1);
	}
	if (!w->whole)
		s->ops->repair(s, TW_REPAIR_input_truncated, TW_NO_OFFSET, 1);
}

static enum tw_status decode(struct walk *w, const struct tw_format **ret, struct tw_err *err)
{
	enum tw_status st = pass(w, ROLE_NONE, err);
	struct file *trace = st == TW_OK ? choose(w) : NULL;

	if (st != TW_OK)
		return st;
	if (!trace)
		return tw_fail_at(err, TW_UNSUPPORTED, 0,
		        "none of the %u files in this archive is a trace in a known format", w->n);
	give_roles(w, trace);
	for (int role = ROLE_NAMES; st == TW_OK && role <= ROLE_LAST; role++)
		st = pass(w, (enum role)role, err);
	*ret = trace->format;
	return st;
}

enum tw_status tw_bundle_decode(const struct tw_bundle_task *task,
        const struct tw_format **ret_format, uint64_t *ret_bytes, struct tw_err *err)
{
	struct walk *w = tw_arena_zalloc(task->arena, 1, sizeof *w);
	const struct tw_format *format = NULL;
	enum tw_status st;

	if (!w)
		return tw_oom(err);
	w->task = task;
	w->nothing = tw_null_sink();
	w->scratch = tw_arena_new(task->limits->max_memory_bytes);
	st = w->scratch ? decode(w, &format, err) : tw_oom(err);
	tw_arena_free(w->scratch);
	if (st == TW_OK) {
		*ret_format = format;
		*ret_bytes = w->bytes;
	}
	return st;
}

/* --- recognition --- */

struct head {
	size_t n;
	uint8_t bytes[TW_PROBE_BYTES];
};

static enum tw_status add_to_head(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct head *h = arg;
	const size_t take = n < sizeof h->bytes - h->n ? n : sizeof h->bytes - h->n;

	(void)err;
	memcpy(h->bytes + h->n, p, take);
	h->n += take;
	return take == n ? TW_OK : TW_FULL; /* the head is complete */
}

bool tw_bundle_is(const void *head, size_t n, const struct tw_limits *limits)
{
	struct tw_arena *a = tw_arena_new(SIZE_MAX);
	struct head h = {.n = 0};
	struct tw_unzip *z = a ? tw_unzip_new(a, limits, add_to_head, &h) : NULL;
	const struct tw_format *f;
	enum tw_unzip_end end;

	if (z && tw_unzip_push(z, head, n, NULL) == TW_OK) /* all of it was needed */
		(void)tw_unzip_finish(z, &end, NULL);
	tw_unzip_free(z);
	tw_arena_free(a);
	f = tw_format_probe(h.bytes, h.n);
	return f && strcmp(f->name, "bundle") == 0;
}
