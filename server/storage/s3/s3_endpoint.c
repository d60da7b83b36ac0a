/* s3_endpoint.c - the address of a store, and the signing of requests. */
#include <ctype.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "decoder/base/str.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/storage/s3/s3_int.h"

/* --- credentials --- */

enum { FILE_MAX = 16 << 10 };

static bool copy_value(struct tw_str value, char *out, size_t cap)
{
	if (value.len >= cap)
		return false;
	if (value.len)
		memcpy(out, value.ptr, value.len);
	out[value.len] = '\0';
	return true;
}

static enum tw_status from_environment(struct tw_s3_key *key, struct tw_err *err)
{
	const char *id = getenv("AWS_ACCESS_KEY_ID");
	const char *secret = getenv("AWS_SECRET_ACCESS_KEY");
	const char *token = getenv("AWS_SESSION_TOKEN");

	if (!id || !*id || !secret || !*secret)
		return tw_fail(err, TW_BAD_REQUEST,
		        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the store's access "
		        "key");
	if (!copy_value(tw_str_of(id), key->id, sizeof key->id) ||
	        !copy_value(tw_str_of(secret), key->secret, sizeof key->secret) ||
	        !copy_value(tw_str_of(token ? token : ""), key->token, sizeof key->token))
		return tw_fail(err, TW_BAD_REQUEST, "the store's secret is too long");
	return TW_OK;
}

/* Reads the first section. */
static enum tw_status parse(struct tw_str text, struct tw_s3_key *ret, struct tw_err *err)
{
	unsigned sections = 0;
	bool fits = true;

	while (text.len) {
		struct tw_str value = tw_str_trim(tw_str_split(&text, '\n'));
		struct tw_str name;

		sections += value.len && value.ptr[0] == '[';
		if (sections > 1)
			break;
		name = tw_str_trim(tw_str_split(&value, '='));
		value = tw_str_trim(value);
		if (tw_str_eq(name, TW_STR("aws_access_key_id")))
			fits = fits && copy_value(value, ret->id, sizeof ret->id);
		else if (tw_str_eq(name, TW_STR("aws_secret_access_key")))
			fits = fits && copy_value(value, ret->secret, sizeof ret->secret);
		else if (tw_str_eq(name, TW_STR("aws_session_token")))
			fits = fits && copy_value(value, ret->token, sizeof ret->token);
	}
	if (fits && ret->id[0] && ret->secret[0])
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "the credentials file of the store needs lines aws_access_key_id = and "
	        "aws_secret_access_key =");
}

static enum tw_status read_file(const char *file, int fd, struct tw_s3_key *ret, struct tw_err *err)
{
	char text[FILE_MAX];
	const ssize_t n = tw_read_full(fd, text, sizeof text);
	enum tw_status st;

	if (n < 0)
		st = tw_fail(err, TW_IO, "%.120s cannot be read", file);
	else
		st = parse((struct tw_str){text, (size_t)n}, ret, err);
	explicit_bzero(text, sizeof text);
	return st;
}

/* file "": from the environment.  Does not read a file that has not changed. */
static enum tw_status read_key(const char *file, struct tw_s3_key *key, struct tw_err *err)
{
	struct tw_s3_key new_key = {.id = ""};
	struct stat s;
	enum tw_status st = TW_OK;
	int fd;

	if (!file[0])
		return key->id[0] ? TW_OK : from_environment(key, err);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &s) != 0)
		st = tw_fail_errno(err, TW_BAD_REQUEST,
		        "the credentials file of the store, %.100s, cannot be read", file);
	else
		new_key.read_ns =
		        (int64_t)s.st_mtim.tv_sec * 1000000000 + (int64_t)s.st_mtim.tv_nsec + 1;
	if (st == TW_OK && new_key.read_ns != key->read_ns) {
		st = read_file(file, fd, &new_key, err);
		if (st == TW_OK)
			*key = new_key;
	}
	if (fd >= 0)
		(void)close(fd);
	explicit_bzero(&new_key, sizeof new_key);
	/* the file may be half written: the previous key remains in use */
	return st == TW_OK || !key->id[0] ? st : TW_OK;
}

static const char of_nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* --- address --- */

static const char *setting(const char *configured, const char *name, const char *otherwise)
{
	const char *value = configured && *configured ? configured : getenv(name);

	return value && *value ? value : otherwise;
}

static bool is_plain(const char *text, const char *more)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(more, *text))
			return false;
	return true;
}

/* Splits "s3://bucket/prefix/" into bucket and "prefix". */
static bool split_bucket(const char *where, char *bucket, char *prefix, size_t cap)
{
	const char *at = strncmp(where, "s3://", 5) == 0 ? where + 5 : "";
	size_t n = strcspn(at, "/");
	size_t len;

	if (n == 0 || n > 63)
		return false;
	(void)snprintf(bucket, cap, "%.*s", (int)n, at);
	at += n;
	at += strspn(at, "/");
	len = strlen(at);
	while (len && at[len - 1] == '/')
		len--;
	if (len > 200)
		return false;
	(void)snprintf(prefix, cap, "%.*s", (int)len, at);
	return is_plain(bucket, ".-") && is_plain(prefix, "._-/") && !strstr(prefix, "..");
}

/* The endpoint without a trailing slash; its host as in the Host header. */
static enum tw_status set_endpoint(
        struct tw_s3 *s, const char *endpoint, const char *bucket, struct tw_err *err)
{
	const char *scheme = strncmp(endpoint, "http://", 7) == 0 ? "http://" : "https://";
	const char *host = endpoint + strlen(scheme);
	size_t n;

	if (strncmp(endpoint, scheme, strlen(scheme)) != 0)
		host = endpoint;
	n = strcspn(host, "/");
	if (n == 0 || n > 250 || host[n + strspn(host + n, "/")] || memchr(host, '@', n) ||
	        (host == endpoint && strstr(endpoint, "://")))
		return tw_fail(err, TW_BAD_REQUEST,
		        "the store's address is https://HOST or http://HOST:PORT, without a path");
	(void)snprintf(
	        s->host, sizeof s->host, "%s%s%.*s", bucket, *bucket ? "." : "", (int)n, host);
	(void)snprintf(s->base, sizeof s->base, "%s%s", scheme, s->host);
	return TW_OK;
}

static enum tw_status set_address(
        struct tw_s3 *s, const struct tw_s3_endpoint *p, struct tw_err *err)
{
	char bucket[TW_S3_ENDPOINT / 2], prefix[TW_S3_ENDPOINT / 2], amazon[TW_S3_ENDPOINT];
	const char *endpoint = p->endpoint && *p->endpoint ? p->endpoint : amazon;

	if (!split_bucket(p->where, bucket, prefix, sizeof bucket))
		return tw_fail(err, TW_BAD_REQUEST,
		        "the target must be s3://BUCKET or s3://BUCKET/PREFIX, of letters, digits "
		        "and ._-");
	(void)snprintf(s->region, sizeof s->region, "%.79s",
	        setting(p->region, "AWS_REGION", "us-east-1"));
	if (!is_plain(s->region, "-_"))
		return tw_fail(err, TW_BAD_REQUEST, "the region is letters and -");
	(void)snprintf(amazon, sizeof amazon, "https://s3.%s.amazonaws.com", s->region);
	(void)snprintf(s->bucket_path, sizeof s->bucket_path, "/%s%s",
	        p->virtual_host ? "" : bucket, p->virtual_host ? "" : "/");
	(void)snprintf(s->prefix, sizeof s->prefix, "%s%s", prefix, *prefix ? "/" : "");
	(void)snprintf(
	        s->where, sizeof s->where, "s3://%s%s%s", bucket, *prefix ? "/" : "", prefix);
	return set_endpoint(s, endpoint, p->virtual_host ? bucket : "", err);
}

/* --- comparison --- */

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), k = strlen(end);

	return n >= k && strcasecmp(text + n - k, end) == 0;
}

/* The host without its scheme's default port.  Amazon's hosts are equal: bucket names are unique
 * across all regions. */
static void host_of(const struct tw_s3 *s, char out[TW_S3_ENDPOINT])
{
	const char *port = strncmp(s->base, "http://", 7) == 0 ? ":80" : ":443";
	size_t n;

	(void)snprintf(out, TW_S3_ENDPOINT, "%s", s->host);
	if (ends_with(out, port))
		out[strlen(out) - strlen(port)] = '\0';
	n = strlen(out);
	if (n && out[n - 1] == '.') /* a fully qualified name in DNS */
		out[n - 1] = '\0';
	if (ends_with(out, ".amazonaws.com"))
		(void)snprintf(out, TW_S3_ENDPOINT, "amazonaws.com");
}

/* In path style, whatever the setting: then the host does not contain the bucket. */
static bool canonical(const struct tw_s3_endpoint *p, struct tw_s3 *ret, char host[TW_S3_ENDPOINT])
{
	struct tw_s3_endpoint by_path = *p;

	by_path.virtual_host = false;
	if (set_address(ret, &by_path, NULL) != TW_OK)
		return false;
	host_of(ret, host);
	return true;
}

bool tw_s3_is_same(const struct tw_s3_endpoint *a, const struct tw_s3_endpoint *b)
{
	struct tw_s3 *s = tw_mem_zalloc(2, sizeof *s);
	char one[TW_S3_ENDPOINT], other[TW_S3_ENDPOINT];
	const bool same = s && canonical(a, &s[0], one) && canonical(b, &s[1], other) &&
	                  strcasecmp(one, other) == 0 &&
	                  strcasecmp(s[0].bucket_path, s[1].bucket_path) == 0 &&
	                  strcmp(s[0].prefix, s[1].prefix) == 0;

	tw_mem_free(s);
	return same;
}

enum tw_status tw_s3_new(
        const struct tw_s3_endpoint *endpoint, struct tw_s3 **ret, struct tw_err *err)
{
	struct tw_s3 *s = tw_mem_zalloc(1, sizeof *s);
	enum tw_status st;

	if (!s || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		tw_mem_free(s);
		return tw_oom(err);
	}
	(void)pthread_mutex_init(&s->lock, NULL);
	tw_curl_pool_init(&s->handles, TW_CURL_POOL_MAX);
	s->part_bytes = endpoint->part_bytes;
	s->timeout_s = endpoint->timeout_s;
	s->count = endpoint->count;
	s->arg = endpoint->arg;
	(void)snprintf(
	        s->ca_file, sizeof s->ca_file, "%s", endpoint->ca_file ? endpoint->ca_file : "");
	(void)snprintf(s->key_file, sizeof s->key_file, "%s",
	        endpoint->credentials_file ? endpoint->credentials_file : "");
	st = read_key(s->key_file, &s->key, err);
	if (st == TW_OK)
		st = set_address(s, endpoint, err);
	if (st == TW_OK)
		*ret = s;
	else
		(void)tw_s3_free(s);
	return st;
}

struct tw_s3 *tw_s3_free(struct tw_s3 *s)
{
	if (!s)
		return NULL;
	tw_curl_pool_done(&s->handles);
	(void)pthread_mutex_destroy(&s->lock);
	explicit_bzero(&s->key, sizeof s->key);
	tw_mem_free(s);
	curl_global_cleanup();
	return NULL;
}

void tw_s3_stop(struct tw_s3 *s)
{
	atomic_store(&s->stopped, true);
}

const char *tw_s3_prefix(const struct tw_s3 *s)
{
	return s->prefix;
}

uint64_t tw_s3_part_bytes(const struct tw_s3 *s)
{
	return s->part_bytes;
}

/* --- signing --- */

void tw_s3_add_header(struct tw_s3_signed *g, const char *name, const char *value)
{
	size_t at = g->s.n_headers++;

	for (; at > 0 && strcmp(g->headers[at - 1].name, name) > 0; at--)
		g->headers[at] = g->headers[at - 1];
	g->headers[at] = (struct tw_s3_header){name, value};
}

enum tw_status tw_s3_prepare(
        struct tw_s3 *s, const struct tw_s3_request *r, struct tw_s3_signed *g, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&s->lock);
	st = read_key(s->key_file, &s->key, err);
	g->key = s->key;
	(void)pthread_mutex_unlock(&s->lock);
	if (st != TW_OK)
		return st;
	tw_s3_time(tw_unix_ms() + atomic_load(&s->skew_ms), g->time);
	(void)snprintf(g->path, sizeof g->path, "%s%s%s", s->bucket_path, *r->key ? s->prefix : "",
	        r->key);
	g->s = (struct tw_s3_signing){.method = r->method,
	        .path = g->path,
	        .query = r->query ? r->query : "",
	        .headers = g->headers,
	        .payload = r->sha256 ? r->sha256 : of_nothing,
	        .key_id = g->key.id,
	        .secret = g->key.secret,
	        .token = g->key.token,
	        .region = s->region,
	        .time = g->time};
	tw_s3_add_header(g, "host", s->host);
	for (size_t i = 0; i < r->n_headers; i++)
		tw_s3_add_header(g, r->headers[i].name, r->headers[i].value);
	return TW_OK;
}

enum tw_status tw_s3_address(struct tw_s3 *s, const struct tw_s3_request *r, unsigned expires_s,
        struct tw_buf *out, struct tw_err *err)
{
	struct tw_s3_signed g = {.time = ""};
	enum tw_status st = tw_s3_prepare(s, r, &g, err);

	if (st == TW_OK) {
		(void)tw_buf_printf(out, "%s%s?", s->base, g.path);
		st = tw_s3_presign(&g.s, expires_s, out, err);
	}
	explicit_bzero(&g.key, sizeof g.key);
	return st;
}
