#include "server/base/auth_secret.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "server/base/text/base64url.h"

enum { RANDOM_BYTES = 32, MAX_PREFIX = 8 };

enum tw_status tw_secret_new(
        const char *prefix, char ret_secret[TW_SECRET_BYTES], struct tw_err *err)
{
	uint8_t random[RANDOM_BYTES];
	char text[TW_BASE64URL_BYTES(RANDOM_BYTES)];

	if (strlen(prefix) > MAX_PREFIX)
		return tw_fail(err, TW_BUG, "prefix %s is too long", prefix);
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return tw_fail_errno(err, TW_IO, "no random bytes");
	tw_base64url_spell(random, sizeof random, text);
	(void)snprintf(ret_secret, TW_SECRET_BYTES, "%s%s", prefix, text);
	return TW_OK;
}

void tw_secret_hash(const char *secret, uint8_t ret_hash[32])
{
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, strlen(secret), ret_hash) == 0)
		return;
	if (getrandom(ret_hash, 32, 0) != 32) /* matches no secret */
		memset(ret_hash, 0, 32);
}

uint64_t tw_secret_bits(const char *text)
{
	uint8_t hash[32];
	uint64_t bits = 0;

	tw_secret_hash(text, hash);
	for (int i = 0; i < 8; i++)
		bits = bits << 8 | hash[i];
	return bits;
}
