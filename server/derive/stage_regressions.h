/*
 * stage_regressions.h - searches a project's rollups for regressions now.
 *
 * Thread: any; one at a time.
 */
#ifndef TW_STAGE_REGRESSIONS_H
#define TW_STAGE_REGRESSIONS_H

#include "server/base/app.h"
#include "server/fleet/regress/regress_detect.h"

/* TW_BUSY: another thread is searching. */
enum tw_status tw_regressions_detect(struct tw_app *app, const struct tw_regress_task *of,
        struct tw_regress_detected *ret, struct tw_err *err) TW_MUST_USE;

#endif
