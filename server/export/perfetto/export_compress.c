/* export_compress.c - compresses a Perfetto file in the ways that Perfetto can read. */
#include <stdatomic.h>
#include <string.h>

#include "decoder/base/codec_memory.h"
#include "server/base/thread/parallel.h"
#include "server/export/perfetto/export_plan.h"

enum { IN_BYTES = 256 << 10, ZSTD_LEVEL = 3, GZIP_LEVEL = 6, GZIP_WRAP = 15 + 16 };
enum { FIELD_ZLIB = 50, FIELD_ZSTD = 133 };

/* --- packets --- */

/* Number of bytes of the complete packets at p, up to TW_BATCH_BYTES but at least one packet. */
static size_t whole_packets(const uint8_t *p, size_t len)
{
	const uint8_t *begin = p;
	const uint8_t *end = p + len;
	size_t taken = 0;

	while (p < end && *p == 0x0A) {
		uint64_t n;

		p++;
		if (!tw_get_varint(&p, end, &n) || n > (uint64_t)(end - p))
			break;
		p += n;
		if (taken && (size_t)(p - begin) > TW_BATCH_BYTES)
			break;
		taken = (size_t)(p - begin);
	}
	return taken ? taken : len;
}

struct batch { /* packets that are compressed together */
	const uint8_t *p;
	size_t n;
	uint8_t *packed; /* NULL: out of memory */
	size_t len;
};

struct batches {
	struct batch each[TW_PARALLEL_MAX];
	unsigned n;
	_Atomic unsigned next;
	bool zstd;
};

static bool pack(struct batch *f, bool zstd, size_t cap)
{
	uLongf len = cap;

	if (zstd) {
		f->len = ZSTD_compress(f->packed, cap, f->p, f->n, ZSTD_LEVEL);
		return !ZSTD_isError(f->len);
	}
	if (compress2(f->packed, &len, f->p, f->n, GZIP_LEVEL) != Z_OK)
		return false;
	f->len = len;
	return true;
}

static void pack_some(void *arg)
{
	struct batches *all = arg;
	unsigned at;

	while ((at = atomic_fetch_add(&all->next, 1)) < all->n) {
		struct batch *f = &all->each[at];
		size_t cap = all->zstd ? ZSTD_compressBound(f->n) : compressBound(f->n);

		f->packed = tw_mem_alloc(cap, 1);
		if (f->packed && !pack(f, all->zstd, cap)) {
			tw_mem_free(f->packed);
			f->packed = NULL;
		}
	}
}

static enum tw_status put_batch(const struct batch *f, bool zstd, struct tw_buf *out)
{
	uint32_t tag = (uint32_t)(zstd ? FIELD_ZSTD : FIELD_ZLIB) << 3 | 2;
	uint8_t head[16];
	size_t n = (size_t)(tw_put_varint(tw_put_varint(head, tag), f->len) - head);

	if (!f->packed)
		return TW_NOMEM;
	(void)tw_buf_add_u8(out, 0x0A);
	(void)tw_buf_add_varint(out, n + f->len);
	(void)tw_buf_add(out, head, n);
	return tw_buf_add(out, f->packed, f->len);
}

enum tw_status tw_compress_packets(
        struct tw_buf *loose, size_t least, bool zstd, struct tw_buf *out)
{
	struct batches all = {.zstd = zstd};
	enum tw_status st = TW_OK;
	size_t at = 0;

	while (all.n < TW_PARALLEL_MAX && loose->len - at >= least) {
		struct batch *f = &all.each[all.n++];

		f->p = loose->data + at;
		f->n = whole_packets(f->p, loose->len - at);
		at += f->n;
	}
	tw_parallel_for(all.n, pack_some, &all);
	for (unsigned i = 0; i < all.n; i++) {
		if (st == TW_OK)
			st = put_batch(&all.each[i], zstd, out);
		tw_mem_free(all.each[i].packed);
	}
	memmove(loose->data, loose->data + at, loose->len - at);
	loose->len -= at;
	return st;
}

/* --- the complete file --- */

struct compressor {
	struct tw_pull inner;
	ZSTD_CCtx *zstd;
	z_stream gzip;
	bool have_gzip;
	uint8_t *in;
	size_t n, at;
	bool begun;         /* output has begun: until then every input is flushed */
	bool over, flushed; /* the input has ended; the compressed output has ended */
};

static enum tw_status fill(struct compressor *z, struct tw_err *err)
{
	enum tw_status st;

	if (z->at < z->n || z->over)
		return TW_OK;
	z->at = 0;
	st = z->inner.read(z->inner.arg, z->in, IN_BYTES, &z->n, err);
	z->over = st == TW_OK && z->n == 0;
	return st;
}

static enum tw_status deflate_some(
        struct compressor *z, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	int rc;

	z->gzip.next_in = z->in + z->at;
	z->gzip.avail_in = (uInt)(z->n - z->at);
	z->gzip.next_out = out;
	z->gzip.avail_out = (uInt)(cap < UINT32_MAX ? cap : UINT32_MAX);
	*ret_n = z->gzip.avail_out;
	rc = deflate(&z->gzip, z->over ? Z_FINISH : z->begun ? Z_NO_FLUSH : Z_SYNC_FLUSH);
	if (rc == Z_STREAM_ERROR)
		return tw_oom(err);
	z->at = z->n - z->gzip.avail_in;
	*ret_n -= z->gzip.avail_out;
	z->flushed = rc == Z_STREAM_END;
	return TW_OK;
}

/* NOLINTBEGIN(readability-non-const-parameter) out is written through `to` */
static enum tw_status zstd_some(
        struct compressor *z, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	ZSTD_inBuffer in = {z->in, z->n, z->at};
	ZSTD_outBuffer to = {out, cap, 0};
	ZSTD_EndDirective how = z->begun ? ZSTD_e_continue : ZSTD_e_flush;
	size_t left = ZSTD_compressStream2(z->zstd, &to, &in, z->over ? ZSTD_e_end : how);

	if (ZSTD_isError(left))
		return tw_oom(err);
	z->at = in.pos;
	z->flushed = z->over && left == 0;
	*ret_n = to.pos;
	return TW_OK;
}
/* NOLINTEND(readability-non-const-parameter) */

static enum tw_status read_compressed(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct compressor *z = arg;
	enum tw_status st = TW_OK;
	size_t n = 0;

	while (st == TW_OK && n == 0 && !z->flushed) {
		st = fill(z, err);
		if (st == TW_OK && z->zstd)
			st = zstd_some(z, out, cap, &n, err);
		else if (st == TW_OK)
			st = deflate_some(z, out, cap, &n, err);
	}
	z->begun = z->begun || n > 0;
	*ret_n = n;
	return st;
}

static void free_compressor(void *arg)
{
	struct compressor *z = arg;

	z->inner.free(z->inner.arg);
	(void)ZSTD_freeCCtx(z->zstd);
	if (z->have_gzip)
		(void)deflateEnd(&z->gzip);
	tw_mem_free(z->in);
	tw_mem_free(z);
}

static bool start(struct compressor *z, enum tw_perfetto_compression how)
{
	if (how == TW_PERFETTO_ZSTD) {
		z->zstd = ZSTD_createCCtx_advanced(tw_zstd_memory());
		return z->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(
		                          z->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
	}
	tw_zlib_memory(&z->gzip);
	z->have_gzip = deflateInit2(&z->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WRAP, 8,
	                       Z_DEFAULT_STRATEGY) == Z_OK;
	return z->have_gzip;
}

enum tw_status tw_compress_open(struct tw_pull inner, enum tw_perfetto_compression how,
        struct tw_pull *ret, struct tw_err *err)
{
	struct compressor *z = tw_mem_zalloc(1, sizeof *z);

	if (!z) {
		inner.free(inner.arg);
		return tw_oom(err);
	}
	z->inner = inner;
	z->in = tw_mem_alloc(IN_BYTES, 1);
	if (!z->in || !start(z, how)) {
		free_compressor(z);
		return tw_oom(err);
	}
	*ret = (struct tw_pull){read_compressed, free_compressor, z};
	return TW_OK;
}
