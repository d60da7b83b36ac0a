/*
 * http.c - the server's loop: turns libmicrohttpd's callbacks into begin, body, end and abort.
 *
 * libmicrohttpd 0.9.75 accepts a reply before the body, and then closes the connection, or after
 * it. So a refusal is sent immediately if a large body follows, or in the middle of one by our own
 * code (tw_reply_error_now), and the socket lingers (tw_watch_linger): clients that send everything
 * before they read receive the reply, and others stop sending.  The rest of a small body is
 * discarded first, and the connection stays open.
 *
 * Looking up a caller may wait for a database, so it is done on a pool, with the connection
 * suspended, like the `end` of slow routes.  When a connection is resumed while the
 * library still expects data, it is read first, and dropped if its client has closed its sending
 * side: so a small body is buffered to its end, and the connection is suspended then.
 */
#include <microhttpd.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/auth/auth.h"
#include "server/base/caller.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/catalogue.h"
#include "server/http/http_int.h"
#include "server/http/limit/response_memory.h"

/* Memory is twice the limit of http_head.c, so that refusals come from there.  When the headers
 * are read, the library's buffer has at most the part of SMALL_BODY that the client sent with
 * them. */
enum {
	CONNECTION_MEMORY = 128 << 10,
	STACK_BYTES = 512 << 10,
	SMALL_BODY = 64 << 10,
	GRACE_MS = 500,
	ABANDONED = 499 /* as in nginx: only for log and metrics, because no client receives it */
};
/* Connections above the limit, to which idle ones give way: per event loop, and per 8 allowed. */
enum { SPARE_CONNECTIONS = 16, SPARE_SHARE = 8 };
static const size_t request_memory = (size_t)512 << 20;

/* --- begin: evaluates the headers --- */

static void read_length(struct tw_req *r)
{
	const char *length = tw_req_header(r, "Content-Length");
	const char *expect = tw_req_header(r, "Expect");

	r->expects = expect && strcasecmp(expect, "100-continue") == 0;
	if (tw_req_header(r, "Transfer-Encoding")) {
		r->declared = UINT64_MAX;
		/* not every bare LF in chunks can be seen (is_after_bare_lf): if a proxy sees
		 * another end of the body, it must not get a second request in */
		tw_req_set_header(r, "Connection", "close");
	} else if (!length || !tw_str_u64(tw_str_of(length), UINT64_MAX - 1, &r->declared))
		r->declared = 0; /* libmicrohttpd has refused invalid numbers */
}

static enum tw_status check_length(struct tw_req *r, struct tw_err *err)
{
	r->max_body = r->route->max_body ? r->route->max_body(r->http->parts.config) : 0;
	if (r->max_body == 0 && r->declared != 0)
		return tw_fail(err, TW_TOO_LARGE, "this request takes no body");
	if (r->declared != UINT64_MAX && r->declared > r->max_body)
		return tw_fail(err, TW_TOO_LARGE, "the body is larger than the limit of %llu bytes",
		        (unsigned long long)r->max_body);
	return TW_OK;
}

static bool changes_state(const struct tw_req *r)
{
	return strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0;
}

static enum tw_status identify_caller(struct tw_req *r, struct tw_err *err)
{
	const struct tw_credentials shown = {
	        .authorization = tw_req_header(r, "Authorization"),
	        .cookie = tw_req_header(r, "Cookie"),
	        .csrf = tw_req_header(r, "X-Tracewell"),
	        .project = tw_target_query(&r->target, "project"),
	        .address = r->address,
	        .user = r->proxy_user,
	        .changes_state = changes_state(r),
	        .session_cookie = tw_req_cookie_name(r, TW_SESSION_COOKIE),
	};
	enum tw_status st;

	if (r->route->needs == TW_NEED_PUBLIC && !r->route->knows_caller)
		return TW_OK;
	st = tw_auth_caller(r->http->parts.catalogue, &shown, &r->caller, err);
	return st == TW_OK ? tw_auth_allows(&r->caller, r->route->needs, err) : st;
}

static enum tw_status take_upload_slot(struct tw_req *r, struct tw_err *err)
{
	const struct tw_caller *who = &r->caller;
	enum tw_status st;

	if (!r->route->upload)
		return TW_OK;
	if (r->came_during_shutdown)
		return tw_fail(err, TW_BUSY, "the server is shutting down; send the request again");
	st = tw_slots_take(r->http->slots, who->key_id[0] ? who->key_id : who->user_id, r->address,
	        &r->slot, err);
	if (st == TW_OK)
		tw_metrics_uploads_open(r->http->parts.metrics, 1);
	return st;
}

/* All checks that need neither a caller nor waiting. */
static enum tw_status find_target(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = r->refused; /* set if the target did not parse */

	if (st == TW_OK)
		st = tw_req_find_route(r, err);
	if (st == TW_OK && !r->route->quiet && tw_watch_is_surplus(r->connection)) {
		tw_req_set_header(r, "Connection", "close");
		st = tw_fail(err, TW_BUSY, "all %u connections are in use; retry later",
		        r->http->parts.config->connections);
	}
	if (st == TW_OK && changes_state(r))
		st = tw_req_check_origin(r, err);
	return st;
}

/* Without credentials there is no lookup. */
static bool needs_lookup(const struct tw_req *r)
{
	return (r->route->needs != TW_NEED_PUBLIC || r->route->knows_caller) &&
	       (tw_req_header(r, "Authorization") || tw_req_header(r, "Cookie") || r->proxy_user);
}

static enum tw_status admit_request(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = identify_caller(r, err);

	if (st == TW_OK)
		st = tw_req_check_values(r, err);
	if (st == TW_OK)
		st = check_length(r, err);
	if (st == TW_OK)
		st = tw_req_take_quota(r, err);
	if (st == TW_OK)
		st = take_upload_slot(r, err);
	if (st != TW_OK)
		return st;
	r->begun = true;
	return r->route->begin ? r->route->begin(r, err) : TW_OK;
}

/* --- the body --- */

static enum tw_status take_body(struct tw_req *r, const void *p, size_t n, struct tw_err *err)
{
	if (r->got > r->max_body)
		return tw_fail_at(err, TW_TOO_LARGE, r->max_body,
		        "the body is larger than the limit of %llu bytes",
		        (unsigned long long)r->max_body);
	return r->route->body ? r->route->body(r, p, n, err) : TW_OK;
}

/* Passes the buffered body to the route, as the caller is now known. */
static enum tw_status pass_buffered_body(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_buf_status(&r->early);

	if (st != TW_OK)
		return tw_fail(err, st, "out of memory for the body");
	if (r->early.len)
		st = take_body(r, r->early.data, r->early.len, err);
	tw_buf_done(&r->early);
	return st;
}

/* --- the end of a request --- */

static void drop_connection(struct tw_req *r)
{
	if (r->begun && r->route->abort)
		r->route->abort(r);
	r->begun = false;
}

static void release_upload_slot(struct tw_req *r)
{
	if (!r->slot.held)
		return;
	tw_slots_release(r->http->slots, &r->slot);
	tw_metrics_uploads_open(r->http->parts.metrics, -1);
}

static void refuse(struct tw_req *r, enum tw_status st)
{
	drop_connection(r);
	release_upload_slot(r);
	r->refused = st;
}

/* Sets the actor of this thread's changes. */
static void set_actor(const struct tw_req *r)
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

	set_actor(r);
	st = pass_buffered_body(r, &r->err);
	if (st == TW_OK)
		st = r->route->end(r, &r->err);
	tw_actor_set(NULL);
	st = tw_req_held(r, st, &r->err);
	if (st == TW_OK && r->waits)
		return;
	r->waits = false;
	if (st == TW_OK && !r->response)
		st = tw_fail(&r->err, TW_BUG, "the handler returned no response");
	if (st == TW_OK)
		r->begun = false;
	else
		refuse(r, st);
}

/* Log and metrics use the new target, but the requested route. */
enum tw_status tw_req_forward(
        struct tw_req *r, const struct tw_caller *as, const char *target, struct tw_err *err)
{
	const struct tw_route *requested = r->route;
	struct tw_target inner = {.path = NULL};
	enum tw_status st = tw_target_parse(r->arena, target, &inner, err);

	if (st != TW_OK)
		return st;
	tw_req_hold_for(r, as);
	inner.authority = r->target.authority;
	r->target = inner;
	r->caller = *as;
	st = tw_req_find_route(r, err);
	if (st == TW_OK)
		st = tw_auth_allows(as, r->route->needs, err);
	if (st == TW_OK)
		st = tw_req_check_values(r, err);
	if (st == TW_OK && (r->route == requested || r->route->begin))
		st = tw_fail(err, TW_BUG, "this route cannot be resumed");
	if (st == TW_OK)
		st = r->route->end(r, err);
	r->route = requested;
	return st;
}

/* Loops that return partial results check the deadline themselves; everything else is ended a
 * little later. */
static void limit_work(struct tw_req *r)
{
	uint64_t grace_ms = r->http->parts.config->query_deadline_ms / 10 + GRACE_MS;

	if ((changes_state(r) && !r->route->read_only) || r->route->outbound || r->route->by_child)
		return;
	r->abandoned = tw_watch_abandoned(r->connection);
	tw_work_limit_set((struct tw_work_limit){
	        (int64_t)(r->deadline_ns / 1000000 + grace_ms), r->abandoned});
}

static void run_pooled(struct tw_pool_task *task, bool stopping)
{
	struct tw_req *r = (struct tw_req *)task;
	enum tw_status st = tw_req_hold(r, &r->err);

	if (stopping)
		st = tw_fail(&r->err, TW_BUSY, "the server is shutting down");
	if (st != TW_OK) {
		refuse(r, st);
	} else {
		if (r->reservation)
			(void)tw_mem_count_for(&r->reservation->account);
		limit_work(r);
		run_end(r);
		tw_work_limit_set((struct tw_work_limit){0});
	}
	if (r->is_waiting) {
		release_upload_slot(r); /* its body is stored */
		if (tw_req_keeps_waiting(r))
			return;
		if (r->refused == TW_OK && !r->response)
			refuse(r, tw_fail(&r->err, TW_BUSY, "the server is shutting down"));
	}
	(void)MHD_resume_connection(r->connection);
}

static void run_lookup(struct tw_pool_task *task, bool stopping)
{
	struct tw_req *r = (struct tw_req *)task;
	enum tw_status st;

	if (stopping)
		st = tw_fail(&r->err, TW_BUSY, "the server is shutting down");
	else
		st = admit_request(r, &r->err);
	if (st == TW_OK && r->phase == TW_PHASE_BODY)
		st = pass_buffered_body(r, &r->err);
	if (st != TW_OK)
		refuse(r, st);
	if (st != TW_OK || r->phase != TW_PHASE_POOLED) {
		(void)MHD_resume_connection(r->connection);
	} else if (!r->route->on_loop) {
		r->task.run = run_pooled;
		r->task.owner = tw_http_owner_of(r);
		if (!tw_pool_submit(tw_http_pool_of(r), task))
			run_pooled(task, true);
	} else {
		run_pooled(task, false);
	}
}

/* Only the task uses the request until it resumes the connection. */
static void suspend_for(struct tw_req *r, struct tw_pool *pool,
        void (*run)(struct tw_pool_task *task, bool stopping))
{
	r->task.run = run;
	r->task.owner = tw_http_owner_of(r); /* the client's address until its caller is known */
	MHD_suspend_connection(r->connection);
	if (!tw_pool_submit(pool, &r->task))
		run(&r->task, true);
}

/* A ticket is a secret while it is valid. */
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

static void account(struct tw_req *r)
{
	release_upload_slot(r);
	tw_metrics_request(
	        r->http->parts.metrics, &(struct tw_metrics_request){r->route, r->http_code,
	                                        tw_http_now_ns() - r->started_ns, r->got});
	log_request(r);
}

static enum MHD_Result send_reply(struct tw_req *r)
{
	enum MHD_Result sent;

	if (tw_req_is_abandoned(r)) {
		r->phase = TW_PHASE_DONE;
		r->http_code = ABANDONED;
		tw_metrics_request_abandoned(r->http->parts.metrics);
		account(r);
		return MHD_NO;
	}
	if (r->refused != TW_OK)
		tw_reply_error(r);
	if (!r->response)
		return MHD_NO;
	if (!r->body_complete && r->declared)
		tw_watch_linger(r->connection);
	r->phase = TW_PHASE_DONE;
	sent = MHD_queue_response(r->connection, (unsigned)r->http_code, r->response);
	MHD_destroy_response(r->response);
	r->response = NULL;
	account(r);
	return sent;
}

static bool much_is_unread(const struct tw_req *r)
{
	return r->declared == UINT64_MAX || r->declared - r->got > SMALL_BODY;
}

/* Refuses before the body, or at its end if it is small. */
static enum MHD_Result reply_refusal(struct tw_req *r)
{
	if (r->declared && (r->expects || much_is_unread(r)))
		return send_reply(r);
	r->phase = TW_PHASE_BODY;
	tw_watch_wait(r->http->watch, r->connection, TW_WAIT_IDLE);
	return MHD_YES;
}

/* Refuses within the body. */
static enum MHD_Result reply_refusal_now(struct tw_req *r)
{
	if (!much_is_unread(r))
		return MHD_YES;
	r->phase = TW_PHASE_DONE;
	tw_reply_error_now(r);
	tw_watch_linger(r->connection);
	account(r);
	return MHD_NO;
}

/* --- callbacks --- */

/* The first callback: the target as sent, before libmicrohttpd decodes it. */
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
	tw_buf_init(&r->early, SMALL_BODY);
	r->target_bytes = strlen(raw);
	r->refused = tw_target_parse(a, raw, &r->target, &r->err);
	(void)atomic_fetch_add(&h->requests, 1);
	tw_metrics_requests_open(h->parts.metrics, 1);
	return r;
}

/* If the client's shutdown arrived in one packet with the bytes before it, epoll does not report it
 * again.  The library may hold more of the body here, so the connection only gets a shorter
 * timeout. */
static void check_peer_shutdown(struct tw_req *r)
{
	if (r->timeout_shortened || r->declared == 0 || !tw_req_client_left(r))
		return;
	r->timeout_shortened = true;
	tw_req_shorten_timeout(r, true);
}

/* A small body is buffered in the meantime, and the caller is looked up once it is complete. */
static enum MHD_Result begin_lookup(struct tw_req *r)
{
	const bool large = r->declared != UINT64_MAX && r->declared > SMALL_BODY;

	if (r->declared && (r->expects || large || r->route->partial)) {
		r->phase = TW_PHASE_CALLER;
		suspend_for(r, r->http->callers, run_lookup);
		return MHD_YES;
	}
	r->phase = TW_PHASE_HELD;
	tw_watch_wait(r->http->watch, r->connection, TW_WAIT_HELD);
	check_peer_shutdown(r);
	return MHD_YES;
}

static enum MHD_Result begin_body(struct tw_req *r)
{
	if (r->refused != TW_OK)
		return reply_refusal(r);
	r->phase = TW_PHASE_BODY;
	tw_watch_wait(r->http->watch, r->connection, TW_WAIT_BODY);
	check_peer_shutdown(r);
	return MHD_YES;
}

static enum MHD_Result on_headers(struct tw_req *r, const char *method, const char *version)
{
	enum tw_status st;

	tw_watch_wait(r->http->watch, r->connection, TW_WAIT_SERVER);
	r->method = tw_arena_str(r->arena, tw_str_of(method));
	if (!r->method || !r->target.path)
		return MHD_NO;
	r->deadline_ns = tw_http_now_ns() + r->http->parts.config->query_deadline_ms * 1000000ull;
	r->came_during_shutdown = r->http->stopping;
	read_length(r);
	st = tw_req_validate_headers(r, method, version, &r->err);
	if (st == TW_OK)
		st = tw_req_read_proxy(r, &r->err);
	if (st != TW_OK) {
		refuse(r, st);
		return send_reply(r);
	}
	st = find_target(r, &r->err);
	if (st == TW_OK && needs_lookup(r))
		return begin_lookup(r);
	if (st == TW_OK)
		st = admit_request(r, &r->err);
	if (st != TW_OK)
		refuse(r, st);
	return begin_body(r);
}

/* This piece completes the received bytes of a body of known length, so a shutdown now means that
 * it is truncated. */
static bool is_truncated(struct tw_req *r)
{
	if (r->declared == UINT64_MAX)
		check_peer_shutdown(r);
	else if (r->got < r->declared)
		return tw_req_client_left(r);
	return false;
}

/* The library also accepts a bare LF after a chunk's size.  The line is in its buffer if the piece
 * begins a chunk and both were received together; otherwise a NUL precedes the piece. */
static bool is_after_bare_lf(const struct tw_req *r, const char *data)
{
	return r->declared == UINT64_MAX && data[-1] == '\n' && data[-2] != '\r';
}

/* *ret_n: the bytes left for the next call. */
static enum MHD_Result on_piece(struct tw_req *r, const char *data, size_t *ret_n)
{
	const size_t n = *ret_n;
	enum tw_status st = TW_OK;

	if (r->phase == TW_PHASE_HELD && r->refused == TW_OK && r->early.len + n > SMALL_BODY) {
		r->phase = TW_PHASE_BODY;
		tw_watch_wait(r->http->watch, r->connection, TW_WAIT_BODY);
		suspend_for(r, r->http->callers, run_lookup);
		return MHD_YES;
	}
	*ret_n = 0;
	r->got += n;
	tw_watch_got(r->connection, n);
	if (is_truncated(r))
		return MHD_NO;
	if (r->refused != TW_OK)
		return reply_refusal_now(r);
	if (is_after_bare_lf(r, data))
		st = tw_fail(&r->err, TW_BAD_REQUEST, "a chunk's size does not end with CRLF");
	else if (r->phase == TW_PHASE_HELD)
		(void)tw_buf_add(&r->early, data, n);
	else
		st = take_body(r, data, n, &r->err);
	if (st == TW_OK)
		return MHD_YES;
	refuse(r, st);
	tw_watch_wait(r->http->watch, r->connection, TW_WAIT_IDLE);
	return reply_refusal_now(r);
}

/* The library must have finished reading before the connection is suspended: otherwise it reads
 * again on resuming, and drops a client that has closed its sending side.  So the first call after
 * the body only requests a second one, which comes immediately. */
static enum MHD_Result on_end(struct tw_req *r)
{
	const bool begin_lookup = r->phase == TW_PHASE_HELD;

	r->body_complete = true;
	if (r->timeout_shortened) {
		r->timeout_shortened = false;
		tw_req_shorten_timeout(r, false);
	}
	tw_watch_wait(r->http->watch, r->connection, TW_WAIT_SERVER);
	if (r->refused == TW_OK &&
	        (begin_lookup || (!r->route->on_loop && r->phase == TW_PHASE_BODY))) {
		r->lookup_pending = begin_lookup;
		r->phase = TW_PHASE_LAST;
		return MHD_YES;
	}
	if (r->phase == TW_PHASE_LAST) {
		r->phase = TW_PHASE_POOLED;
		if (r->lookup_pending)
			suspend_for(r, r->http->callers, run_lookup);
		else
			suspend_for(r, tw_http_pool_of(r), run_pooled);
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

	(void)cls;
	(void)connection;
	(void)url;
	if (!r)
		return MHD_NO;
	if (r->phase == TW_PHASE_NEW)
		return on_headers(r, method, version);
	if (r->phase == TW_PHASE_POOLED)
		return send_reply(r);
	if (r->phase == TW_PHASE_CALLER)
		return begin_body(r);
	return *data_len ? on_piece(r, data, data_len) : on_end(r);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
        enum MHD_RequestTerminationCode how)
{
	struct tw_req *r = *con_cls;
	struct tw_http *h = cls;

	if (!r)
		return;
	if (r->phase != TW_PHASE_DONE)
		tw_log(TW_LOG_INFO, "request_aborted", tw_log_text("id", r->id),
		        tw_log_text("method", r->method), tw_log_text("path", loggable_path(r)),
		        tw_log_number("bytes_in", (int64_t)r->got), tw_log_number("how", how));
	drop_connection(r);
	release_upload_slot(r);
	tw_req_finalize_quota(r);
	if (r->response)
		MHD_destroy_response(r->response);
	tw_metrics_requests_open(h->parts.metrics, -1);
	tw_watch_wait(h->watch, connection, TW_WAIT_IDLE);
	tw_buf_done(&r->early);
	*con_cls = NULL;
	tw_req_release(r);
	(void)tw_arena_free(r->arena); /* r itself is allocated there */
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

/* --- pools: threads for slow routes, by the resource they wait for --- */

/* Callers are looked up in the catalogue, which may be an unresponsive remote database.  Queries
 * wait for processors, uploads for preflight and the disk, some routes for other servers or for
 * child processes: each kind has its own pool, so that none blocks another.  Within a pool,
 * projects are scheduled fairly (pool.h). */

/* With a remote store, arrivals wait for it.  The children's pool has a few more threads than
 * requests that may wait for children, so that excess requests are refused immediately. */
enum {
	CALLER_THREADS = 4,
	CALLER_THREADS_SHARED = 16,
	ARRIVAL_THREADS = 8,
	ARRIVAL_THREADS_REMOTE = 32,
	OUTBOUND_THREADS = 4,
	CHILD_THREADS = TW_CHILD_WAITERS + 4
};

_Static_assert((int)CHILD_THREADS > (int)TW_CHILD_WAITERS,
        "an excess request needs a thread to be refused");

static enum tw_status start_pools(struct tw_http *h, struct tw_err *err)
{
	const struct tw_config *c = h->parts.config;
	enum tw_status st = tw_pool_start(h->for_metrics ? 1 : c->query_threads, &h->pool, err);

	if (st == TW_OK)
		st = tw_pool_start(h->parts.catalogue && tw_catalogue_is_shared(h->parts.catalogue)
		                           ? CALLER_THREADS_SHARED
		                           : CALLER_THREADS,
		        &h->callers, err);
	if (st == TW_OK && !h->for_metrics)
		st = tw_pool_start(c->storage.blobs[0] ? ARRIVAL_THREADS_REMOTE : ARRIVAL_THREADS,
		        &h->arrivals, err);
	if (st == TW_OK && *c->oidc.issuer && !h->for_metrics)
		st = tw_pool_start(OUTBOUND_THREADS, &h->outbound, err);
	if (st == TW_OK && c->repositories && *c->repositories && !h->for_metrics)
		st = tw_pool_start(CHILD_THREADS, &h->by_child, err);
	return st;
}

/* --- start and stop --- */

static void each_second(struct tw_periodic *p, void *arg)
{
	(void)p;
	tw_http_memory_tick(arg);
}

/* The library accepts no connections above its limit, so its limit must be higher than the one at
 * which idle connections give way. */
static unsigned spare_connections(const struct tw_config *c)
{
	return c->connections / SPARE_SHARE + c->http_threads * SPARE_CONNECTIONS;
}

static struct MHD_Daemon *start_daemon(struct tw_http *h)
{
	const struct tw_config *c = h->parts.config;
	const unsigned connections = c->connections + spare_connections(c);
	unsigned flags =
	        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem tls[TW_HTTP_TLS_OPTIONS];

	if (h->parts.tls)
		flags |= MHD_USE_TLS;
	tw_http_tls_options(h->parts.tls, tls);

	/* the logger must come first: it reports errors of later options */
	return MHD_start_daemon(flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER,
	        on_library_message, NULL, MHD_OPTION_LISTEN_SOCKET, h->listen_fd,
	        MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_NOTIFY_COMPLETED,
	        on_completed, h, MHD_OPTION_CONNECTION_LIMIT, connections,
	        MHD_OPTION_PER_IP_CONNECTION_LIMIT, c->connections_per_address,
	        MHD_OPTION_NOTIFY_CONNECTION, tw_watch_connection, h->watch,
	        MHD_OPTION_CONNECTION_TIMEOUT, c->connection_timeout_s,
	        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
	        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_THREAD_POOL_SIZE, c->http_threads,
	        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_ARRAY, tls,
	        MHD_OPTION_END);
}

enum tw_status tw_http_start_at(const char *where, bool for_metrics,
        const struct tw_http_parts *parts, struct tw_http **ret, struct tw_err *err)
{
	struct tw_http *h = tw_mem_zalloc(1, sizeof *h);
	enum tw_status st;

	if (!h)
		return tw_oom(err);
	h->parts = *parts;
	(void)pthread_mutex_init(&h->outflow_lock, NULL);
	h->listen_fd = -1;
	h->for_metrics = for_metrics;
	tw_http_need_descriptors(parts->config->connections + spare_connections(parts->config));
	randombytes_buf(&h->ids, sizeof h->ids);
	st = tw_http_listen(where, &h->listen_fd, err);
	if (st == TW_OK)
		st = start_pools(h, err);
	if (st == TW_OK)
		st = tw_slots_new(parts->config->max_in_flight, &h->slots, err);
	if (st == TW_OK)
		st = tw_watch_start(parts->config, parts->metrics, h->slots, &h->watch, err);
	if (st == TW_OK && parts->response_memory && !for_metrics)
		st = tw_periodic_start(&(struct tw_periodic_task){"memory", each_second, 1000}, h,
		        &h->memory, err);
	if (st == TW_OK) {
		h->daemon = start_daemon(h);
		if (!h->daemon)
			st = tw_fail_errno(err, TW_IO, "cannot start the HTTP server");
	}
	if (st == TW_OK)
		*ret = h;
	else
		(void)tw_http_stop(h);
	return st;
}

void tw_http_drain(struct tw_http *h, unsigned seconds)
{
	uint64_t end = tw_http_now_ns() + seconds * 1000000000ull;
	MHD_socket fd;

	atomic_store(&h->stopping, true);
	fd = MHD_quiesce_daemon(h->daemon);
	if (fd != MHD_INVALID_SOCKET) {
		(void)close(fd);
		h->listen_fd = -1;
	}
	while (atomic_load(&h->requests) > 0 && tw_http_now_ns() < end)
		tw_sleep_ms(20);
}

struct tw_http *tw_http_stop(struct tw_http *h)
{
	if (!h)
		return NULL;
	/* First resume suspended connections: there must be none when the daemon stops. */
	if (!h->for_metrics)
		tw_http_waits_end(h->parts.waits);
	/* requests that end later are refused; callers first: its tasks are passed on to the others
	 */
	tw_pool_end(h->callers);
	tw_pool_end(h->by_child);
	tw_pool_end(h->outbound);
	tw_pool_end(h->arrivals);
	tw_pool_end(h->pool);
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	else if (h->listen_fd >= 0)
		(void)close(h->listen_fd);
	h->by_child = tw_pool_stop(h->by_child); /* after all event loops have ended */
	h->outbound = tw_pool_stop(h->outbound);
	h->arrivals = tw_pool_stop(h->arrivals);
	h->pool = tw_pool_stop(h->pool);
	h->callers = tw_pool_stop(h->callers);
	h->memory = tw_periodic_stop(h->memory);
	h->watch = tw_watch_stop(h->watch);
	(void)pthread_mutex_destroy(&h->outflow_lock);
	h->slots = tw_slots_free(h->slots);
	tw_mem_free(h);
	return NULL;
}

const char *tw_http_owner_of(const struct tw_req *r)
{
	if (r->caller.project_id[0])
		return r->caller.project_id;
	return r->caller.user_id[0] ? r->caller.user_id : r->address;
}

struct tw_pool *tw_http_pool_of(const struct tw_req *r)
{
	if (r->route->outbound && r->http->outbound)
		return r->http->outbound;
	if (r->route->by_child && r->http->by_child)
		return r->http->by_child;
	return r->route->upload && r->http->arrivals ? r->http->arrivals : r->http->pool;
}
