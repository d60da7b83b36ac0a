/*
 * http.c - the server's loop: libmicrohttpd's callbacks turned into begin, body, end and abort.
 *
 * What libmicrohttpd 0.9.75 gives decides the order of things.  A reply queued
 * at the first call discards the body and closes the connection, one queued in
 * the middle is impossible.  So: what can be judged by headers is judged first;
 * a refusal is sent at once when no body byte is under way (Expect) or too many
 * are, otherwise up to LINGER_BYTES are swallowed and the answer comes behind
 * them, which every client reads.  Past that the connection is cut.
 *
 * `end` of slow routes runs on a pool (http_pools.c) with the connection suspended.
 */
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "audit.h"
#include "http_int.h"
#include "http_tls.h"
#include "log.h"

/* twice what http_judge.c allows, so that the refusal is ours */
enum { CONNECTION_MEMORY = 128 << 10, STACK_BYTES = 512 << 10 };
static const size_t request_memory = (size_t)512 << 20;
static const uint64_t linger_bytes = 1 << 20;

/* A body slower than this for longer than that holds a slot for nobody's good. */
enum { SLOW_GRACE_S = 60, SLOW_BYTES_PER_S = 256 };

/* --- begin: all that the headers tell --- */

static void read_length(struct tw_req *r)
{
	const char *length = tw_req_header(r, "Content-Length");
	const char *expect = tw_req_header(r, "Expect");

	r->expects = expect && strcasecmp(expect, "100-continue") == 0;
	if (tw_req_header(r, "Transfer-Encoding"))
		r->declared = UINT64_MAX;
	else if (!length || !tw_str_u64(tw_str_of(length), UINT64_MAX - 1, &r->declared))
		r->declared = 0; /* libmicrohttpd has refused what is no number */
}

static enum tw_status judge_length(struct tw_req *r, struct tw_err *err)
{
	r->max_body = r->route->max_body ? r->route->max_body(r->http->app) : 0;
	if (r->max_body == 0 && r->declared != 0)
		return tw_fail(err, TW_TOO_LARGE, TW_NO_OFFSET, "this request takes no body");
	if (r->declared != UINT64_MAX && r->declared > r->max_body)
		return tw_fail(err, TW_TOO_LARGE, TW_NO_OFFSET,
		        "the body is larger than the limit of %llu bytes",
		        (unsigned long long)r->max_body);
	return TW_OK;
}

static bool changes_state(const struct tw_req *r)
{
	return strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0;
}

static enum tw_status judge_caller(struct tw_req *r, struct tw_err *err)
{
	const struct tw_credentials shown = {
	        .authorization = tw_req_header(r, "Authorization"),
	        .cookie = tw_req_header(r, "Cookie"),
	        .csrf = tw_req_header(r, "X-Tracewell"),
	        .project = tw_req_query(r, "project"),
	        .address = r->address,
	        .user = r->proxy_user,
	        .changes_state = changes_state(r),
	        .is_https = tw_req_is_https(r),
	};
	enum tw_status st;

	if (r->route->needs == TW_NEED_PUBLIC && !r->route->knows_caller)
		return TW_OK;
	st = tw_auth_caller(r->http->app->catalogue, &shown, &r->caller, err);
	return st == TW_OK ? tw_auth_allows(&r->caller, r->route->needs, err) : st;
}

static enum tw_status take_upload_slot(struct tw_req *r, struct tw_err *err)
{
	int limit = (int)r->http->app->config->max_in_flight;

	if (!r->route->upload)
		return TW_OK;
	if (r->http->app->stopping)
		return tw_fail(
		        err, TW_BUSY, TW_NO_OFFSET, "the server is being stopped; send it again");
	if (atomic_fetch_add(&r->http->uploads, 1) >= limit) {
		(void)atomic_fetch_sub(&r->http->uploads, 1);
		return tw_fail(
		        err, TW_BUSY, TW_NO_OFFSET, "%d uploads are under way; come back", limit);
	}
	r->counted_upload = true;
	tw_metrics_uploads_open(r->http->app->metrics, 1);
	return TW_OK;
}

static enum tw_status begin(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = r->refused; /* the target did not parse */

	if (st == TW_OK)
		st = tw_req_find_route(r, err);
	if (st == TW_OK && changes_state(r))
		st = tw_req_judge_origin(r, err);
	if (st == TW_OK)
		st = judge_caller(r, err);
	if (st == TW_OK)
		st = judge_length(r, err);
	if (st == TW_OK)
		st = tw_req_take_quota(r, err);
	if (st == TW_OK)
		st = take_upload_slot(r, err);
	if (st != TW_OK)
		return st;
	r->begun = true;
	return r->route->begin ? r->route->begin(r, err) : TW_OK;
}

/* --- the end of a request --- */

static void give_up(struct tw_req *r)
{
	if (r->begun && r->route->abort)
		r->route->abort(r);
	r->begun = false;
}

static void release_upload_slot(struct tw_req *r)
{
	if (!r->counted_upload)
		return;
	r->counted_upload = false;
	(void)atomic_fetch_sub(&r->http->uploads, 1);
	tw_metrics_uploads_open(r->http->app->metrics, -1);
}

static void refuse(struct tw_req *r, enum tw_status st)
{
	give_up(r);
	r->refused = st;
}

/* On whose behalf this thread changes things from here. */
static void act_for(const struct tw_req *r)
{
	const struct tw_caller *who = &r->caller;
	struct tw_actor a = {"nobody", "", "", r->address, r->id};

	if (who->user_id[0])
		a = (struct tw_actor){"user", who->user_id, who->name, r->address, r->id};
	else if (who->key_id[0])
		a = (struct tw_actor){"key", who->key_id, "", r->address, r->id};
	else if (who->scope != TW_SCOPE_PUBLIC)
		a.kind = "link";
	tw_actor_set(&a);
}

static void run_end(struct tw_req *r)
{
	enum tw_status st;

	act_for(r);
	st = r->route->end(r, &r->err);
	tw_actor_set(NULL);

	if (st == TW_OK && !r->response)
		st = tw_fail(&r->err, TW_BUG, TW_NO_OFFSET, "no answer was made");
	if (st == TW_OK)
		r->begun = false;
	else
		refuse(r, st);
}

/* Logs and metrics: the target that was meant, the route that was asked. */
enum tw_status tw_req_forward(
        struct tw_req *r, const struct tw_caller *as, const char *target, struct tw_err *err)
{
	const struct tw_route *asked = r->route;
	struct tw_target inner = {.path = NULL};
	enum tw_status st = tw_target_parse(r->arena, target, &inner, err);

	if (st != TW_OK)
		return st;
	r->target = inner;
	r->caller = *as;
	st = tw_req_find_route(r, err);
	if (st == TW_OK)
		st = tw_auth_allows(as, r->route->needs, err);
	if (st == TW_OK && (r->route == asked || r->route->begin))
		st = tw_fail(err, TW_BUG, TW_NO_OFFSET, "this route cannot be gone on to");
	if (st == TW_OK)
		st = r->route->end(r, err);
	r->route = asked;
	return st;
}

static void run_pooled(struct tw_pool_task *task, bool stopping)
{
	struct tw_req *r = (struct tw_req *)task;

	if (stopping)
		refuse(r, tw_fail(&r->err, TW_BUSY, TW_NO_OFFSET, "the server is being stopped"));
	else
		run_end(r);
	(void)MHD_resume_connection(r->connection);
}

/* A ticket is a secret while it lasts. */
static const char *loggable_path(const struct tw_req *r)
{
	static const char tickets[] = "/api/v1/tickets/";
	const char *path = r->target.path;

	return path && strncmp(path, tickets, sizeof tickets - 1) == 0 ? tickets : path;
}

static void log_request(const struct tw_req *r)
{
	enum tw_log_level level = r->http_code >= 500 ? TW_LOG_WARN : TW_LOG_INFO;
	uint64_t ms = (tw_http_now_ns() - r->started_ns) / 1000000;

	if (r->route && r->route->quiet && r->http_code < 400)
		level = TW_LOG_DEBUG;
	tw_log(level, "request", tw_log_text("id", r->id), tw_log_text("method", r->method),
	        tw_log_text("path", loggable_path(r)), tw_log_number("status", r->http_code),
	        tw_log_number("ms", (int64_t)ms), tw_log_number("bytes_in", (int64_t)r->got),
	        tw_log_text("project", r->caller.project_id),
	        tw_log_text("error", r->refused != TW_OK ? r->err.msg : ""));
}

static enum MHD_Result send_reply(struct tw_req *r)
{
	enum MHD_Result sent;

	if (r->refused != TW_OK)
		tw_reply_error(r);
	if (!r->response)
		return MHD_NO;
	r->phase = TW_PHASE_DONE;
	sent = MHD_queue_response(r->connection, (unsigned)r->http_code, r->response);
	MHD_destroy_response(r->response);
	r->response = NULL;
	release_upload_slot(r);
	tw_metrics_request(
	        r->http->app->metrics, &(struct tw_metrics_request){r->route, r->http_code,
	                                       tw_http_now_ns() - r->started_ns, r->got});
	log_request(r);
	return sent;
}

/* --- callbacks --- */

/* First of all callbacks: the target as it was sent, before libmicrohttpd decodes it. */
static void *on_target(void *cls, const char *raw, struct MHD_Connection *connection)
{
	struct tw_http *h = cls;
	struct tw_arena *a = tw_arena_new(request_memory);
	struct tw_req *r = a ? tw_arena_zalloc(a, 1, sizeof *r) : NULL;

	if (!r) {
		(void)tw_arena_free(a);
		return NULL;
	}
	r->http = h;
	r->connection = connection;
	r->arena = a;
	r->method = "";
	r->started_ns = tw_http_now_ns();
	tw_http_make_id(h, r->id);
	tw_http_address(connection, r->address);
	r->task.run = run_pooled;
	r->target_bytes = strlen(raw);
	r->refused = tw_target_parse(a, raw, &r->target, &r->err);
	(void)atomic_fetch_add(&h->requests, 1);
	tw_metrics_requests_open(h->app->metrics, 1);
	return r;
}

/* A farewell that came in one packet with the bytes before it is not told by epoll again.  Here the
 * library may hold more of the body, so the connection is only given less time. */
static void look_for_farewell(struct tw_req *r)
{
	if (r->hurried || r->declared == 0 || !tw_req_client_left(r))
		return;
	r->hurried = true;
	tw_req_hurry(r, true);
}

static enum MHD_Result on_headers(struct tw_req *r, const char *method, const char *version)
{
	enum tw_status st;
	bool at_once;

	tw_watch_waits(r->http->watch, r->connection, false);
	r->method = tw_arena_str(r->arena, tw_str_of(method));
	if (!r->method || !r->target.path)
		return MHD_NO;
	r->deadline_ns = tw_http_now_ns() + r->http->app->config->query_deadline_ms * 1000000ull;
	read_length(r);
	r->phase = TW_PHASE_BODY;
	st = tw_req_judge_headers(r, version, &r->err);
	if (st == TW_OK)
		st = tw_req_hear_proxy(r, &r->err);
	if (st != TW_OK) {
		refuse(r, st);
		return send_reply(r);
	}
	st = begin(r, &r->err);
	look_for_farewell(r);
	if (st == TW_OK)
		return MHD_YES;
	refuse(r, st);
	at_once = r->expects || (r->declared != UINT64_MAX && r->declared > linger_bytes);
	return at_once ? send_reply(r) : MHD_YES;
}

static bool is_too_slow(const struct tw_req *r)
{
	uint64_t s = (tw_http_now_ns() - r->started_ns) / 1000000000;

	return s > SLOW_GRACE_S && r->got / s < SLOW_BYTES_PER_S;
}

/* All that came of a body of known length is in this piece, so a farewell now means a cut. */
static bool is_cut_off(struct tw_req *r)
{
	if (r->declared == UINT64_MAX)
		look_for_farewell(r);
	else if (r->got < r->declared)
		return tw_req_client_left(r);
	return false;
}

static enum MHD_Result on_piece(struct tw_req *r, const char *data, size_t n)
{
	enum tw_status st = TW_OK;

	r->got += n;
	if (is_cut_off(r))
		return MHD_NO;
	if (r->got > r->max_body + linger_bytes || is_too_slow(r))
		return MHD_NO;
	if (r->refused != TW_OK)
		return MHD_YES;
	if (r->got > r->max_body)
		st = tw_fail(&r->err, TW_TOO_LARGE, r->max_body,
		        "the body is larger than the limit of %llu bytes",
		        (unsigned long long)r->max_body);
	else if (r->route->body)
		st = r->route->body(r, data, n, &r->err);
	if (st != TW_OK)
		refuse(r, st);
	return MHD_YES;
}

/* The library must have noticed that it is done with reading before the connection is suspended:
 * else it reads again on resuming, and drops a client that has closed its sending side.  So the
 * first call behind the body only asks for a second one, which comes at once. */
static enum MHD_Result on_end(struct tw_req *r)
{
	if (r->hurried) {
		r->hurried = false;
		tw_req_hurry(r, false);
	}
	if (r->refused == TW_OK && r->route->slow && r->phase == TW_PHASE_BODY) {
		r->phase = TW_PHASE_LAST;
		return MHD_YES;
	}
	if (r->phase == TW_PHASE_LAST) {
		r->phase = TW_PHASE_POOLED;
		MHD_suspend_connection(r->connection);
		if (!tw_pool_submit(tw_http_pool_of(r), &r->task))
			run_pooled(&r->task, true);
		return MHD_YES;
	}
	if (r->refused == TW_OK)
		run_end(r);
	return send_reply(r);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
        const char *method, const char *version, const char *data, size_t *data_len, void **con_cls)
{
	struct tw_req *r = *con_cls;
	enum MHD_Result result;

	(void)cls;
	(void)connection;
	(void)url;
	if (!r)
		return MHD_NO;
	if (r->phase == TW_PHASE_NEW)
		return on_headers(r, method, version);
	if (r->phase == TW_PHASE_POOLED)
		return send_reply(r);
	if (*data_len == 0)
		return on_end(r);
	result = on_piece(r, data, *data_len);
	*data_len = 0;
	return result;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
        enum MHD_RequestTerminationCode how)
{
	struct tw_req *r = *con_cls;
	struct tw_http *h = cls;

	if (!r)
		return;
	if (r->phase != TW_PHASE_DONE)
		tw_log(TW_LOG_INFO, "request_cut", tw_log_text("id", r->id),
		        tw_log_text("method", r->method), tw_log_text("path", loggable_path(r)),
		        tw_log_number("bytes_in", (int64_t)r->got), tw_log_number("how", how));
	give_up(r);
	release_upload_slot(r);
	tw_req_settle_quota(r);
	if (r->response)
		MHD_destroy_response(r->response);
	tw_metrics_requests_open(h->app->metrics, -1);
	tw_watch_waits(h->watch, connection, true);
	*con_cls = NULL;
	(void)tw_arena_free(r->arena); /* r itself lives there */
	(void)atomic_fetch_sub(&h->requests, 1);
}

static void __attribute__((format(printf, 2, 0)))
on_library_message(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	(void)cls;
	(void)vsnprintf(text, sizeof text, fmt, ap);
	tw_log(TW_LOG_DEBUG, "http_library", tw_log_text("message", text));
}

/* --- start and stop --- */

static struct MHD_Daemon *start_daemon(struct tw_http *h)
{
	const struct tw_config *c = h->app->config;
	unsigned flags =
	        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem tls[TW_HTTP_TLS_OPTIONS];

	if (h->app->tls)
		flags |= MHD_USE_TLS;
	tw_http_tls_options(h->app->tls, tls);

	/* the logger first: it speaks for the options behind it */
	return MHD_start_daemon(flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER,
	        on_library_message, NULL, MHD_OPTION_LISTEN_SOCKET, h->listen_fd,
	        MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_NOTIFY_COMPLETED,
	        on_completed, h, MHD_OPTION_CONNECTION_LIMIT, c->connections,
	        MHD_OPTION_PER_IP_CONNECTION_LIMIT, c->connections_per_address,
	        MHD_OPTION_NOTIFY_CONNECTION, tw_watch_connection, h->watch,
	        MHD_OPTION_CONNECTION_TIMEOUT, c->connection_timeout_s,
	        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
	        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_THREAD_POOL_SIZE, c->http_threads,
	        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_ARRAY, tls,
	        MHD_OPTION_END);
}

enum tw_status tw_http_start_at(const char *where, bool for_metrics, struct tw_app *app,
        struct tw_http **ret, struct tw_err *err)
{
	struct tw_http *h = tw_mem_zalloc(1, sizeof *h);
	enum tw_status st;
	uint64_t seed = tw_http_now_ns();

	if (!h)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	h->app = app;
	h->listen_fd = -1;
	h->for_metrics = for_metrics;
	tw_http_need_descriptors(app->config->connections);
	h->routes = tw_routes(&h->n_routes);
	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
		seed ^= (uint64_t)getpid() << 32; /* ids need to differ, not to be secret */
	h->ids = seed;
	st = tw_http_listen(where, &h->listen_fd, err);
	if (st == TW_OK)
		st = tw_http_pools_start(h, err);
	if (st == TW_OK)
		st = tw_watch_start(
		        app->config->connection_timeout_s, app->metrics, &h->watch, err);
	if (st == TW_OK) {
		h->daemon = start_daemon(h);
		if (!h->daemon)
			st = tw_fail(err, TW_IO, TW_NO_OFFSET, "cannot start the HTTP server: %s",
			        strerror(errno));
	}
	if (st == TW_OK)
		*ret = h;
	else
		(void)tw_http_stop(h);
	return st;
}

void tw_http_drain(struct tw_http *h, unsigned seconds)
{
	const struct timespec step = {.tv_nsec = 20000000};
	uint64_t end = tw_http_now_ns() + seconds * 1000000000ull;
	MHD_socket fd = MHD_quiesce_daemon(h->daemon);

	if (fd != MHD_INVALID_SOCKET) {
		(void)close(fd);
		h->listen_fd = -1;
	}
	while (atomic_load(&h->requests) > 0 && tw_http_now_ns() < end)
		(void)nanosleep(&step, NULL);
}

struct tw_http *tw_http_stop(struct tw_http *h)
{
	if (!h)
		return NULL;
	/* The pools first: no connection may be suspended when the daemon stops. */
	tw_http_pools_end(h);
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	else if (h->listen_fd >= 0)
		(void)close(h->listen_fd);
	tw_http_pools_stop(h);
	h->watch = tw_watch_stop(h->watch);
	tw_mem_free(h);
	return NULL;
}
