/*
 * jobs_retention.h - deletes expired traces and uploads in the background.
 *
 * Thread: by the owner.
 */
#ifndef TW_JOBS_RETENTION_H
#define TW_JOBS_RETENTION_H

#include "decoder/base/err.h"
#include "server/base/app.h"
#include "server/base/file/disk.h"
#include "server/base/thread/periodic.h"

/* Stop it with tw_periodic_stop. */
enum tw_status tw_retention_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;

/* Usage of the data folder's disk; false if it has no limit: --max-disk-use 0, or files are in an
 * object store. */
bool tw_retention_disk(const struct tw_app *app, struct tw_disk *ret);

#endif
