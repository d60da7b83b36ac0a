#include "server/auth/oidc/oidc_provider.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "server/auth/oidc/oidc_fetch.h"
#include "server/base/clock.h"
#include "server/base/text/json.h"

enum { URL_BYTES = 640 };
static const int64_t kept_ms = 3600000;
static const int64_t away_ms = 2000; /* no new request for this time after a failure */

struct known { /* a document, and when it was received */
	json_t *json;
	int64_t at_ms;
};

struct tw_provider {
	const struct tw_oidc_config *config;
	pthread_mutex_t lock; /* of the fields below; not held during requests */
	struct known about, keys;
	int64_t failed_ms,
	        refreshed_ms; /* time of the last failure, of the last request for new keys */
	struct tw_err why;
};

struct tw_provider *tw_provider_new(const struct tw_oidc_config *c)
{
	struct tw_provider *p = tw_mem_zalloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->config = c;
	p->failed_ms = -away_ms;
	p->refreshed_ms = -TW_PROVIDER_REFRESH_MS;
	(void)pthread_mutex_init(&p->lock, NULL);
	return p;
}

struct tw_provider *tw_provider_free(struct tw_provider *p)
{
	if (!p)
		return NULL;
	json_decref(p->about.json);
	json_decref(p->keys.json);
	(void)pthread_mutex_destroy(&p->lock);
	tw_mem_free(p);
	return NULL;
}

/* --- cache --- */

/* A copy of a cached document that is new enough, or NULL. */
static json_t *cached(struct tw_provider *p, const struct known *k)
{
	json_t *copy = NULL;

	(void)pthread_mutex_lock(&p->lock);
	if (k->json && tw_monotonic_ms() - k->at_ms < kept_ms)
		copy = json_deep_copy(k->json);
	(void)pthread_mutex_unlock(&p->lock);
	return copy;
}

static void store(struct tw_provider *p, struct known *k, const json_t *json)
{
	json_t *copy = json_deep_copy(json);

	(void)pthread_mutex_lock(&p->lock);
	json_decref(k->json);
	*k = (struct known){copy, tw_monotonic_ms()};
	(void)pthread_mutex_unlock(&p->lock);
}

/* Repeats the failure of the last seconds instead of a new request: an unresponsive provider would
 * delay each sign-in in turn. */
static enum tw_status recent_failure(struct tw_provider *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	int64_t ago;

	(void)pthread_mutex_lock(&p->lock);
	ago = tw_monotonic_ms() - p->failed_ms;
	if (ago >= 0 && ago < away_ms) {
		st = p->why.code;
		tw_err_copy(err, &p->why);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return st;
}

static enum tw_status get(
        struct tw_provider *p, const char *url, uint64_t ms, json_t **ret, struct tw_err *err)
{
	const struct tw_fetch f = {.url = url,
	        .ca_file = p->config->ca_file,
	        .loopback_http = p->config->loopback_http,
	        .ms = ms};
	struct tw_err why = {.code = TW_OK};
	json_t *json = NULL;
	long http = 0;
	enum tw_status st = recent_failure(p, err);

	if (st != TW_OK)
		return st;
	st = tw_oidc_fetch(&f, &http, &json, &why);
	if (st == TW_OK && (http != 200 || !json))
		st = tw_fail(&why, TW_IO, "the provider responded with %ld to %.100s", http, url);
	if (st == TW_OK) {
		*ret = json;
		return TW_OK;
	}
	json_decref(json);
	(void)pthread_mutex_lock(&p->lock);
	p->failed_ms = tw_monotonic_ms();
	p->why = why;
	(void)pthread_mutex_unlock(&p->lock);
	tw_err_copy(err, &why);
	return st;
}

/* --- metadata --- */

static bool lists(const json_t *about, const char *name, const char *word)
{
	const json_t *list = json_object_get(about, name);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *one = json_string_value(json_array_get(list, i));

		if (one && strcmp(one, word) == 0)
			return true;
	}
	return false;
}

/* The metadata must name the configured issuer, otherwise another server could act as the
 * provider. */
static enum tw_status check_metadata(
        const struct tw_provider *p, const json_t *about, struct tw_err *err)
{
	static const char *const needed[] = {
	        "authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"};

	if (strcmp(tw_json_text(about, "issuer"), p->config->issuer) != 0)
		return tw_fail(err, TW_IO,
		        "the provider's issuer is %.60s; --oidc-issuer must be equal to it",
		        tw_json_text(about, "issuer"));
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		const char *url = tw_json_text(about, needed[i]);

		if (i == 3 && !*url)
			continue;
		if (!tw_fetch_allows(url, p->config->loopback_http))
			return tw_fail(err, TW_IO,
			        "the provider's %s is not an https address: %.80s", needed[i], url);
	}
	return TW_OK;
}

static enum tw_status get_metadata(
        struct tw_provider *p, uint64_t ms, json_t **ret, struct tw_err *err)
{
	static const char well_known[] = "/.well-known/openid-configuration";
	const char *issuer = p->config->issuer;
	size_t n = strlen(issuer);
	char url[URL_BYTES];
	json_t *about = cached(p, &p->about);
	enum tw_status st;

	if (about) {
		*ret = about;
		return TW_OK;
	}
	while (n && issuer[n - 1] == '/')
		n--;
	/* config.def limits the issuer to 512 bytes */
	(void)snprintf(url, sizeof url, "%.*s%s", (int)n, issuer, well_known);
	st = get(p, url, ms, &about, err);
	if (st == TW_OK)
		st = check_metadata(p, about, err);
	if (st != TW_OK) {
		json_decref(about);
		return st;
	}
	store(p, &p->about, about);
	*ret = about;
	return TW_OK;
}

enum tw_status tw_provider_metadata(struct tw_provider *p, uint64_t ms, struct tw_arena *a,
        struct tw_provider_metadata *ret, struct tw_err *err)
{
	static const char methods[] = "token_endpoint_auth_methods_supported";
	struct tw_provider_metadata metadata = {.authorization = "", .token = "", .userinfo = ""};
	json_t *about = NULL;
	enum tw_status st = get_metadata(p, ms, &about, err);

	if (st != TW_OK)
		return st;
	metadata = (struct tw_provider_metadata){
	        .authorization =
	                tw_arena_str(a, tw_str_of(tw_json_text(about, "authorization_endpoint"))),
	        .token = tw_arena_str(a, tw_str_of(tw_json_text(about, "token_endpoint"))),
	        .userinfo = tw_arena_str(a, tw_str_of(tw_json_text(about, "userinfo_endpoint"))),
	        .by_post = lists(about, methods, "client_secret_post") &&
	                   !lists(about, methods, "client_secret_basic"),
	        .names_itself = json_is_true(
	                json_object_get(about, "authorization_response_iss_parameter_supported"))};
	json_decref(about);
	if (!metadata.authorization || !metadata.token || !metadata.userinfo)
		return tw_oom(err);
	*ret = metadata;
	return TW_OK;
}

/* Senders of invalid tokens must not control how often keys are requested. */
static bool may_refresh_keys(struct tw_provider *p)
{
	int64_t now_ms = tw_monotonic_ms();
	bool may;

	(void)pthread_mutex_lock(&p->lock);
	may = now_ms - p->refreshed_ms >= TW_PROVIDER_REFRESH_MS;
	if (may)
		p->refreshed_ms = now_ms;
	(void)pthread_mutex_unlock(&p->lock);
	return may;
}

enum tw_status tw_provider_keys(
        struct tw_provider *p, bool refresh, uint64_t ms, json_t **ret, struct tw_err *err)
{
	json_t *keys = refresh && may_refresh_keys(p) ? NULL : cached(p, &p->keys);
	json_t *about = NULL;
	enum tw_status st = TW_OK;

	if (!keys) {
		st = get_metadata(p, ms, &about, err);
		if (st == TW_OK)
			st = get(p, tw_json_text(about, "jwks_uri"), ms, &keys, err);
		if (st == TW_OK)
			store(p, &p->keys, keys);
		json_decref(about);
	}
	if (st == TW_OK)
		*ret = keys;
	return st;
}
