/*
 * jobs_claim.c - leases on jobs, for servers that share a catalogue.
 *
 * Leases are short and renewed by a separate thread; a lease that is not renewed in time is lost. A
 * single server claims a job for as long as a decode may take, and at its start queues the jobs
 * that were claimed before.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/cond.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/jobs_run.h"
#include "server/storage/blob.h"

enum { SHARED_MS = 30000, RENEW_MS = 8000, AGAIN_MS = 1000, ALONE_SLACK_MS = 60000 };
enum { HELD = TW_RUN_WORKERS * TW_CHILD_JOBS + 8 }; /* and those of the compilers */
enum { STORE_MS = 6 * 3600 * 1000 };
_Static_assert(2 * RENEW_MS < SHARED_MS, "a claim outlives one renewal that fails");

struct claim { /* a copy: the renewing thread reads it while the dispatcher ends the job */
	char project_id[TW_ID_BYTES], trace_id[TW_ID_BYTES];
	uint32_t attempts;
	enum tw_queue queue;
};

struct tw_claims {
	const struct tw_decode_parts *parts;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t wake;
	bool stop;
	struct claim held[HELD];
	size_t n;
	int64_t renewed_ms; /* last renewal (monotonic) of all leases whose rows were not locked */
	/* of the renewing thread */
	struct claim copy[HELD];
	struct tw_job_row rows[HELD];
	const struct tw_job_row *jobs[HELD];
};

int64_t tw_claims_lease_ms(const struct tw_decode_parts *parts)
{
	const struct tw_config *c = parts->config;
	int64_t ms = (int64_t)c->worker_wall_s * 1000 * TW_CHILD_WALLS + ALONE_SLACK_MS;

	if (tw_catalogue_is_shared(parts->catalogue))
		return SHARED_MS;
	/* download and upload, with time for large files on a slow connection */
	return tw_blobs_remote(parts->blobs) ? ms + STORE_MS : ms;
}

/* --- renewing --- */

/* Renews the first n claims of the copy. */
static bool renew(struct tw_claims *c, size_t n)
{
	const struct tw_decode_parts *parts = c->parts;
	struct tw_err err;

	for (size_t i = 0; i < n; i++) {
		const struct claim *of = &c->copy[i];

		c->rows[i] = (struct tw_job_row){
		        of->project_id, of->trace_id, of->attempts, parts->node, of->queue};
		c->jobs[i] = &c->rows[i];
	}
	if (n == 0 ||
	        tw_catalogue_jobs_renew(parts->catalogue, c->jobs, n, SHARED_MS, &err) == TW_OK)
		return true;
	tw_log_err(TW_LOG_WARN, "claims_not_renewed", parts->node, &err);
	return false;
}

/* Call with the lock held. */
static void wait_ms(struct tw_claims *c, int64_t ms)
{
	if (!c->stop)
		(void)tw_cond_wait_until(&c->wake, &c->lock, tw_monotonic_ms() + ms);
}

static void *renew_loop(void *arg)
{
	struct tw_claims *c = arg;

	(void)pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		const size_t n = c->n;
		const int64_t now = tw_monotonic_ms();
		bool fine;

		memcpy(c->copy, c->held, n * sizeof *c->held);
		(void)pthread_mutex_unlock(&c->lock);
		fine = renew(c, n);
		(void)pthread_mutex_lock(&c->lock);
		if (fine)
			c->renewed_ms = now;
		wait_ms(c, fine ? RENEW_MS : AGAIN_MS);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* --- calls of the dispatcher --- */

enum tw_status tw_claims_start(
        const struct tw_decode_parts *parts, struct tw_claims **ret, struct tw_err *err)
{
	struct tw_claims *c;

	*ret = NULL;
	if (!tw_catalogue_is_shared(parts->catalogue))
		return TW_OK;
	c = tw_mem_zalloc(1, sizeof *c);
	if (!c)
		return tw_oom(err);
	c->parts = parts;
	(void)pthread_mutex_init(&c->lock, NULL);
	tw_cond_init(&c->wake);
	if (pthread_create(&c->thread, NULL, renew_loop, c) != 0) {
		tw_mem_free(c);
		return tw_fail(err, TW_IO, "claims could not be renewed: no thread");
	}
	*ret = c;
	return TW_OK;
}

struct tw_claims *tw_claims_stop(struct tw_claims *c)
{
	if (!c)
		return NULL;
	(void)pthread_mutex_lock(&c->lock);
	c->stop = true;
	(void)pthread_cond_signal(&c->wake);
	(void)pthread_mutex_unlock(&c->lock);
	(void)pthread_join(c->thread, NULL);
	(void)pthread_cond_destroy(&c->wake);
	(void)pthread_mutex_destroy(&c->lock);
	tw_mem_free(c);
	return NULL;
}

void tw_claims_add(struct tw_claims *c, const struct tw_job_row *job)
{
	if (!c)
		return;
	(void)pthread_mutex_lock(&c->lock);
	if (c->n == 0)
		c->renewed_ms = tw_monotonic_ms();
	if (c->n < HELD) {
		struct claim *of = &c->held[c->n++];

		(void)snprintf(of->project_id, sizeof of->project_id, "%s", job->project_id);
		(void)snprintf(of->trace_id, sizeof of->trace_id, "%s", job->trace_id);
		of->attempts = job->attempts;
		of->queue = job->queue;
	}
	(void)pthread_mutex_unlock(&c->lock);
}

void tw_claims_remove(struct tw_claims *c, const struct tw_job_row *job)
{
	if (!c || !job->trace_id)
		return;
	(void)pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->held[i].trace_id, job->trace_id) == 0 &&
		        c->held[i].attempts == job->attempts) {
			c->held[i] = c->held[--c->n];
			break;
		}
	(void)pthread_mutex_unlock(&c->lock);
}

bool tw_claims_are_current(struct tw_claims *c)
{
	bool fresh = true;

	if (!c)
		return true;
	(void)pthread_mutex_lock(&c->lock);
	fresh = c->n == 0 || tw_monotonic_ms() - c->renewed_ms < SHARED_MS / 2;
	(void)pthread_mutex_unlock(&c->lock);
	return fresh;
}

void tw_claims_release_all(const struct tw_decode_parts *parts)
{
	struct tw_err err;

	if (tw_catalogue_is_shared(parts->catalogue) &&
	        tw_catalogue_jobs_leave(parts->catalogue, parts->node, &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "claims_not_released", parts->node, &err);
}
