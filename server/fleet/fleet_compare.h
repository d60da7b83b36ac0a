/*
 * fleet_compare.h - compares two sides of a fleet, with the confidence of the difference.
 *
 * A side is a set of cells.  Devices and scenarios differ more than versions do, so the estimator
 * is post-stratified: a stratum is a scenario and a device class, and B's strata are weighted by
 * A's mix.  Only strata of both sides are compared; traces of the others are counted and reported.
 * The variance is that within the strata, so a difference between scenarios or classes, or another
 * mix of them, is not a change. Intervals of quantiles are by bootstrap (each trace is counted a
 * Poisson number of times, with a fixed seed); those of methods' means by the variance between
 * traces. Independent of HTTP and SQL. Thread: one query, one thread.
 */
#ifndef TW_FLEET_COMPARE_H
#define TW_FLEET_COMPARE_H

#include "server/fleet/fleet.h"
#include "server/query/query_compare.h"

struct tw_fleet_cells {
	const struct tw_rollup_cell **list;
	size_t n;
	uint64_t traces;
};
struct tw_stratum {
	const char *scenario;     /* NULL: strata are by device class alone */
	const char *device_class; /* low, mid, high, unknown, or "" in cells of a label; NULL:
	                             strata are by scenario alone */
	struct tw_fleet_cells of[TW_SIDES];
	double weight[TW_SIDES]; /* the sum over strata is 1 */
	bool left_out;
	size_t at; /* index among the compared strata */
};
/* The strata with most traces on both sides; the others are left out. */
enum { TW_STRATA_MAX = 100 };
struct tw_mix {
	struct tw_stratum *strata; /* by scenario, then class */
	size_t n, compared;        /* compared: number of strata not left out */
	uint64_t traces[TW_SIDES]; /* in compared strata */
	uint64_t all[TW_SIDES];
	bool corrected;   /* B is weighted by A's mix */
	const char *note; /* traces that are left out, and a mix that is not corrected; "" none */
};
/* scenario NULL: any.  Without a stratum on both sides, strata are by scenario or class alone;
 * without that, or if not `correct`, each side keeps its own mix of classes. */
enum tw_status tw_fleet_mix(const struct tw_fleet_cells sides[TW_SIDES], const char *scenario,
        bool correct, struct tw_arena *a, struct tw_mix *ret, struct tw_err *err) TW_MUST_USE;

/* --- quantiles --- */

enum { TW_COMPARE_MEAN = TW_FLEET_QUANTILES, TW_COMPARE_STATS };
extern const char *const tw_compare_stat_names[TW_COMPARE_STATS + 1]; /* "p50" ... "mean" */
enum { TW_COMPARE_RESAMPLES = 500, TW_COMPARE_ENOUGH = 10 };

struct tw_compared_stat {
	double of[TW_SIDES], low[TW_SIDES], high[TW_SIDES];
	double change, change_low, change_high; /* relative to A */
	bool enough; /* enough traces for an interval; otherwise low and high are meaningless */
	bool sure;   /* enough, and the interval does not contain 0 */
};
/* Values of the sides in one stratum: durations of traces, or of a method. */
struct tw_stratum_values {
	struct tw_sketch of[TW_SIDES];
};
/* s: one per compared stratum.  TW_DEADLINE after this thread's deadline (clock.h). */
enum tw_status tw_fleet_compare_stats(const struct tw_mix *m, const struct tw_stratum_values *s,
        struct tw_arena *a, struct tw_compared_stat ret[TW_COMPARE_STATS],
        struct tw_err *err) TW_MUST_USE;
/* The durations of traces. */
enum tw_status tw_fleet_mix_lengths(const struct tw_mix *m, struct tw_arena *a,
        struct tw_stratum_values **ret, struct tw_err *err) TW_MUST_USE;

/* --- methods --- */

struct tw_compared_mean { /* per trace */
	double of[TW_SIDES];
	double error;   /* standard error of the difference */
	double freedom; /* degrees of freedom of the error; below 1: it is unknown */
};
struct tw_compared_sum { /* a mean while strata are added; to.error is a variance until the end */
	struct tw_compared_mean to;
	double per_freedom; /* sum of squared variances per degree of freedom */
};
struct tw_stratum_sums { /* of the values of one side's traces in one stratum */
	double n, sum, squares;
	double in; /* traces that have the method; the others are values of 0 */
};
void tw_compared_add(struct tw_compared_sum *x, const struct tw_stratum *s,
        const struct tw_stratum_sums of[TW_SIDES]);
/* traces: of all strata. */
void tw_compared_end(struct tw_compared_sum *x, const uint64_t traces[TW_SIDES]);
struct tw_compared_entry { /* a method of one side's stratum; several if its builds differ */
	const struct tw_rollup_naming *naming;
	struct tw_str name;
	const struct tw_rollup_method *method;
	size_t stratum;
	int side;
};
struct tw_compared_method {
	const struct tw_rollup_naming *naming;
	struct tw_str name;
	struct tw_compared_mean self, total, calls;
	struct tw_compared_mean share; /* of the traces that contain it */
	double p;                      /* probability of such a change of self by chance */
	bool sure; /* significant, at a false discovery rate of at most 1 in 20 */
	/* The scenario whose change of self is more certain than the change of all; NULL: none, or
	 * all traces belong to one.  in: self per trace of that scenario. */
	const char *scenario;
	struct tw_compared_mean in;
	const struct tw_compared_entry *entries;
	size_t n_entries;
};
struct tw_stratum_rollup { /* per side: self, wall and calls */
	struct tw_rollup of[TW_SIDES];
	const struct tw_rollup_naming *names[TW_SIDES]; /* of their methods */
};
/* r: one per stratum.  Sorted by falling change of self, in either direction.  TW_DEADLINE after
 * this thread's deadline. */
enum tw_status tw_fleet_compare_methods(const struct tw_mix *m, const struct tw_stratum_rollup *r,
        struct tw_arena *a, struct tw_compared_method **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Adds the wall times of a method in its traces to s, one per compared stratum. */
enum tw_status tw_compared_values(const struct tw_mix *mix, const struct tw_compared_method *m,
        struct tw_stratum_values *s, struct tw_err *err) TW_MUST_USE;
/* Half the width of the 95 % interval of a mean's change, in its unit; infinite with one trace on a
 * side. */
double tw_compare_margin(const struct tw_compared_mean *mean);

#endif
