/* export_compress.c - compresses a Perfetto file in the ways that Perfetto can read. */
#include <stdatomic.h>
#include <string.h>

#include "decoder/base/codec_memory.h"
#include "server/base/thread/parallel.h"
#include "server/export/perfetto/export_plan.h"

enum { ZSTD_LEVEL = 3, ZLIB_LEVEL = 6, ZLIB_WRAP = 15, NO_WRAP = -15, FLUSH_BYTES = 16 };
enum { FIELD_ZLIB = 50, FIELD_ZSTD = 133 };

/* --- batches --- */

/* DEFLATE: blocks of a deflate stream, none of them its last. */
enum format { FORMAT_ZLIB, FORMAT_ZSTD, FORMAT_DEFLATE };

struct batch { /* bytes that are compressed together */
	const uint8_t *p;
	size_t n;
	uint8_t *packed; /* NULL: out of memory */
	size_t len;
	uint32_t crc; /* DEFLATE: of the bytes */
};

struct batches {
	struct batch each[TW_PARALLEL_MAX];
	unsigned n;
	_Atomic unsigned next;
	enum format format;
};

static bool pack_zlib(struct batch *f, enum format format)
{
	const bool ends = format == FORMAT_ZLIB;
	z_stream z = {.avail_in = (uInt)f->n};
	size_t cap;
	int rc = Z_MEM_ERROR;

	tw_zlib_memory(&z);
	if (deflateInit2(&z, ZLIB_LEVEL, Z_DEFLATED, ends ? ZLIB_WRAP : NO_WRAP, 8,
	            Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	cap = deflateBound(&z, f->n) + FLUSH_BYTES;
	f->packed = tw_mem_alloc(cap, 1);
	z.next_in = (uint8_t *)(uintptr_t)f->p; /* zlib only reads it */
	z.next_out = f->packed;
	z.avail_out = (uInt)cap;
	if (f->packed)
		rc = deflate(&z, ends ? Z_FINISH : Z_SYNC_FLUSH);
	f->len = cap - z.avail_out;
	if (!ends)
		f->crc = (uint32_t)crc32(0, f->p, (uInt)f->n);
	(void)deflateEnd(&z);
	return rc == (ends ? Z_STREAM_END : Z_OK);
}

static bool pack_zstd(struct batch *f)
{
	ZSTD_CCtx *z = ZSTD_createCCtx_advanced(tw_zstd_memory());
	const size_t cap = ZSTD_compressBound(f->n);

	f->packed = tw_mem_alloc(cap, 1);
	f->len = z && f->packed ? ZSTD_compressCCtx(z, f->packed, cap, f->p, f->n, ZSTD_LEVEL) : 0;
	(void)ZSTD_freeCCtx(z);
	return f->len && !ZSTD_isError(f->len);
}

static void pack_some(void *arg)
{
	struct batches *all = arg;
	unsigned at;

	while ((at = atomic_fetch_add(&all->next, 1)) < all->n) {
		struct batch *f = &all->each[at];
		const bool packed =
		        all->format == FORMAT_ZSTD ? pack_zstd(f) : pack_zlib(f, all->format);

		if (!packed) {
			tw_mem_free(f->packed);
			f->packed = NULL;
		}
	}
}

/* Compresses the batches in parallel and appends them by `put`. */
static enum tw_status pack_batches(struct batches *all,
        enum tw_status (*put)(const struct batches *all, unsigned i, struct tw_buf *out),
        struct tw_buf *out)
{
	enum tw_status st = TW_OK;

	tw_parallel_for(all->n, pack_some, all);
	for (unsigned i = 0; i < all->n; i++) {
		if (st == TW_OK)
			st = all->each[i].packed ? put(all, i, out) : TW_NOMEM;
		tw_mem_free(all->each[i].packed);
	}
	return st;
}

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

static enum tw_status put_packet(const struct batches *all, unsigned i, struct tw_buf *out)
{
	const struct batch *f = &all->each[i];
	const int field = all->format == FORMAT_ZSTD ? FIELD_ZSTD : FIELD_ZLIB;
	uint8_t head[16];
	size_t n = (size_t)(tw_put_varint(tw_put_varint(head, (uint64_t)field << 3 | 2), f->len) -
	                    head);

	(void)tw_buf_add_u8(out, 0x0A);
	(void)tw_buf_add_varint(out, n + f->len);
	(void)tw_buf_add(out, head, n);
	return tw_buf_add(out, f->packed, f->len);
}

enum tw_status tw_compress_packets(
        struct tw_buf *loose, size_t least, bool zstd, struct tw_buf *out)
{
	struct batches all = {.format = zstd ? FORMAT_ZSTD : FORMAT_ZLIB};
	enum tw_status st;
	size_t at = 0;

	while (all.n < TW_PARALLEL_MAX && loose->len - at >= least) {
		struct batch *f = &all.each[all.n++];

		f->p = loose->data + at;
		f->n = whole_packets(f->p, loose->len - at);
		at += f->n;
	}
	st = pack_batches(&all, put_packet, out);
	memmove(loose->data, loose->data + at, loose->len - at);
	loose->len -= at;
	return st;
}

/* --- the complete file --- */

struct compressor {
	struct tw_pull inner;
	ZSTD_CCtx *zstd; /* NULL: gzip */
	uint8_t *in;     /* as many batches as are compressed at once */
	size_t n, cap;
	struct tw_buf out;
	size_t taken;        /* of out */
	bool begun;          /* output has begun: until then every input is flushed */
	bool over;           /* the input has ended */
	uint32_t crc, bytes; /* gzip: of the input so far */
};

static enum tw_status fill(struct compressor *z, struct tw_err *err)
{
	const size_t enough = z->begun ? z->cap : 1;
	enum tw_status st = TW_OK;

	z->n = 0;
	while (st == TW_OK && z->n < enough && !z->over) {
		size_t n = 0;

		st = z->inner.read(z->inner.arg, z->in + z->n, z->cap - z->n, &n, err);
		z->over = st == TW_OK && n == 0;
		z->n += n;
	}
	return st;
}

static enum tw_status put_blocks(const struct batches *all, unsigned i, struct tw_buf *out)
{
	return tw_buf_add(out, all->each[i].packed, all->each[i].len);
}

/* One member, although several could be compressed without combining them: Perfetto allocates 32
 * MiB for each. */
static enum tw_status compress_gzip(struct compressor *z)
{
	static const uint8_t head[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};
	static const uint8_t last_block[] = {3, 0};
	struct batches all = {.format = FORMAT_DEFLATE};
	enum tw_status st;

	if (!z->begun)
		(void)tw_buf_add(&z->out, head, sizeof head);
	for (size_t at = 0; at < z->n; at += TW_BATCH_BYTES) {
		const size_t left = z->n - at;

		all.each[all.n++] = (struct batch){
		        .p = z->in + at, .n = left < TW_BATCH_BYTES ? left : TW_BATCH_BYTES};
	}
	st = pack_batches(&all, put_blocks, &z->out);
	for (unsigned i = 0; i < all.n; i++)
		z->crc = (uint32_t)crc32_combine(z->crc, all.each[i].crc, (z_off_t)all.each[i].n);
	z->bytes += (uint32_t)z->n; /* modulo 2^32, as gzip stores it */
	if (z->over) {
		(void)tw_buf_add(&z->out, last_block, sizeof last_block);
		(void)tw_buf_add_u32le(&z->out, z->crc);
		(void)tw_buf_add_u32le(&z->out, z->bytes);
	}
	return st == TW_OK ? tw_buf_status(&z->out) : st;
}

static enum tw_status compress_zstd(struct compressor *z)
{
	const size_t step = ZSTD_CStreamOutSize();
	const ZSTD_EndDirective how = z->over    ? ZSTD_e_end
	                              : z->begun ? ZSTD_e_continue
	                                         : ZSTD_e_flush;
	ZSTD_inBuffer in = {z->in, z->n, 0};
	size_t left;

	do {
		ZSTD_outBuffer to;

		if (tw_buf_reserve(&z->out, step) != TW_OK)
			return TW_NOMEM;
		to = (ZSTD_outBuffer){z->out.data + z->out.len, step, 0};
		left = ZSTD_compressStream2(z->zstd, &to, &in, how);
		if (ZSTD_isError(left))
			return TW_NOMEM;
		z->out.len += to.pos;
	} while (in.pos < in.size || (how != ZSTD_e_continue && left));
	return TW_OK;
}

static enum tw_status read_compressed(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct compressor *z = arg;
	size_t n;

	while (z->taken == z->out.len && !z->over) {
		enum tw_status st = fill(z, err);

		if (st != TW_OK)
			return st;
		tw_buf_clear(&z->out);
		z->taken = 0;
		if ((z->zstd ? compress_zstd(z) : compress_gzip(z)) != TW_OK)
			return tw_oom(err);
		z->begun = true;
	}
	n = z->out.len - z->taken < cap ? z->out.len - z->taken : cap;
	if (n)
		memcpy(out, z->out.data + z->taken, n);
	z->taken += n;
	*ret_n = n;
	return TW_OK;
}

static void free_compressor(void *arg)
{
	struct compressor *z = arg;

	z->inner.free(z->inner.arg);
	(void)ZSTD_freeCCtx(z->zstd);
	tw_mem_free(z->in);
	tw_buf_done(&z->out);
	tw_mem_free(z);
}

static bool start_zstd(struct compressor *z)
{
	z->zstd = ZSTD_createCCtx_advanced(tw_zstd_memory());
	return z->zstd &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(z->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
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
	z->cap = (size_t)TW_BATCH_BYTES * (how == TW_PERFETTO_ZSTD ? 1 : tw_parallel_threads());
	z->in = tw_mem_alloc(z->cap, 1);
	tw_buf_init(&z->out, 4 * z->cap);
	if (!z->in || (how == TW_PERFETTO_ZSTD && !start_zstd(z))) {
		free_compressor(z);
		return tw_oom(err);
	}
	*ret = (struct tw_pull){read_compressed, free_compressor, z};
	return TW_OK;
}
