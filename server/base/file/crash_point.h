/*
 * crash_point.h - named steps at which tests kill the process.
 *
 * With TRACEWELL_CRASH_AT=<step> in the environment the process kills itself (SIGKILL) at that
 * step, like a power cut.  Only in builds for tests (meson option test_faults).
 * Thread: any.
 */
#ifndef TW_CRASH_POINT_H
#define TW_CRASH_POINT_H

#if TW_TEST_FAULTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#endif

static inline void tw_crash_point(const char *step)
{
#if TW_TEST_FAULTS
	const char *at = getenv("TRACEWELL_CRASH_AT");

	if (at && strcmp(at, step) == 0)
		(void)raise(SIGKILL);
#else
	(void)step;
#endif
}

#endif
