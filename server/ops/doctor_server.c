/* Checks of a server as clients see it: reachable, ready, clock, key. */
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder/base/buf.h"
#include "server/base/text/json.h"
#include "server/ops/doctor.h"

enum { ANSWER_BYTES = 1 << 20, URL_BYTES = 2048, PATIENCE_S = 15, SKEW_S = 60 };

struct answer {
	long http;
	json_t *json; /* NULL: no JSON */
	time_t date;  /* by the server's clock; 0 if the response has none */
	char why[CURL_ERROR_SIZE];
};

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	return tw_buf_add(arg, p, size * n) == TW_OK ? size * n : 0;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	char line[128];

	if (size * n > 6 && size * n < sizeof line && strncasecmp(p, "date: ", 6) == 0) {
		(void)snprintf(line, sizeof line, "%.*s", (int)(size * n) - 6, p + 6);
		a->date = curl_getdate(line, NULL);
	}
	return size * n;
}

static CURLcode perform(
        CURL *curl, const char *url, const char *key, struct tw_buf *body, struct answer *ret)
{
	struct curl_slist *headers = NULL;
	char authorization[512];
	CURLcode rc;

	(void)snprintf(
	        authorization, sizeof authorization, "Authorization: Bearer %s", key ? key : "");
	if (key)
		headers = curl_slist_append(NULL, authorization);
	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)PATIENCE_S);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, ret->why);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, ret);
	rc = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->http);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
	curl_slist_free_all(headers);
	return rc;
}

/* False: no response; the reason was reported.  Release the response with json_decref. */
static bool request(
        CURL *curl, const char *server, const char *path, const char *key, struct answer *ret)
{
	struct tw_buf body;
	char url[URL_BYTES];
	size_t len = strlen(server);
	CURLcode rc;

	*ret = (struct answer){0};
	while (len && server[len - 1] == '/')
		len--;
	(void)snprintf(url, sizeof url, "%.*s%s", (int)len, server, path);
	tw_buf_init(&body, ANSWER_BYTES);
	rc = perform(curl, url, key, &body, ret);
	if (rc != CURLE_OK && !ret->why[0])
		(void)snprintf(ret->why, sizeof ret->why, "%s", curl_easy_strerror(rc));
	if (rc == CURLE_OK)
		ret->json = json_loadb((const char *)body.data, body.len, 0, NULL);
	tw_buf_done(&body);
	return rc == CURLE_OK;
}

static bool check_reached(struct tw_doctor *d, CURL *curl)
{
	struct answer a;
	bool reached = request(curl, d->server, "/healthz", NULL, &a);
	bool ours = reached && a.http == 200 && strcmp(tw_json_text(a.json, "status"), "ok") == 0;
	long long skew = a.date ? (long long)(a.date - time(NULL)) : 0;

	json_decref(a.json);
	if (!reached)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "reach",
		        "%s does not respond: %s. Check that the server is running, the address, "
		        "and firewalls and proxies.",
		        d->server, a.why);
	else if (!ours)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "not_tracewell",
		        "A program other than tracewell responds at %s (status %ld for /healthz).",
		        d->server, a.http);
	else
		tw_doctor_report(d, TW_DOCTOR_GOOD, "reach", "%s responds.", d->server);
	if (ours && (skew > SKEW_S || skew < -SKEW_S))
		tw_doctor_report(d, TW_DOCTOR_WRONG, "skew",
		        "The server's clock is %lld seconds %s this machine's. Set both (NTP).",
		        llabs(skew), skew > 0 ? "ahead of" : "behind");
	return ours;
}

static void check_ready(struct tw_doctor *d, CURL *curl)
{
	struct answer a;
	const char *name;
	json_t *check;

	if (!request(curl, d->server, "/readyz", NULL, &a))
		return;
	if (a.http == 200)
		tw_doctor_report(d, TW_DOCTOR_GOOD, "ready", "The server accepts uploads.");
	json_object_foreach(json_object_get(a.json, "checks"), name, check)
	{
		if (!json_is_true(json_object_get(check, "ok")))
			tw_doctor_report(d, TW_DOCTOR_WRONG, "ready",
			        "The server is not ready: %s.", tw_json_text(check, "message"));
	}
	json_decref(a.json);
}

static void check_key(struct tw_doctor *d, CURL *curl)
{
	struct answer a;
	const json_t *project;

	if (!d->key || !request(curl, d->server, "/api/v1/session", d->key, &a))
		return;
	project = json_object_get(a.json, "project");
	if (a.http == 200 && json_is_object(project))
		tw_doctor_report(d, TW_DOCTOR_GOOD, "key", "The key has scope %s in project %s.",
		        tw_json_text(a.json, "scope"), tw_json_text(project, "name"));
	else
		tw_doctor_report(d, TW_DOCTOR_WRONG, "key",
		        "The server does not know this key. It may be mistyped, revoked, expired "
		        "or of another server. `tracewell key list --data DIR` lists the "
		        "keys.");
	json_decref(a.json);
}

void tw_doctor_server(struct tw_doctor *d)
{
	CURL *curl;

	if (!d->server)
		return;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return;
	curl = curl_easy_init();
	if (curl && check_reached(d, curl)) {
		check_ready(d, curl);
		check_key(d, curl);
	}
	curl_easy_cleanup(curl);
	curl_global_cleanup();
}

/* --- the public URL --- */

/* A loopback address, which leads each reader to their own machine. */
static bool is_of_this_machine(const char *url)
{
	static const char *const here[] = {"://localhost", "://127.", "://[::1]"};
	bool any = false;

	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		any = any || strstr(url, here[i]);
	return any;
}

static void check_public(struct tw_doctor *d, CURL *curl)
{
	struct answer a;
	bool reached = request(curl, d->public_url, "/healthz", NULL, &a);
	bool ours = reached && a.http == 200 && strcmp(tw_json_text(a.json, "status"), "ok") == 0;

	json_decref(a.json);
	if (!reached)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "public_url",
		        "Links in webhooks and mails lead to %s, which does not respond: %s.",
		        d->public_url, a.why);
	else if (!ours)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "public_url",
		        "Links in webhooks and mails lead to %s, where a program other than "
		        "tracewell responds (status %ld for /healthz).",
		        d->public_url, a.http);
	else if (is_of_this_machine(d->public_url))
		tw_doctor_report(d, TW_DOCTOR_NOTE, "public_url",
		        "Links in webhooks and mails lead to %s, which is the reader's own "
		        "machine.",
		        d->public_url);
	else
		tw_doctor_report(d, TW_DOCTOR_GOOD, "public_url",
		        "Links in webhooks and mails lead to %s, which responds.", d->public_url);
}

void tw_doctor_public(struct tw_doctor *d)
{
	CURL *curl;

	if (!d->public_url || !*d->public_url || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return;
	curl = curl_easy_init();
	if (curl)
		check_public(d, curl);
	curl_easy_cleanup(curl);
	curl_global_cleanup();
}
