/*
 * crash_point.h - named steps at which tests kill the process.
 *
 * With TRACEWELL_CRASH_AT=<step> in the environment the process kills itself (SIGKILL) at that
 * step, like a power cut.  With TRACEWELL_PAUSE_AT=<step> a thread waits there while the file
 * TRACEWELL_PAUSE_FILE exists.  Only in builds for tests (meson option test_faults).
 * Thread: any.
 */
#ifndef TW_CRASH_POINT_H
#define TW_CRASH_POINT_H

#if TW_TEST_FAULTS
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#endif

static inline void tw_crash_point(const char *step)
{
#if TW_TEST_FAULTS
	const char *at = getenv("TRACEWELL_CRASH_AT"), *pause_at = getenv("TRACEWELL_PAUSE_AT");
	const char *file = getenv("TRACEWELL_PAUSE_FILE");

	if (at && strcmp(at, step) == 0)
		(void)raise(SIGKILL);
	while (pause_at && file && strcmp(pause_at, step) == 0 && access(file, F_OK) == 0)
		(void)poll(NULL, 0, 1);
#else
	(void)step;
#endif
}

#endif
