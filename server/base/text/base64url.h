/*
 * base64url.h - base64url without padding (RFC 4648 section 5): bytes as text that is safe in
 * headers, links and shells.
 * Thread: any.
 */
#ifndef TW_BASE64URL_H
#define TW_BASE64URL_H

#include <sodium.h>
#include <stdbool.h>

#include "decoder/base/str.h"

/* Characters for n bytes, and the NUL after them. */
#define TW_BASE64URL_BYTES(n) (((n)*4 + 2) / 3 + 1)

/* Writes TW_BASE64URL_BYTES(n). */
static inline void tw_base64url_spell(const void *p, size_t n, char *out)
{
	(void)sodium_bin2base64(
	        out, TW_BASE64URL_BYTES(n), p, n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* Decodes into out, which has space for three bytes per four characters or part thereof.  False for
 * invalid text, and for non-canonical spellings. */
static inline bool tw_base64url_read(struct tw_str text, uint8_t *out, size_t *ret_n)
{
	return sodium_base642bin(out, (text.len + 3) / 4 * 3, text.ptr, text.len, NULL, ret_n, NULL,
	               sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0;
}

#endif
