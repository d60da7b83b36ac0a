/* The decoder chain with the cut oracle (I3): the first byte chooses how the rest is cut, and the
 * run in pieces must tell the same events, repairs and errors as the run in one push. */
#include "../event_log.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_limits limits = tw_limits_default();
	struct event_log whole, pieces;

	if (size == 0)
		return 0;
	limits.max_decoded_bytes = 4 << 20;
	event_log_run(&whole, data + 1, size - 1, 0, &limits);
	event_log_run(&pieces, data + 1, size - 1, (uint64_t)data[0] + 1, &limits);
	FUZZ_CHECK(whole.status == pieces.status);
	FUZZ_CHECK(!event_log_differs(&whole, &pieces));
	event_log_done(&whole);
	event_log_done(&pieces);
	return 0;
}
