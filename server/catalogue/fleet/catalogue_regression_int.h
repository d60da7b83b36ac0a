/*
 * catalogue_regression_int.h - statements of the inbox, which regressions and alerts share.
 */
#ifndef TW_CATALOGUE_REGRESSION_INT_H
#define TW_CATALOGUE_REGRESSION_INT_H

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_regression.h"

/* Follows "(" and a parameter, a set of statuses as bits: true if it contains the row's status.  If
 * status were compared with values, PostgreSQL would assume that few rows are equal to one, and
 * sort all of them instead of reading a page in the order of an index. */
#define TW_HAS_STATUS ">>CAST(status AS INTEGER))&1<>0"

/* Of rows x after project_id=?1; `id` is the column of their ids. */
#define TW_INBOX_OF " AND (?2='' OR x.app=?2) AND (?3='' OR x.owner=?3)"
#define TW_INBOX_PAGE(id)                                                                          \
	TW_INBOX_OF                                                                                \
	" AND (?5" TW_HAS_STATUS " AND CASE WHEN x.muted_until_ms>?4 THEN 1 ELSE 0 END<>1-?6"      \
	" AND (x.last_ms, x." id ")<(?7,?8) ORDER BY x.last_ms DESC, x." id " DESC LIMIT ?9"
#define TW_INBOX_TYPES "tttiiiiti"
#define TW_INBOX_ARGS(project_id, of)                                                              \
	(project_id), (of)->app, (of)->owner, (of)->now_ms, (int64_t)(of)->statuses,               \
	        (int64_t)(of)->muted, (of)->before.number, (of)->before.id, (int64_t)(of)->limit

/* SQLite would sort the rows to group them, which takes longer than to read and count them. */
#define TW_INBOX_COUNT_COLUMN TW_EITHER("1", "count(*)")
#define TW_INBOX_COUNTS(table)                                                                     \
	"SELECT x.status, CASE WHEN x.muted_until_ms>?4 THEN 1 ELSE 0 END, " TW_INBOX_COUNT_COLUMN \
	" FROM " table " x WHERE x.project_id=?1" TW_INBOX_OF TW_EITHER("", " GROUP BY 1,2")
enum tw_status tw_cat_inbox_count(struct tw_catalogue *c, const char *sql, const char *project_id,
        const struct tw_inbox_query *of, struct tw_inbox_counts *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
