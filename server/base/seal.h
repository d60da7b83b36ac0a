/*
 * seal.h - secrets that the server must be able to read again, sealed by a key that does not lie
 * beside them.
 *
 * XChaCha20-Poly1305 by libsodium: "sealed:1:" and base64 of nonce and cipher.  Whose secret it is
 * is sealed with it, so that none can stand in another's place.  Text that was never sealed is read
 * as it is.  Thread: any.
 */
#ifndef TW_SEAL_H
#define TW_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

enum { TW_SEALED_BYTES = 512, TW_SEAL_PLAIN_MAX = 300, TW_SEAL_DERIVED = 32 };

struct tw_seal;

/* file "": secret.key in the data folder, made when it is not there, unless `make` is false: then
 * it seals and reads nothing.  A given one must be there, and its group may read it.
 * TW_BAD_REQUEST in words: no key, or one that others can read. */
enum tw_status tw_seal_open(const char *data_dir, const char *file, bool make, struct tw_seal **ret,
        struct tw_err *err) TW_MUST_USE;
bool tw_seal_lost(const struct tw_seal *s);
/* Another key, the same wherever this one is, that does not tell this one.  False: it is lost. */
bool tw_seal_derive(
        const struct tw_seal *s, const char *what, unsigned char ret[TW_SEAL_DERIVED]) TW_MUST_USE;
/* NULL is fine, returns NULL. */
struct tw_seal *tw_seal_free(struct tw_seal *s);

bool tw_seal_is(const char *text);
/* TW_CONFLICT in words: the key is lost. */
enum tw_status tw_seal_text(const struct tw_seal *s, const char *whose, const char *plain,
        char ret[TW_SEALED_BYTES], struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND: it was sealed by another key, or for somebody else. */
enum tw_status tw_seal_read(const struct tw_seal *s, const char *whose, const char *text,
        char ret[TW_SEAL_PLAIN_MAX + 1], struct tw_err *err) TW_MUST_USE;

#endif
