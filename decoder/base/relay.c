/*
 * relay.c - a ring of slots between two threads.
 *
 * `passed` and `done` only grow; the slot being filled is passed % slots.  At most one of the two
 * threads waits: the owner if the ring is not empty, the worker if it is.  So one condition
 * variable with single signals is enough.
 */
#include "decoder/base/relay.h"

#include <pthread.h>
#include <stdbool.h>

#include "decoder/base/arena.h"

struct tw_relay {
	tw_relay_fn work;
	void *arg;
	uint32_t slots;
	bool threaded, ended; /* ended: no more slots will be passed on */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	uint64_t passed, done;
	enum tw_status status; /* of the work, sticky */
	struct tw_err err;
};

struct tw_relay *tw_relay_new(uint32_t slots, tw_relay_fn work, void *arg)
{
	struct tw_relay *r = tw_mem_zalloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->work = work;
	r->arg = arg;
	r->slots = slots;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->changed, NULL);
	return r;
}

/* Call without a worker thread, or with the lock held. */
static enum tw_status outcome(const struct tw_relay *r, struct tw_err *err)
{
	if (r->status != TW_OK)
		tw_err_copy(err, &r->err);
	return r->status;
}

/* Call with the lock held; releases it during the work.  Only this function writes the outcome. */
static void do_next(struct tw_relay *r)
{
	uint32_t slot = (uint32_t)(r->done % r->slots);
	enum tw_status st = r->status;
	struct tw_err err;

	(void)pthread_mutex_unlock(&r->lock);
	if (st == TW_OK)
		st = r->work(r->arg, slot, &err);
	(void)pthread_mutex_lock(&r->lock);
	if (st != TW_OK && r->status == TW_OK)
		r->err = err;
	r->status = st;
	r->done++;
	(void)pthread_cond_signal(&r->changed);
}

static void *work(void *arg)
{
	struct tw_relay *r = arg;

	(void)pthread_mutex_lock(&r->lock);
	for (;;) {
		while (r->done == r->passed && !r->ended)
			(void)pthread_cond_wait(&r->changed, &r->lock);
		if (r->done == r->passed)
			break;
		do_next(r);
	}
	(void)pthread_mutex_unlock(&r->lock);
	return NULL;
}

void tw_relay_start(struct tw_relay *r)
{
	if (r->threaded)
		return;
	r->ended = false;
	r->threaded = pthread_create(&r->thread, NULL, work, r) == 0;
}

static void stop(struct tw_relay *r)
{
	if (!r->threaded)
		return;
	(void)pthread_mutex_lock(&r->lock);
	r->ended = true;
	(void)pthread_cond_signal(&r->changed);
	(void)pthread_mutex_unlock(&r->lock);
	(void)pthread_join(r->thread, NULL);
	r->threaded = false;
}

struct tw_relay *tw_relay_free(struct tw_relay *r)
{
	if (!r)
		return NULL;
	stop(r);
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_cond_destroy(&r->changed);
	tw_mem_free(r);
	return NULL;
}

enum tw_status tw_relay_slot(struct tw_relay *r, uint32_t *ret, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&r->lock);
	while (r->passed - r->done == r->slots)
		(void)pthread_cond_wait(&r->changed, &r->lock);
	st = outcome(r, err);
	(void)pthread_mutex_unlock(&r->lock);
	if (st == TW_OK)
		*ret = (uint32_t)(r->passed % r->slots);
	return st;
}

enum tw_status tw_relay_pass(struct tw_relay *r, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&r->lock);
	r->passed++;
	if (r->threaded)
		(void)pthread_cond_signal(&r->changed);
	else
		do_next(r);
	st = outcome(r, err);
	(void)pthread_mutex_unlock(&r->lock);
	return st;
}

uint64_t tw_relay_passed(const struct tw_relay *r)
{
	return r->passed; /* only the owner changes it */
}

enum tw_status tw_relay_wait(struct tw_relay *r, uint64_t n, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&r->lock);
	while (r->done < n)
		(void)pthread_cond_wait(&r->changed, &r->lock);
	st = outcome(r, err);
	(void)pthread_mutex_unlock(&r->lock);
	return st;
}

enum tw_status tw_relay_finish(struct tw_relay *r, struct tw_err *err)
{
	stop(r);
	return outcome(r, err);
}
