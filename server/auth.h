/*
 * auth.h - who is calling, and what that allows.
 *
 * A caller is a project's ingest key, a project's read token, a signed-in
 * session, or nobody.  Secrets are stored hashed; a key belongs to one project
 * and reaches no other (I11).
 */
#ifndef TW_AUTH_H
#define TW_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum tw_scope {
	TW_SCOPE_PUBLIC, /* no key needed */
	TW_SCOPE_INGEST, /* an ingest key: send traces and mappings */
	TW_SCOPE_READ,   /* a read token or a session: see and delete traces of the project */
	TW_SCOPE_ADMIN   /* a session of an admin */
};

enum { TW_ID_BYTES = 27 }; /* ULID, 26 characters and NUL */

struct tw_caller {
	enum tw_scope scope;          /* the one its key or session holds */
	char project_id[TW_ID_BYTES]; /* "" for PUBLIC; sessions: project chosen by ?project= or the
	                               * first */
	char key_id[TW_ID_BYTES];     /* key or session */
};

struct tw_catalogue;

/* What a request shows to say who it is; NULL where absent. */
struct tw_credentials {
	const char *authorization; /* "Bearer KEY" */
	const char *cookie;        /* Cookie header */
	const char *csrf;          /* X-Tracewell header */
	const char *project;       /* ?project= */
	bool changes_state;        /* any method but GET and HEAD */
};

#define TW_SESSION_COOKIE "tw_session"

/* Who is calling.  Nothing shown is PUBLIC, not an error.  TW_NO_TOKEN: a key or session that is
 * unknown, revoked or over; TW_DENIED: a change by cookie without `X-Tracewell: 1`, or another
 * project asked for than the key's. */
enum tw_status tw_auth_caller(struct tw_catalogue *c, const struct tw_credentials *shown,
        struct tw_caller *ret, struct tw_err *err) __attribute__((warn_unused_result));

/* May this caller use a route of that scope?  TW_NO_TOKEN for nobody, TW_DENIED for the wrong
 * key.  `ingest_too`: as in struct tw_route. */
enum tw_status tw_auth_allows(const struct tw_caller *caller, enum tw_scope needed, bool ingest_too,
        struct tw_err *err) __attribute__((warn_unused_result));

/* "public", "ingest", "read", "admin". */
const char *tw_scope_word(enum tw_scope scope);

/* The value of a cookie in a Cookie header, copied to out; false when absent or too long. */
bool tw_auth_cookie(const char *header, const char *name, char *out, size_t cap);

#endif
