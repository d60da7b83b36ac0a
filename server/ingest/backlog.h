/*
 * backlog.h - how much may wait to be decoded: traces and bytes, of all and of one project.
 *
 * Past the bound uploads are told to come back.  A project may have no more
 * waiting than there is room left: one that bursts alone is stopped at half the
 * bound, and the other half is there for those who come later.
 * What waits is counted in the catalogue, at most twice a second; what came
 * since is added.  Uploads that are under way are not counted: their number has
 * a bound of its own.
 * Thread: any.
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

/* `c` outlives it.  NULL: no memory. */
struct tw_backlog *tw_backlog_new(struct tw_catalogue *c, const struct tw_backlog_limits *limits);
struct tw_backlog *tw_backlog_free(struct tw_backlog *b); /* NULL is fine; returns NULL */

/* May that project send an upload of so many bytes (0: not known)?  TW_BUSY past a bound.  Where
 * nothing waits, an upload of any size may come. */
enum tw_status tw_backlog_check(struct tw_backlog *b, const char *project_id, uint64_t bytes,
        struct tw_err *err) TW_MUST_USE;
/* May it have a trace of so many bytes decoded again?  Asked for by those who only read, so as long
 * as what waits is within a quarter of the bounds: the rest is for uploads. */
enum tw_status tw_backlog_check_again(struct tw_backlog *b, const char *project_id, uint64_t bytes,
        struct tw_err *err) TW_MUST_USE;
/* It came, and is queued. */
void tw_backlog_added(struct tw_backlog *b, const char *project_id, uint64_t bytes);

/* Bytes that wait and refusals, in Prometheus' form. */
void tw_backlog_metrics(struct tw_backlog *b, struct tw_buf *out);

#endif
