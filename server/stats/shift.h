/*
 * shift.h - when did a number of many traces change, and by how much?
 *
 * A day is a point: how far a quantile of that day lies from where it is as a rule, as a logarithm,
 * so that 0.1 is about a tenth.  Classes of devices are held against their own level each, so a day
 * with more slow devices is not a slow day.  What a choice of so many traces does to a point is
 * known from their spread; what else differs from day to day is learnt from the points themselves.
 * Pure: no memory, no files.  Thread: any.
 */
#ifndef TW_SHIFT_H
#define TW_SHIFT_H

#include "server/stats/sketch.h"

struct tw_shift_level { /* of a class of devices, over all days */
	double at;      /* logarithm of the quantile; nanoseconds, or whatever is counted */
	double spread;  /* of one trace: variance of the quantile of n traces, times n */
	bool known;
};
/* percent: 50 or 95 (1 to 98). */
struct tw_shift_level tw_shift_level(const struct tw_sketch *all, unsigned percent);

enum { TW_SHIFT_TRACKS = 16, TW_SHIFT_POINTS = 1500 };

struct tw_shift_point {
	int64_t day;
	uint32_t track; /* less than TW_SHIFT_TRACKS: only points of one track are held against each
	                   other */
	uint64_t n;     /* traces */
	double at;      /* beside the levels, as a logarithm */
	double var;     /* of what the choice of traces does */
};
/* days[i] is what the class of levels[i] had on that day; NULL: nothing.  False: too few traces to
 * say anything. */
bool tw_shift_point(const struct tw_sketch *const *days, const struct tw_shift_level *levels,
        size_t n, unsigned percent, struct tw_shift_point *ret) TW_MUST_USE;

struct tw_shift_rules {
	double least_change;   /* 0.1: a tenth up or down */
	double certainty;      /* standard errors that a change must have */
	uint32_t least_traces; /* on each side of it */
	uint32_t least_days;   /* likewise; at least 1 */
};
extern const struct tw_shift_rules tw_shift_defaults;

struct tw_shift {
	int64_t day;              /* the first one after it */
	double change, low, high; /* 0.18: 18 % more; where 95 of 100 such are */
	double error;             /* one standard error, of the logarithm */
	double score;             /* in standard errors */
	uint64_t n_before, n_after;
};
/* Is `after` another level than `before`, by the days that both have, or else by those before and
 * after the day on which `after` begins?  Points by day, of one track.  False: too little is known,
 * or it is not so. */
bool tw_shift_between(const struct tw_shift_point *before, size_t n_before,
        const struct tw_shift_point *after, size_t n_after, const struct tw_shift_rules *rules,
        struct tw_shift *ret) TW_MUST_USE;

enum { TW_SHIFTS_MAX = 8 };
/* All changes of a series in the order of days, each judged by the days between its neighbours.
 * Points by day; a track that is there on one side alone says nothing.  Returns how many. */
size_t tw_shift_search(const struct tw_shift_point *points, size_t n,
        const struct tw_shift_rules *rules, struct tw_shift ret[TW_SHIFTS_MAX]);

#endif
