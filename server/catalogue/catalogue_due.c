/*
 * catalogue_due.c - ends waits that became too long because the clock was set back: work scheduled
 * before would wait until the clock reaches the same time again.
 */
#include "server/base/clock.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"

enum { LONGEST_DAYS = 2 }; /* the longest wait, of a Retry-After, is a day */

enum tw_status tw_catalogue_end_long_waits(struct tw_catalogue *c, struct tw_err *err)
{
	static const char *const statements[] = {
	        /* job_by_project, mapping_job_by_project; also a claim that a dead server left */
	        "UPDATE job SET due_ms=?1 WHERE claimed IN (0,1) AND due_ms>?2",
	        "UPDATE mapping_job SET due_ms=?1 WHERE claimed IN (0,1) AND due_ms>?2",
	        "UPDATE outbox SET due_ms=?1 WHERE state=0 AND due_ms>?2", /* outbox_waiting */
	        "UPDATE webhook SET hold_ms=?1 WHERE hold_ms>?2",          /* few rows */
	        "UPDATE ticket SET due_ms=?1 WHERE due_ms>?2",             /* ticket_due */
	        "UPDATE file_drop SET due_ms=?1 WHERE due_ms>?2",          /* file_drop_due */
	        /* postponed_by_time */
	        ("UPDATE postponed SET again_ms=?1 WHERE stage IN"
	         " ('names','rollup','anr','findings') AND again_ms>?2"),
	};
	struct tw_db *w = NULL;
	int64_t now = 0;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_NOTHING, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_now(w, &now, err);
	for (size_t i = 0; st == TW_OK && i < sizeof statements / sizeof *statements; i++)
		st = tw_cat_exec(
		        w, NULL, err, statements[i], "ii", now, now + LONGEST_DAYS * TW_DAY_MS);
	return tw_cat_end(c, w, st, err);
}
