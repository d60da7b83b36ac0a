/*
 * jobs_hang.h - finds ANRs and contended locks in ready traces, in the background.
 *
 * One thread: looks at what is ready, names and keys again when a mapping came or
 * rules changed, and forgets what is older than rollups are kept.
 * Thread: by the owner.
 */
#ifndef TW_JOBS_HANG_H
#define TW_JOBS_HANG_H

#include "decoder/base/err.h"
#include "server/base/app.h"
#include "server/base/thread/periodic.h"

/* Makes app->hanger.  tw_periodic_stop, and then tw_hanger_free, are owed; wake it when a trace is
 * ready, a mapping came or rules changed. */
enum tw_status tw_hang_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;

#endif
