/*
 * seal.h - encrypts secrets that the server must be able to read again, with a key stored
 * separately.
 *
 * XChaCha20-Poly1305 by libsodium: "sealed:1:" and base64 of nonce and ciphertext.  The owner of a
 * secret is authenticated with it, so that a secret cannot be moved to another owner.  Text that
 * was never encrypted is returned unchanged.
 * Thread: any.
 */
#ifndef TW_SEAL_H
#define TW_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

enum { TW_SEALED_BYTES = 512, TW_SEAL_PLAIN_MAX = 300, TW_SEAL_DERIVED = 32 };

struct tw_seal;

/* file "": secret.key in the data folder.  If it is missing it is created, or, with `make` false,
 * counts as lost: then nothing can be encrypted or decrypted.  Any other file must exist, and its
 * group may read it.  TW_BAD_REQUEST: not a key, or others can read it. */
enum tw_status tw_seal_open(const char *data_dir, const char *file, bool make, struct tw_seal **ret,
        struct tw_err *err) TW_MUST_USE;
bool tw_seal_lost(const struct tw_seal *s);
/* Derives another key, the same for equal keys, which does not reveal this one.  False: the key is
 * lost. */
bool tw_seal_derive(
        const struct tw_seal *s, const char *what, unsigned char ret[TW_SEAL_DERIVED]) TW_MUST_USE;
/* Accepts NULL; returns NULL. */
struct tw_seal *tw_seal_free(struct tw_seal *s);

bool tw_seal_is(const char *text);
/* TW_CONFLICT: the key is lost. */
enum tw_status tw_seal_text(const struct tw_seal *s, const char *whose, const char *plain,
        char ret[TW_SEALED_BYTES], struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND: encrypted with another key, or for another owner. */
enum tw_status tw_seal_read(const struct tw_seal *s, const char *whose, const char *text,
        char ret[TW_SEAL_PLAIN_MAX + 1], struct tw_err *err) TW_MUST_USE;

#endif
