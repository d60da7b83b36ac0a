/*
 * clock.h - clocks, in milliseconds, and deadlines.
 *
 * Thread: any.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

#define TW_DAY_MS INT64_C(86400000)
/* The end of the year 9999.  Later times from clients are refused: not every program can represent
 * them. */
#define TW_LAST_MS INT64_C(253402300799999)

int64_t tw_unix_ms(void);      /* calendar time; can be set back */
int64_t tw_monotonic_ms(void); /* never falls; for durations */
void tw_sleep_ms(int64_t ms);  /* less if a signal arrives */

/* The deadline of this thread's work.  After it, reads of trace files and of the catalogue fail
 * with TW_DEADLINE. */
struct tw_work_limit {
	int64_t until_ms;              /* on the monotonic clock; 0: no limit */
	const _Atomic bool *abandoned; /* set by another thread; NULL: never */
};
void tw_work_limit_set(struct tw_work_limit l);
struct tw_work_limit tw_work_limit(void);
bool tw_work_is_overdue(void);
/* Sets the error of work that this limit ended; returns TW_DEADLINE. */
enum tw_status tw_fail_overdue(struct tw_err *err);

/* The deadline of long-running work.  `passed` is polled by any of the threads of a query; true:
 * stop. */
struct tw_deadline {
	bool (*passed)(void *arg);
	void *arg;
};

static inline bool tw_deadline_passed(const struct tw_deadline *d)
{
	return d && d->passed && d->passed(d->arg);
}

#endif
