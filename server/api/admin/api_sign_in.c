#include <stdio.h>

#include "server/api/admin/api_sign_in.h"

#include "server/api/api.h"
#include "server/auth/auth.h"
#include "server/auth/auth_password.h"
#include "server/auth/auth_throttle.h"
#include "server/base/clock.h"
#include "server/base/log.h"

enum { MAX_SECRET = 128 };

void tw_api_set_cookie(struct tw_req *r, const struct tw_cookie *c)
{
	bool https = tw_req_is_https(r);
	const char *text = tw_arena_printf(tw_req_arena(r),
	        "%s=%s; Path=%s; Max-Age=%ld; HttpOnly; SameSite=%s%s",
	        tw_req_cookie_name(r, c->name), c->value, https ? "/" : c->path, c->max_age_s,
	        c->same_site, https ? "; Secure" : "");

	if (text)
		tw_req_set_header(r, "Set-Cookie", text);
}

bool tw_api_cookie(struct tw_req *r, const char *name, char *out, size_t cap)
{
	return tw_auth_cookie(tw_req_header(r, "Cookie"), tw_req_cookie_name(r, name), out, cap);
}

static void set_session(struct tw_req *r, const char *secret, long max_age_s)
{
	tw_api_set_cookie(r, &(struct tw_cookie){.name = TW_SESSION_COOKIE,
	                             .value = secret,
	                             .path = "/",
	                             .same_site = "Strict",
	                             .max_age_s = max_age_s});
}

bool tw_api_present_session(struct tw_req *r, uint8_t ret_hash[32])
{
	char secret[MAX_SECRET];

	if (!tw_api_cookie(r, TW_SESSION_COOKIE, secret, sizeof secret))
		return false;
	tw_secret_hash(secret, ret_hash);
	return true;
}

void tw_api_drop_cookie(struct tw_req *r)
{
	set_session(r, "", 0);
}

void tw_new_session_make(struct tw_req *r, struct tw_new_session *ret)
{
	const struct tw_config *c = tw_api_of(r)->config;

	tw_secret_new("tws_", ret->secret);
	tw_secret_hash(ret->secret, ret->hash);
	ret->row = (struct tw_session){.hash = ret->hash,
	        .user_id = "",
	        .project_id = "",
	        .key_id = "",
	        .idle_ms = (int64_t)c->session_idle_s * 1000,
	        .expires_ms = tw_unix_ms() + (int64_t)c->session_max_s * 1000};
	if (tw_api_present_session(r, ret->before))
		ret->row.replaces = ret->before;
}

void tw_new_session_reply(struct tw_req *r, const struct tw_new_session *n)
{
	set_session(r, n->secret, (long)tw_api_of(r)->config->session_max_s);
}

enum tw_status tw_api_check_password(
        struct tw_req *r, const struct tw_user *user, const char *password, struct tw_err *err)
{
	struct tw_throttle *throttle = tw_api_of(r)->throttle;
	const char *address = tw_req_address(r);
	unsigned wait_s = 0;
	char text[16];
	bool right = false;
	enum tw_status st =
	        tw_throttle_attempt(throttle, user->name, address, tw_unix_ms(), &wait_s, err);

	if (st == TW_RATE) {
		(void)snprintf(text, sizeof text, "%u", wait_s);
		tw_req_set_header(r, "Retry-After", text);
	}
	if (st == TW_OK)
		st = tw_password_check(user->password, password, &right, err);
	if (st != TW_OK)
		return st;
	if (!right) {
		tw_log(TW_LOG_WARN, "wrong_password", tw_log_text("id", tw_req_id(r)),
		        tw_log_text("address", address));
		return tw_fail(err, TW_NO_TOKEN, "the name or the password is wrong");
	}
	tw_throttle_succeeded(throttle, user->name, address);
	return TW_OK;
}
