#include "server/auth/auth.h"

#include <string.h>
#include <strings.h>

#include "decoder/base/str.h"
#include "server/base/secret.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/db/commit_gate.h"

enum { MAX_SECRET = 128 };

static enum tw_status by_key(struct tw_catalogue *c, const char *secret, const char *from,
        struct tw_caller *ret, struct tw_err *err)
{
	uint8_t hash[32];

	if (strlen(secret) >= MAX_SECRET)
		return tw_fail(err, TW_NO_TOKEN, "unknown key");
	tw_secret_hash(secret, hash);
	return tw_catalogue_key_find(c, hash, from ? from : "", ret, err);
}

static enum tw_status by_cookie(struct tw_catalogue *c, const char *secret, const char *project,
        struct tw_caller *ret, struct tw_err *err)
{
	uint8_t hash[32];

	tw_secret_hash(secret, hash);
	return tw_catalogue_session_find(c, hash, project ? project : "", ret, err);
}

static enum tw_status by_proxy(struct tw_catalogue *c, const char *given, const char *project,
        struct tw_caller *ret, struct tw_err *err)
{
	char name[TW_USER_NAME_BYTES];
	enum tw_status st = tw_user_name(given, name, err);

	if (st == TW_OK)
		st = tw_catalogue_user_caller(c, name, project ? project : "", ret, err);
	return st;
}

/* Credentials that a browser sends automatically identify the person, but do not prove intent. */
static enum tw_status check_intent(const struct tw_credentials *shown, struct tw_err *err)
{
	if (shown->changes_state && (!shown->csrf || strcmp(shown->csrf, "1") != 0))
		return tw_fail(err, TW_DENIED,
		        "a change by cookie or proxy needs the header X-Tracewell: 1");
	return TW_OK;
}

/* Resolves the project of a request, an id or a name, to its id. An unknown name is passed on
 * unchanged: like a project without access it is refused after the credentials were checked, so
 * that names cannot be probed without them. */
static enum tw_status project_id(struct tw_catalogue *c, const char *name_or_id,
        char id[TW_ID_BYTES], const char **ret, struct tw_err *err)
{
	enum tw_status st = TW_NOT_FOUND;

	*ret = name_or_id;
	if (!tw_ulid_valid(name_or_id))
		st = tw_catalogue_project_named(c, name_or_id, id, err);
	if (st == TW_OK)
		*ret = id;
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status find_caller(struct tw_catalogue *c, const struct tw_credentials *shown,
        struct tw_caller *ret, struct tw_err *err)
{
	static const char bearer[] = "Bearer ";
	struct tw_caller caller = {.scope = TW_SCOPE_PUBLIC};
	char secret[MAX_SECRET];
	enum tw_status st = TW_OK;

	if (shown->authorization) {
		if (strncasecmp(shown->authorization, bearer, sizeof bearer - 1) != 0)
			return tw_fail(err, TW_NO_TOKEN, "Authorization must be `Bearer KEY`");
		st = by_key(
		        c, shown->authorization + sizeof bearer - 1, shown->address, &caller, err);
	} else if (shown->user) {
		st = check_intent(shown, err);
		if (st == TW_OK)
			st = by_proxy(c, shown->user, shown->project, &caller, err);
	} else if (tw_auth_cookie(shown->cookie, shown->session_cookie, secret, sizeof secret)) {
		st = check_intent(shown, err);
		if (st == TW_OK)
			st = by_cookie(c, secret, shown->project, &caller, err);
	}
	if (st != TW_OK)
		return st;
	if (shown->project && *shown->project && caller.scope != TW_SCOPE_PUBLIC &&
	        strcmp(shown->project, caller.project_id) != 0)
		return tw_fail(err, TW_NOT_FOUND, "no such project");
	*ret = caller;
	return TW_OK;
}

/* A few threads look up all callers, so an unresponsive database must not block them. */
enum tw_status tw_auth_caller(struct tw_catalogue *c, const struct tw_credentials *shown,
        struct tw_caller *ret, struct tw_err *err)
{
	struct tw_credentials by_id = *shown;
	char id[TW_ID_BYTES];
	enum tw_status st = TW_OK;

	tw_catalogue_shorten_timeout(true);
	if (shown->project && *shown->project &&
	        (shown->authorization || shown->user || shown->cookie))
		st = project_id(c, shown->project, id, &by_id.project, err);
	if (st == TW_OK)
		st = find_caller(c, &by_id, ret, err);
	tw_catalogue_shorten_timeout(false);
	return st;
}

/* The needs that each scope satisfies, one bit each; everything else is denied. */
#define REACHES(need) (1u << TW_NEED_##need)
#define VIEWER        (REACHES(PUBLIC) | REACHES(READ) | REACHES(READ_OR_INGEST))
#define EDITOR        (VIEWER | REACHES(INGEST) | REACHES(WRITE))

static const unsigned reach[] = {
        [TW_SCOPE_PUBLIC] = REACHES(PUBLIC),
        [TW_SCOPE_INGEST] = REACHES(PUBLIC) | REACHES(INGEST) | REACHES(READ_OR_INGEST),
        [TW_SCOPE_READ] = VIEWER,
        [TW_SCOPE_WRITE] = EDITOR,
        [TW_SCOPE_ADMIN] = EDITOR | REACHES(ADMIN),
        [TW_SCOPE_SERVER] = EDITOR | REACHES(ADMIN) | REACHES(SERVER),
};

static enum tw_status refuse_caller(
        const struct tw_caller *caller, enum tw_need needed, struct tw_err *err)
{
	static const char *const needs[] = {[TW_NEED_UNSTATED] = "another",
	        [TW_NEED_INGEST] = "ingest",
	        [TW_NEED_READ_OR_INGEST] = "read",
	        [TW_NEED_READ] = "read",
	        [TW_NEED_WRITE] = "write",
	        [TW_NEED_ADMIN] = "admin",
	        [TW_NEED_SERVER] = "server"};

	if (needed == TW_NEED_USER)
		return tw_fail(err, TW_DENIED, "this requires an account: sign in as a user");
	if (caller->scope == TW_SCOPE_PUBLIC)
		return tw_fail(
		        err, TW_DENIED, "you have no role in any project: ask an admin for one");
	return tw_fail(err, TW_DENIED, "this needs %s scope, the %s has %s", needs[needed],
	        caller->user_id[0] ? "account" : "key", tw_scope_name(caller->scope));
}

enum tw_status tw_auth_allows(
        const struct tw_caller *caller, enum tw_need needed, struct tw_err *err)
{
	bool is_known = caller->scope != TW_SCOPE_PUBLIC || caller->user_id[0];

	if (needed == TW_NEED_USER ? caller->user_id[0] != '\0'
	                           : (reach[caller->scope] >> needed & 1) != 0)
		return TW_OK;
	if (!is_known)
		return tw_fail(
		        err, TW_NO_TOKEN, "send a key as Authorization: Bearer KEY, or sign in");
	return refuse_caller(caller, needed, err);
}

/* --- one value of a Cookie header --- */

bool tw_auth_cookie(const char *header, const char *name, char *out, size_t cap)
{
	struct tw_str rest = tw_str_of(header);

	while (rest.len) {
		struct tw_str value = tw_str_trim(tw_str_split(&rest, ';'));
		struct tw_str key = tw_str_split(&value, '=');

		if (!tw_str_eq(key, tw_str_of(name)))
			continue;
		if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
			value = (struct tw_str){value.ptr + 1, value.len - 2};
		if (value.len == 0 || value.len >= cap)
			return false;
		memcpy(out, value.ptr, value.len);
		out[value.len] = '\0';
		return true;
	}
	return false;
}
