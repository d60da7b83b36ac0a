/*
 * relay.h - a pipeline stage in a separate thread that processes pieces in order.
 *
 * Pieces are slots of a ring owned by the caller: it gets a free slot, fills it, passes it on and
 * continues with the next, while `work` is called with each slot number in turn.  Before
 * tw_relay_start, after tw_relay_finish, and if no thread could be created, tw_relay_pass calls
 * `work` itself: the same calls in the same order.  The first error stops the work: later slots are
 * dropped, so the owner never blocks, and each later call returns the error again.
 * Thread: one owner at a time.  `work` is called in one thread at a time, and its effects are
 * visible to the owner once tw_relay_finish has returned.
 */
#ifndef TW_RELAY_H
#define TW_RELAY_H

#include <stdint.h>

#include "decoder/base/err.h"

struct tw_relay;

typedef enum tw_status (*tw_relay_fn)(void *arg, uint32_t slot, struct tw_err *err);

/* NULL: out of memory.  At least one slot. */
struct tw_relay *tw_relay_new(uint32_t slots, tw_relay_fn work, void *arg);
/* Waits for the slots passed on.  Accepts NULL; returns NULL. */
struct tw_relay *tw_relay_free(struct tw_relay *r);

/* Starts the thread.  If none can be created, the work is done in the caller's thread. */
void tw_relay_start(struct tw_relay *r);

/* The slot to fill, the same one until it is passed on; waits until it is free. */
enum tw_status tw_relay_slot(struct tw_relay *r, uint32_t *ret, struct tw_err *err) TW_MUST_USE;
/* Passes the slot on.  Its error is returned here or by a later call. */
enum tw_status tw_relay_pass(struct tw_relay *r, struct tw_err *err) TW_MUST_USE;

/* The number of slots passed on so far. */
uint64_t tw_relay_passed(const struct tw_relay *r);
/* Returns once the first n slots passed on are processed.  The effects of their work are visible
 * to the owner. */
enum tw_status tw_relay_wait(struct tw_relay *r, uint64_t n, struct tw_err *err) TW_MUST_USE;

/* Returns once all work is done and the thread has ended.  Can be called again. */
enum tw_status tw_relay_finish(struct tw_relay *r, struct tw_err *err) TW_MUST_USE;

#endif
