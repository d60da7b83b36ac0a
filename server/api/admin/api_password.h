/*
 * api_password.h - verifies an account's password again for sensitive changes.
 */
#ifndef TW_API_PASSWORD_H
#define TW_API_PASSWORD_H

#include "server/catalogue/access/catalogue_user.h"
#include "server/http/http.h"

/* TW_NO_TOKEN if it is wrong or the account has none; TW_RATE, with Retry-After in the response,
 * after too many attempts. */
enum tw_status tw_api_check_password(struct tw_req *r, const struct tw_user *user,
        const char *password, struct tw_err *err) TW_MUST_USE;

#endif
