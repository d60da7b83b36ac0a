/*
 * catalogue_user.h - people, their roles in projects, and their sessions.
 *
 * An account is of the server, a role of a project.  Passwords and secrets come
 * hashed (auth_password.h, auth_secret.h).  Names are lower-case ASCII
 * (tw_user_name), so that two never look the same.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_USER_H
#define TW_CATALOGUE_USER_H

#include "server/catalogue/catalogue.h"

enum { TW_PASSWORD_HASH_BYTES = 128, TW_USERS_MAX = 200 /* a page */ };

/* --- people (catalogue_user.c) --- */

/* The name as it is stored: letters, digits and . _ - + @, A to Z as a to z.  TW_BAD_REQUEST. */
enum tw_status tw_user_name(
        const char *given, char ret[TW_USER_NAME_BYTES], struct tw_err *err) TW_MUST_USE;

struct tw_user {
	char id[TW_ID_BYTES], name[TW_USER_NAME_BYTES];
	char password[TW_PASSWORD_HASH_BYTES]; /* hashed; "": cannot sign in by one */
	bool is_admin;                         /* of the server */
	bool is_disabled;                      /* may not sign in, in no way */
};
struct tw_user_row {
	const char *id, *name;
	bool is_admin, has_password;
	bool is_disabled, is_linked;      /* to a person at an OpenID provider */
	int64_t created_ms, last_seen_ms; /* 0: never */
	enum tw_scope scope;              /* in the project that was asked about; PUBLIC: none */
};

/* TW_CONFLICT when the name is taken. */
enum tw_status tw_catalogue_user_add(struct tw_catalogue *c, const char *name, const char *password,
        bool is_admin, char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_user_get(struct tw_catalogue *c, const char *name, struct tw_user *ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_user_change {       /* what is not said stays as it is */
	const char *password; /* hashed; NULL: not said */
	bool sets_admin, is_admin;
	bool sets_disabled, is_disabled;
};
/* Ends all sessions of the person: what they may do has changed. */
enum tw_status tw_catalogue_user_change(struct tw_catalogue *c, const char *user_id,
        const struct tw_user_change *to, struct tw_err *err) TW_MUST_USE;
/* With roles and sessions. */
enum tw_status tw_catalogue_user_remove(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err) TW_MUST_USE;
/* At most TW_USERS_MAX by name, those behind `after` ("" from the start).  With a project_id those
 * who have a role in it, else all. */
enum tw_status tw_catalogue_users(struct tw_catalogue *c, const char *project_id, const char *after,
        struct tw_arena *a, struct tw_user_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* Gives the role, READ (viewer), WRITE (editor) or ADMIN, in place of the one before; PUBLIC takes
 * it away. */
enum tw_status tw_catalogue_member_set(struct tw_catalogue *c, const char *project_id,
        const char *user_id, enum tw_scope scope, struct tw_err *err) TW_MUST_USE;
/* The projects in which the person has a role, all for an admin of the server. */
enum tw_status tw_catalogue_user_projects(struct tw_catalogue *c, const char *user_id,
        struct tw_arena *a, struct tw_project_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* --- sessions and the links that begin one (catalogue_session.c) --- */

struct tw_session {
	const uint8_t *hash;             /* of its secret, 32 bytes */
	const uint8_t *replaces;         /* hash of the session it follows, or NULL */
	const char *user_id;             /* "": by a link, an admin of the server */
	const char *project_id, *key_id; /* of the key that was signed in with, or "" */
	int64_t idle_ms, life_ms;        /* over when unseen for so long; over after so long */
	const char *how; /* "password", "link", "key", "oidc": for the record; NULL when it
	                  * only goes on after a change that is recorded */
};
enum tw_status tw_catalogue_session_add(
        struct tw_catalogue *c, const struct tw_session *s, struct tw_err *err) TW_MUST_USE;
/* A link is used once and becomes a session.  TW_NO_TOKEN: unknown, used or over. */
enum tw_status tw_catalogue_link_use(struct tw_catalogue *c, const uint8_t link_hash[32],
        const struct tw_session *s, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_link_add(struct tw_catalogue *c, const uint8_t hash[32],
        int64_t expires_ms, struct tw_err *err) TW_MUST_USE;
/* Who it is, in the project asked for ("": their first).  TW_NO_TOKEN when unknown, over, or of a
 * key that was revoked; TW_NOT_FOUND when the project is not theirs. */
enum tw_status tw_catalogue_session_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *project, struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
/* The same for a person whom somebody else has signed in.  TW_DENIED: there is no such account. */
enum tw_status tw_catalogue_user_caller(struct tw_catalogue *c, const char *name,
        const char *project, struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
/* Nothing when there is none. */
enum tw_status tw_catalogue_session_end(
        struct tw_catalogue *c, const uint8_t hash[32], struct tw_err *err);
enum tw_status tw_catalogue_sessions_count(
        struct tw_catalogue *c, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* All sessions of the person. */
enum tw_status tw_catalogue_sessions_end(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err);

#endif
