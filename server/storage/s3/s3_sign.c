#include "server/storage/s3/s3_http.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/base/file/sha256.h"

enum { DATE_CHARS = 8, HASH = 32, TEXT_MAX = 16 << 10, SECRET_MAX = 256, SCOPE_BYTES = 160 };

static const char algorithm[] = "AWS4-HMAC-SHA256";

void tw_s3_escape(struct tw_str text, struct tw_buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		             (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';

		if (plain)
			(void)tw_buf_add_u8(out, c);
		else
			(void)tw_buf_printf(out, "%%%02X", c);
	}
}

void tw_s3_time(int64_t unix_ms, char ret[TW_S3_TIME_BYTES])
{
	time_t t = (time_t)(unix_ms / 1000);
	struct tm tm;

	(void)gmtime_r(&t, &tm);
	(void)strftime(ret, TW_S3_TIME_BYTES, "%Y%m%dT%H%M%SZ", &tm);
}

static void scope_of(const struct tw_s3_signing *s, char out[SCOPE_BYTES])
{
	(void)snprintf(out, SCOPE_BYTES, "%.8s/%.80s/s3/aws4_request", s->time, s->region);
}

static void name_headers(const struct tw_s3_signing *s, struct tw_buf *out)
{
	for (size_t i = 0; i < s->n_headers; i++)
		(void)tw_buf_printf(out, "%s%s", i ? ";" : "", s->headers[i].name);
}

/* The canonical request, which is signed. */
static void canonical(const struct tw_s3_signing *s, const char *query, struct tw_buf *out)
{
	(void)tw_buf_printf(out, "%s\n%s\n%s\n", s->method, s->path, query);
	for (size_t i = 0; i < s->n_headers; i++) {
		struct tw_str value = tw_str_trim(tw_str_of(s->headers[i].value));

		(void)tw_buf_printf(
		        out, "%s:%.*s\n", s->headers[i].name, (int)value.len, value.ptr);
	}
	(void)tw_buf_printf(out, "\n");
	name_headers(s, out);
	(void)tw_buf_printf(out, "\n%s", s->payload);
}

static bool mac(const uint8_t *key, size_t n, const char *text, uint8_t out[HASH])
{
	return gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, n, text, strlen(text), out) == 0;
}

static bool signing_key(const struct tw_s3_signing *s, uint8_t out[HASH])
{
	char first[SECRET_MAX + 8], date[DATE_CHARS + 1];
	bool ok;

	(void)snprintf(date, sizeof date, "%.8s", s->time);
	(void)snprintf(first, sizeof first, "AWS4%.256s", s->secret);
	ok = mac((const uint8_t *)first, strlen(first), date, out) &&
	     mac(out, HASH, s->region, out) && mac(out, HASH, "s3", out) &&
	     mac(out, HASH, "aws4_request", out);
	explicit_bzero(first, sizeof first);
	return ok;
}

/* The signature, in hexadecimal. */
static enum tw_status sign(const struct tw_s3_signing *s, const char *query,
        char ret[TW_SHA256_HEX], struct tw_err *err)
{
	char scope[SCOPE_BYTES], hash_hex[TW_SHA256_HEX], text[SCOPE_BYTES + 160];
	uint8_t hash[HASH], key[HASH];
	struct tw_buf request;
	bool ok;

	tw_buf_init(&request, TEXT_MAX);
	canonical(s, query, &request);
	if (tw_buf_status(&request) != TW_OK) {
		tw_buf_done(&request);
		return tw_oom(err);
	}
	tw_sha256_bytes(tw_buf_str(&request), hash);
	tw_buf_done(&request);
	tw_sha256_hex(hash, hash_hex);
	scope_of(s, scope);
	(void)snprintf(text, sizeof text, "%s\n%.16s\n%s\n%s", algorithm, s->time, scope, hash_hex);
	ok = signing_key(s, key) && mac(key, HASH, text, hash);
	explicit_bzero(key, sizeof key);
	if (!ok)
		return tw_fail(err, TW_BUG, "signing failed");
	tw_sha256_hex(hash, ret);
	return TW_OK;
}

enum tw_status tw_s3_authorize(
        const struct tw_s3_signing *s, struct tw_buf *out, struct tw_err *err)
{
	char signature[TW_SHA256_HEX], scope[SCOPE_BYTES];
	enum tw_status st = sign(s, s->query, signature, err);

	if (st != TW_OK)
		return st;
	scope_of(s, scope);
	(void)tw_buf_printf(out, "%s Credential=%s/%s,SignedHeaders=", algorithm, s->key_id, scope);
	name_headers(s, out);
	(void)tw_buf_printf(out, ",Signature=%s", signature);
	return tw_buf_status(out) == TW_OK ? TW_OK : tw_oom(err);
}

/* The query without its signature, in signing order. */
static void presign_query(const struct tw_s3_signing *s, unsigned expires_s, struct tw_buf *out)
{
	char scope[SCOPE_BYTES];

	scope_of(s, scope);
	(void)tw_buf_printf(out, "X-Amz-Algorithm=%s&X-Amz-Credential=", algorithm);
	tw_s3_escape(tw_str_of(s->key_id), out);
	(void)tw_buf_printf(out, "%%2F");
	tw_s3_escape(tw_str_of(scope), out);
	(void)tw_buf_printf(out, "&X-Amz-Date=%s&X-Amz-Expires=%u", s->time, expires_s);
	if (s->token && s->token[0]) {
		(void)tw_buf_printf(out, "&X-Amz-Security-Token=");
		tw_s3_escape(tw_str_of(s->token), out);
	}
	(void)tw_buf_printf(out, "&X-Amz-SignedHeaders=");
	for (size_t i = 0; i < s->n_headers; i++)
		(void)tw_buf_printf(out, "%s%s", i ? "%3B" : "", s->headers[i].name);
}

enum tw_status tw_s3_presign(
        const struct tw_s3_signing *s, unsigned expires_s, struct tw_buf *out, struct tw_err *err)
{
	char signature[TW_SHA256_HEX];
	struct tw_buf query;
	enum tw_status st;

	tw_buf_init(&query, TEXT_MAX);
	presign_query(s, expires_s, &query);
	(void)tw_buf_add_u8(&query, 0);
	st = tw_buf_status(&query) == TW_OK ? sign(s, (const char *)query.data, signature, err)
	                                    : tw_oom(err);
	if (st == TW_OK) {
		(void)tw_buf_printf(
		        out, "%s&X-Amz-Signature=%s", (const char *)query.data, signature);
		if (tw_buf_status(out) != TW_OK)
			st = tw_oom(err);
	}
	tw_buf_done(&query);
	return st;
}
