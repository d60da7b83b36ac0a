/*
 * jobs_names.h - counts in the background how much of each trace its mappings name.
 *
 * One thread.  Every ready trace of a build is counted once, and again when a mapping
 * of its build came (I8); the sums are in the catalogue, so that asking for them costs
 * a row.  Traces are taken a few at a time, and a damaged one counts as nothing.
 * Thread: start and stop by the owner; wake by any.
 */
#ifndef TW_JOBS_NAMES_H
#define TW_JOBS_NAMES_H

#include "app.h"
#include "base/err.h"

struct tw_names_job;

enum tw_status tw_names_job_start(
        struct tw_app *app, struct tw_names_job **ret, struct tw_err *err) TW_MUST_USE;
/* Ends after the trace at hand; NULL is fine, returns NULL. */
struct tw_names_job *tw_names_job_stop(struct tw_names_job *n);
void tw_names_job_wake(struct tw_names_job *n); /* a trace is ready, or a mapping came */

#endif
