/*
 * jobs_internal.h - shared by the dispatcher, the compilers of mappings, and the cleanup of the
 * data folder.
 */
#ifndef TW_JOBS_INTERNAL_H
#define TW_JOBS_INTERNAL_H

#include <jansson.h>
#include <stdatomic.h>

#include "decoder/base/err.h"
#include "server/base/child.h"
#include "server/base/config.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/storage/blob.h"

struct tw_job_row;

/* Creates a child's output file; the child itself can open nothing. */
enum tw_status tw_jobs_open_output(const char *path, int *ret, struct tw_err *err) TW_MUST_USE;
/* An unnamed file for the device's own trace, if the child finds one in an archive. */
enum tw_status tw_jobs_open_system(const struct tw_decode_parts *parts, const char *trace_id,
        int *ret, struct tw_err *err) TW_MUST_USE;
/* Stores its content as part `system` of the trace.  The caller keeps fd.  TW_NOT_FOUND: the trace
 * was deleted in the meantime. */
enum tw_status tw_jobs_store_system(const struct tw_decode_parts *parts,
        const struct tw_job_row *job, int fd, struct tw_err *err) TW_MUST_USE;

/* At start: deletes uploads of which only the row survived a power failure (I1, I9). */
enum tw_status tw_jobs_verify_uploads(const struct tw_decode_parts *parts, struct tw_err *err);
/* Claims of one of several servers (jobs_claim.c), renewed by a thread while they are held.  All of
 * these accept NULL, which is used on a single server. */
struct tw_claims;
enum tw_status tw_claims_start(
        const struct tw_decode_parts *parts, struct tw_claims **ret, struct tw_err *err);
struct tw_claims *tw_claims_stop(struct tw_claims *c);
int64_t tw_claims_lease_ms(const struct tw_decode_parts *parts);
void tw_claims_add(struct tw_claims *c, const struct tw_job_row *job);
void tw_claims_remove(struct tw_claims *c, const struct tw_job_row *job);
/* False: claims may have expired, and a newly claimed job may be one that this server is
 * decoding. */
bool tw_claims_are_current(struct tw_claims *c);
/* Releases all claims when the server stops. */
void tw_claims_release_all(const struct tw_decode_parts *parts);

/* Threads that compile mappings (jobs_map.c); *ret NULL if the server decodes nothing. */
struct tw_compilers;
enum tw_status tw_compilers_start(const struct tw_decode_parts *parts, struct tw_claims *claims,
        struct tw_compilers **ret, struct tw_err *err) TW_MUST_USE;
/* Children have drain_s seconds to end.  Accepts NULL; returns NULL. */
struct tw_compilers *tw_compilers_stop(struct tw_compilers *cs, unsigned drain_s);

/* Removes files left in spool/ by a crash. */
enum tw_status tw_jobs_clear_spool(const struct tw_decode_parts *parts, struct tw_err *err);

/* Moves files without a row to lost/, and queues ready traces whose file is missing (I9).  Runs
 * while the server serves; ends early when *stop becomes true.  False: files with a row may be left
 * in lost/, so those may not expire. */
bool tw_jobs_sweep(const struct tw_decode_parts *parts, const _Atomic bool *stop);
/* Deletes files that were in lost/ for --lost-days. */
void tw_jobs_expire_lost(const struct tw_decode_parts *parts);

#endif
