/*
 * metrics.h - counters of a running server, in Prometheus' text form.
 *
 * Requests by route and status, bytes both ways, a latency histogram by route,
 * decode outcomes by format, limits hit.  Queue depth and disk are asked for
 * when the text is made (api_ops.c).  NULL is accepted everywhere, so that
 * parts can run without a server.
 * Thread: any; counting takes no lock.
 */
#ifndef TW_METRICS_H
#define TW_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct tw_metrics;
struct tw_route;

/* `routes` must outlive it. */
struct tw_metrics *tw_metrics_new(const struct tw_route *routes, size_t n_routes);
struct tw_metrics *tw_metrics_free(struct tw_metrics *m);

/* One answered request; route NULL: none matched. */
struct tw_metrics_request {
	const struct tw_route *route;
	int http;
	uint64_t ns;
	uint64_t bytes_in;
};
void tw_metrics_request(struct tw_metrics *m, const struct tw_metrics_request *r);
void tw_metrics_bytes_out(struct tw_metrics *m, uint64_t n);
void tw_metrics_requests_open(struct tw_metrics *m, int change);
void tw_metrics_uploads_open(struct tw_metrics *m, int change);

/* A decode ended: format "btrace2" or "" when not told, outcome "ready" or the error's word. */
void tw_metrics_decode(struct tw_metrics *m, const char *format, const char *outcome, uint64_t ns);

/* Appends the text of all of them. */
void tw_metrics_write(struct tw_metrics *m, struct tw_buf *out);

#endif
