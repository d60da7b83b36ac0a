/*
 * Signed tokens: the examples of RFC 7515, tokens of keys made here, and what must be refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "server/auth/oidc/jwt.h"
#include "server/base/text/base64url.h"
#include "tests/unit/unit.h"

enum { NOW_S = 1300819000, TEXT_BYTES = 8192 };

static const char rfc_claims[] =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl"
        "LmNvbS9pc19yb290Ijp0cnVlfQ";
/* RFC 7515, A.2 and A.3 */
static const char rfc_keys[] =
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":"
        "\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1"
        "Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHS"
        "XndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5"
        "IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\","
        "\"e\":\"AQAB\"},"
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";
static const char rfc_rs256[] =
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W"
        "2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkS"
        "jtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnv"
        "Wh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
static const char rfc_es256[] =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQ"
        "xfKTUJqPP3-Kg6NU1Q";

struct held { /* a token that is verified */
	struct tw_arena *arena;
	struct tw_jwt t;
	char text[TEXT_BYTES];
};

static enum tw_status parse(struct held *h)
{
	return tw_jwt_parse(h->arena, tw_str_of(h->text), &h->t, NULL);
}

static void begin(struct held *h)
{
	memset(h, 0, sizeof *h);
	h->arena = tw_arena_new(1 << 20);
	assert_non_null(h->arena);
}

static void end(struct held *h)
{
	tw_jwt_done(&h->t);
	h->arena = tw_arena_free(h->arena);
}

static enum tw_status verify(const struct held *h, const char *keys)
{
	json_t *json = json_loads(keys, 0, NULL);
	enum tw_status st = tw_jwt_verify(&h->t, json, NULL);

	json_decref(json);
	return st;
}

/* --- the RFC's --- */

static void test_rfc(void **state)
{
	static const struct {
		const char *header, *signature;
	} examples[] = {{"eyJhbGciOiJSUzI1NiJ9", rfc_rs256}, {"eyJhbGciOiJFUzI1NiJ9", rfc_es256}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct held h;
		char *last;

		begin(&h);
		(void)snprintf(h.text, sizeof h.text, "%s.%s.%s", examples[i].header, rfc_claims,
		        examples[i].signature);
		assert_int_equal(parse(&h), TW_OK);
		assert_int_equal(verify(&h, rfc_keys), TW_OK);
		assert_string_equal(json_string_value(json_object_get(h.t.claims, "iss")), "joe");
		tw_jwt_done(&h.t);
		last = &h.text[strlen(examples[i].header) + 3]; /* a claim */
		*last = *last == 'A' ? 'B' : 'A';
		if (parse(&h) == TW_OK)
			assert_int_equal(verify(&h, rfc_keys), TW_NO_TOKEN);
		end(&h);
	}
}

/* --- of keys made here --- */

struct signer {
	gnutls_privkey_t key;
	gnutls_pubkey_t pub;
	gnutls_sign_algorithm_t sign;
	const char *alg;
	size_t bytes;   /* of one number of an EC signature, else 0 */
	char jwk[3072]; /* without braces, kid and alg */
};

static void spell(const gnutls_datum_t *d, size_t want, char *out)
{
	uint8_t number[1024] = {0};
	size_t skip = d->size > want && want ? d->size - want : 0;
	size_t n = want ? want : d->size;

	memcpy(number + n - (d->size - skip), d->data + skip, d->size - skip);
	tw_base64url_spell(number, n, out);
}

static void describe(struct signer *s)
{
	char one[1400] = "", two[1400] = "";
	gnutls_datum_t a, b;

	if (s->bytes) {
		gnutls_ecc_curve_t curve;

		assert_int_equal(gnutls_pubkey_export_ecc_raw(s->pub, &curve, &a, &b), 0);
		spell(&a, s->bytes, one);
		spell(&b, s->bytes, two);
		(void)snprintf(s->jwk, sizeof s->jwk,
		        "\"kty\":\"EC\",\"crv\":\"%s\",\"x\":\"%s\",\"y\":\"%s\"",
		        s->bytes == 32 ? "P-256" : "P-384", one, two);
	} else {
		assert_int_equal(gnutls_pubkey_export_rsa_raw(s->pub, &a, &b), 0);
		spell(&a, 0, one);
		spell(&b, 0, two);
		(void)snprintf(s->jwk, sizeof s->jwk, "\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"",
		        one, two);
	}
	gnutls_free(a.data);
	gnutls_free(b.data);
}

static void make_signer(struct signer *s, const char *alg, unsigned rsa_bits)
{
	bool ec = alg[0] == 'E';
	unsigned size = alg[2] == '3' ? 384 : alg[2] == '5' ? 512 : 256;
	unsigned bits = ec ? GNUTLS_CURVE_TO_BITS(size == 384 ? GNUTLS_ECC_CURVE_SECP384R1
	                                                      : GNUTLS_ECC_CURVE_SECP256R1)
	                   : rsa_bits;

	s->alg = alg;
	s->bytes = ec ? size / 8 : 0;
	if (ec)
		s->sign = size == 384 ? GNUTLS_SIGN_ECDSA_SHA384 : GNUTLS_SIGN_ECDSA_SHA256;
	else if (alg[0] == 'P')
		s->sign = GNUTLS_SIGN_RSA_PSS_RSAE_SHA256;
	else
		s->sign = size == 512   ? GNUTLS_SIGN_RSA_SHA512
		          : size == 384 ? GNUTLS_SIGN_RSA_SHA384
		                        : GNUTLS_SIGN_RSA_SHA256;
	assert_int_equal(gnutls_privkey_init(&s->key), 0);
	assert_int_equal(
	        gnutls_privkey_generate(s->key, ec ? GNUTLS_PK_ECDSA : GNUTLS_PK_RSA, bits, 0), 0);
	assert_int_equal(gnutls_pubkey_init(&s->pub), 0);
	assert_int_equal(gnutls_pubkey_import_privkey(s->pub, s->key, 0, 0), 0);
	describe(s);
}

static void free_signer(struct signer *s)
{
	gnutls_pubkey_deinit(s->pub);
	gnutls_privkey_deinit(s->key);
}

/* header.claims.signature, all of it as the key would have it. */
static void sign(
        const struct signer *s, const char *header, const char *claims, char out[TEXT_BYTES])
{
	char head[1024], body[2048], tail[1024];
	gnutls_datum_t covered, signature;

	tw_base64url_spell(header, strlen(header), head);
	tw_base64url_spell(claims, strlen(claims), body);
	(void)snprintf(out, TEXT_BYTES, "%s.%s", head, body);
	covered = (gnutls_datum_t){(unsigned char *)out, (unsigned)strlen(out)};
	assert_int_equal(gnutls_privkey_sign_data2(s->key, s->sign, 0, &covered, &signature), 0);
	if (s->bytes) {
		char left[128], right[128];
		uint8_t both[96];
		size_t n;
		gnutls_datum_t r, t;

		assert_int_equal(gnutls_decode_rs_value(&signature, &r, &t), 0);
		spell(&r, s->bytes, left);
		spell(&t, s->bytes, right);
		assert_true(tw_base64url_read(tw_str_of(left), both, &n));
		assert_true(tw_base64url_read(tw_str_of(right), both + s->bytes, &n));
		tw_base64url_spell(both, 2 * s->bytes, tail);
		gnutls_free(r.data);
		gnutls_free(t.data);
	} else {
		tw_base64url_spell(signature.data, signature.size, tail);
	}
	gnutls_free(signature.data);
	(void)snprintf(out + strlen(out), TEXT_BYTES - strlen(out), ".%s", tail);
}

/* By a set of this key alone, with `more` members. */
static enum tw_status verify_by(const struct held *h, const struct signer *s, const char *more)
{
	char keys[4096];

	(void)snprintf(keys, sizeof keys, "{\"keys\":[{%s%s}]}", s->jwk, more);
	return verify(h, keys);
}

static void test_each_way(void **state)
{
	static const char *const algs[] = {"RS256", "RS384", "RS512", "PS256", "ES256", "ES384"};

	(void)state;
	for (size_t i = 0; i < sizeof algs / sizeof *algs; i++) {
		struct signer s;
		struct held h;
		char header[64];

		make_signer(&s, algs[i], 2048);
		begin(&h);
		(void)snprintf(header, sizeof header, "{\"alg\":\"%s\",\"kid\":\"k\"}", algs[i]);
		/* several, as numbers of an EC signature now and then begin with zeros */
		for (int round = 0; round < (s.bytes ? 300 : 1); round++) {
			tw_jwt_done(&h.t);
			sign(&s, header, "{}", h.text);
			assert_int_equal(parse(&h), TW_OK);
			assert_int_equal(verify_by(&h, &s, ",\"kid\":\"k\""), TW_OK);
		}
		assert_int_equal(verify_by(&h, &s, ",\"kid\":\"other\""), TW_NOT_FOUND);
		assert_int_equal(verify_by(&h, &s, ""), TW_NOT_FOUND);
		assert_int_equal(verify_by(&h, &s, ",\"kid\":\"k\",\"use\":\"enc\""), TW_NOT_FOUND);
		assert_int_equal(
		        verify_by(&h, &s, ",\"kid\":\"k\",\"alg\":\"HS256\""), TW_NOT_FOUND);
		assert_int_equal(verify(&h, "{\"keys\":{}}"), TW_NOT_FOUND);
		assert_int_equal(verify(&h, "{}"), TW_NOT_FOUND);
		assert_int_equal(
		        verify(&h, "{\"keys\":[1,null,{\"kty\":5,\"kid\":\"k\"}]}"), TW_NOT_FOUND);
		end(&h);
		free_signer(&s);
	}
}

/* A key is for its kind of signature only, and is none when it is too small or not on its curve. */
static void test_wrong_keys(void **state)
{
	struct signer small, good, ec;
	struct held h;

	(void)state;
	make_signer(&small, "RS256", 1024);
	make_signer(&good, "RS256", 2048);
	make_signer(&ec, "ES256", 0);
	begin(&h);
	sign(&small, "{\"alg\":\"RS256\"}", "{}", h.text);
	assert_int_equal(parse(&h), TW_OK);
	assert_int_equal(verify_by(&h, &small, ""), TW_NO_TOKEN);
	assert_int_equal(verify_by(&h, &good, ""), TW_NO_TOKEN);
	assert_int_equal(verify_by(&h, &ec, ""), TW_NOT_FOUND);
	tw_jwt_done(&h.t);
	sign(&ec, "{\"alg\":\"ES256\"}", "{}", h.text);
	assert_int_equal(parse(&h), TW_OK);
	assert_int_equal(verify_by(&h, &ec, ""), TW_OK);
	assert_int_equal(verify_by(&h, &good, ""), TW_NOT_FOUND);
	assert_int_equal(verify(&h, "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQ\","
	                            "\"y\":\"AQ\"}]}"),
	        TW_NO_TOKEN);
	assert_int_equal(
	        verify(&h, "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\",\"y\":5}]}"),
	        TW_NO_TOKEN);
	tw_jwt_done(&h.t);
	sign(&good, "{\"alg\":\"PS256\"}", "{}", h.text); /* made by RS256 */
	assert_int_equal(parse(&h), TW_OK);
	assert_int_equal(verify_by(&h, &good, ""), TW_NO_TOKEN);
	end(&h);
	free_signer(&small);
	free_signer(&good);
	free_signer(&ec);
}

static void test_ways_not_taken(void **state)
{
	static const char *const algs[] = {
	        "none", "NONE", "", "HS256", "HS512", "ES256K", "RS1", "rs256", "RS256 ", "EdDSA"};
	struct signer s;
	struct held h;
	char header[64];

	(void)state;
	make_signer(&s, "RS256", 2048);
	begin(&h);
	for (size_t i = 0; i < sizeof algs / sizeof *algs; i++) {
		tw_jwt_done(&h.t);
		(void)snprintf(header, sizeof header, "{\"alg\":\"%s\"}", algs[i]);
		sign(&s, header, "{}", h.text);
		assert_int_equal(parse(&h), TW_OK);
		assert_int_equal(verify_by(&h, &s, ""), TW_UNSUPPORTED);
	}
	end(&h);
	free_signer(&s);
}

static void test_no_tokens(void **state)
{
	static const char *const headers[] = {"[]", "5", "{", "{}", "{\"alg\":5}",
	        "{\"alg\":\"RS256\",\"kid\":5}", "{\"alg\":\"none\",\"alg\":\"RS256\"}"};
	static const char *const texts[] = {"", ".", "..", "a.b.c", "e30.e30", "e30.e30.",
	        ".e30.AA", "e30.e30.AA.AA", "e30.e30.A", "e30.e30.AB", "e30 .e30.AA",
	        "e30=.e30.AA"};
	struct signer s;
	struct held h;

	(void)state;
	make_signer(&s, "ES256", 0);
	begin(&h);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		(void)snprintf(h.text, sizeof h.text, "%s", texts[i]);
		assert_int_equal(parse(&h), TW_CORRUPT);
	}
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		sign(&s, headers[i], "{}", h.text);
		assert_int_equal(parse(&h), TW_CORRUPT);
	}
	sign(&s, "{\"alg\":\"ES256\"}", "[]", h.text);
	assert_int_equal(parse(&h), TW_CORRUPT);
	sign(&s, "{\"alg\":\"ES256\"}", "{\"sub\":\"a\",\"sub\":\"b\"}", h.text);
	assert_int_equal(parse(&h), TW_CORRUPT);
	sign(&s, "{\"alg\":\"ES256\",\"crit\":[\"exp\"]}", "{}", h.text);
	assert_int_equal(parse(&h), TW_UNSUPPORTED);
	end(&h);
	free_signer(&s);
}

static void test_length(void **state)
{
	static char text[TW_JWT_MAX_BYTES + 2];
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_jwt t = {.header = NULL};
	size_t n = strlen("eyJhbGciOiJFUzI1NiJ9.e30.");

	(void)state;
	memset(text, 'A', TW_JWT_MAX_BYTES + 1);
	memcpy(text, "eyJhbGciOiJFUzI1NiJ9.e30.", n);
	text[TW_JWT_MAX_BYTES - (TW_JWT_MAX_BYTES - n) % 4] = '\0';
	assert_int_equal(tw_jwt_parse(a, tw_str_of(text), &t, NULL), TW_OK);
	tw_jwt_done(&t);
	assert_int_equal(
	        tw_jwt_parse(a, (struct tw_str){text, TW_JWT_MAX_BYTES + 1}, &t, NULL), TW_CORRUPT);
	tw_arena_free(a);
}

/* --- claims --- */

#define RIGHT                                                                                      \
	"\"iss\":\"https://"                                                                       \
	"id\",\"sub\":\"ann\",\"aud\":\"us\",\"nonce\":\"n\",\"exp\":1300819300,\"iat\":"          \
	"1300818990"

static enum tw_status validate(const char *claims)
{
	const struct tw_jwt_expected e = {.issuer = "https://id",
	        .audience = "us",
	        .nonce = "n",
	        .now_s = NOW_S,
	        .skew_s = 60};
	struct tw_jwt t = {.claims = json_loads(claims, 0, NULL)};
	enum tw_status st;

	assert_non_null(t.claims);
	st = tw_jwt_validate(&t, &e, NULL);
	tw_jwt_done(&t);
	return st;
}

/* The right claims with one other. */
static enum tw_status with(const char *name, const char *value)
{
	json_t *all = json_loads("{" RIGHT "}", 0, NULL);
	char *text;
	enum tw_status st;

	if (value)
		assert_int_equal(
		        json_object_set_new(all, name, json_loads(value, JSON_DECODE_ANY, NULL)),
		        0);
	else
		assert_int_equal(json_object_del(all, name), 0);
	text = json_dumps(all, 0);
	st = validate(text);
	free(text);
	json_decref(all);
	return st;
}

static void test_claims(void **state)
{
	static const struct {
		const char *name, *value;
		enum tw_status st;
	} cases[] = {{"iss", "\"https://id/\"", TW_NO_TOKEN}, {"iss", NULL, TW_NO_TOKEN},
	        {"iss", "[\"https://id\"]", TW_NO_TOKEN}, {"aud", NULL, TW_NO_TOKEN},
	        {"aud", "\"u\"", TW_NO_TOKEN}, {"aud", "\"us \"", TW_NO_TOKEN},
	        {"aud", "[\"us\"]", TW_OK}, {"aud", "[]", TW_NO_TOKEN},
	        {"aud", "[\"us\",\"them\"]", TW_NO_TOKEN}, {"azp", "\"us\"", TW_OK},
	        {"azp", "\"them\"", TW_NO_TOKEN}, {"azp", "5", TW_NO_TOKEN},
	        {"nonce", "\"m\"", TW_NO_TOKEN}, {"nonce", "\"nn\"", TW_NO_TOKEN},
	        {"nonce", "\"\"", TW_NO_TOKEN}, {"nonce", NULL, TW_NO_TOKEN},
	        {"sub", NULL, TW_NO_TOKEN}, {"sub", "\"\"", TW_NO_TOKEN}, {"sub", "5", TW_NO_TOKEN},
	        {"sub", "\"a\\nb\"", TW_NO_TOKEN}, {"exp", NULL, TW_NO_TOKEN},
	        {"exp", "\"1300819300\"", TW_NO_TOKEN}, {"exp", "-1", TW_NO_TOKEN},
	        {"exp", "1e300", TW_NO_TOKEN}, {"exp", "1300818940", TW_DEADLINE},
	        {"exp", "1300818941", TW_OK}, {"exp", "1300818940.5", TW_OK},
	        {"iat", NULL, TW_NO_TOKEN}, {"iat", "1300819060", TW_OK},
	        {"iat", "1300819061", TW_DEADLINE}, {"nbf", "1300819060", TW_OK},
	        {"nbf", "1300819061", TW_DEADLINE}, {"nbf", "\"now\"", TW_NO_TOKEN}};

	(void)state;
	assert_int_equal(validate("{" RIGHT "}"), TW_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (with(cases[i].name, cases[i].value) != cases[i].st)
			fail_msg(
			        "%s %s", cases[i].name, cases[i].value ? cases[i].value : "absent");
}

static void test_subject_length(void **state)
{
	char value[TW_JWT_SUBJECT_MAX + 4];

	(void)state;
	memset(value, 'a', sizeof value);
	value[0] = value[TW_JWT_SUBJECT_MAX + 1] = '"';
	value[TW_JWT_SUBJECT_MAX + 2] = '\0';
	assert_int_equal(with("sub", value), TW_OK);
	value[TW_JWT_SUBJECT_MAX + 1] = 'a';
	value[TW_JWT_SUBJECT_MAX + 2] = '"';
	value[TW_JWT_SUBJECT_MAX + 3] = '\0';
	assert_int_equal(with("sub", value), TW_NO_TOKEN);
}

static void test_base64url(void **state)
{
	uint8_t bytes[64], back[64];
	char text[TW_BASE64URL_BYTES(64)];
	size_t n_back;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		tw_base64url_spell(bytes, n, text);
		assert_int_equal(strlen(text) + 1, TW_BASE64URL_BYTES(n));
		assert_true(tw_base64url_read(tw_str_of(text), back, &n_back));
		assert_int_equal(n_back, n);
		assert_memory_equal(back, bytes, n);
	}
	assert_false(tw_base64url_read((struct tw_str){"AA\0A", 4}, back, &n_back));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc),
        cmocka_unit_test(test_each_way),
        cmocka_unit_test(test_wrong_keys),
        cmocka_unit_test(test_ways_not_taken),
        cmocka_unit_test(test_no_tokens),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_subject_length),
        cmocka_unit_test(test_base64url),
};

UNIT_TESTS("jwt", tests)
