/*
 * age_clock.h - clocks for ages and for due times (deliveries, retries).
 *
 * A wall clock that is temporarily ahead would expire all data and schedule new work in the future.
 * These clocks therefore ignore a forward jump of more than a day until the server has been up for
 * a day.  The clock for ages does so over restarts, because the wall clock may jump while the
 * server is stopped: data/retention.time stores the time and that uptime.  The clock for due times
 * starts with the process at the wall clock's time, so that a stop of several days delays nothing.
 * Creations of traces and rules, expiries of uploads, and days are the wall clock's.
 *
 * If the wall clock is set back, both follow: data expires later, and work that was scheduled more
 * than two days ahead of the new time becomes due (tw_catalogue_end_long_waits).
 * Thread: open and close by the owner; the times by any.
 */
#ifndef TW_AGE_CLOCK_H
#define TW_AGE_CLOCK_H

#include <stdint.h>

#include "decoder/base/err.h"

#define TW_AGE_CLOCK_FILE "retention.time" /* in a data folder that a server has used */

struct tw_age_clock;

/* Without a file (first start), the wall clock is trusted.  If the file cannot be read, the time is
 * 1970, so nothing expires for a day of uptime. */
enum tw_status tw_age_clock_open(const char *data_dir, int64_t mono_ms, struct tw_age_clock **ret,
        struct tw_err *err) TW_MUST_USE;
/* Also stores the time.  Accepts NULL; returns NULL. */
struct tw_age_clock *tw_age_clock_close(struct tw_age_clock *c);
/* Returns the age clock, Unix ms, for the given wall and monotonic times. */
int64_t tw_age_clock_at(struct tw_age_clock *c, int64_t unix_ms, int64_t mono_ms);
/* Sets the process's age clock for tw_age_ms; NULL (CLI commands): the wall clock. */
void tw_age_clock_use(struct tw_age_clock *c);
/* Returns its time, Unix ms, with which data is deleted by age. */
int64_t tw_age_ms(void);
/* Returns the time, Unix ms, by which postponed work becomes due and is given up. */
int64_t tw_wait_ms(void);

#endif
