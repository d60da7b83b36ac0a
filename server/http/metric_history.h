/*
 * metric_history.h - stores a few metrics of the last 24 hours in memory for GET /metrics/history.
 *
 * A ring of samples taken from the text of /metrics, so that a new series is a line in a table.  It
 * is lost on restart; a longer history is Prometheus' task.
 * Thread: any.
 */
#ifndef TW_METRIC_HISTORY_H
#define TW_METRIC_HISTORY_H

#include <jansson.h>
#include <stdint.h>

#include "decoder/base/str.h"

enum { TW_METRIC_HISTORY_STEP_MS = 2 * 60 * 1000, TW_METRIC_HISTORY_SAMPLES = 720 };

struct tw_metric_history;

struct tw_metric_history *tw_metric_history_new(void); /* NULL: no memory */
struct tw_metric_history *tw_metric_history_free(struct tw_metric_history *h);

/* Adds a sample; the oldest is dropped.  `metrics`: the text form, whose lines end with \n. */
void tw_metric_history_add(struct tw_metric_history *h, int64_t at_ms, struct tw_str metrics);

/* {"step_ms", "at_ms": [...], "series": {name: [...]}}, oldest first, with the metrics of now as
 * the last sample, which is not stored.  NULL: no memory. */
json_t *tw_metric_history_json(struct tw_metric_history *h, int64_t now_ms, struct tw_str metrics);

#endif
