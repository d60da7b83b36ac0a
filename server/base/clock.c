#include "server/base/clock.h"

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

void tw_sleep_ms(int64_t ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	(void)nanosleep(&pause, NULL);
}

static _Thread_local struct tw_work_limit limit;

void tw_work_limit_set(struct tw_work_limit l)
{
	limit = l;
}

struct tw_work_limit tw_work_limit(void)
{
	return limit;
}

bool tw_work_is_overdue(void)
{
	return (limit.abandoned && atomic_load(limit.abandoned)) ||
	       (limit.until_ms && tw_monotonic_ms() > limit.until_ms);
}

enum tw_status tw_fail_overdue(struct tw_err *err)
{
	return tw_fail(err, TW_DEADLINE, "the query exceeds --query-deadline");
}
