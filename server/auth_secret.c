#include "auth_secret.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { RANDOM_BYTES = 32, TEXT_BYTES = 43, MAX_PREFIX = 8 };

/* base64url without padding: safe in headers, links and shells. */
static void spell(const uint8_t random[RANDOM_BYTES], char out[TEXT_BYTES + 1])
{
	static const char digits[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t at = 0;

	for (size_t i = 0; i < RANDOM_BYTES; i++) {
		bits = bits << 8 | random[i];
		for (n_bits += 8; n_bits >= 6; n_bits -= 6)
			out[at++] = digits[bits >> (n_bits - 6) & 63];
	}
	out[at++] = digits[bits << (6 - n_bits) & 63];
	out[at] = '\0';
}

enum tw_status tw_secret_new(
        const char *prefix, char ret_secret[TW_SECRET_BYTES], struct tw_err *err)
{
	uint8_t random[RANDOM_BYTES];
	char text[TEXT_BYTES + 1];

	if (strlen(prefix) > MAX_PREFIX)
		return tw_fail(err, TW_BUG, TW_NO_OFFSET, "prefix %s is too long", prefix);
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "no random bytes: %s", strerror(errno));
	spell(random, text);
	(void)snprintf(ret_secret, TW_SECRET_BYTES, "%s%s", prefix, text);
	return TW_OK;
}

void tw_secret_hash(const char *secret, uint8_t ret_hash[32])
{
	(void)gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, strlen(secret), ret_hash);
}
