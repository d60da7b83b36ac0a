/*
 * preflight.c - the preflight processes of a server: which one checks an upload, and how long
 * callers wait.
 *
 * Threads of their own talk to the processes, AT_ONCE at a time; the caller fetches the result
 * later. Without a result in time the upload is accepted without a preflight, so uploads that make
 * processes hang delay others by START_MS at most; a project that has sent one is not checked for
 * SKIP_MS, or its next upload would delay them again.  A process checks uploads of one project
 * only: what its memory still holds of an earlier upload can be told only to who sent it.  KEPT
 * processes stay for the next upload; the one that was idle longest makes room for another
 * project's.
 */
#include "server/decode/preflight.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/pool.h"
#include "server/decode/preflight_process.h"

/* KEPT > AT_ONCE: one is always free.  CHECK_MS: a check, and a second one by a new process. */
enum { AT_ONCE = 4, KEPT = 16, START_MS = 2000, CHECK_MS = (TW_PREFLIGHT_TIMEOUT_S + 1) * 1000 };

/* QUEUED: more would not be checked in time, and each holds a copy of an upload's first bytes. */
enum { SKIP_MS = 60000, SKIPPED = 32, QUEUED = 256 };

struct skipped_project {
	char project_id[TW_ID_BYTES];
	int64_t until_ms; /* CLOCK_MONOTONIC */
};

struct tw_preflights {
	const struct tw_config *config;
	struct tw_metrics *metrics;
	struct tw_pool *pool;
	pthread_mutex_t lock; /* of the members below, and of preflights */
	pthread_cond_t done;
	unsigned queued; /* preflights that no thread has taken yet */
	int64_t turns;
	struct tw_preflight_process processes[KEPT];
	struct skipped_project skipped[SKIPPED]; /* the oldest makes room */
	unsigned next_skipped;
};

/* Its head is a copy: the caller may have cancelled before it is read. */
struct tw_preflight {
	struct tw_pool_task task; /* first: the pool passes it to run() */
	struct tw_preflights *of;
	char project_id[TW_ID_BYTES];
	struct tw_head head;
	int64_t until_ms; /* CLOCK_MONOTONIC; nobody waits longer */
	bool is_done;
	bool is_cancelled; /* nobody waits any more: the thread that runs it frees it */
	enum tw_status status;
	const struct tw_format *format;
	struct tw_err err;
	uint8_t bytes[];
};

static void make_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

struct tw_preflights *tw_preflights_new(const struct tw_config *c, struct tw_metrics *metrics)
{
	struct tw_preflights *ps = tw_mem_zalloc(1, sizeof *ps);

	if (!ps)
		return NULL;
	ps->config = c;
	ps->metrics = metrics;
	(void)pthread_mutex_init(&ps->lock, NULL);
	make_cond(&ps->done);
	if (tw_pool_start(AT_ONCE, &ps->pool, NULL) != TW_OK)
		return tw_preflights_free(ps);
	return ps;
}

struct tw_preflights *tw_preflights_free(struct tw_preflights *ps)
{
	if (!ps)
		return NULL;
	ps->pool = tw_pool_stop(ps->pool);
	for (size_t i = 0; i < KEPT; i++)
		tw_preflight_process_end(&ps->processes[i]);
	(void)pthread_cond_destroy(&ps->done);
	(void)pthread_mutex_destroy(&ps->lock);
	tw_mem_free(ps);
	return NULL;
}

/* --- choosing a process, with the lock held --- */

/* The project's own process before a new one, and that before ending another project's. */
static int preference(const struct tw_preflight_process *process, const char *project_id)
{
	if (!process->is_running)
		return 1;
	return strcmp(process->project_id, project_id) == 0 ? 2 : 0;
}

static struct tw_preflight_process *take_process(struct tw_preflights *ps, const char *project_id)
{
	struct tw_preflight_process *best = NULL;

	for (size_t i = 0; i < KEPT; i++) {
		struct tw_preflight_process *process = &ps->processes[i];
		int better;

		if (process->busy) /* its other members belong to the thread that uses it */
			continue;
		better = best ? preference(process, project_id) - preference(best, project_id) : 1;
		if (better > 0 || (better == 0 && process->used < best->used))
			best = process;
	}
	best->busy = true;
	best->used = ++ps->turns;
	return best;
}

static bool is_skipped(const struct tw_preflights *ps, const char *project_id)
{
	int64_t now = tw_monotonic_ms();

	for (size_t i = 0; i < SKIPPED; i++)
		if (now < ps->skipped[i].until_ms &&
		        strcmp(ps->skipped[i].project_id, project_id) == 0)
			return true;
	return false;
}

static void skip(struct tw_preflights *ps, const char *project_id)
{
	struct skipped_project *s = &ps->skipped[ps->next_skipped++ % SKIPPED];

	(void)snprintf(s->project_id, sizeof s->project_id, "%s", project_id);
	s->until_ms = tw_monotonic_ms() + SKIP_MS;
	tw_log(TW_LOG_WARN, "preflight_skips_project", tw_log_text("project", project_id),
	        tw_log_number("ms", SKIP_MS));
}

/* --- a preflight --- */

/* Returns the process that was used, which stays busy. */
static struct tw_preflight_process *check(struct tw_preflight *p)
{
	struct tw_preflights *ps = p->of;
	struct tw_preflight_process *process = take_process(ps, p->project_id);

	p->until_ms = tw_monotonic_ms() + CHECK_MS;
	(void)pthread_mutex_unlock(&ps->lock);
	tw_preflight_process_assign(process, p->project_id);
	p->status = tw_preflight_process_check(
	        process, ps->config, ps->metrics, &p->head, &p->format, &p->err);
	(void)pthread_mutex_lock(&ps->lock);
	if (process->timed_out && !is_skipped(ps, p->project_id))
		skip(ps, p->project_id);
	return process;
}

/* Called before the lock is released, so that the project's next upload finds the process idle.  A
 * process that is used up is replaced first, without the lock. */
static void release(struct tw_preflights *ps, struct tw_preflight_process *process)
{
	if (tw_preflight_process_is_used_up(process)) {
		(void)pthread_mutex_unlock(&ps->lock);
		tw_preflight_process_replace(process, ps->config);
		(void)pthread_mutex_lock(&ps->lock);
	}
	process->busy = false;
}

static void run(struct tw_pool_task *task, bool stopping)
{
	struct tw_preflight *p = (struct tw_preflight *)task;
	struct tw_preflights *ps = p->of;
	struct tw_preflight_process *used = NULL;
	bool is_cancelled;

	(void)pthread_mutex_lock(&ps->lock);
	ps->queued--;
	if (!stopping && !p->is_cancelled && tw_monotonic_ms() < p->until_ms &&
	        !is_skipped(ps, p->project_id))
		used = check(p);
	p->is_done = true;
	is_cancelled = p->is_cancelled; /* if not, it may be freed from here on */
	(void)pthread_cond_broadcast(&ps->done);
	if (used)
		release(ps, used);
	(void)pthread_mutex_unlock(&ps->lock);
	if (is_cancelled)
		tw_mem_free(p);
}

static bool may_queue(struct tw_preflights *ps)
{
	bool may;

	(void)pthread_mutex_lock(&ps->lock);
	may = ps->queued < QUEUED;
	ps->queued += may;
	(void)pthread_mutex_unlock(&ps->lock);
	return may;
}

static void unqueue(struct tw_preflights *ps)
{
	(void)pthread_mutex_lock(&ps->lock);
	ps->queued--;
	(void)pthread_mutex_unlock(&ps->lock);
}

enum tw_status tw_preflight_begin(struct tw_preflights *ps, const char *project_id,
        const struct tw_head *head, struct tw_preflight **ret, struct tw_err *err)
{
	struct tw_preflight *p;

	*ret = NULL;
	if (!ps || !may_queue(ps))
		return TW_OK;
	p = tw_mem_zalloc(1, sizeof *p + head->n);
	if (!p) {
		unqueue(ps);
		return tw_oom(err);
	}
	p->task.run = run;
	p->of = ps;
	(void)snprintf(p->project_id, sizeof p->project_id, "%s", project_id);
	p->task.owner = p->project_id;
	memcpy(p->bytes, head->bytes, head->n);
	p->head = *head;
	p->head.bytes = p->bytes;
	p->until_ms = tw_monotonic_ms() + START_MS;
	if (!tw_pool_submit(ps->pool, &p->task)) {
		unqueue(ps);
		tw_mem_free(p); /* the server is shutting down */
		return TW_OK;
	}
	*ret = p;
	return TW_OK;
}

bool tw_preflight_is_done(const struct tw_preflight *p)
{
	bool is_done;

	(void)pthread_mutex_lock(&p->of->lock);
	is_done = p->is_done;
	(void)pthread_mutex_unlock(&p->of->lock);
	return is_done;
}

/* Reads the deadline each time, because it is set when the request is sent. */
static void wait_for(struct tw_preflight *p)
{
	(void)pthread_mutex_lock(&p->of->lock);
	while (!p->is_done && tw_monotonic_ms() < p->until_ms) {
		const struct timespec end = {
		        .tv_sec = p->until_ms / 1000, .tv_nsec = p->until_ms % 1000 * 1000000};

		(void)pthread_cond_timedwait(&p->of->done, &p->of->lock, &end);
	}
	(void)pthread_mutex_unlock(&p->of->lock);
}

struct tw_preflight *tw_preflight_cancel(struct tw_preflight *p)
{
	bool is_done;

	if (!p)
		return NULL;
	(void)pthread_mutex_lock(&p->of->lock);
	is_done = p->is_done;
	p->is_cancelled = true;
	(void)pthread_mutex_unlock(&p->of->lock);
	if (is_done)
		tw_mem_free(p);
	return NULL;
}

enum tw_status tw_preflight_end(
        struct tw_preflight *p, const struct tw_format **ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	*ret = NULL;
	if (!p)
		return TW_OK;
	wait_for(p);
	if (tw_preflight_is_done(p)) {
		st = p->status;
		*ret = p->format;
	}
	if (st != TW_OK)
		tw_err_copy(err, &p->err);
	(void)tw_preflight_cancel(p);
	return st;
}
