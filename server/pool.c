#include "pool.h"

#include <pthread.h>
#include <string.h>

#include "base/arena.h"

enum { STACK_BYTES = 1 << 20 };

struct tw_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct tw_pool_task *first, **last;
	bool stopping;
	unsigned n;
	pthread_t threads[];
};

static void *work(void *arg)
{
	struct tw_pool *p = arg;

	(void)pthread_mutex_lock(&p->lock);
	for (;;) {
		struct tw_pool_task *task = p->first;
		bool stopping = p->stopping;

		if (!task && stopping)
			break;
		if (!task) {
			(void)pthread_cond_wait(&p->wake, &p->lock);
			continue;
		}
		p->first = task->next;
		if (!p->first)
			p->last = &p->first;
		(void)pthread_mutex_unlock(&p->lock);
		task->run(task, stopping);
		(void)pthread_mutex_lock(&p->lock);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

enum tw_status tw_pool_start(unsigned threads, struct tw_pool **ret, struct tw_err *err)
{
	struct tw_pool *p = tw_mem_zalloc(1, sizeof *p + threads * sizeof *p->threads);
	pthread_attr_t attr;
	int failed = 0;

	if (!p)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->wake, NULL);
	p->last = &p->first;
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (!failed && p->n < threads) {
		failed = pthread_create(&p->threads[p->n], &attr, work, p);
		p->n += !failed;
	}
	(void)pthread_attr_destroy(&attr);
	if (failed) {
		(void)tw_pool_stop(p);
		return tw_fail(
		        err, TW_IO, TW_NO_OFFSET, "cannot start a thread: %s", strerror(failed));
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
		task->next = NULL;
		*p->last = task;
		p->last = &task->next;
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
	(void)pthread_cond_destroy(&p->wake);
	(void)pthread_mutex_destroy(&p->lock);
	tw_mem_free(p);
	return NULL;
}
