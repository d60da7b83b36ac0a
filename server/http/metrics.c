/*
 * metrics.c - counters in one block of atomics: one row per route, one more for requests without a
 * route.  Latency buckets are fixed powers of about three, good enough to see a shift.
 */
#include "server/http/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/formats/repairs.h"
#include "server/base/metric.h"
#include "server/http/http.h"

typedef _Atomic uint64_t counter;

enum { CLASSES = 26, BUCKETS = 9, DECODES = 96, WORD = 24, LABELS = 256 };

/* Statuses that the server sends; the last stands for all others. */
static const int classes[CLASSES] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 408, 409,
        411, 413, 414, 415, 422, 429, 431, 499, 500, 503, 504, 507, 0};
static const double bounds_s[BUCKETS] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};
static const double decode_bounds_s[BUCKETS] = {0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300};

struct row {
	counter by_class[CLASSES];
	counter buckets[BUCKETS + 1];
	counter ns, bytes_in;
};

struct decode {
	_Atomic int state; /* 0 free, 1 being filled in, 2 in use */
	char format[WORD], outcome[WORD];
	counter buckets[BUCKETS + 1];
	counter ns;
};

enum { MAPPING_OUTCOMES = 6 };
static const char *const mapping_outcomes[MAPPING_OUTCOMES] = {
        "ready", "failed", "retry", "postponed", "abandoned", "stopped"};

struct tw_metrics {
	const struct tw_route *routes;
	size_t n_routes;
	struct row *rows; /* n_routes + 1 */
	counter bytes_out, file_repairs;
	counter deaths[TW_DEATHS];
	counter mappings[MAPPING_OUTCOMES];
	counter repairs[TW_REPAIR_COUNT];
	counter expired[TW_EXPIRED_KINDS], expired_bytes, disk_expired_traces, disk_expired_bytes;
	_Atomic int64_t requests_open, uploads_open, connections_open;
	counter connections_late, connections_evicted, requests_abandoned, bodies_slow;
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

static size_t bucket_of(uint64_t ns, const double bounds[BUCKETS])
{
	size_t bucket = 0;

	while (bucket < BUCKETS && (double)ns > bounds[bucket] * 1e9)
		bucket++;
	return bucket;
}

void tw_metrics_request(struct tw_metrics *m, const struct tw_metrics_request *r)
{
	struct row *row;
	size_t class = 0;

	if (!m)
		return;
	row = &m->rows[r->route ? (size_t)(r->route - m->routes) : m->n_routes];
	while (classes[class] && classes[class] != r->http)
		class ++;
	add(&row->by_class[class], 1);
	add(&row->buckets[bucket_of(r->ns, bounds_s)], 1);
	add(&row->ns, r->ns);
	add(&row->bytes_in, r->bytes_in);
}

void tw_metrics_bytes_out(struct tw_metrics *m, uint64_t n)
{
	if (m)
		add(&m->bytes_out, n);
}

void tw_metrics_mapping(struct tw_metrics *m, const char *outcome)
{
	for (int i = 0; m && i < MAPPING_OUTCOMES; i++)
		if (strcmp(outcome, mapping_outcomes[i]) == 0)
			add(&m->mappings[i], 1);
}

void tw_metrics_death(struct tw_metrics *m, enum tw_death how)
{
	if (m)
		add(&m->deaths[how], 1);
}

void tw_metrics_file_repaired(struct tw_metrics *m)
{
	if (m)
		add(&m->file_repairs, 1);
}

void tw_metrics_disk_expired(struct tw_metrics *m, uint64_t traces, uint64_t bytes)
{
	if (!m)
		return;
	add(&m->disk_expired_traces, traces);
	add(&m->disk_expired_bytes, bytes);
}

void tw_metrics_expired(struct tw_metrics *m, enum tw_expired what, uint64_t bytes)
{
	if (!m)
		return;
	add(&m->expired[what], 1);
	add(&m->expired_bytes, bytes);
}

void tw_metrics_requests_open(struct tw_metrics *m, int change)
{
	if (m)
		(void)atomic_fetch_add(&m->requests_open, change);
}

void tw_metrics_connections_open(struct tw_metrics *m, int change)
{
	if (m)
		(void)atomic_fetch_add(&m->connections_open, change);
}

void tw_metrics_connection_late(struct tw_metrics *m)
{
	if (m)
		add(&m->connections_late, 1);
}

void tw_metrics_connection_evicted(struct tw_metrics *m)
{
	if (m)
		add(&m->connections_evicted, 1);
}

void tw_metrics_request_abandoned(struct tw_metrics *m)
{
	if (m)
		add(&m->requests_abandoned, 1);
}

void tw_metrics_body_slow(struct tw_metrics *m)
{
	if (m)
		add(&m->bodies_slow, 1);
}

void tw_metrics_uploads_open(struct tw_metrics *m, int change)
{
	if (m)
		(void)atomic_fetch_add(&m->uploads_open, change);
}

int64_t tw_metrics_uploads_now(const struct tw_metrics *m)
{
	return m ? atomic_load(&m->uploads_open) : 0;
}

/* Formats come from child processes, which may be compromised: unknown words are ignored. */
static const char *label_of(const char *word)
{
	size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-.");

	return word[len] || len >= WORD ? "" : word;
}

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
	/* Two threads that see a new pair concurrently may both claim a slot; the sums stay
	 * right. */
	format = label_of(format);
	for (size_t i = 0; m && i < DECODES; i++) {
		struct decode *d = &m->decodes[i];

		if (is_decode(d, format, outcome) || claim_decode(d, format, outcome)) {
			add(&d->buckets[bucket_of(ns, decode_bounds_s)], 1);
			add(&d->ns, ns);
			return;
		}
	}
}

struct name { /* of a row, as labels */
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

/* For any metric with labels: "" or a list with a trailing comma. */
static void write_buckets(struct tw_buf *out, const char *name, const char *labels,
        counter buckets[BUCKETS + 1], const double bounds[BUCKETS], uint64_t ns)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= BUCKETS; i++) {
		char le[16] = "+Inf";

		if (i < BUCKETS)
			(void)snprintf(le, sizeof le, "%g", bounds[i]);
		count += get(&buckets[i]);
		tw_buf_printf(
		        out, "%s_bucket{%s,le=\"%s\"} %" PRIu64 "\n", name, labels, le, count);
	}
	tw_buf_printf(out, "%s_sum{%s} %.6f\n%s_count{%s} %" PRIu64 "\n", name, labels,
	        (double)ns / 1e9, name, labels, count);
}

static void write_histogram(struct tw_buf *out, struct name n, struct row *row)
{
	char labels[LABELS];

	if (!get(&row->ns))
		return;
	(void)snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\"", n.method, n.path);
	write_buckets(
	        out, "tracewell_request_seconds", labels, row->buckets, bounds_s, get(&row->ns));
}

static void write_bytes(struct tw_buf *out, struct name n, struct row *row)
{
	if (get(&row->bytes_in))
		tw_buf_printf(out,
		        "tracewell_request_bytes_total{method=\"%s\",route=\"%s\"} %" PRIu64 "\n",
		        n.method, n.path, get(&row->bytes_in));
}

/* All lines of a metric must be adjacent in the text format. */
static void write_rows(struct tw_metrics *m, struct tw_buf *out,
        void (*write)(struct tw_buf *, struct name, struct row *))
{
	for (size_t i = 0; i < m->n_routes; i++)
		write(out, (struct name){m->routes[i].method, m->routes[i].path}, &m->rows[i]);
	write(out, (struct name){"", "none"}, &m->rows[m->n_routes]);
}

static uint64_t count_of(struct decode *d)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= BUCKETS; i++)
		count += get(&d->buckets[i]);
	return count;
}

static void write_decodes(struct tw_metrics *m, struct tw_buf *out)
{
	for (int seconds = 0; seconds < 2; seconds++) {
		for (size_t i = 0; i < DECODES; i++) {
			struct decode *d = &m->decodes[i];
			char labels[LABELS];

			if (atomic_load(&d->state) != 2)
				continue;
			(void)snprintf(labels, sizeof labels, "format=\"%s\",outcome=\"%s\"",
			        d->format, d->outcome);
			if (seconds)
				write_buckets(out, "tracewell_decode_seconds", labels, d->buckets,
				        decode_bounds_s, get(&d->ns));
			else
				tw_buf_printf(out, "tracewell_decodes_total{%s} %" PRIu64 "\n",
				        labels, count_of(d));
		}
	}
}

void tw_metrics_repair(struct tw_metrics *m, const char *name, uint64_t count)
{
	enum tw_repair what = tw_repair_of_name(name);

	if (m && what < TW_REPAIR_COUNT)
		add(&m->repairs[what], count);
}

/* Requests refused by a limit, over all routes. */
static uint64_t refused_with(struct tw_metrics *m, int http)
{
	uint64_t n = 0;
	size_t class = 0;

	while (classes[class] && classes[class] != http)
		class ++;
	for (size_t i = 0; i <= m->n_routes; i++)
		n += get(&m->rows[i].by_class[class]);
	return n;
}

static void write_limits(struct tw_metrics *m, struct tw_buf *out)
{
	static const struct {
		const char *limit;
		int http;
	} limits[] = {{"size", 413}, {"target", 414}, {"rate", 429}, {"headers", 431},
	        {"busy", 503}, {"deadline", 504}, {"disk", 507}};

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		tw_buf_printf(out, "tracewell_limits_hit_total{limit=\"%s\"} %" PRIu64 "\n",
		        limits[i].limit, refused_with(m, limits[i].http));
	tw_metric(out, "tracewell_limits_hit_total{limit=\"slow_body\"}", get(&m->bodies_slow));
	tw_metric(out, "tracewell_limits_hit_total{limit=\"slow_headers\"}",
	        get(&m->connections_late));
}

void tw_metrics_write(struct tw_metrics *m, struct tw_buf *out)
{
	if (!m)
		return;
	write_rows(m, out, write_statuses);
	write_rows(m, out, write_histogram);
	write_rows(m, out, write_bytes);
	tw_metric(out, "tracewell_reply_bytes_total", get(&m->bytes_out));
	tw_metric(out, "tracewell_requests_open", (uint64_t)atomic_load(&m->requests_open));
	tw_metric(out, "tracewell_uploads_open", (uint64_t)atomic_load(&m->uploads_open));
	tw_metric(out, "tracewell_trace_files_repaired_total", get(&m->file_repairs));
	tw_metric(
	        out, "tracewell_expired_total{what=\"trace\"}", get(&m->expired[TW_EXPIRED_TRACE]));
	tw_metric(out, "tracewell_expired_total{what=\"upload\"}",
	        get(&m->expired[TW_EXPIRED_UPLOAD]));
	tw_metric(out, "tracewell_expired_total{what=\"decoded\"}",
	        get(&m->expired[TW_EXPIRED_DECODED]));
	tw_metric(out, "tracewell_expired_bytes_total", get(&m->expired_bytes));
	tw_metric(out, "tracewell_disk_expired_traces_total", get(&m->disk_expired_traces));
	tw_metric(out, "tracewell_disk_expired_bytes_total", get(&m->disk_expired_bytes));
	tw_metric(out, "tracewell_connections_open", (uint64_t)atomic_load(&m->connections_open));
	tw_metric(out, "tracewell_connections_late_total", get(&m->connections_late));
	tw_metric(out, "tracewell_connections_evicted_total", get(&m->connections_evicted));
	tw_metric(out, "tracewell_requests_abandoned_total", get(&m->requests_abandoned));
	write_decodes(m, out);
	for (enum tw_repair i = 0; i < TW_REPAIR_COUNT; i++)
		if (get(&m->repairs[i]))
			tw_buf_printf(out,
			        "tracewell_repairs_total{kind=\"%s\",name=\"%s\"} %" PRIu64 "\n",
			        tw_repair_info(i)->kind_word, tw_repair_info(i)->name,
			        get(&m->repairs[i]));
	for (int i = TW_DEATH_NONE + 1; i < TW_DEATHS; i++)
		tw_buf_printf(out, "tracewell_decoder_crashes_total{reason=\"%s\"} %" PRIu64 "\n",
		        tw_death_name((enum tw_death)i), get(&m->deaths[i]));
	for (int i = 0; i < MAPPING_OUTCOMES; i++)
		tw_buf_printf(out, "tracewell_mapping_compiles_total{outcome=\"%s\"} %" PRIu64 "\n",
		        mapping_outcomes[i], get(&m->mappings[i]));
	write_limits(m, out);
}

/* --- HELP and TYPE lines --- */

static const struct metric {
	const char *name, *type, *help;
} table[] = {
#define METRIC(name, type, help) {#name, #type, help},
#include "server/http/metrics.def"
#undef METRIC
};

enum { N_METRICS = sizeof table / sizeof *table };

/* The names of a histogram's samples have an ending. */
static bool is_sample_of(struct tw_str line, const struct metric *m)
{
	static const char *const endings[] = {"_bucket", "_sum", "_count"};
	struct tw_str name = {line.ptr, strcspn(line.ptr, "{ ")};

	if (strcmp(m->type, "histogram") != 0)
		return tw_str_eq(name, tw_str_of(m->name));
	if (!tw_str_starts(name, tw_str_of(m->name)))
		return false;
	name = tw_str_from(name, strlen(m->name));
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		if (tw_str_eq(name, tw_str_of(endings[i])))
			return true;
	return false;
}

static void describe(const struct metric *m, bool *io_done, struct tw_buf *out)
{
	if (!*io_done)
		tw_buf_printf(
		        out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
	*io_done = true;
}

void tw_metrics_describe(struct tw_str samples, struct tw_buf *out)
{
	bool done[N_METRICS] = {false};

	while (samples.len) {
		struct tw_str line = tw_str_split(&samples, '\n');

		for (size_t i = 0; i < N_METRICS; i++)
			if (is_sample_of(line, &table[i]))
				describe(&table[i], &done[i], out);
		(void)tw_buf_add_str(out, line);
		(void)tw_buf_add_u8(out, '\n');
	}
	for (size_t i = 0; i < N_METRICS; i++)
		describe(&table[i], &done[i], out);
}
