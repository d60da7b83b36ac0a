/*
 * catalogue_job.h - the queue of decoders and of compilers of mappings.  Thread: any.
 */
#ifndef TW_CATALOGUE_JOB_H
#define TW_CATALOGUE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_catalogue;
struct tw_death_note;
struct tw_part;
struct tw_trace_summary;

enum tw_queue { TW_QUEUE_TRACES, TW_QUEUE_MAPPINGS, TW_QUEUES };

struct tw_job_row {
	const char *project_id, *trace_id; /* of a mapping: the job's id */
	uint32_t attempts;                 /* including this one */
	const char *owner;                 /* the claiming process */
	enum tw_queue queue;
	/* Of a claimed trace: its parts, without those extracted from an archive, which is done
	 * again. */
	const struct tw_part *parts;
	size_t n_parts;
};
/* Claims the oldest queued job of the project with the least decoder time (fair.h); of several such
 * projects, the next after the one served last.  Jobs with an expired lease come first.
 * TW_NOT_FOUND: no job.  `owner` is a name unique to this process.  Several servers never claim the
 * same job. */
struct tw_claim {
	enum tw_queue queue;
	const char *owner;
	int64_t lease_ms;
	unsigned per_project; /* limit of the owner's claims per project, 0: none */
};
enum tw_status tw_catalogue_queue_claim(struct tw_catalogue *c, const struct tw_claim *of,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err) TW_MUST_USE;
/* Traces: claims up to cap jobs of one project, more than one only if each is an upload of one part
 * with at most small_bytes that was not attempted before.  After an error other than TW_NOT_FOUND
 * some jobs may have been claimed: call tw_catalogue_jobs_release_except before the next claim. */
enum tw_status tw_catalogue_jobs_claim(struct tw_catalogue *c, const struct tw_claim *of,
        uint64_t small_bytes, struct tw_arena *a, struct tw_job_row *ret, size_t cap, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Renews these claims for lease_ms; lost ones stay lost.  Claims of the owner that are not listed
 * (it may not know that it got one) expire.  Call from one thread at a time. */
enum tw_status tw_catalogue_jobs_renew(struct tw_catalogue *c, const struct tw_job_row *const *jobs,
        size_t n, int64_t lease_ms, struct tw_err *err) TW_MUST_USE;
/* Whether its owner holds it for at least for_ms.  Check before moving the result into place. */
enum tw_status tw_catalogue_job_held(struct tw_catalogue *c, const struct tw_job_row *job,
        int64_t for_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* The same for each of several that were claimed together, or have the same project, owner and
 * attempts. */
enum tw_status tw_catalogue_jobs_held(struct tw_catalogue *c, const struct tw_job_row *const *jobs,
        size_t n, int64_t for_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Ends the claim as if it had not been made. */
enum tw_status tw_catalogue_job_return(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err);
/* Ends the job, as the functions below: the trace is ready / failed / queued again.  TW_CONFLICT:
 * its lease had expired and another server has it; nothing was changed.  TW_NOT_FOUND: it was
 * deleted.  If the owner still holds the job, calls `move` (may be NULL) before the end becomes
 * visible, to move the result into place: no other server that had the job can do so then or later.
 */
struct tw_job_move {
	enum tw_status (*run)(void *arg, struct tw_err *err);
	void *arg;
};
enum tw_status tw_catalogue_job_publish(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *summary, const struct tw_job_move *move,
        struct tw_err *err) TW_MUST_USE;
/* The same for several jobs, in one transaction: ret[i] is TW_OK, TW_CONFLICT or TW_NOT_FOUND.  On
 * failure no job is ended, but some files may already be stored.  `moves`: one per job, or NULL.
 */
enum tw_status tw_catalogue_jobs_publish(struct tw_catalogue *c, const struct tw_job_row *jobs,
        const struct tw_trace_summary *summaries, const struct tw_job_move *moves, size_t n,
        enum tw_status *ret, struct tw_err *err) TW_MUST_USE;
/* `death`: decoders died on it, so it is quarantined; NULL: the decoder reported an error. */
enum tw_status tw_catalogue_job_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, const struct tw_death_note *death,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_job_retry(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err) TW_MUST_USE;
/* Queues the job again without consuming an attempt, because of the server's own state (a full
 * disk); the trace shows the reason until it is decoded.  TW_NOT_FOUND: deleted. */
enum tw_status tw_catalogue_job_wait(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err) TW_MUST_USE;
/* At start: a single server queues all claimed jobs again, as their claimer is dead; with several
 * servers they are claimed once their lease ends.  Clears the delays of postponed jobs. */
enum tw_status tw_catalogue_jobs_recover(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
/* Queues again the jobs that this owner has claimed, except those held: after a claim whose reply
 * was lost. */
enum tw_status tw_catalogue_jobs_release_except(struct tw_catalogue *c, enum tw_queue queue,
        const char *owner, const char *const *held, size_t n, struct tw_err *err) TW_MUST_USE;
/* Queues this owner's jobs again, as it stops. */
enum tw_status tw_catalogue_jobs_leave(
        struct tw_catalogue *c, const char *owner, struct tw_err *err) TW_MUST_USE;
/* Decodes a trace with a missing or damaged file again from its upload.  TW_NOT_FOUND if the upload
 * is not kept. */
enum tw_status tw_catalogue_trace_requeue(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
struct tw_queue_stats {
	uint64_t queued, decoding;
	uint64_t mappings, compiling; /* queued ones, and claimed ones */
	int64_t oldest_ms;            /* age of the oldest queued */
};
enum tw_status tw_catalogue_queue_stats(
        struct tw_catalogue *c, struct tw_queue_stats *ret, struct tw_err *err) TW_MUST_USE;

struct tw_waiting { /* of a project: traces not decoded yet, including those being decoded */
	char project_id[TW_ID_BYTES];
	uint64_t traces, bytes;
};
/* Of each project that has any, by id. */
enum tw_status tw_catalogue_waiting(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_waiting **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
