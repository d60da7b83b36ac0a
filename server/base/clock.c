#include "clock.h"

#include <time.h>

static int64_t read_ms(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t tw_unix_ms(void)
{
	return read_ms(CLOCK_REALTIME);
}

int64_t tw_monotonic_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}
