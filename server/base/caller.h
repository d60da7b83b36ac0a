/*
 * caller.h - who acts: the sender of a request, with the permissions that routes require, and the
 * person or key on whose behalf a thread changes the catalogue.
 * Thread: any.
 */
#ifndef TW_CALLER_H
#define TW_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/ulid.h"

/* A caller's role in the requested project.  The numbers are stored. */
enum tw_scope {
	TW_SCOPE_PUBLIC = 0, /* none */
	TW_SCOPE_INGEST = 1, /* uploads traces and mappings, reads the state of traces by id */
	TW_SCOPE_READ = 2,   /* viewer: reads everything in the project */
	TW_SCOPE_WRITE = 3,  /* editor: also uploads, deletes and changes rules */
	TW_SCOPE_ADMIN = 4,  /* admin of the project: keys, members, audit log */
	TW_SCOPE_SERVER = 5  /* admin of the server: all projects, users */
};

/* The permission that a route requires. */
enum tw_need {
	TW_NEED_UNSTATED,       /* refuses everybody; no route has it */
	TW_NEED_PUBLIC,         /* none */
	TW_NEED_INGEST,         /* INGEST, or WRITE and above */
	TW_NEED_READ_OR_INGEST, /* INGEST, or READ and above */
	TW_NEED_READ,
	TW_NEED_WRITE,
	TW_NEED_ADMIN,
	TW_NEED_SERVER,
	TW_NEED_USER /* a person with an account and any role */
};

enum { TW_USER_NAME_BYTES = 65 }; /* at most 64 characters and NUL */

struct tw_caller {
	enum tw_scope scope;
	char project_id[TW_ID_BYTES];  /* "" for PUBLIC; people: chosen by ?project=, or their
	                                * first, "" without any */
	char key_id[TW_ID_BYTES];      /* the key used for the request or the sign-in, or "" */
	char user_id[TW_ID_BYTES];     /* the person, or "" */
	char name[TW_USER_NAME_BYTES]; /* of the person, "" */
	int64_t ends_ms;               /* expiry of the secret; 0 never, or not a key */
};

struct tw_grant {
	const char *project; /* name; "": the server */
	enum tw_scope scope; /* PUBLIC: no access */
};

/* "public", "ingest", "read", "write", "admin", "server". */
extern const char *const tw_scope_names[]; /* ended by NULL */
const char *tw_scope_name(enum tw_scope scope);
/* Parses a key's scope, "ingest" to "admin"; false for any other text. */
bool tw_scope_of_key(const char *word, enum tw_scope *ret);

/* The prefix of such a key's secret: "twi_", "twr_", "tww_", "twa_". */
const char *tw_key_prefix(enum tw_scope scope);

/* --- actors ---
 *
 * The thread that serves a request (or runs a subcommand) sets its actor once; every change of the
 * catalogue writes its audit entry in the same transaction, so none lacks one.  Threads without an
 * actor act for the server itself.  An actor belongs to the thread that set it. */

struct tw_actor {
	const char *kind; /* "user", "key", "link", "cli", "server", "tracker", "nobody" */
	const char *id, *name;
	const char *address, *request_id; /* "" if none */
};

/* Sets the actor of this thread; its texts must stay valid until the next call.  NULL: the server
 * itself. */
void tw_actor_set(const struct tw_actor *a);
const struct tw_actor *tw_actor_get(void); /* never NULL */
/* Sets the person running this program as the actor. */
void tw_actor_set_cli(void);

#endif
