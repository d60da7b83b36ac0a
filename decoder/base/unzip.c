/*
 * unzip.c - recognises and undoes compression, within limits.
 *
 * Stages form a chain, outermost first: stage 0 receives the input.  Each stage collects up to
 * SNIFF bytes, recognises them, and from then on passes, inflates or decompresses into the next
 * stage. The stage that finds no compression passes its bytes to the caller, so plain input is
 * copied only for its first few bytes.  Size and ratio are limited at the end of the chain and
 * after each stage: zstd has skippable frames and gzip members may be empty, so a stage may produce
 * gigabytes that never leave the chain.
 * Compressed input goes through the chain in granules: how much input a library has read for a
 * given output depends on how it is fed.
 */
#include "decoder/base/unzip.h"

#include <stdio.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>
/* for the custom allocator, so that memory is counted and tests can make it fail */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "decoder/base/buf.h"
#include "decoder/base/granule.h"

enum {
	SNIFF = 4,
	MAX_STAGES = 8,
	BLOCK_HEADER = 3, /* of zstd */
	FRAME_COST = 256, /* bytes charged for each further frame or member, as empty ones would be
	                   * free */
	FRAMES_FREE = 4096,
	RATIO_FLOOR = 1 << 20,
	RATIO_EVERY = 128 << 10
};

enum kind { KIND_UNKNOWN, KIND_PLAIN, KIND_ZSTD, KIND_ZLIB };

struct stage {
	enum kind kind;
	bool gzip;     /* KIND_ZLIB: further members can follow */
	bool in_frame; /* inside a frame or member: the end of input is premature */
	uint8_t head[SNIFF];
	unsigned n_head;
	ZSTD_DStream *zstd;
	size_t in_header; /* bytes of the zstd frame so far */
	size_t zstd_left; /* zstd's hint for the next input size; 0 between frames */
	z_stream zlib;
	uint64_t made;   /* bytes passed to the next stage */
	uint64_t frames; /* completed so far */
	uint8_t *out;
};

struct tw_unzip {
	struct tw_limits limits;
	tw_bytes_fn out;
	void *arg;
	tw_space_fn space; /* NULL: none */
	void *space_arg;
	struct stage stages[MAX_STAGES];
	struct tw_granules granules; /* of stage 0's input, once it is known to be compressed */
	uint64_t in_bytes, out_bytes;
	bool damaged;
	char kinds[64];
};

/* Mostly for the window. */
static void *zstd_alloc(void *arg, size_t size)
{
	(void)arg;
	return tw_mem_alloc_to_fill(size);
}

static void zstd_release(void *arg, void *p)
{
	(void)arg;
	tw_mem_free(p);
}

static voidpf zlib_alloc(voidpf arg, uInt n, uInt size)
{
	(void)arg;
	return tw_mem_alloc(n, size);
}

struct tw_unzip *tw_unzip_new(
        struct tw_arena *a, const struct tw_limits *limits, tw_bytes_fn out, void *arg)
{
	struct tw_unzip *z = tw_arena_zalloc(a, 1, sizeof *z);

	if (!z)
		return NULL;
	z->limits = *limits;
	z->out = out;
	z->arg = arg;
	return z;
}

void tw_unzip_write_to(struct tw_unzip *z, tw_space_fn space, void *arg)
{
	z->space = space;
	z->space_arg = arg;
}

struct tw_unzip *tw_unzip_free(struct tw_unzip *z)
{
	if (!z)
		return NULL;
	for (unsigned i = 0; i < MAX_STAGES; i++) {
		if (z->stages[i].zstd)
			(void)ZSTD_freeDStream(z->stages[i].zstd);
		if (z->stages[i].kind == KIND_ZLIB)
			(void)inflateEnd(&z->stages[i].zlib);
		tw_mem_free(z->stages[i].out);
	}
	tw_mem_free(z->granules.held);
	return NULL;
}

bool tw_unzip_is_zstd(const uint8_t p[4])
{
	uint32_t magic = tw_u32le(p);

	return magic == ZSTD_MAGICNUMBER ||
	       (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static bool is_zlib(const uint8_t *p)
{
	/* 32 KiB deflate window, valid header checksum, no preset dictionary */
	return p[0] == 0x78 && ((unsigned)p[0] << 8 | p[1]) % 31 == 0 && !(p[1] & 0x20);
}

static enum kind recognise(const struct stage *s)
{
	if (s->n_head < SNIFF)
		return KIND_PLAIN;
	if (tw_unzip_is_zstd(s->head))
		return KIND_ZSTD;
	if (s->head[0] == 0x1F && s->head[1] == 0x8B && s->head[2] == 8)
		return KIND_ZLIB;
	return is_zlib(s->head) ? KIND_ZLIB : KIND_PLAIN;
}

static void note_kind(struct tw_unzip *z, const char *name)
{
	size_t len = strlen(z->kinds);

	(void)snprintf(z->kinds + len, sizeof z->kinds - len, "%s%s", len ? "," : "", name);
}

static enum tw_status start_zstd(struct tw_unzip *z, struct stage *s, struct tw_err *err)
{
	ZSTD_customMem mem = {zstd_alloc, zstd_release, NULL};

	s->zstd = ZSTD_createDStream_advanced(mem);
	if (!s->zstd)
		return tw_oom(err);
	(void)ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, (int)z->limits.max_window_log);
	note_kind(z, "zstd");
	return TW_OK;
}

static enum tw_status start_zlib(struct tw_unzip *z, struct stage *s, struct tw_err *err)
{
	s->gzip = s->head[0] == 0x1F;
	s->zlib = (z_stream){.zalloc = zlib_alloc, .zfree = zstd_release};
	if (inflateInit2(&s->zlib, s->gzip ? 15 + 16 : 15) != Z_OK) {
		s->kind = KIND_PLAIN;
		return tw_oom(err);
	}
	note_kind(z, s->gzip ? "gzip" : "zlib");
	return TW_OK;
}

static enum tw_status start_stage(struct tw_unzip *z, unsigned at, struct tw_err *err)
{
	struct stage *s = &z->stages[at];
	enum kind kind = recognise(s);

	if (kind != KIND_PLAIN && (at >= z->limits.max_nesting || at + 1 >= MAX_STAGES))
		return tw_fail_at(err, TW_TOO_LARGE, 0, "compressed more than %u times over",
		        (unsigned)z->limits.max_nesting);
	s->kind = kind;
	if (kind == KIND_PLAIN)
		return TW_OK;
	s->out = tw_mem_alloc(TW_UNZIP_PIECE, 1);
	if (at == 0)
		z->granules.held = tw_mem_alloc(TW_GRANULE, 1);
	if (!s->out || !z->granules.held) {
		s->kind = KIND_UNKNOWN;
		return tw_oom(err);
	}
	return kind == KIND_ZSTD ? start_zstd(z, s, err) : start_zlib(z, s, err);
}

/* Checked when the output crosses a multiple of RATIO_EVERY, against the bytes that stage 0 has
 * consumed: with input in granules, neither depends on how it was split. */
static bool too_dense(const struct tw_unzip *z, uint64_t before, uint64_t after)
{
	return after > RATIO_FLOOR && before / RATIO_EVERY != after / RATIO_EVERY &&
	       after / z->limits.max_ratio > z->in_bytes;
}

static enum tw_status fail_dense(const struct tw_unzip *z, uint64_t bytes, struct tw_err *err)
{
	return tw_fail_at(err, TW_TOO_LARGE, bytes, "decompresses to more than %u times its size",
	        (unsigned)z->limits.max_ratio);
}

static enum tw_status fail_large(const struct tw_unzip *z, struct tw_err *err)
{
	return tw_fail_at(err, TW_TOO_LARGE, z->limits.max_decoded_bytes,
	        "larger than %llu bytes when decompressed",
	        (unsigned long long)z->limits.max_decoded_bytes);
}

static uint64_t work_of(const struct stage *s)
{
	return s->made + (s->frames ? s->frames - 1 : 0) * FRAME_COST;
}

/* Charged after the next stage took the bytes: at the last stage this is the limit of the
 * output. */
static enum tw_status charge(
        struct tw_unzip *z, struct stage *s, size_t bytes, bool frame, struct tw_err *err)
{
	const uint64_t before = work_of(s);
	uint64_t after;

	s->made += bytes;
	s->frames += frame;
	after = work_of(s);
	if (too_dense(z, before, after))
		return fail_dense(z, after, err);
	if (s->made > z->limits.max_decoded_bytes)
		return fail_large(z, err);
	if (s->frames > FRAMES_FREE && s->frames > z->limits.max_decoded_bytes / FRAME_COST)
		return tw_fail_at(err, TW_TOO_LARGE, z->out_bytes,
		        "compressed in more than %llu frames",
		        (unsigned long long)(z->limits.max_decoded_bytes / FRAME_COST));
	return TW_OK;
}

static enum tw_status deliver(struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err)
{
	uint64_t before = z->out_bytes;
	uint64_t space = z->limits.max_decoded_bytes - before;
	size_t fits = n < space ? n : (size_t)space;
	enum tw_status st;

	z->out_bytes += fits;
	if (too_dense(z, before, z->out_bytes))
		return fail_dense(z, z->out_bytes, err);
	st = fits ? z->out(z->arg, p, fits, err) : TW_OK;
	return st == TW_OK && fits < n ? fail_large(z, err) : st;
}

static enum tw_status push_stage(
        struct tw_unzip *z, unsigned at, const uint8_t *p, size_t n, struct tw_err *err);

/* Input of stage 0, counted when it is used. */
static void consume(struct tw_unzip *z, unsigned at, size_t n)
{
	if (at == 0)
		z->in_bytes += n;
}

/* Where a stage writes its output. */
static uint8_t *output_of(struct tw_unzip *z, unsigned at)
{
	const bool last = z->stages[at + 1].kind == KIND_PLAIN;
	uint8_t *space = last && z->space ? z->space(z->space_arg) : NULL;

	return space ? space : z->stages[at].out;
}

/*
 * The input for one zstd call, chosen so that damage costs only its block, however the input was
 * split.  A failing call discards its own output: at most one block per call, then.  And zstd
 * decodes a frame that it sees completely in one pass, without output if it is damaged: so header
 * bytes are passed one by one.
 */
static size_t zstd_portion(const struct stage *s)
{
	bool before_block;

	if (s->in_header < ZSTD_FRAMEHEADERSIZE_MAX)
		return 1;
	/* not called before the header, when zstd does not know the next input itself */
	before_block = s->zstd_left && ZSTD_nextInputType(s->zstd) == ZSTDnit_block;
	/* the hint includes the next block's header */
	return before_block && s->zstd_left > BLOCK_HEADER ? s->zstd_left - BLOCK_HEADER
	                                                   : s->zstd_left;
}

/* Returns errors not caused by the input; damage is recorded. */
static enum tw_status check_zstd(struct tw_unzip *z, size_t result, struct tw_err *err)
{
	ZSTD_ErrorCode code = ZSTD_getErrorCode(result);

	if (code == ZSTD_error_memory_allocation)
		return tw_oom(err);
	if (code == ZSTD_error_frameParameter_windowTooLarge)
		return tw_fail_at(err, TW_TOO_LARGE, z->out_bytes,
		        "its zstd window is larger than %u MiB: compress it without --long or "
		        "--ultra",
		        (1u << z->limits.max_window_log) >> 20);
	z->damaged = code != ZSTD_error_no_error;
	return TW_OK;
}

static enum tw_status zstd_step(struct tw_unzip *z, struct stage *s, ZSTD_outBuffer *out,
        ZSTD_inBuffer *in, size_t n, struct tw_err *err)
{
	size_t from = in->pos;
	size_t portion = zstd_portion(s);

	in->size = portion < n - from ? from + portion : n;
	s->zstd_left = ZSTD_decompressStream(s->zstd, out, in);
	s->in_frame = s->zstd_left != 0;
	s->in_header = s->in_frame ? s->in_header + in->pos - from : 0;
	return check_zstd(z, s->zstd_left, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) as deep as max_nesting allows */
static enum tw_status push_zstd(
        struct tw_unzip *z, unsigned at, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct stage *s = &z->stages[at];
	ZSTD_inBuffer in = {p, n, 0};
	bool more = n > 0;

	while (more && !z->damaged) {
		ZSTD_outBuffer out = {output_of(z, at), TW_UNZIP_PIECE, 0};
		size_t from = in.pos;
		enum tw_status st;

		st = zstd_step(z, s, &out, &in, n, err);
		if (st != TW_OK || z->damaged)
			return st;
		consume(z, at, in.pos - from);
		st = push_stage(z, at + 1, out.dst, out.pos, err);
		if (st == TW_OK)
			st = charge(z, s, out.pos, !s->in_frame, err);
		if (st != TW_OK)
			return st;
		/* a full output buffer may leave more inside zstd; consumed input with output space
		 * left does not */
		more = in.pos < n || out.pos == out.size;
	}
	return TW_OK;
}

static bool next_member(struct stage *s)
{
	return s->gzip && inflateReset(&s->zlib) == Z_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) as deep as max_nesting allows */
static enum tw_status push_zlib(
        struct tw_unzip *z, unsigned at, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct stage *s = &z->stages[at];
	bool more = n > 0;

	while (more && !z->damaged) {
		size_t piece = n < TW_UNZIP_PIECE ? n : TW_UNZIP_PIECE;
		uint8_t *out = output_of(z, at);
		enum tw_status st;
		int rc;

		s->zlib.next_in = (z_const Bytef *)(uintptr_t)p;
		s->zlib.avail_in = (uInt)piece;
		s->zlib.next_out = out;
		s->zlib.avail_out = TW_UNZIP_PIECE;
		rc = inflate(&s->zlib, Z_NO_FLUSH);
		if (rc == Z_MEM_ERROR)
			return tw_oom(err);
		p += piece - s->zlib.avail_in;
		n -= piece - s->zlib.avail_in;
		consume(z, at, piece - s->zlib.avail_in);
		st = push_stage(z, at + 1, out, TW_UNZIP_PIECE - s->zlib.avail_out, err);
		if (st == TW_OK)
			st = charge(
			        z, s, TW_UNZIP_PIECE - s->zlib.avail_out, rc == Z_STREAM_END, err);
		if (st != TW_OK)
			return st;
		s->in_frame = rc != Z_STREAM_END;
		more = n > 0 || s->zlib.avail_out == 0;
		if (rc == Z_STREAM_END && (n == 0 || !next_member(s)))
			more = false; /* bytes after a zlib stream are not part of it */
		else if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			z->damaged = true;
		else if (rc == Z_STREAM_END)
			s->in_frame = true;
	}
	return TW_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) as deep as max_nesting allows */
static enum tw_status push_known(
        struct tw_unzip *z, unsigned at, const uint8_t *p, size_t n, struct tw_err *err)
{
	switch (z->stages[at].kind) {
	case KIND_ZSTD:
		return push_zstd(z, at, p, n, err);
	case KIND_ZLIB:
		return push_zlib(z, at, p, n, err);
	case KIND_UNKNOWN:
	case KIND_PLAIN:
	default:
		consume(z, at, n);
		return deliver(z, p, n, err);
	}
}

/* NOLINTNEXTLINE(misc-no-recursion) as deep as max_nesting allows */
static enum tw_status push_stage(
        struct tw_unzip *z, unsigned at, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct stage *s = &z->stages[at];
	enum tw_status st;

	if (s->kind == KIND_UNKNOWN) {
		while (s->n_head < SNIFF && n > 0) {
			s->head[s->n_head++] = *p++;
			n--;
		}
		if (s->n_head < SNIFF)
			return TW_OK;
		st = start_stage(z, at, err);
		if (st == TW_OK)
			st = push_known(z, at, s->head, SNIFF, err);
		if (st != TW_OK)
			return st;
	}
	return n ? push_known(z, at, p, n, err) : TW_OK;
}

static enum tw_status push_granules(
        struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	const uint8_t *piece;
	size_t len;

	while (st == TW_OK && !z->damaged && tw_granules_next(&z->granules, &p, &n, &piece, &len))
		st = push_stage(z, 0, piece, len, err);
	return st;
}

enum tw_status tw_unzip_push(struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err)
{
	const struct stage *first = &z->stages[0];

	while (n > 0 && !z->damaged) {
		size_t space = first->kind == KIND_UNKNOWN ? SNIFF - first->n_head : TW_UNZIP_PIECE;
		size_t piece = n < space ? n : space;
		enum tw_status st;

		if (first->kind == KIND_ZSTD || first->kind == KIND_ZLIB)
			return push_granules(z, p, n, err);
		z->granules.at += piece;
		st = push_stage(z, 0, p, piece, err);
		if (st != TW_OK)
			return st;
		p += piece;
		n -= piece;
	}
	return TW_OK;
}

enum tw_status tw_unzip_finish(struct tw_unzip *z, enum tw_unzip_end *ret, struct tw_err *err)
{
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	size_t rest = tw_granules_rest(&z->granules);
	enum tw_status st = TW_OK;

	if (rest && !z->damaged)
		st = push_stage(z, 0, z->granules.held, rest, err);
	if (st != TW_OK)
		return st;
	for (unsigned at = 0; at < MAX_STAGES; at++) {
		struct stage *s = &z->stages[at];

		if (s->kind == KIND_PLAIN)
			break;
		if (s->kind == KIND_UNKNOWN) { /* shorter than any magic number: plain */
			s->kind = KIND_PLAIN;
			st = deliver(z, s->head, s->n_head, err);
			if (st != TW_OK)
				return st;
			break;
		}
		if (s->in_frame)
			end = TW_UNZIP_CUT;
	}
	*ret = z->damaged ? TW_UNZIP_DAMAGED : end;
	return TW_OK;
}

const char *tw_unzip_kinds(const struct tw_unzip *z)
{
	return z->kinds;
}

uint64_t tw_unzip_bytes(const struct tw_unzip *z)
{
	return z->out_bytes;
}

uint64_t tw_unzip_made(const struct tw_unzip *z)
{
	uint64_t most = z->out_bytes;

	for (unsigned i = 0; i < MAX_STAGES; i++)
		if (z->stages[i].made > most)
			most = z->stages[i].made;
	return most;
}
