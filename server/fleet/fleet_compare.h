/*
 * fleet_compare.h - two sides of a fleet beside each other, and how sure the difference is.
 *
 * A side is cells.  Devices differ more than versions do, so B's classes of devices
 * are weighed as A's mix has them.  Quantiles have intervals by a bootstrap (each
 * trace is counted a Poisson number of times, by a fixed seed); means of methods by
 * the spread of their traces.  Knows neither HTTP nor SQL.
 * Thread: one question, one thread.
 */
#ifndef TW_FLEET_COMPARE_H
#define TW_FLEET_COMPARE_H

#include "server/fleet/fleet.h"
#include "server/query/query_compare.h"

enum {
	TW_MIX_KNOWN = 3,
	TW_MIX_CLASSES = 5
}; /* low, mid, high, unknown, and "" of cells of a label */
extern const char *const tw_mix_words[TW_MIX_CLASSES];

struct tw_fleet_cells {
	const struct tw_rollup_cell **list;
	size_t n;
	uint64_t traces;
};
struct tw_mix {
	struct tw_fleet_cells of[TW_SIDES][TW_MIX_CLASSES];
	uint64_t traces[TW_SIDES];               /* of classes that are compared */
	uint64_t all[TW_SIDES];                  /* of all classes */
	double weight[TW_SIDES][TW_MIX_CLASSES]; /* of a class; they add up to 1 */
	bool corrected;                          /* B has A's mix */
	const char *note;                        /* why it could not be; "": nothing to say */
	bool left_out[TW_MIX_CLASSES];           /* only one side has it */
};
/* scenario NULL: any. */
enum tw_status tw_fleet_mix(const struct tw_fleet_cells sides[TW_SIDES], const char *scenario,
        bool correct, struct tw_arena *a, struct tw_mix *ret, struct tw_err *err) TW_MUST_USE;

/* --- quantiles --- */

enum { TW_COMPARE_MEAN = TW_FLEET_QUANTILES, TW_COMPARE_STATS };
extern const char *const tw_compare_stat_words[TW_COMPARE_STATS + 1]; /* "p50" ... "mean" */
enum { TW_COMPARE_RESAMPLES = 500, TW_COMPARE_ENOUGH = 10 };

struct tw_compared_stat {
	double of[TW_SIDES], low[TW_SIDES], high[TW_SIDES];
	double change, change_low, change_high; /* as shares of A */
	bool enough; /* traces for an interval: else low and high say nothing */
	bool sure;   /* enough, and 0 is not in the interval */
};
/* Numbers of each side's classes: lengths of traces, or of a method. */
typedef struct tw_sketch tw_mix_sketches[TW_SIDES][TW_MIX_CLASSES];
enum tw_status tw_fleet_compare_stats(const struct tw_mix *m, const tw_mix_sketches s,
        struct tw_arena *a, struct tw_compared_stat ret[TW_COMPARE_STATS],
        struct tw_err *err) TW_MUST_USE;
/* Lengths of traces, into sketches that are zeros. */
enum tw_status tw_fleet_mix_lengths(const struct tw_mix *m, struct tw_arena *a, tw_mix_sketches s,
        struct tw_err *err) TW_MUST_USE;

/* --- methods --- */

struct tw_compared_mean { /* a trace */
	double of[TW_SIDES];
	double error; /* standard, of the difference */
};
struct tw_compared_method {
	const struct tw_rollup_naming *naming;
	struct tw_str name;
	struct tw_compared_mean self, total, calls;
	double share[TW_SIDES]; /* of the traces, those that have it */
	double p;               /* that chance makes such a change of self */
	bool sure;              /* with at most 1 in 20 of all that are sure being wrong */
	const struct tw_rollup_method *in[TW_SIDES][TW_MIX_CLASSES];
};
struct tw_fleet_rollups { /* of each side's classes: self, wall and calls */
	struct tw_rollup of[TW_SIDES][TW_MIX_CLASSES];
	const struct tw_rollup_naming *names[TW_SIDES][TW_MIX_CLASSES]; /* of their methods */
};
/* By falling change of self, up or down. */
enum tw_status tw_fleet_compare_methods(const struct tw_mix *m, const struct tw_fleet_rollups *r,
        struct tw_arena *a, struct tw_compared_method **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* How far to both sides of a mean's change 95 % lie, in its unit; infinite with one trace a side.
 */
double tw_compare_margin(const struct tw_mix *m, double error);
/* The same for shares of traces; not a number when there are too few of them. */
double tw_compare_share_margin(const struct tw_mix *m, const double share[TW_SIDES]);
/* The chance that nothing but chance makes a difference so many standard errors large. */
double tw_compare_p(const struct tw_mix *m, double errors);

#endif
