/*
 * secret.h - secrets: random ones, of which only a hash is stored, and the encryption of those
 * that the server must be able to read again, with a key stored separately.
 *
 * XChaCha20-Poly1305 by libsodium: "sealed:1:" and base64 of nonce and ciphertext.  The owner of a
 * secret is authenticated with it, so that a secret cannot be moved to another owner.
 * Thread: any.
 */
#ifndef TW_SECRET_H
#define TW_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_SECRET_TEXT_BYTES = 512, TW_SECRET_PLAIN_MAX = 300, TW_SECRET_DERIVED = 32 };

struct tw_secret_key;

/* file "": secret.key in the data folder.  If it is missing it is created, or, with `make` false,
 * counts as lost: then nothing can be encrypted or decrypted.  Any other file must exist, and its
 * group may read it.  TW_BAD_REQUEST: not a key, or others can read it. */
enum tw_status tw_secret_key_open(const char *data_dir, const char *file, bool make,
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
/* TW_NOT_FOUND: encrypted with another key, or for another owner, or not at all. */
enum tw_status tw_secret_decrypt(const struct tw_secret_key *s, const char *whose, const char *text,
        char ret[TW_SECRET_PLAIN_MAX + 1], struct tw_err *err) TW_MUST_USE;

/* Random secrets of keys, links and sessions; stored only as SHA-256.  They have 256 random bits,
 * so a plain hash is enough: they cannot be guessed. */
enum { TW_SECRET_BYTES = 64 }; /* "twi_", 43 characters of base64url and NUL */

/* A new secret that starts with `prefix` ("twi_", "twr_", "twl_", "tws_": at most 8 bytes), so that
 * people and secret scanners recognise it. */
void tw_secret_new(const char *prefix, char ret_secret[TW_SECRET_BYTES]);

/* The hash that the catalogue stores and looks up; accepts any text. */
void tw_secret_hash(const char *secret, uint8_t ret_hash[32]);
/* The first 64 bits of that hash, as a number derived from a text. */
uint64_t tw_secret_bits(const char *text);

#endif
