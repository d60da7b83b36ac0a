/*
 * catalogue_anr_rollup_int.h - adds rows of ANRs and locks to rollups (anr_rollup.h), by day, and
 * for queries.
 */
#ifndef TW_CATALOGUE_ANR_ROLLUP_INT_H
#define TW_CATALOGUE_ANR_ROLLUP_INT_H

#include "server/catalogue/anr/catalogue_anr_index_int.h"
#include "server/stats/anr_rollup.h"

enum tw_anr_rollup_what { TW_ANR_ROLLUP_ANRS, TW_ANR_ROLLUP_LOCKS };

struct tw_anr_rollup_report { /* of a trace; valid until the next one */
	const char *trace_id, *app, *version_name, *build_id, *scenario, *device, *device_class,
	        *os;
	int64_t day, recorded_ms, who;
};
/* Adds a report to a name; the name "" stands for all names.  False: out of memory. */
typedef bool (*tw_anr_rollup_sink)(void *arg, const struct tw_anr_rollup_report *of,
        const char *name, const struct tw_anr_rollup_one *one);

#define TW_ANR_ROLLUP_COLUMNS                                                                      \
	" h.trace_id, h.app, h.version_name, h.build_id, h.scenario, h.device, h.device_class,"    \
	" h.os, h.day, h.recorded_ms, h.who"
#define TW_ANR_ROLLUP_LOCK_COLUMNS                                                                 \
	TW_ANR_ROLLUP_COLUMNS                                                                      \
	", l.dump, l.is_main, l.monitor, l.owner, l.holder, l.waits, l.timed, l.total_ns, "        \
	"l.max_ns"
/* Reads rows of TW_ANR_ROLLUP_COLUMNS and the group's key; closes the query. */
enum tw_status tw_cat_feed_anrs(
        struct tw_cat_query *q, tw_anr_rollup_sink sink, void *arg, struct tw_err *err);
/* Reads rows of TW_ANR_ROLLUP_LOCK_COLUMNS, with those of a trace adjacent; closes the query. */
enum tw_status tw_cat_feed_locks(
        struct tw_cat_query *q, tw_anr_rollup_sink sink, void *arg, struct tw_err *err);

/* tw_cat_anr_rollup_waits: call in the transaction that writes a trace's row of anr_trace; its day
 * has reports to count.  tw_cat_anr_rollup_undo: call before the row is changed or deleted;
 * invalidates the rollups that count it. */
enum tw_status tw_cat_anr_rollup_waits(
        struct tw_db *db, const char *project_id, int64_t day, struct tw_err *err);
enum tw_status tw_cat_anr_rollup_undo(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err);

/* Deletes rollups of one day before `day` in batches, and the day itself with the last batch. */
enum tw_status tw_cat_anr_rollup_expire(struct tw_catalogue *c, int64_t day, struct tw_arena *a,
        bool *ret_more, struct tw_err *err);

/* The expression of PostgreSQL's index of rollups for a text, as in the schema. */
#define TW_ANR_ROLLUP_HASH(text) "sha256(decode(replace(" text ",'\\','\\\\'),'escape'))"

/* --- queries (catalogue_anr_rollup_read.c) --- */

struct tw_anr_keys {
	const char *const *sorted;
	size_t n;
};
struct tw_anr_rollup_query {
	const char *project_id;
	const struct tw_rollup_filter *filter;
	enum tw_anr_rollup_what what;
	const char *name;             /* NULL: each name; "": all together */
	const struct tw_anr_keys *of; /* with name NULL: only these groups; NULL: all */
	enum tw_anr_rollup_by {
		TW_ANR_ROLLUP_BY_NAME,
		TW_ANR_ROLLUP_BY_DAY,
		TW_ANR_ROLLUP_BY_VERSION,
		TW_ANR_ROLLUP_BY_OS
	} by;
};
/* Results by name and dimension, unordered; `all` has its arena.  All from one snapshot. */
enum tw_status tw_cat_anr_rollups_read(struct tw_catalogue *c,
        const struct tw_anr_rollup_query *query, struct tw_anr_rollups *all, struct tw_err *err);

#endif
