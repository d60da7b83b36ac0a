/*
 * catalogue_audit.h - the audit log: an entry is written with each change, read by admins, deleted
 * after a time.
 *
 * Entries are written by tw_cat_end_audited and tw_cat_run (catalogue_internal.h).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_AUDIT_H
#define TW_CATALOGUE_AUDIT_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"

struct tw_catalogue;

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
