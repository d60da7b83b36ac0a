/*
 * retention_clock.h - the clock that retention uses.
 *
 * A clock that is ahead, for example after a boot with a wrong date, would make all traces look
 * expired.  A forward jump of more than a day is therefore ignored for one day of uptime.  The last
 * time is stored in data/retention.time, because the clock may jump while the server is stopped.
 * Thread: one.
 */
#ifndef TW_RETENTION_CLOCK_H
#define TW_RETENTION_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tw_retention_clock {
	bool known;
	int64_t offset_ms;  /* retention time minus monotonic time */
	int64_t stepped_ms; /* monotonic time at which the jump was detected; 0: none */
};

/* Reads the stored time, if there is one. */
void tw_retention_clock_load(struct tw_retention_clock *c, const char *data_dir, int64_t mono_ms);
/* Returns retention's time, Unix ms.  *ret_stepped: this call detected a forward jump. */
int64_t tw_retention_clock_now(
        struct tw_retention_clock *c, int64_t unix_ms, int64_t mono_ms, bool *ret_stepped);
void tw_retention_clock_save(const char *data_dir, int64_t now_ms);

#endif
