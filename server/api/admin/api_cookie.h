/*
 * api_cookie.h - cookies, and a session that begins: its secret in the browser's cookie, its row
 * for the catalogue.
 */
#ifndef TW_API_COOKIE_H
#define TW_API_COOKIE_H

#include "server/base/auth_secret.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/http/http.h"

struct tw_cookie {
	const char *name; /* completed by tw_req_cookie_name */
	const char *value;
	const char *path; /* on https it is "/" whatever this says: TW_COOKIE_HOST asks for that */
	const char *same_site; /* "Strict", "Lax" */
	long max_age_s;        /* 0 takes it away */
};
/* HttpOnly; Secure, and named for this host alone, where the page is on https. */
void tw_api_set_cookie(struct tw_req *r, const struct tw_cookie *c);
/* The cookie of that name, as it is called here; false when absent or too long. */
bool tw_api_cookie(struct tw_req *r, const char *name, char *out, size_t cap);

struct tw_new_session {
	struct tw_session row; /* points to what follows: the whole is not copied */
	uint8_t hash[32], before[32];
	char secret[TW_SECRET_BYTES];
};

/* A session of nobody yet, with the server's times, in place of the one that the browser has. */
enum tw_status tw_new_session_make(
        struct tw_req *r, struct tw_new_session *ret, struct tw_err *err) TW_MUST_USE;
/* Gives the browser its cookie, once the row is written. */
void tw_new_session_reply(struct tw_req *r, const struct tw_new_session *n);

/* The hash of the session that the browser has; false: none. */
bool tw_api_present_session(struct tw_req *r, uint8_t ret_hash[32]);
/* Takes the cookie away. */
void tw_api_drop_cookie(struct tw_req *r);

#endif
