/*
 * trace_file_pack.c - compresses payloads to zstd frames.
 *
 * Columns have different distributions, so each one starts a new block.  Of a chunk's columns only
 * that of the calls repeats long sequences.  Its matches are found here, and more of them than by
 * zstd's fast search: a match starts at a call and is the longest of the last CANDIDATES places
 * where the same bytes begin.  The other columns are compressed without matches, so time is spent
 * where it saves bytes.  Trees and small chunks use zstd's search.
 */
#include "server/trace/trace_file_internal.h"

#include <string.h>

#include "decoder/base/codec_memory.h"
#include "decoder/trace/calltree.h"

enum {
	WORTH_A_BLOCK = 8 << 10,
	BLOCK_MAX = 128 << 10,
	BLOCK_HEADER_BYTES = 16,
	HASH_LOG = 14,
	MATCH_MIN = 6,
	CANDIDATES = 6,
	LONG_ENOUGH = 64, /* a match of this length ends the search */
	SKIP_LOG = 7,     /* after each 2^SKIP_LOG bytes without a match one more call is skipped */
	CALL_MAX = 10,
	LAST_BYTES = 16 /* of a block, where no match starts, as eight bytes are read at a time */
};

struct tw_packer {
	ZSTD_CCtx *zstd;
	/* Positions of calls in the payload; 0, where its header is: none. */
	uint32_t newest[1 << HASH_LOG]; /* by hash of their first MATCH_MIN bytes */
	uint32_t *older; /* with the same hash; by position / 2, as a call takes two */
	ZSTD_Sequence *sequences;
	size_t n, cap;
};

struct tw_packer *tw_packer_new(int zstd_level)
{
	struct tw_packer *p = tw_mem_zalloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->zstd = ZSTD_createCCtx();
	if (!p->zstd)
		return tw_packer_free(p);
	(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, zstd_level);
	(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
	(void)ZSTD_CCtx_setParameter(
	        p->zstd, ZSTD_c_blockDelimiters, ZSTD_sf_explicitBlockDelimiters);
	(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_searchForExternalRepcodes, ZSTD_ps_enable);
	return p;
}

struct tw_packer *tw_packer_free(struct tw_packer *p)
{
	if (!p)
		return NULL;
	(void)ZSTD_freeCCtx(p->zstd);
	tw_mem_free(p->older);
	tw_mem_free(p->sequences);
	tw_mem_free(p);
	return NULL;
}

struct ZSTD_CCtx_s *tw_packer_zstd(struct tw_packer *p)
{
	return p->zstd;
}

/* --- matches of calls --- */

static uint32_t hash(const uint8_t *call)
{
	uint64_t bytes = tw_u64le(call) << (64 - 8 * MATCH_MIN);

	return (uint32_t)((bytes * 0x9E3779B97F4A7C15u) >> (64 - HASH_LOG));
}

/* A call is two varints: the first nearly always of one byte, the second of one or two. */
static const uint8_t *next_call(const uint8_t *call)
{
	uint32_t w = tw_u32le(call);

	if ((w & 0x80) == 0 && (w & 0x808000) != 0x808000)
		return call + 2 + (w >> 15 & 1);
	for (int varint = 0; varint < 2; varint++)
		while (*call++ & 0x80)
			;
	return call;
}

/* Number of equal bytes from `a` and from `b` on, which is after a, up to `end`. */
static uint32_t equal_bytes(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
	const uint8_t *start = b;

	for (; end - b >= 8; a += 8, b += 8) {
		uint64_t different = tw_u64le(a) ^ tw_u64le(b);

		if (different)
			return (uint32_t)(b - start) + (uint32_t)__builtin_ctzll(different) / 8;
	}
	while (b < end && *a == *b)
		a++, b++;
	return (uint32_t)(b - start);
}

/* Returns the last call that had the hash before. */
static uint32_t remember(struct tw_packer *p, uint32_t hash, uint32_t call)
{
	uint32_t before = p->newest[hash];

	p->older[call / 2] = before;
	p->newest[hash] = call;
	return before;
}

struct match {
	uint32_t length, offset; /* offset 0: none */
};

/* The longest match of a call; of equal ones that with `last_offset`, which takes fewest bits, then
 * the nearest. */
static struct match longest_match(struct tw_packer *p, const uint8_t *payload, const uint8_t *call,
        const uint8_t *end, uint32_t last_offset)
{
	struct match best = {MATCH_MIN - 1, 0};
	uint32_t at = (uint32_t)(call - payload);
	uint32_t from = remember(p, hash(call), at);
	uint32_t length = last_offset ? equal_bytes(call - last_offset, call, end) : 0;

	if (length > best.length)
		best = (struct match){length, last_offset};
	for (int n = 0; from && n < CANDIDATES && best.length < LONG_ENOUGH; n++) {
		const uint8_t *last = call + best.length - 3; /* of a longer match */

		if (tw_u32le(last - at + from) == tw_u32le(last)) {
			length = equal_bytes(payload + from, call, end);
			if (length > best.length)
				best = (struct match){length, at - from};
		}
		from = p->older[from / 2];
	}
	return best;
}

static void add(struct tw_packer *p, size_t literals, struct match m)
{
	p->sequences[p->n++] = (ZSTD_Sequence){
	        .litLength = (unsigned)literals, .matchLength = m.length, .offset = m.offset};
}

static void end_block(struct tw_packer *p, size_t literals)
{
	add(p, literals, (struct match){0, 0});
}

/* Adds a block of the calls payload[first..end), which starts at `at`.  Returns its end. */
static const uint8_t *match_block(struct tw_packer *p, const uint8_t *payload, const uint8_t *first,
        const uint8_t *at, const uint8_t *end)
{
	bool is_last = end - at <= BLOCK_MAX;
	const uint8_t *limit = is_last ? end : at + BLOCK_MAX - CALL_MAX;
	const uint8_t *added = at; /* the bytes before */
	const uint8_t *call = at;
	uint32_t offset = 0;

	while (call < limit - LAST_BYTES) {
		struct match m = longest_match(p, payload, call, limit, offset);
		const uint8_t *start = call;

		call = next_call(call);
		if (m.offset == 0) { /* search less where nothing repeats */
			size_t skip = (size_t)(call - added) >> SKIP_LOG;

			for (; skip > 0 && call < limit - LAST_BYTES; skip--)
				call = next_call(call);
			continue;
		}
		offset = m.offset;
		while (start > added && start - offset > first && start[-1] == (start - offset)[-1])
			start--, m.length++;
		add(p, (size_t)(start - added), m);
		added = start + m.length;
		for (; call < added; call = next_call(call))
			if (call < limit - LAST_BYTES)
				(void)remember(p, hash(call), (uint32_t)(call - payload));
	}
	if (!is_last) /* calls are not cut */
		end = call;
	end_block(p, (size_t)(end - added));
	return end;
}

static void match_calls(struct tw_packer *p, const uint8_t *payload, size_t from, size_t to)
{
	const uint8_t *at = payload + from;

	memset(p->newest, 0, sizeof p->newest);
	while (at < payload + to)
		at = match_block(p, payload, payload + from, at, payload + to);
}

static void add_unmatched(struct tw_packer *p, size_t bytes)
{
	for (; bytes > BLOCK_MAX; bytes -= BLOCK_MAX)
		end_block(p, BLOCK_MAX);
	if (bytes)
		end_block(p, bytes);
}

static bool reserve(struct tw_packer *p, size_t len)
{
	size_t cap = len / MATCH_MIN + (size_t)4 * TW_CHUNK_CUTS; /* matches, and ends of blocks */

	if (cap > p->cap) {
		tw_mem_free(p->sequences);
		tw_mem_free(p->older);
		p->sequences = tw_mem_alloc(cap, sizeof *p->sequences);
		p->older = tw_mem_alloc(len / 2 + 1, sizeof *p->older);
		p->cap = p->sequences && p->older ? cap : 0;
	}
	return p->cap > 0;
}

/* --- frames --- */

static size_t compress_matched(struct tw_packer *p, const struct tw_buf *payload,
        const size_t cuts[TW_CHUNK_CUTS], struct tw_buf *frame)
{
	const size_t calls = cuts[TW_CHUNK_CALLS - 1];
	size_t from = cuts[TW_CHUNK_CALLS];
	size_t n;

	p->n = 0;
	add_unmatched(p, calls);
	match_calls(p, payload->data, calls, from);
	for (size_t i = TW_CHUNK_CALLS + 1; i < TW_CHUNK_CUTS; i++)
		if (cuts[i] - from >= WORTH_A_BLOCK || i + 1 == TW_CHUNK_CUTS) {
			add_unmatched(p, cuts[i] - from);
			from = cuts[i];
		}
	(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_minMatch, MATCH_MIN);
	n = ZSTD_compressSequences(
	        p->zstd, frame->data, frame->cap, p->sequences, p->n, payload->data, payload->len);
	(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_minMatch, 0); /* the level's */
	return n;
}

static size_t compress_piece(
        ZSTD_CCtx *z, ZSTD_outBuffer *out, const uint8_t *p, size_t n, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {p, n, 0};

	return ZSTD_compressStream2(z, out, &in, end);
}

static size_t compress_columns(struct tw_packer *p, const struct tw_buf *payload,
        const size_t *cuts, size_t n_cuts, struct tw_buf *frame)
{
	ZSTD_outBuffer out = {frame->data, frame->cap, 0};
	size_t from = 0;
	size_t left = 0;

	(void)ZSTD_CCtx_setPledgedSrcSize(p->zstd, payload->len);
	for (size_t i = 0; !ZSTD_isError(left) && i < n_cuts; i++) {
		if (cuts[i] - from < WORTH_A_BLOCK)
			continue;
		left = compress_piece(
		        p->zstd, &out, payload->data + from, cuts[i] - from, ZSTD_e_flush);
		from = cuts[i];
	}
	if (!ZSTD_isError(left))
		left = compress_piece(
		        p->zstd, &out, payload->data + from, payload->len - from, ZSTD_e_end);
	return left ? left : out.pos;
}

enum tw_status tw_packer_pack(struct tw_packer *p, bool is_tree, const struct tw_buf *payload,
        struct tw_buf *frame, struct tw_err *err)
{
	size_t cuts[TW_CHUNK_CUTS];
	size_t n_cuts = is_tree ? tw_tree_cuts(payload->data, payload->len, cuts)
	                        : tw_chunk_cuts(payload->data, payload->len, cuts);
	size_t n;

	tw_buf_clear(frame);
	if (tw_buf_reserve(frame, ZSTD_compressBound(payload->len) + n_cuts * BLOCK_HEADER_BYTES) !=
	        TW_OK)
		return tw_oom(err);
	(void)ZSTD_CCtx_reset(p->zstd, ZSTD_reset_session_only);
	if (is_tree || n_cuts == 0 ||
	        cuts[TW_CHUNK_CALLS] - cuts[TW_CHUNK_CALLS - 1] < WORTH_A_BLOCK)
		n = compress_columns(p, payload, cuts, n_cuts, frame);
	else if (reserve(p, payload->len))
		n = compress_matched(p, payload, cuts, frame);
	else
		return tw_oom(err);
	if (ZSTD_isError(n))
		return tw_fail(err, TW_BUG, "zstd: %s", ZSTD_getErrorName(n));
	frame->len = n;
	return TW_OK;
}
