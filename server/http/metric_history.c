#include "server/http/metric_history.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/arena.h"

enum series {
	QUEUE_TRACES,
	QUEUE_OLDEST_S,
	STAGES_WAITING,
	UPLOADS,
	DECODED,
	FAILED,
	REFUSED,
	ERRORS,
	DISK_FREE_BYTES,
	RESIDENT_BYTES,
	N_SERIES
};

static const char *const names[N_SERIES] = {"queue_traces", "queue_oldest_seconds",
        "stages_waiting_traces", "uploads", "decoded", "failed", "refused", "errors",
        "disk_free_bytes", "resident_bytes"};

/* A series is the signed sum of all samples of its metrics that have the label. */
static const struct source {
	enum series series;
	double sign;
	const char *metric, *label; /* NULL: any labels */
} sources[] = {
        {QUEUE_TRACES, 1, "tracewell_queue_traces", NULL},
        {QUEUE_OLDEST_S, 1, "tracewell_queue_oldest_seconds", NULL},
        {STAGES_WAITING, 1, "tracewell_stage_waiting_traces", NULL},
        {UPLOADS, 1, "tracewell_requests_total", "route=\"/api/v1/traces\",status=\"202\""},
        {UPLOADS, 1, "tracewell_requests_total",
                "route=\"/api/v1/uploads/direct/{upload}/complete\",status=\"202\""},
        {UPLOADS, 1, "tracewell_resumable_total", "step=\"finished\""},
        {DECODED, 1, "tracewell_decodes_total", "outcome=\"ready\""},
        {FAILED, 1, "tracewell_decodes_total", NULL}, /* minus those that did not fail: */
        {FAILED, -1, "tracewell_decodes_total", "outcome=\"ready\""},
        {FAILED, -1, "tracewell_decodes_total", "outcome=\"retry\""},
        {FAILED, -1, "tracewell_decodes_total", "outcome=\"postponed\""},
        {REFUSED, 1, "tracewell_limits_hit_total", NULL},
        {REFUSED, 1, "tracewell_queue_refused_total", NULL},
        {ERRORS, 1, "tracewell_requests_total", "status=\"500\""},
        {DISK_FREE_BYTES, 1, "tracewell_disk_free_bytes", NULL},
        {RESIDENT_BYTES, 1, "tracewell_resident_bytes", NULL},
};

struct sample {
	int64_t at_ms;
	double values[N_SERIES];
};

struct tw_metric_history {
	pthread_mutex_t lock;
	size_t n, next; /* in use; position of the next sample */
	struct sample ring[TW_METRIC_HISTORY_SAMPLES];
};

struct tw_metric_history *tw_metric_history_new(void)
{
	struct tw_metric_history *h = tw_mem_zalloc(1, sizeof *h);

	if (h)
		(void)pthread_mutex_init(&h->lock, NULL);
	return h;
}

struct tw_metric_history *tw_metric_history_free(struct tw_metric_history *h)
{
	if (h)
		(void)pthread_mutex_destroy(&h->lock);
	tw_mem_free(h);
	return NULL;
}

/* A line is "name value" or "name{labels} value". */
static void add_line(struct sample *s, struct tw_str line)
{
	const size_t value = tw_str_find_last(line, tw_str_of(" "));
	const struct tw_str series = {line.ptr, value};
	struct tw_str labels = series;
	const struct tw_str name = tw_str_split(&labels, '{');

	for (size_t i = 0; value < line.len && i < sizeof sources / sizeof *sources; i++) {
		const struct source *of = &sources[i];

		if (tw_str_eq(name, tw_str_of(of->metric)) &&
		        (!of->label || tw_str_find(labels, tw_str_of(of->label)) < labels.len))
			s->values[of->series] += of->sign * strtod(line.ptr + value, NULL);
	}
}

static struct sample sample_of(int64_t at_ms, struct tw_str metrics)
{
	struct sample s = {.at_ms = at_ms};

	while (metrics.len)
		add_line(&s, tw_str_split(&metrics, '\n'));
	return s;
}

void tw_metric_history_add(struct tw_metric_history *h, int64_t at_ms, struct tw_str metrics)
{
	const struct sample s = sample_of(at_ms, metrics);

	(void)pthread_mutex_lock(&h->lock);
	h->ring[h->next] = s;
	h->next = (h->next + 1) % TW_METRIC_HISTORY_SAMPLES;
	if (h->n < TW_METRIC_HISTORY_SAMPLES)
		h->n++;
	(void)pthread_mutex_unlock(&h->lock);
}

static void append(json_t *at_ms, json_t *series[N_SERIES], const struct sample *s)
{
	(void)json_array_append_new(at_ms, json_integer(s->at_ms));
	for (int i = 0; i < N_SERIES; i++) {
		const double v = s->values[i];

		(void)json_array_append_new(series[i],
		        v == (double)(int64_t)v ? json_integer((int64_t)v) : json_real(v));
	}
}

json_t *tw_metric_history_json(struct tw_metric_history *h, int64_t now_ms, struct tw_str metrics)
{
	const struct sample now = sample_of(now_ms, metrics);
	json_t *at_ms = json_array(), *all = json_object(), *series[N_SERIES];

	for (int i = 0; i < N_SERIES; i++) {
		series[i] = json_array();
		(void)json_object_set_new(all, names[i], series[i]);
	}
	(void)pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->n; i++)
		append(at_ms, series,
		        &h->ring[(h->next + TW_METRIC_HISTORY_SAMPLES - h->n + i) %
		                 TW_METRIC_HISTORY_SAMPLES]);
	(void)pthread_mutex_unlock(&h->lock);
	append(at_ms, series, &now);
	return json_pack(
	        "{si so so}", "step_ms", TW_METRIC_HISTORY_STEP_MS, "at_ms", at_ms, "series", all);
}
