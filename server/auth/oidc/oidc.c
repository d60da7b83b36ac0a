/*
 * oidc.c - the flow: OpenID Connect Core 3.1, RFC 7636 (PKCE), RFC 9207 (iss in responses).
 *
 *   begin   create state, nonce and verifier ─▶ redirect the browser to the provider
 *   finish  state is this browser's and unused ─▶ exchange code and verifier for an ID token
 *           ─▶ signature by the provider's keys (refreshed once) ─▶ validate claims
 *           ─▶ request missing claims from UserInfo
 */
#include "server/auth/oidc/oidc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/auth_throttle.h"
#include "server/auth/oidc/jwt.h"
#include "server/auth/oidc/oidc_fetch.h"
#include "server/auth/oidc/oidc_provider.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/catalogue/access/catalogue_user.h"

enum { SECRET_BYTES = 1024, SKEW_S = 60 };

struct tw_oidc {
	const struct tw_oidc_config *config;
	struct tw_provider *provider;
	struct tw_oidc_states *states;
	struct tw_throttle *tries;
	struct tw_role_rules rules, first;
	char secret[SECRET_BYTES]; /* "": a public client */
	char name[TW_OIDC_NAME_BYTES];
};

const char *tw_oidc_why_name(enum tw_oidc_why why)
{
	static const char *const texts[] = {
#define X(name, word) [TW_OIDC_##name] = (word),
	        TW_OIDC_WHY_MAP(X)
#undef X
	};

	return texts[why];
}

/* --- settings --- */

static enum tw_status read_secret(const char *path, char *out, struct tw_err *err)
{
	const ssize_t n = tw_file_read(path, out, SECRET_BYTES);

	if (n < 0)
		return tw_fail_errno(err, TW_BAD_REQUEST, "oidc-client-secret-file: %.100s", path);
	if (n == SECRET_BYTES)
		return tw_fail(err, TW_BAD_REQUEST, "the secret in %.100s is too long", path);
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	if (!*out)
		return tw_fail(err, TW_BAD_REQUEST, "%.100s contains no secret", path);
	return TW_OK;
}

static enum tw_status find_secret(struct tw_oidc *o, struct tw_err *err)
{
	const char *given = getenv("TRACEWELL_OIDC_CLIENT_SECRET");

	if (*o->config->client_secret_file)
		return read_secret(o->config->client_secret_file, o->secret, err);
	if (given && strlen(given) >= SECRET_BYTES)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the secret in TRACEWELL_OIDC_CLIENT_SECRET is too long");
	(void)snprintf(o->secret, sizeof o->secret, "%s", given ? given : "");
	return TW_OK;
}

static enum tw_status check_config(const struct tw_oidc_config *c, struct tw_err *err)
{
	if (!tw_fetch_allows(c->issuer, c->loopback_http) || strpbrk(c->issuer, "?#"))
		return tw_fail(err, TW_BAD_REQUEST,
		        "oidc-issuer: %.100s is not an https address without query", c->issuer);
	if (!*c->client_id)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--oidc-issuer needs --oidc-client-id, the id of this server at the "
		        "provider");
	if (!tw_claim_lists(c->scopes, ' ', "openid"))
		return tw_fail(err, TW_BAD_REQUEST, "oidc-scopes: openid must be among them");
	if (*c->new_roles && !c->create)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--oidc-new-roles is for accounts that --oidc-create makes");
	return TW_OK;
}

static void set_name(struct tw_oidc *o)
{
	const char *host = strstr(o->config->issuer, "://") + 3; /* validated */

	if (*o->config->name)
		(void)snprintf(o->name, sizeof o->name, "%s", o->config->name);
	else
		(void)snprintf(o->name, sizeof o->name, "%.*s", (int)strcspn(host, ":/"), host);
}

enum tw_status tw_oidc_open(
        const struct tw_oidc_config *c, struct tw_oidc **ret, struct tw_err *err)
{
	struct tw_oidc *o;
	enum tw_status st = check_config(c, err);

	if (st != TW_OK)
		return st;
	o = tw_mem_zalloc(1, sizeof *o);
	if (!o)
		return tw_oom(err);
	o->config = c;
	set_name(o);
	o->provider = tw_provider_new(c);
	o->tries = tw_throttle_new();
	if (!o->provider || !o->tries)
		st = tw_oom(err);
	if (st == TW_OK)
		st = tw_role_rules_parse(c->roles, true, &o->rules, err);
	if (st == TW_OK)
		st = tw_role_rules_parse(c->new_roles, false, &o->first, err);
	if (st == TW_OK)
		st = find_secret(o, err);
	if (st == TW_OK)
		st = tw_oidc_states_new(&o->states, err);
	if (st == TW_OK)
		st = tw_fetch_prepare(err);
	if (st == TW_OK)
		*ret = o;
	else
		(void)tw_oidc_close(o);
	return st;
}

void tw_oidc_share(struct tw_oidc *o, const struct tw_oidc_sharing *with)
{
	tw_oidc_states_share(o->states, with);
}

struct tw_oidc *tw_oidc_close(struct tw_oidc *o)
{
	if (!o)
		return NULL;
	(void)tw_oidc_states_free(o->states);
	(void)tw_provider_free(o->provider);
	(void)tw_throttle_free(o->tries);
	explicit_bzero(o->secret, sizeof o->secret);
	tw_mem_free(o);
	return NULL;
}

const char *tw_oidc_name(const struct tw_oidc *o)
{
	return o->name;
}

const char *tw_oidc_issuer(const struct tw_oidc *o)
{
	return o->config->issuer;
}

struct tw_throttle *tw_oidc_throttle(struct tw_oidc *o)
{
	return o->tries;
}

/* --- begin --- */

static uint64_t ms_left(const struct tw_oidc_call *call)
{
	int64_t left = call->deadline_ms - tw_monotonic_ms();

	return left > 0 ? (uint64_t)left : 0;
}

static enum tw_status find_provider(struct tw_oidc *o, struct tw_oidc_call *call,
        struct tw_provider_metadata *ret, struct tw_err *err)
{
	enum tw_status st;

	call->why = TW_OIDC_AWAY;
	if (ms_left(call) == 0)
		return tw_fail(err, TW_IO, "requests to the provider are taking too long");
	st = tw_provider_metadata(o->provider, ms_left(call), call->arena, ret, err);
	if (st == TW_OK)
		call->why = TW_OIDC_FAILED;
	return st;
}

static const char *location_of(const struct tw_oidc *o, const struct tw_oidc_call *call,
        const char *endpoint, const struct tw_oidc_state *s)
{
	const char *before =
	        tw_arena_printf(call->arena, "%s%c", endpoint, strchr(endpoint, '?') ? '&' : '?');
	const struct tw_form_pair pairs[] = {{"response_type", "code"},
	        {"client_id", o->config->client_id}, {"redirect_uri", call->redirect_uri},
	        {"scope", o->config->scopes}, {"state", s->state}, {"nonce", s->nonce},
	        {"code_challenge", s->challenge}, {"code_challenge_method", "S256"}, {NULL, NULL}};

	return before ? tw_form_text(call->arena, before, pairs) : NULL;
}

enum tw_status tw_oidc_begin(struct tw_oidc *o, struct tw_oidc_call *call,
        const struct tw_oidc_purpose *for_what, const char **ret_location, const char **ret_cookie,
        struct tw_err *err)
{
	struct tw_provider_metadata provider = {.authorization = "", .token = "", .userinfo = ""};
	struct tw_oidc_state s = {.next = "/"};
	const char *location;
	enum tw_status st = find_provider(o, call, &provider, err);

	if (st == TW_OK)
		st = tw_oidc_state_begin(
		        o->states, for_what, tw_unix_ms(), call->arena, &s, ret_cookie, err);
	if (st != TW_OK)
		return st;
	location = location_of(o, call, provider.authorization, &s);
	if (!location)
		return tw_oom(err);
	*ret_location = location;
	return TW_OK;
}

/* --- finish --- */

static enum tw_status refuse(struct tw_oidc_call *call, enum tw_oidc_why why, struct tw_err *err,
        const char *what, const char *detail)
{
	call->why = why;
	return tw_fail(err, TW_DENIED, "%s%.80s", what, detail);
}

static enum tw_status check_response(const struct tw_oidc *o,
        const struct tw_provider_metadata *provider, struct tw_oidc_call *call,
        const struct tw_oidc_callback *answer, struct tw_err *err)
{
	if (answer->issuer ? strcmp(answer->issuer, o->config->issuer) != 0
	                   : provider->names_itself)
		return refuse(
		        call, TW_OIDC_TOKEN, err, "the response is from another provider", "");
	if (answer->error)
		return refuse(call, TW_OIDC_REFUSED, err, "the provider reports: ", answer->error);
	if (!answer->code || !*answer->code)
		return refuse(call, TW_OIDC_REFUSED, err, "the provider sent no code", "");
	return TW_OK;
}

/* The form that exchanges a code for tokens; NULL if out of memory. */
static const char *form_of(const struct tw_oidc *o, const struct tw_oidc_call *call,
        const struct tw_oidc_state *s, const char *code, bool by_form)
{
	const struct tw_form_pair pairs[] = {{"grant_type", "authorization_code"}, {"code", code},
	        {"redirect_uri", call->redirect_uri}, {"code_verifier", s->verifier},
	        {"client_id", by_form ? o->config->client_id : NULL},
	        {"client_secret", by_form && *o->secret ? o->secret : NULL}, {NULL, NULL}};

	return tw_form_text(call->arena, "", pairs);
}

/* Interprets the token endpoint's response: tokens, or an error. */
static enum tw_status check_tokens(
        struct tw_oidc_call *call, long http, const json_t *json, struct tw_err *err)
{
	const char *error = json_string_value(json_object_get(json, "error"));

	if (error && http >= 400 && http < 500) {
		call->no_such_code = strcmp(error, "invalid_grant") == 0;
		return refuse(
		        call, TW_OIDC_REFUSED, err, "the provider rejected the code: ", error);
	}
	if (http != 200 || !json)
		return tw_fail(err, TW_IO, "the provider responded to the code with %ld", http);
	return TW_OK;
}

static enum tw_status exchange(struct tw_oidc *o, struct tw_oidc_call *call,
        const struct tw_provider_metadata *provider, const struct tw_oidc_state *s,
        const char *code, json_t **ret, struct tw_err *err)
{
	bool basic = *o->secret && !provider->by_post;
	struct tw_fetch f = {.url = provider->token,
	        .form = form_of(o, call, s, code, !basic),
	        .ca_file = o->config->ca_file,
	        .loopback_http = o->config->loopback_http,
	        .ms = ms_left(call)};
	json_t *json = NULL;
	long http = 0;
	enum tw_status st;

	if (basic) {
		f.user = tw_form_escaped(call->arena, o->config->client_id);
		f.password = tw_form_escaped(call->arena, o->secret);
	}
	if (!f.form || (basic && (!f.user || !f.password)))
		return tw_oom(err);
	call->why = TW_OIDC_AWAY;
	st = tw_oidc_fetch(&f, &http, &json, err);
	if (st == TW_OK)
		st = check_tokens(call, http, json, err);
	if (st == TW_OK)
		*ret = json;
	else
		json_decref(json);
	return st;
}

/* Tries the cached keys; if none verifies, the current ones: a new key may have no name, or that of
 * its predecessor. */
static enum tw_status verify(
        struct tw_oidc *o, struct tw_oidc_call *call, const struct tw_jwt *t, struct tw_err *err)
{
	enum tw_status st = TW_NOT_FOUND;

	for (int refresh = 0; refresh < 2 && (st == TW_NOT_FOUND || st == TW_NO_TOKEN); refresh++) {
		json_t *keys = NULL;

		call->why = TW_OIDC_AWAY;
		st = tw_provider_keys(o->provider, refresh, ms_left(call), &keys, err);
		if (st != TW_OK)
			return st;
		call->why = TW_OIDC_TOKEN;
		st = tw_jwt_verify(t, keys, err);
		json_decref(keys);
	}
	return st;
}

static enum tw_status validate_token(struct tw_oidc *o, struct tw_oidc_call *call,
        const char *nonce, const struct tw_jwt *t, struct tw_err *err)
{
	const struct tw_jwt_expected e = {.issuer = o->config->issuer,
	        .audience = o->config->client_id,
	        .nonce = nonce,
	        .now_s = tw_unix_ms() / 1000,
	        .skew_s = SKEW_S};
	enum tw_status st = verify(o, call, t, err);

	if (st == TW_OK)
		st = tw_jwt_validate(t, &e, err);
	if (st == TW_DEADLINE)
		call->why = TW_OIDC_CLOCK;
	return st;
}

static bool needs_userinfo(const struct tw_oidc *o, const json_t *claims)
{
	const struct tw_oidc_config *c = o->config;

	return !tw_claim_find(claims, c->name_claim) ||
	       (*c->email_domains && !tw_claim_has_address(claims)) ||
	       (o->rules.n && !tw_claim_find(claims, c->role_claim));
}

/* UserInfo must be about the same person, otherwise it is ignored (5.3.4). */
static enum tw_status add_userinfo(struct tw_oidc *o, struct tw_oidc_call *call,
        const struct tw_provider_metadata *provider, const json_t *tokens, json_t *claims,
        struct tw_err *err)
{
	const char *access = json_string_value(json_object_get(tokens, "access_token"));
	const struct tw_fetch f = {.url = provider->userinfo,
	        .bearer = access,
	        .ca_file = o->config->ca_file,
	        .loopback_http = o->config->loopback_http,
	        .ms = ms_left(call)};
	json_t *more = NULL;
	long http = 0;
	enum tw_status st;

	if (!access || !*provider->userinfo || !needs_userinfo(o, claims))
		return TW_OK;
	call->why = TW_OIDC_AWAY;
	st = tw_oidc_fetch(&f, &http, &more, err);
	if (st == TW_OK && (http != 200 || !more))
		st = tw_fail(err, TW_IO, "the provider responded to UserInfo with %ld", http);
	if (st == TW_OK &&
	        !json_equal(json_object_get(more, "sub"), json_object_get(claims, "sub")))
		st = refuse(call, TW_OIDC_TOKEN, err, "UserInfo is about another user", "");
	if (st == TW_OK && !tw_claim_add(claims, more))
		st = tw_oom(err);
	json_decref(more);
	return st;
}

static enum tw_status person_of(const struct tw_oidc *o, struct tw_oidc_call *call,
        const json_t *claims, struct tw_oidc_person *ret, struct tw_err *err)
{
	const struct tw_oidc_config *c = o->config;
	const json_t *role = tw_claim_find(claims, c->role_claim);
	const char *email = json_string_value(tw_claim_find(claims, "email"));
	const char *given = json_string_value(tw_claim_find(claims, c->name_claim));
	char name[TW_USER_NAME_BYTES] = "";

	if (*c->email_domains && !tw_claim_is_of(claims, c->email_domains))
		return refuse(call, TW_OIDC_EMAIL, err,
		        "no verified address of a domain in --oidc-email-domains", "");
	call->why = TW_OIDC_FAILED;
	if (tw_user_name(given ? given : "", name, NULL) != TW_OK)
		name[0] = '\0';
	ret->subject = tw_arena_str(
	        call->arena, tw_str_of(json_string_value(json_object_get(claims, "sub"))));
	ret->name = tw_arena_str(call->arena, tw_str_of(name));
	ret->email = tw_arena_str(call->arena, tw_str_of(email ? email : ""));
	if (!ret->subject || !ret->name || !ret->email)
		return tw_oom(err);
	ret->n_grants = tw_role_rules_grant(&o->rules, role, ret->grants);
	ret->no_role_claim = o->rules.n && !role;
	ret->n_first = tw_role_rules_grant(&o->first, NULL, ret->first);
	ret->may_be_new = c->create;
	return TW_OK;
}

/* Extracts the person from the tokens. */
static enum tw_status read_tokens(struct tw_oidc *o, struct tw_oidc_call *call,
        const struct tw_provider_metadata *provider, const char *nonce, const json_t *tokens,
        struct tw_oidc_person *ret, struct tw_err *err)
{
	const char *text = json_string_value(json_object_get(tokens, "id_token"));
	struct tw_jwt t = {.header = NULL};
	enum tw_status st;

	if (!text)
		return refuse(call, TW_OIDC_TOKEN, err, "the provider sent no ID token", "");
	call->why = TW_OIDC_TOKEN;
	st = tw_jwt_parse(call->arena, tw_str_of(text), &t, err);
	if (st == TW_OK)
		st = validate_token(o, call, nonce, &t, err);
	if (st == TW_OK)
		st = add_userinfo(o, call, provider, tokens, t.claims, err);
	if (st == TW_OK)
		st = person_of(o, call, t.claims, ret, err);
	tw_jwt_done(&t);
	return st;
}

enum tw_status tw_oidc_finish(struct tw_oidc *o, struct tw_oidc_call *call,
        const struct tw_oidc_callback *answer, struct tw_oidc_person *ret, struct tw_err *err)
{
	struct tw_provider_metadata provider = {.authorization = "", .token = "", .userinfo = ""};
	struct tw_oidc_state s = {.next = "/"};
	json_t *tokens = NULL;
	enum tw_status st;

	call->why = TW_OIDC_STATE;
	st = tw_oidc_state_take(o->states, answer->cookie ? answer->cookie : "",
	        answer->state ? answer->state : "", tw_unix_ms(), call->arena, &s, err);
	if (st == TW_OK)
		st = find_provider(o, call, &provider, err);
	if (st == TW_OK)
		st = check_response(o, &provider, call, answer, err);
	if (st == TW_OK)
		st = exchange(o, call, &provider, &s, answer->code, &tokens, err);
	if (st == TW_OK)
		st = read_tokens(o, call, &provider, s.nonce, tokens, ret, err);
	json_decref(tokens);
	if (st != TW_OK)
		return st;
	ret->begun = s;
	return TW_OK;
}
