/*
 * base64url.h - bytes as text that is safe in headers, links and shells: RFC 4648 section 5,
 * without padding.
 * Thread: any.
 */
#ifndef TW_BASE64URL_H
#define TW_BASE64URL_H

#include <stdbool.h>

#include "decoder/base/str.h"

/* Characters of n bytes, and the NUL behind them. */
#define TW_BASE64URL_BYTES(n) (((n)*4 + 2) / 3 + 1)

/* Writes TW_BASE64URL_BYTES(n). */
void tw_base64url_spell(const void *p, size_t n, char *out);
/* Into out, which has room for three bytes of each four characters begun; false for what is no such
 * text, and for one of several spellings of the same bytes. */
bool tw_base64url_read(struct tw_str text, uint8_t *out, size_t *ret_n);

#endif
