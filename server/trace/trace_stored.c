#include "server/trace/trace_readers.h"

#include <unistd.h>

static enum tw_status open_once(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err)
{
	int fd = -1;
	enum tw_status st = tw_trace_open_by(b, trace_id, until_ms, &fd, err);

	return st == TW_OK ? tw_trace_file_open_fd(fd, ret, err) : st;
}

/* If the local copy is damaged, fetches the stored file again. */
enum tw_status tw_trace_stored_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err)
{
	enum tw_status st = open_once(b, trace_id, until_ms, ret, err);

	return st == TW_CORRUPT && tw_trace_forget(b, trace_id)
	               ? open_once(b, trace_id, until_ms, ret, err)
	               : st;
}

enum tw_status tw_trace_stored_open(
        struct tw_blobs *b, const char *trace_id, struct tw_trace_file **ret, struct tw_err *err)
{
	return tw_trace_stored_open_by(b, trace_id, 0, ret, err);
}
