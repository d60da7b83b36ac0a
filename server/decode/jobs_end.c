/*
 * jobs_end.c - the outcome of a job: stored and ready, failed, retried, or postponed.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "decoder/decoder.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/log.h"
#include "server/base/text/json.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/jobs_run.h"
#include "server/decode/jobs_store.h"
#include "server/http/metrics.h"

enum { PAUSE_LEAST_MS = 1000, PAUSE_MOST_MS = 30000, PUT_MS = 10000, MOVES = 4 };
enum { LEASE_KNOWN_MS = 2000 };

/* --- a child's result, for the catalogue and the metrics --- */

static struct tw_trace_summary summary_in(const json_t *o)
{
	return (struct tw_trace_summary){
	        .slices = tw_json_count(o, "slices"),
	        .input_bytes = tw_json_count(o, "input_bytes"),
	        .decoded_bytes = tw_json_count(o, "decoded_bytes"),
	        .file_bytes = tw_json_count(o, "file_bytes"),
	        .threads = (uint32_t)tw_json_count(o, "threads"),
	        .methods = (uint32_t)tw_json_count(o, "methods"),
	        .max_depth = (uint32_t)tw_json_count(o, "max_depth"),
	        .losses = (uint32_t)tw_json_count(o, "losses"),
	        .repairs = (uint32_t)tw_json_count(o, "repairs"),
	        .duration_ns = tw_json_integer(o, "duration_ns"),
	        .format = tw_json_text(o, "format"),
	        .anr = tw_json_text(o, "anr"),
	        .decoder_version = (uint32_t)tw_json_count(o, "decoder_version"),
	};
}

static void count_repairs(const struct tw_decode_parts *parts, const json_t *report)
{
	const char *name;
	json_t *count;

	json_object_foreach(json_object_get(report, "repairs_by_name"), name, count)
	{
		tw_metrics_repair(parts->metrics, name, (uint64_t)json_integer_value(count));
	}
}

/* --- the end of a job --- */

static void log_result(const struct running *r, const char *outcome, const struct tw_err *why)
{
	tw_log(why ? TW_LOG_WARN : TW_LOG_INFO, "decoded", tw_log_text("trace", r->job.trace_id),
	        tw_log_text("outcome", outcome), tw_log_number("attempt", r->job.attempts),
	        tw_log_number("ms", tw_monotonic_ms() - r->started_ms),
	        tw_log_text("reason", why ? why->msg : ""));
}

void tw_run_release(struct running *r)
{
	if (r->held)
		tw_trace_release(r->jobs->parts.blobs, r->job.trace_id);
	r->held = false;
}

static void drop_files(struct tw_jobs *j, struct running *r)
{
	(void)unlink(r->out);
	tw_run_release(r);
	tw_store_drop_orphan(j->parts.store_job, r->job.trace_id);
}

/* Another server is decoding the trace or has decoded it: the stored file belongs to that
 * server. */
void tw_run_discard(struct running *r)
{
	(void)unlink(r->out);
	tw_log(TW_LOG_WARN, "claim_lost", tw_log_text("trace", r->job.trace_id));
}

/* Once: the transaction of a group may fail after it, and each job is then recorded separately. */
static enum tw_status put_file(void *arg, struct tw_err *err)
{
	struct running *r = arg;
	enum tw_status st =
	        r->stored ? TW_OK
	                  : tw_trace_publish(r->jobs->parts.blobs, r->out, r->job.trace_id, err);

	r->stored = st == TW_OK;
	tw_crash_point("trace_renamed");
	return st;
}

/* With several servers on one folder, the transaction that ends the claim also moves the file into
 * place, so that both happen or neither. Object storage is too slow for that; there each server
 * stores the same content for a trace. */
static bool publishes_in_transaction(const struct running *r)
{
	return r->jobs->claims && !tw_blobs_remote(r->jobs->parts.blobs);
}

static enum tw_status is_held(const struct running *r, struct tw_err *err)
{
	bool held = true;
	enum tw_status st = TW_OK;

	/* its fsync and the pool's queue may take long */
	if (r->jobs->claims && (!r->lease_ms || tw_monotonic_ms() - r->lease_ms >= LEASE_KNOWN_MS))
		st = tw_catalogue_job_held(r->jobs->parts.catalogue, &r->job, PUT_MS, &held, err);
	if (st == TW_OK && !held)
		st = tw_fail(
		        err, TW_CONFLICT, "the claim expired, and another server has the trace");
	return st;
}

/* A small output becomes part of the trace's rows. */
static enum tw_status take_small(struct running *r, struct tw_err *err)
{
	const size_t cap = 2 * r->file_bytes + 1;
	char *hex = tw_mem_alloc(cap, 1); /* not of the arena, which the jobs of a group share */
	const int fd = hex ? open(r->out, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	enum tw_status st = fd >= 0 ? tw_fd_hex(fd, hex, cap, err)
	                    : hex   ? tw_fail_errno(err, TW_IO, "a trace file cannot be read")
	                            : tw_oom(err);

	if (fd >= 0)
		(void)close(fd);
	if (st != TW_OK) {
		tw_mem_free(hex);
		return st;
	}
	(void)unlink(r->out);
	r->file_hex = hex;
	return TW_OK;
}

/* Makes the child's output durable, if the child has not, and hashes it. */
static enum tw_status finish_output(struct running *r, struct tw_err *err)
{
	const int fd = open(r->out, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st = TW_OK;

	if (fd < 0)
		return tw_fail_errno(err, TW_IO, "a trace file cannot be opened");
	if (r->in_group && fsync(fd) != 0)
		st = tw_fail_errno(
		        err, tw_disk_status(errno), "a trace file cannot be made durable");
	if (st == TW_OK)
		st = tw_sha256_fd(fd, r->sha256, &r->file_bytes, err);
	(void)close(fd);
	return st;
}

void tw_run_check_leases(struct tw_jobs *j, struct running *group, size_t n)
{
	const struct tw_job_row *jobs[TW_CHILD_JOBS];
	const int64_t now = tw_monotonic_ms();
	bool held[TW_CHILD_JOBS];

	for (size_t i = 0; i < n; i++)
		jobs[i] = &group[i].job;
	if (!j->claims || !tw_blobs_remote(j->parts.blobs) ||
	        tw_catalogue_jobs_held(
	                j->parts.catalogue, jobs, n, PUT_MS + LEASE_KNOWN_MS, held, NULL) != TW_OK)
		return;
	for (size_t i = 0; i < n; i++)
		group[i].lease_ms = held[i] ? now : 0;
}

/* Moves the child's output to storage.  May run in parallel with the dispatcher. */
enum tw_status tw_run_store(void *arg, struct tw_err *err)
{
	struct running *r = arg;
	const struct tw_decode_parts *parts = &r->jobs->parts;
	const json_t *summary = json_object_get(r->result, "summary");
	enum tw_status st = finish_output(r, err);

	if (st == TW_OK && tw_blobs_remote(parts->blobs))
		st = is_held(r, err);
	if (st == TW_OK && tw_json_count(summary, "system_bytes"))
		st = tw_jobs_store_system(parts, &r->job, r->system_fd, err);
	if (st == TW_OK && r->file_bytes <= tw_blobs_row_bytes(parts->blobs))
		return take_small(r, err);
	if (st == TW_OK)
		st = tw_trace_hold(parts->blobs, r->job.trace_id, err);
	if (st != TW_OK)
		return st;
	r->held = true;
	return publishes_in_transaction(r) ? TW_OK : put_file(r, err);
}

static struct tw_trace_summary summary_of(const struct running *r)
{
	struct tw_trace_summary s = summary_in(json_object_get(r->result, "summary"));

	s.file_sha256 = r->sha256;
	s.file_bytes = r->file_bytes;
	s.file_hex = r->file_hex;
	return s;
}

/* The job's end is in the catalogue, or was refused. */
static enum tw_status recorded(struct tw_jobs *j, struct running *r, enum tw_status st)
{
	const json_t *summary = json_object_get(r->result, "summary");

	if (st == TW_NOT_FOUND) { /* the trace was deleted during its decode: delete its file too */
		drop_files(j, r);
		return TW_OK;
	}
	if (st == TW_OK) {
		tw_record_trace(j->parts.recorder, r->job.project_id, r->job.trace_id);
		tw_metrics_decode(j->parts.metrics, summary_in(summary).format, "ready",
		        (uint64_t)(tw_monotonic_ms() - r->started_ms) * 1000000);
		count_repairs(&j->parts, summary);
		log_result(r, "ready", NULL);
	}
	return st;
}

static void wake_stages(struct tw_jobs *j)
{
	tw_crash_point("row_ready");
	if (j->parts.ended)
		j->parts.ended(j->parts.arg, TW_QUEUE_TRACES);
}

enum tw_status tw_run_record(struct tw_jobs *j, struct running *r, struct tw_err *err)
{
	const struct tw_job_move move = {put_file, r};
	const struct tw_trace_summary s = summary_of(r);
	enum tw_status st = tw_catalogue_job_publish(
	        j->parts.catalogue, &r->job, &s, publishes_in_transaction(r) ? &move : NULL, err);

	wake_stages(j);
	return recorded(j, r, st);
}

/* While a transaction moves files, others wait for their traces. */
size_t tw_run_together(struct running *const *runs, size_t n)
{
	return publishes_in_transaction(runs[0]) && n > MOVES ? MOVES : n;
}

enum tw_status tw_run_record_all(struct tw_jobs *j, struct running *const *runs, size_t n,
        enum tw_status *ret, struct tw_err *err)
{
	struct tw_job_row jobs[TW_CHILD_JOBS];
	struct tw_trace_summary summaries[TW_CHILD_JOBS];
	struct tw_job_move moves[TW_CHILD_JOBS];
	enum tw_status st;

	for (size_t i = 0; i < n; i++) {
		jobs[i] = runs[i]->job;
		summaries[i] = summary_of(runs[i]);
		moves[i] = (struct tw_job_move){put_file, runs[i]};
	}
	st = tw_catalogue_jobs_publish(j->parts.catalogue, jobs, summaries,
	        publishes_in_transaction(runs[0]) ? moves : NULL, n, ret, err);
	if (st != TW_OK)
		return st;
	wake_stages(j);
	for (size_t i = 0; i < n; i++)
		ret[i] = recorded(j, runs[i], ret[i]);
	return TW_OK;
}

/* Whether the server is at fault, not the trace. A child that exceeds its own memory limit, and an
 * unreadable upload, concern one trace only. */
bool tw_run_is_environment(enum tw_status st, enum fault fault)
{
	return st == TW_FULL || st == TW_BUSY || (st == TW_IO && fault != FAULT_INPUT) ||
	       (st == TW_NOMEM && fault != FAULT_CHILD);
}

/* A deadline would be exceeded again, unless the child was killed because the machine was short of
 * memory, or other jobs had used its time. */
static bool may_retry(const struct running *r, enum tw_status st, enum fault fault)
{
	return st == TW_NOMEM || st == TW_BUG || (st == TW_IO && fault == FAULT_INPUT) ||
	       (st == TW_DEADLINE && (r->end.death == TW_DEATH_MEMORY || r->in_group));
}

static void pause_starting(struct tw_jobs *j)
{
	int64_t now = tw_monotonic_ms();

	if (now < j->resume_ms)
		return; /* already counted for another child */
	j->pause_ms = j->pause_ms ? j->pause_ms * 2 : PAUSE_LEAST_MS;
	if (j->pause_ms > PAUSE_MOST_MS)
		j->pause_ms = PAUSE_MOST_MS;
	j->resume_ms = now + j->pause_ms;
}

static enum tw_status write_ending(struct tw_jobs *j, struct running *r, struct tw_err *err)
{
	struct tw_catalogue *c = j->parts.catalogue;
	const struct tw_death_note note = {
	        tw_death_name(r->end.death), r->end.signal, r->end.format, TW_DECODER_VERSION};

	if (r->ending == ENDING_WAIT)
		return tw_catalogue_job_wait(c, &r->job, &r->why, err);
	if (r->ending == ENDING_RETRY)
		return tw_catalogue_job_retry(c, &r->job, err);
	if (r->ending == ENDING_RETURN)
		return tw_catalogue_job_return(c, &r->job, err);
	return tw_catalogue_job_failed(c, &r->job, &r->why, r->end.death ? &note : NULL, err);
}

/* Returns false if the result could not be written; call again later. */
bool tw_run_write_ending(struct tw_jobs *j, struct running *r)
{
	struct tw_err err;
	enum tw_status st = write_ending(j, r, &err);

	if (st == TW_NOT_FOUND) /* the trace was deleted */
		drop_files(j, r);
	else if (st == TW_CONFLICT)
		tw_run_discard(r);
	else if (st != TW_OK)
		tw_log_err(TW_LOG_ERROR, "job_result_not_written", r->job.trace_id, &err);
	else if (r->ending == ENDING_FAILED)
		tw_record_trace(j->parts.recorder, r->job.project_id, r->job.trace_id);
	else if (r->ending == ENDING_RETURN)
		j->claim_ms = 0; /* it can be claimed again */
	return st == TW_OK || st == TW_NOT_FOUND || st == TW_CONFLICT;
}

bool tw_run_return(struct tw_jobs *j, struct running *r)
{
	r->ending = ENDING_RETURN;
	(void)unlink(r->out);
	return tw_run_write_ending(j, r);
}

bool tw_run_abandon(struct tw_jobs *j, struct running *r)
{
	r->ending = ENDING_RETRY; /* if the claim still exists, the trace is queued again */
	tw_log(TW_LOG_INFO, "decoding_abandoned", tw_log_text("trace", r->job.trace_id),
	        tw_log_number("attempt", r->job.attempts),
	        tw_log_number("ms", tw_monotonic_ms() - r->started_ms));
	(void)unlink(r->out);
	return tw_run_write_ending(j, r);
}

bool tw_run_fail(struct tw_jobs *j, struct running *r, const struct tw_err *why, enum fault fault)
{
	static const char *const outcomes[] = {"", "failed", "retry", "postponed"};

	r->ending = tw_run_is_environment(why->code, fault) ? ENDING_WAIT
	            : may_retry(r, why->code, fault) &&
	                            r->job.attempts < j->parts.config->worker_attempts
	                    ? ENDING_RETRY
	                    : ENDING_FAILED;
	r->why = *why;
	if (r->ending == ENDING_WAIT)
		pause_starting(j);
	(void)unlink(r->out);
	if (r->end.death)
		tw_metrics_death(j->parts.metrics, r->end.death);
	tw_metrics_decode(j->parts.metrics, r->end.format,
	        r->ending == ENDING_FAILED ? tw_status_name(why->code) : outcomes[r->ending],
	        (uint64_t)(tw_monotonic_ms() - r->started_ms) * 1000000);
	log_result(r, outcomes[r->ending], why);
	if (r->end.death && r->ending == ENDING_FAILED)
		tw_log(TW_LOG_WARN, "quarantined", tw_log_text("trace", r->job.trace_id),
		        tw_log_text("reason", tw_death_name(r->end.death)),
		        tw_log_number("signal", r->end.signal),
		        tw_log_text("format", r->end.format));
	return tw_run_write_ending(j, r);
}
