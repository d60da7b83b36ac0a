#include "s3.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

enum { TEXT_BYTES = 512, URL_BYTES = 2048, CONNECT_S = 15, STALL_S = 60, TRIES = 4 };

struct tw_s3 {
	CURL *curl;
	char base[TEXT_BYTES * 2]; /* endpoint/bucket/prefix */
	char user[TEXT_BYTES];     /* key id:secret */
	char provider[128];
	char told[TEXT_BYTES]; /* beginning of an answer */
};

struct tw_s3 *tw_s3_free(struct tw_s3 *s)
{
	if (!s)
		return NULL;
	curl_easy_cleanup(s->curl);
	explicit_bzero(s->user, sizeof s->user);
	tw_mem_free(s);
	curl_global_cleanup();
	return NULL;
}

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

static enum tw_status set_user(struct tw_s3 *s, struct tw_err *err)
{
	const char *id = setting("AWS_ACCESS_KEY_ID", NULL);
	const char *secret = setting("AWS_SECRET_ACCESS_KEY", NULL);

	if (!id || !secret)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
		        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to those of the store");
	if (snprintf(s->user, sizeof s->user, "%s:%s", id, secret) >= (int)sizeof s->user)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "the store's secret is too long");
	(void)snprintf(s->provider, sizeof s->provider, "aws:amz:%.80s:s3",
	        setting("AWS_REGION", "us-east-1"));
	return TW_OK;
}

static enum tw_status set_base(
        struct tw_s3 *s, const char *where, const char *endpoint, struct tw_err *err)
{
	size_t n = endpoint ? strlen(endpoint) : 0;
	const char *bucket = where + strlen("s3://");

	while (n && endpoint[n - 1] == '/')
		n--;
	if (!*bucket || *bucket == '/')
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
		        "say where to: s3://BUCKET or s3://BUCKET/PREFIX");
	if (endpoint)
		(void)snprintf(s->base, sizeof s->base, "%.*s/%.500s", (int)(n < 400 ? n : 400),
		        endpoint, bucket);
	else
		(void)snprintf(s->base, sizeof s->base, "https://s3.%.80s.amazonaws.com/%.500s",
		        setting("AWS_REGION", "us-east-1"), bucket);
	n = strlen(s->base);
	if (s->base[n - 1] == '/')
		s->base[n - 1] = '\0';
	return TW_OK;
}

enum tw_status tw_s3_new(
        const char *where, const char *endpoint, struct tw_s3 **ret, struct tw_err *err)
{
	struct tw_s3 *s = tw_mem_zalloc(1, sizeof *s);
	enum tw_status st;

	if (!s || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		tw_mem_free(s);
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	}
	s->curl = curl_easy_init();
	st = s->curl ? set_user(s, err) : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	if (st == TW_OK)
		st = set_base(s, where, endpoint, err);
	if (st == TW_OK)
		*ret = s;
	else
		(void)tw_s3_free(s);
	return st;
}

static size_t hear(char *p, size_t size, size_t n, void *arg)
{
	struct tw_s3 *s = arg;
	size_t used = strlen(s->told), room = sizeof s->told - 1 - used;

	memcpy(s->told + used, p, n < room ? n : room);
	return size * n;
}

static size_t give(char *p, size_t size, size_t n, void *arg)
{
	ssize_t got = read(*(const int *)arg, p, size * n);

	return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static void set_up(struct tw_s3 *s, const char *key)
{
	char url[URL_BYTES];

	curl_easy_reset(s->curl);
	memset(s->told, 0, sizeof s->told);
	(void)snprintf(url, sizeof url, "%s/%.400s", s->base, key);
	(void)curl_easy_setopt(s->curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(s->curl, CURLOPT_AWS_SIGV4, s->provider);
	(void)curl_easy_setopt(s->curl, CURLOPT_USERPWD, s->user);
	(void)curl_easy_setopt(s->curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(s->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	(void)curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_LIMIT, 64L);
	(void)curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
	(void)curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, hear);
	(void)curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
}

/* *ret_status 0 when nobody answered. */
static enum tw_status perform(
        struct tw_s3 *s, const char *key, long *ret_status, struct tw_err *err)
{
	CURLcode code = curl_easy_perform(s->curl);

	*ret_status = 0;
	if (code != CURLE_OK)
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "the store does not answer for %.100s: %s",
		        key, curl_easy_strerror(code));
	(void)curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, ret_status);
	return TW_OK;
}

static enum tw_status refused(
        const struct tw_s3 *s, const char *key, long status, struct tw_err *err)
{
	return tw_fail(err, TW_IO, TW_NO_OFFSET, "the store answered %ld for %.100s: %.150s",
	        status, key, s->told);
}

static bool worth_a_retry(long status)
{
	return status == 0 || status == 429 || status >= 500;
}

/* libcurl signs this header and sends none of its own beside it. */
static struct curl_slist *sum_header(const char *sha256)
{
	char text[128];

	(void)snprintf(text, sizeof text, "x-amz-content-sha256: %.64s", sha256);
	return curl_slist_append(NULL, text);
}

static enum tw_status head_once(
        struct tw_s3 *s, const char *key, long *ret_status, struct tw_err *err)
{
	static const char of_nothing[] =
	        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	struct curl_slist *headers = sum_header(of_nothing);
	enum tw_status st;

	if (!headers)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	set_up(s, key);
	(void)curl_easy_setopt(s->curl, CURLOPT_NOBODY, 1L);
	(void)curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, headers);
	st = perform(s, key, ret_status, err);
	curl_slist_free_all(headers);
	return st;
}

enum tw_status tw_s3_has(struct tw_s3 *s, const char *key, bool *ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	long status = 0;

	for (int i = 0; i < TRIES && worth_a_retry(status); i++) {
		if (i)
			(void)sleep(1U << (i - 1));
		st = head_once(s, key, &status, err);
	}
	if (st != TW_OK)
		return st;
	if (status != 200 && status != 404)
		return refused(s, key, status, err);
	*ret = status == 200;
	return TW_OK;
}

static enum tw_status put_once(struct tw_s3 *s, const char *key, int fd, const char *sha256,
        long *ret_status, struct tw_err *err)
{
	struct curl_slist *headers;
	struct stat st;
	enum tw_status done;

	if (fstat(fd, &st) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "%.100s cannot be read", key);
	headers = sum_header(sha256);
	if (!headers)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	set_up(s, key);
	(void)curl_easy_setopt(s->curl, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(s->curl, CURLOPT_READFUNCTION, give);
	(void)curl_easy_setopt(s->curl, CURLOPT_READDATA, &fd);
	(void)curl_easy_setopt(s->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)st.st_size);
	(void)curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, headers);
	done = perform(s, key, ret_status, err);
	curl_slist_free_all(headers);
	return done;
}

enum tw_status tw_s3_put(
        struct tw_s3 *s, const char *key, int fd, const char *sha256, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	long status = 0;

	for (int i = 0; i < TRIES && worth_a_retry(status); i++) {
		if (i)
			(void)sleep(1U << (i - 1));
		status = 0;
		st = put_once(s, key, fd, sha256, &status, err);
	}
	return st != TW_OK || status == 200 ? st : refused(s, key, status, err);
}
