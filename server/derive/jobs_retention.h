/*
 * jobs_retention.h - deletes in the background what its project's rules say is due.
 *
 * Thread: by the owner.
 */
#ifndef TW_JOBS_RETENTION_H
#define TW_JOBS_RETENTION_H

#include "decoder/base/err.h"
#include "server/base/app.h"
#include "server/base/file/disk.h"
#include "server/base/thread/periodic.h"

/* tw_periodic_stop is owed. */
enum tw_status tw_retention_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;

/* The data folder's disk; false where it has no floor: --max-disk-use 0, or files are in a store.
 */
bool tw_retention_disk(const struct tw_app *app, struct tw_disk *ret);

#endif
