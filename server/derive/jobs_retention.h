/*
 * jobs_retention.h - deletes expired traces and uploads, and deleted projects, in the background.
 *
 * Thread: by the owner; wake by any.
 */
#ifndef TW_JOBS_RETENTION_H
#define TW_JOBS_RETENTION_H

#include "decoder/base/err.h"
#include "server/base/config.h"
#include "server/base/file/disk.h"
#include "server/derive/delete.h"
#include "server/derive/lease.h"

struct tw_fleet_store;
struct tw_metrics;
struct tw_retention_job;

struct tw_retention_parts {
	const struct tw_config *config;
	struct tw_deleter deleter;
	struct tw_fleet_store *fleet;
	struct tw_metrics *metrics;
	const struct tw_lease *lease; /* NULL: there are no other servers */
};

enum tw_status tw_retention_job_start(const struct tw_retention_parts *parts,
        struct tw_retention_job **ret, struct tw_err *err) TW_MUST_USE;
/* Runs it soon, if this server holds the lease.  Accepts NULL. */
void tw_retention_job_wake(struct tw_retention_job *j);
struct tw_retention_job *tw_retention_job_stop(struct tw_retention_job *j); /* accepts NULL; returns
                                                                             * NULL */

/* Usage of the data folder's disk; false if it has no limit: --max-disk-use 0, or files are in an
 * object store. */
bool tw_retention_disk(const struct tw_config *config, struct tw_disk *ret);

#endif
