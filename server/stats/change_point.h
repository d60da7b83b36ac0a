/*
 * change_point.h - change point detection in a number of many traces.
 *
 * A point is one day: the logarithmic distance of that day's quantile from its usual level, so that
 * 0.1 is about a tenth.  Each device class is compared with its own level, so a day with more slow
 * devices is not a slow day.  The sampling error of a point is known from the spread of its traces;
 * other variation between days is estimated from the points themselves.
 * Pure: no memory, no files.  Thread: any.
 */
#ifndef TW_CHANGE_POINT_H
#define TW_CHANGE_POINT_H

#include "server/stats/sketch.h"

struct tw_change_level { /* of a class of devices, over all days */
	double at;       /* logarithm of the quantile, in nanoseconds or another unit */
	double spread;   /* per trace: variance of the quantile of n traces, times n */
	bool known;
};
/* percent: 50 or 95 (1 to 98). */
struct tw_change_level tw_change_level(const struct tw_sketch *all, unsigned percent);

enum { TW_CHANGE_TRACKS = 16, TW_CHANGE_POINTS = 1500 };

struct tw_change_point {
	int64_t day;
	uint32_t track; /* below TW_CHANGE_TRACKS; only points of the same track are compared */
	uint64_t n;     /* traces */
	double at;      /* distance from the levels, as a logarithm */
	double var;     /* variance by sampling */
};
/* days[i] has the values of the class of levels[i] on that day; NULL: none.  False: too few
 * traces. */
bool tw_change_point(const struct tw_sketch *const *days, const struct tw_change_level *levels,
        size_t n, unsigned percent, struct tw_change_point *ret) TW_MUST_USE;

struct tw_change_rules {
	double min_change;   /* 0.1: a tenth up or down */
	double certainty;    /* minimum change in standard errors */
	uint32_t min_traces; /* on each side of the change */
	uint32_t min_days;   /* on each side; at least 1 */
};

/* Standard errors from an estimate to each bound of its confidence interval of 95 %. */
#define TW_CHANGE_INTERVAL 1.96

struct tw_change_found {
	int64_t day;              /* the first day after the change */
	double change, low, high; /* 0.18: 18 % more; 95 % confidence interval */
	double error;             /* one standard error, of the logarithm */
	double score;             /* in standard errors */
	uint64_t n_before, n_after;
};
/* Whether the level of `after` differs from that of `before`: compared on the days that both have,
 * otherwise on the days before and after the first day of `after`.  Points by day, of one track.
 * False: not enough data, or no change. */
bool tw_change_between(const struct tw_change_point *before, size_t n_before,
        const struct tw_change_point *after, size_t n_after, const struct tw_change_rules *rules,
        struct tw_change_found *ret) TW_MUST_USE;

enum { TW_CHANGES_MAX = 8 };
/* All change points of a series by day, each tested with the days between its neighbours.  Points
 * by day; a track present on one side only is ignored.  Returns their number. */
size_t tw_change_search(const struct tw_change_point *points, size_t n,
        const struct tw_change_rules *rules, struct tw_change_found ret[TW_CHANGES_MAX]);

#endif
