/*
 * caller.h - who sent a request, and what a route asks of them.
 */
#ifndef TW_CALLER_H
#define TW_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/ulid.h"

/* What a caller holds in the project that is asked about.  Numbers are stored. */
enum tw_scope {
	TW_SCOPE_PUBLIC = 0, /* nothing */
	TW_SCOPE_INGEST = 1, /* sends traces and mappings, asks after traces by id */
	TW_SCOPE_READ = 2,   /* viewer: sees all of the project */
	TW_SCOPE_WRITE = 3,  /* editor: sends, deletes, changes rules as well */
	TW_SCOPE_ADMIN = 4,  /* admin of the project: keys, members, audit log */
	TW_SCOPE_SERVER = 5  /* admin of the server: all projects, users */
};

/* What a route asks for. */
enum tw_need {
	TW_NEED_PUBLIC,         /* nothing */
	TW_NEED_INGEST,         /* INGEST, or WRITE and more */
	TW_NEED_READ_OR_INGEST, /* INGEST, or READ and more */
	TW_NEED_READ,
	TW_NEED_WRITE,
	TW_NEED_ADMIN,
	TW_NEED_SERVER,
	TW_NEED_USER /* a person with an account, whatever their roles */
};

enum { TW_USER_NAME_BYTES = 65 }; /* at most 64 characters and NUL */

struct tw_caller {
	enum tw_scope scope;
	char project_id[TW_ID_BYTES];  /* "" for PUBLIC; people: chosen by ?project= or the first of
	                                * theirs, "" when they have none */
	char key_id[TW_ID_BYTES];      /* the key that was sent or signed in with, or "" */
	char user_id[TW_ID_BYTES];     /* the person, or "" */
	char name[TW_USER_NAME_BYTES]; /* of the person, "" */
	int64_t ends_ms;               /* when the secret ends by itself, 0 never or no key's */
};

struct tw_grant {
	const char *project; /* name; "": the server */
	enum tw_scope scope; /* PUBLIC: none */
};

/* "public", "ingest", "read", "write", "admin", "server". */
const char *tw_scope_word(enum tw_scope scope);
/* The scope that a key may have by its word: "ingest" to "admin"; false for any other text. */
bool tw_scope_of_key(const char *word, enum tw_scope *ret);

/* What the secret of such a key begins with: "twi_", "twr_", "tww_", "twa_". */
const char *tw_key_prefix(enum tw_scope scope);

#endif
