#include "server/base/thread/pool.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/thread/fair.h"

enum { STACK_BYTES = 1 << 20, RUN_BYTES = 16 };

/* Tasks of one owner.  Exists while any of them is waiting or running. */
struct lane {
	struct lane *next;
	char owner[TW_ID_BYTES];
	struct tw_pool_task *first, **last; /* waiting */
	unsigned running;
};

struct tw_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct tw_fair fair;
	struct lane common; /* of tasks without an owner; the others follow it */
	unsigned waiting, running, started;
	bool stopping;
	unsigned n; /* threads, including the spare one */
	pthread_t threads[];
};

static _Thread_local const char *owner_here = "";

const char *tw_pool_owner(void)
{
	return owner_here;
}

static void empty_lane(struct lane *l, const char *owner)
{
	*l = (struct lane){.last = &l->first};
	(void)snprintf(l->owner, sizeof l->owner, "%s", owner);
}

static bool is_of(const struct lane *l, const char *owner)
{
	return strncmp(l->owner, owner, sizeof l->owner - 1) == 0;
}

/* A new lane is appended, so that of two with equal accounts the older goes first. */
static struct lane *lane_of(struct tw_pool *p, const char *owner)
{
	struct lane *l = &p->common;

	if (!owner || !*owner)
		return l;
	while (l->next && !is_of(l->next, owner))
		l = l->next;
	if (!l->next) {
		l->next = tw_mem_zalloc(1, sizeof *l->next);
		if (!l->next)
			return &p->common;
		empty_lane(l->next, owner);
	}
	return l->next;
}

static void drop_if_empty(struct tw_pool *p, struct lane *l)
{
	struct lane *before = &p->common;

	if (l == &p->common || l->first || l->running)
		return;
	while (before->next != l)
		before = before->next;
	before->next = l->next;
	tw_mem_free(l);
}

/* The last free thread is the spare one. */
static bool may_run(const struct tw_pool *p, const struct lane *l)
{
	return p->stopping || l->running == 0 || p->running + 1 < p->n;
}

static struct lane *next_lane(struct tw_pool *p)
{
	struct lane *best = NULL;
	uint64_t best_at = 0;

	if (p->waiting == 0)
		return NULL;
	for (struct lane *l = &p->common; l; l = l->next) {
		uint64_t level;
		uint64_t at;

		if (!l->first || !may_run(p, l))
			continue;
		at = tw_fair_level(&p->fair, l->owner, &level);
		if (!best || at < best_at) {
			best = l;
			best_at = at;
		}
		if (at == level) /* none is lower */
			break;
	}
	return best;
}

static struct tw_pool_task *take(struct tw_pool *p, struct lane *l)
{
	struct tw_pool_task *task = l->first;

	l->first = task->next;
	if (!l->first)
		l->last = &l->first;
	p->waiting--;
	return task;
}

/* Call with the lock held; releases it while the task runs.  `run`: the thread's name for
 * fair.h. */
static void run_one(struct tw_pool *p, struct lane *l, const char *run)
{
	struct tw_pool_task *task = take(p, l);
	bool stopping = p->stopping;

	l->running++;
	p->running++;
	tw_fair_begin(&p->fair, l->owner, run, 0);
	(void)pthread_mutex_unlock(&p->lock);
	owner_here = l->owner;
	task->run(task, stopping);
	owner_here = "";
	(void)pthread_mutex_lock(&p->lock);
	tw_fair_end(&p->fair, run);
	p->running--;
	l->running--;
	drop_if_empty(p, l);
	if (p->waiting == 0)
		tw_fair_idle(&p->fair);
}

static void *work(void *arg)
{
	struct tw_pool *p = arg;
	char run[RUN_BYTES];

	(void)pthread_mutex_lock(&p->lock);
	(void)snprintf(run, sizeof run, "%u", p->started++);
	for (;;) {
		struct lane *l = next_lane(p);

		if (l)
			run_one(p, l, run);
		else if (p->stopping)
			break;
		else
			(void)pthread_cond_wait(&p->wake, &p->lock);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

enum tw_status tw_pool_start(unsigned threads, struct tw_pool **ret, struct tw_err *err)
{
	unsigned all = threads + 1;
	struct tw_pool *p = tw_mem_zalloc(1, sizeof *p + all * sizeof *p->threads);
	pthread_attr_t attr;
	int failed = 0;

	if (!p)
		return tw_oom(err);
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->wake, NULL);
	tw_fair_init(&p->fair);
	empty_lane(&p->common, "");
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_mutex_lock(&p->lock); /* the threads read p->n */
	while (!failed && p->n < all) {
		failed = pthread_create(&p->threads[p->n], &attr, work, p);
		p->n += !failed;
	}
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_attr_destroy(&attr);
	if (failed) {
		(void)tw_pool_stop(p);
		return tw_fail(err, TW_IO, "cannot start a thread: %s", strerror(failed));
	}
	*ret = p;
	return TW_OK;
}

bool tw_pool_submit(struct tw_pool *p, struct tw_pool_task *task)
{
	bool taken;

	(void)pthread_mutex_lock(&p->lock);
	taken = !p->stopping;
	if (taken) {
		struct lane *l = lane_of(p, task->owner);

		task->next = NULL;
		*l->last = task;
		l->last = &task->next;
		p->waiting++;
		(void)pthread_cond_signal(&p->wake);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return taken;
}

void tw_pool_end(struct tw_pool *p)
{
	if (!p)
		return;
	(void)pthread_mutex_lock(&p->lock);
	p->stopping = true;
	(void)pthread_cond_broadcast(&p->wake);
	(void)pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->n; i++)
		(void)pthread_join(p->threads[i], NULL);
	p->n = 0;
}

struct tw_pool *tw_pool_stop(struct tw_pool *p)
{
	if (!p)
		return NULL;
	tw_pool_end(p);
	tw_fair_done(&p->fair);
	(void)pthread_cond_destroy(&p->wake);
	(void)pthread_mutex_destroy(&p->lock);
	tw_mem_free(p);
	return NULL;
}

/* --- a task whose end another thread checks for --- */

static void run(struct tw_pool_task *task, bool stopping)
{
	struct tw_async_task *e = (struct tw_async_task *)(void *)task;
	int wake_fd = e->wake_fd;
	uint64_t one = 1;

	if (stopping)
		e->status = tw_fail(&e->err, TW_BUSY, "the server is shutting down");
	else
		e->status = e->run(e->arg, &e->err);
	atomic_store(&e->done, true); /* the task may be freed from here on */
	(void)!write(wake_fd, &one, sizeof one);
}

void tw_async_task_begin(struct tw_async_task *e, struct tw_pool *pool)
{
	e->err = (struct tw_err){.msg = ""};
	atomic_store(&e->done, false);
	e->task.run = run;
	if (!pool || !tw_pool_submit(pool, &e->task))
		run(&e->task, pool != NULL);
}
