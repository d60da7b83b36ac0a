/*
 * cond.h - conditions whose timed waits use the monotonic clock.
 *
 * Thread: any.
 */
#ifndef TW_COND_H
#define TW_COND_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline void tw_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(c, &attr);
	(void)pthread_condattr_destroy(&attr);
}

/* until_ms: by tw_monotonic_ms.  ETIMEDOUT after it. */
static inline int tw_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ms)
{
	const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};

	return pthread_cond_timedwait(c, lock, &until);
}

#endif
