/*
 * jobs.c - the dispatcher: claims, children, results, retries.
 *
 * One thread.  It polls the wake-up event and the pidfd of each running child;
 * when a child ends, its answer decides: ready (file renamed and synced, then
 * the row), failed (the input is bad), or queued again (the child died, and
 * there are tries left).  Data folder sweeping is in jobs_sweep.c.
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
#include "catalogue.h"
#include "child.h"
#include "crash_point.h"
#include "jobs_internal.h"
#include "log.h"
#include "metrics.h"

enum { PATH_BYTES = 1500, POLL_MS = 1000, LEASE_SLACK_MS = 60000, WORKERS_MAX = 64 };

struct running { /* a child and its job */
	bool used;
	struct tw_child child;
	struct tw_arena *arena; /* of job */
	struct tw_job_row job;
	int64_t started_ms;
	char out[PATH_BYTES];
};

struct tw_jobs {
	struct tw_app *app;
	pthread_t thread;
	int wake_fd;
	_Atomic bool stop;
	_Atomic uint64_t serial; /* of map outputs */
	unsigned drain_s;
	unsigned n_slots;
	struct running slots[WORKERS_MAX];
	char owner[64];
};

static json_t *limits_json(const struct tw_config *c)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "memory_bytes",
	        (json_int_t)c->worker_memory_bytes, "cpu_s", (json_int_t)c->worker_cpu_s,
	        "file_bytes", (json_int_t)8 << 30, "decoded_bytes",
	        (json_int_t)c->limits.max_decoded_bytes, "ratio", (json_int_t)c->limits.max_ratio,
	        "slices", (json_int_t)c->limits.max_slices, "depth",
	        (json_int_t)c->limits.max_depth, "threads", (json_int_t)c->limits.max_threads,
	        "name_bytes", (json_int_t)c->limits.max_name_bytes, "jail", c->worker_jail);
}

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
	return json_pack("{s:s,s:o,s:o}", "kind", "trace", "parts", list, "limits", limits_json(c));
}

/* What a child is to write, made for it: it may open nothing itself. */
static enum tw_status open_output(const char *path, int *ret, struct tw_err *err)
{
	int fd;

	(void)unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return tw_fail(err, errno == ENOSPC || errno == EDQUOT ? TW_FULL : TW_IO,
		        TW_NO_OFFSET, "a place for the decoded trace cannot be made (errno %d)",
		        errno);
	*ret = fd;
	return TW_OK;
}

static enum tw_status start_on(struct tw_jobs *j, struct running *r, const struct tw_part *parts,
        const int *fds, size_t n, struct tw_err *err)
{
	json_t *task = trace_task(j->app->config, parts, n);
	struct tw_child_task t = {task, -1, fds, n, j->app->config->worker_wall_s};
	enum tw_status st;

	if (!task)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to start a decoder");
	st = open_output(r->out, &t.output, err);
	if (st == TW_OK) {
		st = tw_child_start(&r->child, &t, err);
		(void)close(t.output);
	}
	json_decref(task);
	return st;
}

static enum tw_status start_child(struct tw_jobs *j, struct running *r, struct tw_err *err)
{
	struct tw_app *app = j->app;
	struct tw_part *parts = NULL;
	int fds[TW_CHILD_INPUTS];
	size_t n = 0;
	enum tw_status st = tw_catalogue_trace_parts(
	        app->catalogue, r->job.project_id, r->job.trace_id, r->arena, &parts, &n, err);

	if (st != TW_OK)
		return st;
	tw_spool_path(app->blobs, r->job.trace_id, r->out, sizeof r->out);
	st = open_parts(app, parts, n, fds, err);
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

static uint64_t count_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static struct tw_trace_summary summary_of(const json_t *o)
{
	const char *format = json_string_value(json_object_get(o, "format"));

	return (struct tw_trace_summary){
	        .slices = count_of(o, "slices"),
	        .input_bytes = count_of(o, "input_bytes"),
	        .decoded_bytes = count_of(o, "decoded_bytes"),
	        .file_bytes = count_of(o, "file_bytes"),
	        .threads = (uint32_t)count_of(o, "threads"),
	        .methods = (uint32_t)count_of(o, "methods"),
	        .max_depth = (uint32_t)count_of(o, "max_depth"),
	        .losses = (uint32_t)count_of(o, "losses"),
	        .repairs = (uint32_t)count_of(o, "repairs"),
	        .duration_ns = (int64_t)count_of(o, "duration_ns"),
	        .format = format ? format : "",
	        .decoder_version = (uint32_t)count_of(o, "decoder_version"),
	};
}

static void error_of(const json_t *answer, struct tw_err *ret)
{
	const json_t *e = json_object_get(answer, "error");
	const char *word = json_string_value(json_object_get(e, "status"));
	const char *message = json_string_value(json_object_get(e, "message"));
	json_int_t offset = json_integer_value(json_object_get(e, "offset"));

	(void)tw_fail(ret, word ? tw_status_of_word(word) : TW_BUG,
	        offset < 0 ? TW_NO_OFFSET : (uint64_t)offset, "%s", message ? message : "");
}

static void drop_files(struct tw_jobs *j, const struct running *r)
{
	char path[PATH_BYTES];

	(void)unlink(r->out);
	if (tw_trace_path(j->app->blobs, r->job.trace_id, path, sizeof path, NULL) == TW_OK)
		(void)unlink(path);
}

static enum tw_status publish(
        struct tw_jobs *j, struct running *r, const json_t *answer, struct tw_err *err)
{
	struct tw_trace_summary s = summary_of(json_object_get(answer, "summary"));
	enum tw_status st = tw_trace_publish(j->app->blobs, r->out, r->job.trace_id, err);

	tw_crash_point("trace_renamed");
	if (st == TW_OK)
		st = tw_catalogue_job_done(j->app->catalogue, &r->job, &s, err);
	tw_crash_point("row_ready");
	if (st == TW_NOT_FOUND) { /* deleted while it was decoded: its file must go too */
		drop_files(j, r);
		return TW_OK;
	}
	if (st == TW_OK) {
		tw_metrics_decode(j->app->metrics, s.format, "ready",
		        (uint64_t)(tw_monotonic_ms() - r->started_ms) * 1000000);
		tell(r, "ready", NULL);
	}
	return st;
}

static bool worth_a_retry(enum tw_status st)
{
	return st == TW_IO || st == TW_FULL || st == TW_BUSY || st == TW_NOMEM || st == TW_BUG ||
	       st == TW_DEADLINE;
}

static void give_up_or_retry(struct tw_jobs *j, struct running *r, const struct tw_err *why)
{
	struct tw_catalogue *c = j->app->catalogue;
	struct tw_err err;
	bool retry = worth_a_retry(why->code) && r->job.tries < j->app->config->worker_tries;
	enum tw_status st;

	(void)unlink(r->out);
	if (retry)
		st = tw_catalogue_job_retry(c, &r->job, &err);
	else
		st = tw_catalogue_job_failed(c, &r->job, why, &err);
	tw_metrics_decode(j->app->metrics, "", retry ? "retry" : tw_status_word(why->code),
	        (uint64_t)(tw_monotonic_ms() - r->started_ms) * 1000000);
	tell(r, retry ? "retry" : "failed", why);
	if (st != TW_OK && st != TW_NOT_FOUND) /* the lease will run out and it is claimed again */
		tw_log_err(TW_LOG_ERROR, "job_not_ended", r->job.trace_id, &err);
}

static void free_slot(struct running *r)
{
	r->arena = tw_arena_free(r->arena);
	r->used = false;
}

static void finish(struct tw_jobs *j, struct running *r)
{
	json_t *answer = NULL;
	struct tw_err why = {0};
	bool crashed = false;
	enum tw_status st = tw_child_collect(&r->child, &answer, &crashed, &why);

	tw_crash_point("child_done");
	if (st == TW_OK && !json_is_true(json_object_get(answer, "ok"))) {
		error_of(answer, &why);
		st = why.code;
	}
	if (st == TW_OK)
		st = publish(j, r, answer, &why);
	if (st != TW_OK)
		give_up_or_retry(j, r, &why);
	json_decref(answer);
	free_slot(r);
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
	const struct tw_config *c = j->app->config;
	struct running *r = free_running(j);
	int64_t lease = (int64_t)c->worker_wall_s * 1000 + LEASE_SLACK_MS;
	struct tw_err err;
	enum tw_status st;

	if (!r)
		return false;
	*r = (struct running){.arena = tw_arena_new(1 << 20), .started_ms = tw_monotonic_ms()};
	if (!r->arena)
		return false;
	st = tw_catalogue_job_claim(j->app->catalogue, j->owner, lease, r->arena, &r->job, &err);
	if (st != TW_OK) {
		if (st != TW_NOT_FOUND)
			tw_log_err(TW_LOG_ERROR, "claim_failed", "claiming a job", &err);
		free_slot(r);
		return false;
	}
	tw_crash_point("job_claimed");
	st = start_child(j, r, &err);
	if (st == TW_OK) {
		r->used = true;
		return true;
	}
	give_up_or_retry(j, r, &err);
	free_slot(r);
	return st != TW_BUSY;
}

static void check_deadlines(struct tw_jobs *j)
{
	int64_t now = tw_monotonic_ms();

	for (unsigned i = 0; i < j->n_slots; i++) {
		struct running *r = &j->slots[i];

		if (r->used && !r->child.killed && now > r->child.deadline_ms) {
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
		if (!j->slots[i].used)
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
		bool crashed;

		if (!r->used)
			continue;
		tw_child_kill(&r->child);
		if (tw_child_collect(&r->child, &answer, &crashed, &why) == TW_OK)
			json_decref(answer);
		(void)unlink(r->out);
		free_slot(r); /* the next start finds the claim and queues it again */
	}
}

static void *dispatch(void *arg)
{
	struct tw_jobs *j = arg;

	tw_jobs_sweep(j->app, &j->stop);
	while (!atomic_load(&j->stop)) {
		while (!atomic_load(&j->stop) && start_one(j))
			continue;
		(void)wait_and_finish(j, POLL_MS);
	}
	drain(j);
	return NULL;
}

static unsigned workers(const struct tw_config *c)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = c->decode_workers ? c->decode_workers
	             : processors > 0  ? (unsigned)processors
	                               : 1;

	return n < WORKERS_MAX ? n : WORKERS_MAX;
}

enum tw_status tw_jobs_start(struct tw_app *app, struct tw_jobs **ret, struct tw_err *err)
{
	struct tw_jobs *j;
	enum tw_status st = tw_catalogue_jobs_recover(app->catalogue, err);

	if (st == TW_OK)
		st = tw_jobs_clear_spool(app->blobs, err);
	if (st != TW_OK)
		return st;
	j = tw_mem_zalloc(1, sizeof *j);
	if (!j)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	j->app = app;
	j->n_slots = workers(app->config);
	(void)snprintf(j->owner, sizeof j->owner, "pid-%d", (int)getpid());
	j->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->wake_fd < 0 || pthread_create(&j->thread, NULL, dispatch, j) != 0) {
		if (j->wake_fd >= 0)
			(void)close(j->wake_fd);
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

/* --- mappings --- */

static enum tw_status store_image(
        struct tw_app *app, const char *path, char ret_sha256[65], struct tw_err *err)
{
	struct tw_blob_writer *w = NULL;
	uint64_t bytes = 0;
	enum tw_status st = tw_blob_begin(app->blobs, UINT64_MAX, &w, err);

	if (st == TW_OK)
		st = tw_jobs_copy_file(path, w, err);
	if (st == TW_OK)
		st = tw_blob_commit(w, ret_sha256, &bytes, err);
	if (st != TW_OK)
		tw_blob_discard(w);
	return st;
}

static enum tw_status run_child(struct tw_jobs *j, const char *kind, int input, const char *out,
        json_t **ret, struct tw_err *err)
{
	const struct tw_config *c = j->app->config;
	json_t *limits = limits_json(c);
	json_t *task;
	struct tw_child_task t = {NULL, -1, &input, 1, c->worker_wall_s};
	struct tw_child child;
	bool crashed;
	enum tw_status st;

	if (limits)
		(void)json_object_set_new(
		        limits, "decoded_bytes", json_integer((json_int_t)c->max_mapping_bytes));
	t.task = task = json_pack("{s:s,s:o}", "kind", kind, "limits", limits);
	if (!task)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to read a mapping");
	st = open_output(out, &t.output, err);
	if (st == TW_OK) {
		st = tw_child_start(&child, &t, err);
		(void)close(t.output);
	}
	json_decref(task);
	if (st != TW_OK)
		return st;
	tw_child_wait(&child);
	st = tw_child_collect(&child, ret, &crashed, err);
	if (st == TW_OK && !json_is_true(json_object_get(*ret, "ok"))) {
		struct tw_err why;

		error_of(*ret, &why);
		json_decref(*ret);
		*ret = NULL;
		return tw_fail(err, why.code, why.offset, "%s", why.msg);
	}
	return st;
}

enum tw_status tw_jobs_run_map(struct tw_jobs *j, const char *kind, const char *source_sha256,
        char ret_image_sha256[65], json_t **ret_summary, struct tw_err *err)
{
	char name[96];
	char out[PATH_BYTES];
	json_t *answer = NULL;
	int input = -1;
	enum tw_status st = tw_blob_open(j->app->blobs, source_sha256, &input, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(name, sizeof name, "map-%d-%llu", (int)getpid(),
	        (unsigned long long)atomic_fetch_add(&j->serial, 1));
	tw_spool_path(j->app->blobs, name, out, sizeof out);
	st = run_child(j, kind, input, out, &answer, err);
	(void)close(input);
	if (st == TW_OK)
		st = store_image(j->app, out, ret_image_sha256, err);
	if (st == TW_OK)
		*ret_summary = json_incref(json_object_get(answer, "summary"));
	(void)unlink(out);
	json_decref(answer);
	return st;
}
