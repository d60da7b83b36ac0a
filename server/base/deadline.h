/* deadline.h - the deadline of long-running work. */
#ifndef TW_DEADLINE_H
#define TW_DEADLINE_H

#include <stdbool.h>

/* `passed` is polled by any of the threads of a query; true: stop. */
struct tw_deadline {
	bool (*passed)(void *arg);
	void *arg;
};

static inline bool tw_deadline_passed(const struct tw_deadline *d)
{
	return d && d->passed && d->passed(d->arg);
}

#endif
