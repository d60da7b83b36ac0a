#include "server/cli/client/push_client.h"

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "server/base/clock.h"

enum {
	TRIES = 7,
	FIRST_WAIT_MS = 500,
	MAX_WAIT_MS = 30000,
	WAIT_MOST_MS = 900000, /* longest total wait by Retry-After, per request */
	CONNECT_S = 15,
	STALL_BYTES_PER_S = 64,
	STALL_S = 60,
	MAX_URL = 16 << 10
};

struct tw_push_client {
	CURL *curl;
	char *server;
	char *authorization;
	bool progress;
};

struct tw_push_client *tw_push_client_free(struct tw_push_client *c)
{
	if (!c)
		return NULL;
	curl_easy_cleanup(c->curl);
	tw_mem_free(c->server);
	tw_mem_free(c->authorization);
	tw_mem_free(c);
	curl_global_cleanup();
	return NULL;
}

static char *text_of(const char *a, const char *b)
{
	size_t len = strlen(a) + strlen(b) + 1;
	char *p = tw_mem_alloc(len, 1);

	if (p)
		(void)snprintf(p, len, "%s%s", a, b);
	return p;
}

enum tw_status tw_push_client_new(const char *server, const char *key, bool progress,
        struct tw_push_client **ret, struct tw_err *err)
{
	struct tw_push_client *c;
	size_t len = strlen(server);

	if (strstr(server, "://") && strncmp(server, "http://", 7) != 0 &&
	        strncmp(server, "https://", 8) != 0)
		return tw_fail(err, TW_BAD_REQUEST,
		        "%.120s is not an address of a server: http:// or https://", server);
	c = tw_mem_zalloc(1, sizeof *c);
	if (!c || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		tw_mem_free(c);
		return tw_oom(err);
	}
	c->curl = curl_easy_init();
	c->server = text_of(server, "");
	c->authorization = text_of("Authorization: Bearer ", key);
	c->progress = progress;
	if (!c->curl || !c->server || !c->authorization) {
		(void)tw_push_client_free(c);
		return tw_oom(err);
	}
	if (len && server[len - 1] == '/')
		c->server[len - 1] = '\0';
	*ret = c;
	return TW_OK;
}

enum tw_status tw_push_client_query(struct tw_push_client *c, struct tw_buf *out, const char *name,
        const char *value, struct tw_err *err)
{
	char *escaped = curl_easy_escape(c->curl, value, 0);
	enum tw_status st = TW_NOMEM;

	if (escaped)
		st = tw_buf_printf(out, "%s%s=%s", out->len ? "&" : "?", name, escaped);
	curl_free(escaped);
	return st == TW_OK ? TW_OK : tw_fail(err, TW_BAD_REQUEST, "the query is too long");
}

/* --- callbacks --- */

static size_t on_answer(char *p, size_t size, size_t n, void *arg)
{
	return tw_buf_add(arg, p, size * n) == TW_OK ? size * n : 0;
}

static size_t on_read(char *p, size_t size, size_t n, void *arg)
{
	return fread(p, size, n, arg);
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
	return fseeko(arg, (off_t)offset, origin) == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static int on_progress(
        void *arg, curl_off_t down_total, curl_off_t down, curl_off_t total, curl_off_t done)
{
	(void)down_total;
	(void)down;
	if (total > 0)
		(void)fprintf(stderr, "\r%s %3d%% of %.1f MB ", (const char *)arg,
		        (int)(done * 100 / total), (double)total / 1e6);
	return 0;
}

/* --- one attempt --- */

struct attempt {
	struct tw_push_client *client;
	const struct tw_push_request *request;
	FILE *file;
	curl_mime *form;
	struct curl_slist *headers;
	struct tw_buf answer;
	long http;
};

static enum tw_status add_header(struct attempt *a, const char *text, struct tw_err *err)
{
	struct curl_slist *longer = curl_slist_append(a->headers, text);

	if (!longer)
		return tw_oom(err);
	a->headers = longer;
	return TW_OK;
}

static enum tw_status add_headers(struct attempt *a, struct tw_err *err)
{
	char text[320];
	enum tw_status st = add_header(a, a->client->authorization, err);

	if (st == TW_OK && a->file)
		st = add_header(a, "Content-Type: application/octet-stream", err);
	if (st == TW_OK && a->request->idempotency) {
		(void)snprintf(text, sizeof text, "Idempotency-Key: %s", a->request->idempotency);
		st = add_header(a, text, err);
	}
	return st;
}

static enum tw_status set_file(struct attempt *a, struct tw_err *err)
{
	CURL *curl = a->client->curl;
	struct stat st;

	a->file = fopen(a->request->file, "re");
	if (!a->file || fstat(fileno(a->file), &st) != 0 || !S_ISREG(st.st_mode))
		return a->file ? tw_fail(err, TW_IO, "cannot read %s: not a regular file",
		                         a->request->label)
		               : tw_fail_errno(err, TW_IO, "cannot read %s", a->request->label);
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)st.st_size);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(curl, CURLOPT_READDATA, a->file);
	curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(curl, CURLOPT_SEEKDATA, a->file);
	return TW_OK;
}

static bool add_part(curl_mime *form, const char *name, const char *path)
{
	curl_mimepart *part = curl_mime_addpart(form);

	return part && curl_mime_name(part, name) == CURLE_OK &&
	       curl_mime_filedata(part, path) == CURLE_OK;
}

static enum tw_status set_form(struct attempt *a, struct tw_err *err)
{
	const struct tw_push_request *r = a->request;

	a->form = curl_mime_init(a->client->curl);
	if (!a->form || !add_part(a->form, "trace", r->file))
		return tw_fail(err, TW_IO, "cannot read %s", r->label);
	for (size_t i = 0; i < r->n_parts; i++)
		if (!add_part(a->form, r->parts[i].name, r->parts[i].file))
			return tw_fail(err, TW_IO, "cannot read %s", r->parts[i].file);
	curl_easy_setopt(a->client->curl, CURLOPT_MIMEPOST, a->form);
	return TW_OK;
}

static enum tw_status prepare(struct attempt *a, const char *url, struct tw_err *err)
{
	CURL *curl = a->client->curl;
	enum tw_status st = TW_OK;

	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES_PER_S);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
	curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &a->answer);
	if (a->request->file)
		st = a->request->n_parts ? set_form(a, err) : set_file(a, err);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, a->request->method);
	if (st == TW_OK)
		st = add_headers(a, err);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, a->headers);
	if (a->client->progress && a->request->file) {
		curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
		curl_easy_setopt(curl, CURLOPT_XFERINFODATA, a->request->label);
	}
	return st;
}

static enum tw_status refusal(const struct attempt *a, struct tw_err *err)
{
	json_t *json = json_loadb((const char *)a->answer.data, a->answer.len, 0, NULL);
	const json_t *e = json_object_get(json, "error");
	const char *word = json_string_value(json_object_get(e, "status"));
	const char *message = json_string_value(json_object_get(e, "message"));
	enum tw_status code = word ? tw_status_of_name(word) : TW_IO;

	tw_fail(err, code, "the server returned %ld: %s", a->http,
	        message ? message : "no reason given");
	json_decref(json);
	return code;
}

static enum tw_status read_answer(const struct attempt *a, json_t **ret, struct tw_err *err)
{
	json_t *json;

	if (a->http < 200 || a->http > 299)
		return refusal(a, err);
	json = json_loadb((const char *)a->answer.data, a->answer.len, 0, NULL);
	if (!json)
		return tw_fail(err, TW_IO, "the response is not JSON: is this a tracewell server?");
	*ret = json;
	return TW_OK;
}

static bool may_repeat(CURLcode code, long http)
{
	if (code != CURLE_OK)
		return code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL &&
		       code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_WRITE_ERROR;
	return http == 429 || (http >= 500 && http != 501);
}

static void attempt_done(struct attempt *a)
{
	curl_mime_free(a->form);
	curl_slist_free_all(a->headers);
	if (a->file)
		(void)fclose(a->file);
	tw_buf_done(&a->answer);
	if (a->client->progress && a->request->file)
		(void)fputs("\r\033[K", stderr);
}

static bool is_tls(const struct tw_push_client *c)
{
	return strncmp(c->server, "https://", 8) == 0;
}

/* Whether the server's port answers in the other of http and https.  A port for TLS may answer
 * plain HTTP with an error. */
static bool has_other_scheme(const struct tw_push_client *c, CURLcode code)
{
	const bool tls = is_tls(c);
	CURL *curl;
	CURLcode answer;
	char url[MAX_URL];
	long port = 0;

	if (code != CURLE_SSL_CONNECT_ERROR && code != CURLE_GOT_NOTHING &&
	        code != CURLE_RECV_ERROR && code != CURLE_UNSUPPORTED_PROTOCOL)
		return false;
	curl = curl_easy_init();
	if (!curl)
		return false;
	(void)curl_easy_getinfo(c->curl, CURLINFO_PRIMARY_PORT, &port);
	(void)snprintf(url, sizeof url, "%s%s/healthz", tls ? "http://" : "https://",
	        c->server + (tls                                            ? 8
	                            : strncmp(c->server, "http://", 7) == 0 ? 7
	                                                                    : 0));
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PORT, port);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(curl, CURLOPT_FAILONERROR, tls ? 1L : 0L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)CONNECT_S);
	answer = curl_easy_perform(curl);
	curl_easy_cleanup(curl);
	return answer == CURLE_OK || (!tls && answer == CURLE_PEER_FAILED_VERIFICATION);
}

static enum tw_status transport_failed(
        const struct tw_push_client *c, CURLcode code, struct tw_err *err)
{
	const char *why =
	        code == CURLE_WRITE_ERROR ? "the response is too large" : curl_easy_strerror(code);
	long os = 0; /* the reason for a failed connection: "Connection refused" */

	if (code == CURLE_COULDNT_CONNECT &&
	        curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &os) == CURLE_OK &&
	        strerrordesc_np((int)os))
		why = os ? strerrordesc_np((int)os) : why;
	bool is_misused = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;

	return tw_fail(err, is_misused ? TW_BAD_REQUEST : TW_IO, "%s: %s", c->server, why);
}

/* Returns the result of one attempt. *ret_again: the error is temporary; the response may have
 * Retry-After. */
static enum tw_status try_once(struct tw_push_client *c, const struct tw_push_request *request,
        json_t **ret, bool *ret_again, struct tw_err *err)
{
	struct attempt a = {.client = c, .request = request};
	char url[MAX_URL];
	CURLcode code;
	enum tw_status st;

	*ret_again = false;
	tw_buf_init(&a.answer, request->max_response ? request->max_response : TW_PUSH_RESPONSE);
	(void)snprintf(url, sizeof url, "%s%s", c->server, request->path);
	st = prepare(&a, url, err);
	if (st == TW_OK) {
		code = curl_easy_perform(c->curl);
		curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &a.http);
		*ret_again = may_repeat(code, a.http);
		/* a refusal may arrive while the body is still being sent: the response counts */
		if (code == CURLE_OK || (a.http >= 400 && a.answer.len))
			st = read_answer(&a, ret, err);
		else if (has_other_scheme(c, code))
			st = tw_fail(err, TW_BAD_REQUEST,
			        is_tls(c) ? "%s: the server uses plain HTTP: use http://"
			                  : "%s: the server uses TLS: use https://",
			        c->server);
		else
			st = transport_failed(c, code, err);
		*ret_again = *ret_again && st != TW_BAD_REQUEST;
		if (code != CURLE_OK && a.http >= 400 && a.http < 500 && a.answer.len)
			*ret_again = false;
	}
	attempt_done(&a);
	return st;
}

/* The value of Retry-After; 0: none. */
static int64_t retry_after_ms(CURL *curl)
{
	curl_off_t delay_s = 0;

	if (curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &delay_s) != CURLE_OK || delay_s < 0)
		return 0;
	return delay_s < INT32_MAX ? delay_s * 1000 : INT64_C(1000) * INT32_MAX;
}

/* The doubled wait, randomised from half to one and a half. */
static int64_t wait_ms(unsigned tries)
{
	int64_t ms = (int64_t)FIRST_WAIT_MS << tries;

	if (ms > MAX_WAIT_MS)
		ms = MAX_WAIT_MS;
	return ms / 2 + (int64_t)(randombytes_random() % (uint32_t)ms);
}

/* A server that sends Retry-After is busy, not broken: waiting for it does not count as an attempt,
 * up to a limit. */
enum tw_status tw_push_client_send(struct tw_push_client *c, const struct tw_push_request *request,
        json_t **ret, struct tw_err *err)
{
	int64_t patience_ms = WAIT_MOST_MS;
	unsigned tries = 0;

	for (;;) {
		bool again;
		enum tw_status st = try_once(c, request, ret, &again, err);
		int64_t retry_ms = again ? retry_after_ms(c->curl) : 0;
		int64_t ms = retry_ms + wait_ms(tries);

		if (retry_ms == 0)
			tries++;
		else
			patience_ms -= ms;
		if (!again || request->once || tries == TRIES || patience_ms < 0)
			return st;
		(void)fprintf(
		        stderr, "tracewell: %s; retrying in %.1f s\n", err->msg, (double)ms / 1000);
		tw_sleep_ms(ms);
	}
}
