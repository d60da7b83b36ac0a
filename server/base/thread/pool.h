/*
 * pool.h - threads for what would hold up others: queries, syncs of the disk.
 *
 * Tasks run in the order they came.  After tw_pool_stop began, tasks that wait
 * are run with `stopping` true, so that each can give its request an end.
 * Thread: any may submit.
 */
#ifndef TW_POOL_H
#define TW_POOL_H

#include <stdbool.h>

#include "base/err.h"

struct tw_pool;

struct tw_pool_task {
	struct tw_pool_task *next;
	void (*run)(struct tw_pool_task *task, bool stopping);
};

enum tw_status tw_pool_start(unsigned threads, struct tw_pool **ret, struct tw_err *err);
/* The task is the caller's memory until run returns.  False once the pool is stopping. */
bool tw_pool_submit(struct tw_pool *p, struct tw_pool_task *task);
/* Waits for all; what is submitted then is refused.  NULL is fine. */
void tw_pool_end(struct tw_pool *p);
/* Ends it, if it has not ended, and frees it.  NULL is fine; returns NULL. */
struct tw_pool *tw_pool_stop(struct tw_pool *p);

#endif
