/*
 * auth.h - identifies the caller and checks permissions.
 *
 * A caller is a key of a project, a signed-in person, or anonymous.  Secrets are stored hashed; a
 * key reaches only its own project, a person only projects with a role (I11).  Each route states
 * the permission that it needs.
 * Thread: any.
 */
#ifndef TW_AUTH_H
#define TW_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/base/caller.h"

struct tw_catalogue;

/* Credentials of a request; NULL if absent. */
struct tw_credentials {
	const char *authorization;  /* "Bearer KEY" */
	const char *cookie;         /* Cookie header */
	const char *csrf;           /* X-Tracewell header */
	const char *project;        /* ?project=: an id or a name */
	const char *user;           /* authenticated by a trusted proxy */
	const char *address;        /* of the client, "" unknown */
	bool changes_state;         /* any method but GET and HEAD */
	const char *session_cookie; /* its name in `cookie` (tw_req_cookie_name) */
};

/* Prefix of cookies on https: browsers accept such cookies only over https from this exact host, so
 * another host of the same domain cannot set them (RFC 6265bis). */
#define TW_COOKIE_HOST    "__Host-"
#define TW_SESSION_COOKIE "tw_session"

/* Identifies the caller; without credentials the result is PUBLIC.  TW_NO_TOKEN: a key or session
 * that is unknown, revoked or expired; TW_DENIED: a change by cookie without `X-Tracewell: 1`;
 * TW_NOT_FOUND: the caller has no access to the requested project. */
enum tw_status tw_auth_caller(struct tw_catalogue *c, const struct tw_credentials *shown,
        struct tw_caller *ret, struct tw_err *err) __attribute__((warn_unused_result));

/* Whether this caller may use a route with that need.  TW_NO_TOKEN for anonymous callers, TW_DENIED
 * for insufficient roles. */
enum tw_status tw_auth_allows(const struct tw_caller *caller, enum tw_need needed,
        struct tw_err *err) __attribute__((warn_unused_result));

/* Copies the value of a cookie in a Cookie header to out; false if absent or too long. */
bool tw_auth_cookie(const char *header, const char *name, char *out, size_t cap);

#endif
