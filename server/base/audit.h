/*
 * audit.h - the acting person or key, and the audit log of changes.
 *
 * The thread that serves a request (or runs a subcommand) sets its actor once; every change of the
 * catalogue writes its audit entry in the same transaction, so none lacks one.  Threads without an
 * actor act for the server itself.
 * Thread: any; the actor belongs to the thread that set it.
 */
#ifndef TW_AUDIT_H
#define TW_AUDIT_H

#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;

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

struct tw_audit_query {
	const char *project_id; /* NULL: the whole server */
	const char *action;     /* "key.create", or "key" for all actions with the prefix "key."; ""
	                         * any */
	const char *by;         /* name or id of the actor, "" any */
	const char *target;     /* "" any */
	int64_t before;         /* entries with a lower id; 0: the newest */
	uint32_t limit;         /* ≤ 500 */
};
struct tw_audit_entry {
	int64_t id, at_ms;
	const char *project_id; /* "": of the server */
	struct tw_actor by;
	const char *action, *target, *facts; /* facts: a JSON object with string values */
};
extern const struct tw_fields tw_audit_fields; /* catalogue_row.h */
/* Newest first. */
enum tw_status tw_catalogue_audit(struct tw_catalogue *c, const struct tw_audit_query *of,
        struct tw_arena *a, struct tw_audit_entry **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Deletes entries from before that time in batches, and records the number deleted.  *ret_more:
 * call again. */
enum tw_status tw_catalogue_audit_expire(
        struct tw_catalogue *c, int64_t before_ms, bool *ret_more, struct tw_err *err) TW_MUST_USE;

#endif
