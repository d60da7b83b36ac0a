#include "server/base/thread/periodic.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/lookup.h"
#include "server/base/clock.h"
#include "server/base/thread/cond.h"

enum { TASKS = 32 };

struct counted {
	const char *name;
	_Atomic uint64_t runs;
};

static struct counted all_tasks[TASKS];
static size_t n_tasks;
static pthread_mutex_t tasks_lock = PTHREAD_MUTEX_INITIALIZER; /* protects names and their number */

struct tw_periodic {
	struct tw_periodic_task task;
	struct counted *counted; /* NULL: more tasks than counters */
	void *arg;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool wanted, stop;
};

bool tw_periodic_stopping(struct tw_periodic *p)
{
	bool stop;

	(void)pthread_mutex_lock(&p->lock);
	stop = p->stop;
	(void)pthread_mutex_unlock(&p->lock);
	return stop;
}

static void wait_for_work(struct tw_periodic *p)
{
	const int64_t until_ms = tw_monotonic_ms() + p->task.every_ms;

	(void)pthread_mutex_lock(&p->lock);
	while (!p->wanted && !p->stop)
		if (tw_cond_wait_until(&p->changed, &p->lock, until_ms) != 0)
			break;
	p->wanted = false;
	(void)pthread_mutex_unlock(&p->lock);
}

static void *run_all(void *arg)
{
	struct tw_periodic *p = arg;

	while (!tw_periodic_stopping(p)) {
		p->task.run(p, p->arg);
		if (p->counted)
			(void)atomic_fetch_add_explicit(&p->counted->runs, 1, memory_order_relaxed);
		wait_for_work(p);
	}
	return NULL;
}

static struct tw_periodic *destroy(struct tw_periodic *p)
{
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	tw_mem_free(p);
	return NULL;
}

static struct counted *counted_of(const char *name)
{
	struct counted *found;

	(void)pthread_mutex_lock(&tasks_lock);
	found = TW_LOOKUP(all_tasks, n_tasks, name, name);
	if (!found && n_tasks < TASKS) {
		found = &all_tasks[n_tasks++];
		found->name = name;
	}
	(void)pthread_mutex_unlock(&tasks_lock);
	return found;
}

enum tw_status tw_periodic_start(const struct tw_periodic_task *task, void *arg,
        struct tw_periodic **ret, struct tw_err *err)
{
	struct tw_periodic *p = tw_mem_zalloc(1, sizeof *p);

	if (!p)
		return tw_oom(err);
	p->task = *task;
	p->counted = counted_of(task->name);
	p->arg = arg;
	(void)pthread_mutex_init(&p->lock, NULL);
	tw_cond_init(&p->changed);
	if (pthread_create(&p->thread, NULL, run_all, p) != 0) {
		(void)destroy(p);
		return tw_fail(err, TW_IO, "a background thread could not be started");
	}
	*ret = p;
	return TW_OK;
}

static void write_metrics_of(struct tw_periodic *p, bool stop)
{
	(void)pthread_mutex_lock(&p->lock);
	p->wanted = true;
	p->stop = p->stop || stop;
	(void)pthread_cond_signal(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
}

struct tw_periodic *tw_periodic_stop(struct tw_periodic *p)
{
	if (!p)
		return NULL;
	write_metrics_of(p, true);
	(void)pthread_join(p->thread, NULL);
	return destroy(p);
}

void tw_periodic_wake(struct tw_periodic *p)
{
	if (p)
		write_metrics_of(p, false);
}

void tw_periodic_metrics(struct tw_buf *out)
{
	(void)pthread_mutex_lock(&tasks_lock);
	for (size_t i = 0; i < n_tasks; i++)
		tw_buf_printf(out, "tracewell_background_runs_total{task=\"%s\"} %" PRIu64 "\n",
		        all_tasks[i].name,
		        atomic_load_explicit(&all_tasks[i].runs, memory_order_relaxed));
	(void)pthread_mutex_unlock(&tasks_lock);
}
