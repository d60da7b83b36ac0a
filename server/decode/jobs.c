/*
 * jobs.c - the dispatcher: claims, children, results, retries.
 *
 * One thread.  A job takes a slot and these steps: its row is claimed, the parts of its upload are
 * fetched, a child decodes them, its output is stored, the row is written.  Fetching and storing
 * run on a pool if files are in object storage.  The thread waits for the wake-up event and the
 * pidfd of each child.
 *
 * A job ends as ready, failed (the input is bad, or reached a deadline), queued again (the child
 * died or the upload could not be read, and attempts are left) or postponed: if the server lacks
 * space, descriptors or storage, the attempt does not count and no job is started for a while.  An
 * ending that cannot be written to the catalogue keeps its slot and is written later.  Once a
 * second the claims of running children are checked; a child whose trace was deleted is killed.
 *
 * Small jobs of one project share a child and their transactions (jobs_group.c).
 *
 * Mappings are compiled by jobs_map.c; jobs_sweep.c sweeps the data folder.
 */
#include "server/decode/jobs.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/log.h"
#include "server/base/role.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jail.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/jobs_run.h"
#include "server/storage/blob.h"

/* What the eventfd counts for a job that was queued; a finished step counts 1. */
#define QUEUED (UINT64_C(1) << 32)

/* Follows a system trace of at most 4 GiB; with its depths, the file stays below the file-size
 * limit of a child. */
#define SCRATCH_MOST ((uint64_t)3 << 30)

enum {
	POLL_MS = 1000,
	GATHER_MS = 50,
	CHECK_CLAIMS_MS = 1000,
	STALL_MS = 30000,
	PAUSED_MS = 4000,
	FAILED_HOLD_MS = 30000,
	GROUP_BYTES = 16 << 10,
	LARGE_BYTES = 1 << 20,
	ASYNC_MOST = 32,
	EXPIRE_LOST_MS = 3600 * 1000
};

/* --- starting a job --- */

/* Opens the parts of the upload.  May run in parallel with the dispatcher. */
static enum tw_status run_fetch(void *arg, struct tw_err *err)
{
	struct running *r = arg;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < r->job.n_parts; i++)
		st = tw_blob_open(r->jobs->parts.blobs, r->job.parts[i].sha256, &r->fds[i], err);
	return st;
}

static void close_parts(struct running *r)
{
	for (size_t i = 0; i < r->job.n_parts; i++) {
		if (r->fds[i] >= 0)
			(void)close(r->fds[i]);
		r->fds[i] = -1;
	}
}

/* Decoders that run at the same time share the spare space of the disk.  They check it again when
 * they use it (scratch_file.h). */
static json_t *limits_of(const struct tw_jobs *j)
{
	const uint64_t spare = tw_blobs_spare_bytes(j->parts.blobs) / j->n_slots;
	json_t *limits = tw_child_limits(j->parts.config);

	(void)json_object_set_new(limits, "scratch_bytes",
	        json_integer((json_int_t)(spare < SCRATCH_MOST ? spare : SCRATCH_MOST)));
	(void)json_object_set_new(limits, "min_free_bytes",
	        json_integer((json_int_t)tw_blobs_min_free_bytes(j->parts.blobs)));
	return limits;
}

static json_t *trace_task(const struct tw_jobs *j, const struct tw_part *parts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list,
		        json_pack("{s:s,s:s}", "part", parts[i].part, "format", parts[i].format));
	return json_pack("{s:s,s:o,s:o}", "kind", "trace", "parts", list, "limits", limits_of(j));
}

/* A large upload takes at least about 50 ms of processor time, so it has a lower priority than
 * small ones. */
static bool is_large(const struct tw_job_row *job)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < job->n_parts; i++)
		bytes += job->parts[i].bytes;
	return bytes >= LARGE_BYTES;
}

static enum tw_status spawn(struct tw_jobs *j, struct running *r, struct tw_err *err)
{
	json_t *task = trace_task(j, r->job.parts, r->job.n_parts);
	struct tw_child_task t = {.task = task,
	        .second = r->system_fd,
	        .inputs = r->fds,
	        .n_inputs = r->job.n_parts,
	        .wall_s = j->parts.config->worker_wall_s,
	        .background = is_large(&r->job),
	        .from = TW_JAIL_SANITIZED ? NULL : &j->children};
	enum tw_status st;

	if (!task)
		return tw_oom(err);
	st = tw_run_open_output(r, &t.output, err);
	if (st == TW_OK) {
		st = tw_child_start(&r->child, &t, err);
		(void)close(t.output);
	}
	json_decref(task);
	return st;
}

enum tw_status tw_run_open_output(struct running *r, int *ret, struct tw_err *err)
{
	char name[64];

	/* a separate file per attempt: an abandoned attempt may still write to its own */
	(void)snprintf(name, sizeof name, "%s-%u", r->job.trace_id, r->job.attempts);
	tw_spool_path(r->jobs->parts.blobs, name, r->out, sizeof r->out);
	return tw_jobs_open_output(r->out, ret, err);
}

enum tw_status tw_run_open_system(struct running *r, struct tw_err *err)
{
	struct tw_jobs *j = r->jobs;

	if (!j->n_spare)
		return tw_jobs_open_system(&j->parts, r->job.trace_id, &r->system_fd, err);
	r->system_fd = j->spare[--j->n_spare];
	return TW_OK;
}

/* Call once its parts are open. */
static enum tw_status start_child(struct tw_jobs *j, struct running *r, struct tw_err *err)
{
	enum tw_status st = tw_blobs_check_reserve(j->parts.blobs, err); /* is for deletes */

	if (st == TW_OK)
		st = tw_run_open_system(r, err);
	if (st == TW_OK)
		st = spawn(j, r, err);
	close_parts(r);
	return st;
}

/* --- the steps of a job --- */

/* Few uploads have a system trace, and creating a file takes a tenth of a small trace's processor
 * time: a file that a finished child left empty is reused. */
static void release_system(struct running *r)
{
	struct tw_jobs *j = r->jobs;
	struct stat s;

	if (r->system_fd < 0)
		return;
	if (r->result && j->n_spare < TW_RUN_WORKERS && fstat(r->system_fd, &s) == 0 &&
	        s.st_size == 0 && s.st_blocks == 0 && lseek(r->system_fd, 0, SEEK_SET) == 0)
		j->spare[j->n_spare++] = r->system_fd;
	else
		(void)close(r->system_fd);
	r->system_fd = -1;
}

void tw_run_init(struct running *r, struct tw_jobs *j, struct tw_arena *a)
{
	*r = (struct running){
	        .jobs = j, .arena = a, .started_ms = tw_monotonic_ms(), .system_fd = -1};
	for (size_t i = 0; i < TW_CHILD_INPUTS; i++)
		r->fds[i] = -1;
}

void tw_run_clear(struct running *r)
{
	release_system(r);
	close_parts(r);
	tw_run_release(r);
	json_decref(r->result);
	r->result = NULL;
	tw_mem_free(r->file_hex);
	r->file_hex = NULL;
	r->used = false;
}

void tw_run_release_slot(struct running *r)
{
	if (!r->group)
		tw_claims_remove(r->jobs->claims, &r->job);
	for (size_t i = 0; i < r->n_group; i++) {
		if (r->group[i].used)
			tw_claims_remove(r->jobs->claims, &r->group[i].job);
		tw_run_clear(&r->group[i]);
	}
	tw_run_clear(r);
	r->group = NULL;
	r->n_group = 0;
	r->arena = tw_arena_free(r->arena);
	r->step = STEP_CHILD;
	r->ending = ENDING_NONE;
	r->jobs->claim_ms = 0;
}

/* The child failed, or its output could not be stored. */
static void fail_job(
        struct tw_jobs *j, struct running *r, const struct tw_err *why, enum fault fault)
{
	if (!tw_run_is_environment(why->code, fault))
		j->pause_ms = 0;
	r->step = STEP_CHILD;
	tw_run_release(r);
	if (tw_run_fail(j, r, why, fault))
		tw_run_release_slot(r);
	else
		r->used = true; /* until it can be recorded */
}

static void parts_fetched(struct tw_jobs *j, struct running *r)
{
	struct tw_err why = r->task.err;
	enum tw_status st = r->task.status;

	r->step = STEP_CHILD;
	if (st != TW_OK) {
		fail_job(j, r, &why, tw_blobs_remote(j->parts.blobs) ? FAULT_SERVER : FAULT_INPUT);
		return;
	}
	st = start_child(j, r, &why);
	if (st != TW_OK) {
		fail_job(j, r, &why, FAULT_SERVER);
		return;
	}
	tw_log(TW_LOG_INFO, "decoding", tw_log_text("trace", r->job.trace_id),
	        tw_log_number("attempt", r->job.attempts), tw_log_number("pid", r->child.pid));
}

static void output_stored(struct tw_jobs *j, struct running *r)
{
	struct tw_err why = r->task.err;
	enum tw_status st = r->task.status;

	if (st == TW_OK)
		st = tw_run_record(j, r, &why);
	if (st == TW_CONFLICT)
		tw_run_discard(r);
	else if (st != TW_OK) {
		fail_job(j, r, &why, FAULT_SERVER);
		return;
	}
	j->pause_ms = 0;
	tw_run_release_slot(r);
}

static void step_done(struct tw_jobs *j, struct running *r)
{
	if (r->step == STEP_FETCH)
		parts_fetched(j, r);
	else
		output_stored(j, r);
}

void tw_run_begin_step(struct running *r, enum step step, struct tw_pool *pool)
{
	r->used = true;
	r->step = step;
	r->task.run = step == STEP_FETCH ? run_fetch : tw_run_store;
	r->task.arg = r;
	r->task.wake_fd = r->jobs->wake_fd;
	tw_async_task_begin(&r->task, pool);
}

static void begin_step(struct tw_jobs *j, struct running *r, enum step step)
{
	tw_run_begin_step(r, step, j->async_pool);
	if (!j->async_pool)
		step_done(j, r);
}

enum tw_status tw_run_result(struct running *r, struct tw_err *ret)
{
	if (json_is_true(json_object_get(r->result, "ok")))
		return TW_OK;
	tw_child_error(r->result, ret);
	r->end.death = ret->code == TW_NOMEM ? TW_DEATH_MEMORY
	               : ret->code == TW_BUG ? TW_DEATH_BUG
	                                     : TW_DEATH_NONE;
	return ret->code;
}

static void child_ended(struct tw_jobs *j, struct running *r)
{
	struct tw_err why = {0};
	enum tw_status st = tw_child_collect(&r->child, &r->result, &r->end, &why);
	bool unreadable = st == TW_OK && json_is_true(json_object_get(r->result, "input_failed"));

	tw_crash_point("child_done");
	if (r->abandoned) {
		r->end.death = TW_DEATH_NONE;
		if (tw_run_abandon(j, r))
			tw_run_release_slot(r);
		return;
	}
	if (st == TW_OK)
		st = tw_run_result(r, &why);
	if (r->end.death != TW_DEATH_NONE) /* the next child gets another address layout */
		tw_child_template_end(&j->children);
	if (st == TW_OK)
		begin_step(j, r, STEP_STORE);
	else
		fail_job(j, r, &why, unreadable ? FAULT_INPUT : FAULT_CHILD);
}

/* --- the dispatcher --- */

static struct running *find_slot(struct tw_jobs *j)
{
	for (unsigned i = 0; i < j->n_slots; i++)
		if (!j->slots[i].used)
			return &j->slots[i];
	return NULL;
}

/* The last free slot is reserved for projects without a running decode: decodes are not
 * interrupted, and one of another project may take minutes. */
static unsigned per_project(const struct tw_jobs *j)
{
	unsigned used = 0;

	for (unsigned i = 0; i < j->n_slots; i++)
		used += j->slots[i].used;
	return used + 1 < j->n_slots ? 0 : 1;
}

static bool is_of(const struct running *r, const char *trace_id)
{
	const struct running *each = r->group ? r->group : r;

	for (size_t i = 0; i < (r->group ? r->n_group : 1); i++)
		if (each[i].used && strcmp(each[i].job.trace_id, trace_id) == 0)
			return true;
	return false;
}

/* Whether the trace is in another slot: a slow store can outlast the lease. */
static bool is_running(const struct tw_jobs *j, const struct running *r)
{
	for (unsigned i = 0; i < j->n_slots; i++)
		if (&j->slots[i] != r && is_of(&j->slots[i], r->job.trace_id))
			return true;
	return false;
}

/* A child that dies consumes an attempt of the job that it was doing, though others may have used
 * up its limits, so another attempt must be left. */
static bool may_group(const struct tw_decode_parts *parts)
{
	return parts->config->decode_group > 1 && parts->config->worker_attempts > 1;
}

/* Jobs of a claim whose reply was lost are queued again. */
static bool release_unknown(struct tw_jobs *j)
{
	const char *held[TW_RUN_WORKERS * TW_CHILD_JOBS];
	struct tw_err err;
	size_t n = 0;

	for (unsigned i = 0; j->claim_unknown && i < j->n_slots; i++) {
		const struct running *r = &j->slots[i];

		if (r->used && !r->group)
			held[n++] = r->job.trace_id;
		for (size_t k = 0; k < r->n_group; k++)
			if (r->group[k].used)
				held[n++] = r->group[k].job.trace_id;
	}
	if (j->claim_unknown && tw_catalogue_jobs_release_except(j->parts.catalogue,
	                                TW_QUEUE_TRACES, j->parts.node, held, n, &err) != TW_OK) {
		tw_log_err(TW_LOG_ERROR, "claim_failed", "releasing jobs", &err);
		return false;
	}
	j->claim_unknown = false;
	return true;
}

/* Claims and starts a job, or several small ones; false if there is none or no space.  If there was
 * none, the next attempt is made when one is queued here or a slot becomes free, and after POLL_MS,
 * as other servers queue jobs too. */
static bool claim_and_start(struct tw_jobs *j, int64_t now)
{
	struct running *r = find_slot(j);
	const struct tw_claim claim = {
	        TW_QUEUE_TRACES, j->parts.node, tw_claims_lease_ms(&j->parts), per_project(j)};
	struct tw_job_row jobs[TW_CHILD_JOBS];
	const bool grouped = may_group(&j->parts) && !j->claim_unknown; /* its statement may fail */
	size_t n = 0;
	struct tw_err err;
	enum tw_status st;

	if (!r || now < j->claim_ms || !tw_claims_are_current(j->claims) || !release_unknown(j))
		return false;
	tw_run_init(r, j, tw_arena_new(1 << 20));
	if (!r->arena)
		return false;
	j->claimed_ms = now;
	st = tw_catalogue_jobs_claim(j->parts.catalogue, &claim, GROUP_BYTES, r->arena, jobs,
	        grouped ? j->parts.config->decode_group : 1, &n, &err);
	if (st != TW_OK) {
		j->claim_unknown = st != TW_NOT_FOUND;
		if (j->claim_unknown)
			tw_log_err(TW_LOG_ERROR, "claim_failed", "claiming a job", &err);
		tw_run_release_slot(r);
		if (st == TW_NOT_FOUND)
			j->claim_ms = tw_monotonic_ms() + POLL_MS;
		return false;
	}
	r->job = jobs[0];
	/* its lease may expire during the job, and this server then claims it again */
	if (is_running(j, r)) {
		tw_run_release_slot(r);
		return false;
	}
	tw_crash_point("job_claimed");
	if (n > 1) {
		tw_group_begin(j, r, jobs, n);
	} else {
		tw_claims_add(j->claims, &r->job);
		begin_step(j, r, STEP_FETCH);
	}
	return tw_monotonic_ms() >= j->resume_ms; /* otherwise the server lacks a resource */
}

static bool has_child(const struct running *r)
{
	return r->used && r->ending == ENDING_NONE && r->step == STEP_CHILD;
}

static bool waits_for_storage(const struct running *r)
{
	return r->used && r->ending == ENDING_NONE &&
	       (r->step == STEP_FETCH || r->step == STEP_STORE);
}

static void continue_steps(struct tw_jobs *j)
{
	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		if (!waits_for_storage(r))
			continue;
		if (r->group && tw_group_step_is_done(r))
			tw_group_step_done(j, r);
		else if (!r->group && atomic_load(&r->task.done))
			step_done(j, r);
	}
}

static void retry_endings(struct tw_jobs *j)
{
	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		if (r->used && r->step == STEP_ENDINGS)
			tw_group_retry_endings(j, r);
		else if (r->used && r->ending != ENDING_NONE && tw_run_write_ending(j, r))
			tw_run_release_slot(r);
	}
}

/* True also if the claim cannot be read.  A group is claimed while one of its traces is. */
static bool is_claimed(const struct tw_jobs *j, const struct running *r)
{
	const struct tw_job_row *jobs[TW_CHILD_JOBS] = {&r->job};
	bool held[TW_CHILD_JOBS];
	size_t n = !r->group;

	for (size_t i = 0; i < r->n_group; i++)
		if (r->group[i].used)
			jobs[n++] = &r->group[i].job;
	if (tw_catalogue_jobs_held(j->parts.catalogue, jobs, n, -TW_DAY_MS, held, NULL) != TW_OK)
		return true;
	for (size_t i = 0; i < n; i++)
		if (held[i])
			return true;
	return false;
}

/* The trace may have been deleted by any server, or be claimed by another one now. */
static void check_claims(struct tw_jobs *j)
{
	if (tw_monotonic_ms() - j->claims_checked_ms < CHECK_CLAIMS_MS)
		return;
	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		if (!has_child(r) || r->child.killed || r->abandoned || is_claimed(j, r))
			continue;
		r->abandoned = true;
		tw_child_kill(&r->child);
	}
	j->claims_checked_ms = tw_monotonic_ms();
}

static void check_deadlines(struct tw_jobs *j)
{
	int64_t now = tw_monotonic_ms();

	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		if (has_child(r) && !r->child.killed && !r->abandoned &&
		        tw_child_is_overdue(&r->child, now)) {
			r->child.killed = true;
			tw_child_kill(&r->child);
		}
	}
}

/* A job was queued.  While others run, several may gather between two claims; the first of them
 * does not wait. */
static void claim_soon(struct tw_jobs *j)
{
	int64_t at_ms = 0;

	for (unsigned i = 0; i < j->n_slots; i++)
		if (j->slots[i].used)
			at_ms = j->claimed_ms + GATHER_MS;
	if (at_ms < j->claim_ms)
		j->claim_ms = at_ms;
}

/* Waits for a wake-up or the end of a child; true if at least one job is still running. */
static bool wait_for_events(struct tw_jobs *j, int timeout_ms)
{
	struct pollfd fds[TW_RUN_WORKERS + 1];
	struct running *of[TW_RUN_WORKERS + 1];
	nfds_t n = 1;
	uint64_t count;
	bool storing = false;

	fds[0] = (struct pollfd){.fd = j->wake_fd, .events = POLLIN};
	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		storing = storing || waits_for_storage(r);
		if (!has_child(r))
			continue;
		of[n] = r;
		fds[n++] = (struct pollfd){.fd = r->child.pidfd, .events = POLLIN};
	}
	if (poll(fds, n, timeout_ms) > 0) {
		if (fds[0].revents && read(j->wake_fd, &count, sizeof count) == sizeof count &&
		        count >= QUEUED)
			claim_soon(j);
		for (nfds_t i = 1; i < n; i++)
			if (fds[i].revents)
				(of[i]->group ? tw_group_child_ended : child_ended)(j, of[i]);
	}
	continue_steps(j);
	check_deadlines(j);
	check_claims(j);
	return n > 1 || storing;
}

static void drain(struct tw_jobs *j)
{
	int64_t until = tw_monotonic_ms() + (int64_t)j->drain_s * 1000;

	while (tw_monotonic_ms() < until && wait_for_events(j, 50))
		continue;
	if (j->async_pool)
		tw_blobs_stop(j->parts.blobs);
	j->async_pool = tw_pool_stop(j->async_pool);
	j->group_pool = tw_pool_stop(j->group_pool);
	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];
		struct tw_err why = {.code = TW_BUSY};
		json_t *result = NULL;
		struct tw_child_end end;

		if (!r->used)
			continue;
		if (has_child(r)) {
			tw_child_kill(&r->child);
			if (tw_child_collect(&r->child, &result, &end, &why) == TW_OK)
				json_decref(result);
		}
		(void)unlink(r->out);
		for (size_t k = 0; k < r->n_group; k++)
			(void)unlink(r->group[k].out);
		/* the next start finds the claim and queues the trace again */
		tw_run_release_slot(r);
	}
	while (j->n_spare)
		(void)close(j->spare[--j->n_spare]);
	j->compilers = tw_compilers_stop(j->compilers,
	        tw_monotonic_ms() < until ? (unsigned)((until - tw_monotonic_ms()) / 1000) : 0);
	tw_child_template_end(&j->children);
	j->claims = tw_claims_stop(j->claims);
	tw_claims_release_all(&j->parts); /* so that other servers can claim immediately */
}

/* Until the next attempt to claim a job, if it waits. */
static int poll_ms(const struct tw_jobs *j, int64_t now)
{
	const int64_t left = j->claim_ms - now;

	return left > 0 && left < POLL_MS ? (int)left : POLL_MS;
}

static void *dispatch(void *arg)
{
	struct tw_jobs *j = arg;
	int64_t expire_ms = tw_monotonic_ms() + EXPIRE_LOST_MS;
	const bool may_expire = tw_jobs_sweep(&j->parts, &j->stop);

	tw_records_complete(j->parts.recorder);
	while (!atomic_load(&j->stop)) {
		int64_t now; /* of the last attempt to claim, which may have been too early */

		atomic_store(&j->active_ms, tw_monotonic_ms());
		retry_endings(j);
		do
			now = tw_monotonic_ms();
		while (!atomic_load(&j->stop) && now >= j->resume_ms && claim_and_start(j, now));
		(void)wait_for_events(j, poll_ms(j, now));
		if (j->parts.each_poll)
			j->parts.each_poll(j->parts.arg);
		if (!may_expire || tw_monotonic_ms() < expire_ms)
			continue;
		tw_jobs_expire_lost(&j->parts);
		expire_ms = tw_monotonic_ms() + EXPIRE_LOST_MS;
	}
	drain(j);
	return NULL;
}

/* The concurrent decodes of one project plus one. Without the decode role there is no slot, only
 * the sweep. */
static unsigned slots(const struct tw_config *c)
{
	unsigned n = c->roles & TW_ROLE_DECODE ? c->decode_workers + 1 : 0;

	return n < TW_RUN_WORKERS ? n : TW_RUN_WORKERS;
}

/* For fetching and storing in object storage. */
static unsigned async_threads(const struct tw_jobs *j)
{
	const unsigned n =
	        2 * j->n_slots * (may_group(&j->parts) ? j->parts.config->decode_group : 1);

	return n < ASYNC_MOST ? n : ASYNC_MOST;
}

enum tw_status tw_jobs_start(
        const struct tw_decode_parts *parts, struct tw_jobs **ret, struct tw_err *err)
{
	struct tw_jobs *j;
	enum tw_status st = tw_catalogue_jobs_recover(parts->catalogue, err);

	/* on a shared catalogue files are made durable first */
	if (st == TW_OK && !tw_catalogue_is_shared(parts->catalogue))
		st = tw_jobs_verify_uploads(parts, err);
	if (st == TW_OK)
		st = tw_jobs_clear_spool(parts, err);
	if (st != TW_OK)
		return st;
	j = tw_mem_zalloc(1, sizeof *j);
	if (!j)
		return tw_oom(err);
	j->parts = *parts;
	st = tw_claims_start(&j->parts, &j->claims, err);
	if (st != TW_OK) {
		tw_mem_free(j);
		return st;
	}
	j->n_slots = slots(parts->config);
	j->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	st = tw_compilers_start(&j->parts, j->claims, &j->compilers, err);
	if (st == TW_OK && tw_blobs_remote(parts->blobs))
		st = tw_pool_start(async_threads(j), &j->async_pool, err);
	else if (st == TW_OK && may_group(parts) && j->n_slots)
		st = tw_pool_start(TW_CHILD_JOBS, &j->group_pool, err);
	if (may_group(parts))
		j->children.tasks = parts->config->decode_group;
	if (st != TW_OK || j->wake_fd < 0 || pthread_create(&j->thread, NULL, dispatch, j) != 0) {
		if (j->wake_fd >= 0)
			(void)close(j->wake_fd);
		(void)tw_pool_stop(j->async_pool);
		(void)tw_pool_stop(j->group_pool);
		(void)tw_compilers_stop(j->compilers, 0);
		(void)tw_claims_stop(j->claims);
		tw_mem_free(j);
		return tw_fail(err, TW_IO, "the dispatcher could not be started");
	}
	*ret = j;
	return TW_OK;
}

struct tw_jobs *tw_jobs_stop(struct tw_jobs *j, unsigned drain_s)
{
	if (!j)
		return NULL;
	j->drain_s = drain_s;
	atomic_store(&j->stop, true);
	tw_jobs_wake(j);
	(void)pthread_join(j->thread, NULL);
	(void)close(j->wake_fd);
	tw_mem_free(j);
	return NULL;
}

void tw_jobs_wake(struct tw_jobs *j)
{
	const uint64_t queued = QUEUED;

	(void)!write(j->wake_fd, &queued, sizeof queued);
}

/* One failure causes only a short pause, and may be the fault of one trace.  Without a further one
 * after the pause, nothing is known: another server may have decoded the trace. */
enum tw_status tw_jobs_health(const struct tw_jobs *j, struct tw_err *err)
{
	const int64_t now = tw_monotonic_ms(), seen = atomic_load(&j->active_ms);

	if (!j->n_slots || !seen)
		return TW_OK;
	if (now - seen > STALL_MS)
		return tw_fail(err, TW_BUSY, "the decode queue has not advanced for %lld seconds",
		        (long long)((now - seen) / 1000));
	if (atomic_load(&j->pause_ms) >= PAUSED_MS &&
	        now - atomic_load(&j->resume_ms) < FAILED_HOLD_MS)
		return tw_fail(err, TW_BUSY,
		        "several consecutive decodes failed for a reason other than their traces: "
		        "see event=decoded in the log");
	return TW_OK;
}
