/* Checks of the OpenID provider, with the requests that a server sends: it is reachable, its issuer
 * equals the setting, and it publishes keys. */
#include "decoder/base/arena.h"
#include "server/auth/oidc/jwt.h"
#include "server/auth/oidc/oidc_fetch.h"
#include "server/auth/oidc/oidc_provider.h"
#include "server/base/config.h"
#include "server/ops/doctor.h"

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
		        "The keys of %s cannot be fetched: %s. Nobody can sign in through it.",
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
	struct tw_provider_metadata says;
	struct tw_err err;

	if (tw_provider_metadata(p, PATIENCE_MS, a, &says, &err) != TW_OK) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "provider",
		        "Nobody can sign in through %s: %s. Check that --oidc-issuer is spelled "
		        "as the provider spells it, that this machine can reach it, and its "
		        "certificate (--oidc-ca-file).",
		        d->oidc->issuer, err.msg);
		return;
	}
	tw_doctor_report(
	        d, TW_DOCTOR_GOOD, "provider", "%s answers with its endpoints.", d->oidc->issuer);
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
