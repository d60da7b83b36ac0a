/*
 * clock.h - what time it is, in milliseconds.
 *
 * Thread: any.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <stdint.h>

#define TW_DAY_MS INT64_C(86400000)

int64_t tw_unix_ms(void);      /* the calendar's; may be set back */
int64_t tw_monotonic_ms(void); /* only ever rises; for distances */

#endif
