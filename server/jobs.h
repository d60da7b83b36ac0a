/*
 * jobs.h - the queue's running side: claim, child, result, retry.
 *
 * A dispatcher thread claims queued rows and starts one limited child process
 * per job, at most config.decode_workers at once.  A child that crashes, loops
 * or eats memory costs its own trace: it is killed at its limits, the job is
 * retried up to config.worker_tries, then the trace is failed with the reason
 * (I7).  Input that is simply bad fails at once.  What the server itself lacks
 * (space on the disk, processes) costs no try: the trace stays queued, says why,
 * and is tried again within a minute of the cause's end.
 * Thread: start and stop by the owner; wake and run_map by any.
 */
#ifndef TW_JOBS_H
#define TW_JOBS_H

#include "app.h"
#include <jansson.h>

#include "base/err.h"

struct tw_jobs;

/* Recovers what a dead server left, sweeps data/ (I9), then starts dispatching. */
enum tw_status tw_jobs_start(
        struct tw_app *app, struct tw_jobs **ret, struct tw_err *err) TW_MUST_USE;
/* Stops claiming, waits for running children up to the drain time, then kills them; their jobs are
 * queued again. */
struct tw_jobs *tw_jobs_stop(struct tw_jobs *j, unsigned drain_s);
void tw_jobs_wake(struct tw_jobs *j); /* a row was queued */

/* Compiles mapping text (blob source_sha256) into an image blob in a limited child; waits for it.
 * kind: "map" (methodMapping.txt) or "retrace" (R8's mapping.txt).  *ret_summary, owed to
 * json_decref, is what the child counted: worker.c, map_answer and retrace_answer.
 * Call on the query pool, not on an event loop. */
enum tw_status tw_jobs_run_map(struct tw_jobs *j, const char *kind, const char *source_sha256,
        char ret_image_sha256[65], json_t **ret_summary, struct tw_err *err) TW_MUST_USE;

#endif
