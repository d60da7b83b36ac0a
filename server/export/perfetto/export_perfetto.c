/*
 * export_perfetto.c - the file, pulled piece by piece: a plan, its packets, and what wraps them.
 *
 * The device's trace is written first, then ours, then facts about the file. If the device's
 * recorder wrote its file during the recording, it states repeatedly that all earlier packets are
 * complete, after which Perfetto drops older packets. In that case ours is inserted before the
 * first such statement. Its times use the clock of the device's trace, so it needs none of the
 * clock snapshots after it.
 */
#include "server/export/perfetto/export_perfetto.h"

#include <stdio.h>
#include <string.h>

#include "server/base/thread/parallel.h"
#include "server/export/perfetto/export_calls.h"
#include "server/export/perfetto/export_plan.h"
#include "server/export/perfetto/system/export_system.h"

enum { PIECE_BYTES = 256 << 10, FACTS = 256, COMPRESS_BYTES = 320 << 10 };
#define MERGE_MAX_BYTES ((uint64_t)192 << 20)
#define COLD_MAX_BYTES  ((size_t)64 << 20)

enum stage { BEGIN, FINALIZE, HEAD, SYSTEM, OURS, REST, TAIL, ENDED };

struct join {
	struct tw_plan *plan;
	bool with_system;
	bool origin_written;
	enum stage stage;
	struct tw_system_copy *copy;
	bool copied;        /* the device's trace was copied completely */
	struct tw_buf rest; /* packets of the device's trace to write after ours */
	uint32_t now;       /* index of our current trace */
	struct tw_side *side;
	struct tw_call_writer *calls;
	struct tw_buf piece; /* produced but not yet read */
	size_t taken;
	bool begun;          /* something was read */
	struct tw_buf loose; /* our packets, to be compressed */
};

/* --- the device's trace --- */

/* The copied range: the union of the ranges requested of our traces. */
static struct tw_system_range range_of(const struct tw_plan *p)
{
	struct tw_system_range r = {.cut = p->ours[0].sel.ranged, INT64_MAX, INT64_MIN};

	for (uint32_t i = 0; i < p->n && r.cut; i++) {
		const struct tw_export_trace *o = &p->ours[i];
		uint32_t at = 0;
		int64_t from = tw_clock_sync_time(&o->sync, &at, o->sel.from_ns);
		int64_t to = tw_clock_sync_time(&o->sync, &at, o->sel.to_ns);

		r.from_ns = from < r.from_ns ? from : r.from_ns;
		r.to_ns = to > r.to_ns ? to : r.to_ns;
	}
	return r;
}

static enum tw_status open_system(struct join *x, struct tw_err *err)
{
	const struct tw_system_range range = range_of(x->plan);

	return tw_system_copy_open(x->plan->system_fd, x->plan->system, &range, &x->copy, err);
}

/* Inserts ours at the gap; later packets of the device's trace wait in x->rest. */
static enum tw_status step_system(struct join *x, struct tw_err *err)
{
	enum tw_status st = x->copy ? TW_OK : open_system(x, err);
	size_t gap = SIZE_MAX;

	if (st == TW_OK)
		st = tw_system_copy_step(x->copy, &x->piece, &gap, &x->copied, err);
	if (st != TW_OK || gap == SIZE_MAX)
		return st;
	if (tw_buf_add(&x->rest, x->piece.data + gap, x->piece.len - gap) != TW_OK)
		return tw_oom(err);
	x->piece.len = gap;
	x->stage = OURS;
	return TW_OK;
}

static enum tw_status step_rest(struct join *x, struct tw_err *err)
{
	size_t gap;

	if (x->rest.len) {
		if (tw_buf_add(&x->piece, x->rest.data, x->rest.len) != TW_OK)
			return tw_oom(err);
		tw_buf_done(&x->rest);
		return TW_OK;
	}
	if (!x->copy || x->copied) {
		x->stage = TAIL;
		return TW_OK;
	}
	return tw_system_copy_step(x->copy, &x->piece, &gap, &x->copied, err);
}

/* --- ours --- */

/* Collects as many packets as several threads compress at once, except for the first bytes. */
static enum tw_status put_loose(struct join *x, bool all, struct tw_err *err)
{
	const bool zstd = x->plan->system && x->plan->system->has_zstd;
	const size_t least = all ? 1 : COMPRESS_BYTES;
	const size_t enough =
	        all || !x->begun ? least : (size_t)TW_BATCH_BYTES * tw_parallel_threads();

	while (x->loose.len >= enough) {
		if (tw_compress_packets(&x->loose, least, zstd, &x->piece) != TW_OK)
			return tw_oom(err);
	}
	return TW_OK;
}

static enum tw_status open_ours(struct join *x, struct tw_err *err)
{
	struct tw_export_trace *o = &x->plan->ours[x->now];
	uint32_t lanes;
	enum tw_status st;

	o->clipped = o->sides_left = 0;
	st = tw_side_new(o,
	        x->plan->system && o->machine == x->plan->ours[x->plan->system_of].machine,
	        &x->side, err);
	if (st == TW_OK)
		st = tw_call_writer_new(o, MERGE_MAX_BYTES, &x->calls, &lanes, err);
	return st;
}

/* Notes are written before calls, as they determine the flows that end at calls. */
static enum tw_status step_ours(struct join *x, struct tw_err *err)
{
	struct tw_buf *to =
	        x->plan->options.compression == TW_PERFETTO_PACKETS ? &x->loose : &x->piece;
	enum tw_status st = x->calls ? TW_OK : open_ours(x, err);
	bool done = false;

	if (st == TW_OK && x->side) {
		st = tw_side_step(x->side, to, &done, err);
		if (done)
			x->side = tw_side_free(x->side);
	} else if (st == TW_OK) {
		st = tw_call_writer_step(x->calls, to, &done, err);
		if (done) {
			x->calls = tw_call_writer_free(x->calls);
			x->side = tw_side_free(x->side);
			x->now++;
			if (x->now == x->plan->n)
				x->stage = REST;
		}
	}
	return st == TW_OK ? put_loose(x, x->stage != OURS, err) : st;
}

/* --- beginning and end --- */

struct facts {
	TwPerfetto__TraceAttribute each[FACTS];
	TwPerfetto__TraceAttribute *list[FACTS];
	char keys[FACTS][64];
	size_t n;
};

static void add_fact(void *arg, const char *key, const char *text, int64_t number)
{
	struct facts *t = arg;
	TwPerfetto__TraceAttribute *a;

	if (t->n == FACTS)
		return;
	a = t->list[t->n] = &t->each[t->n];
	tw_perfetto__trace_attribute__init(a);
	(void)snprintf(t->keys[t->n], sizeof t->keys[t->n], "%s", key);
	a->key = t->keys[t->n];
	a->string_value = (char *)(uintptr_t)text; /* protobuf-c only reads it */
	a->has_long_value = text == NULL;
	a->long_value = number;
	t->n++;
}

static enum tw_status put_facts(struct join *x, struct facts *t)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__TraceAttributes all = TW_PERFETTO__TRACE_ATTRIBUTES__INIT;

	all.n_attribute = t->n;
	all.attribute = t->list;
	p.trace_attributes = &all;
	return tw_track_put(&x->piece, &p);
}

/* If the plan takes a while to finalize, the file begins with the traces' origin. */
static enum tw_status put_begin(struct join *x, struct tw_err *err)
{
	struct facts *t;
	enum tw_status st;

	x->stage = x->plan->finalized ? HEAD : FINALIZE;
	if (x->plan->finalized)
		return TW_OK;
	t = tw_mem_zalloc(1, sizeof *t);
	if (!t)
		return tw_oom(err);
	tw_plan_origin(x->plan, add_fact, t);
	x->origin_written = true;
	st = put_facts(x, t);
	tw_mem_free(t);
	return st == TW_OK ? TW_OK : tw_oom(err);
}

/* Clock readings for a file without snapshots of the device: MONOTONIC with BOOTTIME, which
 * times use. Written first, also in an archive: Perfetto requires a file's clocks before its
 * first time. */
static enum tw_status put_head(struct join *x, struct tw_err *err)
{
	const struct tw_export_trace *o = &x->plan->ours[0];
	const struct tw_trace_info *i = tw_trace_file_info(o->file);
	const uint32_t ids[] = {TW_PERFETTO_BOOTTIME, TW_PERFETTO_MONOTONIC};
	int64_t boot = i->boot_base_ns >= 0 ? i->boot_base_ns : i->mono_base_ns;
	int64_t mono = i->mono_base_ns >= 0 ? i->mono_base_ns : i->boot_base_ns;
	uint32_t at = 0;

	x->stage = x->with_system && x->plan->system ? SYSTEM : OURS;
	if (x->stage == SYSTEM)
		return TW_OK;
	if (o->sync.clock == TW_PERFETTO_BOOTTIME)
		boot = tw_export_trace_time(o, &at, 0);
	else if (o->sync.clock == TW_PERFETTO_MONOTONIC)
		mono = tw_export_trace_time(o, &at, 0);
	return tw_track_put_clocks(&x->piece, ids,
	               (const int64_t[]){boot > 0 ? boot : 0, mono > 0 ? mono : 0}, 2) == TW_OK
	               ? TW_OK
	               : tw_oom(err);
}

static enum tw_status put_uuid(struct join *x)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__TraceUuid u = TW_PERFETTO__TRACE_UUID__INIT;
	uint64_t salt = x->plan->ours[0].salt;

	u.has_msb = u.has_lsb = 1;
	u.msb = (int64_t)tw_track_uuid(salt, TW_TRACK_TRACE, 0, 0);
	u.lsb = (int64_t)tw_track_uuid(salt, TW_TRACK_TRACE, 1, 0);
	p.trace_uuid = &u;
	return tw_track_put(&x->piece, &p);
}

/* Written last, when the number of omitted items is known. Of two uuids Perfetto uses the last. */
static enum tw_status put_tail(struct join *x, struct tw_err *err)
{
	struct facts *t = tw_mem_zalloc(1, sizeof *t);
	uint64_t clipped = 0;
	uint64_t sides_left = 0;
	enum tw_status st;

	if (!t)
		return tw_oom(err);
	if (!x->origin_written)
		tw_plan_origin(x->plan, add_fact, t);
	tw_plan_facts(x->plan, add_fact, t);
	for (uint32_t i = 0; i < x->plan->n; i++) {
		clipped += x->plan->ours[i].clipped;
		sides_left += x->plan->ours[i].sides_left;
	}
	add_fact(t, "slices_left_out_below_depth_512", NULL, (int64_t)clipped);
	if (sides_left)
		add_fact(t, "marks_left_out_or_cut", NULL, (int64_t)sides_left);
	st = put_uuid(x);
	if (st == TW_OK)
		st = put_facts(x, t);
	tw_mem_free(t);
	x->stage = ENDED;
	return st == TW_OK ? TW_OK : tw_oom(err);
}

/* --- reading --- */

static enum tw_status step(struct join *x, struct tw_err *err)
{
	switch (x->stage) {
	case BEGIN:
		return put_begin(x, err);
	case FINALIZE:
		x->stage = HEAD;
		return tw_plan_finalize(x->plan, err);
	case HEAD:
		return put_head(x, err);
	case SYSTEM:
		return step_system(x, err);
	case OURS:
		return step_ours(x, err);
	case REST:
		return step_rest(x, err);
	case TAIL:
		return put_tail(x, err);
	case ENDED:
		break;
	}
	return TW_OK;
}

static enum tw_status read_join(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct join *x = arg;
	enum tw_status st = TW_OK;
	size_t n;

	if (x->taken == x->piece.len) {
		tw_buf_clear(&x->piece);
		x->taken = 0;
		/* send the first bytes early */
		do
			st = step(x, err);
		while (st == TW_OK && x->stage != ENDED && x->piece.len < PIECE_BYTES &&
		        (x->begun || x->piece.len == 0));
		x->begun = true;
		if (st != TW_OK)
			return st;
	}
	n = x->piece.len - x->taken;
	if (n > cap)
		n = cap;
	if (n)
		memcpy(out, x->piece.data + x->taken, n);
	x->taken += n;
	*ret_n = n;
	return TW_OK;
}

static void free_join(void *arg)
{
	struct join *x = arg;

	tw_system_copy_close(x->copy);
	tw_call_writer_free(x->calls);
	tw_side_free(x->side);
	tw_buf_done(&x->piece);
	tw_buf_done(&x->rest);
	tw_buf_done(&x->loose);
	tw_mem_free(x);
}

enum tw_status tw_join_open(
        struct tw_plan *plan, bool with_system, struct tw_pull *ret, struct tw_err *err)
{
	struct join *x = tw_mem_zalloc(1, sizeof *x);

	if (!x)
		return tw_oom(err);
	x->plan = plan;
	x->with_system = with_system;
	tw_buf_init(&x->piece, COLD_MAX_BYTES);
	tw_buf_init(&x->rest, COLD_MAX_BYTES);
	tw_buf_init(&x->loose, COLD_MAX_BYTES);
	*ret = (struct tw_pull){read_join, free_join, x};
	return TW_OK;
}

/* --- the file --- */

struct tw_perfetto {
	struct tw_plan *plan;
	struct tw_pull pull;
};

enum tw_status tw_perfetto_open(const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *options, struct tw_perfetto **ret, struct tw_err *err)
{
	struct tw_perfetto *x = tw_mem_zalloc(1, sizeof *x);
	enum tw_status st;

	if (!x)
		return tw_oom(err);
	st = tw_plan_new(sources, n, options, &x->plan, err);
	if (st == TW_OK && options->form == TW_PERFETTO_TAR)
		st = tw_tar_open(x->plan, &x->pull, err);
	else if (st == TW_OK)
		st = tw_join_open(x->plan, true, &x->pull, err);
	if (st == TW_OK && (options->compression == TW_PERFETTO_GZIP ||
	                           options->compression == TW_PERFETTO_ZSTD)) {
		struct tw_pull inner = x->pull;

		x->pull = (struct tw_pull){0};
		st = tw_compress_open(inner, options->compression, &x->pull, err);
	}
	if (st == TW_OK)
		*ret = x;
	else
		tw_perfetto_close(x);
	return st;
}

enum tw_status tw_perfetto_read(
        struct tw_perfetto *x, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	return x->pull.read(x->pull.arg, out, cap, ret_n, err);
}

struct tw_perfetto *tw_perfetto_close(struct tw_perfetto *x)
{
	if (!x)
		return NULL;
	if (x->pull.free)
		x->pull.free(x->pull.arg);
	tw_plan_free(x->plan);
	tw_mem_free(x);
	return NULL;
}

const char *tw_perfetto_suffix(const struct tw_perfetto_options *o)
{
	static const char *const suffixes[][4] = {
	        [TW_PERFETTO_PLAIN] = {".perfetto-trace", ".perfetto-trace.gz",
	                ".perfetto-trace.zst", ".perfetto-trace"},
	        [TW_PERFETTO_TAR] = {".tar", ".tar.gz", ".tar.zst", ".tar"},
	};

	return suffixes[o->form][o->compression];
}
