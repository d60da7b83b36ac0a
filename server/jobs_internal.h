/*
 * jobs_internal.h - between the dispatcher, mappings, and what keeps the data folder clean.
 */
#ifndef TW_JOBS_INTERNAL_H
#define TW_JOBS_INTERNAL_H

#include <jansson.h>
#include <stdatomic.h>

#include "app.h"
#include "blob.h"
#include "catalogue.h"

struct tw_jobs;
struct tw_app *tw_jobs_app(const struct tw_jobs *j);

/* The limits of a child, as its task tells them; NULL without memory. */
json_t *tw_jobs_limits(const struct tw_config *c);
/* What a child is to write, made anew for it: it may open nothing itself. */
enum tw_status tw_jobs_open_output(const char *path, int *ret, struct tw_err *err) TW_MUST_USE;
/* A file without a name, for the device's own trace that a child may find in an archive. */
enum tw_status tw_jobs_open_system(
        struct tw_app *app, const char *trace_id, int *ret, struct tw_err *err) TW_MUST_USE;
/* What was written there becomes part `system` of the trace.  fd stays the caller's.  TW_NOT_FOUND:
 * deleted meanwhile. */
enum tw_status tw_jobs_keep_system(
        struct tw_app *app, const struct tw_job_row *job, int fd, struct tw_err *err) TW_MUST_USE;
/* The error that a child answered with. */
void tw_jobs_child_error(const json_t *answer, struct tw_err *ret);

/* At start: uploads of which only the row survived a power cut are removed (I1, I9). */
enum tw_status tw_jobs_prove_uploads(struct tw_app *app, struct tw_err *err);
/* Claims (jobs_claim.c): for how long; renewed when it is time; is one still ours, else
 * TW_CONFLICT; and at the end given back. */
int64_t tw_jobs_lease_ms(const struct tw_app *app);
void tw_jobs_renew(
        struct tw_app *app, const struct tw_job_row *const *jobs, size_t n, int64_t *io_next_ms);
enum tw_status tw_jobs_still_held(
        struct tw_app *app, const struct tw_job_row *job, struct tw_err *err);
void tw_jobs_leave(struct tw_app *app);

/* Removes what a crash left in spool/. */
enum tw_status tw_jobs_clear_spool(struct tw_app *app, struct tw_err *err);

/* Removes blobs and trace files that no row knows, and queues ready traces again whose file is
 * gone (I9).  Runs while the server serves; ends early when *stop becomes true. */
void tw_jobs_sweep(struct tw_app *app, const _Atomic bool *stop);

enum tw_status tw_jobs_copy_file(const char *path, struct tw_blob_writer *w, struct tw_err *err);

#endif
