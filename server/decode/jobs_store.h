/*
 * jobs_store.h - deletes unreferenced files and monitors object storage.
 *
 * In the data folder a file is deleted immediately.  In object storage the transaction that
 * removed its row added its key (file_drop.h), and a thread deletes it, with retries until the
 * store accepts it.  Objects that a killed server stored and never referred to are found by a
 * sweep: it deletes unreferenced objects older than a day, as younger ones may be uploads in
 * progress (of other servers, too).  The same thread checks periodically whether the store is
 * reachable. Thread: any; start and stop by the owner.
 */
#ifndef TW_JOBS_STORE_H
#define TW_JOBS_STORE_H

#include "server/base/app.h"

/* Does nothing for a data folder: *ret NULL. */
enum tw_status tw_store_job_start(
        struct tw_app *app, struct tw_store_job **ret, struct tw_err *err) TW_MUST_USE;
struct tw_store_job *tw_store_job_stop(struct tw_store_job *j); /* accepts NULL; returns NULL */

/* Blobs without a row: call with tw_blob_drop_begin in effect. */
void tw_store_drop_blobs(struct tw_app *app, const char *const *sha256, size_t n);
/* The decoded file and the record of a trace, after its row was deleted or updated. */
void tw_store_drop_trace(struct tw_app *app, const char *trace_id);
/* The same, stored after the row was deleted. */
void tw_store_drop_orphan(struct tw_app *app, const char *trace_id);
/* An object in object storage that never has a row (direct.h). */
void tw_store_drop_key(struct tw_app *app, const char *key);

#endif
