/*
 * jobs_map.c - the compilers: threads that claim queued mappings, each with one limited child at a
 * time.
 *
 * A job ends as for traces (jobs.h): ready, failed with its reason, retried after a crash, or
 * postponed while the server lacks a resource. A compiler holds no lock while its child runs. It
 * checks its claim once a second: if the job was deleted or replaced, the child is killed. At most
 * one compiler works for a project at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/file/io.h"
#include "server/base/log.h"
#include "server/base/role.h"
#include "server/base/text/json.h"
#include "server/base/thread/cond.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/shared_files.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/decode/jobs.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/jobs_run.h"
#include "server/decode/jobs_store.h"
#include "server/http/metrics.h"
#include "server/storage/blob.h"

enum {
	PATH_BYTES = 1500,
	COMPILERS = 2,
	PER_PROJECT = 1,
	ARENA_BYTES = 1 << 20,
	CHECK_MS = 1000, /* interval of queries for mappings uploaded to other servers, and for lost
	                   claims */
	POLL_MS = 200,
	PAUSE_LEAST_MS = 1000,
	PAUSE_MOST_MS = 30000
};

struct compiler { /* one per thread */
	struct tw_compilers *of;
	pthread_t thread;
	struct tw_arena *arena; /* of the current job */
	struct tw_job_row job;
	bool holds; /* has claimed the job, and not ended it */
	struct tw_mapping_sent sent;
	int64_t started_ms, pause_ms;
	char out[PATH_BYTES];
};

struct tw_compilers {
	const struct tw_decode_parts *parts;
	struct tw_claims *claims; /* of the dispatcher */
	pthread_mutex_t lock;     /* of the members below */
	pthread_cond_t wake;
	bool woken;
	int64_t stop_by_ms; /* monotonic; children still running then are killed; INT64_MAX: the
	                     * compilers do not stop */
	pthread_mutex_t claim_lock; /* of the next member and of each[].holds */
	bool claim_unknown;         /* the last claim failed, perhaps after it was committed */
	unsigned n;
	struct compiler each[COMPILERS];
};

enum tw_status tw_jobs_open_output(const char *path, int *ret, struct tw_err *err)
{
	int fd;

	(void)unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		bool full = tw_is_disk_full(errno);

		return tw_fail_errno(err, full ? TW_FULL : TW_IO,
		        "%s: the folder for the result cannot be created",
		        full ? "the disk is full" : "the disk failed");
	}
	*ret = fd;
	return TW_OK;
}

/* --- one mapping --- */

static int64_t stop_by_ms(struct tw_compilers *cs)
{
	int64_t ms;

	(void)pthread_mutex_lock(&cs->lock);
	ms = cs->stop_by_ms;
	(void)pthread_mutex_unlock(&cs->lock);
	return ms;
}

static bool is_stopping(struct tw_compilers *cs)
{
	return stop_by_ms(cs) != INT64_MAX;
}

static bool is_lost(const struct compiler *c)
{
	bool held = true;

	return tw_catalogue_job_held(c->of->parts->catalogue, &c->job, -TW_DAY_MS, &held, NULL) ==
	               TW_OK &&
	       !held;
}

enum watched { ENDED, LOST, STOPPED };

/* Waits until the child has ended, by itself or killed. */
static enum watched watch(struct compiler *c, struct tw_child *child)
{
	struct pollfd p = {.fd = child->pidfd, .events = POLLIN};
	int64_t check_ms = tw_monotonic_ms() + CHECK_MS;
	enum watched how = ENDED;

	while (how == ENDED && !child->killed && poll(&p, 1, POLL_MS) <= 0) {
		const int64_t now = tw_monotonic_ms();

		if (now >= stop_by_ms(c->of))
			how = STOPPED;
		else if (now >= check_ms && is_lost(c))
			how = LOST;
		else if (tw_child_is_overdue(child, now))
			child->killed = true;
		if (now >= check_ms)
			check_ms = now + CHECK_MS;
	}
	if (how != ENDED || child->killed)
		tw_child_kill(child);
	return how;
}

static enum tw_status start_child(
        struct compiler *c, int input, struct tw_child *child, struct tw_err *err)
{
	const struct tw_config *config = c->of->parts->config;
	json_t *limits = tw_child_limits(config);
	struct tw_child_task t = {.second = -1,
	        .inputs = &input,
	        .n_inputs = 1,
	        .wall_s = config->worker_wall_s,
	        .background = true};
	json_t *task;
	enum tw_status st;

	if (limits)
		(void)json_object_set_new(limits, "decoded_bytes",
		        json_integer((json_int_t)config->max_mapping_bytes));
	t.task = task = json_pack("{s:s,s:s,s:o}", "kind", tw_mapping_kind_words[c->sent.kind],
	        "build", c->sent.build_id, "limits", limits);
	if (!task)
		return tw_oom(err);
	st = tw_blobs_check_reserve(c->of->parts->blobs, err); /* the reserve is for deletes */
	if (st == TW_OK)
		st = tw_jobs_open_output(c->out, &t.output, err);
	if (st == TW_OK) {
		st = tw_child_start(child, &t, err);
		(void)close(t.output);
	}
	json_decref(task);
	return st;
}

struct outcome {
	enum watched how;
	enum fault fault;
	struct tw_child_end end;
	json_t *answer; /* owned; only if the child succeeded */
};

static enum tw_status run_child(
        struct compiler *c, int input, struct outcome *ret, struct tw_err *err)
{
	struct tw_child child;
	json_t *answer = NULL;
	enum tw_status st = start_child(c, input, &child, err);

	if (st != TW_OK)
		return st;
	ret->fault = FAULT_CHILD;
	ret->how = watch(c, &child);
	st = tw_child_collect(&child, &answer, &ret->end, err);
	tw_crash_point("mapping_compiled");
	if (st != TW_OK)
		return st;
	if (json_is_true(json_object_get(answer, "ok"))) {
		ret->answer = answer;
		return TW_OK;
	}
	if (json_is_true(json_object_get(answer, "input_failed")))
		ret->fault = FAULT_INPUT;
	tw_child_error(answer, err);
	json_decref(answer);
	return err->code;
}

static enum tw_status compile(struct compiler *c, struct outcome *ret, struct tw_err *err)
{
	const struct tw_decode_parts *parts = c->of->parts;
	int input = -1;
	enum tw_status st;

	*ret = (struct outcome){
	        .fault = tw_blobs_remote(parts->blobs) ? FAULT_SERVER : FAULT_INPUT};
	st = tw_blob_open(parts->blobs, c->sent.source_sha256, &input, err);
	if (st != TW_OK)
		return st;
	ret->fault = FAULT_SERVER;
	st = run_child(c, input, ret, err);
	(void)close(input);
	return st;
}

/* The row of the mapping that a child compiled, by its summary. */
static struct tw_build_row row_of(
        const struct compiler *c, const json_t *summary, const char *image)
{
	const char *source = c->sent.source_sha256;
	const json_int_t at = json_integer_value(json_object_get(summary, "first_malformed"));

	return (struct tw_build_row){
	        .build_id = c->sent.build_id,
	        .map_sha256 = image,
	        .source_sha256 = source,
	        .map_version = tw_json_text(summary, "version"),
	        .entries = tw_json_count(summary, "entries"),
	        .malformed = tw_json_count(summary, "malformed"),
	        .duplicates = tw_json_count(summary, "duplicates"),
	        .first_malformed = at,
	        .app = "",
	        .version_name = "",
	        .retrace = {.sha256 = image,
	                .source_sha256 = source,
	                .id = tw_json_text(summary, "id"),
	                .classes = tw_json_count(summary, "classes"),
	                .methods = tw_json_count(summary, "methods"),
	                .malformed = tw_json_count(summary, "malformed"),
	                .first_malformed = at},
	};
}

/* Call between tw_blob_use_begin and tw_blob_use_end. */
static enum tw_status commit(struct compiler *c, struct tw_blob_writer *w, const json_t *summary,
        struct tw_blob_list *ret_unused, struct tw_err *err)
{
	const struct tw_decode_parts *parts = c->of->parts;
	char image[TW_SHA256_HEX];
	struct tw_needed_blobs needed = {
	        parts->catalogue, parts->blobs, {c->sent.source_sha256, image}, false};
	struct tw_build_row row;
	enum tw_status st = tw_blob_commit(w, image, err);

	if (st != TW_OK) {
		tw_blob_discard(w);
		return st;
	}
	row = row_of(c, summary, image);
	tw_crash_point("mapping_stored");
	tw_need_blobs(&needed);
	st = tw_catalogue_mapping_done(
	        parts->catalogue, &c->job, &c->sent, &row, c->arena, ret_unused, err);
	st = tw_end_need_blobs(&needed, st, err);
	if (st == TW_OK)
		return st;
	/* the image's blob has no row, unless another build has the same content */
	ret_unused->sha256 = tw_arena_alloc(c->arena, 1, sizeof *ret_unused->sha256);
	if (ret_unused->sha256)
		*ret_unused->sha256 = tw_arena_str(c->arena, tw_str_of(image));
	ret_unused->n = ret_unused->sha256 && *ret_unused->sha256;
	return st;
}

static enum tw_status copy_file(const char *path, struct tw_blob_writer *w, struct tw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st;

	if (fd < 0)
		return tw_fail_errno(err, TW_IO, "%s cannot be read", path);
	st = tw_blob_write_fd(w, fd, err);
	(void)close(fd);
	return st;
}

static enum tw_status publish(struct compiler *c, const json_t *summary,
        struct tw_blob_list *ret_unused, struct tw_err *err)
{
	const struct tw_decode_parts *parts = c->of->parts;
	struct tw_blob_writer *w = NULL;
	enum tw_status st = tw_blob_begin(parts->blobs, UINT64_MAX, &w, err);

	if (st == TW_OK)
		st = copy_file(c->out, w, err);
	if (st != TW_OK) {
		tw_blob_discard(w);
		return st;
	}
	tw_blob_use_begin(parts->blobs);
	st = commit(c, w, summary, ret_unused, err);
	tw_blob_use_end(parts->blobs);
	return st;
}

/* --- the end of a job --- */

static void log_end(const struct compiler *c, const char *outcome, const struct tw_err *why)
{
	tw_metrics_mapping(c->of->parts->metrics, outcome);
	tw_log(why ? TW_LOG_WARN : TW_LOG_INFO, "mapping_compiled",
	        tw_log_text("build", c->sent.build_id),
	        tw_log_text("kind", tw_mapping_kind_words[c->sent.kind]),
	        tw_log_text("outcome", outcome), tw_log_number("attempt", c->job.attempts),
	        tw_log_number("ms", tw_monotonic_ms() - c->started_ms),
	        tw_log_text("reason", why ? why->msg : ""));
}

static bool worth_a_retry(const struct outcome *o, enum tw_status st)
{
	return st == TW_NOMEM || st == TW_BUG || (st == TW_IO && o->fault == FAULT_INPUT) ||
	       (st == TW_DEADLINE && o->end.death == TW_DEATH_MEMORY);
}

/* The end of a job without an image, as in log and metrics. */
enum end { END_RETRY, END_POSTPONED, END_FAILED, END_ABANDONED, END_STOPPED };
static const char *const end_names[] = {"retry", "postponed", "failed", "abandoned", "stopped"};

static enum end end_of(const struct compiler *c, const struct outcome *o, enum tw_status why)
{
	if (o->how != ENDED)
		return o->how == LOST ? END_ABANDONED : END_STOPPED;
	if (tw_run_is_environment(why, o->fault))
		return END_POSTPONED;
	return worth_a_retry(o, why) && c->job.attempts < c->of->parts->config->worker_attempts
	               ? END_RETRY
	               : END_FAILED;
}

static enum tw_status write_end(struct compiler *c, enum end end, const struct tw_err *why,
        struct tw_blob_list *ret_unused, struct tw_err *err)
{
	struct tw_catalogue *catalogue = c->of->parts->catalogue;
	struct tw_err reported = *why;

	if (end == END_STOPPED) /* the claim is released with all others */
		return TW_OK;
	if (end == END_POSTPONED)
		return tw_catalogue_job_wait(catalogue, &c->job, why, err);
	if (end != END_FAILED) /* of an abandoned job: fails with the reason */
		return tw_catalogue_job_retry(catalogue, &c->job, err);
	/* a deadline would be exceeded again: the client has to send the mapping again */
	if (why->code == TW_DEADLINE)
		reported.code = TW_TOO_LARGE;
	return tw_catalogue_mapping_failed(
	        catalogue, &c->job, &c->sent, &reported, c->arena, ret_unused, err);
}

static void wait_ms(struct tw_compilers *cs, int64_t ms);

/* If the result cannot be written it is written later; a restart finds the claim. */
static void give_up(struct compiler *c, const struct outcome *o, const struct tw_err *why)
{
	struct tw_blob_list unused = {NULL, 0};
	struct tw_err err;
	enum end end = end_of(c, o, why->code);
	enum tw_status st = write_end(c, end, why, &unused, &err);

	while (st != TW_OK && st != TW_NOT_FOUND && st != TW_CONFLICT && !is_stopping(c->of)) {
		tw_log_err(TW_LOG_ERROR, "job_result_not_written", c->job.trace_id, &err);
		wait_ms(c->of, CHECK_MS);
		st = write_end(c, end, why, &unused, &err);
	}
	c->pause_ms = end != END_POSTPONED ? 0 : c->pause_ms ? 2 * c->pause_ms : PAUSE_LEAST_MS;
	if (st == TW_NOT_FOUND || st == TW_CONFLICT)
		end = END_ABANDONED;
	tw_record_build(c->of->parts->recorder, c->job.project_id, c->sent.build_id);
	log_end(c, end_names[end], why);
	tw_store_drop_blobs(c->of->parts->store_job, &unused);
	if (c->pause_ms > PAUSE_MOST_MS)
		c->pause_ms = PAUSE_MOST_MS;
}

static void succeed(struct compiler *c, const struct tw_blob_list *unused)
{
	const struct tw_decode_parts *parts = c->of->parts;

	c->pause_ms = 0;
	tw_record_build(parts->recorder, c->job.project_id, c->sent.build_id);
	log_end(c, "ready", NULL);
	tw_store_drop_blobs(parts->store_job, unused);
}

static void work(struct compiler *c)
{
	const struct tw_decode_parts *parts = c->of->parts;
	struct tw_blob_list unused = {NULL, 0};
	struct outcome o = {.fault = FAULT_SERVER};
	struct tw_err why = {.msg = ""}; /* a child may succeed just before it is killed */
	char name[64];
	enum tw_status st =
	        tw_catalogue_mapping_get(parts->catalogue, &c->job, c->arena, &c->sent, &why);

	(void)snprintf(name, sizeof name, "map-%s-%u", c->job.trace_id, c->job.attempts);
	tw_spool_path(parts->blobs, name, c->out, sizeof c->out);
	if (st == TW_OK)
		st = compile(c, &o, &why);
	if (st == TW_OK && o.how == ENDED) {
		o.fault = FAULT_SERVER;
		st = publish(c, json_object_get(o.answer, "summary"), &unused, &why);
	}
	(void)unlink(c->out);
	json_decref(o.answer);
	if (st == TW_OK && o.how == ENDED)
		succeed(c, &unused);
	else {
		give_up(c, &o, &why);
		tw_store_drop_blobs(parts->store_job, &unused);
	}
	if (parts->ended)
		parts->ended(parts->arg, TW_QUEUE_MAPPINGS);
}

/* --- the threads --- */

static void wait_ms(struct tw_compilers *cs, int64_t ms)
{
	(void)pthread_mutex_lock(&cs->lock);
	if (cs->stop_by_ms == INT64_MAX && !cs->woken)
		(void)tw_cond_wait_until(&cs->wake, &cs->lock, tw_monotonic_ms() + ms);
	cs->woken = false;
	(void)pthread_mutex_unlock(&cs->lock);
}

/* Jobs of a claim whose reply was lost are queued again.  Call with claim_lock held. */
static bool release_unknown(struct tw_compilers *cs)
{
	const char *held[COMPILERS];
	struct tw_err err;
	size_t n = 0;

	if (!cs->claim_unknown)
		return true;
	for (unsigned i = 0; i < COMPILERS; i++)
		if (cs->each[i].holds)
			held[n++] = cs->each[i].job.trace_id;
	if (tw_catalogue_jobs_release_except(cs->parts->catalogue, TW_QUEUE_MAPPINGS,
	            cs->parts->node, held, n, &err) != TW_OK) {
		tw_log_err(TW_LOG_ERROR, "claim_failed", "releasing mappings", &err);
		return false;
	}
	cs->claim_unknown = false;
	return true;
}

/* One thread at a time, so that release_unknown knows the jobs of the others. */
static enum tw_status claim_exclusive(
        struct compiler *c, const struct tw_claim *of, struct tw_err *err)
{
	struct tw_compilers *cs = c->of;
	enum tw_status st = TW_NOT_FOUND;

	(void)pthread_mutex_lock(&cs->claim_lock);
	if (release_unknown(cs)) {
		st = tw_catalogue_queue_claim(cs->parts->catalogue, of, c->arena, &c->job, err);
		c->holds = st == TW_OK;
		cs->claim_unknown = st != TW_OK && st != TW_NOT_FOUND;
	}
	(void)pthread_mutex_unlock(&cs->claim_lock);
	return st;
}

static bool claim(struct compiler *c)
{
	const struct tw_decode_parts *parts = c->of->parts;
	const struct tw_claim of = {
	        TW_QUEUE_MAPPINGS, parts->node, tw_claims_lease_ms(parts), PER_PROJECT};
	struct tw_err err;
	enum tw_status st;

	if (!tw_claims_are_current(c->of->claims))
		return false;
	st = claim_exclusive(c, &of, &err);
	if (st != TW_OK && st != TW_NOT_FOUND)
		tw_log_err(TW_LOG_ERROR, "claim_failed", "claiming a mapping", &err);
	if (st != TW_OK)
		return false;
	tw_claims_add(c->of->claims, &c->job);
	c->started_ms = tw_monotonic_ms();
	c->sent = (struct tw_mapping_sent){.build_id = "", .source_sha256 = ""};
	tw_crash_point("mapping_claimed");
	return true;
}

static void *run(void *arg)
{
	struct compiler *c = arg;

	while (!is_stopping(c->of)) {
		tw_arena_reset(c->arena);
		if (claim(c)) {
			work(c);
			tw_claims_remove(c->of->claims, &c->job);
			(void)pthread_mutex_lock(&c->of->claim_lock);
			c->holds = false;
			(void)pthread_mutex_unlock(&c->of->claim_lock);
		} else {
			wait_ms(c->of, CHECK_MS);
		}
		if (c->pause_ms)
			wait_ms(c->of, c->pause_ms);
	}
	return NULL;
}

static enum tw_status start_thread(struct tw_compilers *cs, struct tw_err *err)
{
	struct compiler *c = &cs->each[cs->n];

	c->of = cs;
	c->arena = tw_arena_new(ARENA_BYTES);
	if (!c->arena || pthread_create(&c->thread, NULL, run, c) != 0) {
		(void)tw_arena_free(c->arena);
		return tw_fail(err, TW_IO, "the compilers could not be started");
	}
	cs->n++;
	return TW_OK;
}

enum tw_status tw_compilers_start(const struct tw_decode_parts *parts, struct tw_claims *claims,
        struct tw_compilers **ret, struct tw_err *err)
{
	struct tw_compilers *cs;
	enum tw_status st = TW_OK;

	*ret = NULL;
	if (!(parts->config->roles & TW_ROLE_DECODE))
		return TW_OK;
	cs = tw_mem_zalloc(1, sizeof *cs);
	if (!cs)
		return tw_oom(err);
	cs->parts = parts;
	cs->claims = claims;
	cs->stop_by_ms = INT64_MAX;
	(void)pthread_mutex_init(&cs->lock, NULL);
	(void)pthread_mutex_init(&cs->claim_lock, NULL);
	tw_cond_init(&cs->wake);
	while (st == TW_OK && cs->n < COMPILERS)
		st = start_thread(cs, err);
	if (st == TW_OK)
		*ret = cs;
	else
		(void)tw_compilers_stop(cs, 0);
	return st;
}

struct tw_compilers *tw_compilers_stop(struct tw_compilers *cs, unsigned drain_s)
{
	if (!cs)
		return NULL;
	(void)pthread_mutex_lock(&cs->lock);
	cs->stop_by_ms = tw_monotonic_ms() + (int64_t)drain_s * 1000;
	(void)pthread_cond_broadcast(&cs->wake);
	(void)pthread_mutex_unlock(&cs->lock);
	for (unsigned i = 0; i < cs->n; i++) {
		(void)pthread_join(cs->each[i].thread, NULL);
		(void)tw_arena_free(cs->each[i].arena);
	}
	(void)pthread_cond_destroy(&cs->wake);
	(void)pthread_mutex_destroy(&cs->lock);
	(void)pthread_mutex_destroy(&cs->claim_lock);
	tw_mem_free(cs);
	return NULL;
}

void tw_jobs_wake_compilers(struct tw_jobs *j)
{
	struct tw_compilers *cs = j->compilers;

	if (!cs)
		return;
	(void)pthread_mutex_lock(&cs->lock);
	cs->woken = true;
	(void)pthread_cond_broadcast(&cs->wake);
	(void)pthread_mutex_unlock(&cs->lock);
}
