/* stages.h - the rules of single stages, for endpoints that show or test them.  Thread: any. */
#ifndef TW_STAGES_H
#define TW_STAGES_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/fleet/catalogue_found.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/fleet/store/fleet_store.h"
#include "server/query/detect/detect_rules.h"

/* --- alerts --- */

struct tw_alerts_listener {
	void (*evaluated)(void *arg, const struct tw_alert_rule *rule,
	        const struct tw_alert_figure *figures, size_t n);
	void *arg;
};
struct tw_alerts_how {
	size_t first; /* index of the rule to start with (modulo their number); varies */
	const struct tw_deadline *deadline;
	const struct tw_alerts_listener *listener; /* NULL: no callback */
	bool sends_mail; /* mail is configured: otherwise none is queued */
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

/* --- ANRs --- */

struct tw_catalogue;

/* The number that identifies the grouping rules and the app's frame patterns.  Always above 0. */
enum tw_status tw_anr_rules_number(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, int64_t *ret, struct tw_err *err) TW_MUST_USE;

/* --- findings of detectors --- */

struct tw_found_rules {                    /* current rules of a project */
	struct tw_detect_rules *detectors; /* owned */
	json_t *doc;                       /* owned: contains their texts */
	int64_t number;  /* identifies them and the app's frame patterns; above 0 */
	int64_t version; /* of the detectors; 0: the built-in ones */
};
/* On success, free with tw_found_rules_done. */
enum tw_status tw_found_rules_open(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_found_rules *ret, struct tw_err *err) TW_MUST_USE;
void tw_found_rules_done(struct tw_found_rules *r);

#endif
