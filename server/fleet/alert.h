/*
 * alert.h - evaluates an alert rule: current figures from rollups of traces and from ANR reports.
 *
 * Thread: any.
 */
#ifndef TW_ALERT_H
#define TW_ALERT_H

#include "server/base/clock.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/fleet/store/fleet_store.h"

enum { TW_ALERT_FIGURES_MAX = 100 }; /* per rule: the versions with most traces */

/* Figures with at least rule->min_traces traces or reports, and all figures of known alerts that
 * have not ended. TW_DEADLINE. */
enum tw_status tw_alert_figures(struct tw_fleet_store *store, const struct tw_alert_evaluation *of,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_alert_figure **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
