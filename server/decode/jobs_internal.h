/*
 * jobs_internal.h - between the dispatcher, mappings, and what keeps the data folder clean.
 */
#ifndef TW_JOBS_INTERNAL_H
#define TW_JOBS_INTERNAL_H

#include <jansson.h>
#include <stdatomic.h>

#include "server/base/app.h"
#include "server/base/child.h"
#include "server/catalogue/catalogue.h"
#include "server/storage/blob.h"

struct tw_jobs;
struct tw_app *tw_jobs_app(const struct tw_jobs *j);

/* What a child is to write, made anew for it: it may open nothing itself. */
enum tw_status tw_jobs_open_output(const char *path, int *ret, struct tw_err *err) TW_MUST_USE;
/* A file without a name, for the device's own trace that a child may find in an archive. */
enum tw_status tw_jobs_open_system(
        struct tw_app *app, const char *trace_id, int *ret, struct tw_err *err) TW_MUST_USE;
/* What was written there becomes part `system` of the trace.  fd stays the caller's.  TW_NOT_FOUND:
 * deleted meanwhile. */
enum tw_status tw_jobs_keep_system(
        struct tw_app *app, const struct tw_job_row *job, int fd, struct tw_err *err) TW_MUST_USE;
/* What a child's answer says (jobs_answer.c): a count, 0 when it says none; all of a trace. */
uint64_t tw_jobs_count_of(const json_t *o, const char *key);
struct tw_trace_summary tw_jobs_summary_of(const json_t *o);
void tw_jobs_count_repairs(struct tw_app *app, const json_t *told);

/* At start: uploads of which only the row survived a power cut are removed (I1, I9). */
enum tw_status tw_jobs_prove_uploads(struct tw_app *app, struct tw_err *err);
/* Claims of one of several servers (jobs_claim.c), renewed by a thread as long as they are held;
 * NULL, which all of these take, where a server is alone. */
struct tw_claims;
enum tw_status tw_claims_start(struct tw_app *app, struct tw_claims **ret, struct tw_err *err);
struct tw_claims *tw_claims_stop(struct tw_claims *c);
int64_t tw_claims_lease_ms(const struct tw_app *app);
void tw_claims_add(struct tw_claims *c, const struct tw_job_row *job);
void tw_claims_remove(struct tw_claims *c, const struct tw_job_row *job);
/* Else some may have run out, and what is claimed now may be one of ours that is being decoded. */
bool tw_claims_fresh(struct tw_claims *c);
/* All are given back: the server ends. */
void tw_claims_leave(struct tw_app *app);

/* Threads that compile mappings (jobs_map.c); *ret NULL where the server decodes nothing. */
struct tw_compilers;
enum tw_status tw_compilers_start(struct tw_app *app, struct tw_claims *claims,
        struct tw_compilers **ret, struct tw_err *err) TW_MUST_USE;
/* Children have drain_s seconds to end.  NULL is fine; returns NULL. */
struct tw_compilers *tw_compilers_stop(struct tw_compilers *cs, unsigned drain_s);
void tw_compilers_wake(struct tw_compilers *cs); /* NULL is fine */

/* Removes what a crash left in spool/. */
enum tw_status tw_jobs_clear_spool(struct tw_app *app, struct tw_err *err);

/* Moves files that no row knows to lost/, and queues ready traces again whose file is gone (I9).
 * Runs while the server serves; ends early when *stop becomes true. */
void tw_jobs_sweep(struct tw_app *app, const _Atomic bool *stop);
/* Deletes files that were in lost/ for --lost-days. */
void tw_jobs_expire_lost(struct tw_app *app);

enum tw_status tw_jobs_copy_file(const char *path, struct tw_blob_writer *w, struct tw_err *err);

#endif
