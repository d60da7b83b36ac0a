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

#include "base/err.h"

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

enum {
	TW_ID_BYTES = 27,       /* ULID, 26 characters and NUL */
	TW_USER_NAME_BYTES = 65 /* at most 64 characters and NUL */
};

struct tw_caller {
	enum tw_scope scope;
	char project_id[TW_ID_BYTES];  /* "" for PUBLIC; people: chosen by ?project= or the first of
	                                * theirs, "" when they have none */
	char key_id[TW_ID_BYTES];      /* the key that was sent or signed in with, or "" */
	char user_id[TW_ID_BYTES];     /* the person, or "" */
	char name[TW_USER_NAME_BYTES]; /* of the person, "" */
	int64_t ends_ms;               /* when the secret ends by itself, 0 never or no key's */
};

struct tw_catalogue;

/* What a request shows to say who it is; NULL where absent. */
struct tw_credentials {
	const char *authorization; /* "Bearer KEY" */
	const char *cookie;        /* Cookie header */
	const char *csrf;          /* X-Tracewell header */
	const char *project;       /* ?project= */
	const char *user;          /* whom a trusted proxy has signed in */
	const char *address;       /* it came from, "" when not known */
	bool changes_state;        /* any method but GET and HEAD */
	bool is_https; /* the page is: its cookies have TW_COOKIE_HOST before their names */
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

/* "public", "ingest", "read", "write", "admin", "server". */
const char *tw_scope_word(enum tw_scope scope);
/* The scope that a key may have by its word: "ingest" to "admin"; false for any other text. */
bool tw_scope_of_key(const char *word, enum tw_scope *ret);

/* What the secret of such a key begins with: "twi_", "twr_", "tww_", "twa_". */
const char *tw_key_prefix(enum tw_scope scope);

/* The value of a cookie in a Cookie header, copied to out; false when absent or too long. */
bool tw_auth_cookie(const char *header, const char *name, char *out, size_t cap);

#endif
