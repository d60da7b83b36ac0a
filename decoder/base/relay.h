/*
 * relay.h - work done piece by piece in another thread, in the order in which it was handed on.
 *
 * Pieces lie in a ring of slots that the owner keeps: it asks for a free one, fills it, hands it on
 * and goes on with the next, while `work` is called with the number of each in turn.  Until
 * tw_relay_start, after tw_relay_finish, and where no thread can be had, tw_relay_pass does the
 * work itself: the same calls in the same order.  The first error ends the work: what else is
 * handed on is dropped, so that the owner never waits for nothing, and is told of it again by each
 * call that follows.  Thread: one owner at a time; `work` is called in one thread at a time, and
 * all that it did is seen by the owner when tw_relay_finish has returned.
 */
#ifndef TW_RELAY_H
#define TW_RELAY_H

#include <stdint.h>

#include "decoder/base/err.h"

struct tw_relay;

typedef enum tw_status (*tw_relay_fn)(void *arg, uint32_t slot, struct tw_err *err);

/* NULL: no memory.  At least one slot. */
struct tw_relay *tw_relay_new(uint32_t slots, tw_relay_fn work, void *arg);
/* Waits for what was handed on.  NULL is fine; returns NULL. */
struct tw_relay *tw_relay_free(struct tw_relay *r);

/* From now on in a thread of its own, if there can be one; no more than speed is lost if not. */
void tw_relay_start(struct tw_relay *r);

/* The slot to be filled now, the same one until it is handed on; waits until it is free. */
enum tw_status tw_relay_slot(struct tw_relay *r, uint32_t *ret, struct tw_err *err) TW_MUST_USE;
/* Hands it on.  What comes of it is told here or by a later call. */
enum tw_status tw_relay_pass(struct tw_relay *r, struct tw_err *err) TW_MUST_USE;

/* Returns when all is done and the thread is gone.  May be called again. */
enum tw_status tw_relay_finish(struct tw_relay *r, struct tw_err *err) TW_MUST_USE;

#endif
