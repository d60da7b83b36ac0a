/*
 * metrics.c - counters in one block of atomics: one row a route, one more for requests that none
 * matched.  Latency buckets are fixed powers of about three, good enough to see a shift.
 */
#include "metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "http.h"

typedef _Atomic uint64_t counter;

enum { CLASSES = 24, BUCKETS = 9, DECODES = 48, WORD = 24 };

/* Statuses the server answers with; the last stands for any other. */
static const int classes[CLASSES] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 408, 409,
        411, 413, 415, 422, 429, 500, 503, 504, 507, 0};
static const double bounds_s[BUCKETS] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};

struct row {
	counter by_class[CLASSES];
	counter buckets[BUCKETS + 1];
	counter ns, bytes_in;
};

struct decode {
	_Atomic int state; /* 0 free, 1 being filled in, 2 in use */
	char format[WORD], outcome[WORD];
	counter count, ns;
};

struct tw_metrics {
	const struct tw_route *routes;
	size_t n_routes;
	struct row *rows; /* n_routes + 1 */
	counter bytes_out;
	_Atomic int64_t requests_open, uploads_open;
	struct decode decodes[DECODES];
};

struct tw_metrics *tw_metrics_new(const struct tw_route *routes, size_t n_routes)
{
	struct tw_metrics *m = tw_mem_zalloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->routes = routes;
	m->n_routes = n_routes;
	m->rows = tw_mem_zalloc(n_routes + 1, sizeof *m->rows);
	return m->rows ? m : tw_metrics_free(m);
}

struct tw_metrics *tw_metrics_free(struct tw_metrics *m)
{
	if (m)
		tw_mem_free(m->rows);
	tw_mem_free(m);
	return NULL;
}

static void add(counter *c, uint64_t n)
{
	(void)atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static uint64_t get(counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

void tw_metrics_request(struct tw_metrics *m, const struct tw_metrics_request *r)
{
	struct row *row;
	size_t class = 0;
	size_t bucket = 0;

	if (!m)
		return;
	row = &m->rows[r->route ? (size_t)(r->route - m->routes) : m->n_routes];
	while (classes[class] && classes[class] != r->http)
		class ++;
	while (bucket < BUCKETS && (double)r->ns > bounds_s[bucket] * 1e9)
		bucket++;
	add(&row->by_class[class], 1);
	add(&row->buckets[bucket], 1);
	add(&row->ns, r->ns);
	add(&row->bytes_in, r->bytes_in);
}

void tw_metrics_bytes_out(struct tw_metrics *m, uint64_t n)
{
	if (m)
		add(&m->bytes_out, n);
}

void tw_metrics_requests_open(struct tw_metrics *m, int change)
{
	if (m)
		(void)atomic_fetch_add(&m->requests_open, change);
}

void tw_metrics_uploads_open(struct tw_metrics *m, int change)
{
	if (m)
		(void)atomic_fetch_add(&m->uploads_open, change);
}

/* Words come from our own tables; cut all the same. */
static bool is_decode(struct decode *d, const char *format, const char *outcome)
{
	return atomic_load(&d->state) == 2 && strncmp(d->format, format, WORD - 1) == 0 &&
	       strncmp(d->outcome, outcome, WORD - 1) == 0;
}

static bool claim_decode(struct decode *d, const char *format, const char *outcome)
{
	int free_state = 0;

	if (!atomic_compare_exchange_strong(&d->state, &free_state, 1))
		return false;
	(void)tw_utf8_clean(d->format, sizeof d->format, tw_str_of(format));
	(void)tw_utf8_clean(d->outcome, sizeof d->outcome, tw_str_of(outcome));
	atomic_store(&d->state, 2);
	return true;
}

void tw_metrics_decode(struct tw_metrics *m, const char *format, const char *outcome, uint64_t ns)
{
	/* Two threads that meet a new pair at once may both claim a slot; the sums stay right. */
	for (size_t i = 0; m && i < DECODES; i++) {
		struct decode *d = &m->decodes[i];

		if (is_decode(d, format, outcome) || claim_decode(d, format, outcome)) {
			add(&d->count, 1);
			add(&d->ns, ns);
			return;
		}
	}
}

struct name { /* of a row, in labels */
	const char *method, *path;
};

static void write_statuses(struct tw_buf *out, struct name n, struct row *row)
{
	for (size_t i = 0; i < CLASSES && (i == 0 || classes[i - 1]); i++)
		if (get(&row->by_class[i]))
			tw_buf_printf(out,
			        "tracewell_requests_total{method=\"%s\",route=\"%s\",status=\"%d\"}"
			        " "
			        "%" PRIu64 "\n",
			        n.method, n.path, classes[i], get(&row->by_class[i]));
}

static void write_histogram(struct tw_buf *out, struct name n, struct row *row)
{
	uint64_t count = 0;

	if (!get(&row->ns))
		return;
	for (size_t i = 0; i <= BUCKETS; i++) {
		char le[16] = "+Inf";

		if (i < BUCKETS)
			(void)snprintf(le, sizeof le, "%g", bounds_s[i]);
		count += get(&row->buckets[i]);
		tw_buf_printf(out,
		        "tracewell_request_seconds_bucket{method=\"%s\",route=\"%s\",le=\"%s\"} "
		        "%" PRIu64 "\n",
		        n.method, n.path, le, count);
	}
	tw_buf_printf(out,
	        "tracewell_request_seconds_sum{method=\"%s\",route=\"%s\"} %.6f\n"
	        "tracewell_request_seconds_count{method=\"%s\",route=\"%s\"} %" PRIu64 "\n",
	        n.method, n.path, (double)get(&row->ns) / 1e9, n.method, n.path, count);
}

static void write_bytes(struct tw_buf *out, struct name n, struct row *row)
{
	if (get(&row->bytes_in))
		tw_buf_printf(out,
		        "tracewell_request_bytes_total{method=\"%s\",route=\"%s\"} %" PRIu64 "\n",
		        n.method, n.path, get(&row->bytes_in));
}

/* All lines of one metric stand together, as the text form demands. */
static void write_rows(struct tw_metrics *m, struct tw_buf *out, const char *type,
        void (*write)(struct tw_buf *, struct name, struct row *))
{
	tw_buf_printf(out, "# TYPE %s\n", type);
	for (size_t i = 0; i < m->n_routes; i++)
		write(out, (struct name){m->routes[i].method, m->routes[i].path}, &m->rows[i]);
	write(out, (struct name){"", "none"}, &m->rows[m->n_routes]);
}

static void write_decodes(struct tw_metrics *m, struct tw_buf *out)
{
	for (int seconds = 0; seconds < 2; seconds++) {
		tw_buf_printf(out, "# TYPE %s counter\n",
		        seconds ? "tracewell_decode_seconds_total" : "tracewell_decodes_total");
		for (size_t i = 0; i < DECODES; i++) {
			struct decode *d = &m->decodes[i];

			if (atomic_load(&d->state) != 2)
				continue;
			if (seconds)
				tw_buf_printf(out,
				        "tracewell_decode_seconds_total{format=\"%s\",outcome=\"%"
				        "s\"} "
				        "%.6f\n",
				        d->format, d->outcome, (double)get(&d->ns) / 1e9);
			else
				tw_buf_printf(out,
				        "tracewell_decodes_total{format=\"%s\",outcome=\"%s\"} "
				        "%" PRIu64 "\n",
				        d->format, d->outcome, get(&d->count));
		}
	}
}

void tw_metrics_write(struct tw_metrics *m, struct tw_buf *out)
{
	if (!m)
		return;
	write_rows(m, out, "tracewell_requests_total counter", write_statuses);
	write_rows(m, out, "tracewell_request_seconds histogram", write_histogram);
	write_rows(m, out, "tracewell_request_bytes_total counter", write_bytes);
	tw_buf_printf(out,
	        "# TYPE tracewell_reply_bytes_total counter\n"
	        "tracewell_reply_bytes_total %" PRIu64 "\n"
	        "# TYPE tracewell_requests_open gauge\n"
	        "tracewell_requests_open %" PRId64 "\n"
	        "# TYPE tracewell_uploads_open gauge\n"
	        "tracewell_uploads_open %" PRId64 "\n",
	        get(&m->bytes_out), (int64_t)atomic_load(&m->requests_open),
	        (int64_t)atomic_load(&m->uploads_open));
	write_decodes(m, out);
}
