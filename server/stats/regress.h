/*
 * regress.h - what got slower without anybody asking: changes in one series of many traces.
 *
 * A series is a scenario's length, or the time of its own of a method in that scenario.  It is
 * looked at in two ways that share no evidence: each version against the one before it, by day and
 * class of device; and the days of each version against each other, so that what changed without a
 * release is found and what a release changed is not found twice.
 * Pure: no SQL, no HTTP.  Thread: one at a time.
 */
#ifndef TW_REGRESS_H
#define TW_REGRESS_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/stats/shift.h"

/* --- what is asked of a change --- */

struct tw_regress_rules {
	struct tw_shift_rules shift;
	uint32_t window_days; /* that are looked at */
	double least_share;   /* of the scenario's median that a method's change must make up */
};
extern const struct tw_regress_rules tw_regress_defaults;
/* A project's own: TW_SETTING_REGRESSIONS. */
#define TW_SETTING_REGRESSIONS "regressions"
json_t *tw_regress_rules_json(const struct tw_regress_rules *rules); /* NULL: no memory */
/* What doc leaves out stays as it was.  TW_BAD_REQUEST, in words. */
enum tw_status tw_regress_rules_read(
        const json_t *doc, struct tw_regress_rules *io, struct tw_err *err) TW_MUST_USE;

/* --- a series --- */

enum { TW_REGRESS_CLASSES = 4, TW_REGRESS_VERSIONS = 12, TW_REGRESS_DAYS = 90 };

struct tw_regress_part { /* of one day, version and class */
	int64_t day;
	uint32_t version; /* in the series' list of them */
	uint32_t cls;     /* less than TW_REGRESS_CLASSES */
	const struct tw_sketch *of;
	const char *worst; /* a trace of it; NULL: none is known */
};

struct tw_regress_series {
	const char *app, *scenario;
	const char *method, *descriptor; /* "": the scenario's length */
	const char *const *versions;     /* in the order in which they came */
	size_t n_versions;
	const struct tw_regress_part *parts; /* by day, then version, then class */
	size_t n_parts;
	int64_t least_ns; /* less is nothing */
};

/* --- what is found --- */

enum tw_regress_kind { /* tw_regress_kind_words */
	TW_REGRESS_SLOWER,
	TW_REGRESS_NEW, /* a method that no version before had */
	TW_REGRESS_KINDS
};
extern const char *const tw_regress_kind_words[TW_REGRESS_KINDS + 1]; /* ended by NULL */

/* Of a new method before_ns is 0, after_ns the median of the traces that have it, and the shift's
 * change how much of the scenario's median it takes in a trace, at the mean. */
struct tw_regress_found {
	enum tw_regress_kind kind;
	double share; /* of the head's traces that have a new method */
	const char *app, *scenario, *method, *descriptor;
	const char *base, *head; /* versions; "": a day's change */
	int64_t day;             /* the first one after it */
	unsigned percent;        /* the quantile that changed: 50, or 95 when only that did */
	int64_t before_ns, after_ns;
	struct tw_shift shift;
	const char *before_trace, *after_trace; /* NULL: none is known */
	const char *fixed_in;                   /* a later version that is as before; "" */
	int64_t fixed_from;                     /* its first day; 0 */
	int64_t fixed_day;                      /* likewise a day; 0 */
};

struct tw_regress_list {
	struct tw_arena *arena;
	struct tw_regress_found *of;
	size_t n, cap;
};

struct tw_regress_finder; /* what one series after another is worked in: some MB */
struct tw_regress_finder *tw_regress_finder_new(void); /* NULL: no memory */
struct tw_regress_finder *tw_regress_finder_free(struct tw_regress_finder *f);
/* Appends what got slower.  TW_NOMEM when the list's arena is full. */
enum tw_status tw_regress_find(struct tw_regress_finder *f, const struct tw_regress_series *s,
        const struct tw_regress_rules *rules, struct tw_regress_list *io,
        struct tw_err *err) TW_MUST_USE;

/* --- methods that are new (regress_new.c) --- */

struct tw_regress_total { /* of one day, version and class: all traces */
	int64_t day;
	uint32_t version, cls;
	uint64_t n;
};
struct tw_regress_totals { /* of a scenario */
	const struct tw_regress_total *at;
	size_t n;
	int64_t median_ns;
	/* Of each version: time of a trace, at the mean, in methods without a name or beyond those
	 * that are kept, in which another could hide. */
	int64_t hidden_ns[TW_REGRESS_VERSIONS];
};
/* Appends the method of s when the first version that has it spends more than a little on it, and
 * those before it are known well enough to say that they do not have it. */
enum tw_status tw_regress_find_new(const struct tw_regress_series *s,
        const struct tw_regress_totals *of, const struct tw_regress_rules *rules,
        struct tw_regress_list *io, struct tw_err *err) TW_MUST_USE;
/* Of each version those with most time; none of one whose new methods are most of its time: there
 * something else changed, what is recorded or what it is called. */
enum { TW_REGRESS_NEW_MAX = 5 };
void tw_regress_limit_new(struct tw_regress_list *io);
/* Appends one (regress.c). */
enum tw_status tw_regress_add(struct tw_regress_list *l, const struct tw_regress_found *one,
        struct tw_err *err) TW_MUST_USE;

#endif
