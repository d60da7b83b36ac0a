/*
 * catalogue_lock.c - locks that threads waited for, over many traces.
 */
#include "catalogue_hang_int.h"

/* A lock goes by the method that took it, or by the monitor's class where that is not known. */
#define LOCK_NAME "iif(l.owner<>'', l.owner, l.monitor)"
#define FROM_LOCKS                                                                                 \
	" FROM hang h INDEXED BY hang_of_day CROSS JOIN lock_wait l ON l.project_id=h.project_id " \
	"AND"                                                                                      \
	" l.trace_id=h.trace_id WHERE" TW_HANG_WHERE " AND (?11=1 OR l.is_main=1)"                 \
	" AND (?12=0 OR l.dump=?12-1) AND (?13='' OR " LOCK_NAME "=?13)"
/* The longest wait with its trace and holder: a text whose order is that of the waits, as all of
 * its numbers are as long.  Traces are told apart by their rows, which sort faster than ids. */
#define SUMS                                                                                       \
	" count(DISTINCT h.rowid) AS traces, count(DISTINCT iif(l.dump,h.rowid,NULL)),"            \
	" count(DISTINCT h.version_name), sum(l.waits) AS waits, sum(l.timed),"                    \
	" CAST(min(total(l.total_ns), 9e18) AS INTEGER) AS total, max(l.max_ns) AS longest,"       \
	" min(h.created_ms), max(h.created_ms), max((1000000000000000000+min(l.max_ns,"            \
	"8000000000000000000))||(1000000000000000000+h.rowid)||l.holder) AS worst"
#define WITH_WORST(of)                                                                             \
	"SELECT *, (SELECT w.trace_id FROM hang w WHERE w.rowid=CAST(substr(worst,20,19) AS"       \
	" INTEGER)-1000000000000000000)||substr(worst,39) FROM (" of ")"

static bool read_row(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_lock_row *r = ret_row;
	const char *worst = tw_cat_text(q, 12, a);

	*r = (struct tw_lock_row){.owner = tw_cat_text(q, 0, a),
	        .monitors = tw_cat_text(q, 1, a),
	        .traces = (uint64_t)tw_cat_int(q, 2),
	        .anrs = (uint64_t)tw_cat_int(q, 3),
	        .versions = (uint64_t)tw_cat_int(q, 4),
	        .waits = (uint64_t)tw_cat_int(q, 5),
	        .timed = (uint64_t)tw_cat_int(q, 6),
	        .total_ns = tw_cat_int(q, 7),
	        .max_ns = tw_cat_int(q, 8),
	        .first_ms = tw_cat_int(q, 9),
	        .last_ms = tw_cat_int(q, 10),
	        .holder = "",
	        .worst = ""};
	if (!r->owner || !r->monitors || !worst)
		return false;
	if (strlen(worst) < TW_ID_BYTES - 1)
		return true;
	r->holder = worst + TW_ID_BYTES - 1;
	r->worst = tw_arena_str(a, (struct tw_str){worst, TW_ID_BYTES - 1});
	return r->worst != NULL;
}

enum tw_status tw_catalogue_locks(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_question *q, struct tw_arena *a, struct tw_lock_row **ret,
        size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list list = {a, TW_LOCK_ROWS_MAX, sizeof **ret, read_row, NULL, 0};
	enum tw_status st = tw_cat_list(c, &list, err, /* hang_of_day, primary key */
	        WITH_WORST("SELECT l.owner, ifnull(group_concat(DISTINCT "
	                   "nullif(l.monitor,'')),'')," SUMS FROM_LOCKS " GROUP BY " LOCK_NAME
	                   " ORDER BY CASE ?14 WHEN 0 THEN total WHEN 1 THEN"
	                   " longest WHEN 2 THEN traces ELSE waits END DESC, waits DESC, " LOCK_NAME
	                   " LIMIT ?15"),
	        TW_HANG_TYPES "iitii", TW_HANG_ARGS(project_id, q->filter), (int64_t)q->others,
	        (int64_t)q->dumps, q->name, (int64_t)q->sort, (int64_t)TW_LOCK_ROWS_MAX);

	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}

enum tw_status tw_catalogue_lock_series(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_question *q, bool by_day, struct tw_arena *a, struct tw_lock_row **ret,
        size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list list = {a, TW_LOCK_ROWS_MAX, sizeof **ret, read_row, NULL, 0};
	enum tw_status st = tw_cat_list(c, &list, err, /* hang_of_day, primary key */
	        WITH_WORST("SELECT iif(?14, date(h.day*86400,'unixepoch'), h.version_name) AS at, "
	                   "''," SUMS FROM_LOCKS " GROUP BY at ORDER BY at LIMIT ?15"),
	        TW_HANG_TYPES "iitii", TW_HANG_ARGS(project_id, q->filter), (int64_t)q->others,
	        (int64_t)q->dumps, q->name, (int64_t)by_day, (int64_t)TW_LOCK_ROWS_MAX);

	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}
