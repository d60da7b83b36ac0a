/*
 * stage_alerts.h - compares a project's figures with the limits of its alert rules, and tests
 * single rules.
 *
 * Thread: any.
 */
#ifndef TW_STAGE_ALERTS_H
#define TW_STAGE_ALERTS_H

#include "server/fleet/alert.h"

struct tw_alerts_took {
	void (*take)(void *arg, const struct tw_alert_rule *rule,
	        const struct tw_alert_figure *figures, size_t n);
	void *arg;
};
struct tw_alerts_how {
	size_t first; /* index of the rule to start with (modulo their number); varies */
	const struct tw_deadline *deadline;
	const struct tw_alerts_took *took; /* NULL: no callback */
	bool sends_mail;                   /* the server can: otherwise none is queued */
};
/* Stores the figures of all rules of the project, and notifies.  If a rule fails, the others are
 * still evaluated, and the first failure is returned.  *ret_partial: some rule was not evaluated in
 * time. */
enum tw_status tw_alerts_evaluate(struct tw_fleet_store *fleet, const char *project_id,
        const struct tw_alerts_how *how, bool *ret_partial, struct tw_err *err) TW_MUST_USE;
#define TW_ALERTS_ARENA_MAX ((size_t)256 << 20) /* of one rule */
/* The current figures of a rule, which need not be stored (id "").  Stores and reports nothing. */
enum tw_status tw_alerts_try(struct tw_fleet_store *fleet, const char *project_id,
        const struct tw_alert_rule *rule, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_alert_figure **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
