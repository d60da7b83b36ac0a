/*
 * async_task.h - an async storage task of a job: synchronous on a local disk, in a pool for a
 * remote store, whose delays must not block the dispatcher.
 *
 * Thread: one starts it and checks for its end; another may run it.
 */
#ifndef TW_ASYNC_TASK_H
#define TW_ASYNC_TASK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/base/thread/pool.h"

struct tw_async_task {
	struct tw_pool_task task; /* first member: the pool returns it */
	enum tw_status (*run)(void *arg, struct tw_err *err);
	void *arg;
	int wake_fd; /* eventfd, signalled at the end */
	_Atomic bool done;
	enum tw_status status; /* valid once done, like err */
	struct tw_err err;
};

/* run, arg and wake_fd are set.  pool NULL: it is done on return. */
void tw_async_task_begin(struct tw_async_task *e, struct tw_pool *pool);

#endif
