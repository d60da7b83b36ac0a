/*
 * fleet.h - answers over many traces, from cells of rollups: groups, methods, quantiles.
 *
 * Knows neither HTTP nor SQL: cells come read, names come looked up.  All memory
 * is in the arena that is passed, and what is told points into the cells.
 * Thread: one question, one thread.
 */
#ifndef TW_FLEET_H
#define TW_FLEET_H

#include "server/catalogue/fleet/catalogue_rollup.h"

enum { TW_FLEET_QUANTILES = 4 };
extern const unsigned tw_fleet_percents[TW_FLEET_QUANTILES]; /* 50, 75, 95, 99 */

struct tw_fleet_stat {
	uint64_t n; /* traces that say anything of it */
	int64_t sum, mean, max;
	int64_t at[TW_FLEET_QUANTILES];
	const char *worst; /* TW_ROLLUP_ID characters; NULL: none */
};

/* --- groups of cells --- */

enum tw_fleet_by { /* tw_fleet_by_words */
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
extern const char *const tw_fleet_by_words[TW_FLEET_BYS + 1]; /* ended by NULL */

struct tw_fleet_group {
	const char *scenario; /* "" when groups do not differ by it */
	const char *key;      /* "2026-11-21" of days */
	uint64_t traces;
	const struct tw_rollup_cell **cells;
	size_t n;
};
/* By key, and first by scenario when `scenarios`; in their order. */
enum tw_status tw_fleet_groups(const struct tw_rollup_cell *cells, size_t n, enum tw_fleet_by by,
        bool scenarios, struct tw_arena *a, struct tw_fleet_group **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Of cells of a label's values (fleet_label.c): gives each its value for a label, and one name,
 * TW_FLEET_REST, to all but the `top` values with most traces; a rest of one value is none. */
#define TW_FLEET_REST "\xff" /* no value: those are UTF-8 */
struct tw_fleet_values {
	uint64_t values,
	        rest; /* how many there are, those without left out; how many of them rest */
};
enum tw_status tw_fleet_label_values(struct tw_rollup_cell *cells, size_t n, size_t top,
        struct tw_arena *a, struct tw_fleet_values *ret, struct tw_err *err) TW_MUST_USE;
/* The lengths of a group's traces; ids of traces at the quantiles and the longest. */
struct tw_fleet_lengths {
	struct tw_fleet_stat stat;
	char at[TW_FLEET_QUANTILES][TW_ROLLUP_ID + 1], longest[TW_ROLLUP_ID + 1];
};
/* h is worked in. */
enum tw_status tw_fleet_lengths(const struct tw_fleet_group *g, struct tw_rollup_head *h,
        struct tw_fleet_lengths *ret, struct tw_err *err) TW_MUST_USE;

/* --- methods --- */

/* Puts what the cells hold of the metrics (a bit each) into r. */
enum tw_status tw_fleet_collect(const struct tw_rollup_cell *const *cells, size_t n,
        struct tw_rollup *r, struct tw_err *err) TW_MUST_USE;

struct tw_fleet_method { /* methods of one name, of any build */
	struct tw_rollup_naming naming;
	const struct tw_rollup_method **of;
	size_t n;
	struct tw_fleet_stat sorted_by; /* the metric they are ranked by */
	int64_t rank;
};
/* Methods of one name and descriptor are one; those without a name are by themselves.  names are of
 * r's methods, in their order. */
enum tw_status tw_fleet_methods(const struct tw_rollup *r, const struct tw_rollup_naming *names,
        struct tw_arena *a, struct tw_fleet_method **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* What it is called where builds stand beside each other: two builds' unknown methods are not one
 * because their ids are.  ptr NULL: the arena is full. */
struct tw_str tw_fleet_name(const struct tw_rollup_naming *m, struct tw_arena *a);
enum tw_status tw_fleet_stat(const struct tw_rollup_method *const *of, size_t n,
        enum tw_rollup_metric m, struct tw_sketch *s, struct tw_fleet_stat *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
