/*
 * api_session.c - sign-in, sign-out, and the caller's account and projects.
 *
 * Each way to sign in (password, link, key) creates a session with a separate secret in the cookie;
 * the browser's previous session ends.
 */
#include <string.h>

#include "server/api/admin/api_sign_in.h"
#include "server/api/api.h"
#include "server/auth/auth_password.h"
#include "server/auth/oidc/oidc.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/derive/jobs_retention.h"

enum { MAX_TOKEN = 128, SESSION_PROJECTS = 200 };

/* Creates a session for `who`. `link_hash`: the link that this uses up, or NULL; `how` as in struct
 * tw_session. */
static enum tw_status start_session(struct tw_req *r, const struct tw_caller *who,
        const uint8_t *link_hash, const char *how, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(r);
	struct tw_new_session n;
	enum tw_status st;

	tw_new_session_make(r, &n);
	n.row.user_id = who->user_id;
	n.row.project_id = who->key_id[0] ? who->project_id : "";
	n.row.key_id = who->key_id;
	n.row.how = how;
	if (who->ends_ms && who->ends_ms < n.row.expires_ms)
		n.row.expires_ms = who->ends_ms;
	st = link_hash ? tw_catalogue_link_use(c, link_hash, &n.row, err)
	               : tw_catalogue_session_add(c, &n.row, err);
	if (st == TW_OK)
		tw_new_session_reply(r, &n);
	return st;
}

static enum tw_status sign_in_by_token(struct tw_req *r, const char *token, struct tw_err *err)
{
	struct tw_caller who = {.scope = TW_SCOPE_PUBLIC};
	uint8_t hash[32];
	enum tw_status st;

	if (strlen(token) >= MAX_TOKEN)
		return tw_fail(err, TW_BAD_REQUEST, "the token is too long");
	tw_secret_hash(token, hash);
	if (strncmp(token, "twl_", 4) == 0)
		return start_session(r, &who, hash, "link", err);
	st = tw_catalogue_key_find(tw_api_catalogue(r), hash, tw_req_address(r), &who, err);
	if (st == TW_OK && who.scope == TW_SCOPE_INGEST)
		st = tw_fail(err, TW_NO_TOKEN, "an ingest key cannot sign in");
	return st == TW_OK ? start_session(r, &who, NULL, "key", err) : st;
}

/* An invalid name takes as long as a wrong one, and gets the same response. */
static enum tw_status find_user(
        struct tw_req *r, const char *name, struct tw_user *ret, struct tw_err *err)
{
	enum tw_status st;

	*ret = (struct tw_user){.is_admin = false};
	if (tw_user_name(name, ret->name, NULL) != TW_OK)
		return TW_OK;
	st = tw_catalogue_user_get(tw_api_catalogue(r), ret->name, ret, err);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status sign_in_by_password(
        struct tw_req *r, const char *name, const char *password, struct tw_err *err)
{
	struct tw_caller who = {.scope = TW_SCOPE_PUBLIC};
	struct tw_user user;
	enum tw_status st = find_user(r, name, &user, err);

	if (st == TW_OK)
		st = tw_api_check_password(r, &user, password, err);
	if (st == TW_OK && user.is_disabled)
		st = tw_fail(err, TW_DENIED, "this account is disabled; ask a server admin");
	if (st != TW_OK)
		return st;
	memcpy(who.user_id, user.id, sizeof who.user_id);
	return start_session(r, &who, NULL, "password", err);
}

static enum tw_status sign_in(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const char *token = json_string_value(json_object_get(body, "token"));
	const char *name = json_string_value(json_object_get(body, "name"));
	const char *password = json_string_value(json_object_get(body, "password"));
	enum tw_status st;

	if (name && password && !token)
		st = sign_in_by_password(r, name, password, err);
	else if (token && !name && !password)
		st = sign_in_by_token(r, token, err);
	else
		st = tw_fail(
		        err, TW_BAD_REQUEST, "send either name and password or token, as texts");
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

static enum tw_status sign_out(struct tw_req *r, struct tw_err *err)
{
	uint8_t hash[32];
	enum tw_status st = TW_OK;

	if (tw_api_present_session(r, hash))
		st = tw_catalogue_session_end(tw_api_catalogue(r), hash, err);
	if (st != TW_OK)
		return st;
	tw_api_drop_cookie(r);
	return tw_req_reply_empty(r, 204, err);
}

static enum tw_status sign_out_everywhere(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st =
	        tw_catalogue_sessions_end(tw_api_catalogue(r), tw_req_caller(r)->user_id, err);

	if (st != TW_OK)
		return st;
	tw_api_drop_cookie(r);
	return tw_req_reply_empty(r, 204, err);
}

static enum tw_status change_password(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(r);
	const char *old = json_string_value(json_object_get(body, "old"));
	const char *password = json_string_value(json_object_get(body, "password"));
	char hash[TW_PASSWORD_HASH_BYTES];
	struct tw_user user;
	enum tw_status st;

	if (!old || !password)
		return tw_fail(err, TW_BAD_REQUEST, "old and password must be texts");
	st = tw_catalogue_user_get(c, tw_req_caller(r)->name, &user, err);
	if (st == TW_OK)
		st = tw_password_verify(password, user.name, err);
	if (st == TW_OK)
		st = tw_api_check_password(r, &user, old, err);
	if (st == TW_NO_TOKEN) /* the session itself is valid */
		st = tw_fail(err, TW_DENIED, "the old password is wrong");
	if (st == TW_OK)
		st = tw_password_hash(password, hash, err);
	if (st == TW_OK)
		st = tw_catalogue_user_change(
		        c, user.id, &(struct tw_user_change){.password = hash}, err);
	return st == TW_OK ? start_session(r, tw_req_caller(r), NULL, NULL, err) : st;
}

static enum tw_status set_own_password(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	enum tw_status st = change_password(r, body, err);

	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

/* --- the caller --- */

/* Whose roles decide which projects the caller may see; "" of an admin of the server, who may see
 * all.  A key may see only its project. */
static const char *seen_by(const struct tw_caller *caller)
{
	return caller->scope == TW_SCOPE_SERVER ? "" : caller->user_id;
}

static bool is_key(const struct tw_caller *caller)
{
	return caller->scope != TW_SCOPE_SERVER && !caller->user_id[0];
}

/* The project with that id as a list of one, or none if the caller may not see it. */
static enum tw_status seen_project(struct tw_req *r, const char *id, struct tw_project_row *ret,
        size_t *ret_n, struct tw_err *err)
{
	const struct tw_caller *caller = tw_req_caller(r);
	enum tw_status st;

	*ret_n = 0;
	if (!id[0] || (is_key(caller) && strcmp(id, caller->project_id) != 0))
		return TW_OK;
	st = tw_catalogue_project_get(
	        tw_api_catalogue(r), seen_by(caller), id, tw_req_arena(r), ret, err);
	*ret_n = st == TW_OK;
	return st == TW_NOT_FOUND ? TW_OK : st;
}

/* *ret_more: the page is full, and others follow. */
static enum tw_status seen_projects(struct tw_req *r, const char *after, uint32_t limit,
        struct tw_project_row **ret, size_t *ret_n, bool *ret_more, struct tw_err *err)
{
	const struct tw_caller *caller = tw_req_caller(r);
	enum tw_status st;

	*ret_more = false;
	if (is_key(caller)) {
		*ret = tw_arena_alloc(tw_req_arena(r), 1, sizeof **ret);
		return *ret ? seen_project(r, caller->project_id, *ret, ret_n, err) : tw_oom(err);
	}
	st = tw_catalogue_projects_after(tw_api_catalogue(r), seen_by(caller), after, limit + 1,
	        tw_req_arena(r), ret, ret_n, err);
	*ret_more = st == TW_OK && *ret_n > limit;
	*ret_n -= *ret_more;
	return st;
}

static json_t *projects_json(const struct tw_project_row *rows, size_t n)
{
	return tw_rows_json(&tw_project_fields, rows, n, sizeof *rows);
}

static bool has_project(const struct tw_project_row *rows, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].id, id) == 0)
			return true;
	return false;
}

static const struct tw_param projects_params[] = {
        TW_PARAM_NUMBER("limit", 100, 1, 500, ""),
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        {0},
};

static enum tw_status projects(struct tw_req *r, struct tw_err *err)
{
	struct tw_project_row *rows = NULL;
	bool more = false;
	size_t n = 0;
	enum tw_status st = seen_projects(r, tw_req_text_or_empty(r, "cursor"),
	        (uint32_t)tw_req_number(r, "limit"), &rows, &n, &more, err);

	return st == TW_OK ? tw_req_reply_json(r, 200,
	                             json_pack("{so ss?}", "projects", projects_json(rows, n),
	                                     "next_cursor", more ? rows[n - 1].id : NULL),
	                             err)
	                   : st;
}

/* One project, or null. */
static enum tw_status project_json(
        struct tw_req *r, const char *id, json_t **ret, struct tw_err *err)
{
	struct tw_project_row row;
	size_t n = 0;
	enum tw_status st = seen_project(r, id, &row, &n, err);

	if (st == TW_OK)
		*ret = n ? tw_row_json(&tw_project_fields, &row) : json_null();
	return st;
}

/* The project of a linked trace, if the caller may see it. */
static enum tw_status project_of_trace(struct tw_req *r, json_t **ret, struct tw_err *err)
{
	const char *trace = tw_req_text(r, "trace");
	char id[TW_ID_BYTES] = "";
	enum tw_status st = TW_OK;

	if (trace && tw_ulid_valid(trace))
		st = tw_catalogue_project_of_trace(tw_api_catalogue(r), trace, id, err);
	return st == TW_OK ? project_json(r, id, ret, err) : st;
}

/* The OpenID provider and whether this account is linked to it, or null. */
static enum tw_status provider_json(struct tw_req *r, json_t **ret, struct tw_err *err)
{
	const struct tw_api *api = tw_api_of(r);
	const char *user_id = tw_req_caller(r)->user_id;
	bool is_linked = false;
	enum tw_status st = TW_OK;

	if (api->oidc && user_id[0])
		st = tw_catalogue_identity_has(
		        api->catalogue, user_id, tw_oidc_issuer(api->oidc), &is_linked, err);
	if (st == TW_OK)
		*ret = api->oidc ? json_pack("{ss sb}", "name", tw_oidc_name(api->oidc), "linked",
		                           is_linked)
		                 : json_null();
	return st;
}

static enum tw_status session(struct tw_req *r, struct tw_err *err)
{
	const struct tw_caller *caller = tw_req_caller(r);
	const struct tw_config *c = tw_api_of(r)->config;
	bool signed_in = caller->scope != TW_SCOPE_PUBLIC || caller->user_id[0];
	struct tw_project_row *rows = NULL;
	json_t *provider = NULL;
	json_t *own = NULL;
	json_t *of_trace = NULL;
	json_t *list;
	bool more = false;
	size_t n = 0;
	enum tw_status st = seen_projects(r, "", SESSION_PROJECTS, &rows, &n, &more, err);

	if (st == TW_OK)
		st = provider_json(r, &provider, err);
	if (st == TW_OK)
		st = project_json(r, caller->project_id, &own, err);
	if (st == TW_OK)
		st = project_of_trace(r, &of_trace, err);
	if (st != TW_OK) {
		json_decref(own);
		json_decref(provider);
		return st;
	}
	list = projects_json(rows, n);
	if (json_is_object(own) && !has_project(rows, n, caller->project_id))
		(void)json_array_append(list, own);
	return tw_req_reply_json(r, 200,
	        json_pack("{sb ss ss? so so so sb so ss ss ss ss}", "signed_in", signed_in, "scope",
	                tw_scope_name(caller->scope), "user",
	                caller->user_id[0] ? caller->name : NULL, "project", own, "trace_project",
	                of_trace, "projects", list, "projects_are_capped", more, "oidc", provider,
	                "version", TW_VERSION, "perfetto_ui", c->perfetto_ui, "speedscope_ui",
	                c->speedscope_ui, "firefox_ui", c->firefox_ui),
	        err);
}

static const struct tw_param session_params[] = {
        TW_PARAM_TEXT("trace", 0,
                "The id of a trace: `trace_project` is its project, if the caller may see it."),
        {0},
};

enum { NAME_BYTES = 100 };

static enum tw_status create_project(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	char id[TW_ID_BYTES];
	const char *name;
	bool is_new;
	enum tw_status st = tw_member_text(body, "name", NAME_BYTES, false, &name, err);

	if (st == TW_OK && strspn(name, " ") == strlen(name))
		st = tw_fail(err, TW_BAD_REQUEST, "name must not be empty");
	if (st == TW_OK)
		st = tw_catalogue_project(tw_api_catalogue(r), name, id, &is_new, err);
	if (st == TW_OK && !is_new)
		st = tw_fail(err, TW_CONFLICT, "a project with that name already exists");
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 201, json_pack("{ss ss}", "id", id, "name", name), err);
}

static enum tw_status delete_project(struct tw_req *r, struct tw_err *err)
{
	const char *name = tw_req_path(r, "name");
	enum tw_status st = tw_catalogue_project_delete(tw_api_catalogue(r), name, err);

	if (st != TW_OK)
		return st;
	tw_retention_job_wake(tw_api_of(r)->retention);
	return tw_req_reply_empty(r, 202, err);
}

const struct tw_route tw_routes_session[] = {
        TW_ROUTE("GET", "/api/v1/session", TW_NEED_PUBLIC, "The caller's identity and project",
                .params = TW_PARAMS(session_params), .knows_caller = true, .end = session),
        TW_ROUTE("POST", "/api/v1/session", TW_NEED_PUBLIC,
                "Signs in by name and password, a link's token or a key", .json = sign_in),
        TW_ROUTE("DELETE", "/api/v1/session", TW_NEED_PUBLIC, "Signs out", .end = sign_out),
        TW_ROUTE("DELETE", "/api/v1/session/all", TW_NEED_USER, "Signs out in all browsers",
                .end = sign_out_everywhere),
        TW_ROUTE("PUT", "/api/v1/session/password", TW_NEED_USER,
                "Changes the caller's password and ends the other sessions",
                .json = set_own_password),
        TW_ROUTE("GET", "/api/v1/projects", TW_NEED_READ, "Projects that the caller may read",
                .params = TW_PARAMS(projects_params), .end = projects),
        TW_ROUTE("POST", "/api/v1/projects", TW_NEED_SERVER, "Creates a project",
                .json = create_project),
        TW_ROUTE("DELETE", "/api/v1/projects/{name}", TW_NEED_SERVER,
                "Deletes a project: revokes its keys immediately and deletes its data in the "
                "background",
                .end = delete_project),
        {0},
};
