/*
 * cli_serve.c - `tracewell serve`: makes each part from those that it uses, and stops them in
 * reverse.  Read from the end: run() is the life of a server.
 *
 * start: files, catalogue, caches → secret key, recorder, stages, decoding, health → http
 * stop: /readyz is 503 for --drain-seconds → requests drained → http → jobs → the rest
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/auth/auth_throttle.h"
#include "server/auth/oidc/oidc.h"
#include "server/base/age_clock.h"
#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/role.h"
#include "server/base/secret.h"
#include "server/base/thread/periodic.h"
#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_throttle.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/data_catalogue.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/catalogue/storage/shared_files.h"
#include "server/catalogue/storage/small_file.h"
#include "server/catalogue/storage/storage_owner.h"
#include "server/catalogue/storage/storage_record.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_address.h"
#include "server/decode/jobs.h"
#include "server/decode/jobs_store.h"
#include "server/decode/preflight.h"
#include "server/decode/worker.h"
#include "server/derive/jobs_hook.h"
#include "server/derive/jobs_retention.h"
#include "server/derive/lease.h"
#include "server/derive/pipeline.h"
#include "server/fleet/store/fleet_open.h"
#include "server/http/http.h"
#include "server/http/http_wait.h"
#include "server/http/limit/quota.h"
#include "server/http/limit/response_memory.h"
#include "server/http/limit/tls.h"
#include "server/http/metric_history.h"
#include "server/http/metrics.h"
#include "server/http/response_cache.h"
#include "server/ingest/backlog.h"
#include "server/ingest/commit_upload.h"
#include "server/ingest/health.h"
#include "server/ingest/tus/resume.h"
#include "server/ingest/tus/resume_clean.h"
#include "server/source/source_query.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"
#include "server/trace/symbols.h"

enum {
	CONFIG_BYTES = 1 << 20,
	MAX_PATH_BYTES = 1200,
	CERTIFICATE_CHECK_S = 5,
	KEEP_QUOTA_S = 60,
	SECRETS_ARENA = 64 << 20,
	URL_BYTES = 192
};

struct server {
	struct tw_api api;                   /* the parts that endpoints use too */
	char node[64];                       /* unique to this process among all servers */
	bool storage_unverified;             /* it was unreachable at the start */
	struct tw_http *http, *metrics_http; /* the second: NULL without --metrics-listen */
	struct tw_tls *tls;                  /* NULL: plain HTTP */
	struct tw_resume_cleaner *cleaner;   /* NULL: a single server needs none */
	struct tw_http_waits *waits;
	struct tw_age_clock *age_clock;
	struct tw_periodic *keep_quota, *sample_metrics;
};

/* --- data: files, catalogue, and what is held in memory --- */

/* The name is unique among several servers, also after a restart. */
static void name_server(struct server *s)
{
	char id[TW_ID_BYTES];

	tw_ulid_new(tw_unix_ms(), id);
	if (*s->api.config->node)
		(void)snprintf(
		        s->api.node_name, sizeof s->api.node_name, "%s", s->api.config->node);
	else if (gethostname(s->api.node_name, sizeof s->api.node_name) != 0)
		(void)snprintf(s->api.node_name, sizeof s->api.node_name, "unnamed");
	s->api.node_name[sizeof s->api.node_name - 1] = '\0';
	for (char *p = s->api.node_name; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\\')
			*p = '-';
	(void)snprintf(s->node, sizeof s->node, "%s-%s", s->api.node_name, id);
	if (s->api.config->several)
		tw_log_node(s->api.node_name);
}

/* Opens the TLS certificate and the OpenID provider. */
static enum tw_status open_tls_and_oidc(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	enum tw_status st = TW_OK;

	if (*c->tls_cert)
		st = tw_tls_open(c->tls_cert, c->tls_key, &s->tls, err);
	if (st == TW_OK && *c->oidc.issuer)
		st = tw_oidc_open(&c->oidc, &s->api.oidc, err);
	return st;
}

/* Otherwise the error would name the first file that is opened in the folder. */
static enum tw_status check_folder(const char *data_dir, bool *ret_is_new, struct tw_err *err)
{
	char within[MAX_PATH_BYTES];

	(void)snprintf(within, sizeof within, "%s/.", data_dir);
	*ret_is_new = access(within, R_OK | X_OK) != 0 && errno == ENOENT;
	if (*ret_is_new)
		return tw_cli_data_check_new(data_dir, err);
	if (access(within, R_OK | X_OK) == 0)
		return TW_OK;
	if (errno == ENOTDIR)
		return tw_fail(err, TW_IO, "--data %.150s is not a folder", data_dir);
	return tw_fail_errno(err, TW_IO, "the data folder %.150s cannot be read by user %u",
	        data_dir, (unsigned)geteuid());
}

static enum tw_status open_files(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	bool is_new = false;
	enum tw_status st = check_folder(c->data_dir, &is_new, err);

	if (st == TW_OK)
		st = tw_storage_check(c->data_dir, &c->storage, err);
	if (st != TW_OK)
		return st;
	st = tw_blobs_open_at(&(struct tw_store_endpoint){.data_dir = c->data_dir,
	                              .storage = &c->storage,
	                              .min_free_percent = c->min_free_percent,
	                              .reserve_bytes = c->reserve_bytes,
	                              .serves = true},
	        &s->api.blobs, err);
	if (st == TW_OK && is_new)
		tw_log(TW_LOG_INFO, "data_folder_created", tw_log_text("data", c->data_dir));
	return st;
}

/* Without a shared data folder each server would create a different key. */
static enum tw_status check_keys(const struct server *s, struct tw_err *err)
{
	if (!tw_catalogue_is_shared(s->api.catalogue) || !tw_blobs_remote(s->api.blobs) ||
	        *s->api.config->secret_key_file)
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "several servers with separate data folders need a common key: set the same "
	        "--secret-key-file on all");
}

static enum tw_status open_catalogue(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	enum tw_status st = TW_OK;

	if (!c->adopt && !tw_data_catalogue_is_there(c->data_dir))
		st = tw_jobs_refuse_without_catalogue(s->api.blobs, c->catalog[0], err);
	if (st == TW_OK)
		st = tw_data_catalogue_open(
		        c->data_dir, c->catalog, c->storage.blobs, true, &s->api.catalogue, err);
	if (st == TW_OK && !c->adopt)
		st = tw_jobs_refuse_other_catalogue(s->api.blobs, s->api.catalogue, err);
	if (st == TW_OK)
		st = tw_catalogue_serve(s->api.catalogue, c->several, err);
	if (st == TW_OK && tw_catalogue_is_shared(s->api.catalogue))
		st = tw_blobs_own_spool(s->api.blobs, s->node, err);
	if (st == TW_OK)
		tw_store_peers_use(s->api.blobs, s->api.catalogue);
	if (st == TW_OK)
		tw_small_files_use(s->api.blobs, s->api.catalogue, c->storage.small_bytes);
	if (st == TW_OK && c->storage.small_bytes && !tw_blobs_have_rows(s->api.blobs))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "--small-files needs a catalogue in PostgreSQL and files in a store");
	return st == TW_OK ? check_keys(s, err) : st;
}

static struct tw_storage_claim storage_claim(const struct server *s)
{
	return (struct tw_storage_claim){.data_dir = s->api.config->data_dir,
	        .storage = &s->api.config->storage,
	        .catalogue = s->api.catalogue,
	        .blobs = s->api.blobs};
}

/* An existing folder is served although its store does not respond: requests that need the store
 * fail until it was verified to be the right one. A new folder does not start without its store: it
 * has no record yet of where its files are. */
static enum tw_status serve_without_storage(
        struct server *s, const struct tw_err *why, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(s->api.blobs, &store);

	if (!tw_storage_is_recorded(c->data_dir)) {
		tw_err_copy(err, why);
		return why->code;
	}
	tw_log_err(TW_LOG_ERROR, "storage_unreachable", c->storage.blobs, why);
	if (engine->hold)
		engine->hold(store, why);
	s->storage_unverified = true;
	return TW_OK;
}

/* A wrong key, bucket or prefix ends the start. An unreachable store is retried in the background,
 * and /readyz reports it. */
static enum tw_status verify_storage(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	const struct tw_storage_claim claim = storage_claim(s);
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(s->api.blobs, &store);
	struct tw_err why;
	enum tw_status st = engine->probe ? engine->probe(store, &why) : TW_OK;

	if (st == TW_OK)
		st = tw_storage_claim(&claim, &why);
	if (st == TW_BUSY)
		return serve_without_storage(s, &why, err);
	if (st != TW_OK) {
		tw_err_copy(err, &why);
		return st;
	}
	return tw_storage_record(c->data_dir, &c->storage, err);
}

static enum tw_status open_resumes(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	const struct tw_resume_limits limits = {
	        c->max_open_uploads, c->max_open_bytes, c->upload_expiry_s};
	struct tw_resume_parts parts = {s->api.blobs, s->api.catalogue, s->node, NULL};
	enum tw_status st = TW_OK;

	if (strcmp(tw_catalogue_engine(s->api.catalogue), "sqlite") != 0)
		st = tw_resume_cleaner_start(&parts, &s->cleaner, err);
	parts.cleaner = s->cleaner;
	if (st != TW_OK)
		return st;
	return tw_catalogue_is_shared(s->api.catalogue)
	               ? tw_resumes_open_shared(&parts, &limits, &s->api.resumes, err)
	               : tw_resumes_open(s->api.blobs, &limits, &s->api.resumes, err);
}

static enum tw_status make_parts(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	const uint64_t most = c->response_memory_bytes / 4;
	const uint64_t cache = c->response_cache_bytes < most ? c->response_cache_bytes : most;
	size_t n_routes;
	const struct tw_route *routes = tw_routes(&n_routes);

	s->api.metrics = tw_metrics_new(routes, n_routes);
	s->api.history = tw_metric_history_new();
	s->api.symbols = tw_symbols_new(s->api.blobs);
	s->api.response_cache = tw_response_cache_new(cache);
	s->api.response_memory = tw_response_memory_new(c->response_memory_bytes, cache);
	s->api.throttle = tw_throttle_new();
	s->api.preflights = tw_preflights_new(c, s->api.metrics);
	s->api.backlog = tw_backlog_new(
	        s->api.catalogue, &(struct tw_backlog_limits){c->max_queue, c->max_queue_bytes});
	s->api.sources = tw_sources_new(c);
	if (!s->api.sources || !s->api.backlog || !s->api.preflights || !s->api.metrics ||
	        !s->api.history || !s->api.symbols || !s->api.response_cache ||
	        !s->api.response_memory || !s->api.throttle)
		return tw_oom(err);
	return tw_http_waits_start(&s->waits, err);
}

static void quota_path(const struct server *s, char out[MAX_PATH_BYTES])
{
	(void)snprintf(out, MAX_PATH_BYTES, "%s/quota", s->api.config->data_dir);
}

static void save_quota(struct tw_periodic *p, void *arg)
{
	struct server *s = arg;
	char path[MAX_PATH_BYTES];
	struct tw_err err;

	(void)p;
	quota_path(s, path);
	if (tw_quota_save(s->api.quota, path, tw_unix_ms(), &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "quota_not_saved", path, &err);
}

/* Uploads before a restart count towards the limits; if unknown, counting starts at zero. */
static enum tw_status open_quota(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	const struct tw_quota_limits limits = {
	        {{c->key_requests, c->key_bytes}, {c->device_requests, c->device_bytes}}};
	char path[MAX_PATH_BYTES];
	struct tw_err why;
	enum tw_status st;

	s->api.quota = tw_quota_new(&limits);
	if (!s->api.quota)
		return tw_oom(err);
	if (tw_catalogue_is_shared(s->api.catalogue)) /* each server counts by itself */
		return TW_OK;
	quota_path(s, path);
	st = tw_quota_load(s->api.quota, path, tw_unix_ms(), &why);
	if (st != TW_OK && st != TW_NOT_FOUND)
		tw_log_err(TW_LOG_WARN, "quota_not_loaded", path, &why);
	return tw_periodic_start(
	        &(struct tw_periodic_task){"quota", save_quota, KEEP_QUOTA_S * 1000}, s,
	        &s->keep_quota, err);
}

static enum tw_status open_data(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;
	enum tw_status st;

	name_server(s);
	st = open_tls_and_oidc(s, err);
	if (st == TW_OK)
		st = open_files(s, err);
	if (st == TW_OK)
		st = open_catalogue(s, err);
	if (st == TW_OK) /* the folder is this server's now */
		st = tw_age_clock_open(c->data_dir, tw_monotonic_ms(), &s->age_clock, err);
	tw_age_clock_use(s->age_clock);
	if (st == TW_OK)
		st = verify_storage(s, err);
	if (st == TW_OK)
		st = open_resumes(s, err);
	if (st == TW_OK)
		st = make_parts(s, err);
	if (st == TW_OK)
		st = tw_fleet_open(
		        s->api.catalogue, c->data_dir, &c->analytics, &s->api.fleet, err);
	return st == TW_OK ? open_quota(s, err) : st;
}

/* --- the key of secrets, which several servers share --- */

static enum tw_status use_sign_in(
        void *arg, const char *id_prefix, int64_t until_ms, bool *ret_first, struct tw_err *err)
{
	return tw_catalogue_signin_use(arg, id_prefix, until_ms, ret_first, err);
}

static enum tw_status count_attempt(void *arg, const struct tw_throttle_cost *cost, bool count,
        int64_t *ret_wait_ms, struct tw_err *err)
{
	return tw_catalogue_throttle(arg, cost, count, ret_wait_ms, err);
}

static void refund_attempt(void *arg, const struct tw_throttle_cost *cost)
{
	/* on failure one attempt too many is counted */
	(void)tw_catalogue_throttle_back(arg, cost, NULL);
}

static bool share_throttle(struct server *s, struct tw_throttle *t, const char *what)
{
	struct tw_throttle_sharing sharing = {
	        .take = count_attempt, .give_back = refund_attempt, .arg = s->api.catalogue};

	if (!tw_secret_key_derive(s->api.secret_key, what, sharing.secret))
		return false;
	tw_throttle_share(t, &sharing);
	return true;
}

/* All servers accept links and sign-ins that any of them created, and count password attempts
 * together. */
static bool share_keys(struct server *s)
{
	struct tw_oidc_sharing sharing = {.use = use_sign_in, .arg = s->api.catalogue};

	if (!tw_secret_key_derive(s->api.secret_key, "tickets", s->api.ticket_key) ||
	        !tw_secret_key_derive(s->api.secret_key, "signin seal", sharing.cookie_key) ||
	        !tw_secret_key_derive(s->api.secret_key, "signin state", sharing.secret) ||
	        !share_throttle(s, s->api.throttle, "tries of passwords") ||
	        (s->api.oidc &&
	                !share_throttle(s, tw_oidc_throttle(s->api.oidc), "tries of sign-ins")))
		return false;
	if (s->api.oidc)
		tw_oidc_share(s->api.oidc, &sharing);
	explicit_bzero(&sharing, sizeof sharing);
	return true;
}

static void log_lost_secrets(
        const struct server *s, const struct tw_stored_secret *secrets, size_t n)
{
	char plain[TW_SECRET_PLAIN_MAX + 1];
	int64_t lost = 0;

	for (size_t i = 0; i < n; i++)
		lost += tw_secret_decrypt(s->api.secret_key, secrets[i].project_id,
		                secrets[i].encrypted, plain, NULL) != TW_OK;
	explicit_bzero(plain, sizeof plain);
	if (tw_secret_key_lost(s->api.secret_key))
		tw_log(TW_LOG_WARN, "secret_key_lost",
		        tw_log_text("reason",
		                "secret.key is not in the data folder, and secrets are encrypted "
		                "with it: restore it, or start once with --new-secret-key; until "
		                "then no webhook gets a secret"));
	if (lost)
		tw_log(TW_LOG_WARN, "secrets_lost", tw_log_number("secrets", lost),
		        tw_log_text("reason",
		                "webhooks or trackers have secrets that were encrypted with "
		                "another secret.key: restore that key, or set new secrets"));
}

/* The keys of links and of secrets.  A new key of secrets is made if none is stored. */
static enum tw_status open_secret_key(struct server *s, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(SECRETS_ARENA);
	struct tw_stored_secret *secrets = NULL;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_catalogue_secrets(s->api.catalogue, a, &secrets, &n, err) : tw_oom(err);

	randombytes_buf(s->api.ticket_key, sizeof s->api.ticket_key);
	if (st == TW_OK)
		st = tw_secret_key_open(s->api.config->data_dir, s->api.config->secret_key_file,
		        n == 0 || s->api.config->new_secret_key, &s->api.secret_key, err);
	if (st == TW_OK && tw_catalogue_is_shared(s->api.catalogue) &&
	        !tw_secret_key_lost(s->api.secret_key) && !share_keys(s))
		st = tw_oom(err);
	if (st == TW_OK)
		log_lost_secrets(s, secrets, n);
	(void)tw_arena_free(a);
	return st;
}

/* --- background work --- */

static enum tw_status start_pipeline(struct server *s, struct tw_err *err)
{
	const struct tw_config *c = s->api.config;

	return tw_pipeline_start(
	        &(struct tw_pipeline_setup){.parts = {.catalogue = s->api.catalogue,
	                                            .blobs = s->api.blobs,
	                                            .symbols = s->api.symbols,
	                                            .fleet = s->api.fleet,
	                                            .figures_days = c->figures_days,
	                                            .sends_mail = *c->smtp_url != '\0'},
	                .stages = tw_stages,
	                .lease = s->api.lease,
	                .leads = tw_lease_held},
	        &s->api.pipeline, err);
}

static enum tw_status start_hooks(struct server *s, struct tw_err *err)
{
	return tw_hook_runner_start(&(struct tw_hook_parts){.config = s->api.config,
	                                    .catalogue = s->api.catalogue,
	                                    .fleet = s->api.fleet,
	                                    .secret_key = s->api.secret_key,
	                                    .node = s->node},
	        &s->api.hooks, err);
}

/* On servers that decode. */
static enum tw_status start_deriving(struct server *s, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (tw_catalogue_is_shared(s->api.catalogue))
		st = tw_lease_start(s->api.catalogue, s->api.blobs, s->node, &s->api.lease, err);
	if (st == TW_OK)
		st = start_pipeline(s, err);
	return st == TW_OK ? start_hooks(s, err) : st;
}

static enum tw_status start_retention(struct server *s, struct tw_err *err)
{
	/* also for endpoints */
	s->api.deleter = (struct tw_deleter){.catalogue = s->api.catalogue,
	        .blobs = s->api.blobs,
	        .recorder = s->api.recorder,
	        .store_job = s->api.store_job,
	        .pipeline = s->api.pipeline};
	if (!(s->api.config->roles & TW_ROLE_DECODE))
		return TW_OK;
	return tw_retention_job_start(&(struct tw_retention_parts){.config = s->api.config,
	                                      .deleter = s->api.deleter,
	                                      .fleet = s->api.fleet,
	                                      .metrics = s->api.metrics,
	                                      .lease = s->api.lease},
	        &s->api.retention, err);
}

/* Data derived from traces is out of date, and requests may wait for a mapping. */
static void job_ended(void *arg, enum tw_queue queue)
{
	struct server *s = arg;

	tw_pipeline_wake(s->api.pipeline,
	        queue == TW_QUEUE_TRACES ? TW_RAISED_BY_DECODER : TW_RAISED_BY_MAPPING);
	if (queue == TW_QUEUE_MAPPINGS)
		tw_http_waits_wake(s->waits);
}

/* A single server keeps uploads in its folder; deletes those that several servers left in the
 * catalogue before. */
static void expire_resumes(void *arg)
{
	const struct server *s = arg;

	if (s->api.resumes)
		tw_resumes_expire(s->api.resumes, s->api.catalogue);
}

static enum tw_status start_health(struct server *s, struct tw_err *err)
{
	return tw_health_start(&(struct tw_health_parts){.config = s->api.config,
	                               .catalogue = s->api.catalogue,
	                               .blobs = s->api.blobs,
	                               .jobs = s->api.jobs,
	                               .metrics = s->api.metrics},
	        &s->api.health, err);
}

static enum tw_status start_background(struct server *s, struct tw_err *err)
{
	enum tw_status st = open_secret_key(s, err);

	if (st == TW_OK)
		st = tw_recorder_start(s->api.catalogue, s->api.blobs, &s->api.recorder, err);
	if (st == TW_OK) /* before the tasks that delete */
		st = tw_store_job_start(&(struct tw_store_job_parts){.claim = storage_claim(s),
		                                .unverified = s->storage_unverified,
		                                .node = s->node,
		                                .recorder = s->api.recorder},
		        &s->api.store_job, err);
	if (st == TW_OK && s->api.config->roles & TW_ROLE_DECODE)
		st = start_deriving(s, err);
	if (st == TW_OK)
		st = start_retention(s, err);
	if (st == TW_OK)
		st = tw_jobs_start(&(struct tw_decode_parts){.config = s->api.config,
		                           .catalogue = s->api.catalogue,
		                           .blobs = s->api.blobs,
		                           .recorder = s->api.recorder,
		                           .store_job = s->api.store_job,
		                           .metrics = s->api.metrics,
		                           .node = s->node,
		                           .ended = job_ended,
		                           .each_poll = expire_resumes,
		                           .arg = s},
		        &s->api.jobs, err);
	if (st == TW_OK)
		st = start_health(s, err);
	return st == TW_OK ? tw_periodic_start(
	                             &(struct tw_periodic_task){"metric_history",
	                                     tw_api_sample_metrics, TW_METRIC_HISTORY_STEP_MS},
	                             &s->api, &s->sample_metrics, err)
	                   : st;
}

/* --- requests --- */

static void put_url(const struct server *s, const char *host, char out[URL_BYTES])
{
	(void)snprintf(out, URL_BYTES, strchr(host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
	        s->tls ? "https" : "http", host, tw_http_port(s->http));
}

/* For links: the public URL, otherwise an address that this machine reaches. */
static void store_address(const struct server *s, const char *host)
{
	const char *public_url = s->api.config->public_url;
	char url[URL_BYTES];
	struct tw_err err;

	put_url(s,
	        strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1"
	        : strcmp(host, "::") == 0    ? "::1"
	                                     : host,
	        url);
	if (tw_cli_address_write(s->api.config->data_dir, *public_url ? public_url : url, &err) !=
	        TW_OK)
		tw_log_err(TW_LOG_WARN, "address_not_stored", s->api.config->data_dir, &err);
}

static void log_started(const struct server *s)
{
	char host[128];
	char url[URL_BYTES];
	uint16_t port;

	if (!tw_listen_split(s->api.config->listen, host, sizeof host, &port))
		host[0] = '\0';
	put_url(s, host, url);
	store_address(s, host);
	tw_log(TW_LOG_INFO, "listening", tw_log_text("url", url),
	        tw_log_text("data", s->api.config->data_dir),
	        tw_log_text("catalogue", tw_catalogue_engine(s->api.catalogue)),
	        tw_log_text("role", s->api.config->role), tw_log_text("version", TW_VERSION));
}

/* Requests are answered from here on. */
static enum tw_status start_http(struct server *s, struct tw_err *err)
{
	struct tw_http_parts parts = {.config = s->api.config,
	        .context = &s->api,
	        .catalogue = s->api.catalogue,
	        .metrics = s->api.metrics,
	        .tls = s->tls,
	        .quota = s->api.quota,
	        .waits = s->waits,
	        .response_cache = s->api.response_cache,
	        .response_memory = s->api.response_memory};
	enum tw_status st = TW_OK;

	s->api.commit = (struct tw_commit_parts){.catalogue = s->api.catalogue,
	        .blobs = s->api.blobs,
	        .recorder = s->api.recorder,
	        .backlog = s->api.backlog,
	        .jobs = s->api.jobs};
	parts.routes = tw_routes(&parts.n_routes);
	if (*s->api.config->metrics_listen)
		st = tw_http_start_metrics(&parts, &s->metrics_http, err);
	if (s->metrics_http)
		tw_log(TW_LOG_INFO, "metrics",
		        tw_log_number("port", tw_http_port(s->metrics_http)));
	if (st == TW_OK)
		st = tw_http_start(&parts, &s->http, err);
	if (st == TW_OK)
		log_started(s);
	return st;
}

/* Logs a problem of the new files; the current certificate remains in use. */
static void reload_certificate(const struct server *s, bool anyway)
{
	struct tw_err err;
	bool is_new = false;

	if (!s->tls)
		return;
	if (tw_tls_reload(s->tls, anyway, &is_new, &err) != TW_OK)
		tw_log_err(TW_LOG_ERROR, "certificate_kept", s->api.config->tls_cert, &err);
	else if (is_new)
		tw_log(TW_LOG_INFO, "certificate", tw_log_text("file", s->api.config->tls_cert),
		        tw_log_number("ends_s", tw_tls_ends_s(s->tls)));
}

static void wait_for_signal(const struct server *s, const sigset_t *set)
{
	const struct timespec step = {.tv_sec = CERTIFICATE_CHECK_S};
	int number = 0;

	while (number != SIGTERM && number != SIGINT) {
		number = sigtimedwait(set, NULL, &step);
		reload_certificate(s, number == SIGHUP);
	}
	tw_log(TW_LOG_INFO, "stopping", tw_log_number("signal", number));
}

/* /readyz returns 503 for this time, so that load balancers notice it; a second signal ends the
 * wait. */
static void stay_unready(unsigned seconds)
{
	const struct timespec time = {.tv_sec = seconds};
	sigset_t set;

	if (seconds == 0)
		return;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	tw_log(TW_LOG_INFO, "draining", tw_log_number("seconds", seconds));
	while (sigtimedwait(&set, NULL, &time) < 0 && errno == EINTR)
		continue;
}

/* Requests that remain after that time wait for an unresponsive store and are ended. */
static void drain(struct server *s)
{
	int64_t began = tw_monotonic_ms();

	tw_http_drain(s->http, s->api.config->shutdown_s);
	if (tw_monotonic_ms() - began >= (int64_t)s->api.config->shutdown_s * 1000)
		tw_blobs_stop(s->api.blobs);
}

/* --- the command --- */

static void close_all(struct server *s)
{
	s->http = tw_http_stop(s->http);
	s->metrics_http = tw_http_stop(s->metrics_http);
	s->sample_metrics = tw_periodic_stop(s->sample_metrics);
	s->api.health = tw_health_stop(s->api.health);
	s->api.retention = tw_retention_job_stop(s->api.retention);
	s->api.jobs = tw_jobs_stop(s->api.jobs, s->api.config->shutdown_s);
	s->waits = tw_http_waits_stop(s->waits);
	if (s->api.blobs)
		tw_blobs_stop(s->api.blobs);
	s->api.store_job = tw_store_job_stop(s->api.store_job);
	s->api.recorder = tw_recorder_stop(s->api.recorder);
	s->api.pipeline = tw_pipeline_stop(s->api.pipeline);
	s->api.hooks = tw_hook_runner_stop(s->api.hooks);
	s->api.secret_key = tw_secret_key_free(s->api.secret_key);
	s->api.lease = tw_lease_stop(s->api.lease);
	s->keep_quota = tw_periodic_stop(s->keep_quota);
	if (s->api.quota && !tw_catalogue_is_shared(s->api.catalogue))
		save_quota(NULL, s);
	s->api.quota = tw_quota_free(s->api.quota);
	s->api.sources = tw_sources_free(s->api.sources);
	s->api.preflights = tw_preflights_free(s->api.preflights);
	s->api.resumes = tw_resumes_close(s->api.resumes);
	s->cleaner = tw_resume_cleaner_stop(s->cleaner);
	s->api.backlog = tw_backlog_free(s->api.backlog);
	s->api.throttle = tw_throttle_free(s->api.throttle);
	s->api.oidc = tw_oidc_close(s->api.oidc);
	s->tls = tw_tls_close(s->tls);
	s->api.response_cache = tw_response_cache_free(s->api.response_cache);
	s->api.response_memory = tw_response_memory_free(s->api.response_memory);
	s->api.fleet = tw_fleet_store_free(s->api.fleet);
	s->api.symbols = tw_symbols_free(s->api.symbols);
	s->api.metrics = tw_metrics_free(s->api.metrics);
	s->api.history = tw_metric_history_free(s->api.history);
	if (s->api.catalogue && s->api.blobs && tw_blobs_check_reserve(s->api.blobs, NULL) != TW_OK)
		tw_catalogue_keep_log(s->api.catalogue);
	s->api.catalogue = tw_catalogue_close(s->api.catalogue);
	s->api.blobs = tw_blobs_close(s->api.blobs);
	tw_age_clock_use(NULL);
	s->age_clock = tw_age_clock_close(s->age_clock);
}

static enum tw_status run(struct server *s, const sigset_t *set, struct tw_err *err)
{
	enum tw_status st = open_data(s, err);

	if (st == TW_OK)
		st = start_background(s, err);
	if (st == TW_OK)
		st = start_http(s, err);
	if (st == TW_OK) {
		wait_for_signal(s, set);
		tw_health_drain(s->api.health);
		stay_unready(s->api.config->drain_s);
		drain(s);
	}
	close_all(s);
	return st;
}

/* Call before any thread is created, so that all inherit the mask: only sigwait receives
 * signals. */
static void set_signals(sigset_t *ret)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(ret);
	(void)sigaddset(ret, SIGTERM);
	(void)sigaddset(ret, SIGINT);
	(void)sigaddset(ret, SIGHUP); /* reloads the certificate */
	(void)pthread_sigmask(SIG_BLOCK, ret, NULL);
}

static void log_mistaken(const char *flag, const char *meant)
{
	tw_log(TW_LOG_WARN, "setting_unknown", tw_log_text("environment", flag),
	        tw_log_text("similar", meant));
}

/* The C library would use up to eight heaps per core, each of which retains memory that was freed:
 * with 200 parallel responses, more than --response-memory.  Call before any thread is created. */
static void limit_heaps(void)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);

	(void)mallopt(M_ARENA_MAX, cores > 0 && cores < INT_MAX ? (int)cores : 1);
}

static int serve(struct tw_arena *a, int argc, char **argv)
{
	struct tw_config config;
	struct server server = {.api.config = &config};
	struct tw_err err;
	sigset_t set;
	enum tw_status st = tw_config_load(a, argc - 1, argv + 1, &config, &err);

	if (st != TW_OK) {
		(void)tw_cli_failed("serve", &err);
		return TW_EXIT_USAGE;
	}
	(void)tw_log_setup(config.log_level, config.log_format);
	/* data/ contains names of methods and devices: readable by its owner only */
	(void)umask(077);
	limit_heaps();
	set_signals(&set);
	tw_log_sink_open();
	tw_config_each_misspelt(log_mistaken);
	st = run(&server, &set, &err);
	if (st != TW_OK)
		tw_log_err(TW_LOG_ERROR, "failed", "serve", &err);
	else
		tw_log(TW_LOG_INFO, "stopped", tw_log_number("exit", 0));
	/* an invalid setting, such as one of the store or the mail server */
	if (st == TW_BAD_REQUEST)
		return TW_EXIT_USAGE;
	return st == TW_OK ? TW_EXIT_OK : TW_EXIT_FAILED;
}

int tw_cli_serve(int argc, char **argv)
{
	struct tw_arena *a;
	int code = TW_EXIT_FAILED;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0) {
			(void)puts("usage: tracewell serve [--SETTING VALUE]...\n");
			tw_config_help();
			return TW_EXIT_OK;
		}
	a = tw_arena_new(CONFIG_BYTES);
	if (a)
		code = serve(a, argc, argv);
	(void)tw_arena_free(a);
	return code;
}

int tw_cli_worker(int argc, char **argv)
{
	static const char word[] = "template=";
	uint64_t traces;

	return argc > 1 && strncmp(argv[1], word, sizeof word - 1) == 0 &&
	                       tw_str_u64(
	                               tw_str_of(argv[1] + sizeof word - 1), TW_CHILD_JOBS, &traces)
	               ? tw_worker_template(traces)
	               : tw_worker_main();
}
