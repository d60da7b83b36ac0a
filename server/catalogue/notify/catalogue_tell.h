/*
 * catalogue_tell.h - what happened to regressions and ANRs, noted and told to webhooks within the
 * transaction in which it happened.
 *
 * Thread: any.
 */
#ifndef TW_CATALOGUE_TELL_H
#define TW_CATALOGUE_TELL_H

#include "server/catalogue/anr/catalogue_hang.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/notify/catalogue_hook.h"

struct tw_db; /* catalogue_db.h */

#define TW_BY_ITSELF "tracewell" /* the author of what the server finds */
/* Whoever the thread acts for. */
const char *tw_cat_author(void);

struct tw_regression_news {
	enum tw_hook_event event;
	const char *author;
	bool quiet; /* an entry in the history, and no event */
};
/* An entry in the regression's history, as it is now, and the event. */
enum tw_status tw_cat_regression_note(struct tw_db *db, const char *project_id,
        const char *regression_id, const struct tw_regression_news *what,
        struct tw_err *err) TW_MUST_USE;
/* tw_catalogue_regression_get within a transaction. */
enum tw_status tw_cat_regression_read(struct tw_db *db, const char *project_id, const char *id,
        struct tw_arena *a, struct tw_regression *ret, struct tw_err *err) TW_MUST_USE;

/* A report is about to get its first key: tells of the group when nobody has that key yet.  Reports
 * that are older than a week are no news. */
enum tw_status tw_cat_anr_note(struct tw_db *db, const struct tw_hang_stale *of,
        const struct tw_anr_cause *cause, struct tw_err *err) TW_MUST_USE;

struct tw_regression_entry {
	int64_t n, at_ms;
	const char *author, *version;
	enum tw_hook_event event;
	enum tw_regress_status status;
};
enum { TW_REGRESSION_ENTRIES = 100 }; /* of one; the oldest go */
/* Newest first. */
enum tw_status tw_catalogue_regression_history(struct tw_catalogue *c, const char *project_id,
        const char *regression_id, struct tw_arena *a, struct tw_regression_entry **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
