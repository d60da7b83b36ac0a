/* Untrusted tokens and key sets: the input is a token and, after a NUL, a key set.  A token is
 * verified only by a signature, and an accepted one can be validated. */
#include <string.h>

#include "fuzz.h"
#include "server/auth/oidc/jwt.h"

enum { INPUT_BYTES = 32 << 10 };

static void validate(const struct tw_jwt *t)
{
	const struct tw_jwt_expected e = {.issuer = "https://id",
	        .audience = "us",
	        .nonce = "n",
	        .now_s = 1000,
	        .skew_s = 60};
	struct tw_err err = {.msg = ""};
	enum tw_status st = tw_jwt_validate(t, &e, &err);

	FUZZ_CHECK(st == TW_OK || err.msg[0]);
	if (st == TW_OK) {
		const char *sub = json_string_value(json_object_get(t->claims, "sub"));

		FUZZ_CHECK(sub && *sub && strlen(sub) <= TW_JWT_SUBJECT_MAX);
	}
}

static void verify(const struct tw_jwt *t, const char *keys, size_t n)
{
	json_t *set = json_loadb(keys, n, JSON_REJECT_DUPLICATES, NULL);
	struct tw_err err = {.msg = ""};
	struct tw_jwt cut = *t;
	enum tw_status st = tw_jwt_verify(t, set, &err);

	FUZZ_CHECK(st == TW_OK || err.msg[0]);
	if (st == TW_OK) { /* it covers every byte */
		cut.covered.len--;
		FUZZ_CHECK(tw_jwt_verify(&cut, set, NULL) == TW_NO_TOKEN);
	}
	json_decref(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	size_t n = size < INPUT_BYTES ? size : INPUT_BYTES;
	const char *nul = n ? memchr(text, '\0', n) : NULL;
	struct tw_str token = {text, nul ? (size_t)(nul - text) : n};
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_err err = {.msg = ""};
	struct tw_jwt t;

	FUZZ_CHECK(a);
	if (tw_jwt_parse(a, token, &t, &err) != TW_OK) {
		FUZZ_CHECK(err.msg[0]);
	} else {
		validate(&t);
		verify(&t, nul ? nul + 1 : text, nul ? n - token.len - 1 : 0);
		tw_jwt_done(&t);
	}
	(void)tw_arena_free(a);
	return 0;
}
