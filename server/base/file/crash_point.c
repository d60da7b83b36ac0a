#include "server/base/file/crash_point.h"

#if TW_TEST_FAULTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

void tw_crash_point(const char *step)
{
	const char *at = getenv("TRACEWELL_CRASH_AT");

	if (at && strcmp(at, step) == 0)
		(void)raise(SIGKILL);
}

#endif
