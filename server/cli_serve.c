/*
 * cli_serve.c - `tracewell serve`: the parts in the order they need each other, and back.
 *
 *   catalogue, blobs, symbols → jobs (recover, sweep) → http      start
 *   readiness red → requests drained → http → jobs → the rest     stop
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app.h"
#include "blob.h"
#include "catalogue.h"
#include "cli.h"
#include "http.h"
#include "jobs.h"
#include "jobs_names.h"
#include "log.h"
#include "metrics.h"
#include "symbols.h"
#include "ticket.h"
#include "worker.h"

enum { CONFIG_BYTES = 1 << 20, MAX_PATH_BYTES = 1200, MAPPINGS_OPEN = 16 };

static void log_started(const struct tw_app *app, const struct tw_http *http)
{
	char host[128];
	char url[192];
	uint16_t port;

	if (!tw_listen_split(app->config->listen, host, sizeof host, &port))
		host[0] = '\0';
	(void)snprintf(url, sizeof url, strchr(host, ':') ? "http://[%s]:%u" : "http://%s:%u", host,
	        tw_http_port(http));
	tw_log(TW_LOG_INFO, "listening", tw_log_text("url", url),
	        tw_log_text("data", app->config->data_dir), tw_log_text("version", TW_VERSION));
}

static enum tw_status open_data(struct tw_app *app, struct tw_err *err)
{
	const struct tw_config *c = app->config;
	char path[MAX_PATH_BYTES];
	const struct tw_route *routes;
	size_t n;
	enum tw_status st;

	st = tw_blobs_open(c->data_dir, c->min_free_percent, &app->blobs, err);
	(void)snprintf(path, sizeof path, "%s/catalogue.db", c->data_dir);
	if (st == TW_OK)
		st = tw_catalogue_open(path, &app->catalogue, err);
	if (st == TW_OK)
		st = tw_ticket_key_new(app->ticket_key, err);
	if (st != TW_OK)
		return st;
	routes = tw_routes(&n);
	app->metrics = tw_metrics_new(routes, n);
	app->symbols = tw_symbols_new(app->blobs, MAPPINGS_OPEN);
	if (!app->metrics || !app->symbols)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	st = tw_names_job_start(app, &app->names, err);
	return st == TW_OK ? tw_jobs_start(app, &app->jobs, err) : st;
}

static void close_data(struct tw_app *app)
{
	app->jobs = tw_jobs_stop(app->jobs, app->config->shutdown_s);
	app->names = tw_names_job_stop(app->names);
	app->symbols = tw_symbols_free(app->symbols);
	app->metrics = tw_metrics_free(app->metrics);
	app->catalogue = tw_catalogue_close(app->catalogue);
	app->blobs = tw_blobs_close(app->blobs);
}

static void wait_for_signal(const sigset_t *set)
{
	int number = 0;

	while (sigwait(set, &number) != 0 || (number != SIGTERM && number != SIGINT))
		continue;
	tw_log(TW_LOG_INFO, "stopping", tw_log_number("signal", number));
}

static enum tw_status run(struct tw_app *app, const sigset_t *set, struct tw_err *err)
{
	struct tw_http *http = NULL;
	enum tw_status st = open_data(app, err);

	if (st == TW_OK)
		st = tw_http_start(app, &http, err);
	if (st == TW_OK) {
		log_started(app, http);
		wait_for_signal(set);
		app->stopping = true;
		tw_http_drain(http, app->config->shutdown_s);
	}
	http = tw_http_stop(http);
	close_data(app);
	return st;
}

/* Before any thread is made, so that all inherit it: signals are taken by sigwait alone. */
static void set_signals(sigset_t *ret)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(ret);
	(void)sigaddset(ret, SIGTERM);
	(void)sigaddset(ret, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, ret, NULL);
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
	(void)umask(077); /* data/ holds names of methods and devices: nobody else's business */
	set_signals(&set);
	(void)pthread_rwlock_init(&app.blob_use, NULL);
	st = run(&app, &set, &err);
	(void)pthread_rwlock_destroy(&app.blob_use);
	if (st != TW_OK)
		tw_log_err(TW_LOG_ERROR, "failed", "serve", &err);
	else
		tw_log(TW_LOG_INFO, "stopped", tw_log_number("exit", 0));
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
	(void)argc;
	(void)argv;
	return tw_worker_main();
}
