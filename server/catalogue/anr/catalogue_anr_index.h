/*
 * catalogue_anr_index.h - ANRs, their groups and lock waits in the catalogue.
 *
 * Each trace is read once.  Its facts are stored with the trace's own names, so that they can be
 * renamed when a mapping arrives and grouped again when rules change, even after the trace is
 * deleted.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_ANR_INDEX_H
#define TW_CATALOGUE_ANR_INDEX_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/fleet/catalogue_rollup.h"

struct tw_catalogue;
struct tw_trace_row;

enum { TW_ANR_KEY_BYTES = 17 }; /* 16 hex digits and NUL */

struct tw_anr_cause {                /* strings are in the arena */
	char base[TW_ANR_KEY_BYTES]; /* before rules merge groups */
	char key[TW_ANR_KEY_BYTES];
	const char *kind;
	const char *name;    /* given by a rule, "" */
	const char *title;   /* "Lock of Cart, held in OrderDao.insert" */
	const char *verdict; /* of this report */
	/* {"frames":[...],"locks":[{"class","blocked_method","blocking_method"}],"binder":{"interface",
	 * "method"},"consumer"} with full names; unknown members are omitted. */
	const char *detail;
};

/* --- pending traces (catalogue_anr_index.c) --- */

enum { TW_LOCKS_MAX = 64 }; /* of a trace: those that were waited for longest */
struct tw_lock_wait {
	bool dump, is_main;
	const char *raw_monitor, *raw_owner, *source;
	const char *monitor, *owner, *holder;
	uint64_t waits, timed;
	int64_t total_ns, max_ns;
};
struct tw_anr_entry {
	const struct tw_trace_row *row;
	const char *device_class, *user; /* user "": the uploading installation */
	bool anr;
	struct tw_str brief;
	const struct tw_lock_wait *locks;
	size_t n_locks;
};
/* Replaces the stored facts of n traces of a project in one transaction; for a trace without any,
 * only records that it was read.  A deleted trace is ignored. */
enum tw_status tw_catalogue_anr_put(struct tw_catalogue *c, const struct tw_anr_entry *h, size_t n,
        struct tw_err *err) TW_MUST_USE;
/* Reads all traces of a project again, and names and groups the stored facts of deleted traces
 * again. */
enum tw_status tw_catalogue_anr_reset(
        struct tw_catalogue *c, const char *project_id, struct tw_err *err) TW_MUST_USE;
/* Deletes facts of days before `day`, in batches. */
enum tw_status tw_catalogue_anr_expire(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err) TW_MUST_USE;

/* --- names and groups (catalogue_anr_index_key.c) --- */

/* Marks some of the traces of a build that got a new mapping, or with frames of a library that got
 * symbols. */
enum tw_status tw_catalogue_anr_renames(
        struct tw_catalogue *c, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_anr_stale { /* to be renamed and regrouped */
	const char *project_id, *trace_id, *build_id, *mapping_id;
	bool anr;
	struct tw_str brief; /* of an ANR */
	struct tw_lock_wait *locks;
	size_t n_locks;
	struct tw_used_libraries natives; /* whose symbols named its frames */
};
/* Of a project: facts without a group, and ANRs grouped by a version of the rules other than
 * `rules` (> 0). */
enum tw_status tw_catalogue_anr_stale(struct tw_catalogue *c, const char *project_id, int64_t rules,
        uint32_t limit, struct tw_arena *a, struct tw_anr_stale **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* cause NULL: not an ANR.  locks: all of the trace.  Its facts remain without a group if its
 * libraries have other symbols by now. */
enum tw_status tw_catalogue_anr_keyed(struct tw_catalogue *c, const struct tw_anr_stale *of,
        int64_t rules, const struct tw_anr_cause *cause, struct tw_err *err) TW_MUST_USE;

/* --- rollups (catalogue_anr_rollup.c) --- */

struct tw_anr_rollup_due {
	const char *project_id;
	int64_t rules;  /* reports grouped by other rules are not due */
	int64_t now_ms; /* days that have ended are packed some time after they changed */
	uint32_t least; /* reports that make an unfinished day due; at least 1 */
	bool (*skips)(void *arg, int64_t day); /* days not to count now; NULL: none */
	void *arg;
};
enum { TW_ANR_ROLLUP_REPORTS_MIN = 256 };
struct tw_anr_rollup_done {
	int64_t day; /* -1: none was due, or none could be read */
	bool packed; /* its reports were counted earlier */
	bool more;   /* more may be due */
};
/* Adds some of the reports of a day to its rollups, so that queries read rollups instead of
 * reports; if none are due, packs the rollups of a day into one row.  *ret is also set after a
 * failure.  Damaged rollups are discarded: the next call for the day counts all its reports
 * again. */
enum tw_status tw_catalogue_anr_rollup(struct tw_catalogue *c, const struct tw_anr_rollup_due *due,
        struct tw_anr_rollup_done *ret, struct tw_err *err) TW_MUST_USE;

/* --- queries (catalogue_anr.c, catalogue_lock.c) --- */

/* Numbers of versions, devices and users are exact up to 1,024 per day (anr_rollup.h). */
struct tw_anr_group {
	const char *key;
	uint64_t count, users, versions, devices;
	int64_t first_ms, last_ms;
	const char *newest; /* its last report */
	/* of that, set by tw_catalogue_anr_groups_name */
	const char *kind, *name, *title, *verdict, *detail, *last_version;
};
struct tw_anr_sums {
	uint64_t traces, users, pending; /* pending: not yet grouped by the current rules */
};
/* All groups without their names, those with the most reports first. */
enum tw_status tw_catalogue_anr_groups(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, struct tw_arena *a, struct tw_anr_group **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Names some of them, and drops those whose last report was removed since. */
enum tw_status tw_catalogue_anr_groups_name(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_anr_group *groups, size_t *io_n,
        struct tw_err *err) TW_MUST_USE;
/* One with its names.  TW_NOT_FOUND: no report in the filter has that key. */
enum tw_status tw_catalogue_anr_group(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_group *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_anr_sums(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, int64_t rules, struct tw_anr_sums *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_anr_slice {            /* counts of groups by a dimension */
	const char *key, *value; /* value: a version, a device, ... */
	int64_t day;
	uint64_t count, users;
};
enum tw_anr_by { TW_ANR_BY_VERSION, TW_ANR_BY_DEVICE, TW_ANR_BY_OS, TW_ANR_BY_KIND };
/* Of one group, largest first, at most 100. */
enum tw_status tw_catalogue_anr_slices(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, enum tw_anr_by by, struct tw_arena *a,
        struct tw_anr_slice **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* The days of these groups, by key and day. */
enum tw_status tw_catalogue_anr_days(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const struct tw_anr_group *groups, size_t n,
        struct tw_arena *a, struct tw_anr_slice **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

struct tw_anr_exemplar {
	const char *trace_id, *version_name, *device, *os, *verdict;
	int64_t recorded_ms;
	bool there; /* the trace still exists */
};
enum { TW_ANR_EXEMPLARS = 20 };
/* The latest ones, existing traces first. */
enum tw_status tw_catalogue_anr_exemplars(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_exemplar **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

struct tw_lock_row {                           /* a method that held a lock while others waited for
	                                        * it */
	const char *owner, *monitors, *holder; /* monitors: separated by commas */
	uint64_t traces, anrs, versions, waits, timed;
	int64_t total_ns, max_ns, first_ms, last_ms;
	const char *worst;   /* id of a trace, "" */
	bool worst_in_calls; /* that wait is one of its calls, not of an ANR report */
};
struct tw_lock_query {
	const struct tw_rollup_filter *filter;
	const char *name; /* owner, or the monitor if the owner is unknown; "": any */
	bool others;      /* include threads other than main */
	unsigned dumps;   /* 1: only calls, 2: only ANR reports, 0: both */
	enum { TW_LOCK_BY_TOTAL, TW_LOCK_BY_MAX, TW_LOCK_BY_TRACES, TW_LOCK_BY_WAITS } sort;
};
enum { TW_LOCK_ROWS_MAX = 1000 };
enum tw_status tw_catalogue_locks(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_query *q, struct tw_arena *a, struct tw_lock_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* By version or day (returned in `owner`), of one lock or all. */
enum tw_status tw_catalogue_lock_series(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_query *q, bool by_day, struct tw_arena *a, struct tw_lock_row **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
