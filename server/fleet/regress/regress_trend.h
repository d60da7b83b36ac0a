/*
 * regress_trend.h - the days around a change, for a picture: quantiles with intervals.
 *
 * One line of all traces and, of a change between versions, one of each of the two.
 * Intervals are those of order statistics: they ask nothing of how times are
 * spread.  Where a day has too few traces for one, it has none.
 * Thread: one question.
 */
#ifndef TW_REGRESS_TREND_H
#define TW_REGRESS_TREND_H

#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/query/query.h"
#include "server/stats/regress.h"

enum { TW_TREND_BEFORE = 30, TW_TREND_AFTER = 60 /* days */ };
enum { TW_TREND_LINES = 3, TW_TREND_MARKS = 12, TW_TREND_QUANTILES = 2 };
extern const unsigned tw_trend_percents[TW_TREND_QUANTILES]; /* 50, 95 */

struct tw_trend_quantile {
	int64_t at, low, high; /* low < 0: too few for an interval */
};
struct tw_trend_point {
	int64_t day;
	uint64_t of_traces, traces; /* those that have the method, of a method */
	struct tw_trend_quantile q[TW_TREND_QUANTILES];
};
struct tw_trend_line {
	const char *version; /* NULL: of all */
	struct tw_trend_point *points;
	size_t n;
};
struct tw_trend_mark { /* a version's first day of these */
	const char *version;
	int64_t day;
	uint64_t traces;
};
struct tw_trend {
	int64_t first_day, last_day;
	struct tw_trend_line lines[TW_TREND_LINES];
	size_t n_lines;
	struct tw_trend_mark marks[TW_TREND_MARKS]; /* by day; those with most traces */
	size_t n_marks;
	size_t versions; /* how many there are */
	bool cut;        /* there was no time for all days */
};
struct tw_trend_ask {
	const struct tw_regress_found *of;
	int64_t today;
	struct tw_deadline deadline; /* asked for each day of a line */
};
enum tw_status tw_regress_trend(struct tw_catalogue *c, const char *project_id,
        const struct tw_trend_ask *ask, struct tw_arena *a, struct tw_trend *ret,
        struct tw_err *err) TW_MUST_USE;

/* 19 of 20 such intervals have the quantile in them. */
struct tw_trend_quantile tw_trend_quantile_of(const struct tw_sketch *s, unsigned percent);

#endif
