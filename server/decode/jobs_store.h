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

#include "server/catalogue/storage/storage_owner.h"

struct tw_blob_list;
struct tw_recorder;
struct tw_store_job;

struct tw_store_job_parts {
	struct tw_storage_claim claim;
	bool unverified;              /* the store was unreachable: the claim is verified later */
	const char *node;             /* this process among all servers */
	struct tw_recorder *recorder; /* writes missing records after an outage */
};

/* Starts the thread only for object storage. */
enum tw_status tw_store_job_start(const struct tw_store_job_parts *parts, struct tw_store_job **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_store_job *tw_store_job_stop(struct tw_store_job *j); /* accepts NULL; returns NULL */

/* Deletes those of the blobs that no row references any longer, after the transaction that found
 * them unused. */
void tw_store_drop_blobs(struct tw_store_job *j, const struct tw_blob_list *blobs);
/* The same for a blob that never had a row. */
void tw_store_drop_orphan_blob(struct tw_store_job *j, const char *sha256);
/* The decoded file and the record of a trace, after its row was deleted or updated. */
void tw_store_drop_trace(struct tw_store_job *j, const char *trace_id);
/* The same, stored after the row was deleted. */
void tw_store_drop_orphan(struct tw_store_job *j, const char *trace_id);
/* An object in object storage that never has a row (direct.h). */
void tw_store_drop_key(struct tw_store_job *j, const char *key);

#endif
