/*
 * api_oidc.c - sign-in by an OpenID provider: redirects the browser there, and handles its return.
 *
 * Browsers navigate to both addresses, so errors are shown by the sign-in page: it gets the reason
 * (oidc.h) as a parameter and has the messages; the log has details. The routes have a separate
 * pool: an unresponsive provider blocks no other requests.
 */
#include <stdio.h>
#include <string.h>

#include "server/api/admin/api_sign_in.h"
#include "server/api/api.h"
#include "server/auth/auth_throttle.h"
#include "server/auth/oidc/jwt.h"
#include "server/auth/oidc/oidc.h"
#include "server/auth/oidc/oidc_state.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/catalogue/access/catalogue_identity.h"

#define FLOW_COOKIE "tw_oidc"

enum { COOKIE_BYTES = 2048, ACCOUNT_BYTES = TW_JWT_SUBJECT_MAX + 8 };

/* SameSite=Lax: the provider's page redirects the browser here. */
static void set_flow_cookie(struct tw_req *r, const char *value, long max_age_s)
{
	tw_api_set_cookie(r, &(struct tw_cookie){.name = FLOW_COOKIE,
	                             .value = value,
	                             .path = "/api/v1/oidc",
	                             .same_site = "Lax",
	                             .max_age_s = max_age_s});
}

static enum tw_status send_to(struct tw_req *r, const char *location, struct tw_err *err)
{
	tw_req_set_header(r, "Location", location);
	return tw_req_reply_empty(r, 302, err);
}

static enum tw_status redirect_to_page(
        struct tw_req *r, enum tw_oidc_why why, const char *subject, const struct tw_err *failed)
{
	char target[64];

	tw_log(TW_LOG_WARN, "oidc_refused", tw_log_text("id", tw_req_id(r)),
	        tw_log_text("address", tw_req_address(r)),
	        tw_log_text("reason", tw_oidc_why_name(why)), tw_log_text("subject", subject),
	        tw_log_text("error", failed->msg));
	(void)snprintf(target, sizeof target, "/signin?oidc=%s", tw_oidc_why_name(why));
	return send_to(r, target, NULL);
}

static enum tw_status need_provider(struct tw_req *r, struct tw_err *err)
{
	if (tw_api_of(r)->oidc)
		return TW_OK;
	return tw_fail(
	        err, TW_NOT_FOUND, "sign-in by a provider is not configured: set --oidc-issuer");
}

static struct tw_oidc_call call_of(struct tw_req *r)
{
	return (struct tw_oidc_call){.redirect_uri = tw_arena_printf(tw_req_arena(r),
	                                     "%s/api/v1/oidc/callback", tw_req_base(r)),
	        .deadline_ms = tw_monotonic_ms() + (int64_t)tw_req_ms_left(r),
	        .arena = tw_req_arena(r),
	        .why = TW_OIDC_FAILED};
}

/* --- to the provider --- */

static enum tw_status begin_for(struct tw_req *r, struct tw_oidc_call *call, const char *user_id,
        const char **ret_location, struct tw_err *err)
{
	const char *next = tw_req_text(r, "next");
	uint8_t before[32];
	const struct tw_oidc_purpose for_what = {.user_id = user_id,
	        .next = next ? next : "/",
	        .before = tw_api_present_session(r, before) ? before : NULL};
	const char *cookie;
	enum tw_status st;

	if (!call->redirect_uri)
		return tw_oom(err);
	st = tw_oidc_begin(tw_api_of(r)->oidc, call, &for_what, ret_location, &cookie, err);
	if (st == TW_OK)
		set_flow_cookie(r, cookie, TW_OIDC_STATE_S);
	return st;
}

static bool is_cross_site(struct tw_req *r)
{
	const char *site = tw_req_header(r, "Sec-Fetch-Site");

	return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

static enum tw_status begin(struct tw_req *r, struct tw_err *err)
{
	struct tw_oidc_call call = call_of(r);
	const char *location = NULL;
	struct tw_err why = {.msg = ""};
	enum tw_status st = need_provider(r, err);

	if (st != TW_OK)
		return st;
	if (is_cross_site(r))
		return redirect_to_page(r, TW_OIDC_ELSEWHERE, "", &why);
	st = begin_for(r, &call, "", &location, &why);
	return st == TW_OK ? send_to(r, location, err) : redirect_to_page(r, call.why, "", &why);
}

/* --- an account linked by its owner --- */

/* A session alone may be an unattended browser: linking requires the password again. */
static enum tw_status check_password(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const char *password = json_string_value(json_object_get(body, "password"));
	struct tw_user user;
	uint8_t session[32];
	enum tw_status st;

	if (!password)
		return tw_fail(err, TW_BAD_REQUEST, "password must be a text");
	if (!tw_api_present_session(r, session))
		return tw_fail(
		        err, TW_DENIED, "to link an account, sign in with its password first");
	st = tw_catalogue_user_get(tw_api_catalogue(r), tw_req_caller(r)->name, &user, err);
	if (st == TW_OK && !user.password[0])
		return tw_fail(err, TW_DENIED,
		        "this account has no password: an admin of the server can link it");
	if (st == TW_OK)
		st = tw_api_check_password(r, &user, password, err);
	if (st == TW_NO_TOKEN) /* the session itself is valid */
		st = tw_fail(err, TW_DENIED, "the password is wrong");
	return st;
}

static enum tw_status link_to(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_oidc_call call = call_of(r);
	const char *location = NULL;
	enum tw_status st = need_provider(r, err);

	if (st == TW_OK)
		st = check_password(r, body, err);
	if (st == TW_OK)
		st = begin_for(r, &call, tw_req_caller(r)->user_id, &location, err);
	if (st == TW_IO && call.why == TW_OIDC_AWAY)
		st = tw_fail(err, TW_BUSY, "%.60s does not respond; try again later",
		        tw_oidc_name(tw_api_of(r)->oidc));
	return st == TW_OK ? tw_req_reply_json(r, 200, json_pack("{ss}", "location", location), err)
	                   : st;
}

/* --- return --- */

static enum tw_oidc_why why_of(enum tw_identity_end end)
{
	static const enum tw_oidc_why whys[] = {[TW_IDENTITY_UNKNOWN] = TW_OIDC_NOT_INVITED,
	        [TW_IDENTITY_NO_NAME] = TW_OIDC_NO_NAME,
	        [TW_IDENTITY_NAME_TAKEN] = TW_OIDC_NAME_TAKEN,
	        [TW_IDENTITY_LINKED] = TW_OIDC_LINKED,
	        [TW_IDENTITY_DISABLED] = TW_OIDC_DISABLED,
	        [TW_IDENTITY_OVER] = TW_OIDC_STATE,
	        [TW_IDENTITY_FAILED] = TW_OIDC_FAILED};

	return whys[end];
}

static enum tw_status start_session(struct tw_req *r, const struct tw_oidc_person *p,
        enum tw_oidc_why *ret_why, struct tw_err *err)
{
	const struct tw_api *api = tw_api_of(r);
	const struct tw_identity who = {.issuer = tw_oidc_issuer(api->oidc),
	        .subject = p->subject,
	        .name = p->name,
	        .user_id = p->begun.user_id,
	        .requested_by = p->begun.has_before ? p->begun.before : NULL,
	        .may_be_new = p->may_be_new,
	        .first = p->first,
	        .n_first = p->n_first,
	        .grants = p->grants,
	        .n_grants = p->n_grants};
	enum tw_identity_end end = TW_IDENTITY_FAILED;
	struct tw_new_session n;
	enum tw_status st;

	tw_new_session_make(r, &n);
	n.row.how = "oidc";
	/* the session's cookie is not sent on a redirect from the provider */
	if (p->begun.has_before)
		n.row.replaces = p->begun.before;
	st = tw_catalogue_identity_sign_in(api->catalogue, &who, &n.row, &end, err);
	if (st == TW_OK)
		tw_new_session_reply(r, &n);
	else
		*ret_why = why_of(end);
	return st;
}

/* Rejected people count against their own limit, because many may share an office's address. */
static enum tw_status find_account(struct tw_req *r, const struct tw_oidc_person *p,
        enum tw_oidc_why *ret_why, struct tw_err *err)
{
	struct tw_throttle *tries = tw_oidc_throttle(tw_api_of(r)->oidc);
	int64_t now_ms = tw_unix_ms();
	char account[ACCOUNT_BYTES];
	unsigned wait_s;
	enum tw_status st;

	(void)snprintf(account, sizeof account, "oidc %s", p->subject);
	st = tw_throttle_check(tries, account, NULL, now_ms, &wait_s, err);
	if (st != TW_OK) {
		*ret_why = TW_OIDC_BUSY;
		return st;
	}
	/* Without the claim, the rules grant no role: providers often omit it for people without
	 * groups. It may also be missing because it was not requested, so it is logged. */
	if (p->no_role_claim)
		tw_log(TW_LOG_WARN, "oidc_no_role_claim", tw_log_text("id", tw_req_id(r)),
		        tw_log_text("claim", tw_api_of(r)->config->oidc.role_claim),
		        tw_log_text("subject", p->subject));
	*ret_why = TW_OIDC_FAILED;
	st = start_session(r, p, ret_why, err);
	if (st != TW_OK && *ret_why != TW_OIDC_FAILED)
		tw_throttle_failed(tries, account, NULL, now_ms);
	return st;
}

static enum tw_status finish(
        struct tw_req *r, struct tw_oidc_call *call, struct tw_oidc_person *ret, struct tw_err *err)
{
	char cookie[COOKIE_BYTES] = "";
	const struct tw_oidc_callback answer = {.cookie = cookie,
	        .state = tw_req_text(r, "state"),
	        .code = tw_req_text(r, "code"),
	        .issuer = tw_req_text(r, "iss"),
	        .error = tw_req_text(r, "error")};
	enum tw_status st;

	if (!call->redirect_uri)
		return tw_oom(err);
	(void)tw_api_cookie(r, FLOW_COOKIE, cookie, sizeof cookie);
	st = tw_oidc_finish(tw_api_of(r)->oidc, call, &answer, ret, err);
	return st == TW_OK ? find_account(r, ret, &call->why, err) : st;
}

/* Only codes that the provider did not issue count against an address: a client that invents codes
 * causes requests to the provider. Cancelling there, or having no account here, does not count. */
static enum tw_status try_finish(
        struct tw_req *r, struct tw_oidc_call *call, struct tw_oidc_person *ret, struct tw_err *err)
{
	struct tw_throttle *tries = tw_oidc_throttle(tw_api_of(r)->oidc);
	const char *address = tw_req_address(r);
	int64_t now_ms = tw_unix_ms();
	unsigned wait_s;
	enum tw_status st;

	call->why = TW_OIDC_BUSY;
	st = tw_throttle_check(tries, NULL, address, now_ms, &wait_s, err);
	if (st != TW_OK)
		return st;
	call->why = TW_OIDC_FAILED;
	st = finish(r, call, ret, err);
	if (call->no_such_code)
		tw_throttle_failed(tries, NULL, address, now_ms);
	return st;
}

static enum tw_status callback(struct tw_req *r, struct tw_err *err)
{
	struct tw_oidc_call call = call_of(r);
	struct tw_oidc_person *person = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *person);
	struct tw_err why = {.msg = ""};
	enum tw_status st = need_provider(r, err);

	if (st != TW_OK)
		return st;
	if (!person)
		return tw_oom(err);
	st = try_finish(r, &call, person, &why);
	if (st == TW_OK || call.why != TW_OIDC_STATE)
		set_flow_cookie(r, "", 0);
	if (st == TW_OK)
		return send_to(r, person->begun.next, err);
	return redirect_to_page(r, call.why, person->subject ? person->subject : "", &why);
}

static const struct tw_param next_params[] = {
        TW_PARAM_TEXT("next", 0, "Path of this server where the browser continues afterwards."),
        {0},
};
static const struct tw_param callback_params[] = {
        TW_PARAM_TEXT("state", 0, "As sent to the provider."),
        TW_PARAM_TEXT("code", 0, "Exchanged for an ID token."),
        TW_PARAM_TEXT("iss", 0, "The provider (RFC 9207)."),
        TW_PARAM_TEXT("error", 0, "Why the provider refused."),
        {0},
};

const struct tw_route tw_routes_oidc[] = {
        TW_ROUTE("GET", "/api/v1/oidc/begin", TW_NEED_PUBLIC,
                "Sends the browser to the OpenID provider", .params = TW_PARAMS(next_params),
                .outbound = true, .end = begin),
        TW_ROUTE("GET", "/api/v1/oidc/callback", TW_NEED_PUBLIC,
                "Callback of the OpenID provider: signs the person in",
                .params = TW_PARAMS(callback_params), .any_params = true, .outbound = true,
                .end = callback),
        TW_ROUTE("POST", "/api/v1/oidc/link", TW_NEED_USER,
                "Begins to link the account to an identity at the provider",
                .params = TW_PARAMS(next_params), .outbound = true, .json = link_to),
        {0},
};
