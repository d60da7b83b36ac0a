/*
 * regress.h - detects regressions: changes in one series of many traces.
 *
 * A series is the duration of a scenario, or the self time of a method in it.  Two independent
 * tests are applied: each version against the previous one, by day and device class; and the days
 * of each version against each other, so that changes without a release are found, and changes of a
 * release are not found twice.
 * Pure: no SQL, no HTTP.  Thread: one at a time.
 */
#ifndef TW_REGRESS_H
#define TW_REGRESS_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/stats/change_point.h"

/* --- thresholds --- */

struct tw_regress_rules {
	struct tw_change_rules shift;
	uint32_t window_days; /* days examined */
	double min_share;     /* minimum share of the scenario's median that a method's change must
	                       * have */
};
extern const struct tw_regress_rules tw_regress_defaults;
/* A project's own rules: TW_SETTING_REGRESSIONS. */
#define TW_SETTING_REGRESSIONS "regressions"
json_t *tw_regress_rules_json(const struct tw_regress_rules *rules); /* NULL: no memory */
/* Members missing in doc keep their values.  TW_BAD_REQUEST. */
enum tw_status tw_regress_rules_read(
        const json_t *doc, struct tw_regress_rules *io, struct tw_err *err) TW_MUST_USE;

/* Standard errors required to report a change as fixed: 99 %. The test is repeated for each later
 * version, so 95 % would be too few. */
#define TW_REGRESS_FIXED_ERRORS 2.33

/* --- a series --- */

enum { TW_REGRESS_CLASSES = 4, TW_REGRESS_VERSIONS = 12, TW_REGRESS_DAYS = 90 };

struct tw_regress_part { /* of one day, version and class */
	int64_t day;
	uint32_t version; /* index into the series' versions */
	uint32_t cls;     /* less than TW_REGRESS_CLASSES */
	const struct tw_sketch *of;
	const char *worst; /* a trace of it; NULL: none known */
};

struct tw_regress_series {
	const char *app, *scenario;
	const char *method, *descriptor; /* "": the scenario's duration */
	const char *const *versions;     /* in order of release */
	size_t n_versions;
	const struct tw_regress_part *parts; /* by day, then version, then class */
	size_t n_parts;
	int64_t least_ns; /* smaller changes are ignored */
};

/* --- results --- */

enum tw_regress_kind { /* tw_regress_kind_names */
	TW_REGRESS_SLOWER,
	TW_REGRESS_NEW, /* a method absent in all earlier versions */
	TW_REGRESS_KINDS
};
extern const char *const tw_regress_kind_names[TW_REGRESS_KINDS + 1]; /* ended by NULL */

/* For a new method, before_ns is 0, after_ns the median of the traces that have it, and the shift's
 * change its mean share of the scenario's median. */
struct tw_regress_found {
	enum tw_regress_kind kind;
	double share; /* of the head version's traces, those with a new method */
	const char *app, *scenario, *method, *descriptor;
	const char *base, *head; /* versions; "": a change between days */
	int64_t day;             /* the first day after the change */
	unsigned percentile;     /* the changed quantile: 50, or 95 if only that changed */
	int64_t before_ns, after_ns;
	struct tw_change_found shift;
	const char *before_trace, *after_trace; /* NULL: none known */
	const char *fixed_in;                   /* a later version at the old level; "" */
	int64_t fixed_from;                     /* its first day; 0 */
	int64_t fixed_day;                      /* the day of a fix without a release; 0 */
};

struct tw_regress_list {
	struct tw_arena *arena;
	struct tw_regress_found *of;
	size_t n;
	uint32_t cap;
};

struct tw_regress_scratch;                               /* working memory, some MB */
struct tw_regress_scratch *tw_regress_scratch_new(void); /* NULL: out of memory */
struct tw_regress_scratch *tw_regress_scratch_free(struct tw_regress_scratch *f);
/* Appends the regressions.  TW_NOMEM if the list's arena is full. */
enum tw_status tw_regress_find(struct tw_regress_scratch *f, const struct tw_regress_series *s,
        const struct tw_regress_rules *rules, struct tw_regress_list *io,
        struct tw_err *err) TW_MUST_USE;

/* --- new methods (regress_new.c) --- */

struct tw_regress_total { /* of one day, version and class: number of traces */
	int64_t day;
	uint32_t version, cls;
	uint64_t n;
};
struct tw_regress_totals { /* of a scenario */
	const struct tw_regress_total *at;
	size_t n;
	int64_t median_ns;
	/* Per version: mean time per trace in methods without a name or beyond the limit of stored
	 * methods, in which another method could be hidden. */
	int64_t hidden_ns[TW_REGRESS_VERSIONS];
};
/* Appends the method of s if the first version that has it spends a relevant time in it, and there
 * is enough data to conclude that earlier versions lacked it. */
enum tw_status tw_regress_find_new(const struct tw_regress_series *s,
        const struct tw_regress_totals *of, const struct tw_regress_rules *rules,
        struct tw_regress_list *io, struct tw_err *err) TW_MUST_USE;
/* Limits new methods to those with the most time per version.  Drops all of a version in which they
 * take most of the time: there the recording or the naming changed instead. */
enum { TW_REGRESS_NEW_MAX = 5 };
void tw_regress_limit_new(struct tw_regress_list *io);
/* Appends one result (regress.c). */
enum tw_status tw_regress_add(struct tw_regress_list *l, const struct tw_regress_found *one,
        struct tw_err *err) TW_MUST_USE;

#endif
