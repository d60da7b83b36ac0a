/*
 * retention_clock.h - the time by which retention deletes.
 *
 * A clock that is ahead, as after a start with a wrong date, would make all traces too old.  So
 * retention follows a step forward of more than a day only after a day of uptime; until then its
 * time goes on from before the step.  The last time is stored in data/retention.time, as the clock
 * may change while the server does not run.
 * Thread: one.
 */
#ifndef TW_RETENTION_CLOCK_H
#define TW_RETENTION_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tw_retention_clock {
	bool known;
	int64_t offset_ms;  /* of its time from the monotonic clock */
	int64_t stepped_ms; /* monotonic time at which the current step was found; 0: none */
};

/* Reads the stored time, if there is one. */
void tw_retention_clock_load(struct tw_retention_clock *c, const char *data_dir, int64_t mono_ms);
/* The time, Unix ms.  *ret_stepped: a step forward was found by this call. */
int64_t tw_retention_clock_now(
        struct tw_retention_clock *c, int64_t unix_ms, int64_t mono_ms, bool *ret_stepped);
void tw_retention_clock_save(const char *data_dir, int64_t now_ms);

#endif
