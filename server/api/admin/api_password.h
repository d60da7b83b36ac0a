/*
 * api_password.h - the password of an account, asked for once more.
 */
#ifndef TW_API_PASSWORD_H
#define TW_API_PASSWORD_H

#include "server/catalogue/access/catalogue_user.h"
#include "server/http/http.h"

/* Is it that account's?  TW_NO_TOKEN when not, or when it has none; TW_RATE, with Retry-After in
 * the answer, when it was tried too often. */
enum tw_status tw_api_check_password(struct tw_req *r, const struct tw_user *user,
        const char *password, struct tw_err *err) TW_MUST_USE;

#endif
