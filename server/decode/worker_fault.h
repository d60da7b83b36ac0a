/*
 * worker_fault.h - makes a decoder's child misbehave, to test its limits.
 *
 * Set TRACEWELL_WORKER_FAULT=crash|loop|eat|sleep|run|tire|unlocked in the server's environment,
 * TRACEWELL_PREFLIGHT_FAULT for preflight processes (preflight.h), or TRACEWELL_SOURCE_FAULT for
 * clone readers.  Exists only in test builds (property test_faults of a profile); other builds read
 * no environment variable here.
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
