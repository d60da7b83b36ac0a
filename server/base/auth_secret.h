/*
 * auth_secret.h - secrets of keys, links and sessions: made from the system's random source, kept
 * only as SHA-256.
 *
 * They carry 256 random bits, so a plain hash is enough: there is nothing to guess.
 * Thread: any.
 */
#ifndef TW_AUTH_SECRET_H
#define TW_AUTH_SECRET_H

#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_SECRET_BYTES = 64 }; /* room for "twi_", 43 characters of base64url and NUL */

/* A new secret, `prefix` ("twi_", "twr_", "twl_", "tws_": at most 8 bytes) in front so that people
 * and scanners see what it is. */
enum tw_status tw_secret_new(
        const char *prefix, char ret_secret[TW_SECRET_BYTES], struct tw_err *err) TW_MUST_USE;

/* What the catalogue stores and looks for; any text. */
void tw_secret_hash(const char *secret, uint8_t ret_hash[32]);
/* The first 64 bits of that, for numbers that go by what a text is. */
uint64_t tw_secret_bits(const char *text);

#endif
