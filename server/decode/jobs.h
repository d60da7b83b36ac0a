/*
 * jobs.h - the running side of the queues of traces and mappings: claim, child, result, retry.
 *
 * A dispatcher thread claims queued rows and starts one limited child process
 * per job, at most config.decode_workers at once.  A child that crashes, loops or exhausts memory
 * affects only its own trace: it is killed at its limits.  After a crash, a lack of memory or an
 * upload that cannot be read from storage, the job is attempted up to config.worker_attempts times,
 * then the trace fails with the reason (I7).  Bad input, and exceeding the limit of time or CPU,
 * fail it immediately.  If the server lacks space, descriptors or storage, no attempt counts: the
 * trace stays queued, reports the reason, and is attempted again within a minute after the cause
 * has ended.  Mappings have separate compilers (jobs_map.c) with the same rules.
 * Thread: start and stop by the owner; the rest by any.
 */
#ifndef TW_JOBS_H
#define TW_JOBS_H

#include "decoder/base/err.h"
#include "server/catalogue/traces/catalogue_job.h"

struct tw_blobs;
struct tw_catalogue;
struct tw_config;
struct tw_jobs;
struct tw_metrics;
struct tw_recorder;
struct tw_store_job;

struct tw_decode_parts {
	const struct tw_config *config;
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_recorder *recorder;
	struct tw_store_job *store_job;
	struct tw_metrics *metrics;
	const char *node; /* this process among all servers */
	/* A job ended, on any thread; a mapping also without success.  NULL: nothing. */
	void (*ended)(void *arg, enum tw_queue queue);
	/* Called by the dispatcher about once a second.  NULL: nothing. */
	void (*each_poll)(void *arg);
	void *arg;
};

/* Before a catalogue is made: TW_CONFLICT if the data folder has files.  `in_postgres`: the
 * catalogue is in PostgreSQL and may know the stored ones; then only the spool must be empty. */
enum tw_status tw_jobs_refuse_without_catalogue(
        struct tw_blobs *b, bool in_postgres, struct tw_err *err) TW_MUST_USE;
/* Before anything is changed: TW_CONFLICT if the data folder has many traces that the catalogue
 * does not know, because it is an older or another one.  Reads the names of all traces. */
enum tw_status tw_jobs_refuse_other_catalogue(
        struct tw_blobs *b, struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;

/* Recovers the state left by a crashed server, sweeps data/ (I9), then starts dispatching.  Copies
 * parts. */
enum tw_status tw_jobs_start(
        const struct tw_decode_parts *parts, struct tw_jobs **ret, struct tw_err *err) TW_MUST_USE;
/* Stops claiming, waits for running children up to the drain time, then kills them; their jobs are
 * queued again. */
struct tw_jobs *tw_jobs_stop(struct tw_jobs *j, unsigned drain_s);
void tw_jobs_wake(struct tw_jobs *j); /* a row was queued */
/* Returns whether traces can be decoded.  Reads only memory.  TW_OK also if another server has this
 * role. */
enum tw_status tw_jobs_health(const struct tw_jobs *j, struct tw_err *err);

void tw_jobs_wake_compilers(struct tw_jobs *j); /* a mapping was queued */

#endif
