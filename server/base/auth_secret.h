/*
 * auth_secret.h - random secrets of keys, links and sessions; stored only as SHA-256.
 *
 * They have 256 random bits, so a plain hash is enough: they cannot be guessed.
 * Thread: any.
 */
#ifndef TW_AUTH_SECRET_H
#define TW_AUTH_SECRET_H

#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_SECRET_BYTES = 64 }; /* "twi_", 43 characters of base64url and NUL */

/* A new secret that starts with `prefix` ("twi_", "twr_", "twl_", "tws_": at most 8 bytes), so that
 * people and secret scanners recognise it. */
enum tw_status tw_secret_new(
        const char *prefix, char ret_secret[TW_SECRET_BYTES], struct tw_err *err) TW_MUST_USE;

/* The hash that the catalogue stores and looks up; accepts any text. */
void tw_secret_hash(const char *secret, uint8_t ret_hash[32]);
/* The first 64 bits of that hash, as a number derived from a text. */
uint64_t tw_secret_bits(const char *text);

#endif
