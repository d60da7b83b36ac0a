/*
 * periodic.h - a thread that does a job in the background, when it is woken and now and then
 * anyway.
 *
 * Thread: start and stop by the owner; wake and stopping by any.
 */
#ifndef TW_PERIODIC_H
#define TW_PERIODIC_H

#include <stdbool.h>

#include "base/err.h"

struct tw_periodic;

/* `run` is called at once, then after each wake and every `every_s` seconds; it looks at
 * tw_periodic_stopping between the pieces of its work. */
enum tw_status tw_periodic_start(void (*run)(struct tw_periodic *p, void *arg), void *arg,
        unsigned every_s, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;
/* Waits for the piece at hand.  NULL is fine, returns NULL. */
struct tw_periodic *tw_periodic_stop(struct tw_periodic *p);
void tw_periodic_wake(struct tw_periodic *p); /* NULL is fine */
bool tw_periodic_stopping(struct tw_periodic *p);

#endif
