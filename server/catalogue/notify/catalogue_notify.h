/*
 * catalogue_notify.h - records events of regressions and ANRs, and queues them for webhooks, in the
 * transaction that causes them.
 *
 * Thread: any.
 */
#ifndef TW_CATALOGUE_NOTIFY_H
#define TW_CATALOGUE_NOTIFY_H

#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/catalogue/traces/catalogue_list.h"

struct tw_db; /* catalogue_db.h */

#define TW_BY_ITSELF "tracewell" /* the author of the server's own findings */
/* The actor of this thread. */
const char *tw_cat_author(void);

struct tw_regression_digest {
	enum tw_hook_event event;
	const char *author;
	bool quiet; /* only an entry in the history, no event */
};
/* Adds an entry with the regression's current state to its history, and the event. */
enum tw_status tw_cat_regression_note(struct tw_db *db, const char *project_id,
        const char *regression_id, const struct tw_regression_digest *what,
        struct tw_err *err) TW_MUST_USE;
/* tw_catalogue_regression_get within a transaction. */
enum tw_status tw_cat_regression_read(struct tw_db *db, const char *project_id, const char *id,
        struct tw_arena *a, struct tw_regression *ret, struct tw_err *err) TW_MUST_USE;

/* Call before a report gets its first key: queues an event if the group is new.  Reports older than
 * a week cause no event. */
enum tw_status tw_cat_anr_note(struct tw_db *db, const struct tw_anr_stale *of,
        const struct tw_anr_cause *cause, struct tw_err *err) TW_MUST_USE;

/* The report shows that a group fixed at that time returned: queues the event, and reopens its
 * ticket. */
enum tw_status tw_cat_anr_note_return(struct tw_db *db, const struct tw_anr_stale *of,
        const struct tw_anr_cause *cause, int64_t fixed_ms, struct tw_err *err) TW_MUST_USE;

struct tw_regression_entry {
	int64_t n, at_ms;
	const char *author, *version;
	enum tw_hook_event event;
	enum tw_regress_status status;
};
enum { TW_REGRESSION_ENTRIES = 100 }; /* per regression; older ones are deleted */
/* Newest first. */
enum tw_status tw_catalogue_regression_history(struct tw_catalogue *c, const char *project_id,
        const char *regression_id, struct tw_arena *a, struct tw_regression_entry **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
