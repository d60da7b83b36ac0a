/*
 * jwt_key.c - keys of a set (RFC 7517, 7518), and verification of a token's signature.
 *
 * The meaning of each algorithm name is fixed here, and the key must have the matching type: a
 * token cannot choose a weaker check than its key is for.
 */
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <string.h>

#include "decoder/base/lookup.h"
#include "server/auth/oidc/jwt.h"
#include "server/base/text/base64url.h"

enum { RSA_MIN_BYTES = 256, RSA_MAX_BYTES = 1024, RSA_MAX_EXPONENT = 8, EC_MAX_BYTES = 48 };

struct way { /* a signature algorithm */
	const char *alg, *kty;
	gnutls_sign_algorithm_t sign;
	const char *crv; /* only EC, with: */
	gnutls_ecc_curve_t curve;
	size_t bytes; /* of a coordinate */
};

static const struct way ways[] = {
        {"RS256", "RSA", GNUTLS_SIGN_RSA_SHA256, NULL, GNUTLS_ECC_CURVE_INVALID, 0},
        {"RS384", "RSA", GNUTLS_SIGN_RSA_SHA384, NULL, GNUTLS_ECC_CURVE_INVALID, 0},
        {"RS512", "RSA", GNUTLS_SIGN_RSA_SHA512, NULL, GNUTLS_ECC_CURVE_INVALID, 0},
        {"PS256", "RSA", GNUTLS_SIGN_RSA_PSS_RSAE_SHA256, NULL, GNUTLS_ECC_CURVE_INVALID, 0},
        {"ES256", "EC", GNUTLS_SIGN_ECDSA_SHA256, "P-256", GNUTLS_ECC_CURVE_SECP256R1, 32},
        {"ES384", "EC", GNUTLS_SIGN_ECDSA_SHA384, "P-384", GNUTLS_ECC_CURVE_SECP384R1, 48},
};

/* Whether the member is absent or equals the text. */
static bool is_or_absent(const json_t *key, const char *name, const char *text)
{
	const json_t *value = json_object_get(key, name);
	const char *is = json_string_value(value);

	return !value || (is && strcmp(is, text) == 0);
}

static bool is_for(const json_t *key, const struct way *w, const char *kid)
{
	const char *kty = json_string_value(json_object_get(key, "kty"));
	const char *id = json_string_value(json_object_get(key, "kid"));

	return kty && strcmp(kty, w->kty) == 0 && (!kid || (id && strcmp(id, kid) == 0)) &&
	       is_or_absent(key, "use", "sig") && is_or_absent(key, "alg", w->alg);
}

/* A number of the key, big-endian, without leading zeros; false if it has another size. */
static bool number_of(
        const json_t *key, const char *name, uint8_t *out, size_t cap, gnutls_datum_t *ret)
{
	const char *text = json_string_value(json_object_get(key, name));
	struct tw_str spelled = tw_str_of(text);
	size_t n = 0;

	if (!text || spelled.len >= TW_BASE64URL_BYTES(cap) || !tw_base64url_read(spelled, out, &n))
		return false;
	while (n && *out == 0) {
		out++;
		n--;
	}
	*ret = (gnutls_datum_t){out, (unsigned)n};
	return n > 0;
}

static bool import_rsa(gnutls_pubkey_t to, const json_t *key)
{
	uint8_t modulus[RSA_MAX_BYTES + 1], exponent[RSA_MAX_EXPONENT];
	gnutls_datum_t n, e;

	return number_of(key, "n", modulus, sizeof modulus, &n) && n.size >= RSA_MIN_BYTES &&
	       n.size <= RSA_MAX_BYTES && number_of(key, "e", exponent, sizeof exponent, &e) &&
	       gnutls_pubkey_import_rsa_raw(to, &n, &e) == 0;
}

static bool import_ec(gnutls_pubkey_t to, const json_t *key, const struct way *w)
{
	const char *crv = json_string_value(json_object_get(key, "crv"));
	uint8_t left[EC_MAX_BYTES], right[EC_MAX_BYTES];
	gnutls_datum_t x, y;

	return crv && strcmp(crv, w->crv) == 0 && number_of(key, "x", left, w->bytes, &x) &&
	       number_of(key, "y", right, w->bytes, &y) &&
	       gnutls_pubkey_import_ecc_raw(to, w->curve, &x, &y) == 0;
}

static gnutls_datum_t datum(const void *p, size_t n)
{
	gnutls_datum_t d = {.size = (unsigned)n};

	memcpy(&d.data, &p, sizeof p); /* the library takes a non-const pointer and only reads */
	return d;
}

/* An elliptic curve signature is two concatenated numbers; the library needs DER. */
static bool signed_by(gnutls_pubkey_t key, const struct way *w, const struct tw_jwt *t)
{
	const gnutls_datum_t covered = datum(t->covered.ptr, t->covered.len);
	gnutls_datum_t signature = datum(t->signature, t->signature_bytes);
	gnutls_datum_t der = {.data = NULL};
	const gnutls_datum_t r = datum(t->signature, w->bytes);
	const gnutls_datum_t s = datum(t->signature + w->bytes, w->bytes);
	bool right;

	if (w->crv) {
		if (t->signature_bytes != 2 * w->bytes || gnutls_encode_rs_value(&der, &r, &s) != 0)
			return false;
		signature = der;
	}
	right = gnutls_pubkey_verify_data2(key, w->sign, 0, &covered, &signature) >= 0;
	gnutls_free(der.data);
	return right;
}

static bool made_by(const struct tw_jwt *t, const json_t *key, const struct way *w)
{
	gnutls_pubkey_t pub;
	bool right;

	if (gnutls_pubkey_init(&pub) != 0)
		return false;
	right = (w->crv ? import_ec(pub, key, w) : import_rsa(pub, key)) && signed_by(pub, w, t);
	gnutls_pubkey_deinit(pub);
	return right;
}

enum tw_status tw_jwt_verify(const struct tw_jwt *t, const json_t *keys, struct tw_err *err)
{
	const json_t *list = json_object_get(keys, "keys");
	const struct way *w = TW_LOOKUP(ways, sizeof ways / sizeof *ways, alg, t->alg);
	size_t n = json_array_size(list), n_tried = 0;

	if (!w)
		return tw_fail(err, TW_UNSUPPORTED,
		        "the token is signed by %.20s, which is not accepted", t->alg);
	for (size_t i = 0; i < n && i < TW_JWT_KEYS_MAX; i++) {
		const json_t *key = json_array_get(list, i);

		if (!is_for(key, w, t->kid))
			continue;
		n_tried++;
		if (made_by(t, key, w))
			return TW_OK;
	}
	if (n_tried == 0)
		return tw_fail(err, TW_NOT_FOUND,
		        "the provider has no key that the token could be signed with");
	return tw_fail(err, TW_NO_TOKEN, "the token's signature is wrong");
}
