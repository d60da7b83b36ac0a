/*
 * jobs.h - the running side of the queues of traces and mappings: claim, child, result, retry.
 *
 * A dispatcher thread claims queued rows and starts one limited child process
 * per job, at most config.decode_workers at once.  A child that crashes, loops
 * or eats memory costs its own trace: it is killed at its limits.  After a crash,
 * a lack of memory or an upload that cannot be read from storage the job is
 * tried up to config.worker_tries times, then the trace is failed with the
 * reason (I7).  Bad input and a deadline of time or CPU fail immediately.  If the
 * server lacks space, descriptors or storage, no try counts: the trace stays
 * queued, reports why, and is tried again within a minute of the cause's end.
 * Mappings have compilers of their own (jobs_map.c), under the same rules.
 * Thread: start and stop by the owner; the rest by any.
 */
#ifndef TW_JOBS_H
#define TW_JOBS_H

#include "server/base/app.h"

#include "decoder/base/err.h"

struct tw_blobs;
struct tw_jobs;

/* Before a catalogue is made: TW_CONFLICT if the data folder has files. */
enum tw_status tw_jobs_refuse_without_catalogue(
        struct tw_blobs *b, const char *data, struct tw_err *err) TW_MUST_USE;
/* Before anything is changed: TW_CONFLICT if the data folder has many traces that the catalogue
 * does not know, because it is an older or another one.  Reads the names of all traces. */
enum tw_status tw_jobs_refuse_other_catalogue(struct tw_app *app, struct tw_err *err) TW_MUST_USE;

/* Recovers the state left by a crashed server, sweeps data/ (I9), then starts dispatching.  The
 * dispatcher thread calls each_poll (NULL: nothing) from time to time. */
enum tw_status tw_jobs_start(struct tw_app *app, void (*each_poll)(struct tw_app *),
        struct tw_jobs **ret, struct tw_err *err) TW_MUST_USE;
/* Stops claiming, waits for running children up to the drain time, then kills them; their jobs are
 * queued again. */
struct tw_jobs *tw_jobs_stop(struct tw_jobs *j, unsigned drain_s);
void tw_jobs_wake(struct tw_jobs *j); /* a row was queued */
/* Returns whether traces can be decoded.  Reads only memory.  TW_OK also if another server has this
 * role. */
enum tw_status tw_jobs_health(const struct tw_jobs *j, struct tw_err *err);

void tw_jobs_wake_compilers(struct tw_jobs *j); /* a mapping was queued */

/* Deletes those of the blobs that no row references any longer, after the transaction that found
 * them unused. */
struct tw_blob_list;
void tw_jobs_drop_unused(struct tw_app *app, const struct tw_blob_list *blobs);
/* The same for a blob that never had a row. */
void tw_jobs_drop_orphan(struct tw_app *app, const char *sha256);

#endif
