/*
 * regress_detect.h - detects regressions in a project's rollups and stores them.
 *
 * Scans one scenario of one app at a time: reads its cells, merges them by day, version and device
 * class, and makes series (regress.h). It writes only regressions, so it may run at any time, in
 * any process. Repeated runs give the same result. Thread: one at a time.
 */
#ifndef TW_REGRESS_DETECT_H
#define TW_REGRESS_DETECT_H

#include "server/fleet/store/fleet_store.h"
#include "server/query/query.h"
#include "server/stats/regress.h"

struct tw_regress_detected {
	uint64_t series, found; /* examined series; regressions among them */
	uint64_t fresh;         /* newly found ones among them */
};

/* The project's rules, or the defaults. */
enum tw_status tw_regress_rules_of(struct tw_catalogue *c, const char *project_id,
        struct tw_regress_rules *ret, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_regress_setting; /* catalogue_setting.h */
struct tw_regress_task {
	const char *project_id;
	int64_t today;               /* days since 1970; the day is incomplete but included */
	struct tw_deadline deadline; /* checked between scenarios and methods */
	/* Index of the first scenario, modulo their number. Use another value each time, so that
	 * all scenarios are scanned even if every run reaches its deadline. */
	uint64_t turn;
};
/* Searches a project's rollups for regressions.  TW_DEADLINE: the results of the scenarios scanned
 * before it are stored.  TW_BUSY: another thread is searching. */
enum tw_status tw_regress_detect(struct tw_fleet_store *store, const struct tw_regress_task *of,
        struct tw_regress_detected *ret, struct tw_err *err) TW_MUST_USE;

/* --- the days around a change, for a chart ---
 *
 * One line for all traces and, for a change between versions, one for each of the two.  Intervals
 * are by order statistics, which assume no distribution.  A day with too few traces has no
 * interval. */

enum { TW_TREND_BEFORE = 30, TW_TREND_AFTER = 60 /* in days */ };
enum { TW_TREND_LINES = 3, TW_TREND_RELEASES = 12, TW_TREND_QUANTILES = 2 };

struct tw_trend_quantile {
	int64_t at, low, high; /* low < 0: too few traces for an interval */
};
struct tw_trend_point {
	int64_t day;
	uint64_t of_traces, traces; /* for a method: traces that contain it */
	struct tw_trend_quantile q[TW_TREND_QUANTILES];
};
struct tw_trend_line {
	const char *version; /* NULL: all versions */
	struct tw_trend_point *points;
	size_t n;
};
struct tw_trend_release { /* the first day of a version within the range */
	const char *version;
	int64_t day;
	uint64_t traces;
};
struct tw_trend {
	int64_t first_day, last_day;
	struct tw_trend_line lines[TW_TREND_LINES];
	size_t n_lines;
	struct tw_trend_release releases[TW_TREND_RELEASES]; /* by day; those with most traces */
	size_t n_releases;
	size_t versions; /* number of all versions */
	bool cut;        /* the deadline passed before all days were read */
};
struct tw_trend_query {
	const struct tw_regress_found *of;
	int64_t today;
	struct tw_deadline deadline; /* checked for each day of a line */
};
enum tw_status tw_regress_trend(struct tw_fleet_store *store, const char *project_id,
        const struct tw_trend_query *query, struct tw_arena *a, struct tw_trend *ret,
        struct tw_err *err) TW_MUST_USE;

/* The interval contains the quantile in 19 of 20 cases. */
struct tw_trend_quantile tw_trend_quantile_of(const struct tw_sketch *s, unsigned percent);

#endif
