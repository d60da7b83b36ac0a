/*
 * stage_alerts.h - compares a project's figures with the limits of its alert rules.
 *
 * Thread: any.
 */
#ifndef TW_STAGE_ALERTS_H
#define TW_STAGE_ALERTS_H

#include "server/base/app.h"
#include "server/fleet/alert.h"

struct tw_alerts_took {
	void (*take)(void *arg, const struct tw_alert_rule *rule,
	        const struct tw_alert_figure *figures, size_t n);
	void *arg;
};
/* Stores the figures of all rules of the project, and passes them on (took may be NULL). */
enum tw_status tw_alerts_look(struct tw_app *app, const char *project_id,
        const struct tw_deadline *deadline, const struct tw_alerts_took *took,
        struct tw_err *err) TW_MUST_USE;

#endif
