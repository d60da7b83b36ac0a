/*
 * cli_serve.c - `tracewell serve`: starts the parts in the order of their dependencies, and stops
 * them in reverse.
 *
 * catalogue, blobs, symbols → jobs (recover, sweep) → http start
 * readiness red, for --drain-seconds → requests drained → http → jobs → the rest stop
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/api/routes.h"
#include "server/auth/auth_throttle.h"
#include "server/auth/oidc/oidc.h"
#include "server/auth/ticket.h"
#include "server/base/app.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/log_sink.h"
#include "server/base/role.h"
#include "server/base/secret.h"
#include "server/base/thread/periodic.h"
#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_tries.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/data_catalogue.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/catalogue/storage/storage_mark.h"
#include "server/catalogue/storage/storage_owner.h"
#include "server/catalogue/storage/store_peers.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/cli/cli.h"
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
#include "server/http/limit/answer_memory.h"
#include "server/http/limit/quota.h"
#include "server/http/limit/tls.h"
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
	CERTIFICATE_LOOK_S = 5,
	MAPPINGS_OPEN = 16,
	KEEP_QUOTA_S = 60,
	SECRETS_ARENA = 64 << 20
};

static void log_started(const struct tw_app *app, const struct tw_http *http)
{
	char host[128];
	char url[192];
	uint16_t port;

	if (!tw_listen_split(app->config->listen, host, sizeof host, &port))
		host[0] = '\0';
	(void)snprintf(url, sizeof url, strchr(host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
	        app->tls ? "https" : "http", host, tw_http_port(http));
	tw_log(TW_LOG_INFO, "listening", tw_log_text("url", url),
	        tw_log_text("data", app->config->data_dir),
	        tw_log_text("catalogue", tw_catalogue_engine(app->catalogue)),
	        tw_log_text("role", app->config->role), tw_log_text("version", TW_VERSION));
}

static void quota_path(const struct tw_app *app, char out[MAX_PATH_BYTES])
{
	(void)snprintf(out, MAX_PATH_BYTES, "%s/quota", app->config->data_dir);
}

static void save_quota(struct tw_periodic *p, void *arg)
{
	struct tw_app *app = arg;
	char path[MAX_PATH_BYTES];
	struct tw_err err;

	(void)p;
	quota_path(app, path);
	if (tw_quota_save(app->quota, path, tw_unix_ms(), &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "quota_not_saved", path, &err);
}

/* Uploads before a restart count towards the limits; if unknown, counting starts at zero. */
static enum tw_status open_quota(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	const struct tw_quota_limits limits = {
	        {{c->key_requests, c->key_bytes}, {c->device_requests, c->device_bytes}}};
	char path[MAX_PATH_BYTES];
	struct tw_err why;
	enum tw_status st;

	app->quota = tw_quota_new(&limits);
	if (!app->quota)
		return tw_oom(err);
	if (tw_catalogue_is_shared(app->catalogue)) /* each server counts by itself */
		return TW_OK;
	quota_path(app, path);
	st = tw_quota_load(app->quota, path, tw_unix_ms(), &why);
	if (st != TW_OK && st != TW_NOT_FOUND)
		tw_log_err(TW_LOG_WARN, "quota_not_loaded", path, &why);
	return tw_periodic_start(
	        &(struct tw_periodic_task){"quota", save_quota, KEEP_QUOTA_S * 1000}, app,
	        &app->keep_quota, err);
}

/* Opens the TLS certificate and the OpenID provider. */
static enum tw_status open_tls_and_oidc(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	enum tw_status st = TW_OK;

	if (*c->tls_cert)
		st = tw_tls_open(c->tls_cert, c->tls_key, &app->tls, err);
	if (st == TW_OK && *c->oidc.issuer)
		st = tw_oidc_open(&c->oidc, &app->oidc, err);
	return st;
}

/* An existing folder is served although its store does not respond: requests that need the store
 * fail until it was verified to be the right one. A new folder does not start without its store: it
 * has no record yet of where its files are. */
static enum tw_status wait_for_storage(
        struct tw_app *app, const struct tw_err *why, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(app->blobs, &store);

	if (!tw_storage_is_kept(c->data_dir)) {
		tw_err_copy(err, why);
		return why->code;
	}
	tw_log_err(TW_LOG_ERROR, "storage_unreachable", c->storage.blobs, why);
	if (engine->hold)
		engine->hold(store, why);
	app->storage_unproven = true;
	return TW_OK;
}

static struct tw_storage_claim storage_claim(const struct tw_app *app)
{
	return (struct tw_storage_claim){.data_dir = app->config->data_dir,
	        .storage = &app->config->storage,
	        .catalogue = app->catalogue,
	        .blobs = app->blobs};
}

/* A wrong key, bucket or prefix ends the start. An unreachable store is retried in the background,
 * and /readyz reports it. */
static enum tw_status check_storage(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	const struct tw_storage_claim claim = storage_claim(app);
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(app->blobs, &store);
	struct tw_err why;
	enum tw_status st = engine->probe ? engine->probe(store, &why) : TW_OK;

	if (st == TW_OK)
		st = tw_storage_claim(&claim, &why);
	if (st == TW_BUSY)
		return wait_for_storage(app, &why, err);
	if (st != TW_OK) {
		tw_err_copy(err, &why);
		return st;
	}
	return tw_storage_keep(c->data_dir, &c->storage, err);
}

/* The name is unique among several servers, also after a restart. */
static enum tw_status name_node(struct tw_app *app, struct tw_err *err)
{
	char id[TW_ID_BYTES];
	enum tw_status st = tw_ulid_new(tw_unix_ms(), id, err);

	if (*app->config->node)
		(void)snprintf(app->node_name, sizeof app->node_name, "%s", app->config->node);
	else if (gethostname(app->node_name, sizeof app->node_name) != 0)
		(void)snprintf(app->node_name, sizeof app->node_name, "unnamed");
	app->node_name[sizeof app->node_name - 1] = '\0';
	for (char *p = app->node_name; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\\')
			*p = '-';
	(void)snprintf(app->node, sizeof app->node, "%s-%s", app->node_name, id);
	if (app->config->several)
		tw_log_node(app->node_name);
	return st;
}

/* Without a shared data folder each server would create a different key. */
static enum tw_status check_keys(const struct tw_app *app, struct tw_err *err)
{
	if (!tw_catalogue_is_shared(app->catalogue) || !tw_blobs_remote(app->blobs) ||
	        *app->config->secret_key_file)
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "several servers with data folders of their own need one key for secrets: name it "
	        "with --secret-key-file, the same for all");
}

static enum tw_status open_catalogue(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	enum tw_status st = TW_OK;

	if (!c->adopt && !c->catalog[0] && !tw_data_catalogue_is_there(c->data_dir))
		st = tw_jobs_refuse_without_catalogue(app->blobs, err);
	if (st == TW_OK)
		st = tw_data_catalogue_open(
		        c->data_dir, c->catalog, c->storage.blobs, &app->catalogue, err);
	if (st == TW_OK && !c->adopt)
		st = tw_jobs_refuse_other_catalogue(app->blobs, app->catalogue, err);
	if (st == TW_OK)
		st = tw_catalogue_serve(app->catalogue, c->several, err);
	if (st == TW_OK && tw_catalogue_is_shared(app->catalogue))
		st = tw_blobs_own_spool(app->blobs, app->node, err);
	if (st == TW_OK)
		tw_store_peers_honour(app->blobs, app->catalogue);
	return st == TW_OK ? check_keys(app, err) : st;
}

/* A single server keeps uploads in its folder; deletes those that several servers left in the
 * catalogue before. */
static void expire_resumes(void *arg)
{
	const struct tw_app *app = arg;

	if (app->resumes)
		tw_resumes_expire(app->resumes);
}

static enum tw_status open_resumes(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	const struct tw_resume_limits limits = {
	        c->max_open_uploads, c->max_open_bytes, c->keep_open_s};
	struct tw_resume_place place = {app->blobs, app->catalogue, app->node, NULL};
	enum tw_status st = TW_OK;

	if (strcmp(tw_catalogue_engine(app->catalogue), "sqlite") != 0)
		st = tw_resume_cleaner_start(&place, &app->cleaner, err);
	place.cleaner = app->cleaner;
	if (st != TW_OK)
		return st;
	return tw_catalogue_is_shared(app->catalogue)
	               ? tw_resumes_open_shared(&place, &limits, &app->resumes, err)
	               : tw_resumes_open(app->blobs, &limits, &app->resumes, err);
}

static enum tw_status make_parts(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	const uint64_t most = c->answer_memory_bytes / 4;
	const uint64_t cache = c->response_cache_bytes < most ? c->response_cache_bytes : most;

	app->routes = tw_routes(&app->n_routes);
	app->metrics = tw_metrics_new(app->routes, app->n_routes);
	app->symbols = tw_symbols_new(app->blobs, MAPPINGS_OPEN);
	app->answers = tw_response_cache_new(cache);
	app->answer_memory = tw_answer_memory_new(c->answer_memory_bytes, cache);
	app->throttle = tw_throttle_new();
	app->preflights = tw_preflights_new(c, app->metrics);
	app->backlog = tw_backlog_new(
	        app->catalogue, &(struct tw_backlog_limits){c->max_queue, c->max_queue_bytes});
	app->sources = tw_sources_new(c);
	if (!app->sources || !app->backlog || !app->preflights || !app->metrics || !app->symbols ||
	        !app->answers || !app->answer_memory || !app->throttle)
		return tw_oom(err);
	return tw_http_waits_start(app, err);
}

static enum tw_status open_data(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	enum tw_status st = name_node(app, err);

	if (st == TW_OK)
		st = open_tls_and_oidc(app, err);
	if (st == TW_OK)
		st = tw_storage_agree(c->data_dir, &c->storage, err);
	if (st == TW_OK)
		st = tw_blobs_open_at(&(struct tw_store_endpoint){.data_dir = c->data_dir,
		                              .storage = &c->storage,
		                              .min_free_percent = c->min_free_percent,
		                              .reserve_bytes = c->reserve_bytes,
		                              .serves = true},
		        &app->blobs, err);
	if (st == TW_OK)
		st = open_catalogue(app, err);
	if (st == TW_OK)
		st = check_storage(app, err);
	if (st == TW_OK)
		st = open_resumes(app, err);
	if (st == TW_OK)
		st = tw_ticket_key_new(app->ticket_key, err);
	if (st != TW_OK)
		return st;
	st = make_parts(app, err);
	if (st == TW_OK)
		st = tw_fleet_open(app->catalogue, c->data_dir, &c->analytics, &app->fleet, err);
	return st == TW_OK ? open_quota(app, err) : st;
}

static enum tw_status use_signin(
        void *arg, const char *mark, int64_t until_ms, bool *ret_first, struct tw_err *err)
{
	return tw_catalogue_signin_use(arg, mark, until_ms, ret_first, err);
}

static enum tw_status take_tries(void *arg, const struct tw_throttle_cost *ask, bool count,
        int64_t *ret_wait_ms, struct tw_err *err)
{
	return tw_catalogue_tries(arg, ask, count, ret_wait_ms, err);
}

static void return_tries(void *arg, const struct tw_throttle_cost *ask)
{
	(void)tw_catalogue_tries_back(
	        arg, ask, NULL); /* on failure one attempt too many is counted */
}

static bool share_tries(struct tw_app *app, struct tw_throttle *t, const char *what)
{
	struct tw_throttle_sharing with = {
	        .take = take_tries, .give_back = return_tries, .arg = app->catalogue};

	if (!tw_secret_key_derive(app->seal, what, with.secret))
		return false;
	tw_throttle_share(t, &with);
	return true;
}

/* All servers accept links and sign-ins that any of them created, and count password attempts
 * together. */
static bool share_keys(struct tw_app *app)
{
	struct tw_oidc_sharing with = {.use = use_signin, .arg = app->catalogue};

	if (!tw_secret_key_derive(app->seal, "tickets", app->ticket_key) ||
	        !tw_secret_key_derive(app->seal, "signin seal", with.seal) ||
	        !tw_secret_key_derive(app->seal, "signin state", with.secret) ||
	        !share_tries(app, app->throttle, "tries of passwords") ||
	        (app->oidc && !share_tries(app, tw_oidc_tries(app->oidc), "tries of sign-ins")))
		return false;
	if (app->oidc)
		tw_oidc_share(app->oidc, &with);
	explicit_bzero(&with, sizeof with);
	return true;
}

/* Encrypts secrets that an older server stored in plain text. */
static enum tw_status open_seal(struct tw_app *app, struct tw_err *err)
{
	struct tw_arena *a = NULL;
	uint64_t lost = 0;
	bool sealed = false;
	enum tw_status st = tw_catalogue_hooks_encrypted(app->catalogue, &sealed, err);

	if (st == TW_OK)
		st = tw_secret_decrypt(app->config->data_dir, app->config->secret_key_file,
		        !sealed || app->config->new_secret_key, &app->seal, err);

	if (st != TW_OK)
		return st;
	if (tw_catalogue_is_shared(app->catalogue) && !tw_secret_key_lost(app->seal) &&
	        !share_keys(app))
		return tw_oom(err);
	a = tw_arena_new(SECRETS_ARENA);
	st = a ? tw_catalogue_hooks_encrypt(app->catalogue, app->seal, a, &lost, err) : tw_oom(err);
	(void)tw_arena_free(a);
	if (tw_secret_key_lost(app->seal))
		tw_log(TW_LOG_WARN, "secret_key_lost",
		        tw_log_text("reason",
		                "secret.key is not in the data folder, and secrets are sealed by "
		                "it: bring it back, or start once with --new-secret-key; until "
		                "then no webhook gets a secret"));
	if (lost)
		tw_log(TW_LOG_WARN, "webhook_secrets_lost",
		        tw_log_number("webhooks", (int64_t)lost),
		        tw_log_text("reason",
		                "secret.key is another than the one that sealed them: "
		                "give them other secrets, or bring that key back"));
	return st;
}

/* Data derived from traces is out of date, and requests may wait for a mapping. */
static void job_ended(void *arg, enum tw_queue queue)
{
	struct tw_app *app = arg;

	tw_pipeline_wake(app->pipeline,
	        queue == TW_QUEUE_TRACES ? TW_RAISED_BY_DECODER : TW_RAISED_BY_MAPPING);
	if (queue == TW_QUEUE_MAPPINGS)
		tw_periodic_wake(app->waiters);
}

static enum tw_status start_decoding(struct tw_app *app, struct tw_err *err)
{
	return tw_jobs_start(&(struct tw_decode_parts){.config = app->config,
	                             .catalogue = app->catalogue,
	                             .blobs = app->blobs,
	                             .recorder = app->recorder,
	                             .store_job = app->store_job,
	                             .metrics = app->metrics,
	                             .node = app->node,
	                             .ended = job_ended,
	                             .each_poll = expire_resumes,
	                             .arg = app},
	        &app->jobs, err);
}

static struct tw_deleter deleter(const struct tw_app *app)
{
	return (struct tw_deleter){.catalogue = app->catalogue,
	        .recorder = app->recorder,
	        .store_job = app->store_job,
	        .pipeline = app->pipeline};
}

/* Starts the pipeline of derived data, on servers that decode. */
static enum tw_status start_deriving(struct tw_app *app, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (tw_catalogue_is_shared(app->catalogue))
		st = tw_lease_start(app->catalogue, app->blobs, app->node, &app->leader, err);
	if (st == TW_OK)
		st = tw_pipeline_start(
		        &(struct tw_pipeline_setup){
		                .parts = {.catalogue = app->catalogue,
		                        .blobs = app->blobs,
		                        .symbols = app->symbols,
		                        .fleet = app->fleet,
		                        .figures_days = app->config->figures_days,
		                        .sends_mail = *app->config->smtp_url != '\0'},
		                .stages = tw_stages,
		                .lease = app->leader,
		                .leads = tw_lease_held},
		        &app->pipeline, err);
	if (st == TW_OK)
		st = tw_hook_runner_start(&(struct tw_hook_parts){.config = app->config,
		                                  .catalogue = app->catalogue,
		                                  .fleet = app->fleet,
		                                  .seal = app->seal,
		                                  .node = app->node},
		        &app->hooks, err);
	if (st != TW_OK)
		return st;
	return tw_retention_job_start(&(struct tw_retention_parts){.config = app->config,
	                                      .deleter = deleter(app),
	                                      .metrics = app->metrics,
	                                      .lease = app->leader},
	        &app->retention, err);
}

/* Background tasks. */
static enum tw_status start_jobs(struct tw_app *app, struct tw_err *err)
{
	enum tw_status st = open_seal(app, err);

	if (st == TW_OK)
		st = tw_recorder_start(app->catalogue, app->blobs, &app->recorder, err);
	if (st == TW_OK) /* before the tasks that delete */
		st = tw_store_job_start(&(struct tw_store_job_parts){.claim = storage_claim(app),
		                                .unproven = app->storage_unproven,
		                                .node = app->node,
		                                .recorder = app->recorder},
		        &app->store_job, err);
	if (st == TW_OK && app->config->roles & TW_ROLE_DECODE)
		st = start_deriving(app, err);
	return st == TW_OK ? start_decoding(app, err) : st;
}

static void close_data(struct tw_app *app)
{
	app->health = tw_health_stop(app->health);
	app->retention = tw_retention_job_stop(app->retention);
	app->jobs = tw_jobs_stop(app->jobs, app->config->shutdown_s);
	tw_http_waits_stop(app);
	if (app->blobs)
		tw_blobs_stop(app->blobs);
	app->store_job = tw_store_job_stop(app->store_job);
	app->recorder = tw_recorder_stop(app->recorder);
	app->pipeline = tw_pipeline_stop(app->pipeline);
	app->hooks = tw_hook_runner_stop(app->hooks);
	app->seal = tw_secret_key_free(app->seal);
	app->leader = tw_lease_stop(app->leader);
	app->keep_quota = tw_periodic_stop(app->keep_quota);
	if (app->quota && !tw_catalogue_is_shared(app->catalogue))
		save_quota(NULL, app);
	app->quota = tw_quota_free(app->quota);
	app->sources = tw_sources_free(app->sources);
	app->preflights = tw_preflights_free(app->preflights);
	app->resumes = tw_resumes_close(app->resumes);
	app->cleaner = tw_resume_cleaner_stop(app->cleaner);
	app->backlog = tw_backlog_free(app->backlog);
	app->throttle = tw_throttle_free(app->throttle);
	app->oidc = tw_oidc_close(app->oidc);
	app->tls = tw_tls_close(app->tls);
	app->answers = tw_response_cache_free(app->answers);
	app->answer_memory = tw_answer_memory_free(app->answer_memory);
	app->fleet = tw_fleet_store_free(app->fleet);
	app->symbols = tw_symbols_free(app->symbols);
	app->metrics = tw_metrics_free(app->metrics);
	if (app->catalogue && app->blobs && tw_blobs_check_reserve(app->blobs, NULL) != TW_OK)
		tw_catalogue_keep_log(app->catalogue);
	app->catalogue = tw_catalogue_close(app->catalogue);
	app->blobs = tw_blobs_close(app->blobs);
}

/* Logs a problem of the new files; the current certificate remains in use. */
static void reload_certificate(const struct tw_app *app, bool anyway)
{
	struct tw_err err;
	bool is_new = false;

	if (!app->tls)
		return;
	if (tw_tls_reload(app->tls, anyway, &is_new, &err) != TW_OK)
		tw_log_err(TW_LOG_ERROR, "certificate_kept", app->config->tls_cert, &err);
	else if (is_new)
		tw_log(TW_LOG_INFO, "certificate", tw_log_text("file", app->config->tls_cert),
		        tw_log_number("ends_s", tw_tls_ends_s(app->tls)));
}

static void wait_for_signal(const struct tw_app *app, const sigset_t *set)
{
	const struct timespec look = {.tv_sec = CERTIFICATE_LOOK_S};
	int number = 0;

	while (number != SIGTERM && number != SIGINT) {
		number = sigtimedwait(set, NULL, &look);
		reload_certificate(app, number == SIGHUP);
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

static enum tw_status start_metrics(struct tw_app *app, struct tw_http **ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (app->config->metrics_listen[0])
		st = tw_http_start_metrics(app, ret, err);
	if (*ret)
		tw_log(TW_LOG_INFO, "metrics", tw_log_number("port", tw_http_port(*ret)));
	return st;
}

/* Requests that remain after that time wait for an unresponsive store and are ended. */
static void drain(struct tw_app *app, struct tw_http *http)
{
	int64_t began = tw_monotonic_ms();

	tw_http_drain(http, app->config->shutdown_s);
	if (tw_monotonic_ms() - began >= (int64_t)app->config->shutdown_s * 1000)
		tw_blobs_stop(app->blobs);
}

static enum tw_status run(struct tw_app *app, const sigset_t *set, struct tw_err *err)
{
	struct tw_http *http = NULL;
	struct tw_http *metrics = NULL;
	struct tw_deleter deletes;
	struct tw_commit_parts commit;
	enum tw_status st = open_data(app, err);

	if (st == TW_OK)
		st = start_jobs(app, err);
	if (st == TW_OK)
		st = tw_health_start(&(struct tw_health_parts){.config = app->config,
		                             .catalogue = app->catalogue,
		                             .blobs = app->blobs,
		                             .jobs = app->jobs,
		                             .metrics = app->metrics},
		        &app->health, err);
	deletes = deleter(app);
	app->deleter = &deletes;
	commit = (struct tw_commit_parts){.catalogue = app->catalogue,
	        .blobs = app->blobs,
	        .recorder = app->recorder,
	        .backlog = app->backlog,
	        .jobs = app->jobs};
	app->commit = &commit;
	if (st == TW_OK)
		st = start_metrics(app, &metrics, err);
	if (st == TW_OK)
		st = tw_http_start(app, &http, err);
	if (st == TW_OK) {
		log_started(app, http);
		wait_for_signal(app, set);
		tw_health_drain(app->health);
		stay_unready(app->config->drain_s);
		app->stopping = true;
		drain(app, http);
	}
	http = tw_http_stop(http);
	metrics = tw_http_stop(metrics);
	close_data(app);
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
	        tw_log_text("meant", meant));
}

static int serve(struct tw_arena *a, int argc, char **argv)
{
	struct tw_config config;
	struct tw_app app = {.config = &config};
	struct tw_err err;
	sigset_t set;
	enum tw_status st = tw_config_load(a, argc - 1, argv + 1, &config, &err);

	if (st != TW_OK) {
		(void)tw_cli_failed("serve", &err);
		return TW_EXIT_USAGE;
	}
	(void)tw_log_setup(config.log_level, config.log_format);
	(void)umask(
	        077); /* data/ contains names of methods and devices: readable by its owner only */
	set_signals(&set);
	tw_log_sink_open();
	tw_config_each_mistaken(log_mistaken);
	st = run(&app, &set, &err);
	if (st != TW_OK)
		tw_log_err(TW_LOG_ERROR, "failed", "serve", &err);
	else
		tw_log(TW_LOG_INFO, "stopped", tw_log_number("exit", 0));
	if (st == TW_BAD_REQUEST) /* an invalid setting, such as one of the store or the mail server
	                           */
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
	return argc > 1 && strcmp(argv[1], "template") == 0 ? tw_worker_template()
	                                                    : tw_worker_main();
}
