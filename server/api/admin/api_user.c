/*
 * api_user.c - people and their roles: accounts for admins of the server, members of a project for
 * its admins.
 *
 * An admin of a project assigns roles by name and sees its members only; admins of the server
 * create accounts and see all.
 */
#include <string.h>

#include "server/api/api.h"
#include "server/auth/auth_password.h"
#include "server/auth/oidc/jwt.h"
#include "server/auth/oidc/oidc.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/catalogue_row.h"

static const char *const roles[] = {"viewer", "editor", "admin", NULL};
static const enum tw_scope role_scopes[] = {TW_SCOPE_READ, TW_SCOPE_WRITE, TW_SCOPE_ADMIN};

static const char *role_of(enum tw_scope scope)
{
	for (unsigned i = 0; roles[i]; i++)
		if (role_scopes[i] == scope)
			return roles[i];
	return NULL;
}

/* The person named by {name} in the path. */
static enum tw_status user_of(struct tw_req *r, struct tw_user *ret, struct tw_err *err)
{
	const char *value = tw_req_path(r, "name");
	char name[TW_USER_NAME_BYTES];

	if (tw_user_name(value ? value : "", name, NULL) != TW_OK)
		return tw_fail(err, TW_NOT_FOUND, "no user of that name");
	return tw_catalogue_user_get(tw_api_catalogue(r), name, ret, err);
}

/* --- lists --- */

static json_t *user_json(const struct tw_user_row *u)
{
	return tw_row_json(&tw_user_fields, u);
}

static json_t *member_json(const struct tw_user_row *u)
{
	return json_pack("{ss ss sI}", "name", u->name, "role", role_of(u->scope), "last_seen_ms",
	        (json_int_t)u->last_seen_ms);
}

static enum tw_status list(struct tw_req *r, const char *project_id, const char *key,
        json_t *(*of)(const struct tw_user_row *), struct tw_err *err)
{
	struct tw_user_row *rows;
	json_t *items;
	size_t n;
	enum tw_status st = tw_catalogue_users(tw_api_catalogue(r), project_id,
	        tw_req_text_or_empty(r, "cursor"), tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	items = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(items, of(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{so ss?}", key, items, "next_cursor",
	                n == TW_USERS_MAX ? rows[n - 1].name : NULL),
	        err);
}

static enum tw_status list_users(struct tw_req *r, struct tw_err *err)
{
	return list(r, "", "users", user_json, err);
}

static enum tw_status list_members(struct tw_req *r, struct tw_err *err)
{
	const char *project_id = tw_api_project(r);

	if (!project_id[0])
		return tw_fail(err, TW_NOT_FOUND, "no project exists yet");
	return list(r, project_id, "members", member_json, err);
}

/* --- accounts --- */

struct flags {
	bool disabled, admin;
};

static const struct tw_member flag_members[] = {
        TW_MEMBER(TW_MEMBER_FLAG, struct flags, disabled),
        TW_MEMBER(TW_MEMBER_FLAG, struct flags, admin),
        {0},
};
static const struct tw_member *const admin_member = &flag_members[1];

/* The hash of the password in body; *ret "" if it has none. */
static enum tw_status get_password(
        const json_t *body, const char *name, char ret[TW_PASSWORD_HASH_BYTES], struct tw_err *err)
{
	const json_t *value = json_object_get(body, "password");
	enum tw_status st;

	ret[0] = '\0';
	if (!value)
		return TW_OK;
	if (!json_is_string(value))
		return tw_fail(err, TW_BAD_REQUEST, "password must be a text");
	st = tw_password_verify(json_string_value(value), name, err);
	return st == TW_OK ? tw_password_hash(json_string_value(value), ret, err) : st;
}

static enum tw_status make_user(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const char *value = json_string_value(json_object_get(body, "name"));
	char name[TW_USER_NAME_BYTES] = "", hash[TW_PASSWORD_HASH_BYTES] = "", id[TW_ID_BYTES];
	struct flags flags = {false, false};
	enum tw_status st = tw_user_name(value ? value : "", name, err);

	if (st == TW_OK)
		st = tw_members_read(body, admin_member, &flags, err);
	if (st == TW_OK)
		st = get_password(body, name, hash, err);
	if (st == TW_OK)
		st = tw_catalogue_user_add(tw_api_catalogue(r), name, hash, flags.admin, id, err);
	return st == TW_OK ? tw_req_reply_json(r, 201, json_pack("{ss}", "name", name), err) : st;
}

/* The identity at the provider that may use the account; "": none. */
static enum tw_status set_subject(
        struct tw_req *r, const char *user_id, const json_t *value, struct tw_err *err)
{
	const struct tw_api *api = tw_api_of(r);
	const char *subject = json_string_value(value);

	if (!api->oidc)
		return tw_fail(err, TW_BAD_REQUEST,
		        "sign-in by a provider is not configured: set --oidc-issuer");
	if (!subject || strlen(subject) > TW_JWT_SUBJECT_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "subject must be a text of at most %d bytes",
		        TW_JWT_SUBJECT_MAX);
	return tw_catalogue_identity_set(
	        api->catalogue, user_id, tw_oidc_issuer(api->oidc), subject, err);
}

static enum tw_status read_change(const json_t *body, const struct tw_user *user, char *hash,
        struct tw_user_change *ret, struct tw_err *err)
{
	struct flags to = {user->is_disabled, user->is_admin};
	enum tw_status st = tw_members_read(body, flag_members, &to, err);

	if (st == TW_OK)
		st = get_password(body, user->name, hash, err);
	if (st == TW_OK)
		*ret = (struct tw_user_change){hash[0] ? hash : NULL, to.admin != user->is_admin,
		        to.admin, to.disabled != user->is_disabled, to.disabled};
	return st;
}

static enum tw_status change(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const json_t *subject = json_object_get(body, "subject");
	char hash[TW_PASSWORD_HASH_BYTES] = "";
	struct tw_user user = {.is_admin = false};
	struct tw_user_change to = {.password = NULL};
	enum tw_status st = user_of(r, &user, err);

	if (st == TW_OK)
		st = read_change(body, &user, hash, &to, err);
	if (st == TW_OK && subject)
		st = set_subject(r, user.id, subject, err);
	if (st == TW_OK && (to.password || to.sets_admin || to.sets_disabled))
		st = tw_catalogue_user_change(tw_api_catalogue(r), user.id, &to, err);
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

static enum tw_status remove_user(struct tw_req *r, struct tw_err *err)
{
	struct tw_user user = {.is_admin = false};
	enum tw_status st = user_of(r, &user, err);

	if (st == TW_OK)
		st = tw_catalogue_user_remove(tw_api_catalogue(r), user.id, err);
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

/* --- members of a project --- */

static enum tw_status give_role(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const char *role = json_string_value(json_object_get(body, "role"));
	struct tw_user user = {.is_admin = false};
	unsigned at = 0;
	enum tw_status st = tw_enum_of_name("role", role ? role : "", roles, &at, err);

	if (st == TW_OK)
		st = user_of(r, &user, err);
	if (st == TW_OK)
		st = tw_catalogue_member_set(
		        tw_api_catalogue(r), tw_api_project(r), user.id, role_scopes[at], err);
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

static enum tw_status remove_member(struct tw_req *r, struct tw_err *err)
{
	struct tw_user user = {.is_admin = false};
	enum tw_status st = user_of(r, &user, err);

	if (st == TW_OK)
		st = tw_catalogue_member_set(
		        tw_api_catalogue(r), tw_api_project(r), user.id, TW_SCOPE_PUBLIC, err);
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

static const struct tw_param after_params[] = {
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        {0},
};

const struct tw_route tw_routes_user[] = {
        TW_ROUTE("GET", "/api/v1/users", TW_NEED_SERVER, "All people with an account",
                .params = TW_PARAMS(after_params), .end = list_users),
        TW_ROUTE("POST", "/api/v1/users", TW_NEED_SERVER, "Creates an account", .json = make_user),
        TW_ROUTE("PUT", "/api/v1/users/{name}", TW_NEED_SERVER,
                "Sets an account's password, admin flag or state, and ends its sessions",
                .json = change),
        TW_ROUTE("DELETE", "/api/v1/users/{name}", TW_NEED_SERVER,
                "Removes an account with its roles and sessions", .end = remove_user),
        TW_ROUTE("GET", "/api/v1/members", TW_NEED_ADMIN, "People with a role in the project",
                .params = TW_PARAMS(after_params), .end = list_members),
        TW_ROUTE("PUT", "/api/v1/members/{name}", TW_NEED_ADMIN,
                "Sets a person's role in the project", .json = give_role),
        TW_ROUTE("DELETE", "/api/v1/members/{name}", TW_NEED_ADMIN,
                "Removes a person's role in the project", .end = remove_member),
        {0},
};
