#include "server/decode/worker_fault.h"

#if TW_TEST_FAULTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/arena.h"

enum tw_status tw_worker_fault(const char *variable, struct tw_err *err)
{
	static unsigned calls;
	const char *how = getenv(variable);
	volatile uint64_t spin = 0;

	if (!how)
		return TW_OK;
	if (strcmp(how, "crash") == 0)
		(void)raise(SIGSEGV);
	if (strcmp(how, "tire") == 0 && ++calls > 1) /* as if its CPU time were used up */
		(void)raise(SIGXCPU);
	if (strcmp(how, "unlocked") == 0)
		return tw_fail(err, TW_IO, "it could not be locked in");
	while (strcmp(how, "loop") == 0)
		spin++;
	while (strcmp(how, "eat") == 0) {
		void *p = tw_mem_alloc(1 << 20, 1);

		if (!p)
			return tw_oom(err);
		memset(p, 1, 1 << 20);
	}
	if (strcmp(how, "sleep") == 0)
		(void)sleep(3600);
	if (strcmp(how, "run") == 0)
		(void)execl("/bin/true", "true", (char *)NULL);
	return TW_OK;
}

#endif
