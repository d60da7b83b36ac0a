/*
 * stage_regressions.h - looks for regressions in a project's rollups now.
 *
 * Thread: any; one at a time.
 */
#ifndef TW_STAGE_REGRESSIONS_H
#define TW_STAGE_REGRESSIONS_H

#include "server/base/app.h"
#include "server/fleet/regress/regress_look.h"

/* TW_BUSY: another thread looks already. */
enum tw_status tw_regressions_look(struct tw_app *app, const struct tw_regress_task *of,
        struct tw_regress_looked *ret, struct tw_err *err) TW_MUST_USE;

#endif
