/*
 * worker_fault.h - makes a decoder's child misbehave, to test its limits.
 *
 * TRACEWELL_WORKER_FAULT=crash|loop|eat|sleep|run|tire|unlocked in the server's environment, and
 * TRACEWELL_PREFLIGHT_FAULT for preflight processes (preflight.h), TRACEWELL_SOURCE_FAULT for
 * histories of clones. Only in builds for tests (meson option test_faults); in all others it does
 * nothing and reads no environment.
 */
#ifndef TW_WORKER_FAULT_H
#define TW_WORKER_FAULT_H

#include "decoder/base/err.h"

#if TW_TEST_FAULTS
/* `variable` names the environment variable. */
enum tw_status tw_worker_fault(const char *variable, struct tw_err *err) TW_MUST_USE;
#else
static inline enum tw_status tw_worker_fault(const char *variable, struct tw_err *err)
{
	(void)variable;
	(void)err;
	return TW_OK;
}
#endif

#endif
