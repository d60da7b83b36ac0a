/*
 * jobs.c - the dispatcher: claims, children, results, retries.
 *
 * One thread.  It polls the wake-up event and the pidfd of each running child;
 * when a child ends, its answer decides: ready (file renamed and synced, then
 * the row), failed (the input is bad), queued again (the child died, and there
 * are tries left), or put off: what the server itself lacks, space above all,
 * is no fault of the trace, so it costs no try, and nothing is started for a
 * while.  An end that cannot be written to the catalogue keeps its slot and is
 * written later.  Mappings are in jobs_map.c, data folder sweeping in jobs_sweep.c.
 */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "blob.h"
#include "catalogue_quarantine.h"
#include "child.h"
#include "clock.h"
#include "crash_point.h"
#include "decoder.h"
#include "digest.h"
#include "jobs_internal.h"
#include "jobs_names.h"
#include "log.h"
#include "metrics.h"
#include "resume.h"
#include "role.h"

enum { PATH_BYTES = 1500, POLL_MS = 1000, WORKERS_MAX = 64 };
enum { PAUSE_LEAST_MS = 1000, PAUSE_MOST_MS = 30000 };

enum ending { /* what becomes of a job that did not end ready */
	ENDING_NONE,
	ENDING_FAILED,
	ENDING_RETRY,
	ENDING_WAIT
};

struct running { /* a child and its job */
	bool used;
	enum ending ending; /* the child is gone, and this not yet in the catalogue */
	struct tw_err why;  /* of ending */
	struct tw_child_end end;
	struct tw_child child;
	struct tw_arena *arena; /* of job */
	struct tw_job_row job;
	int64_t started_ms;
	int system_fd; /* of the child's second output, -1 none */
	char out[PATH_BYTES];
};

struct tw_jobs {
	struct tw_app *app;
	pthread_t thread;
	int wake_fd;
	_Atomic bool stop;
	_Atomic uint64_t serial;     /* of map outputs */
	int64_t pause_ms, resume_ms; /* the last pause; nothing is started before (monotonic) */
	unsigned drain_s;
	unsigned n_slots;
	struct running slots[WORKERS_MAX];
	struct tw_claims *claims; /* NULL: nobody else may take over */
};

/* --- starting a job --- */

static enum tw_status open_parts(
        struct tw_app *app, const struct tw_part *parts, size_t n, int *fds, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < n; i++)
		fds[i] = -1;
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_blob_open(app->blobs, parts[i].sha256, &fds[i], err);
	return st;
}

static void close_parts(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

static json_t *trace_task(const struct tw_config *c, const struct tw_part *parts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list,
		        json_pack("{s:s,s:s}", "part", parts[i].part, "format", parts[i].format));
	return json_pack(
	        "{s:s,s:o,s:o}", "kind", "trace", "parts", list, "limits", tw_jobs_limits(c));
}

static enum tw_status start_on(struct tw_jobs *j, struct running *r, const struct tw_part *parts,
        const int *fds, size_t n, struct tw_err *err)
{
	json_t *task = trace_task(j->app->config, parts, n);
	struct tw_child_task t = {task, -1, r->system_fd, fds, n, j->app->config->worker_wall_s};
	enum tw_status st;

	if (!task)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to start a decoder");
	st = tw_jobs_open_output(r->out, &t.output, err);
	if (st == TW_OK) {
		st = tw_child_start(&r->child, &t, err);
		(void)close(t.output);
	}
	json_decref(task);
	return st;
}

/* What was found in an archive is found again. */
static size_t sent_parts(struct tw_part *parts, size_t n)
{
	size_t sent = 0;

	for (size_t i = 0; i < n; i++)
		if (!parts[i].found)
			parts[sent++] = parts[i];
	return sent;
}

static enum tw_status start_child(struct tw_jobs *j, struct running *r, struct tw_err *err)
{
	struct tw_app *app = j->app;
	struct tw_part *parts = NULL;
	int fds[TW_CHILD_INPUTS];
	char name[64];
	size_t n = 0;
	enum tw_status st = tw_catalogue_trace_parts(
	        app->catalogue, r->job.project_id, r->job.trace_id, r->arena, &parts, &n, err);

	if (st != TW_OK)
		return st;
	n = sent_parts(parts, n);
	/* a try that was given up does not touch what the next one writes */
	(void)snprintf(name, sizeof name, "%s-%u", r->job.trace_id, r->job.tries);
	tw_spool_path(app->blobs, name, r->out, sizeof r->out);
	st = open_parts(app, parts, n, fds, err);
	if (st == TW_OK)
		st = tw_jobs_open_system(app, r->job.trace_id, &r->system_fd, err);
	if (st == TW_OK)
		st = start_on(j, r, parts, fds, n, err);
	close_parts(fds, n);
	return st;
}

/* --- ending a job --- */

static void tell(const struct running *r, const char *outcome, const struct tw_err *why)
{
	tw_log(why ? TW_LOG_WARN : TW_LOG_INFO, "decoded", tw_log_text("trace", r->job.trace_id),
	        tw_log_text("outcome", outcome), tw_log_number("try", r->job.tries),
	        tw_log_number("ms", tw_monotonic_ms() - r->started_ms),
	        tw_log_text("why", why ? why->msg : ""));
}

static void tell_quarantined(const struct running *r)
{
	tw_log(TW_LOG_WARN, "quarantined", tw_log_text("trace", r->job.trace_id),
	        tw_log_text("reason", tw_death_word(r->end.death)),
	        tw_log_number("signal", r->end.signal), tw_log_text("format", r->end.format));
}

static void drop_files(struct tw_jobs *j, const struct running *r)
{
	char path[PATH_BYTES];

	(void)unlink(r->out);
	if (tw_trace_path(j->app->blobs, r->job.trace_id, path, sizeof path, NULL) == TW_OK)
		(void)unlink(path);
}

static void count_repairs(const struct tw_jobs *j, const json_t *told)
{
	const char *name;
	json_t *count;

	json_object_foreach(json_object_get(told, "repairs_by_name"), name, count)
	{
		tw_metrics_repair(j->app->metrics, name, (uint64_t)json_integer_value(count));
	}
}

/* Another server decodes it, or has. */
static enum tw_status lose(struct running *r)
{
	(void)unlink(r->out);
	tw_log(TW_LOG_WARN, "claim_lost", tw_log_text("trace", r->job.trace_id));
	return TW_OK;
}

struct put {
	struct tw_jobs *j;
	const struct running *r;
};

static enum tw_status put_file(void *arg, struct tw_err *err)
{
	const struct put *p = arg;
	enum tw_status st = tw_trace_publish(p->j->app->blobs, p->r->out, p->r->job.trace_id, err);

	tw_crash_point("trace_renamed");
	return st;
}

/* The file first, then its row; where others may have the job by now, both or none. */
static enum tw_status put_and_tell(struct tw_jobs *j, const struct running *r,
        const struct tw_trace_summary *s, struct tw_err *err)
{
	struct put p = {j, r};
	const struct tw_job_place place = {put_file, &p};
	enum tw_status st = j->claims ? TW_OK : put_file(&p, err);

	if (st != TW_OK)
		return st;
	return tw_catalogue_job_publish(
	        j->app->catalogue, &r->job, s, j->claims ? &place : NULL, err);
}

static enum tw_status publish(
        struct tw_jobs *j, struct running *r, const json_t *answer, struct tw_err *err)
{
	const json_t *told = json_object_get(answer, "summary");
	struct tw_trace_summary s = tw_jobs_summary_of(told);
	char sha256[TW_SHA256_HEX] = "";
	enum tw_status st = tw_digest_file(r->out, sha256, &s.file_bytes, err);

	s.file_sha256 = sha256;
	if (st == TW_OK && tw_jobs_count_of(told, "system_bytes"))
		st = tw_jobs_keep_system(j->app, &r->job, r->system_fd, err);
	if (st == TW_OK)
		st = put_and_tell(j, r, &s, err);
	tw_crash_point("row_ready");
	tw_periodic_wake(j->app->names);
	tw_periodic_wake(j->app->rollup);
	tw_periodic_wake(j->app->hangs);
	tw_periodic_wake(j->app->findings);
	if (st == TW_CONFLICT)
		return lose(r);
	if (st == TW_NOT_FOUND) { /* deleted while it was decoded: its file must go too */
		drop_files(j, r);
		return TW_OK;
	}
	if (st == TW_OK) {
		tw_metrics_decode(j->app->metrics, s.format, "ready",
		        (uint64_t)(tw_monotonic_ms() - r->started_ms) * 1000000);
		count_repairs(j, told);
		tell(r, "ready", NULL);
	}
	return st;
}

/* Memory that a child may not have is the trace's doing; what the dispatcher itself lacks is not.
 */
static bool is_environment(enum tw_status st, bool told_by_child)
{
	return st == TW_IO || st == TW_FULL || st == TW_BUSY || (st == TW_NOMEM && !told_by_child);
}

static bool worth_a_retry(enum tw_status st)
{
	return st == TW_NOMEM || st == TW_BUG || st == TW_DEADLINE;
}

static void pause_starting(struct tw_jobs *j)
{
	int64_t now = tw_monotonic_ms();

	if (now < j->resume_ms)
		return; /* another child met the same */
	j->pause_ms = j->pause_ms ? j->pause_ms * 2 : PAUSE_LEAST_MS;
	if (j->pause_ms > PAUSE_MOST_MS)
		j->pause_ms = PAUSE_MOST_MS;
	j->resume_ms = now + j->pause_ms;
}

static enum tw_status write_ending(struct tw_jobs *j, struct running *r, struct tw_err *err)
{
	struct tw_catalogue *c = j->app->catalogue;
	const struct tw_death_note note = {
	        tw_death_word(r->end.death), r->end.signal, r->end.format, TW_DECODER_VERSION};

	if (r->ending == ENDING_WAIT)
		return tw_catalogue_job_wait(c, &r->job, &r->why, err);
	if (r->ending == ENDING_RETRY)
		return tw_catalogue_job_retry(c, &r->job, err);
	return tw_catalogue_job_failed(c, &r->job, &r->why, r->end.death ? &note : NULL, err);
}

/* False: it could not be written, and is to be tried again. */
static bool settle(struct tw_jobs *j, struct running *r)
{
	struct tw_err err;
	enum tw_status st = write_ending(j, r, &err);

	if (st == TW_NOT_FOUND) /* deleted meanwhile */
		drop_files(j, r);
	else if (st == TW_CONFLICT)
		st = lose(r);
	else if (st != TW_OK)
		tw_log_err(TW_LOG_ERROR, "job_not_ended", r->job.trace_id, &err);
	return st == TW_OK || st == TW_NOT_FOUND;
}

static bool give_up_or_retry(
        struct tw_jobs *j, struct running *r, const struct tw_err *why, bool told_by_child)
{
	static const char *const outcomes[] = {"", "failed", "retry", "put_off"};

	r->ending = is_environment(why->code, told_by_child) ? ENDING_WAIT
	            : worth_a_retry(why->code) && r->job.tries < j->app->config->worker_tries
	                    ? ENDING_RETRY
	                    : ENDING_FAILED;
	r->why = *why;
	if (r->ending == ENDING_WAIT)
		pause_starting(j);
	(void)unlink(r->out);
	if (r->end.death)
		tw_metrics_death(j->app->metrics, r->end.death);
	tw_metrics_decode(j->app->metrics, r->end.format,
	        r->ending == ENDING_FAILED ? tw_status_word(why->code) : outcomes[r->ending],
	        (uint64_t)(tw_monotonic_ms() - r->started_ms) * 1000000);
	tell(r, outcomes[r->ending], why);
	if (r->end.death && r->ending == ENDING_FAILED)
		tell_quarantined(r);
	return settle(j, r);
}

static void free_slot(struct tw_jobs *j, struct running *r)
{
	tw_claims_remove(j->claims, &r->job);
	r->arena = tw_arena_free(r->arena);
	if (r->system_fd >= 0)
		(void)close(r->system_fd);
	r->system_fd = -1;
	r->used = false;
	r->ending = ENDING_NONE;
}

static void finish(struct tw_jobs *j, struct running *r)
{
	json_t *answer = NULL;
	struct tw_err why = {0};
	enum tw_status st = tw_child_collect(&r->child, &answer, &r->end, &why);
	bool told_by_child = true;
	bool ended = true;

	tw_crash_point("child_done");
	if (st == TW_OK && !json_is_true(json_object_get(answer, "ok"))) {
		tw_jobs_child_error(answer, &why);
		st = why.code;
		r->end.death = st == TW_NOMEM ? TW_DEATH_MEMORY
		               : st == TW_BUG ? TW_DEATH_BUG
		                              : TW_DEATH_NONE;
	}
	if (st == TW_OK) {
		told_by_child = false;
		st = publish(j, r, answer, &why);
	}
	json_decref(answer);
	if (st == TW_OK || !is_environment(st, told_by_child))
		j->pause_ms = 0;
	if (st != TW_OK)
		ended = give_up_or_retry(j, r, &why, told_by_child);
	if (ended)
		free_slot(j, r);
}

/* --- the dispatcher --- */

static struct running *free_running(struct tw_jobs *j)
{
	for (unsigned i = 0; i < j->n_slots; i++)
		if (!j->slots[i].used)
			return &j->slots[i];
	return NULL;
}

/* Claims and starts one job; false when there is none or no room. */
static bool start_one(struct tw_jobs *j)
{
	struct running *r = free_running(j);
	const int64_t lease = tw_claims_lease_ms(j->app);
	struct tw_err err;
	enum tw_status st;

	if (!r || !tw_claims_fresh(j->claims))
		return false;
	*r = (struct running){
	        .arena = tw_arena_new(1 << 20), .started_ms = tw_monotonic_ms(), .system_fd = -1};
	if (!r->arena)
		return false;
	st = tw_catalogue_job_claim(
	        j->app->catalogue, j->app->node, lease, r->arena, &r->job, &err);
	if (st != TW_OK) {
		if (st != TW_NOT_FOUND)
			tw_log_err(TW_LOG_ERROR, "claim_failed", "claiming a job", &err);
		free_slot(j, r);
		return false;
	}
	tw_claims_add(j->claims, &r->job);
	tw_crash_point("job_claimed");
	st = start_child(j, r, &err);
	if (st == TW_OK) {
		tw_log(TW_LOG_INFO, "decoding", tw_log_text("trace", r->job.trace_id),
		        tw_log_number("try", r->job.tries), tw_log_number("pid", r->child.pid));
		r->used = true;
		return true;
	}
	if (give_up_or_retry(j, r, &err, false))
		free_slot(j, r);
	else
		r->used = true;
	return !is_environment(st, false);
}

static void settle_late(struct tw_jobs *j)
{
	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		if (r->used && r->ending != ENDING_NONE && settle(j, r))
			free_slot(j, r);
	}
}

static void check_deadlines(struct tw_jobs *j)
{
	int64_t now = tw_monotonic_ms();

	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		if (r->used && r->ending == ENDING_NONE && !r->child.killed &&
		        now > r->child.deadline_ms) {
			r->child.killed = true;
			tw_child_kill(&r->child);
		}
	}
}

/* Waits for a wake-up or the end of a child; true when at least one child is still running. */
static bool wait_and_finish(struct tw_jobs *j, int timeout_ms)
{
	struct pollfd fds[WORKERS_MAX + 1];
	struct running *of[WORKERS_MAX + 1];
	nfds_t n = 1;
	uint64_t count;

	fds[0] = (struct pollfd){.fd = j->wake_fd, .events = POLLIN};
	for (unsigned i = 0; i < j->n_slots; i++) {
		if (!j->slots[i].used || j->slots[i].ending != ENDING_NONE)
			continue;
		of[n] = &j->slots[i];
		fds[n++] = (struct pollfd){.fd = j->slots[i].child.pidfd, .events = POLLIN};
	}
	if (poll(fds, n, timeout_ms) > 0) {
		if (fds[0].revents)
			(void)!read(j->wake_fd, &count, sizeof count);
		for (nfds_t i = 1; i < n; i++)
			if (fds[i].revents)
				finish(j, of[i]);
	}
	check_deadlines(j);
	return n > 1;
}

static void drain(struct tw_jobs *j)
{
	int64_t until = tw_monotonic_ms() + (int64_t)j->drain_s * 1000;

	while (tw_monotonic_ms() < until && wait_and_finish(j, 50))
		continue;
	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];
		struct tw_err why = {.code = TW_BUSY};
		json_t *answer = NULL;
		struct tw_child_end end;

		if (!r->used)
			continue;
		if (r->ending == ENDING_NONE) {
			tw_child_kill(&r->child);
			if (tw_child_collect(&r->child, &answer, &end, &why) == TW_OK)
				json_decref(answer);
		}
		(void)unlink(r->out);
		free_slot(j, r); /* the next start finds the claim and queues it again */
	}
	j->claims = tw_claims_stop(j->claims);
	tw_claims_leave(j->app); /* others need not wait for its end */
}

static void *dispatch(void *arg)
{
	struct tw_jobs *j = arg;

	tw_jobs_sweep(j->app, &j->stop);
	while (!atomic_load(&j->stop)) {
		settle_late(j);
		while (!atomic_load(&j->stop) && tw_monotonic_ms() >= j->resume_ms && start_one(j))
			continue;
		(void)wait_and_finish(j, POLL_MS);
		if (j->app->resumes)
			tw_resumes_expire(j->app->resumes);
	}
	drain(j);
	return NULL;
}

static unsigned workers(const struct tw_config *c)
{
	unsigned n = c->roles & TW_ROLE_DECODE ? c->decode_workers : 0; /* it sweeps all the same */

	return n < WORKERS_MAX ? n : WORKERS_MAX;
}

enum tw_status tw_jobs_start(struct tw_app *app, struct tw_jobs **ret, struct tw_err *err)
{
	struct tw_jobs *j;
	enum tw_status st = tw_catalogue_jobs_recover(app->catalogue, err);

	if (st == TW_OK &&
	        !tw_catalogue_is_shared(app->catalogue)) /* else files are durable first */
		st = tw_jobs_prove_uploads(app, err);
	if (st == TW_OK)
		st = tw_jobs_clear_spool(app, err);
	if (st != TW_OK)
		return st;
	j = tw_mem_zalloc(1, sizeof *j);
	if (!j)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	st = tw_claims_start(app, &j->claims, err);
	if (st != TW_OK) {
		tw_mem_free(j);
		return st;
	}
	j->app = app;
	j->n_slots = workers(app->config);
	j->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->wake_fd < 0 || pthread_create(&j->thread, NULL, dispatch, j) != 0) {
		if (j->wake_fd >= 0)
			(void)close(j->wake_fd);
		(void)tw_claims_stop(j->claims);
		tw_mem_free(j);
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "the dispatcher could not be started");
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
	uint64_t one = 1;

	(void)!write(j->wake_fd, &one, sizeof one);
}

struct tw_app *tw_jobs_app(const struct tw_jobs *j)
{
	return j->app;
}
