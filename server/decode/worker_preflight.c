/*
 * worker_preflight.c - the child that checks the first bytes of uploads, one after the other, until
 * its input ends.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decoder/decoder.h"
#include "server/base/file/io.h"
#include "server/decode/preflight.h"
#include "server/decode/preflight_protocol.h"
#include "server/decode/worker_internal.h"

enum { SOCKET_FD = TW_WORKER_OUTPUT };

/* False: the input ended, or is not a request. */
static bool read_exactly(void *to, size_t n)
{
	return tw_read_full(SOCKET_FD, to, n) == (ssize_t)n;
}

static struct tw_preflight_response check(
        const struct tw_preflight_request *r, const uint8_t *head, struct tw_limits limits)
{
	const struct tw_format *forced =
	        r->forced[0] ? tw_format_by_name(tw_str_of(r->forced)) : NULL;
	const struct tw_format *found = NULL;
	struct tw_preflight_response a;
	struct tw_err err = {0};
	enum tw_status st = tw_worker_fault("TRACEWELL_PREFLIGHT_FAULT", &err);

	limits.max_window_log = r->window_log;
	if (st == TW_OK)
		st = tw_decoder_preflight(head, r->n, r->whole, forced, &limits, &found, &err);
	memset(&a, 0, sizeof a); /* the padding is sent too */
	a.status = (uint32_t)st;
	a.offset = err.offset;
	(void)snprintf(a.msg, sizeof a.msg, "%s", st == TW_OK ? "" : err.msg);
	(void)snprintf(a.format, sizeof a.format, "%s", found ? found->name : "");
	return a;
}

enum tw_status tw_worker_preflight(const json_t *task, json_t **ret, struct tw_err *err)
{
	static uint8_t head[TW_HEAD_BYTES];
	struct tw_limits limits = tw_worker_limits(json_object_get(task, "limits"));
	struct tw_preflight_request request;
	enum tw_status st = TW_OK;

	while (st == TW_OK && read_exactly(&request, sizeof request) && request.n <= sizeof head &&
	        read_exactly(head, request.n)) {
		const struct tw_preflight_response a = check(&request, head, limits);

		st = tw_worker_write(SOCKET_FD, (const uint8_t *)&a, sizeof a, err);
	}
	*ret = json_object();
	return st;
}
