#include "server/base/text/base64url.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void tw_base64url_spell(const void *p, size_t n, char *out)
{
	const uint8_t *bytes = p;
	uint32_t bits = 0;
	unsigned n_bits = 0;

	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | bytes[i];
		for (n_bits += 8; n_bits >= 6; n_bits -= 6)
			*out++ = digits[bits >> (n_bits - 6) & 63];
	}
	if (n_bits)
		*out++ = digits[bits << (6 - n_bits) & 63];
	*out = '\0';
}

bool tw_base64url_read(struct tw_str text, uint8_t *out, size_t *ret_n)
{
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		const char *digit = memchr(digits, text.ptr[i], sizeof digits - 1);

		if (!digit)
			return false;
		bits = bits << 6 | (uint32_t)(digit - digits);
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[n++] = (uint8_t)(bits >> n_bits);
		}
	}
	*ret_n = n;
	return n_bits < 6 && (bits & ((1u << n_bits) - 1)) == 0;
}
