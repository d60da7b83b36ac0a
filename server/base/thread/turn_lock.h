/*
 * turn_lock.h - a mutex, or a semaphore, whose waiters take turns by owner.
 *
 * With a plain mutex, an owner with eight waiting threads can hold the lock eight times before
 * another owner holds it once, or indefinitely, because the thread that releases it is the first to
 * take it again.  Here a thread waits for at most one holder of each other owner, and threads of
 * one owner get the lock in the order of their arrival.
 * Thread: any.
 */
#ifndef TW_TURN_LOCK_H
#define TW_TURN_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tw_turn_waiter;

struct tw_turn_lock { /* for the owner; fields are read-only */
	pthread_mutex_t lock;
	unsigned holders_max, held; /* 1 unless widened */
	uint64_t round;             /* of the last holder */
	struct tw_turn_waiter *first, **last;
	unsigned waiting;
};

void tw_turn_lock_init(struct tw_turn_lock *l);
/* Raises the number of threads that may hold it at the same time. */
void tw_turn_lock_widen(struct tw_turn_lock *l, unsigned holders_max);
void tw_turn_lock_done(struct tw_turn_lock *l);

/* `owner`: its first TW_ID_BYTES - 1 bytes count; "" makes the thread a separate owner. */
void tw_turn_lock(struct tw_turn_lock *l, const char *owner);
/* Returns false if the lock was not free within that time. */
bool tw_turn_lock_within(struct tw_turn_lock *l, const char *owner, int64_t ms);
void tw_turn_unlock(struct tw_turn_lock *l);
unsigned tw_turn_waiting(struct tw_turn_lock *l);

#endif
