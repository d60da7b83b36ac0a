/*
 * sha256.h - SHA-256 of files and bytes, and the start of any hash.
 *
 * Thread: any.
 */
#ifndef TW_SHA256_H
#define TW_SHA256_H

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_SHA256_HEX = 65 }; /* 64 characters and NUL */

/* Starts a hash; end it with gnutls_hash_deinit. On TW_NOMEM *ret is NULL, because the library
 * stores an invalid handle there that must not be deinitialised. */
enum tw_status tw_sha256_begin(
        gnutls_digest_algorithm_t kind, gnutls_hash_hd_t *ret, struct tw_err *err) TW_MUST_USE;
/* Reads fd from its position to its end.  TW_IO if it cannot be read. */
enum tw_status tw_sha256_fd(int fd, char ret_sha256[TW_SHA256_HEX], uint64_t *ret_bytes,
        struct tw_err *err) TW_MUST_USE;
/* The same for the file at path, not following a link; TW_IO also if it does not exist. */
enum tw_status tw_sha256_file(const char *path, char ret_sha256[TW_SHA256_HEX], uint64_t *ret_bytes,
        struct tw_err *err) TW_MUST_USE;

/* The hash of bytes in memory. */
void tw_sha256_bytes(struct tw_str bytes, uint8_t ret_hash[32]);

/* A hash in hexadecimal. */
void tw_sha256_hex(const uint8_t hash[32], char ret[TW_SHA256_HEX]);

#endif
