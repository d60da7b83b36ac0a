/*
 * catalogue_hang.h - ANRs, their groups and the locks that threads waited for, as the catalogue
 * keeps them.
 *
 * A trace is looked at once; what it tells is kept as it calls things, so that it
 * can be named again when a mapping comes and keyed again when rules change, also
 * when the trace is gone.  Thread: any.
 */
#ifndef TW_CATALOGUE_HANG_H
#define TW_CATALOGUE_HANG_H

#include "server/catalogue/catalogue.h"
#include "server/catalogue/fleet/catalogue_rollup.h"

enum { TW_ANR_KEY_BYTES = 17 }; /* 16 hex digits and NUL */

struct tw_anr_cause {                /* texts live in the arena */
	char base[TW_ANR_KEY_BYTES]; /* before rules merge */
	char key[TW_ANR_KEY_BYTES];
	const char *kind;
	const char *name;    /* that a rule gives, "" */
	const char *title;   /* "Lock of Cart, held in OrderDao.insert" */
	const char *verdict; /* the sentence of this report */
	/* {"frames":[...],"locks":[{"class","wanted_in","taken_in"}],"binder":{"interface",
	 * "method"},"consumer"} of whole names; what is not known is left out. */
	const char *detail;
};

/* --- what is to be done (catalogue_hang.c) --- */

enum { TW_LOCKS_MAX = 64 }; /* of a trace: those that were waited for longest */
struct tw_lock_wait {
	bool dump, is_main;
	const char *raw_monitor, *raw_owner, *source;
	const char *monitor, *owner, *holder;
	uint64_t waits, timed;
	int64_t total_ns, max_ns;
};
struct tw_hang {
	const struct tw_trace_row *row;
	const char *device_class, *user; /* user "": whoever sent it */
	bool anr;
	struct tw_str brief;
	const struct tw_lock_wait *locks;
	size_t n_locks;
};
/* In one transaction, in place of what was kept of the trace before; of those that tell nothing
 * only that.  A trace that is gone meanwhile is passed over. */
enum tw_status tw_catalogue_hang_put(
        struct tw_catalogue *c, const struct tw_hang *h, struct tw_err *err) TW_MUST_USE;
/* Looks at all traces of a project again, and names and keys what is kept of those that are gone.
 */
enum tw_status tw_catalogue_hang_reset(
        struct tw_catalogue *c, const char *project_id, struct tw_err *err) TW_MUST_USE;
/* Forgets those of days before `day`, a few at a time. */
enum tw_status tw_catalogue_hang_expire(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err) TW_MUST_USE;

/* --- naming and keying (catalogue_hang_key.c) --- */

/* Marks some of the traces of a build whose mapping came. */
enum tw_status tw_catalogue_hang_renames(
        struct tw_catalogue *c, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_hang_stale { /* to be named and keyed */
	const char *project_id, *trace_id, *build_id, *mapping_id;
	bool anr;
	struct tw_str brief; /* of an ANR */
	struct tw_lock_wait *locks;
	size_t n_locks;
};
/* Of a project: those that were never keyed, and ANRs keyed by other rules than `rules` (> 0). */
enum tw_status tw_catalogue_hang_stale(struct tw_catalogue *c, const char *project_id,
        int64_t rules, uint32_t limit, struct tw_arena *a, struct tw_hang_stale **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* cause NULL: it is no ANR.  locks are all of the trace's. */
enum tw_status tw_catalogue_hang_keyed(struct tw_catalogue *c, const struct tw_hang_stale *of,
        int64_t rules, const struct tw_anr_cause *cause, struct tw_err *err) TW_MUST_USE;

/* --- counting (catalogue_tally.c) --- */

struct tw_tally_due {
	const char *project_id;
	int64_t rules;  /* reports that other rules keyed wait */
	int64_t today;  /* so do those of today and later, until they are `least` */
	uint32_t least; /* above 0 */
};
/* Counts some of the reports of a day in its sums, so that answers read sums and not reports. */
enum { TW_TALLY_LEAST = 256 };
enum tw_status tw_catalogue_tally(struct tw_catalogue *c, const struct tw_tally_due *due,
        bool *ret_more, struct tw_err *err) TW_MUST_USE;

/* --- answers (catalogue_anr.c, catalogue_lock.c) --- */

/* Versions, devices and users are exact up to 1,024 a day (hang_tally.h). */
struct tw_anr_group {
	const char *key, *kind, *name, *title, *verdict, *detail;
	uint64_t count, users, versions, devices;
	int64_t first_ms, last_ms;
	const char *last_version;
};
struct tw_anr_sums {
	uint64_t traces, groups, users, pending; /* pending: not keyed yet by the rules that hold */
};
enum { TW_ANR_GROUPS_MAX = 1000 };
/* Groups with most reports first; at most TW_ANR_GROUPS_MAX.  key "": all. */
enum tw_status tw_catalogue_anr_groups(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_group **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_anr_sums(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, int64_t rules, struct tw_anr_sums *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_anr_slice {            /* of groups, by something */
	const char *key, *value; /* value: a version, a device, ... */
	int64_t day;
	uint64_t count, users;
};
enum tw_anr_by { TW_ANR_BY_DAY, TW_ANR_BY_VERSION, TW_ANR_BY_DEVICE, TW_ANR_BY_OS, TW_ANR_BY_KIND };
/* By day: in order, of all groups for key "".  Else of one group, most first, at most 100. */
enum tw_status tw_catalogue_anr_slices(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, enum tw_anr_by by, struct tw_arena *a,
        struct tw_anr_slice **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

struct tw_anr_exemplar {
	const char *trace_id, *version_name, *device, *os, *verdict;
	int64_t created_ms;
	bool there; /* the trace is not deleted */
};
enum { TW_ANR_EXEMPLARS = 20 };
/* The last ones, those that are there first. */
enum tw_status tw_catalogue_anr_exemplars(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_exemplar **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

struct tw_lock_row {                           /* a method that had a lock that others waited for */
	const char *owner, *monitors, *holder; /* monitors: with commas between them */
	uint64_t traces, anrs, versions, waits, timed;
	int64_t total_ns, max_ns, first_ms, last_ms;
	const char *worst; /* id of a trace, "" */
};
struct tw_lock_question {
	const struct tw_rollup_filter *filter;
	const char *name; /* owner, or the monitor where that is not known; "": any */
	bool others;      /* threads that are not main, too */
	unsigned dumps;   /* 1: only calls, 2: only reports, 0: both */
	enum { TW_LOCK_BY_TOTAL, TW_LOCK_BY_MAX, TW_LOCK_BY_TRACES, TW_LOCK_BY_WAITS } sort;
};
enum { TW_LOCK_ROWS_MAX = 1000 };
enum tw_status tw_catalogue_locks(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_question *q, struct tw_arena *a, struct tw_lock_row **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* By version or day, which is in `owner`: of one lock or all. */
enum tw_status tw_catalogue_lock_series(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_question *q, bool by_day, struct tw_arena *a, struct tw_lock_row **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
