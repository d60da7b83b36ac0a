/*
 * jwt.h - signed tokens of other servers (RFC 7515, 7519): read, held to a key set, judged.
 *
 * Nothing of a token may be believed before both tw_jwt_verify and tw_jwt_judge
 * said TW_OK.  Only public-key signatures are known: "none" and those by a shared
 * secret are refused like any unknown word.  No clock, no network: the caller
 * brings the time and the keys.
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
	const char *alg, *kid;   /* of the header; kid NULL: not told */
	struct tw_str covered;   /* what is signed, in the text that was read */
	const uint8_t *signature;
	size_t signature_bytes;
};

/* TW_UNSUPPORTED: an extension that must be understood; TW_CORRUPT: no token.  The text must
 * outlive the token, the signature lives in the arena; tw_jwt_done is owed. */
enum tw_status tw_jwt_parse(
        struct tw_arena *a, struct tw_str text, struct tw_jwt *ret, struct tw_err *err) TW_MUST_USE;
void tw_jwt_done(struct tw_jwt *t);

/* By a key of the set (RFC 7517: {"keys":[...]}), by RS256, RS384, RS512, PS256, ES256 or ES384.
 * TW_NOT_FOUND: the set has no key for it; TW_NO_TOKEN: none of those it may be signed with made
 * the signature; a newer set may hold one that did.  TW_UNSUPPORTED: signed in another way. */
enum tw_status tw_jwt_verify(
        const struct tw_jwt *t, const json_t *keys, struct tw_err *err) TW_MUST_USE;

struct tw_jwt_expected {
	const char *issuer, *audience, *nonce;
	int64_t now_s;
	unsigned skew_s; /* by which clocks may differ */
};
/* Is it from there, for us, for this sign-in, and of now?  TW_NO_TOKEN; TW_DEADLINE when only its
 * times are wrong.  What passed has a "sub" of 1 to TW_JWT_SUBJECT_MAX bytes. */
enum tw_status tw_jwt_judge(
        const struct tw_jwt *t, const struct tw_jwt_expected *e, struct tw_err *err) TW_MUST_USE;

#endif
