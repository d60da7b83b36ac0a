/* doctor.c - its report, and the services that a server uses. */
#include "server/ops/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/base/arena.h"
#include "server/auth/oidc/jwt.h"
#include "server/auth/oidc/oidc_fetch.h"
#include "server/auth/oidc/oidc_provider.h"
#include "server/base/clock.h"
#include "server/catalogue/storage/storage_record.h"
#include "server/notify/hook_send.h"
#include "server/storage/blob_store.h"

const char *tw_doctor_name(enum tw_doctor_level l)
{
	static const char *const names[] = {"good", "note", "wrong"};

	return names[l];
}

void tw_doctor_report(
        struct tw_doctor *d, enum tw_doctor_level level, const char *what, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	d->wrong += level == TW_DOCTOR_WRONG;
	d->notes += level == TW_DOCTOR_NOTE;
	d->report(d->arg, level, what, text);
}

/* --- the mail server: settings, connection, certificate, sign-in; sends no mail --- */

enum { TIMEOUT_MS = 30000 };

/* False: the connection did not begin, or took too long. */
static bool sign_in(const struct tw_smtp *by, struct tw_sent *ret)
{
	const struct tw_proxies none = {.n = 0};
	const int64_t until = tw_monotonic_ms() + TIMEOUT_MS;
	struct tw_sender *s = NULL;
	bool ended = false;

	if (tw_sender_new(&none, &s, NULL) != TW_OK)
		return false;
	if (tw_sender_greet(s, by, NULL) == TW_OK)
		while (!ended && tw_monotonic_ms() < until)
			ended = tw_sender_step(s, ret);
	(void)tw_sender_free(s);
	return ended;
}

static void check_mail_server(struct tw_doctor *d, const struct tw_smtp *by)
{
	struct tw_sent sent;

	if (!sign_in(by, &sent))
		tw_doctor_report(d, TW_DOCTOR_WRONG, "mail",
		        "%s did not complete the SMTP dialog. Check that it is a mail server.",
		        by->url);
	else if (sent.error[0])
		tw_doctor_report(d, TW_DOCTOR_WRONG, "mail",
		        "Mail cannot be sent through %s: %s. Check --smtp-url, its user and "
		        "password, and firewalls.",
		        by->url, sent.error);
	else
		tw_doctor_report(d, TW_DOCTOR_GOOD, "mail", "%s responds%s.", by->url,
		        *by->user ? " and accepts the user" : "");
}

void tw_doctor_mail(struct tw_doctor *d)
{
	char password[TW_SMTP_PASSWORD_BYTES];
	struct tw_smtp by;
	struct tw_err err;

	if (!*d->smtp->url)
		return;
	if (tw_smtp_read(d->smtp, password, &by, &err) != TW_OK) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "mail",
		        "The mail settings are not valid, so the server will not start: %s.",
		        err.msg);
		return;
	}
	check_mail_server(d, &by);
	explicit_bzero(password, sizeof password);
	if (!d->public_url || !*d->public_url)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "public_url",
		        "Without --public-url, mails and webhooks contain no links.");
}

/* --- the OpenID provider, by the requests that a server sends: it is reachable, its issuer equals
 * the setting, and it publishes keys --- */

enum { ARENA_BYTES = 1 << 20, PATIENCE_MS = 10000 };

static void check_keys(struct tw_doctor *d, struct tw_provider *p)
{
	json_t *keys = NULL;
	struct tw_err err;
	enum tw_status st = tw_provider_keys(p, false, PATIENCE_MS, &keys, &err);
	size_t n = json_array_size(json_object_get(keys, "keys"));

	json_decref(keys);
	if (st != TW_OK)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "provider_keys",
		        "The keys of %s cannot be fetched: %s. Users cannot sign in through it.",
		        d->oidc->issuer, err.msg);
	else if (n == 0 || n > TW_JWT_KEYS_MAX)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "provider_keys",
		        "%s has %zu keys; 1 to %d are supported. Its signatures cannot be "
		        "verified.",
		        d->oidc->issuer, n, (int)TW_JWT_KEYS_MAX);
	else
		tw_doctor_report(d, TW_DOCTOR_GOOD, "provider_keys", "It has %zu keys.", n);
}

static void check_provider(struct tw_doctor *d, struct tw_provider *p, struct tw_arena *a)
{
	struct tw_provider_metadata provided;
	struct tw_err err;

	if (tw_provider_metadata(p, PATIENCE_MS, a, &provided, &err) != TW_OK) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "provider",
		        "Users cannot sign in through %s: %s. Check that --oidc-issuer is spelled "
		        "as the provider spells it, that this machine can reach it, and its "
		        "certificate (--oidc-ca-file).",
		        d->oidc->issuer, err.msg);
		return;
	}
	tw_doctor_report(
	        d, TW_DOCTOR_GOOD, "provider", "%s returns its endpoints.", d->oidc->issuer);
	check_keys(d, p);
}

void tw_doctor_provider(struct tw_doctor *d)
{
	struct tw_provider *p;
	struct tw_arena *a;

	if (!*d->oidc->issuer)
		return;
	if (!tw_fetch_allows(d->oidc->issuer, d->oidc->loopback_http)) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "provider",
		        "--oidc-issuer %s is not an https address, so the server will not start.",
		        d->oidc->issuer);
		return;
	}
	a = tw_arena_new(ARENA_BYTES);
	p = tw_provider_new(d->oidc);
	if (a && p && tw_fetch_prepare(NULL) == TW_OK)
		check_provider(d, p, a);
	(void)tw_provider_free(p);
	(void)tw_arena_free(a);
}

/* --- the object storage: reachable, permitted, private --- */

enum { SETTINGS_BYTES = 1 << 20, TIMEOUT_S = 10 };

static void check_privacy(struct tw_doctor *d, const struct tw_storage *s)
{
	static const char *const loopback[] = {"http://127.", "http://localhost", "http://[::1]"};
	bool is_loopback = false;
	struct stat st;

	for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
		is_loopback =
		        is_loopback || strncmp(s->endpoint, loopback[i], strlen(loopback[i])) == 0;
	if (strncmp(s->endpoint, "http://", 7) == 0 && !is_loopback)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "storage_plain",
		        "%s is used without TLS, so the network can read uploads and traces. Set "
		        "--s3-endpoint to an https address, with --s3-ca-file for a private "
		        "certificate.",
		        s->endpoint);
	if (*s->credentials_file && stat(s->credentials_file, &st) == 0 && st.st_mode & 077)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage_key_mode",
		        "Other users of this machine can read the key in %s (mode %03o). Run "
		        "chmod 600 on it.",
		        s->credentials_file, (unsigned)st.st_mode & 0777);
}

static void check_store(struct tw_doctor *d, const struct tw_storage *s)
{
	const struct tw_store_engine *engine = NULL;
	struct tw_storage quick = *s;
	struct tw_err err = {.msg = ""};
	void *store = NULL;
	enum tw_status st = tw_store_engine_of(s->blobs, &engine, &err);

	quick.timeout_s = TIMEOUT_S;
	if (st == TW_OK)
		st = engine->open(&(struct tw_store_endpoint){.data_dir = d->data ? d->data : ".",
		                          .storage = &quick},
		        &store, &err);
	if (st == TW_OK)
		st = engine->probe(store, &err);
	if (st == TW_OK)
		tw_doctor_report(d, TW_DOCTOR_GOOD, "storage",
		        "%s responds, and the key may list its objects.", s->blobs);
	else if (st == TW_BUSY)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage",
		        "%s does not respond: %s. Uploads are refused (503) until it does. Check "
		        "--s3-endpoint and the network.",
		        s->blobs, err.msg);
	else
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage",
		        "%s refuses: %s. Check that the bucket exists and that the key may list, "
		        "get, put and delete objects below the prefix.",
		        s->blobs, err.msg);
	if (store)
		engine->close(store);
}

void tw_doctor_storage(struct tw_doctor *d)
{
	struct tw_arena *a = tw_arena_new(SETTINGS_BYTES);
	struct tw_storage s = *d->storage;
	struct tw_err err;

	if (a && !*s.blobs && d->data && tw_storage_of(d->data, a, &s, &err) != TW_OK)
		tw_doctor_report(d, TW_DOCTOR_WRONG, "storage",
		        "%s/storage, the settings of the store, cannot be used: %s.", d->data,
		        err.msg);
	if (*s.blobs) {
		check_privacy(d, &s);
		check_store(d, &s);
	}
	(void)tw_arena_free(a);
}
