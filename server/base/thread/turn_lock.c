#include "server/base/thread/turn_lock.h"

#include <string.h>

#include "server/base/clock.h"
#include "server/base/thread/cond.h"
#include "server/base/ulid.h"

/* Waiters are served by round, and within a round in the order in which they came.  An owner's
 * second waiter is a round later than its first. */
struct tw_turn_waiter {
	struct tw_turn_waiter *next;
	const char *owner;
	uint64_t round;
	pthread_cond_t granted;
	bool has_lock;
};

void tw_turn_lock_init(struct tw_turn_lock *l)
{
	*l = (struct tw_turn_lock){.holders_max = 1};
	(void)pthread_mutex_init(&l->lock, NULL);
	l->last = &l->first;
}

void tw_turn_lock_widen(struct tw_turn_lock *l, unsigned holders_max)
{
	(void)pthread_mutex_lock(&l->lock);
	l->holders_max = holders_max;
	(void)pthread_mutex_unlock(&l->lock);
}

void tw_turn_lock_done(struct tw_turn_lock *l)
{
	(void)pthread_mutex_destroy(&l->lock);
}

static bool is_same(const char *a, const char *b)
{
	return *a && strncmp(a, b, TW_ID_BYTES - 1) == 0;
}

static void append(struct tw_turn_lock *l, struct tw_turn_waiter *w)
{
	w->round = l->round;
	for (const struct tw_turn_waiter *o = l->first; o; o = o->next)
		if (is_same(w->owner, o->owner) && o->round >= w->round)
			w->round = o->round + 1;
	*l->last = w;
	l->last = &w->next;
	l->waiting++;
}

static void take_out(struct tw_turn_lock *l, struct tw_turn_waiter *w)
{
	struct tw_turn_waiter **at = &l->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (l->last == &w->next)
		l->last = at;
	l->waiting--;
}

static struct tw_turn_waiter *next_of(const struct tw_turn_lock *l)
{
	struct tw_turn_waiter *best = l->first;

	for (struct tw_turn_waiter *w = best; w; w = w->next)
		if (w->round < best->round)
			best = w;
	return best;
}

/* With the inner lock held, also on return.  until_ms 0: no limit. */
static bool wait_for_turn(struct tw_turn_lock *l, const char *owner, int64_t until_ms)
{
	struct tw_turn_waiter w = {.owner = owner};
	int failed = 0;

	tw_cond_init(&w.granted);
	append(l, &w);
	while (!w.has_lock && !failed)
		failed = until_ms ? tw_cond_wait_until(&w.granted, &l->lock, until_ms)
		                  : pthread_cond_wait(&w.granted, &l->lock);
	if (!w.has_lock)
		take_out(l, &w);
	(void)pthread_cond_destroy(&w.granted);
	return w.has_lock;
}

static bool lock_until(struct tw_turn_lock *l, const char *owner, int64_t until_ms)
{
	bool has = true;

	(void)pthread_mutex_lock(&l->lock);
	if (l->held >= l->holders_max)
		has = wait_for_turn(l, owner, until_ms);
	else
		l->held++;
	(void)pthread_mutex_unlock(&l->lock);
	return has;
}

void tw_turn_lock(struct tw_turn_lock *l, const char *owner)
{
	(void)lock_until(l, owner, 0);
}

bool tw_turn_lock_within(struct tw_turn_lock *l, const char *owner, int64_t ms)
{
	return lock_until(l, owner, tw_monotonic_ms() + ms);
}

void tw_turn_unlock(struct tw_turn_lock *l)
{
	struct tw_turn_waiter *w;

	(void)pthread_mutex_lock(&l->lock);
	w = next_of(l);
	if (!w) {
		l->held--;
	} else { /* passed on: no other thread can take it in between */
		take_out(l, w);
		l->round = w->round;
		w->has_lock = true;
		(void)pthread_cond_signal(&w->granted);
	}
	(void)pthread_mutex_unlock(&l->lock);
}

unsigned tw_turn_waiting(struct tw_turn_lock *l)
{
	unsigned n;

	(void)pthread_mutex_lock(&l->lock);
	n = l->waiting;
	(void)pthread_mutex_unlock(&l->lock);
	return n;
}
