/*
 * jobs_found.h - the thread in which detectors look at traces that became ready, and at all again
 * when rules or mappings change.
 */
#ifndef TW_JOBS_FOUND_H
#define TW_JOBS_FOUND_H

#include "decoder/base/buf.h"
#include "server/base/app.h"
#include "server/base/thread/periodic.h"

enum tw_status tw_found_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;
/* Appends its metrics. */
void tw_found_job_metrics(const struct tw_app *app, struct tw_buf *out);

#endif
