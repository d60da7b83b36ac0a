/*
 * catalogue_count.c - adds the changes of counters to their rows.
 *
 * Every upload and deletion changes the number of its build's traces, and uploads by a capture rule
 * that of the rule.  In PostgreSQL all of them would wait for each other at that row, so a change
 * is a row of count_delta, which readers add to the counter.  One server adds them up.
 */
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"

enum { SUMMED_AT_ONCE = 10000 };

#define TAKE(counter)                                                                              \
	"WITH of_these AS (SELECT ctid AS at FROM count_delta WHERE counter=" counter              \
	" LIMIT ? FOR UPDATE SKIP LOCKED), taken AS (DELETE FROM count_delta WHERE ctid IN"        \
	" (SELECT at FROM of_these) RETURNING project_id, name, day, traces, devices), sums AS"    \
	" (SELECT project_id, name, day, sum(traces) AS traces, sum(devices) AS devices FROM"      \
	" taken GROUP BY 1, 2, 3) "

static enum tw_status sum(struct tw_db *db, int *ret_n, struct tw_err *err)
{
	int builds = 0, rules = 0;
	enum tw_status st = tw_cat_exec(db, &builds, err,
	        TAKE("0") "UPDATE build SET traces=build.traces+sums.traces FROM sums WHERE"
	                  " build.project_id=sums.project_id AND build.build_id=sums.name",
	        "i", (int64_t)SUMMED_AT_ONCE);

	if (st == TW_OK)
		st = tw_cat_exec(db, &rules, err,
		        TAKE("1") "INSERT INTO capture_day(project_id,rule,day,traces,devices)"
		                  " SELECT project_id,name,day,traces,devices FROM sums ON CONFLICT"
		                  " (project_id,rule,day) DO UPDATE SET"
		                  " traces=capture_day.traces+excluded.traces,"
		                  " devices=capture_day.devices+excluded.devices",
		        "i", (int64_t)SUMMED_AT_ONCE);
	*ret_n = builds + rules;
	return st;
}

enum tw_status tw_catalogue_counts_add(struct tw_catalogue *c, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t any = 0;
	int n = 1;
	enum tw_status st = tw_cat_is_sqlite(c) ? TW_OK
	                                        : tw_cat_select_int(c, &any, err, /* primary key */
	                                                  "SELECT 1 FROM count_delta LIMIT 1", "");

	while (st == TW_OK && any && n > 0) {
		st = tw_cat_begin(c, TW_ALONE_NOTHING, "", &w, err);
		if (st == TW_OK)
			st = tw_cat_end(c, w, sum(w, &n, err), err);
	}
	return st;
}
