/*
 * base64url.h - base64url without padding (RFC 4648 section 5): bytes as text that is safe in
 * headers, links and shells.
 * Thread: any.
 */
#ifndef TW_BASE64URL_H
#define TW_BASE64URL_H

#include <stdbool.h>

#include "decoder/base/str.h"

/* Characters for n bytes, and the NUL after them. */
#define TW_BASE64URL_BYTES(n) (((n)*4 + 2) / 3 + 1)

/* Writes TW_BASE64URL_BYTES(n). */
void tw_base64url_spell(const void *p, size_t n, char *out);
/* Decodes into out, which has space for three bytes per four characters or part thereof.  False for
 * invalid text, and for non-canonical spellings. */
bool tw_base64url_read(struct tw_str text, uint8_t *out, size_t *ret_n);

#endif
