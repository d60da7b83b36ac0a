/*
 * jobs_errand.h - what a job asks of storage: at once where that is the disk, beside the dispatcher
 * where it takes as long as a store elsewhere likes.
 *
 * Thread: one begins it and looks whether it is done; another may run it.
 */
#ifndef TW_JOBS_ERRAND_H
#define TW_JOBS_ERRAND_H

#include <stdatomic.h>
#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/base/thread/pool.h"

struct tw_errand {
	struct tw_pool_task task; /* first: the pool hands it back */
	enum tw_status (*run)(void *arg, struct tw_err *err);
	void *arg;
	int wake_fd; /* eventfd, told at the end */
	_Atomic bool done;
	enum tw_status status; /* once done, as err */
	struct tw_err err;
};

/* run, arg and wake_fd are set.  pool NULL: it is done when this returns. */
void tw_errand_begin(struct tw_errand *e, struct tw_pool *pool);

#endif
