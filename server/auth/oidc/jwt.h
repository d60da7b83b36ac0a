/*
 * jwt.h - signed tokens of other servers (RFC 7515, 7519): parse, verify, validate.
 *
 * Do not use any content of a token before both tw_jwt_verify and tw_jwt_validate returned TW_OK.
 * Only public-key signatures are supported: "none" and shared-secret algorithms are refused like
 * unknown ones.  No clock, no network: the caller supplies the time and the keys.
 * Thread: any.
 */
#ifndef TW_JWT_H
#define TW_JWT_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

enum { TW_JWT_MAX_BYTES = 16 << 10, TW_JWT_KEYS_MAX = 64, TW_JWT_SUBJECT_MAX = 255 };

struct tw_jwt {
	json_t *header, *claims; /* objects */
	const char *alg, *kid;   /* of the header; kid NULL: absent */
	struct tw_str covered;   /* the signed bytes, within the parsed text */
	const uint8_t *signature;
	size_t signature_bytes;
};

/* TW_UNSUPPORTED: a critical extension; TW_CORRUPT: not a token.  The text must outlive the token,
 * the signature is in the arena.  Free with tw_jwt_done. */
enum tw_status tw_jwt_parse(
        struct tw_arena *a, struct tw_str text, struct tw_jwt *ret, struct tw_err *err) TW_MUST_USE;
void tw_jwt_done(struct tw_jwt *t);

/* Verifies the signature with the key set (RFC 7517: {"keys":[...]}), for RS256, RS384, RS512,
 * PS256, ES256 or ES384.  TW_NOT_FOUND: the set has no matching key; TW_NO_TOKEN: no eligible key
 * made the signature.  In both cases a newer set may have the key.  TW_UNSUPPORTED: another
 * algorithm. */
enum tw_status tw_jwt_verify(
        const struct tw_jwt *t, const json_t *keys, struct tw_err *err) TW_MUST_USE;

struct tw_jwt_expected {
	const char *issuer, *audience, *nonce;
	int64_t now_s;
	unsigned skew_s; /* allowed clock difference */
};
/* Validates issuer, audience, nonce and times.  TW_NO_TOKEN; TW_DEADLINE if only the times are
 * wrong. A valid token has a "sub" of 1 to TW_JWT_SUBJECT_MAX bytes. */
enum tw_status tw_jwt_validate(
        const struct tw_jwt *t, const struct tw_jwt_expected *e, struct tw_err *err) TW_MUST_USE;

#endif
