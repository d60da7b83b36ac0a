#include "periodic.h"

#include <pthread.h>
#include <time.h>

#include "base/arena.h"

struct tw_periodic {
	void (*run)(struct tw_periodic *p, void *arg);
	void *arg;
	unsigned every_s;
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
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += p->every_s;
	(void)pthread_mutex_lock(&p->lock);
	while (!p->wanted && !p->stop)
		if (pthread_cond_timedwait(&p->changed, &p->lock, &until) != 0)
			break;
	p->wanted = false;
	(void)pthread_mutex_unlock(&p->lock);
}

static void *run_all(void *arg)
{
	struct tw_periodic *p = arg;

	while (!tw_periodic_stopping(p)) {
		p->run(p, p->arg);
		wait_for_work(p);
	}
	return NULL;
}

static void init_locks(struct tw_periodic *p)
{
	pthread_condattr_t attr;

	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&p->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
}

static struct tw_periodic *destroy(struct tw_periodic *p)
{
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	tw_mem_free(p);
	return NULL;
}

enum tw_status tw_periodic_start(void (*run)(struct tw_periodic *p, void *arg), void *arg,
        unsigned every_s, struct tw_periodic **ret, struct tw_err *err)
{
	struct tw_periodic *p = tw_mem_zalloc(1, sizeof *p);

	if (!p)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	p->run = run;
	p->arg = arg;
	p->every_s = every_s;
	init_locks(p);
	if (pthread_create(&p->thread, NULL, run_all, p) != 0) {
		(void)destroy(p);
		return tw_fail(
		        err, TW_IO, TW_NO_OFFSET, "a background thread could not be started");
	}
	*ret = p;
	return TW_OK;
}

static void tell(struct tw_periodic *p, bool stop)
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
	tell(p, true);
	(void)pthread_join(p->thread, NULL);
	return destroy(p);
}

void tw_periodic_wake(struct tw_periodic *p)
{
	if (p)
		tell(p, false);
}
