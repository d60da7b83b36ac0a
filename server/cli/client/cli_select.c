#include "server/cli/client/cli_select.h"

#include "decoder/base/str.h"

#define MAX_TIME_NS ((uint64_t)1 << 61)

enum tw_status tw_cli_range(
        const char *from, const char *to, struct tw_selection *ret, struct tw_err *err)
{
	uint64_t from_ns = 0;
	uint64_t to_ns = MAX_TIME_NS;

	if ((from && !tw_str_u64(tw_str_of(from), MAX_TIME_NS, &from_ns)) ||
	        (to && !tw_str_u64(tw_str_of(to), MAX_TIME_NS, &to_ns)) || from_ns >= to_ns)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--from and --to are nanoseconds of the trace's time, the first below");
	ret->ranged = from || to;
	ret->from_ns = (int64_t)from_ns;
	ret->to_ns = (int64_t)to_ns;
	return TW_OK;
}
