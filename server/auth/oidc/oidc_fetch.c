#include "server/auth/oidc/oidc_fetch.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>

enum { HOST_BYTES = 256 };

enum tw_status tw_fetch_prepare(struct tw_err *err)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return tw_fail(err, TW_NOMEM, "libcurl cannot be initialised");
	return TW_OK;
}

/* --- allowed URLs --- */

static bool is_plain(const char *url)
{
	return tw_str_is_graphic(tw_str_of(url)) && !strchr(url, '\\');
}

/* host[:port] of the authority; a user and password are refused. */
static bool host_of(const char *authority, char ret[HOST_BYTES])
{
	size_t n = strcspn(authority, "/?#");
	bool is_six = *authority == '[';
	size_t host;

	if (n == 0 || memchr(authority, '@', n))
		return false;
	authority += is_six;
	host = strcspn(authority, is_six ? "]/?#" : ":/?#");
	if (host == 0 || host >= HOST_BYTES)
		return false;
	memcpy(ret, authority, host);
	ret[host] = '\0';
	return true;
}

static bool is_loopback(const char *host)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, host, &four) == 1)
		return (ntohl(four.s_addr) >> 24) == 127;
	if (inet_pton(AF_INET6, host, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return strcasecmp(host, "localhost") == 0;
}

bool tw_fetch_allows(const char *url, bool loopback_http)
{
	static const char https[] = "https://", http[] = "http://";
	char host[HOST_BYTES];

	if (!is_plain(url))
		return false;
	if (strncmp(url, https, sizeof https - 1) == 0)
		return host_of(url + sizeof https - 1, host);
	return loopback_http && strncmp(url, http, sizeof http - 1) == 0 &&
	       host_of(url + sizeof http - 1, host) && is_loopback(host);
}

/* --- requests --- */

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	return tw_buf_add(arg, p, size * n) == TW_OK ? size * n : 0;
}

static void set_limits(CURL *curl, const struct tw_fetch *f)
{
	long ms = (long)(f->ms < TW_FETCH_MS ? f->ms : TW_FETCH_MS);

	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ms ? ms : 1L);
	(void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(
	        curl, CURLOPT_PROTOCOLS_STR, f->loopback_http ? "https,http" : "https");
	if (*f->ca_file)
		(void)curl_easy_setopt(curl, CURLOPT_CAINFO, f->ca_file);
}

/* NULL if out of memory. */
static struct curl_slist *set_request(CURL *curl, const struct tw_fetch *f)
{
	(void)curl_easy_setopt(curl, CURLOPT_URL, f->url);
	if (f->form)
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, f->form);
	if (f->user) {
		(void)curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		(void)curl_easy_setopt(curl, CURLOPT_USERNAME, f->user);
		(void)curl_easy_setopt(curl, CURLOPT_PASSWORD, f->password);
	}
	if (f->bearer) {
		(void)curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		(void)curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, f->bearer);
	}
	return curl_slist_append(NULL, "Accept: application/json");
}

static enum tw_status perform(CURL *curl, const struct tw_fetch *f, struct tw_buf *answer,
        long *ret_http, struct tw_err *err)
{
	struct curl_slist *headers = set_request(curl, f);
	CURLcode code;

	if (!headers)
		return tw_oom(err);
	set_limits(curl, f);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	code = curl_easy_perform(curl);
	curl_slist_free_all(headers);
	if (code != CURLE_OK)
		return tw_fail(
		        err, TW_IO, "the provider does not respond: %s", curl_easy_strerror(code));
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_http);
	return TW_OK;
}

enum tw_status tw_oidc_fetch(
        const struct tw_fetch *f, long *ret_http, json_t **ret, struct tw_err *err)
{
	struct tw_buf answer;
	enum tw_status st;
	json_t *json;
	CURL *curl;

	if (!tw_fetch_allows(f->url, f->loopback_http))
		return tw_fail(err, TW_IO,
		        "the provider names %.80s; only https addresses are used", f->url);
	curl = curl_easy_init();
	if (!curl)
		return tw_oom(err);
	tw_buf_init(&answer, TW_FETCH_MAX_BYTES);
	st = perform(curl, f, &answer, ret_http, err);
	curl_easy_cleanup(curl);
	if (st == TW_OK) {
		json = json_loadb(
		        (const char *)answer.data, answer.len, JSON_REJECT_DUPLICATES, NULL);
		*ret = json_is_object(json) ? json : NULL;
		if (!*ret)
			json_decref(json);
	}
	if (answer.data) /* it may contain a token */
		explicit_bzero(answer.data, answer.len);
	tw_buf_done(&answer);
	return st;
}

static void escape(struct tw_buf *b, const char *text)
{
	static const char plain[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text))
			(void)tw_buf_add(b, text, 1);
		else
			(void)tw_buf_printf(b, "%%%02X", (unsigned char)*text);
	}
}

/* The buffer may contain a secret. */
static const char *take(struct tw_buf *b, struct tw_arena *a)
{
	const char *text = NULL;

	if (tw_buf_status(b) == TW_OK)
		text = tw_arena_str(a, tw_buf_str(b));
	if (b->data)
		explicit_bzero(b->data, b->cap);
	tw_buf_done(b);
	return text;
}

const char *tw_form_escaped(struct tw_arena *a, const char *value)
{
	struct tw_buf b;

	tw_buf_init(&b, TW_FORM_MAX_BYTES);
	escape(&b, value);
	return take(&b, a);
}

const char *tw_form_text(struct tw_arena *a, const char *before, const struct tw_form_pair *pairs)
{
	struct tw_buf b;
	const char *between = "";

	tw_buf_init(&b, TW_FORM_MAX_BYTES);
	(void)tw_buf_add_str(&b, tw_str_of(before));
	for (; pairs->name; pairs++) {
		if (!pairs->value)
			continue;
		(void)tw_buf_printf(&b, "%s%s=", between, pairs->name);
		escape(&b, pairs->value);
		between = "&";
	}
	return take(&b, a);
}
