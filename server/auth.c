#include "auth.h"

#include <string.h>
#include <strings.h>

#include "auth_secret.h"
#include "base/str.h"
#include "catalogue.h"

enum { MAX_SECRET = 128 };

const char *tw_scope_word(enum tw_scope scope)
{
	static const char *const words[] = {"public", "ingest", "read", "admin"};

	return (unsigned)scope < sizeof words / sizeof *words ? words[scope] : "public";
}

static enum tw_status by_key(
        struct tw_catalogue *c, const char *secret, struct tw_caller *ret, struct tw_err *err)
{
	uint8_t hash[32];

	if (strlen(secret) >= MAX_SECRET)
		return tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET, "unknown key");
	tw_secret_hash(secret, hash);
	return tw_catalogue_key_find(c, hash, ret, err);
}

/* A cookie holds a session's secret, or a read token that someone signed in with. */
static enum tw_status by_cookie(struct tw_catalogue *c, const char *secret, const char *project,
        struct tw_caller *ret, struct tw_err *err)
{
	uint8_t hash[32];
	enum tw_status st;

	tw_secret_hash(secret, hash);
	st = tw_catalogue_session_find(c, hash, project ? project : "", ret, err);
	if (st != TW_NO_TOKEN)
		return st;
	st = by_key(c, secret, ret, NULL);
	if (st == TW_OK && ret->scope == TW_SCOPE_READ)
		return TW_OK;
	return tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET, "the session is over; sign in again");
}

enum tw_status tw_auth_caller(struct tw_catalogue *c, const struct tw_credentials *shown,
        struct tw_caller *ret, struct tw_err *err)
{
	static const char bearer[] = "Bearer ";
	struct tw_caller caller = {.scope = TW_SCOPE_PUBLIC};
	char secret[MAX_SECRET];
	enum tw_status st = TW_OK;

	if (shown->authorization) {
		if (strncasecmp(shown->authorization, bearer, sizeof bearer - 1) != 0)
			return tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET,
			        "Authorization must be `Bearer KEY`");
		st = by_key(c, shown->authorization + sizeof bearer - 1, &caller, err);
	} else if (tw_auth_cookie(shown->cookie, TW_SESSION_COOKIE, secret, sizeof secret)) {
		if (shown->changes_state && (!shown->csrf || strcmp(shown->csrf, "1") != 0))
			return tw_fail(err, TW_DENIED, TW_NO_OFFSET,
			        "a change by cookie needs the header X-Tracewell: 1");
		st = by_cookie(c, secret, shown->project, &caller, err);
	}
	if (st != TW_OK)
		return st;
	if (shown->project && *shown->project && caller.scope != TW_SCOPE_PUBLIC &&
	        strcmp(shown->project, caller.project_id) != 0)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "no such project");
	*ret = caller;
	return TW_OK;
}

enum tw_status tw_auth_allows(
        const struct tw_caller *caller, enum tw_scope needed, bool ingest_too, struct tw_err *err)
{
	if (needed == TW_SCOPE_PUBLIC || caller->scope == TW_SCOPE_ADMIN ||
	        caller->scope == needed || (ingest_too && caller->scope == TW_SCOPE_INGEST))
		return TW_OK;
	if (caller->scope == TW_SCOPE_PUBLIC)
		return tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET,
		        "send a key as Authorization: Bearer KEY, or sign in");
	return tw_fail(err, TW_DENIED, TW_NO_OFFSET, "this needs %s scope, the key has %s",
	        tw_scope_word(needed), tw_scope_word(caller->scope));
}
