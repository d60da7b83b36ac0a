/*
 * deadline.h - whether work that takes long has had its time.
 */
#ifndef TW_DEADLINE_H
#define TW_DEADLINE_H

#include <stdbool.h>

/* Asked now and then, by any of the threads that work on a query; true: time is up. */
struct tw_deadline {
	bool (*passed)(void *arg);
	void *arg;
};

static inline bool tw_deadline_passed(const struct tw_deadline *d)
{
	return d && d->passed && d->passed(d->arg);
}

#endif
