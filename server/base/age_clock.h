/*
 * age_clock.h - the time by which ages and waits are measured: data is deleted, deliveries and
 * other postponed work become due.
 *
 * A clock that is ahead, for example after a boot with a wrong date, would make all data look
 * expired, and postpone work until then.  A forward jump of more than a day is therefore followed
 * only after a day of uptime, which may include restarts.  data/retention.time stores the time and
 * that uptime, because the clock may jump while the server is stopped.
 * Thread: open and close by the owner; the time by any.
 */
#ifndef TW_AGE_CLOCK_H
#define TW_AGE_CLOCK_H

#include <stdint.h>

#include "decoder/base/err.h"

#define TW_AGE_CLOCK_FILE "retention.time" /* in a data folder that a server has used */

struct tw_age_clock;

/* If there is no file, the server starts for the first time and the time is the clock's.  If the
 * file cannot be read, the time is 1970, so nothing is deleted for a day of uptime. */
enum tw_status tw_age_clock_open(const char *data_dir, int64_t mono_ms, struct tw_age_clock **ret,
        struct tw_err *err) TW_MUST_USE;
/* Also stores the time.  Accepts NULL; returns NULL. */
struct tw_age_clock *tw_age_clock_close(struct tw_age_clock *c);
/* Returns the time, Unix ms, when the clocks are at unix_ms and mono_ms. */
int64_t tw_age_clock_at(struct tw_age_clock *c, int64_t unix_ms, int64_t mono_ms);
/* The clock of this process; NULL: the system's, as in commands. */
void tw_age_clock_use(struct tw_age_clock *c);
/* Returns its time, Unix ms. */
int64_t tw_age_ms(void);

#endif
