/*
 * http_coding.c - content codings: the choice by Accept-Encoding, and encoders of responses.
 */
#include <string.h>
#include <strings.h>

#include "decoder/base/codec_memory.h"
#include "decoder/base/str.h"
#include "server/http/http_int.h"

/* Levels at which one core still produces more bytes than a network takes. */
enum { ZSTD_LEVEL = 3, GZIP_LEVEL = 5, GZIP_WINDOW = 15 + 16, STEP = 32 << 10 };

static const char *const names[] = {"identity", "gzip", "zstd"};

const char *tw_coding_name(enum tw_coding c)
{
	return names[c];
}

static bool is_word(struct tw_str s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

/* "0.25" as 250; RFC 9110 allows three decimals and at most 1. */
static bool parse_weight(struct tw_str s, unsigned *ret)
{
	unsigned v;
	unsigned scale = 100;

	if (s.len == 0 || s.len > 5 || (s.ptr[0] != '0' && s.ptr[0] != '1'))
		return false;
	v = s.ptr[0] == '1' ? 1000 : 0;
	if (s.len > 1 && s.ptr[1] != '.')
		return false;
	for (size_t i = 2; i < s.len; i++, scale /= 10) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
		v += scale * (unsigned)(s.ptr[i] - '0');
	}
	*ret = v;
	return v <= 1000;
}

/* Splits "gzip;q=0.5" into name and weight; false if invalid. */
static bool parse_part(struct tw_str part, struct tw_str *ret_name, unsigned *ret_weight)
{
	*ret_name = tw_str_trim(tw_str_split(&part, ';'));
	*ret_weight = 1000;
	part = tw_str_trim(part);
	if (part.len == 0)
		return ret_name->len > 0;
	if (part.len < 2 || (part.ptr[0] | 0x20) != 'q' || part.ptr[1] != '=')
		return false;
	return parse_weight(tw_str_trim(tw_str_from(part, 2)), ret_weight);
}

/* Weights by coding; the star applies to those not named.  Identity has the lowest preference
 * unless named, but is refused only if the header says so. */
static void weigh(const char *accept, unsigned weights[3])
{
	struct tw_str rest = tw_str_of(accept);
	bool named[3] = {false};
	unsigned star = 0;
	bool starred = false;

	weights[TW_CODING_GZIP] = weights[TW_CODING_ZSTD] = 0;
	weights[TW_CODING_IDENTITY] = 1;
	while (rest.len) {
		struct tw_str name;
		unsigned weight;

		if (!parse_part(tw_str_split(&rest, ','), &name, &weight))
			continue;
		if (is_word(name, "*")) {
			star = weight;
			starred = true;
		}
		for (int c = TW_CODING_IDENTITY; c <= TW_CODING_ZSTD; c++)
			if (is_word(name, names[c])) {
				weights[c] = weight;
				named[c] = true;
			}
	}
	for (int c = TW_CODING_IDENTITY; starred && c <= TW_CODING_ZSTD; c++)
		if (!named[c])
			weights[c] = star;
}

enum tw_coding tw_coding_choose(const char *accept)
{
	unsigned weights[3];
	enum tw_coding best = TW_CODING_IDENTITY;

	weigh(accept, weights);
	if (weights[TW_CODING_GZIP] && weights[TW_CODING_GZIP] >= weights[best])
		best = TW_CODING_GZIP;
	if (weights[TW_CODING_ZSTD] && weights[TW_CODING_ZSTD] >= weights[best])
		best = TW_CODING_ZSTD;
	return best;
}

bool tw_coding_accepted(const char *accept, enum tw_coding c)
{
	unsigned weights[3];

	weigh(accept, weights);
	return weights[c] > 0;
}

unsigned tw_media_weight(const char *accept, const char *type)
{
	struct tw_str rest = tw_str_of(accept ? accept : "");
	unsigned weight = 0;

	while (rest.len) {
		struct tw_str part = tw_str_split(&rest, ',');

		if (!is_word(tw_str_trim(tw_str_split(&part, ';')), type))
			continue;
		weight = 1000;
		while (part.len) {
			struct tw_str p = tw_str_trim(tw_str_split(&part, ';'));

			if (p.len >= 2 && (p.ptr[0] | 0x20) == 'q' && p.ptr[1] == '=' &&
			        !parse_weight(tw_str_from(p, 2), &weight))
				weight = 0;
		}
	}
	return weight;
}

struct tw_encoder {
	enum tw_coding coding;
	ZSTD_CCtx *zstd;
	z_stream gzip;
	bool begun; /* the first bytes were flushed immediately, as a client is waiting for them */
};

struct tw_encoder *tw_encoder_new(enum tw_coding c)
{
	struct tw_encoder *e = tw_mem_zalloc(1, sizeof *e);
	bool ok = e;

	if (!e)
		return NULL;
	if (c == TW_CODING_ZSTD) {
		e->zstd = ZSTD_createCCtx_advanced(tw_zstd_memory());
		ok = e->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(
		                        e->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
	} else if (c == TW_CODING_GZIP) {
		tw_zlib_memory(&e->gzip);
		ok = deflateInit2(&e->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
		             Z_DEFAULT_STRATEGY) == Z_OK;
	}
	e->coding = ok ? c : TW_CODING_IDENTITY;
	return ok ? e : tw_encoder_free(e);
}

struct tw_encoder *tw_encoder_free(struct tw_encoder *e)
{
	if (!e)
		return NULL;
	(void)ZSTD_freeCCtx(e->zstd);
	if (e->coding == TW_CODING_GZIP)
		(void)deflateEnd(&e->gzip);
	tw_mem_free(e);
	return NULL;
}

static enum tw_status push_zstd(struct tw_encoder *e, const void *p, size_t n, bool end,
        struct tw_buf *out, struct tw_err *err)
{
	ZSTD_inBuffer in = {p, n, 0};
	const ZSTD_EndDirective how = end ? ZSTD_e_end : e->begun ? ZSTD_e_continue : ZSTD_e_flush;
	size_t left = 1;

	while (in.pos < in.size || (how != ZSTD_e_continue && left)) {
		ZSTD_outBuffer to;

		if (tw_buf_reserve(out, STEP) != TW_OK)
			return tw_oom(err);
		to = (ZSTD_outBuffer){out->data + out->len, STEP, 0};
		left = ZSTD_compressStream2(e->zstd, &to, &in, how);
		if (ZSTD_isError(left))
			return tw_oom(err);
		out->len += to.pos;
	}
	return TW_OK;
}

static enum tw_status push_gzip(struct tw_encoder *e, const void *p, size_t n, bool end,
        struct tw_buf *out, struct tw_err *err)
{
	const unsigned char *at = p;
	int st = Z_OK;

	while (n || (end && st != Z_STREAM_END)) {
		size_t piece = n < STEP ? n : STEP;
		bool last = end && piece == n;

		if (tw_buf_reserve(out, STEP) != TW_OK)
			return tw_oom(err);
		/* zlib 1.2 takes a non-const pointer and does not write through it */
		memcpy(&e->gzip.next_in, &at, sizeof at);
		e->gzip.avail_in = (uInt)piece;
		e->gzip.next_out = out->data + out->len;
		e->gzip.avail_out = STEP;
		st = deflate(&e->gzip, last ? Z_FINISH : e->begun ? Z_NO_FLUSH : Z_SYNC_FLUSH);
		if (st == Z_STREAM_ERROR)
			return tw_oom(err);
		at += piece - e->gzip.avail_in;
		n -= piece - e->gzip.avail_in;
		out->len += STEP - e->gzip.avail_out;
	}
	return TW_OK;
}

enum tw_status tw_encoder_push(struct tw_encoder *e, const void *p, size_t n, bool end,
        struct tw_buf *out, struct tw_err *err)
{
	enum tw_status st;

	if (e->coding == TW_CODING_ZSTD)
		st = push_zstd(e, p, n, end, out, err);
	else if (e->coding == TW_CODING_GZIP)
		st = push_gzip(e, p, n, end, out, err);
	else
		st = tw_buf_add(out, p, n) == TW_OK ? TW_OK : tw_oom(err);
	e->begun = e->begun || n > 0;
	return st;
}
