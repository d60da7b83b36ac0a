/* Downloads one part of an upload. */
#include <stdio.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/base/app.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/storage/blob.h"

static enum tw_status read_some(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	ssize_t n = tw_read_some(*(int *)arg, out, cap);

	if (n < 0)
		return tw_fail(err, TW_IO, "the content cannot be read");
	*ret_n = (size_t)n;
	return TW_OK;
}

static void close_fd(void *arg)
{
	(void)close(*(int *)arg);
	tw_mem_free(arg);
}

static const struct tw_stream_ops file_stream = {read_some, close_fd};

enum tw_status tw_api_stream_part(
        struct tw_req *r, const char *id, const struct tw_part *p, struct tw_err *err)
{
	int *fd = tw_mem_alloc(1, sizeof *fd);
	char disposition[128];
	enum tw_status st;

	if (!fd)
		return tw_oom(err);
	st = tw_blob_open_by(tw_req_app(r)->blobs, p->sha256,
	        tw_monotonic_ms() + (int64_t)tw_req_ms_left(r), fd, err);
	if (st != TW_OK) {
		tw_mem_free(fd);
		return st;
	}
	(void)snprintf(
	        disposition, sizeof disposition, "attachment; filename=\"%s-%s\"", id, p->part);
	tw_req_set_header(r, "Content-Disposition", disposition);
	return tw_req_reply_stream(
	        r, 200, "application/octet-stream", false, &file_stream, fd, err);
}
