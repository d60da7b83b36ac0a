/*
 * pool.h - threads for work that blocks: queries, disk syncs.
 *
 * Waiting tasks are scheduled fairly between owners (fair.h): each of k owners with waiting tasks
 * gets 1/k of the threads' time, however many tasks another one has queued and however long they
 * take. Tasks of one owner run in the order in which they were submitted.  Owners do not interrupt
 * each other's running tasks, so a pool has one more thread than it was started with, which only
 * runs a task of an owner that has none running: long tasks of one owner on all other threads do
 * not delay another's first.  Tasks without an owner count as tasks of one.
 *
 * After tw_pool_stop began, waiting tasks are run with `stopping` true, so that each can complete
 * its request.
 * Thread: any may submit.
 */
#ifndef TW_POOL_H
#define TW_POOL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "decoder/base/err.h"

struct tw_pool;

struct tw_pool_task {
	struct tw_pool_task *next;
	/* A project's id or a client's address, of which the first TW_ID_BYTES - 1 bytes count.
	 * Read only by tw_pool_submit.  NULL or "": none. */
	const char *owner;
	void (*run)(struct tw_pool_task *task, bool stopping);
};

/* `threads`: the most tasks of one owner that run concurrently. */
enum tw_status tw_pool_start(unsigned threads, struct tw_pool **ret, struct tw_err *err);
/* The owner of the task that this thread runs; "" if none, and in other threads. */
const char *tw_pool_owner(void);
/* The caller keeps the task valid until `run` returns.  False once the pool is stopping. */
bool tw_pool_submit(struct tw_pool *p, struct tw_pool_task *task);
/* Waits for all tasks; later submissions are refused.  Accepts NULL. */
void tw_pool_end(struct tw_pool *p);
/* Ends the pool if necessary and frees it.  Accepts NULL; returns NULL. */
struct tw_pool *tw_pool_stop(struct tw_pool *p);

/* A task that runs synchronously on a local disk, and in a pool for a remote store, whose delays
 * must not block the dispatcher.  One thread begins it and checks for its end; another may run it.
 */
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
