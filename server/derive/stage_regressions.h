/*
 * jobs_rollup.h - counts ready traces in the rollups, in the background.
 *
 * One thread: folds what is ready, names methods again when a mapping came, adds
 * deltas into parts when a cell has enough of them or its day is over, and
 * deletes what is older than rollups are kept.
 * Thread: by the owner.
 */
#ifndef TW_STAGE_REGRESSIONS_H
#define TW_STAGE_REGRESSIONS_H

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/base/app.h"
#include "server/base/thread/periodic.h"
#include "server/fleet/regress/regress_look.h"

/* Makes app->folder.  tw_periodic_stop, and then tw_folder_free, are owed; wake it when a trace is
 * ready or a mapping came. */
enum tw_status tw_rollup_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;
/* Looks for what got slower.  TW_BUSY: somebody does already. */
enum tw_status tw_rollup_job_look(struct tw_app *app, const struct tw_regress_task *of,
        struct tw_regress_looked *ret, struct tw_err *err) TW_MUST_USE;
/* Appends how far it is, for /metrics. */
enum tw_status tw_rollup_job_metrics(
        const struct tw_app *app, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif
