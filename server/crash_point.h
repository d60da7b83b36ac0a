/*
 * crash_point.h - named steps at which a test may kill the process (kill -9 tests).
 *
 * TRACEWELL_CRASH_AT=<step> in the environment makes the process kill itself
 * when it gets there, as a power cut would.  Costs a pointer test when unset.
 */
#ifndef TW_CRASH_POINT_H
#define TW_CRASH_POINT_H

void tw_crash_point(const char *step);

#endif
