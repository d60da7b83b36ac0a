/*
 * clock.h - what time it is, in milliseconds.
 *
 * Thread: any.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TW_DAY_MS INT64_C(86400000)

int64_t tw_unix_ms(void);      /* the calendar's; may be set back */
int64_t tw_monotonic_ms(void); /* only ever rises; for distances */

/* When this thread's work ends although it is not done.  Reads of trace files and of the catalogue
 * then stop with TW_DEADLINE. */
struct tw_work_limit {
	int64_t until_ms;              /* by the monotonic clock; 0: no limit */
	const _Atomic bool *abandoned; /* set by another thread; NULL: never */
};
void tw_work_limit_set(struct tw_work_limit l);
struct tw_work_limit tw_work_limit(void);
bool tw_work_is_overdue(void);

#endif
