/*
 * catalogue_regression.h - what got slower, as the catalogue keeps it, and what people make of it.
 *
 * A finding is the same as one before it when series and versions are, or the series and nearly the
 * day; then its numbers follow what was found last, and what people said of it stays.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_REGRESSION_H
#define TW_CATALOGUE_REGRESSION_H

#include "server/catalogue/catalogue.h"
#include "server/stats/regress.h"

enum tw_regress_status { /* tw_regress_status_words */
	TW_REGRESS_OPEN,
	TW_REGRESS_ACKNOWLEDGED,
	TW_REGRESS_FIXED,
	TW_REGRESS_RETURNED, /* what was fixed before is slower again */
	TW_REGRESS_STATUSES
};
extern const char *const tw_regress_status_words[TW_REGRESS_STATUSES + 1]; /* ended by NULL */

/* Puts what was found beside what is known; opens, fixes and brings back.  *io_fresh is raised by
 * those that are new. */
enum tw_status tw_catalogue_regression_keep(struct tw_catalogue *c, const char *project_id,
        const struct tw_regress_found *of, size_t n, uint64_t *io_fresh,
        struct tw_err *err) TW_MUST_USE;

struct tw_regression {
	const char *id;
	struct tw_regress_found of; /* texts are never NULL */
	enum tw_regress_status status;
	const char *earlier, *owner, *note;
	int64_t muted_until_ms, first_ms, last_ms;
};

enum { TW_REGRESSIONS_MAX = 1000 };
struct tw_regression_query { /* "": any */
	const char *app, *scenario, *method, *version, *owner;
	unsigned statuses;     /* a bit each */
	int64_t unmuted_at_ms; /* leaves out what is muted then; 0: nothing */
};
/* Newest change first, at most TW_REGRESSIONS_MAX. */
enum tw_status tw_catalogue_regressions(struct tw_catalogue *c, const char *project_id,
        const struct tw_regression_query *of, struct tw_arena *a, struct tw_regression **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_regression_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_regression *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_regression_said { /* by somebody */
	enum tw_regress_status status;
	const char *fixed_in, *owner, *note;
	int64_t muted_until_ms;
};
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_regression_say(struct tw_catalogue *c, const char *project_id,
        const char *id, const struct tw_regression_said *what, struct tw_err *err) TW_MUST_USE;

#endif
