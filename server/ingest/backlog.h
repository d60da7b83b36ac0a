/*
 * backlog.h - limits the traces and bytes that wait for decoding, in total and per project.
 *
 * Beyond the limit uploads are rejected with a time to retry.  A project may not have more waiting
 * than the free remainder: a single bursting project is stopped at half the limit, and the other
 * half is left for projects that come later. The waiting traces are counted in the catalogue, at
 * most twice a second; later additions are added. Uploads in progress are not counted: their number
 * has a separate limit. Thread: any.
 */
#ifndef TW_BACKLOG_H
#define TW_BACKLOG_H

#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"

struct tw_backlog;
struct tw_catalogue;

enum { TW_BACKLOG_RETRY_S = 10 };

struct tw_backlog_limits {
	uint64_t traces, bytes;
};

/* `c` must outlive it.  NULL: out of memory. */
struct tw_backlog *tw_backlog_new(struct tw_catalogue *c, const struct tw_backlog_limits *limits);
struct tw_backlog *tw_backlog_free(struct tw_backlog *b); /* accepts NULL; returns NULL */

/* Whether the project may upload this number of bytes (0: unknown). TW_BUSY above the limit. If
 * nothing is waiting, an upload of any size is accepted. */
enum tw_status tw_backlog_check(struct tw_backlog *b, const char *project_id, uint64_t bytes,
        struct tw_err *err) TW_MUST_USE;
/* Whether it may have a trace of this size decoded again. Readers can cause this, so only a quarter
 * of the limits is available; the rest is for uploads. */
enum tw_status tw_backlog_check_again(struct tw_backlog *b, const char *project_id, uint64_t bytes,
        struct tw_err *err) TW_MUST_USE;
/* Counts an upload that was queued. */
void tw_backlog_added(struct tw_backlog *b, const char *project_id, uint64_t bytes);

/* Waiting bytes and rejections, in Prometheus format. */
void tw_backlog_metrics(struct tw_backlog *b, struct tw_buf *out);

#endif
