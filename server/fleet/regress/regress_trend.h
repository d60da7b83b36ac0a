/*
 * regress_trend.h - the days around a change, for a chart: quantiles with intervals.
 *
 * One line for all traces and, for a change between versions, one for each of the two.  Intervals
 * are by order statistics, which assume no distribution.  A day with too few traces has no
 * interval. Thread: one query.
 */
#ifndef TW_REGRESS_TREND_H
#define TW_REGRESS_TREND_H

#include "server/fleet/store/fleet_store.h"
#include "server/query/query.h"
#include "server/stats/regress.h"

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
