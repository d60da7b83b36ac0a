/* trace_file_frames.c - passes payloads to another thread, through a relay (base/relay.h). */
#include "server/trace/trace_file_internal.h"

#include <zstd.h>

#include "decoder/base/arena.h"
#include "decoder/base/relay.h"
#include "decoder/trace/calltree.h"

enum {
	SLOTS = 4,
	WORTH_A_BLOCK = 8 << 10,
	BLOCK_HEADER_BYTES = 16,
	WORTH_A_THREAD = 64 << 10 /* payload bytes */
};

struct slot {
	struct tw_frame_info info;
	struct tw_buf payload;
};

struct tw_frames {
	tw_frame_fn store;
	void *arg;
	ZSTD_CCtx *zstd;
	struct tw_buf frame;
	struct slot slots[SLOTS];
	struct tw_relay *relay;
	size_t until_thread; /* payload bytes until the thread is started; 0: no more */
};

static size_t pack(
        ZSTD_CCtx *z, ZSTD_outBuffer *out, const uint8_t *p, size_t n, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {p, n, 0};

	return ZSTD_compressStream2(z, out, &in, end);
}

/* Columns have different distributions: none shares a block of zstd with another. */
static enum tw_status compress(
        struct tw_frames *f, bool is_tree, const struct tw_buf *p, struct tw_err *err)
{
	size_t cuts[TW_CHUNK_CUTS];
	size_t n_cuts = is_tree ? tw_tree_cuts(p->data, p->len, cuts)
	                        : tw_chunk_cuts(p->data, p->len, cuts);
	ZSTD_outBuffer out = {0};
	size_t from = 0;
	size_t left = 0;

	tw_buf_clear(&f->frame);
	if (tw_buf_reserve(&f->frame, ZSTD_compressBound(p->len) + n_cuts * BLOCK_HEADER_BYTES) !=
	        TW_OK)
		return tw_oom(err);
	out = (ZSTD_outBuffer){f->frame.data, f->frame.cap, 0};
	(void)ZSTD_CCtx_reset(f->zstd, ZSTD_reset_session_only);
	(void)ZSTD_CCtx_setPledgedSrcSize(f->zstd, p->len);
	for (size_t i = 0; !ZSTD_isError(left) && i < n_cuts; i++) {
		if (cuts[i] - from < WORTH_A_BLOCK)
			continue;
		left = pack(f->zstd, &out, p->data + from, cuts[i] - from, ZSTD_e_flush);
		from = cuts[i];
	}
	if (!ZSTD_isError(left))
		left = pack(f->zstd, &out, p->data + from, p->len - from, ZSTD_e_end);
	if (left)
		return tw_fail(err, TW_BUG, "zstd: %s", ZSTD_getErrorName(left));
	f->frame.len = out.pos;
	return TW_OK;
}

static enum tw_status store(void *arg, uint32_t slot, struct tw_err *err)
{
	struct tw_frames *f = arg;
	const struct slot *s = &f->slots[slot];
	enum tw_status st = compress(f, s->info.is_tree, &s->payload, err);

	return st == TW_OK ? f->store(f->arg, &s->info, &f->frame, err) : st;
}

struct tw_frames *tw_frames_new(int zstd_level, tw_frame_fn store_fn, void *arg)
{
	struct tw_frames *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->store = store_fn;
	f->arg = arg;
	tw_buf_init(&f->frame, SIZE_MAX / 2);
	for (int i = 0; i < SLOTS; i++)
		tw_buf_init(&f->slots[i].payload, SIZE_MAX / 2);
	f->relay = tw_relay_new(SLOTS, store, f);
	f->zstd = ZSTD_createCCtx();
	if (!f->relay || !f->zstd)
		return tw_frames_free(f);
	(void)ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, zstd_level);
	(void)ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_checksumFlag, 1);
	f->until_thread = WORTH_A_THREAD;
	return f;
}

struct tw_frames *tw_frames_free(struct tw_frames *f)
{
	if (!f)
		return NULL;
	tw_relay_free(f->relay);
	for (int i = 0; i < SLOTS; i++)
		tw_buf_done(&f->slots[i].payload);
	tw_buf_done(&f->frame);
	(void)ZSTD_freeCCtx(f->zstd);
	tw_mem_free(f);
	return NULL;
}

enum tw_status tw_frames_add(struct tw_frames *f, const struct tw_frame_info *info,
        const uint8_t *payload, size_t len, struct tw_err *err)
{
	uint32_t at;
	enum tw_status st = tw_relay_slot(f->relay, &at, err);
	struct slot *s;

	if (st != TW_OK)
		return st;
	if (f->until_thread && len >= f->until_thread)
		tw_relay_start(f->relay);
	f->until_thread -= len < f->until_thread ? len : f->until_thread;
	s = &f->slots[at];
	s->info = *info;
	tw_buf_clear(&s->payload);
	(void)tw_buf_add(&s->payload, payload, len);
	if (tw_buf_status(&s->payload) != TW_OK)
		return tw_oom(err);
	return tw_relay_pass(f->relay, err);
}

enum tw_status tw_frames_finish(struct tw_frames *f, struct tw_err *err)
{
	f->until_thread = 0;
	return tw_relay_finish(f->relay, err);
}

struct ZSTD_CCtx_s *tw_frames_zstd(struct tw_frames *f)
{
	return f->zstd;
}
