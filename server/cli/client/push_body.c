#include "server/cli/client/push_body.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "server/base/file/sha256.h"

enum {
	STEP = 1 << 20,
	LEVEL = 3,
	/* Servers refuse bodies that decompress to more than --max-ratio (200) times their size.
	 * Content that compresses better than MAX_RATIO is padded, by at most 1.6 % of its size. */
	MAX_RATIO = 64,
	SKIPPABLE_HEAD = 8,
	HEAD = 4
};

struct copy {
	FILE *from, *to; /* to: NULL if the original is sent */
	bool is_file;    /* `from` can be read again */
	ZSTD_CCtx *zstd; /* NULL: sent unchanged */
	gnutls_hash_hd_t hash;
	uint64_t in, out;
	bool in_frame;
	uint8_t *piece, *packed;
	size_t packed_size;
};

static bool is_compressed(const uint8_t *p, size_t n)
{
	if (n < HEAD)
		return false;
	return tw_u32le(p) == ZSTD_MAGICNUMBER || (p[0] == 0x1F && p[1] == 0x8B) ||
	       memcmp(p, "PK\3\4", HEAD) == 0;
}

static void leave_unchanged(struct copy *c)
{
	(void)ZSTD_freeCCtx(c->zstd);
	c->zstd = NULL;
	if (c->is_file && c->to) {
		(void)fclose(c->to);
		c->to = NULL;
	}
}

static enum tw_status put(struct copy *c, const void *p, size_t n, struct tw_err *err)
{
	c->out += n;
	if (!c->to || fwrite(p, 1, n, c->to) == n)
		return TW_OK;
	if (!c->is_file)
		return tw_fail_errno(err, TW_IO, "cannot write a temporary file");
	leave_unchanged(c); /* no space for a copy */
	return TW_OK;
}

static enum tw_status compress(struct copy *c, size_t n, ZSTD_EndDirective how, struct tw_err *err)
{
	ZSTD_inBuffer in = {c->piece, n, 0};
	enum tw_status st = TW_OK;
	size_t left = 1;

	while (st == TW_OK && c->zstd && (in.pos < n || (how == ZSTD_e_end && left > 0))) {
		ZSTD_outBuffer out = {c->packed, c->packed_size, 0};

		left = ZSTD_compressStream2(c->zstd, &out, &in, how);
		st = ZSTD_isError(left) ? tw_oom(err) : put(c, c->packed, out.pos, err);
	}
	c->in_frame = how != ZSTD_e_end;
	return st;
}

/* Writes a skippable frame, for content that compresses too well. */
static enum tw_status pad(struct copy *c, struct tw_err *err)
{
	uint64_t missing = c->in / MAX_RATIO - c->out;
	uint8_t *p = c->packed;

	if (missing > c->packed_size - SKIPPABLE_HEAD)
		missing = c->packed_size - SKIPPABLE_HEAD;
	memset(p, 0, SKIPPABLE_HEAD + (size_t)missing);
	tw_put_u64le(p, missing << 32 | ZSTD_MAGIC_SKIPPABLE_START);
	return put(c, p, SKIPPABLE_HEAD + (size_t)missing, err);
}

static enum tw_status compress_piece(struct copy *c, size_t n, struct tw_err *err)
{
	bool dense = (c->in + n) / MAX_RATIO > c->out;
	enum tw_status st = compress(c, n, dense ? ZSTD_e_end : ZSTD_e_continue, err);

	c->in += n;
	if (st == TW_OK && dense && c->in / MAX_RATIO > c->out)
		st = pad(c, err);
	return st;
}

static enum tw_status each_piece(struct copy *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool is_first = true;
	size_t n;

	while (st == TW_OK && (n = fread(c->piece, 1, STEP, c->from)) > 0) {
		(void)gnutls_hash(c->hash, c->piece, n);
		if (is_first && is_compressed(c->piece, n))
			leave_unchanged(c);
		is_first = false;
		if (c->zstd)
			st = compress_piece(c, n, err);
		else if (c->to)
			st = put(c, c->piece, n, err);
	}
	if (st == TW_OK && ferror(c->from))
		st = tw_fail_errno(err, TW_IO, "cannot read it");
	if (st == TW_OK && c->in_frame)
		st = compress(c, 0, ZSTD_e_end, err);
	if (st == TW_OK && c->to && fflush(c->to) != 0 && c->is_file)
		leave_unchanged(c);
	else if (st == TW_OK && c->to && ferror(c->to))
		st = tw_fail_errno(err, TW_IO, "cannot write a temporary file");
	return st;
}

static enum tw_status copy_open(struct copy *c, const char *path, struct tw_err *err)
{
	struct stat st;

	c->from = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!c->from || fstat(fileno(c->from), &st) != 0)
		return tw_fail_errno(err, TW_IO, "cannot read it");
	c->is_file = S_ISREG(st.st_mode) && c->from != stdin;
	c->to = tmpfile();
	if (!c->to && !c->is_file)
		return tw_fail_errno(err, TW_IO, "cannot write a temporary file");
	c->packed_size = ZSTD_CStreamOutSize();
	c->piece = tw_mem_alloc(STEP, 1);
	c->packed = tw_mem_alloc(c->packed_size, 1);
	c->zstd = c->to ? ZSTD_createCCtx() : NULL;
	if (!c->piece || !c->packed || (c->to && !c->zstd))
		return tw_oom(err);
	(void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, LEVEL);
	return tw_sha256_begin(GNUTLS_DIG_SHA256, &c->hash, err);
}

static void copy_close(struct copy *c)
{
	if (c->from && c->from != stdin)
		(void)fclose(c->from);
	if (c->to)
		(void)fclose(c->to);
	if (c->hash)
		gnutls_hash_deinit(c->hash, NULL);
	(void)ZSTD_freeCCtx(c->zstd);
	tw_mem_free(c->piece);
	tw_mem_free(c->packed);
}

enum tw_status tw_push_body_open(const char *path, struct tw_push_body *ret, struct tw_err *err)
{
	struct copy c = {.from = NULL};
	enum tw_status st = copy_open(&c, path, err);

	if (st == TW_OK)
		st = each_piece(&c, err);
	if (st == TW_OK) {
		gnutls_hash_deinit(c.hash, ret->sha256);
		c.hash = NULL;
		ret->copy = c.to;
		c.to = NULL;
		if (ret->copy)
			(void)snprintf(
			        ret->path, sizeof ret->path, "/proc/self/fd/%d", fileno(ret->copy));
		else
			(void)snprintf(ret->path, sizeof ret->path, "%s", path);
	}
	copy_close(&c);
	return st;
}

void tw_push_body_close(struct tw_push_body *b)
{
	if (b->copy)
		(void)fclose(b->copy);
	b->copy = NULL;
}
