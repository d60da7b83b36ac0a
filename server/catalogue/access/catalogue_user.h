/*
 * catalogue_user.h - people, their roles in projects, and their sessions.
 *
 * Accounts belong to the server, roles to projects.  Passwords and secrets are passed as hashes
 * (auth_password.h, secret.h).  Names are lower-case ASCII (tw_user_name), so that no two
 * names look the same.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_USER_H
#define TW_CATALOGUE_USER_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"
#include "server/base/ulid.h"

struct tw_catalogue;
struct tw_project_row;

enum { TW_PASSWORD_HASH_BYTES = 128, TW_USERS_MAX = 200 /* per page */ };

/* --- people (catalogue_user.c) --- */

/* The name as stored: letters, digits and . _ - + @, in lower case.  TW_BAD_REQUEST. */
enum tw_status tw_user_name(
        const char *given, char ret[TW_USER_NAME_BYTES], struct tw_err *err) TW_MUST_USE;

struct tw_user {
	char id[TW_ID_BYTES], name[TW_USER_NAME_BYTES];
	char password[TW_PASSWORD_HASH_BYTES]; /* hash; "": no sign-in by password */
	bool is_admin;                         /* of the server */
	bool is_disabled;                      /* may not sign in by any method */
};
struct tw_user_row {
	const char *id, *name;
	bool is_admin, has_password;
	bool is_disabled, is_linked;      /* is_linked: has an identity at an OpenID provider */
	int64_t created_ms, last_seen_ms; /* 0: never */
	enum tw_scope scope;              /* in the requested project; PUBLIC: none */
};
extern const struct tw_fields tw_user_fields;

/* TW_CONFLICT if the name exists. */
enum tw_status tw_catalogue_user_add(struct tw_catalogue *c, const char *name, const char *password,
        bool is_admin, char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_user_get(struct tw_catalogue *c, const char *name, struct tw_user *ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_user_change {       /* unset fields stay unchanged */
	const char *password; /* hash; NULL: unset */
	bool sets_admin, is_admin;
	bool sets_disabled, is_disabled;
};
/* Also ends all sessions of the person, as the permissions changed. */
enum tw_status tw_catalogue_user_change(struct tw_catalogue *c, const char *user_id,
        const struct tw_user_change *to, struct tw_err *err) TW_MUST_USE;
/* Including roles and sessions. */
enum tw_status tw_catalogue_user_remove(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err) TW_MUST_USE;
/* At most TW_USERS_MAX after the name `after` ("" from the start), by name.  With a project_id only
 * people with a role in it. */
enum tw_status tw_catalogue_users(struct tw_catalogue *c, const char *project_id, const char *after,
        struct tw_arena *a, struct tw_user_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* Sets the role: READ (viewer), WRITE (editor) or ADMIN; PUBLIC removes it. */
enum tw_status tw_catalogue_member_set(struct tw_catalogue *c, const char *project_id,
        const char *user_id, enum tw_scope scope, struct tw_err *err) TW_MUST_USE;

/* --- sessions and one-time sign-in links (catalogue_session.c) --- */

struct tw_session {
	const uint8_t *hash;             /* of the session's secret, 32 bytes */
	const uint8_t *replaces;         /* hash of the session that it replaces, or NULL */
	const char *user_id;             /* "": an admin of the server, by a link */
	const char *project_id, *key_id; /* of the key used to sign in, or "" */
	int64_t idle_ms, expires_ms;     /* the session ends after idle_ms without use, and at
	                                  * expires_ms at the latest */
	const char *how; /* "password", "link", "key", "oidc": for the audit log; NULL if it only
	                  * continues after a change that is logged itself */
};
enum tw_status tw_catalogue_session_add(
        struct tw_catalogue *c, const struct tw_session *s, struct tw_err *err) TW_MUST_USE;
/* Exchanges a one-time link for a session.  TW_NO_TOKEN: unknown, used or expired. */
enum tw_status tw_catalogue_link_use(struct tw_catalogue *c, const uint8_t link_hash[32],
        const struct tw_session *s, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_link_add(struct tw_catalogue *c, const uint8_t hash[32],
        int64_t expires_ms, struct tw_err *err) TW_MUST_USE;
/* The session's person, in the requested project ("": their first).  TW_NO_TOKEN: unknown, expired,
 * or its key was revoked; TW_NOT_FOUND: no role in the project. */
enum tw_status tw_catalogue_session_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *project, struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
/* The same for a person authenticated by a proxy.  TW_DENIED: no such account. */
enum tw_status tw_catalogue_user_caller(struct tw_catalogue *c, const char *name,
        const char *project, struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
/* Does nothing if the session does not exist. */
enum tw_status tw_catalogue_session_end(
        struct tw_catalogue *c, const uint8_t hash[32], struct tw_err *err);
enum tw_status tw_catalogue_sessions_count(
        struct tw_catalogue *c, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* Ends all sessions of the person. */
enum tw_status tw_catalogue_sessions_end(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err);

#endif
