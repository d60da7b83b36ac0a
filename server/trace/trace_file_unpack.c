#include "server/trace/trace_file_unpack.h"

#include "decoder/base/codec_memory.h"
#include "server/trace/trace_file_internal.h"

struct tw_unpacker {
	ZSTD_DCtx *zstd;
	struct tw_buf payload;
};

struct tw_unpacker *tw_unpacker_new(void)
{
	struct tw_unpacker *u = tw_mem_zalloc(1, sizeof *u);

	if (!u)
		return NULL;
	tw_buf_init(&u->payload, SIZE_MAX / 2);
	u->zstd = ZSTD_createDCtx_advanced(tw_zstd_memory());
	return u->zstd ? u : tw_unpacker_free(u);
}

struct tw_unpacker *tw_unpacker_free(struct tw_unpacker *u)
{
	if (!u)
		return NULL;
	(void)ZSTD_freeDCtx(u->zstd);
	tw_buf_done(&u->payload);
	tw_mem_free(u);
	return NULL;
}

static enum tw_status damaged(struct tw_err *err)
{
	return tw_fail(err, TW_CORRUPT, "the trace file is damaged (frame)");
}

enum tw_status tw_unpacker_frame(struct tw_unpacker *u, struct tw_str frame, uint64_t max_bytes,
        struct tw_str *ret, struct tw_err *err)
{
	unsigned long long size = ZSTD_getFrameContentSize(frame.ptr, frame.len);
	size_t n;

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > max_bytes)
		return damaged(err);
	tw_buf_clear(&u->payload);
	if (tw_buf_reserve(&u->payload, (size_t)size) != TW_OK)
		return tw_oom(err);
	n = ZSTD_decompressDCtx(u->zstd, u->payload.data, (size_t)size, frame.ptr, frame.len);
	if (ZSTD_isError(n) || n != size)
		return damaged(err);
	*ret = (struct tw_str){(const char *)u->payload.data, n};
	return TW_OK;
}

enum tw_status tw_unpacker_chunk(struct tw_unpacker *u, struct tw_str frame,
        const struct tw_chunk_row *row, struct tw_chunk *c, struct tw_err *err)
{
	struct tw_str payload = {NULL, 0};
	enum tw_status st = tw_unpacker_frame(u, frame, TW_CHUNK_MAX_BYTES, &payload, err);

	if (st != TW_OK)
		return st;
	return tw_chunk_decode(
	        c, (const uint8_t *)payload.ptr, payload.len, row->info.start_ns, err);
}
