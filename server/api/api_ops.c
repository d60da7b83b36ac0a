/* Health, readiness, metrics, and the API's description. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/embedded.h"
#include "server/base/file/disk.h"
#include "server/base/file/io.h"
#include "server/base/log.h"
#include "server/base/metric.h"
#include "server/base/role.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/db/catalogue_postgres.h"
#include "server/db/catalogue_sums.h"
#include "server/derive/jobs_hook.h"
#include "server/derive/lease.h"
#include "server/derive/pipeline.h"
#include "server/http/http.h"
#include "server/http/limit/quota.h"
#include "server/http/limit/response_memory.h"
#include "server/http/metric_history.h"
#include "server/http/metrics.h"
#include "server/http/response_cache.h"
#include "server/ingest/backlog.h"
#include "server/ingest/health.h"
#include "server/ingest/tus/resume.h"
#include "server/source/source_query.h"
#include "server/storage/backup_time.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

enum { MAX_METRICS = 4 << 20 };

extern const struct tw_embedded tw_openapi_files[];

static enum tw_status healthz(struct tw_req *r, struct tw_err *err)
{
	return tw_req_reply_json(r, 200, json_pack("{ss}", "status", "ok"), err);
}

static json_t *checks_json(const struct tw_api *api, const struct tw_health_check *checks, size_t n)
{
	json_t *all = json_object();

	for (size_t i = 0; i < n; i++)
		(void)json_object_set_new(all, checks[i].name,
		        json_pack("{sb sI ss ss*}", "ok", checks[i].ok, "since_ms",
		                (json_int_t)checks[i].since_ms, "message", checks[i].message,
		                "engine", tw_health_engine(api->health, checks[i].name)));
	return all;
}

static const char *const purposes[] = {"upload", "read", NULL};

static const struct tw_param readyz_params[] = {
        TW_PARAM_ENUM("for", purposes,
                "`read`: readiness for queries, which needs only the checks `reading` and "
                "`running` (the catalogue can be read, and the server is not shutting down); the "
                "others are reported but do not count. `upload`: all checks count."),
        {0},
};

static enum tw_status readyz(struct tw_req *r, struct tw_err *err)
{
	const struct tw_api *api = tw_api_of(r);
	struct tw_health_check checks[TW_HEALTH_CHECKS];
	char roles[64];
	bool ready = tw_health_checks(api->health, tw_req_enum(r, "for") == 1, checks);

	tw_roles_write(api->config->roles, roles, sizeof roles);
	return tw_req_reply_json(r, ready ? 200 : 503,
	        json_pack("{ss ss* ss so}", "status", ready ? "ready" : "not_ready", "node",
	                api->config->several ? api->node_name : NULL, "role", roles, "checks",
	                checks_json(api, checks, TW_HEALTH_CHECKS)),
	        err);
}

static uint64_t resident_bytes(void)
{
	char line[128];
	struct tw_str rest = {line, 0};
	uint64_t pages = 0;

	if (tw_file_text("/proc/self/statm", line, sizeof line))
		rest = tw_str_of(line);
	(void)tw_str_split(&rest, ' ');
	return tw_str_u64(tw_str_split(&rest, ' '), UINT32_MAX, &pages)
	               ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
	               : 0;
}

/* This server's name, and whether it holds the lease for background work. */
static void write_node(const struct tw_api *api, struct tw_buf *out)
{
	char roles[64];

	tw_roles_write(api->config->roles, roles, sizeof roles);
	tw_buf_printf(out, "tracewell_node_info{node=\"%s\",role=\"%s\",version=\"%s\"} 1\n",
	        api->node_name, roles, TW_VERSION);
	tw_metric(out, "tracewell_leader",
	        (api->config->roles & TW_ROLE_DECODE) && tw_lease_held(api->lease));
	tw_metric(out, "tracewell_catalogue_connections_lost_total", tw_postgres_times_lost());
}

static void write_disk(const struct tw_api *api, struct tw_buf *out)
{
	struct tw_disk d;

	(void)tw_disk_of(api->config->data_dir, &d);
	tw_metric(out, "tracewell_disk_free_percent", (uint64_t)tw_disk_free_percent(&d));
	tw_metric(out, "tracewell_disk_free_bytes", d.free_bytes);
	tw_metric(out, "tracewell_disk_size_bytes", d.size_bytes);
}

/* Absent without any backup: an endless age would alert operators that back up by other means. */
static void write_backup(const struct tw_api *api, struct tw_buf *out)
{
	const int64_t at_ms = tw_backup_time_ms(api->config->data_dir);
	const int64_t age_ms = tw_unix_ms() - at_ms;

	if (at_ms > 0)
		tw_metric(out, "tracewell_backup_age_seconds",
		        age_ms > 0 ? (uint64_t)age_ms / 1000 : 0);
}

static void write_storage(const struct tw_api *api, struct tw_buf *out)
{
	void *store;
	const struct tw_store_engine *engine =
	        api->blobs ? tw_blobs_engine(api->blobs, &store) : NULL;

	if (engine && engine->metrics)
		engine->metrics(store, out);
	else
		tw_store_s3.metrics(NULL, out); /* writes zeros for absent counters */
}

static uint64_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n > 3 ? n - 3 : 0; /* ".", ".." and the folder's own */
}

/* Resources of the process and the machine. */
static void write_process(const struct tw_api *api, struct tw_buf *out)
{
	tw_periodic_metrics(out);
	tw_metric(out, "tracewell_log_lines_lost_total", tw_log_sink_lost());
	write_disk(api, out);
	write_backup(api, out);
	write_storage(api, out);
	tw_metric(out, "tracewell_resident_bytes", resident_bytes());
	tw_metric(out, "tracewell_open_fds", open_fds());
}

/* All samples, in `out`, which the caller ends. */
static enum tw_status write_metrics(
        const struct tw_api *api, struct tw_buf *out, struct tw_err *err)
{
	struct tw_queue_stats queue;
	uint64_t quarantined = 0;
	uint64_t quarantined_bytes = 0;
	uint64_t sessions = 0;
	enum tw_status st;

	st = tw_catalogue_queue_stats(api->catalogue, &queue, err);
	if (st == TW_OK)
		st = tw_catalogue_quarantine_size(
		        api->catalogue, "", &quarantined, &quarantined_bytes, err);
	if (st == TW_OK)
		st = tw_catalogue_sessions_count(api->catalogue, &sessions, err);
	if (st != TW_OK)
		return st;
	tw_metric(out, "tracewell_build_info{version=\"" TW_VERSION "\"}", 1);
	write_node(api, out);
	tw_metrics_write(api->metrics, out);
	tw_metric(out, "tracewell_queue_mappings", queue.mappings);
	tw_metric(out, "tracewell_compiling_mappings", queue.compiling);
	tw_metric(out, "tracewell_queue_traces", queue.queued);
	tw_metric(out, "tracewell_decoding_traces", queue.decoding);
	tw_buf_printf(out, "tracewell_queue_oldest_seconds %.3f\n", (double)queue.oldest_ms / 1000);
	tw_metric(out, "tracewell_quarantine_traces", quarantined);
	tw_metric(out, "tracewell_quarantine_bytes", quarantined_bytes);
	tw_backlog_metrics(api->backlog, out);
	tw_resumes_metrics(api->resumes, out);
	tw_quota_metrics(api->quota, tw_unix_ms(), out);
	tw_response_cache_metrics(api->response_cache, out);
	tw_response_memory_metrics(api->response_memory, out);
	if (api->sources)
		tw_sources_metrics(api->sources, out);
	write_process(api, out);
	tw_metric(out, "tracewell_catalogue_damaged_pages", tw_sums_damaged());
	tw_metric(out, "tracewell_sessions", sessions);
	st = tw_pipeline_metrics(api->pipeline, api->catalogue, out, err);
	return st == TW_OK ? tw_hook_runner_metrics(api->hooks, api->catalogue, out, err) : st;
}

static enum tw_status metrics(struct tw_req *r, struct tw_err *err)
{
	struct tw_buf text;
	struct tw_buf out;
	enum tw_status st;

	tw_buf_init(&out, MAX_METRICS);
	tw_buf_init(&text, MAX_METRICS);
	st = write_metrics(tw_api_of(r), &out, err);
	if (st == TW_OK) {
		tw_metrics_describe(tw_buf_str(&out), &text);
		st = tw_req_reply_buf(
		        r, 200, "text/plain; version=0.0.4; charset=utf-8", true, &text, err);
	}
	tw_buf_done(&text);
	tw_buf_done(&out);
	return st;
}

static enum tw_status metric_history(struct tw_req *r, struct tw_err *err)
{
	const struct tw_api *api = tw_api_of(r);
	struct tw_buf out;
	enum tw_status st;

	tw_buf_init(&out, MAX_METRICS);
	st = write_metrics(api, &out, err);
	if (st == TW_OK)
		st = tw_req_reply_json(r, 200,
		        tw_metric_history_json(api->history, tw_unix_ms(), tw_buf_str(&out)), err);
	tw_buf_done(&out);
	return st;
}

void tw_api_sample_metrics(struct tw_periodic *p, void *arg)
{
	const struct tw_api *api = arg;
	struct tw_buf out;
	struct tw_err err;

	(void)p;
	tw_buf_init(&out, MAX_METRICS);
	/* otherwise leaves a gap: the catalogue is not responding */
	if (write_metrics(api, &out, &err) == TW_OK)
		tw_metric_history_add(api->history, tw_unix_ms(), tw_buf_str(&out));
	tw_buf_done(&out);
}

static enum tw_status openapi(struct tw_req *r, struct tw_err *err)
{
	struct tw_buf out;
	enum tw_status st;

	if (tw_req_reply_unchanged(r, TW_VERSION))
		return TW_OK;
	tw_buf_init(&out, tw_openapi_files[0].len);
	(void)tw_buf_add(&out, tw_openapi_files[0].data, tw_openapi_files[0].len);
	st = tw_req_reply_buf(r, 200, "application/json", true, &out, err);
	tw_buf_done(&out);
	return st;
}

const struct tw_route tw_routes_ops[] = {
        TW_ROUTE("GET", "/healthz", TW_NEED_PUBLIC, "Liveness: the process responds",
                .any_params = true, .on_loop = true, .roles = TW_ROLE_ALL, .quiet = true,
                .end = healthz),
        TW_ROUTE("GET", "/readyz", TW_NEED_PUBLIC, "Readiness to accept uploads or answer queries",
                .params = TW_PARAMS(readyz_params), .on_loop = true, .roles = TW_ROLE_ALL,
                .quiet = true, .end = readyz),
        TW_ROUTE("GET", "/metrics", TW_NEED_PUBLIC, "Counters in Prometheus' text form",
                .any_params = true, .roles = TW_ROLE_ALL, .metrics = true, .quiet = true,
                .end = metrics),
        TW_ROUTE("GET", "/metrics/history", TW_NEED_PUBLIC, "Selected metrics of the last 24 hours",
                .roles = TW_ROLE_ALL, .metrics = true, .quiet = true, .end = metric_history),
        TW_ROUTE("GET", "/api/v1/openapi.json", TW_NEED_PUBLIC, "This OpenAPI document",
                .roles = TW_ROLE_ALL, .end = openapi),
        {0},
};
