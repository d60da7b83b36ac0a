/*
 * fleet.h - queries on many traces, from rollup cells: groups, methods, quantiles.
 *
 * Independent of HTTP and SQL: the caller reads cells and looks up names.  All memory is in the
 * passed arena, and results point into the cells. Thread: one query, one thread.
 */
#ifndef TW_FLEET_H
#define TW_FLEET_H

#include "server/catalogue/fleet/catalogue_rollup.h"

/* Dimensions that a caller keeps apart; bits. */
enum tw_fleet_dim {
	TW_DIM_DAY = 1,
	TW_DIM_APP = 2,
	TW_DIM_VERSION = 4,
	TW_DIM_BUILD = 8,
	TW_DIM_SCENARIO = 16,
	TW_DIM_CLASS = 32,
	TW_DIM_OS = 64,
	TW_DIM_LABEL = 128
};

enum { TW_FLEET_QUANTILES = 4 };
extern const unsigned tw_fleet_percents[TW_FLEET_QUANTILES]; /* 50, 75, 95, 99 */

struct tw_fleet_stat {
	uint64_t n; /* number of traces with a value */
	int64_t sum, mean, max;
	int64_t at[TW_FLEET_QUANTILES];
	const char *worst; /* TW_ROLLUP_ID characters; NULL: none */
};

/* --- groups of cells --- */

enum tw_fleet_by { /* tw_fleet_by_names */
	TW_FLEET_ALL,
	TW_FLEET_DAY,
	TW_FLEET_VERSION,
	TW_FLEET_BUILD,
	TW_FLEET_SCENARIO,
	TW_FLEET_CLASS,
	TW_FLEET_OS,
	TW_FLEET_APP,
	TW_FLEET_LABEL,
	TW_FLEET_BYS
};
extern const char *const tw_fleet_by_names[TW_FLEET_BYS + 1]; /* ended by NULL */
unsigned tw_fleet_by_dims(enum tw_fleet_by by);               /* enum tw_fleet_dim */

struct tw_fleet_group {
	const char *scenario; /* "" unless groups are by scenario too */
	const char *key;      /* for days "2026-11-21" */
	uint64_t traces;
	const struct tw_rollup_cell **cells;
	size_t n;
};
/* Sorted by key, and first by scenario if `scenarios`; cells keep their order. */
enum tw_status tw_fleet_groups(const struct tw_rollup_cell *cells, size_t n, enum tw_fleet_by by,
        bool scenarios, struct tw_arena *a, struct tw_fleet_group **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* For cells by values of a label: sets each cell's value, and one name,
 * TW_FLEET_REST, for all but the `top` values with most traces; a rest of only one value keeps its
 * name. */
#define TW_FLEET_REST "\xff" /* no value: those are UTF-8 */
struct tw_fleet_values {
	uint64_t values, rest; /* number of values, not counting cells without one; how many of them
	                          are in the rest */
};
enum tw_status tw_fleet_label_values(struct tw_rollup_cell *cells, size_t n, size_t top,
        struct tw_arena *a, struct tw_fleet_values *ret, struct tw_err *err) TW_MUST_USE;
/* The durations of a group's traces; ids of the traces at the quantiles and of the longest. */
struct tw_fleet_lengths {
	struct tw_fleet_stat stat;
	char at[TW_FLEET_QUANTILES][TW_ROLLUP_ID + 1], longest[TW_ROLLUP_ID + 1];
};
/* h is scratch space. */
enum tw_status tw_fleet_lengths(const struct tw_fleet_group *g, struct tw_rollup_head *h,
        struct tw_fleet_lengths *ret, struct tw_err *err) TW_MUST_USE;

/* --- methods --- */

/* Adds the cells' values of the metrics (one bit each) to r. */
enum tw_status tw_fleet_collect(const struct tw_rollup_cell *const *cells, size_t n,
        struct tw_rollup *r, struct tw_err *err) TW_MUST_USE;

struct tw_fleet_method { /* methods with the same name, of any build */
	struct tw_rollup_naming naming;
	const struct tw_rollup_method **of;
	size_t n;
	struct tw_fleet_stat sorted_by; /* the metric they are ranked by */
	int64_t rank;
};
/* Methods with the same name and descriptor are merged; methods without a name are not.  names are
 * of r's methods, in the same order. */
enum tw_status tw_fleet_methods(const struct tw_rollup *r, const struct tw_rollup_naming *names,
        struct tw_arena *a, struct tw_fleet_method **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* The displayed name when builds are compared: unknown methods of two builds differ even if their
 * ids are equal.  ptr NULL: the arena is full. */
struct tw_str tw_fleet_name(const struct tw_rollup_naming *m, struct tw_arena *a);
enum tw_status tw_fleet_stat(const struct tw_rollup_method *const *of, size_t n,
        enum tw_rollup_metric m, struct tw_sketch *s, struct tw_fleet_stat *ret,
        struct tw_err *err) TW_MUST_USE;

/* --- the current figures of an alert rule (alert.c) --- */

/* From rollups of traces and from ANR reports. */
struct tw_alert_evaluation;
struct tw_alert_figure;
struct tw_deadline;
struct tw_fleet_store;

enum { TW_ALERT_FIGURES_MAX = 100 }; /* per rule: the versions with most traces */

/* Figures with at least rule->min_traces traces or reports, and all figures of known alerts that
 * have not ended. TW_DEADLINE. */
enum tw_status tw_alert_figures(struct tw_fleet_store *store, const struct tw_alert_evaluation *of,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_alert_figure **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
