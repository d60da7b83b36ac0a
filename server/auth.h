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
#include <stdint.h>

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

#endif
