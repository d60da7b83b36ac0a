/*
 * auth_password.h - passwords: argon2id, and the same time for everyone.
 *
 * A check of nobody's password takes as long as one of somebody's, so that the
 * time of an answer does not tell which names exist.  Each takes 64 MiB for some
 * 0.1 s, so only a few run at once.
 * Thread: any.
 */
#ifndef TW_AUTH_PASSWORD_H
#define TW_AUTH_PASSWORD_H

#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/catalogue/access/catalogue_user.h"

enum { TW_PASSWORD_MIN = 10, TW_PASSWORD_MAX = 256 };

/* May this be a password of that name?  TW_BAD_REQUEST says why not. */
enum tw_status tw_password_judge(
        const char *plain, const char *name, struct tw_err *err) TW_MUST_USE;
/* What is stored. */
enum tw_status tw_password_hash(
        const char *plain, char ret[TW_PASSWORD_HASH_BYTES], struct tw_err *err) TW_MUST_USE;
/* Is it this one's?  `hash` "" is nobody's: false after the same time.  TW_BUSY when too many are
 * being checked. */
enum tw_status tw_password_check(
        const char *hash, const char *plain, bool *ret, struct tw_err *err) TW_MUST_USE;

#endif
