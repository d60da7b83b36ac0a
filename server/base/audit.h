/*
 * audit.h - who changes things, and the record of what they changed.
 *
 * The thread that serves a request (or runs a subcommand) says once on whose
 * behalf; every change of the catalogue writes its entry in its own transaction,
 * so that none is without.  Threads that never said act for the server itself.
 */
#ifndef TW_AUDIT_H
#define TW_AUDIT_H

#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;

struct tw_actor {
	const char *kind; /* "user", "key", "link", "cli", "server", "nobody" */
	const char *id, *name;
	const char *address, *request_id; /* "" where there is none */
};

/* From here on this thread acts for that one, whose texts live until the next call; NULL: for the
 * server itself. */
void tw_actor_set(const struct tw_actor *a);
const struct tw_actor *tw_actor_get(void); /* never NULL */
/* Acts for the person who runs this program. */
void tw_actor_set_cli(void);

struct tw_audit_query {
	const char *project_id; /* NULL: all of the server */
	const char *action;     /* "key.create", or "key" for all that begins "key."; "" any */
	const char *by;         /* name or id of who did it, "" any */
	const char *target;     /* "" any */
	int64_t before;         /* entries older than that one; 0: the newest */
	uint32_t limit;         /* ≤ 500 */
};
struct tw_audit_entry {
	int64_t id, at_ms;
	const char *project_id; /* "": of the server */
	struct tw_actor by;
	const char *action, *target, *facts; /* facts: a JSON object of texts */
};
/* Newest first. */
enum tw_status tw_catalogue_audit(struct tw_catalogue *c, const struct tw_audit_query *of,
        struct tw_arena *a, struct tw_audit_entry **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Forgets entries from before that time, some at a time, and notes how many; *ret_more: call
 * again. */
enum tw_status tw_catalogue_audit_expire(
        struct tw_catalogue *c, int64_t before_ms, bool *ret_more, struct tw_err *err) TW_MUST_USE;

#endif
