/*
 * metrics.h - counters of a running server, in Prometheus' text format.
 *
 * Requests by route and status, bytes in both directions, a latency histogram by route, decode
 * outcomes by format, limits hit.  Queue depth and disk are read when the text is made (api_ops.c).
 * NULL is accepted everywhere, so that parts can run without a server.
 * Thread: any; counting takes no lock.
 */
#ifndef TW_METRICS_H
#define TW_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/buf.h"
#include "server/base/child.h"

struct tw_metrics;
struct tw_route;

/* `routes` must outlive it. */
struct tw_metrics *tw_metrics_new(const struct tw_route *routes, size_t n_routes);
struct tw_metrics *tw_metrics_free(struct tw_metrics *m);

/* One finished request; route NULL: none matched. */
struct tw_metrics_request {
	const struct tw_route *route;
	int http;
	uint64_t ns;
	uint64_t bytes_in;
};
void tw_metrics_request(struct tw_metrics *m, const struct tw_metrics_request *r);
void tw_metrics_bytes_out(struct tw_metrics *m, uint64_t n);
void tw_metrics_requests_open(struct tw_metrics *m, int change);
void tw_metrics_connections_open(struct tw_metrics *m, int change);
/* A connection was closed because its headers were late. */
void tw_metrics_connection_late(struct tw_metrics *m);
void tw_metrics_connection_evicted(struct tw_metrics *m); /* idle, closed for a new one */
void tw_metrics_request_abandoned(struct tw_metrics *m);  /* by its client */
void tw_metrics_body_slow(struct tw_metrics *m);          /* closed because its body was too slow */
void tw_metrics_uploads_open(struct tw_metrics *m, int change);
int64_t tw_metrics_uploads_now(const struct tw_metrics *m); /* in progress */

/* A decode ended: format "btrace2" or "" if unknown, outcome "ready" or the error's word. */
void tw_metrics_decode(struct tw_metrics *m, const char *format, const char *outcome, uint64_t ns);

/* A repair, loss or note of a decode, by its name in formats/repairs.def; other names are
 * ignored. */
void tw_metrics_repair(struct tw_metrics *m, const char *name, uint64_t count);

/* A mapping's compilation ended: "ready", "failed", "retry", "postponed", "abandoned" or
 * "stopped". */
void tw_metrics_mapping(struct tw_metrics *m, const char *outcome);

/* A decoder died (child.h). */
void tw_metrics_death(struct tw_metrics *m, enum tw_death how);

/* A damaged trace file was found and is being recreated. */
void tw_metrics_file_repaired(struct tw_metrics *m);

/* Retention deleted a trace, or only its upload or decoded file. */
enum tw_expired { TW_EXPIRED_TRACE, TW_EXPIRED_UPLOAD, TW_EXPIRED_DECODED, TW_EXPIRED_KINDS };
void tw_metrics_disk_expired(struct tw_metrics *m, uint64_t traces, uint64_t bytes);
void tw_metrics_expired(struct tw_metrics *m, enum tw_expired what, uint64_t bytes);

/* Appends the samples of all metrics. */
void tw_metrics_write(struct tw_metrics *m, struct tw_buf *out);

/* Appends samples, which end with a line end, with HELP and TYPE from metrics.def before the first
 * sample of each metric, and of the metrics without samples at the end. */
void tw_metrics_describe(struct tw_str samples, struct tw_buf *out);

#endif
