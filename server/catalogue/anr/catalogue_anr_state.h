/*
 * catalogue_anr_state.h - decisions of users about groups of ANRs, with the states of regressions.
 *
 * A group without a row is open.  A fixed group has returned if a report came after that from the
 * version in which it is fixed, or a later one; without a version, from any. Thread: any.
 */
#ifndef TW_CATALOGUE_ANR_STATE_H
#define TW_CATALOGUE_ANR_STATE_H

#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/fleet/catalogue_regression.h"

struct tw_anr_state {
	const char *key;
	struct tw_triage triage; /* RETURNED where reports show it */
	int64_t fixed_ms, changed_ms;
	const char *author;
};
enum { TW_ANR_STATES_MAX = 10000 };
/* By key; key "": all of the project. */
enum tw_status tw_catalogue_anr_states(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, struct tw_anr_state **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* The state of a group among rows by key; an open one if there is no row. */
struct tw_anr_state tw_anr_state_of(const struct tw_anr_state *rows, size_t n, const char *key);

struct tw_db;
/* Within a transaction: stores a decision and schedules reopening the group's closed ticket.  The
 * caller adds the audit entry.  With status RETURNED the group keeps the version and time of its
 * fix.  TW_NOT_FOUND: no report has that key. */
enum tw_status tw_cat_anr_triage(struct tw_db *w, const char *project_id, const char *key,
        const struct tw_triage *what, struct tw_err *err) TW_MUST_USE;
/* Within a transaction: whether a fixed group has returned, and when it was fixed. */
enum tw_status tw_cat_anr_has_returned(struct tw_db *db, const char *project_id, const char *key,
        bool *ret_returned, int64_t *ret_fixed_ms, struct tw_err *err) TW_MUST_USE;

#endif
