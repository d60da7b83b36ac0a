/*
 * api_sign_in.h - shared by all ways to sign in: cookies, passwords, and new sessions (the secret
 * for the browser's cookie, the row for the catalogue).
 */
#ifndef TW_API_SIGN_IN_H
#define TW_API_SIGN_IN_H

#include "server/base/secret.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/http/http.h"

struct tw_cookie {
	const char *name; /* completed by tw_req_cookie_name */
	const char *value;
	const char *path;      /* "/" on https whatever is set here, as TW_COOKIE_HOST requires */
	const char *same_site; /* "Strict", "Lax" */
	long max_age_s;        /* 0 deletes the cookie */
};
/* HttpOnly; Secure, and with the host prefix, if the page is on https. */
void tw_api_set_cookie(struct tw_req *r, const struct tw_cookie *c);
/* The value of the cookie of that name (completed as when set); false if absent or too long. */
bool tw_api_cookie(struct tw_req *r, const char *name, char *out, size_t cap);

struct tw_new_session {
	struct tw_session row; /* points to the fields below: do not copy the struct */
	uint8_t hash[32], before[32];
	char secret[TW_SECRET_BYTES];
};

/* A session without a user yet, with the server's times, replacing the browser's current one. */
void tw_new_session_make(struct tw_req *r, struct tw_new_session *ret);
/* Gives the browser its cookie, once the row is written. */
void tw_new_session_reply(struct tw_req *r, const struct tw_new_session *n);

/* The hash of the browser's session; false: none. */
bool tw_api_present_session(struct tw_req *r, uint8_t ret_hash[32]);
/* Deletes the cookie. */
void tw_api_drop_cookie(struct tw_req *r);

/* Verifies an account's password again for sensitive changes.  TW_NO_TOKEN if it is wrong or the
 * account has none; TW_RATE, with Retry-After in the response, after too many attempts. */
enum tw_status tw_api_check_password(struct tw_req *r, const struct tw_user *user,
        const char *password, struct tw_err *err) TW_MUST_USE;

#endif
