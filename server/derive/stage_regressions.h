/*
 * stage_regressions.h - searches a project's rollups for regressions now.
 *
 * Thread: any; one at a time.
 */
#ifndef TW_STAGE_REGRESSIONS_H
#define TW_STAGE_REGRESSIONS_H

#include "server/base/app.h"
#include "server/fleet/regress/regress_look.h"

/* TW_BUSY: another thread is searching. */
enum tw_status tw_regressions_look(struct tw_app *app, const struct tw_regress_task *of,
        struct tw_regress_looked *ret, struct tw_err *err) TW_MUST_USE;

#endif
