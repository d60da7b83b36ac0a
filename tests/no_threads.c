#include "no_threads.h"

#include <errno.h>
#include <pthread.h>

bool no_threads;
uint32_t threads_made;

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __wrap_pthread_create(
        pthread_t *ret, const pthread_attr_t *attr, void *(*work)(void *), void *arg)
{
	if (no_threads)
		return EAGAIN;
	threads_made++;
	return __real_pthread_create(ret, attr, work, arg);
}
