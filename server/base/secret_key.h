/*
 * secret_key.h - encrypts secrets that the server must be able to read again, with a key stored
 * separately.
 *
 * XChaCha20-Poly1305 by libsodium: "sealed:1:" and base64 of nonce and ciphertext.  The owner of a
 * secret is authenticated with it, so that a secret cannot be moved to another owner.  Text that
 * was never encrypted is returned unchanged.
 * Thread: any.
 */
#ifndef TW_SECRET_KEY_H
#define TW_SECRET_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

enum { TW_SECRET_TEXT_BYTES = 512, TW_SECRET_PLAIN_MAX = 300, TW_SECRET_DERIVED = 32 };

struct tw_secret_key;

/* file "": secret.key in the data folder.  If it is missing it is created, or, with `make` false,
 * counts as lost: then nothing can be encrypted or decrypted.  Any other file must exist, and its
 * group may read it.  TW_BAD_REQUEST: not a key, or others can read it. */
enum tw_status tw_secret_decrypt(const char *data_dir, const char *file, bool make,
        struct tw_secret_key **ret, struct tw_err *err) TW_MUST_USE;
bool tw_secret_key_lost(const struct tw_secret_key *s);
/* Derives another key, the same for equal keys, which does not reveal this one.  False: the key is
 * lost. */
bool tw_secret_key_derive(const struct tw_secret_key *s, const char *what,
        unsigned char ret[TW_SECRET_DERIVED]) TW_MUST_USE;
/* Accepts NULL; returns NULL. */
struct tw_secret_key *tw_secret_key_free(struct tw_secret_key *s);

bool tw_secret_is_encrypted(const char *text);
/* TW_CONFLICT: the key is lost. */
enum tw_status tw_secret_encrypt(const struct tw_secret_key *s, const char *whose,
        const char *plain, char ret[TW_SECRET_TEXT_BYTES], struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND: encrypted with another key, or for another owner. */
enum tw_status tw_secret_key_read(const struct tw_secret_key *s, const char *whose,
        const char *text, char ret[TW_SECRET_PLAIN_MAX + 1], struct tw_err *err) TW_MUST_USE;

#endif
