/*
 * crash_point.h - named steps at which a test may kill the process (kill -9 tests).
 *
 * TRACEWELL_CRASH_AT=<step> in the environment makes the process kill itself
 * when it gets there, as a power cut would.  Only in builds for tests (meson option test_faults).
 */
#ifndef TW_CRASH_POINT_H
#define TW_CRASH_POINT_H

#if TW_TEST_FAULTS
void tw_crash_point(const char *step);
#else
static inline void tw_crash_point(const char *step)
{
	(void)step;
}
#endif

#endif
