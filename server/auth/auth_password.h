/*
 * auth_password.h - password hashing with argon2id, in constant time for all accounts.
 *
 * A check for an unknown account takes as long as one for an existing account, so response times do
 * not reveal which names exist.  Each check takes 64 MiB for about 0.1 s, so only a few run
 * concurrently.
 * Thread: any.
 */
#ifndef TW_AUTH_PASSWORD_H
#define TW_AUTH_PASSWORD_H

#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/catalogue/access/catalogue_user.h"

enum { TW_PASSWORD_MIN = 10, TW_PASSWORD_MAX = 256 };

/* Checks that the text is acceptable as the password of that name.  TW_BAD_REQUEST with the
 * reason. */
enum tw_status tw_password_verify(
        const char *plain, const char *name, struct tw_err *err) TW_MUST_USE;
/* The hash to store. */
enum tw_status tw_password_hash(
        const char *plain, char ret[TW_PASSWORD_HASH_BYTES], struct tw_err *err) TW_MUST_USE;
/* Verifies a password.  `hash` "" (unknown account) gives false after the same time.  TW_BUSY if
 * too many checks are running. */
enum tw_status tw_password_check(
        const char *hash, const char *plain, bool *ret, struct tw_err *err) TW_MUST_USE;

#endif
