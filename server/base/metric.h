/*
 * metric.h - one sample of GET /metrics.
 *
 * Each part of the server appends its samples.  tw_metrics_describe (http/metrics.h) adds the
 * HELP and TYPE lines of metrics.def.
 * Thread: any.
 */
#ifndef TW_METRIC_H
#define TW_METRIC_H

#include <inttypes.h>

#include "decoder/base/buf.h"

/* The name may have labels: name{label="value"}. */
static inline void tw_metric(struct tw_buf *out, const char *name, uint64_t value)
{
	tw_buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

#endif
