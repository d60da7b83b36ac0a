#include "server/catalogue/notify/hook.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *const tw_hook_event_names[TW_HOOK_EVENTS + 1] = {"regression.found",
        "regression.returned", "regression.fixed", "regression.status", "anr.new", "digest", "test",
        "anr.returned", "alert.found", "alert.returned", "alert.fixed", NULL};
const char *const tw_hook_kind_names[TW_HOOK_KINDS + 1] = {
        "json", "slack", "teams", "matrix", NULL};

/* --- signing --- */

enum { MAC_BYTES = 32, HEAD_BYTES = 32 };

static bool mac_of(const char *secret, const char *head, struct tw_str body, uint8_t ret[MAC_BYTES])
{
	gnutls_hmac_hd_t mac;

	if (gnutls_hmac_init(&mac, GNUTLS_MAC_SHA256, secret, strlen(secret)) != 0)
		return false;
	if (gnutls_hmac(mac, head, strlen(head)) != 0 ||
	        gnutls_hmac(mac, body.ptr, body.len) != 0) {
		gnutls_hmac_deinit(mac, NULL);
		return false;
	}
	gnutls_hmac_deinit(mac, ret);
	return true;
}

enum tw_status tw_hook_sign(const char *secret, int64_t at_s, struct tw_str body,
        char ret[TW_HOOK_SIGNATURE_BYTES], struct tw_err *err)
{
	char head[HEAD_BYTES];
	uint8_t mac[MAC_BYTES];
	size_t at;

	(void)snprintf(head, sizeof head, "%" PRId64 ".", at_s);
	if (!mac_of(secret, head, body, mac))
		return tw_fail(err, TW_NOMEM, "a webhook could not be signed");
	at = (size_t)snprintf(ret, TW_HOOK_SIGNATURE_BYTES, "t=%" PRId64 ",v1=", at_s);
	for (size_t i = 0; i < MAC_BYTES; i++)
		(void)snprintf(ret + at + 2 * i, 3, "%02x", mac[i]);
	return TW_OK;
}

/* --- retries --- */

int64_t tw_hook_wait_ms(int64_t fails, uint32_t random, int64_t retry_after_s)
{
	const int64_t first = 60000, most = 6 * INT64_C(3600000), day_s = 86400;
	int64_t wait = first;

	for (int64_t i = 1; i < fails && wait < most; i++)
		wait *= 2;
	wait = wait < most ? wait : most;
	wait += wait / 5 * ((int64_t)(random % 2001) - 1000) / 1000;
	if (retry_after_s > day_s)
		retry_after_s = day_s;
	return retry_after_s * 1000 > wait ? retry_after_s * 1000 : wait;
}

/* --- allowed addresses --- */

static size_t scheme_of(const char *url)
{
	if (strncasecmp(url, "https://", 8) == 0)
		return 8;
	return strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
}

/* Parsed as libcurl will parse it. */
static bool is_whole(const char *url)
{
	CURLU *parts = curl_url();
	const bool is_valid = parts && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;

	curl_url_cleanup(parts);
	return is_valid;
}

enum tw_status tw_hook_url(const char *url, struct tw_err *err)
{
	const size_t scheme = scheme_of(url);
	const size_t host = strcspn(url + scheme, "/?#");

	if (strlen(url) > TW_HOOK_URL_BYTES)
		return tw_fail(
		        err, TW_BAD_REQUEST, "url is longer than %d bytes", TW_HOOK_URL_BYTES);
	if (!tw_str_is_graphic(tw_str_of(url)) || strchr(url, '\\'))
		return tw_fail(err, TW_BAD_REQUEST,
		        "url contains a character that is not allowed in an address: "
		        "percent-encode it");
	if (!scheme || host == 0)
		return tw_fail(err, TW_BAD_REQUEST, "url must be http:// or https:// and a host");
	if (memchr(url + scheme, '@', host))
		return tw_fail(err, TW_BAD_REQUEST,
		        "url must not contain a name or password: deliveries are signed instead");
	if (!is_whole(url))
		return tw_fail(err, TW_BAD_REQUEST, "url has no valid host and port");
	return TW_OK;
}

void tw_hook_host(const char *url, char *out, size_t cap)
{
	const size_t scheme = scheme_of(url);

	(void)snprintf(out, cap, "%.*s", (int)(scheme + strcspn(url + scheme, "/?#")), url);
}

static const char refused[] =
        "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12,"
        "192.0.0.0/24, 192.168.0.0/16, 198.18.0.0/15, 224.0.0.0/4, 240.0.0.0/4,"
        "::/96, fe80::/9, fc00::/7, ff00::/8, 100::/64, 2001::/32, 64:ff9b:1::/48";

/* The IPv4 address embedded for a translator or 6to4; false: none. */
static bool hidden_in(const char *address, char ret[INET_ADDRSTRLEN])
{
	static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	uint8_t six[16];

	if (inet_pton(AF_INET6, address, six) != 1)
		return false;
	if (memcmp(six, nat64, sizeof nat64) == 0)
		return inet_ntop(AF_INET, six + 12, ret, INET_ADDRSTRLEN) != NULL;
	if (six[0] == 0x20 && six[1] == 0x02)
		return inet_ntop(AF_INET, six + 2, ret, INET_ADDRSTRLEN) != NULL;
	return false;
}

bool tw_hook_is_private(const char *address)
{
	struct tw_proxies ranges;
	char four[INET_ADDRSTRLEN];

	if (tw_proxies_parse(refused, &ranges, NULL) != TW_OK)
		return true;
	return tw_proxies_trust(&ranges, address) ||
	       (hidden_in(address, four) && tw_proxies_trust(&ranges, four));
}

/* The host as libcurl uses it, without the brackets of IPv6; NULL: none.  Free with curl_free. */
static char *host_of(const char *url)
{
	CURLU *parts = curl_url();
	char *host = NULL;
	size_t len;

	if (parts && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK)
		(void)curl_url_get(parts, CURLUPART_HOST, &host, 0);
	curl_url_cleanup(parts);
	len = host ? strlen(host) : 0;
	if (len > 2 && host[0] == '[') {
		memmove(host, host + 1, len - 2);
		host[len - 2] = '\0';
	}
	return host;
}

/* libcurl resolves these without DNS. */
static bool is_localhost(const char *host)
{
	static const char name[] = "localhost";
	size_t len = strlen(host);
	size_t n = sizeof name - 1;

	return len >= n && strcasecmp(host + len - n, name) == 0 &&
	       (len == n || host[len - n - 1] == '.');
}

enum tw_status tw_hook_url_public(
        const char *url, const struct tw_proxies *allowed, struct tw_err *err)
{
	char *host = host_of(url);
	const char *address = host && is_localhost(host) ? "127.0.0.1" : host;
	enum tw_status st = TW_OK;

	if (host && tw_hook_is_private(address) && !tw_proxies_trust(allowed, address))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "%.100s is a private address, which --webhook-private does not allow",
		        host);
	curl_free(host);
	return st;
}
