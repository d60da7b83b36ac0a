#include "server/api/admin/api_password.h"

#include <stdio.h>

#include "server/auth/auth_password.h"
#include "server/auth/auth_throttle.h"
#include "server/base/app.h"
#include "server/base/clock.h"
#include "server/base/log.h"

enum tw_status tw_api_check_password(
        struct tw_req *r, const struct tw_user *user, const char *password, struct tw_err *err)
{
	struct tw_throttle *throttle = tw_req_app(r)->throttle;
	const char *address = tw_req_address(r);
	unsigned wait_s = 0;
	char text[16];
	bool right = false;
	enum tw_status st =
	        tw_throttle_try(throttle, user->name, address, tw_unix_ms(), &wait_s, err);

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
	tw_throttle_right(throttle, user->name, address);
	return TW_OK;
}
