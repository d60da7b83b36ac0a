/*
 * jobs_names.h - counts in the background how much of each trace its mappings name.
 *
 * One thread.  Every ready trace of a build is counted once, and again when a mapping
 * of its build came (I8); the sums are in the catalogue, so that asking for them costs
 * a row.  Traces are taken a few at a time, and a damaged one counts as nothing.
 * Thread: by the owner.
 */
#ifndef TW_JOBS_NAMES_H
#define TW_JOBS_NAMES_H

#include "decoder/base/err.h"
#include "server/base/app.h"
#include "server/base/thread/periodic.h"

/* tw_periodic_stop is owed; wake it when a trace is ready or a mapping came. */
enum tw_status tw_names_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;

#endif
