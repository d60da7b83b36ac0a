/*
 * auth.h - who is calling, and what that allows.
 *
 * A caller is a key of a project, a signed-in person, or nobody.  Secrets are
 * stored hashed; a key belongs to one project and reaches no other, a person
 * those they have a role in (I11).  What a route needs stands in routes.def.
 */
#ifndef TW_AUTH_H
#define TW_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/base/caller.h"

struct tw_catalogue;

/* What a request shows to say who it is; NULL where absent. */
struct tw_credentials {
	const char *authorization;  /* "Bearer KEY" */
	const char *cookie;         /* Cookie header */
	const char *csrf;           /* X-Tracewell header */
	const char *project;        /* ?project= */
	const char *user;           /* whom a trusted proxy has signed in */
	const char *address;        /* it came from, "" when not known */
	bool changes_state;         /* any method but GET and HEAD */
	const char *session_cookie; /* its name in `cookie` (tw_req_cookie_name) */
};

/* Cookies of a page on https begin so: browsers then take them by https from this very host alone,
 * so that no neighbour under the same domain can plant one (RFC 6265bis). */
#define TW_COOKIE_HOST    "__Host-"
#define TW_SESSION_COOKIE "tw_session"

/* Who is calling.  Nothing shown is PUBLIC, not an error.  TW_NO_TOKEN: a key or session that is
 * unknown, revoked or over; TW_DENIED: a change by cookie without `X-Tracewell: 1`; TW_NOT_FOUND:
 * another project asked for than the caller may see. */
enum tw_status tw_auth_caller(struct tw_catalogue *c, const struct tw_credentials *shown,
        struct tw_caller *ret, struct tw_err *err) __attribute__((warn_unused_result));

/* May this caller use a route that needs that?  TW_NO_TOKEN for nobody, TW_DENIED for one who holds
 * too little. */
enum tw_status tw_auth_allows(const struct tw_caller *caller, enum tw_need needed,
        struct tw_err *err) __attribute__((warn_unused_result));

/* The value of a cookie in a Cookie header, copied to out; false when absent or too long. */
bool tw_auth_cookie(const char *header, const char *name, char *out, size_t cap);

#endif
