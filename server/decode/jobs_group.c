/*
 * jobs_group.c - small jobs of one project that share a child and their transactions.
 *
 * Starting a process costs more than decoding a small trace, and so does a transaction.  A group
 * has a slot; its jobs are claimed together, decoded one after the other by one child, stored in
 * parallel (in a folder of several servers one after the other) and recorded together.  A child
 * that dies consumes an attempt of the job that it was doing, as always; that job runs alone
 * afterwards, since a group has first attempts only.  Jobs that were not begun are queued again, as
 * if they had not been claimed.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/file/crash_point.h"
#include "server/base/log.h"
#include "server/base/text/json.h"
#include "server/decode/jail.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/jobs_run.h"

/* --- endings --- */

/* The slot is in use until all endings are written. */
static void release_if_over(struct running *r)
{
	r->step = STEP_ENDINGS;
	for (size_t i = 0; i < r->n_group; i++)
		if (r->group[i].used)
			return;
	tw_run_release_slot(r);
}

static void end_job(struct running *m, bool written)
{
	if (!written)
		return;
	tw_claims_remove(m->jobs->claims, &m->job);
	tw_run_clear(m);
}

static void fail_job(
        struct tw_jobs *j, struct running *m, const struct tw_err *why, enum fault fault)
{
	if (!tw_run_is_environment(why->code, fault))
		j->pause_ms = 0;
	tw_run_release(m);
	end_job(m, tw_run_fail(j, m, why, fault));
}

static void return_from(struct tw_jobs *j, struct running *r, size_t first)
{
	for (size_t i = first; i < r->n_group; i++)
		if (r->group[i].used)
			end_job(&r->group[i], tw_run_return(j, &r->group[i]));
}

void tw_group_retry_endings(struct tw_jobs *j, struct running *r)
{
	for (size_t i = 0; i < r->n_group; i++)
		if (r->group[i].used)
			end_job(&r->group[i], tw_run_write_ending(j, &r->group[i]));
	release_if_over(r);
}

/* --- the child --- */

/* Far more than small jobs take.  A job that uses it up runs alone next time, with the limits of
 * all jobs, and does not delay the others for longer. */
enum { GROUP_CPU_S = 5, GROUP_WALL_S = 30 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static json_t *limits_of(const struct tw_config *c)
{
	json_t *limits = tw_child_limits(c);

	(void)json_object_set_new(
	        limits, "cpu_s", json_integer((json_int_t)least(c->worker_cpu_s, GROUP_CPU_S)));
	return limits;
}

static json_t *task_of(const struct running *r)
{
	json_t *jobs = json_array();

	for (size_t i = 0; i < r->n_begun; i++)
		(void)json_array_append_new(
		        jobs, json_pack("[{s:s,s:s}]", "part", r->group[i].job.parts[0].part,
		                      "format", r->group[i].job.parts[0].format));
	return json_pack("{s:s,s:o,s:o}", "kind", "traces", "jobs", jobs, "limits",
	        limits_of(r->jobs->parts.config));
}

static bool is_open(struct running *m, int *ret_output, struct tw_err *err)
{
	if (m->task.status != TW_OK)
		tw_err_copy(err, &m->task.err);
	return m->task.status == TW_OK && tw_run_open_output(m, ret_output, err) == TW_OK;
}

/* Jobs whose upload or output cannot be opened are left out, with those after them: as the first of
 * a queue, such a job fails with the reason. */
static size_t open_files(struct running *r, int outputs[TW_CHILD_JOBS], struct tw_err *err)
{
	size_t n = 0;

	while (n < r->n_group && is_open(&r->group[n], &outputs[n], err))
		n++;
	return n;
}

static enum tw_status spawn(struct running *r, const int *outputs, struct tw_err *err)
{
	int inputs[TW_CHILD_INPUTS];
	json_t *task = task_of(r);
	struct tw_child_task t = {.task = task,
	        .output = outputs[0],
	        .second = r->system_fd,
	        .inputs = inputs,
	        .n_inputs = 2 * r->n_begun - 1,
	        .wall_s = least(r->jobs->parts.config->worker_wall_s, GROUP_WALL_S),
	        .from = TW_JAIL_SANITIZED ? NULL : &r->jobs->children};
	enum tw_status st;

	for (size_t i = 0; i < r->n_begun; i++) {
		inputs[i] = r->group[i].fds[0];
		if (i)
			inputs[r->n_begun + i - 1] = outputs[i];
	}
	st = task ? tw_child_start(&r->child, &t, err) : tw_oom(err);
	json_decref(task);
	return st;
}

/* Returns the origin of an error in *ret_fault. */
static enum tw_status start(
        struct tw_jobs *j, struct running *r, enum fault *ret_fault, struct tw_err *err)
{
	int outputs[TW_CHILD_JOBS];
	enum tw_status st = tw_blobs_check_reserve(j->parts.blobs, err); /* is for deletes */

	*ret_fault = FAULT_SERVER;
	if (st == TW_OK)
		st = tw_run_open_system(r, err);
	if (st != TW_OK)
		return st;
	r->n_begun = open_files(r, outputs, err);
	if (r->n_begun == 0) {
		*ret_fault = r->group[0].fds[0] < 0 && !tw_blobs_remote(j->parts.blobs)
		                     ? FAULT_INPUT
		                     : FAULT_SERVER;
		return err->code;
	}
	st = spawn(r, outputs, err);
	for (size_t i = 0; i < r->n_begun; i++) {
		(void)close(outputs[i]);
		(void)close(r->group[i].fds[0]);
		r->group[i].fds[0] = -1;
	}
	return st;
}

static bool add_jobs(struct tw_jobs *j, struct running *r, const struct tw_job_row *jobs, size_t n)
{
	r->group = tw_arena_alloc(r->arena, n, sizeof *r->group);
	if (!r->group)
		return false;
	r->n_group = n;
	for (size_t i = 0; i < n; i++) {
		struct running *m = &r->group[i];

		tw_run_init(m, j, r->arena);
		m->job = jobs[i];
		m->in_group = m->used = true;
		tw_claims_add(j->claims, &m->job);
	}
	return true;
}

/* The uploads are open, or could not be fetched. */
static void fetched(struct tw_jobs *j, struct running *r)
{
	struct tw_err why;
	enum fault fault;

	r->step = STEP_CHILD;
	if (start(j, r, &fault, &why) != TW_OK) {
		fail_job(j, &r->group[0], &why, fault);
		return_from(j, r, 1);
		release_if_over(r);
		return;
	}
	return_from(j, r, r->n_begun);
	for (size_t i = 0; i < r->n_begun; i++)
		tw_log(TW_LOG_INFO, "decoding", tw_log_text("trace", r->group[i].job.trace_id),
		        tw_log_number("attempt", r->group[i].job.attempts),
		        tw_log_number("pid", r->child.pid));
}

void tw_group_begin(struct tw_jobs *j, struct running *r, const struct tw_job_row *jobs, size_t n)
{
	if (!add_jobs(j, r, jobs, n)) {
		for (size_t i = 0; i < n; i++)
			(void)tw_catalogue_job_return(j->parts.catalogue, &jobs[i], NULL);
		tw_run_release_slot(r);
		return;
	}
	r->used = true;
	r->step = STEP_FETCH;
	for (size_t i = 0; i < n; i++)
		tw_run_begin_step(&r->group[i], STEP_FETCH, j->async_pool);
	if (!j->async_pool)
		fetched(j, r);
}

/* --- results --- */

static void job_done(struct tw_jobs *j, struct running *r, struct running *m)
{
	const char *format = json_string_value(json_object_get(m->result, "format"));
	struct tw_err why = {0};

	(void)snprintf(m->end.format, sizeof m->end.format, "%s", format ? format : "");
	if (tw_run_result(m, &why) == TW_OK) {
		if (tw_json_count(json_object_get(m->result, "summary"), "system_bytes")) {
			m->system_fd = r->system_fd; /* the child's last job */
			r->system_fd = -1;
		}
		tw_run_begin_step(m, STEP_STORE, j->async_pool ? j->async_pool : j->group_pool);
		return;
	}
	if (m->end.death != TW_DEATH_NONE)
		tw_child_template_end(&j->children);
	fail_job(j, m, &why,
	        json_is_true(json_object_get(m->result, "input_failed")) ? FAULT_INPUT
	                                                                 : FAULT_CHILD);
}

void tw_group_child_ended(struct tw_jobs *j, struct running *r)
{
	json_t *results[TW_CHILD_JOBS];
	struct tw_err why = {0};
	size_t n = 0;
	enum tw_status st =
	        tw_child_collect_lines(&r->child, results, r->n_begun, &n, &r->end, &why);

	tw_crash_point("child_done");
	r->step = STEP_STORE;
	if (r->end.death != TW_DEATH_NONE) /* the next child gets another address layout */
		tw_child_template_end(&j->children);
	tw_run_check_leases(j, r->group, n);
	for (size_t i = 0; i < n; i++) {
		r->group[i].result = results[i];
		job_done(j, r, &r->group[i]);
	}
	if (r->abandoned && n < r->n_begun) {
		end_job(&r->group[n], tw_run_abandon(j, &r->group[n]));
		n++;
	} else if (st != TW_OK && n < r->n_begun) { /* during this job */
		r->group[n].end = r->end;
		fail_job(j, &r->group[n++], &why, FAULT_CHILD);
	}
	return_from(j, r, n);
}

static bool is_storing(const struct running *m)
{
	return m->used && m->ending == ENDING_NONE && m->step == STEP_STORE;
}

/* TW_CONFLICT: the claim was lost, or would be lost before the file is stored. */
static void recorded(
        struct tw_jobs *j, struct running *m, enum tw_status st, const struct tw_err *why)
{
	if (st != TW_OK && st != TW_CONFLICT) {
		fail_job(j, m, why, FAULT_SERVER);
		return;
	}
	if (st == TW_CONFLICT)
		tw_run_discard(m);
	j->pause_ms = 0;
	end_job(m, true);
}

/* In one transaction, or separately if that fails. */
static void record(struct tw_jobs *j, struct running *const *stored, size_t n)
{
	enum tw_status ends[TW_CHILD_JOBS];
	struct tw_err why = {0};
	const bool together = tw_run_record_all(j, stored, n, ends, &why) == TW_OK;

	for (size_t i = 0; i < n; i++) {
		if (!together)
			ends[i] = tw_run_record(j, stored[i], &why);
		recorded(j, stored[i], ends[i], &why);
	}
}

static void stored_all(struct tw_jobs *j, struct running *r)
{
	struct running *stored[TW_CHILD_JOBS];
	size_t n = 0;

	for (size_t i = 0; i < r->n_group; i++) {
		struct running *m = &r->group[i];

		if (is_storing(m) && m->task.status == TW_OK)
			stored[n++] = m;
		else if (is_storing(m))
			recorded(j, m, m->task.status, &m->task.err);
	}
	for (size_t i = 0, many; i < n; i += many) {
		many = tw_run_together(stored + i, n - i);
		record(j, stored + i, many);
	}
	release_if_over(r);
}

bool tw_group_step_is_done(const struct running *r)
{
	for (size_t i = 0; i < r->n_group; i++) {
		const struct running *m = &r->group[i];

		if (m->used && m->ending == ENDING_NONE && m->step == r->step &&
		        !atomic_load(&m->task.done))
			return false;
	}
	return true;
}

void tw_group_step_done(struct tw_jobs *j, struct running *r)
{
	if (r->step == STEP_FETCH)
		fetched(j, r);
	else
		stored_all(j, r);
}
