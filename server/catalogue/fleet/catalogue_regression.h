/*
 * catalogue_regression.h - regressions in the catalogue, and their status.
 *
 * A new result continues a stored regression if series and versions are equal, or the series and
 * approximately the day; its numbers are then updated, and status and notes set by people are kept.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_REGRESSION_H
#define TW_CATALOGUE_REGRESSION_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/page_cursor.h"
#include "server/stats/regress.h"

struct tw_catalogue;

enum tw_regress_status { /* tw_regress_status_names */
	TW_REGRESS_OPEN,
	TW_REGRESS_ACKNOWLEDGED,
	TW_REGRESS_FIXED,
	TW_REGRESS_RETURNED, /* a fixed regression occurred again */
	TW_REGRESS_STATUSES
};
extern const char *const tw_regress_status_names[TW_REGRESS_STATUSES + 1]; /* ended by NULL */

/* Stores results: opens new regressions, marks fixed and returned ones.  *io_new is increased by
 * the number of new ones. */
enum tw_status tw_catalogue_regression_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_regress_found *of, size_t n, uint64_t *io_new,
        struct tw_err *err) TW_MUST_USE;

struct tw_regression {
	const char *id;
	struct tw_regress_found of; /* texts are never NULL */
	enum tw_regress_status status;
	const char *earlier, *owner, *note;
	int64_t muted_until_ms, first_ms, last_ms;
};
extern const struct tw_fields tw_regression_fields;

enum { TW_REGRESSIONS_MAX = 1000 };
struct tw_regression_query { /* "": any */
	const char *app, *scenario, *method, *version, *owner;
	unsigned statuses;     /* a bit per status */
	int64_t unmuted_at_ms; /* skip those muted at that time; 0: none */
};
/* Newest change first, at most `limit` (TW_REGRESSIONS_MAX), after the page of `cursor` ("": from
 * the first).  *ret_cursor is that of the next page, "" if there is none, and may be NULL. */
enum tw_status tw_catalogue_regressions(struct tw_catalogue *c, const char *project_id,
        const struct tw_regression_query *of, uint32_t limit, const char *cursor,
        struct tw_arena *a, struct tw_regression **ret, size_t *ret_n, const char **ret_cursor,
        struct tw_err *err) TW_MUST_USE;

struct tw_inbox_query {          /* of regressions or alerts */
	const char *app, *owner; /* "": any */
	int64_t now_ms;
	unsigned statuses; /* a bit per status */
	enum tw_inbox_muted { TW_INBOX_UNMUTED, TW_INBOX_MUTED, TW_INBOX_ANY } muted;
	struct tw_page_cursor before; /* the last item of the previous page */
	uint32_t limit;
};
/* Those of the query, last seen first. */
enum tw_status tw_catalogue_inbox_regressions(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_arena *a, struct tw_regression **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Numbers of regressions of that app and owner by status, [1] of muted ones. */
struct tw_inbox_counts {
	uint64_t of[TW_REGRESS_STATUSES][2];
};
enum tw_status tw_catalogue_inbox_count_regressions(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_inbox_counts *ret,
        struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_regression_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_regression *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_triage { /* a change by a person */
	enum tw_regress_status status;
	const char *fixed_in, *owner, *note;
	int64_t muted_until_ms;
};
struct tw_db;
/* Within a transaction; the caller adds the audit entry.  TW_NOT_FOUND. */
enum tw_status tw_cat_regression_triage(struct tw_db *w, const char *project_id, const char *id,
        const struct tw_triage *what, struct tw_err *err) TW_MUST_USE;

#endif
