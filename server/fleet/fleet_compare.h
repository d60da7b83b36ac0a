/*
 * fleet_compare.h - compares two sides of a fleet, with the confidence of the difference.
 *
 * A side is a set of cells.  Devices differ more than versions do, so B's device classes are
 * weighted by A's mix.  Intervals of quantiles are by bootstrap (each trace is counted a Poisson
 * number of times, with a fixed seed); those of methods' means by the variance between traces.
 * Independent of HTTP and SQL. Thread: one query, one thread.
 */
#ifndef TW_FLEET_COMPARE_H
#define TW_FLEET_COMPARE_H

#include "server/fleet/fleet.h"
#include "server/query/query_compare.h"

enum {
	TW_MIX_KNOWN = 3,
	TW_MIX_CLASSES = 5
}; /* low, mid, high, unknown, and "" for cells of a label */
extern const char *const tw_mix_names[TW_MIX_CLASSES];

struct tw_fleet_cells {
	const struct tw_rollup_cell **list;
	size_t n;
	uint64_t traces;
};
struct tw_mix {
	struct tw_fleet_cells of[TW_SIDES][TW_MIX_CLASSES];
	uint64_t traces[TW_SIDES];               /* in compared classes */
	uint64_t all[TW_SIDES];                  /* in all classes */
	double weight[TW_SIDES][TW_MIX_CLASSES]; /* per class; the sum is 1 */
	bool corrected;                          /* B is weighted by A's mix */
	const char *note;                        /* reason why not; "" none */
	bool left_out[TW_MIX_CLASSES];           /* present on one side only */
};
/* scenario NULL: any. */
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
/* Values of each side's classes: durations of traces, or of a method. */
typedef struct tw_sketch tw_mix_sketches[TW_SIDES][TW_MIX_CLASSES];
enum tw_status tw_fleet_compare_stats(const struct tw_mix *m, const tw_mix_sketches s,
        struct tw_arena *a, struct tw_compared_stat ret[TW_COMPARE_STATS],
        struct tw_err *err) TW_MUST_USE;
/* Adds the durations of traces to sketches that are zeros. */
enum tw_status tw_fleet_mix_lengths(const struct tw_mix *m, struct tw_arena *a, tw_mix_sketches s,
        struct tw_err *err) TW_MUST_USE;

/* --- methods --- */

struct tw_compared_mean { /* per trace */
	double of[TW_SIDES];
	double error; /* standard error of the difference */
};
struct tw_compared_method {
	const struct tw_rollup_naming *naming;
	struct tw_str name;
	struct tw_compared_mean self, total, calls;
	double share[TW_SIDES]; /* share of the traces that contain it */
	double p;               /* probability of such a change of self by chance */
	bool sure;              /* significant, at a false discovery rate of at most 1 in 20 */
	const struct tw_rollup_method *in[TW_SIDES][TW_MIX_CLASSES];
};
struct tw_fleet_rollups { /* per side and class: self, wall and calls */
	struct tw_rollup of[TW_SIDES][TW_MIX_CLASSES];
	const struct tw_rollup_naming *names[TW_SIDES][TW_MIX_CLASSES]; /* of their methods */
};
/* Sorted by falling change of self, in either direction. */
enum tw_status tw_fleet_compare_methods(const struct tw_mix *m, const struct tw_fleet_rollups *r,
        struct tw_arena *a, struct tw_compared_method **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Half the width of the 95 % interval of a mean's change, in its unit; infinite with one trace per
 * side. */
double tw_compare_margin(const struct tw_mix *m, double error);
/* The same for shares of traces; NaN if there are too few traces. */
double tw_compare_share_margin(const struct tw_mix *m, const double share[TW_SIDES]);

#endif
