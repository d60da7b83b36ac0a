#include "server/storage/s3/s3.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/base/file/sha256.h"

enum {
	QUERY_BYTES = 1400,
	ID_BYTES = 400,
	PARTS_MAX = 10000,
	PIECE_BYTES = 1 << 16,
	PROBE_S = 5,
	PING_S = 2,
	ONCE_S = 5
};

/* A request without a body. */
#define REQUEST(op_, method_, key_, ...)                                                           \
	{                                                                                          \
		.op = (op_), .method = (method_), .key = (key_), .to_fd = -1, .from_fd = -1,       \
		__VA_ARGS__                                                                        \
	}

/* --- checksums --- */

void tw_s3_checksum(const char *sha256, char ret[TW_S3_CHECKSUM])
{
	uint8_t hash[32] = {0};

	(void)sodium_hex2bin(hash, sizeof hash, sha256, strlen(sha256), NULL, NULL, NULL);
	(void)sodium_bin2base64(
	        ret, TW_S3_CHECKSUM, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
}

static enum tw_status hash_range(
        int fd, uint64_t at, uint64_t bytes, char ret[TW_SHA256_HEX], struct tw_err *err)
{
	uint8_t piece[PIECE_BYTES], hash[32];
	gnutls_hash_hd_t sha;
	enum tw_status st = tw_sha256_begin(GNUTLS_DIG_SHA256, &sha, err);

	while (st == TW_OK && bytes) {
		size_t want = bytes < sizeof piece ? (size_t)bytes : sizeof piece;
		ssize_t n = tw_pread_full(fd, piece, want, at);

		if (n <= 0 || gnutls_hash(sha, piece, (size_t)n) != 0)
			st = tw_fail(err, TW_IO, "a file that is sent cannot be read");
		at += n > 0 ? (uint64_t)n : 0;
		bytes -= n > 0 ? (uint64_t)n : 0;
	}
	if (sha)
		gnutls_hash_deinit(sha, hash);
	if (st == TW_OK)
		tw_sha256_hex(hash, ret);
	return st;
}

/* --- metadata --- */

/* Sends a request whose response body is not needed. */
static enum tw_status send_only(struct tw_s3 *s, const struct tw_s3_request *r, struct tw_err *err)
{
	struct tw_s3_response a;
	enum tw_status st = tw_s3_send(s, r, &a, err);

	tw_s3_response_done(&a);
	return st;
}

/* A HEAD's 404 has no text that distinguishes a missing object from a missing bucket, or the store
 * from a proxy. */
static enum tw_status explain_missing(struct tw_s3 *s, const char *key, struct tw_err *err)
{
	struct tw_s3_request r = REQUEST(TW_S3_GET, "GET", key);
	enum tw_status st;

	r.headers[r.n_headers++] = (struct tw_s3_header){"range", "bytes=0-0"};
	st = send_only(s, &r, err);
	return st == TW_OK
	               ? tw_fail(err, TW_BUSY,
	                         "the store reports both that %.90s exists and that it does not",
	                         key)
	               : st;
}

enum tw_status tw_s3_head(
        struct tw_s3 *s, const char *key, struct tw_s3_metadata *ret, struct tw_err *err)
{
	const struct tw_s3_request r = REQUEST(TW_S3_HEAD, "HEAD", key);
	struct tw_s3_response a;
	enum tw_status st = tw_s3_send(s, &r, &a, err);

	if (st == TW_OK) {
		*ret = (struct tw_s3_metadata){.bytes = a.length, .modified_ms = a.modified_ms};
		memcpy(ret->sha256, a.sha256, sizeof ret->sha256);
	}
	tw_s3_response_done(&a);
	return st == TW_NOT_FOUND ? explain_missing(s, key, err) : st;
}

enum tw_status tw_s3_has(struct tw_s3 *s, const char *key, bool *ret, struct tw_err *err)
{
	struct tw_s3_metadata kept;
	enum tw_status st = tw_s3_head(s, key, &kept, err);

	*ret = st == TW_OK;
	return st == TW_NOT_FOUND ? TW_OK : st;
}

/* --- uploads --- */

static enum tw_status verify(struct tw_s3 *s, const struct tw_s3_object *o, struct tw_err *err)
{
	struct tw_s3_metadata kept = {.bytes = 0};
	enum tw_status st = tw_s3_head(s, o->key, &kept, err);

	if (st == TW_OK && kept.bytes == o->bytes &&
	        (!kept.sha256[0] || strcmp(kept.sha256, o->sha256) == 0))
		return TW_OK;
	if (st != TW_OK && st != TW_NOT_FOUND)
		return st;
	return tw_fail(err, TW_BUSY,
	        "the store accepted %.90s but has another object, or %llu of its %llu bytes",
	        o->key, (unsigned long long)kept.bytes, (unsigned long long)o->bytes);
}

static enum tw_status put_whole(
        struct tw_s3 *s, const struct tw_s3_object *o, int fd, struct tw_err *err)
{
	struct tw_s3_request r = REQUEST(TW_S3_PUT, "PUT", o->key, .sha256 = o->sha256);
	char checksum[TW_S3_CHECKSUM];

	tw_s3_checksum(o->sha256, checksum);
	r.headers[r.n_headers++] = (struct tw_s3_header){"x-amz-checksum-sha256", checksum};
	r.headers[r.n_headers++] = (struct tw_s3_header){"x-amz-meta-sha256", o->sha256};
	r.from_fd = fd;
	r.from_bytes = r.bytes = o->bytes;
	return send_only(s, &r, err);
}

/* --- multipart uploads --- */

struct parts {
	struct tw_s3 *s;
	const struct tw_s3_object *o;
	int fd;
	uint64_t size;      /* of each part except the last */
	char id[ID_BYTES];  /* URL-escaped */
	struct tw_buf done; /* the list of parts that completes the upload */
};

static enum tw_status begin_parts(struct parts *p, struct tw_err *err)
{
	struct tw_s3_request r = REQUEST(TW_S3_PART, "POST", p->o->key, .query = "uploads=");
	struct tw_s3_response a;
	struct tw_buf escaped;
	char id[ID_BYTES];
	enum tw_status st;

	r.headers[r.n_headers++] = (struct tw_s3_header){"x-amz-meta-sha256", p->o->sha256};
	st = tw_s3_send(p->s, &r, &a, err);
	if (st == TW_OK) {
		tw_xml_text(tw_buf_str(&a.text), "UploadId", id, sizeof id);
		tw_buf_init(&escaped, sizeof p->id - 1);
		tw_s3_escape(tw_str_of(id), &escaped);
		if (!id[0] || tw_buf_status(&escaped) != TW_OK)
			st = tw_fail(err, TW_BUSY, "the store did not begin a multipart upload");
		else
			(void)snprintf(p->id, sizeof p->id, "%.*s", (int)escaped.len,
			        (const char *)escaped.data);
		tw_buf_done(&escaped);
	}
	tw_s3_response_done(&a);
	return st;
}

static enum tw_status put_part(struct parts *p, unsigned number, uint64_t at, struct tw_err *err)
{
	uint64_t left = p->o->bytes - at;
	char query[QUERY_BYTES], sha256[TW_SHA256_HEX];
	struct tw_s3_request r =
	        REQUEST(TW_S3_PART, "PUT", p->o->key, .query = query, .sha256 = sha256);
	struct tw_s3_response a;
	enum tw_status st;

	r.from_fd = p->fd;
	r.from_at = at;
	r.from_bytes = r.bytes = left < p->size ? left : p->size;
	(void)snprintf(query, sizeof query, "partNumber=%u&uploadId=%s", number, p->id);
	st = hash_range(p->fd, at, r.from_bytes, sha256, err);
	if (st != TW_OK)
		return st;
	st = tw_s3_send(p->s, &r, &a, err);
	if (st == TW_OK &&
	        tw_buf_printf(&p->done, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
	                number, a.etag) != TW_OK)
		st = tw_oom(err);
	tw_s3_response_done(&a);
	return st;
}

/* The response may have status 200 and then an error in its text. */
static enum tw_status join_parts(struct parts *p, struct tw_err *err)
{
	char query[QUERY_BYTES], sha256[TW_SHA256_HEX], code[64];
	struct tw_s3_request r =
	        REQUEST(TW_S3_PART, "POST", p->o->key, .query = query, .sha256 = sha256);
	struct tw_s3_response a;
	uint8_t hash[32];
	enum tw_status st;

	(void)tw_buf_printf(&p->done, "</CompleteMultipartUpload>");
	if (tw_buf_status(&p->done) != TW_OK)
		return tw_oom(err);
	(void)snprintf(query, sizeof query, "uploadId=%s", p->id);
	r.text = tw_buf_str(&p->done);
	r.bytes = p->o->bytes; /* the store copies them, without output */
	r.silent = true;
	r.from_bytes = p->done.len;
	tw_sha256_bytes(r.text, hash);
	tw_sha256_hex(hash, sha256);
	st = tw_s3_send(p->s, &r, &a, err);
	if (st == TW_OK) {
		tw_xml_text(tw_buf_str(&a.text), "Code", code, sizeof code);
		if (code[0])
			st = tw_fail(err, TW_BUSY,
			        "the store did not complete the multipart upload of %.90s: %.60s",
			        p->o->key, code);
	}
	tw_s3_response_done(&a);
	return st;
}

static enum tw_status abort_parts(
        struct tw_s3 *s, const char *key, const char *id, struct tw_err *err)
{
	char query[QUERY_BYTES];
	const struct tw_s3_request r = REQUEST(TW_S3_PART, "DELETE", key, .query = query);
	enum tw_status st;

	(void)snprintf(query, sizeof query, "uploadId=%s", id);
	st = send_only(s, &r, err);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status put_parts(
        struct tw_s3 *s, const struct tw_s3_object *o, int fd, struct tw_err *err)
{
	struct parts p = {.s = s, .o = o, .fd = fd, .size = tw_s3_part_bytes(s)};
	unsigned number = 0;
	enum tw_status st;

	if (p.size < o->bytes / PARTS_MAX + 1)
		p.size = o->bytes / PARTS_MAX + 1;
	tw_buf_init(&p.done, (size_t)PARTS_MAX * 256);
	(void)tw_buf_printf(&p.done, "<CompleteMultipartUpload>");
	st = begin_parts(&p, err);
	for (uint64_t at = 0; st == TW_OK && at < o->bytes; at += p.size)
		st = put_part(&p, ++number, at, err);
	if (st == TW_OK) {
		st = join_parts(&p, err);
		if (st != TW_OK && verify(s, o, NULL) == TW_OK)
			st = TW_OK; /* joined, but the response was lost */
	}
	if (st != TW_OK && p.id[0]) /* otherwise the sweep does it, a day later */
		(void)!abort_parts(s, o->key, p.id, NULL);
	tw_buf_done(&p.done);
	return st;
}

enum tw_status tw_s3_put(struct tw_s3 *s, const struct tw_s3_object *o, int fd, struct tw_err *err)
{
	uint64_t most = tw_s3_part_bytes(s);
	enum tw_status st =
	        most && o->bytes > most ? put_parts(s, o, fd, err) : put_whole(s, o, fd, err);

	/* the bucket is missing, or another client ended the multipart upload */
	if (st == TW_NOT_FOUND)
		st = tw_fail(err, TW_BUSY,
		        "the store returned 404 for %.100s: does the bucket exist?", o->key);
	return st == TW_OK ? verify(s, o, err) : st;
}

/* --- downloads --- */

enum tw_status tw_s3_get(struct tw_s3 *s, const char *key, int fd, char ret_sha256[TW_SHA256_HEX],
        uint64_t *ret_bytes, struct tw_err *err)
{
	struct tw_s3_request r = REQUEST(TW_S3_GET, "GET", key);
	struct tw_s3_metadata o = {.bytes = 0};
	struct tw_s3_response a;
	enum tw_status st = tw_s3_head(s, key, &o, err); /* the size determines the time limit */

	if (st != TW_OK)
		return st;
	r.to_fd = fd;
	r.bytes = o.bytes;
	st = tw_s3_send(s, &r, &a, err);
	if (st == TW_OK) {
		(void)snprintf(ret_sha256, TW_SHA256_HEX, "%s", a.got_sha256);
		*ret_bytes = a.length;
	}
	tw_s3_response_done(&a);
	return st;
}

/* --- deleting --- */

enum tw_status tw_s3_delete(
        struct tw_s3 *s, const char *key, bool once, bool *ret_doubt, struct tw_err *err)
{
	const struct tw_s3_request r =
	        REQUEST(TW_S3_DELETE, "DELETE", key, .once = once, .timeout_s = once ? ONCE_S : 0);
	struct tw_s3_response a;
	enum tw_status st = tw_s3_send(s, &r, &a, err);

	*ret_doubt = a.unanswered > 0;
	tw_s3_response_done(&a);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

/* --- listing --- */

static int64_t time_of(const char *text)
{
	struct tm tm = {.tm_isdst = 0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	return rest ? (int64_t)timegm(&tm) * 1000 : 0;
}

struct listing {
	struct tw_s3 *s;
	const char *prefix; /* the prefix of all our objects */
	unsigned timeout_s;
	enum tw_status (*each)(void *, const struct tw_s3_object *, struct tw_err *);
	void *arg;
	bool more;
	char next[QUERY_BYTES]; /* URL-escaped */
};

static enum tw_status take_page(struct listing *l, struct tw_str text, struct tw_err *err)
{
	char token[QUERY_BYTES / 2], more[8];
	struct tw_buf escaped;
	struct tw_str one, rest = text;
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_xml_next(&rest, "Contents", &one)) {
		char key[TW_S3_NAME], size[24], at[40];
		struct tw_s3_object o = {.sha256 = ""};

		tw_xml_text(one, "Key", key, sizeof key);
		tw_xml_text(one, "Size", size, sizeof size);
		tw_xml_text(one, "LastModified", at, sizeof at);
		if (strncmp(key, l->prefix, strlen(l->prefix)) != 0)
			continue;
		o.key = key + strlen(l->prefix);
		o.modified_ms = time_of(at);
		if (tw_str_u64(tw_str_of(size), INT64_MAX, &o.bytes) && o.modified_ms)
			st = l->each(l->arg, &o, err);
	}
	tw_xml_text(text, "IsTruncated", more, sizeof more);
	tw_xml_text(text, "NextContinuationToken", token, sizeof token);
	l->more = strcmp(more, "true") == 0 && token[0];
	tw_buf_init(&escaped, sizeof l->next - 1);
	tw_s3_escape(tw_str_of(token), &escaped);
	(void)snprintf(l->next, sizeof l->next, "%.*s", (int)escaped.len,
	        escaped.len ? (const char *)escaped.data : "");
	tw_buf_done(&escaped);
	return st;
}

static enum tw_status request_page(
        struct listing *l, const char *prefix, unsigned most, struct tw_err *err)
{
	char query[QUERY_BYTES * 2];
	const struct tw_s3_request r =
	        REQUEST(TW_S3_LIST, "GET", "", .query = query, .timeout_s = l->timeout_s);
	struct tw_s3_response a;
	struct tw_buf escaped;
	enum tw_status st;

	tw_buf_init(&escaped, QUERY_BYTES / 2);
	tw_s3_escape(tw_str_of(l->prefix), &escaped);
	tw_s3_escape(tw_str_of(prefix), &escaped);
	(void)snprintf(query, sizeof query, "%s%s%slist-type=2&max-keys=%u&prefix=%.*s",
	        l->more ? "continuation-token=" : "", l->more ? l->next : "", l->more ? "&" : "",
	        most, (int)escaped.len, escaped.len ? (const char *)escaped.data : "");
	tw_buf_done(&escaped);
	st = tw_s3_send(l->s, &r, &a, err);
	if (st == TW_OK && l->each)
		st = take_page(l, tw_buf_str(&a.text), err);
	tw_s3_response_done(&a);
	return st;
}

enum tw_status tw_s3_list(struct tw_s3 *s, const char *prefix,
        enum tw_status (*each)(void *, const struct tw_s3_object *, struct tw_err *), void *arg,
        struct tw_err *err)
{
	struct listing l = {.s = s, .prefix = tw_s3_prefix(s), .each = each, .arg = arg};
	enum tw_status st;

	do
		st = request_page(&l, prefix, 1000, err);
	while (st == TW_OK && l.more);
	return st;
}

enum tw_status tw_s3_probe(struct tw_s3 *s, struct tw_err *err)
{
	struct listing l = {.s = s, .prefix = tw_s3_prefix(s), .timeout_s = PROBE_S};

	return request_page(&l, "", 1, err);
}

/* A HEAD costs a twelfth of a listing; the key never exists. */
enum tw_status tw_s3_ping(struct tw_s3 *s, struct tw_err *err)
{
	const struct tw_s3_request r =
	        REQUEST(TW_S3_HEAD, "HEAD", "owner/ping", .once = true, .timeout_s = PING_S);
	enum tw_status st = send_only(s, &r, err);

	return st == TW_NOT_FOUND || st == TW_DENIED ? TW_OK : st;
}

/* Only below our own prefixes; uploads beyond the first page are left for the next time. */
static enum tw_status drop_parts_of(
        struct tw_s3 *s, const char *folder, int64_t before_ms, uint64_t *ret, struct tw_err *err)
{
	char query[QUERY_BYTES], ours[TW_S3_NAME];
	const struct tw_s3_request r = REQUEST(TW_S3_LIST, "GET", "", .query = query);
	struct tw_str one, rest;
	struct tw_s3_response a;
	const char *prefix = tw_s3_prefix(s);
	struct tw_buf escaped_prefix;
	enum tw_status st;

	(void)snprintf(ours, sizeof ours, "%.500s%.20s", prefix, folder);
	tw_buf_init(&escaped_prefix, sizeof query / 2);
	tw_s3_escape(tw_str_of(ours), &escaped_prefix);
	(void)snprintf(query, sizeof query, "prefix=%.*s&uploads=", (int)escaped_prefix.len,
	        escaped_prefix.len ? (const char *)escaped_prefix.data : "");
	tw_buf_done(&escaped_prefix);
	st = tw_s3_send(s, &r, &a, err);
	rest = tw_buf_str(&a.text);
	while (st == TW_OK && tw_xml_next(&rest, "Upload", &one)) {
		char key[TW_S3_NAME], id[ID_BYTES], at[40], plain[ID_BYTES];
		struct tw_buf escaped;

		tw_xml_text(one, "Key", key, sizeof key);
		tw_xml_text(one, "UploadId", id, sizeof id);
		tw_xml_text(one, "Initiated", at, sizeof at);
		if (strncmp(key, ours, strlen(ours)) != 0 || !id[0] || !time_of(at) ||
		        time_of(at) >= before_ms)
			continue;
		tw_buf_init(&escaped, sizeof plain - 1);
		tw_s3_escape(tw_str_of(id), &escaped);
		(void)snprintf(
		        plain, sizeof plain, "%.*s", (int)escaped.len, (const char *)escaped.data);
		if (tw_buf_status(&escaped) == TW_OK)
			st = abort_parts(s, key + strlen(prefix), plain, err);
		tw_buf_done(&escaped);
		*ret += st == TW_OK;
	}
	tw_s3_response_done(&a);
	return st;
}

enum tw_status tw_s3_drop_parts(
        struct tw_s3 *s, int64_t before_ms, uint64_t *ret, struct tw_err *err)
{
	enum tw_status st = drop_parts_of(s, "blobs/", before_ms, ret, err);

	if (st == TW_OK)
		st = drop_parts_of(s, "traces/", before_ms, ret, err);
	return st == TW_OK ? drop_parts_of(s, "pieces/", before_ms, ret, err) : st;
}

/* --- presigned URLs --- */

enum tw_status tw_s3_put_address(struct tw_s3 *s, const struct tw_s3_object *o, unsigned expires_s,
        struct tw_buf *out, struct tw_err *err)
{
	struct tw_s3_request r = REQUEST(TW_S3_PUT, "PUT", o->key, .sha256 = TW_S3_UNSIGNED);
	char checksum[TW_S3_CHECKSUM], length[24];

	tw_s3_checksum(o->sha256, checksum);
	(void)snprintf(length, sizeof length, "%llu", (unsigned long long)o->bytes);
	r.headers[r.n_headers++] = (struct tw_s3_header){"content-length", length};
	r.headers[r.n_headers++] = (struct tw_s3_header){"x-amz-checksum-sha256", checksum};
	return tw_s3_address(s, &r, expires_s, out, err);
}
