/*
 * jobs_store.h - files that nothing names any more go, and storage elsewhere is looked after.
 *
 * In the data folder a file is deleted where it is asked for.  Elsewhere its key is noted and a
 * thread deletes it, again and again until the store takes it; what a crash or an end of the server
 * makes it forget, its sweep finds: of what no row names it deletes what is older than a day, as
 * younger objects may be uploads on their way in (of other servers, too).  The same thread asks the
 * store now and then whether it is there.
 * Thread: any; start and stop by the owner.
 */
#ifndef TW_JOBS_STORE_H
#define TW_JOBS_STORE_H

#include "server/base/app.h"

/* Does nothing for a data folder: *ret NULL. */
enum tw_status tw_store_job_start(
        struct tw_app *app, struct tw_store_job **ret, struct tw_err *err) TW_MUST_USE;
struct tw_store_job *tw_store_job_stop(struct tw_store_job *j); /* NULL is fine; returns NULL */

/* Blobs that no row names: called with tw_blob_drop_begin. */
void tw_store_drop_blobs(struct tw_app *app, const char *const *sha256, size_t n);
/* A trace's decoded file, whose row is gone or tells so. */
void tw_store_drop_trace(struct tw_app *app, const char *trace_id);
/* An object of a store elsewhere that has no row by its nature (direct.h). */
void tw_store_drop_key(struct tw_app *app, const char *key);

#endif
