/* Health, readiness, metrics, and the API's own description. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "answers.h"
#include "api.h"
#include "app.h"
#include "backlog.h"
#include "backup_mark.h"
#include "blob.h"
#include "blob_store.h"
#include "catalogue.h"
#include "catalogue_postgres.h"
#include "catalogue_quarantine.h"
#include "catalogue_sums.h"
#include "catalogue_user.h"
#include "clock.h"
#include "embedded.h"
#include "http.h"
#include "jobs_found.h"
#include "jobs_hook.h"
#include "jobs_rollup.h"
#include "leader.h"
#include "log_sink.h"
#include "metrics.h"
#include "quota.h"
#include "resume.h"
#include "role.h"
#include "source_ask.h"

enum { MAX_METRICS = 4 << 20 };

extern const struct tw_embedded tw_openapi_files[];

static enum tw_status healthz(struct tw_req *r, struct tw_err *err)
{
	return tw_req_reply_json(r, 200, json_pack("{ss}", "status", "ok"), err);
}

/* Free share of the disk below data/, 0 when it cannot be told. */
static unsigned free_percent(const struct tw_app *app)
{
	struct statvfs fs;

	if (statvfs(app->config->data_dir, &fs) != 0 || fs.f_blocks == 0)
		return 0;
	return (unsigned)((double)fs.f_bavail * 100 / (double)fs.f_blocks);
}

static json_t *check(bool ok, const char *message)
{
	return json_pack("{sb ss}", "ok", ok, "message", ok ? "" : message);
}

/* Without waiting for those who write. */
static bool can_be_read(struct tw_catalogue *c)
{
	enum tw_status st;
	bool there;

	tw_catalogue_hurry(true);
	st = tw_catalogue_has_trace(c, "", &there, NULL);
	tw_catalogue_hurry(false);
	return st == TW_OK;
}

static json_t *check_catalogue(struct tw_catalogue *c, bool to_read)
{
	json_t *o = to_read ? check(can_be_read(c), "the catalogue cannot be read")
	                    : check(tw_catalogue_ping(c, NULL) == TW_OK,
	                              "the catalogue cannot be written");

	(void)json_object_set_new(o, "engine", json_string(tw_catalogue_engine(c)));
	return o;
}

static json_t *check_storage(const struct tw_blobs *b)
{
	struct tw_err why = {.msg = ""};
	bool ok = !b || tw_blobs_ready(b, &why) == TW_OK;
	json_t *o = check(ok, "the storage of uploads and traces does not answer");

	(void)json_object_set_new(
	        o, "engine", json_string(b && tw_blobs_remote(b) ? "s3" : "folder"));
	return o;
}

static json_t *check_all(const struct tw_app *app, bool to_read)
{
	bool disk = free_percent(app) >= app->config->min_free_percent;

	return json_pack("{so so so so so}", "catalogue", check_catalogue(app->catalogue, to_read),
	        "disk", check(disk, "less of the disk is free than min-free: uploads are refused"),
	        "jobs", check(app->jobs != NULL, "no decode queue is running"), "running",
	        check(!app->unready, "the server is being stopped"), "storage",
	        check_storage(app->blobs));
}

/* What keeps uploads out does not keep readers from what is there. */
static bool is_ready(const json_t *checks, bool to_read)
{
	static const char *const all[] = {"catalogue", "running", "disk", "jobs", "storage"};
	const size_t n = to_read ? 2 : sizeof all / sizeof *all;

	for (size_t i = 0; i < n; i++)
		if (!json_is_true(json_object_get(json_object_get(checks, all[i]), "ok")))
			return false;
	return true;
}

static enum tw_status readyz(struct tw_req *r, struct tw_err *err)
{
	static const char *const words[] = {"upload", "read", NULL};
	const struct tw_app *app = tw_req_app(r);
	json_t *checks;
	char roles[64];
	const char *what = tw_req_query(r, "for");
	unsigned to_read = 0;
	bool ready;
	enum tw_status st = tw_api_pick("for", what ? what : words[0], words, &to_read, err);

	if (st != TW_OK)
		return st;
	checks = check_all(app, to_read);
	ready = is_ready(checks, to_read);
	tw_roles_write(app->config->roles, roles, sizeof roles);
	return tw_req_reply_json(r, ready ? 200 : 503,
	        json_pack("{ss ss* ss so}", "status", ready ? "ready" : "not_ready", "node",
	                app->config->several ? app->node_name : NULL, "role", roles, "checks",
	                checks),
	        err);
}

static uint64_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	char line[128] = "";
	struct tw_str rest;
	uint64_t pages = 0;

	if (!f)
		return 0;
	if (fgets(line, sizeof line, f)) {
		rest = tw_str_of(line);
		(void)tw_str_split(&rest, ' ');
		if (!tw_str_u64(tw_str_split(&rest, ' '), UINT32_MAX, &pages))
			pages = 0;
	}
	(void)fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_gauge(struct tw_buf *out, const char *name, uint64_t value)
{
	tw_buf_printf(out, "# TYPE %s gauge\n%s %" PRIu64 "\n", name, name, value);
}

/* Who it is, and whether it does what one of several servers does for all. */
static void write_node(const struct tw_app *app, struct tw_buf *out)
{
	char roles[64];

	tw_roles_write(app->config->roles, roles, sizeof roles);
	tw_buf_printf(out,
	        "# TYPE tracewell_node_info gauge\n"
	        "tracewell_node_info{node=\"%s\",role=\"%s\",version=\"%s\"} 1\n",
	        app->node_name, roles, TW_VERSION);
	write_gauge(out, "tracewell_leader",
	        (app->config->roles & TW_ROLE_DECODE) && tw_leads(app->leader));
	tw_buf_printf(out,
	        "# TYPE tracewell_catalogue_connections_lost_total counter\n"
	        "tracewell_catalogue_connections_lost_total %" PRIu64 "\n",
	        tw_postgres_times_lost());
}

static void write_log(struct tw_buf *out)
{
	tw_buf_printf(out,
	        "# TYPE tracewell_log_lines_lost_total counter\n"
	        "tracewell_log_lines_lost_total %" PRIu64 "\n",
	        tw_log_sink_lost());
}

static void write_disk(const struct tw_app *app, struct tw_buf *out)
{
	struct statvfs fs = {0};

	(void)statvfs(app->config->data_dir, &fs);
	write_gauge(out, "tracewell_disk_free_percent", free_percent(app));
	write_gauge(out, "tracewell_disk_free_bytes", (uint64_t)fs.f_bavail * fs.f_frsize);
	write_gauge(out, "tracewell_disk_size_bytes", (uint64_t)fs.f_blocks * fs.f_frsize);
}

/* Nothing where there never was a copy: an age of for ever would wake who makes them elsewise. */
static void write_backup(const struct tw_app *app, struct tw_buf *out)
{
	const int64_t at_ms = tw_backup_marked_ms(app->config->data_dir);
	const int64_t age_ms = tw_unix_ms() - at_ms;

	if (at_ms > 0)
		write_gauge(out, "tracewell_backup_age_seconds",
		        age_ms > 0 ? (uint64_t)age_ms / 1000 : 0);
}

static void write_storage(const struct tw_app *app, struct tw_buf *out)
{
	void *store;
	const struct tw_store_engine *engine =
	        app->blobs ? tw_blobs_engine(app->blobs, &store) : NULL;

	if (engine && engine->metrics)
		engine->metrics(store, out);
	else
		tw_store_s3.metrics(NULL, out); /* names that are there say more than none */
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

/* What the process and its machine have. */
static void write_here(const struct tw_app *app, struct tw_buf *out)
{
	write_log(out);
	write_disk(app, out);
	write_backup(app, out);
	write_storage(app, out);
	write_gauge(out, "tracewell_resident_bytes", resident_bytes());
	write_gauge(out, "tracewell_open_fds", open_fds());
}

static enum tw_status metrics(struct tw_req *r, struct tw_err *err)
{
	const struct tw_app *app = tw_req_app(r);
	struct tw_queue_stats queue;
	uint64_t quarantined = 0;
	uint64_t quarantined_bytes = 0;
	uint64_t sessions = 0;
	struct tw_buf text;
	struct tw_buf out;
	enum tw_status st;

	st = tw_catalogue_queue_stats(app->catalogue, &queue, err);
	if (st == TW_OK)
		st = tw_catalogue_quarantine_size(
		        app->catalogue, &quarantined, &quarantined_bytes, err);
	if (st == TW_OK)
		st = tw_catalogue_sessions_count(app->catalogue, &sessions, err);
	if (st != TW_OK)
		return st;
	tw_buf_init(&out, MAX_METRICS);
	tw_buf_printf(&out,
	        "# TYPE tracewell_build_info gauge\ntracewell_build_info{version=\"%s\"} 1\n",
	        TW_VERSION);
	write_node(app, &out);
	tw_metrics_write(app->metrics, &out);
	write_gauge(&out, "tracewell_queue_traces", queue.queued);
	write_gauge(&out, "tracewell_decoding_traces", queue.decoding);
	tw_buf_printf(&out,
	        "# TYPE tracewell_queue_oldest_seconds gauge\n"
	        "tracewell_queue_oldest_seconds %.3f\n",
	        (double)queue.oldest_ms / 1000);
	write_gauge(&out, "tracewell_quarantine_traces", quarantined);
	write_gauge(&out, "tracewell_quarantine_bytes", quarantined_bytes);
	tw_backlog_metrics(app->backlog, &out);
	tw_resumes_metrics(app->resumes, &out);
	tw_quota_metrics(app->quota, tw_unix_ms(), &out);
	tw_answers_metrics(app->answers, &out);
	if (app->sources)
		tw_sources_metrics(app->sources, &out);
	write_here(app, &out);
	write_gauge(&out, "tracewell_catalogue_damaged_pages", tw_sums_damaged());
	write_gauge(&out, "tracewell_sessions", sessions);
	tw_found_job_metrics(app, &out);
	st = tw_rollup_job_metrics(app, &out, err);
	if (st == TW_OK)
		st = tw_hook_job_metrics(app, &out, err);
	if (st != TW_OK) {
		tw_buf_done(&out);
		return st;
	}
	tw_buf_init(&text, MAX_METRICS);
	tw_metrics_help((struct tw_str){(const char *)out.data, out.len}, &text);
	tw_buf_done(&out);
	st = tw_req_reply_buf(r, 200, "text/plain; version=0.0.4; charset=utf-8", true, &text, err);
	tw_buf_done(&text);
	return st;
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
        {.method = "GET",
                .path = "/healthz",
                .quiet = true,
                .end = healthz,
                .summary = "The process answers"},
        {.method = "GET",
                .path = "/readyz",
                .quiet = true,
                .slow = true,
                .end = readyz,
                .summary = "It can take uploads: catalogue, disk, queue"},
        {.method = "GET",
                .path = "/metrics",
                .metrics = true,
                .quiet = true,
                .slow = true,
                .end = metrics,
                .summary = "Counters in Prometheus' text form"},
        {.method = "GET",
                .path = "/api/v1/openapi.json",
                .slow = true,
                .end = openapi,
                .summary = "This API's description"},
        {0},
};
