/*
 * jwt.c - the compact form of a token, and its claims (OpenID Connect Core 3.1.3.7).
 */
#include "server/auth/oidc/jwt.h"

#include <gnutls/gnutls.h>
#include <string.h>

#include "server/base/text/base64url.h"

static enum tw_status no_token(struct tw_err *err, const char *what)
{
	return tw_fail(err, TW_CORRUPT, "not a signed token: %s", what);
}

static enum tw_status decode(struct tw_arena *a, struct tw_str text, const uint8_t **ret,
        size_t *ret_n, struct tw_err *err)
{
	uint8_t *bytes = tw_arena_alloc(a, text.len + 1, 1);

	if (!bytes)
		return tw_oom(err);
	if (text.len == 0 || !tw_base64url_read(text, bytes, ret_n))
		return no_token(err, "a part is not base64url");
	*ret = bytes;
	return TW_OK;
}

static enum tw_status read_object(
        struct tw_arena *a, struct tw_str text, json_t **ret, struct tw_err *err)
{
	const uint8_t *bytes = NULL;
	size_t n = 0;
	json_t *json;
	enum tw_status st = decode(a, text, &bytes, &n, err);

	if (st != TW_OK)
		return st;
	/* parsers may choose different values for duplicate names */
	json = json_loadb((const char *)bytes, n, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(json)) {
		json_decref(json);
		return no_token(err, "a part is not a JSON object");
	}
	*ret = json;
	return TW_OK;
}

static enum tw_status read_header(struct tw_jwt *t, struct tw_err *err)
{
	const json_t *kid = json_object_get(t->header, "kid");

	t->alg = json_string_value(json_object_get(t->header, "alg"));
	t->kid = json_string_value(kid);
	if (!t->alg || (kid && !t->kid))
		return no_token(err, "the header names no algorithm");
	if (json_object_get(t->header, "crit"))
		return tw_fail(err, TW_UNSUPPORTED,
		        "the token requires extensions (crit) that are not supported");
	return TW_OK;
}

enum tw_status tw_jwt_parse(
        struct tw_arena *a, struct tw_str text, struct tw_jwt *ret, struct tw_err *err)
{
	struct tw_jwt t = {.header = NULL};
	struct tw_str rest = text, header, claims;
	enum tw_status st;

	if (text.len > TW_JWT_MAX_BYTES)
		return no_token(err, "it is too long");
	header = tw_str_split(&rest, '.');
	claims = tw_str_split(&rest, '.');
	t.covered = (struct tw_str){text.ptr, header.len + 1 + claims.len};
	st = decode(a, rest, &t.signature, &t.signature_bytes, err);
	if (st == TW_OK)
		st = read_object(a, header, &t.header, err);
	if (st == TW_OK)
		st = read_object(a, claims, &t.claims, err);
	if (st == TW_OK)
		st = read_header(&t, err);
	if (st == TW_OK)
		*ret = t;
	else
		tw_jwt_done(&t);
	return st;
}

void tw_jwt_done(struct tw_jwt *t)
{
	json_decref(t->header);
	json_decref(t->claims);
	*t = (struct tw_jwt){.header = NULL};
}

/* --- claims --- */

static enum tw_status refuse(struct tw_err *err, const char *what)
{
	return tw_fail(err, TW_NO_TOKEN, "the ID token is not valid for this sign-in: %s", what);
}

static const char *text_of(const struct tw_jwt *t, const char *name)
{
	return json_string_value(json_object_get(t->claims, name));
}

static bool is_text(const json_t *value, const char *text)
{
	const char *is = json_string_value(value);

	return is && strcmp(is, text) == 0;
}

static bool names_audience(const json_t *aud, const char *audience)
{
	for (size_t i = 0; i < json_array_size(aud); i++)
		if (is_text(json_array_get(aud, i), audience))
			return true;
	return is_text(aud, audience);
}

/* A token with several audiences names the one that requested it. */
static enum tw_status check_audience(
        const struct tw_jwt *t, const char *audience, struct tw_err *err)
{
	const json_t *aud = json_object_get(t->claims, "aud");
	const json_t *azp = json_object_get(t->claims, "azp");

	if (!names_audience(aud, audience))
		return refuse(err, "aud names another client");
	if (json_array_size(aud) > 1 && !azp)
		return refuse(err, "aud names several clients and azp is missing");
	if (azp && !is_text(azp, audience))
		return refuse(err, "azp names another client");
	return TW_OK;
}

static bool same_secret(const char *a, const char *b)
{
	size_t n = strlen(b);

	return a && strlen(a) == n && gnutls_memcmp(a, b, n) == 0;
}

static bool is_subject(const char *sub)
{
	return sub && *sub && strlen(sub) <= TW_JWT_SUBJECT_MAX &&
	       !tw_str_has_control(tw_str_of(sub));
}

/* Seconds of Unix time; false if invalid. */
static bool time_of(const struct tw_jwt *t, const char *name, double *ret)
{
	const json_t *value = json_object_get(t->claims, name);

	*ret = json_number_value(value);
	return json_is_number(value) && *ret >= 0 && *ret < 1e12;
}

static enum tw_status check_times(
        const struct tw_jwt *t, const struct tw_jwt_expected *e, struct tw_err *err)
{
	double now = (double)e->now_s, skew = e->skew_s, exp, iat, nbf = 0;

	if (!time_of(t, "exp", &exp) || !time_of(t, "iat", &iat) ||
	        (json_object_get(t->claims, "nbf") && !time_of(t, "nbf", &nbf)))
		return refuse(err, "iat or exp is missing or invalid");
	if (exp + skew <= now)
		return tw_fail(err, TW_DEADLINE,
		        "the token expired %.0f s ago by this server's clock", now - exp);
	if (iat > now + skew || nbf > now + skew)
		return tw_fail(err, TW_DEADLINE,
		        "the token becomes valid in %.0f s by this server's clock",
		        (iat > nbf ? iat : nbf) - now);
	return TW_OK;
}

enum tw_status tw_jwt_validate(
        const struct tw_jwt *t, const struct tw_jwt_expected *e, struct tw_err *err)
{
	enum tw_status st;

	if (!is_text(json_object_get(t->claims, "iss"), e->issuer))
		return refuse(err, "iss names another provider");
	st = check_audience(t, e->audience, err);
	if (st != TW_OK)
		return st;
	if (!same_secret(text_of(t, "nonce"), e->nonce))
		return refuse(err, "nonce does not match");
	if (!is_subject(text_of(t, "sub")))
		return refuse(err, "sub is missing or invalid");
	return check_times(t, e, err);
}
