#include "server/ops/migrate_each.h"

#include <pthread.h>
#include <stdio.h>

#include "decoder/base/arena.h"
#include "server/base/thread/pool.h"
#include "server/catalogue/storage/catalogue_files.h"

struct batch;

struct slot {
	struct tw_pool_task task; /* first: the pool passes it to run_slot() */
	struct slot *next;        /* the next free slot */
	struct batch *batch;
	struct tw_migrate_file file;
};

struct batch {
	struct tw_pool *pool;
	tw_migrate_one one;
	void *arg;
	bool decoded;         /* files belong to traces, not named by content */
	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t freed;
	struct slot *free;
	enum tw_status status; /* of the first failure, with err */
	struct tw_err err;
	struct slot slots[TW_MIGRATE_THREADS];
};

static void run_slot(struct tw_pool_task *task, bool stopping)
{
	struct slot *s = (struct slot *)(void *)task;
	struct batch *c = s->batch;
	struct tw_err err = {.msg = ""};
	enum tw_status st = c->one(c->arg, &s->file, &err);

	(void)stopping; /* one slot per thread: no task is still queued */
	(void)pthread_mutex_lock(&c->lock);
	if (st != TW_OK && c->status == TW_OK) {
		c->status = st;
		c->err = err;
	}
	s->next = c->free;
	c->free = s;
	(void)pthread_cond_signal(&c->freed);
	(void)pthread_mutex_unlock(&c->lock);
}

/* Returns NULL after a thread has failed. */
static struct slot *await_slot(struct batch *c)
{
	struct slot *s = NULL;

	(void)pthread_mutex_lock(&c->lock);
	while (!c->free && c->status == TW_OK)
		(void)pthread_cond_wait(&c->freed, &c->lock);
	if (c->status == TW_OK) {
		s = c->free;
		c->free = s->next;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return s;
}

static enum tw_status submit_file(
        void *arg, struct tw_stored_file *of, struct tw_arena *a, struct tw_err *err)
{
	struct batch *c = arg;
	struct slot *s = await_slot(c);

	(void)a;
	if (!s)
		return TW_PRECONDITION; /* c->err has the reason */
	(void)snprintf(s->file.sha256, sizeof s->file.sha256, "%s", of->sha256);
	(void)snprintf(s->file.id, sizeof s->file.id, "%s", of->id);
	(void)snprintf(s->file.what, sizeof s->file.what, "%s", of->what);
	s->file.bytes = of->bytes;
	if (!(c->decoded ? tw_trace_key(of->id, s->file.key)
	                 : tw_blob_key(of->sha256, s->file.key)))
		s->file.key[0] = '\0';
	return tw_pool_submit(c->pool, &s->task)
	               ? TW_OK
	               : tw_fail(err, TW_BUG, "no thread that copies files could be started");
}

static enum tw_status submit_all(struct batch *c, struct tw_catalogue *of, struct tw_err *err)
{
	enum tw_status st = tw_stored_each(of, tw_catalogue_stored_mappings, submit_file, c, err);

	if (st == TW_OK)
		st = tw_stored_each(of, tw_catalogue_stored_parts, submit_file, c, err);
	c->decoded = true;
	if (st == TW_OK)
		st = tw_stored_each(of, tw_catalogue_stored_traces, submit_file, c, err);
	c->pool = tw_pool_stop(c->pool); /* waits for all tasks */
	if (c->status != TW_OK)
		tw_err_copy(err, &c->err);
	return c->status == TW_OK ? st : c->status;
}

enum tw_status tw_migrate_each(
        struct tw_catalogue *of, tw_migrate_one one, void *arg, struct tw_err *err)
{
	struct batch *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	c->one = one;
	c->arg = arg;
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_cond_init(&c->freed, NULL);
	for (size_t i = 0; i < TW_MIGRATE_THREADS; i++) {
		c->slots[i].task.run = run_slot;
		c->slots[i].batch = c;
		c->slots[i].file.thread_index = (unsigned)i;
		c->slots[i].next = c->free;
		c->free = &c->slots[i];
	}
	st = tw_pool_start(TW_MIGRATE_THREADS, &c->pool, err);
	if (st == TW_OK)
		st = submit_all(c, of, err);
	(void)pthread_cond_destroy(&c->freed);
	(void)pthread_mutex_destroy(&c->lock);
	tw_mem_free(c);
	return st;
}

uint64_t tw_migrate_count(struct tw_catalogue *c)
{
	return tw_stored_count(c, tw_catalogue_stored_mappings) +
	       tw_stored_count(c, tw_catalogue_stored_parts) +
	       tw_stored_count(c, tw_catalogue_stored_traces);
}
