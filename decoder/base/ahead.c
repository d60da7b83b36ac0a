/*
 * ahead.c - a ring of decompressed pieces between two threads.
 *
 * `made` and `taken` only grow; the slot being filled is made % SLOTS.  A consumer that failed
 * keeps taking and dropping pieces, so that the other thread never waits for it.
 */
#include "decoder/base/ahead.h"

#include <pthread.h>
#include <string.h>

/* Two pieces per slot, as each slot costs one wait and one wake.  The slot being filled always has
 * space for one. */
enum { SLOTS = 3, SLOT_BYTES = 2 * TW_UNZIP_PIECE };

struct slot {
	size_t n;
	uint8_t bytes[SLOT_BYTES];
};

struct outcome {
	enum tw_status status;
	struct tw_err err;
};

struct tw_ahead {
	tw_bytes_fn out;
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct tw_unzip *unzip; /* being decompressed, with p[n]; NULL: idle */
	const uint8_t *p;
	size_t n;
	bool ended;
	uint64_t made, taken;
	struct outcome unzipped, consumed;
	struct slot slots[SLOTS];
};

static struct slot *being_filled(struct tw_ahead *a)
{
	return &a->slots[a->made % SLOTS];
}

static enum tw_status return_outcome(const struct outcome *o, struct tw_err *err)
{
	if (o->status != TW_OK)
		tw_err_copy(err, &o->err);
	return o->status;
}

/* Called in the decompressing thread; returns the consumer's status for earlier pieces. */
static enum tw_status pass_slot(struct tw_ahead *a, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&a->lock);
	a->made++;
	(void)pthread_mutex_unlock(&a->lock);
	(void)pthread_cond_broadcast(&a->changed); /* a woken thread finds the lock free */
	(void)pthread_mutex_lock(&a->lock);
	while (a->made - a->taken == SLOTS)
		(void)pthread_cond_wait(&a->changed, &a->lock);
	being_filled(a)->n = 0;
	st = return_outcome(&a->consumed, err);
	(void)pthread_mutex_unlock(&a->lock);
	return st;
}

static void unzip(struct tw_ahead *a)
{
	struct outcome o = {0};

	o.status = tw_unzip_push(a->unzip, a->p, a->n, &o.err);
	if (being_filled(a)->n)
		(void)pass_slot(a, NULL);
	(void)pthread_mutex_lock(&a->lock);
	a->unzipped = o;
	a->unzip = NULL;
	(void)pthread_cond_broadcast(&a->changed);
	(void)pthread_mutex_unlock(&a->lock);
}

static void *work(void *arg)
{
	struct tw_ahead *a = arg;
	bool ended;

	do {
		(void)pthread_mutex_lock(&a->lock);
		while (!a->unzip && !a->ended)
			(void)pthread_cond_wait(&a->changed, &a->lock);
		ended = a->ended;
		(void)pthread_mutex_unlock(&a->lock);
		if (!ended)
			unzip(a);
	} while (!ended);
	return NULL;
}

struct tw_ahead *tw_ahead_new(tw_bytes_fn out, void *arg)
{
	struct tw_ahead *a = tw_mem_alloc(1, sizeof *a);

	if (!a)
		return NULL;
	memset(a, 0, offsetof(struct tw_ahead, slots));
	for (int i = 0; i < SLOTS; i++)
		a->slots[i].n = 0;
	a->out = out;
	a->arg = arg;
	(void)pthread_mutex_init(&a->lock, NULL);
	(void)pthread_cond_init(&a->changed, NULL);
	if (pthread_create(&a->thread, NULL, work, a) == 0)
		return a;
	(void)pthread_mutex_destroy(&a->lock);
	(void)pthread_cond_destroy(&a->changed);
	tw_mem_free(a);
	return NULL;
}

struct tw_ahead *tw_ahead_free(struct tw_ahead *a)
{
	if (!a)
		return NULL;
	(void)pthread_mutex_lock(&a->lock);
	a->ended = true;
	(void)pthread_cond_broadcast(&a->changed);
	(void)pthread_mutex_unlock(&a->lock);
	(void)pthread_join(a->thread, NULL);
	(void)pthread_mutex_destroy(&a->lock);
	(void)pthread_cond_destroy(&a->changed);
	tw_mem_free(a);
	return NULL;
}

static uint8_t *end_of(struct slot *s)
{
	return s->bytes + s->n;
}

uint8_t *tw_ahead_space(void *ahead)
{
	struct tw_ahead *a = ahead;

	return pthread_equal(pthread_self(), a->thread) ? end_of(being_filled(a)) : NULL;
}

enum tw_status tw_ahead_put(void *ahead, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_ahead *a = ahead;
	enum tw_status st = TW_OK;

	if (!pthread_equal(pthread_self(), a->thread)) /* the last bytes, delivered by
	                                                * tw_unzip_finish */
		return a->out(a->arg, p, n, err);
	while (n && st == TW_OK) {
		struct slot *s = being_filled(a);
		size_t room = SLOT_BYTES - s->n;
		size_t piece = n < room ? n : room;

		if (p != end_of(s)) /* not in place yet */
			memcpy(end_of(s), p, piece);
		s->n += piece;
		p += piece;
		n -= piece;
		if (SLOT_BYTES - s->n < TW_UNZIP_PIECE)
			st = pass_slot(a, err);
	}
	return st;
}

/* False: the thread is idle, and all pieces are consumed.  Call with the lock held. */
static bool wait_for_slot(struct tw_ahead *a)
{
	while (a->taken == a->made && a->unzip)
		(void)pthread_cond_wait(&a->changed, &a->lock);
	return a->taken < a->made;
}

/* Delivers a piece and frees its slot.  Call with the lock held; releases it during delivery. */
static void consume(struct tw_ahead *a)
{
	const struct slot *s = &a->slots[a->taken % SLOTS];
	struct outcome o = a->consumed;

	(void)pthread_mutex_unlock(&a->lock);
	if (o.status == TW_OK)
		o.status = a->out(a->arg, s->bytes, s->n, &o.err);
	(void)pthread_mutex_lock(&a->lock);
	a->consumed = o;
	a->taken++;
	(void)pthread_cond_broadcast(&a->changed);
}

static void consume_rest(struct tw_ahead *a)
{
	while (wait_for_slot(a))
		consume(a);
}

enum tw_status tw_ahead_push(
        struct tw_ahead *a, struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&a->lock);
	a->unzip = z;
	a->p = p;
	a->n = n;
	(void)pthread_cond_broadcast(&a->changed);
	while (wait_for_slot(a) && a->unzip)
		consume(a);
	if (a->unzipped.status != TW_OK)
		consume_rest(a);
	st = return_outcome(a->consumed.status != TW_OK ? &a->consumed : &a->unzipped, err);
	(void)pthread_mutex_unlock(&a->lock);
	return st;
}

enum tw_status tw_ahead_finish(struct tw_ahead *a, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&a->lock);
	consume_rest(a);
	st = return_outcome(&a->consumed, err);
	(void)pthread_mutex_unlock(&a->lock);
	return st;
}
