/*
 * http_int.h - what http.c, http_judge.c, http_pools.c, http_request.c and http_reply.c share;
 * nobody else includes it.
 *
 * Life of a request, one arrow a callback of libmicrohttpd:
 *
 *   NEW ──headers──▶ BODY ──pieces──▶ BODY ──end──▶ DONE ──reply queued──▶ freed
 *    │ refused           │ refused: the rest        └▶ LAST ─▶ POOLED (suspended) ──resumed──▶ DONE
 *    └──────▶ DONE       ▼ is swallowed within limits
 */
#ifndef TW_HTTP_INT_H
#define TW_HTTP_INT_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include "app.h"
#include "http.h"
#include "http_encode.h"
#include "http_path.h"
#include "metrics.h"
#include "pool.h"

struct tw_watch;

struct tw_http {
	struct tw_app *app;
	struct MHD_Daemon *daemon;
	struct tw_pool *pool;
	struct tw_pool *arrivals; /* of uploads; NULL: there are none */
	struct tw_pool *outbound; /* of routes that wait for other servers; NULL: there are none */
	struct tw_pool *by_child; /* of routes that wait for children; NULL: there are none */
	struct tw_watch *watch;
	const struct tw_route *routes;
	size_t n_routes;
	int listen_fd;
	bool for_metrics;     /* answers routes marked `metrics` and nothing else */
	_Atomic int requests; /* under way */
	_Atomic int uploads;
	_Atomic uint64_t ids;
};

enum tw_phase { TW_PHASE_NEW, TW_PHASE_BODY, TW_PHASE_LAST, TW_PHASE_POOLED, TW_PHASE_DONE };

enum { TW_MAX_HEADERS = 16, TW_REQ_ID = 17 };

struct tw_req {
	struct tw_pool_task task; /* first: the pool hands it back */
	struct tw_http *http;
	struct MHD_Connection *connection;
	struct tw_arena *arena;
	const struct tw_route *route; /* NULL: none matched */
	struct tw_target target;
	size_t target_bytes; /* as sent */
	struct tw_caller caller;
	const char *method;
	char id[TW_REQ_ID];
	char address[INET6_ADDRSTRLEN]; /* of the client */
	bool proxy_https;               /* what a trusted proxy said; else false, empty and NULL */
	struct tw_str proxy_host;
	const char *proxy_user;
	enum tw_phase phase;
	enum tw_status refused; /* TW_OK, or why the rest of the body is only swallowed */
	struct tw_err err;
	bool counted_upload;
	bool begun;   /* route->begin was called and neither end nor abort finished the request */
	bool expects; /* Expect: 100-continue: no body byte is on its way yet */
	bool hurried; /* tw_req_hurry */
	bool took_quota;   /* of the key; what came is settled at the end */
	uint64_t declared; /* Content-Length; UINT64_MAX: chunked */
	uint64_t got;      /* body bytes */
	uint64_t max_body;
	uint64_t started_ns, deadline_ns;
	void *state; /* the route's */
	struct tw_pair headers[TW_MAX_HEADERS];
	size_t n_headers;
	bool own_encoding; /* the route set Content-Encoding */
	int http_code;     /* of the reply */
	struct MHD_Response *response;
};

uint64_t tw_http_now_ns(void);
/* The next request's id. */
void tw_http_make_id(struct tw_http *h, char out[TW_REQ_ID]);
/* The client's address as a number; of IPv4 inside IPv6 the former. */
void tw_http_address(struct MHD_Connection *connection, char ret[INET6_ADDRSTRLEN]);

/* A server of its own at that address; `for_metrics`: it answers /metrics and nothing else. */
enum tw_status tw_http_start_at(const char *where, bool for_metrics, struct tw_app *app,
        struct tw_http **ret, struct tw_err *err) TW_MUST_USE;

enum tw_status tw_http_pools_start(struct tw_http *h, struct tw_err *err) TW_MUST_USE;
void tw_http_pools_end(struct tw_http *h);  /* requests that end later are refused */
void tw_http_pools_stop(struct tw_http *h); /* once no event loop runs */
/* Where that request's route ends. */
struct tw_pool *tw_http_pool_of(const struct tw_req *r);

/* A socket that listens on "ADDRESS:PORT". */
enum tw_status tw_http_listen(const char *where, int *ret_fd, struct tw_err *err) TW_MUST_USE;

/* Descriptors for so many connections and the rest, as far as the system lets us; told in the log
 * when that is not enough. */
void tw_http_need_descriptors(unsigned connections);

/* Connections whose next headers are not in after so many seconds are ended, however often they
 * send a byte.  Stopped when there is no connection any more. */
enum tw_status tw_watch_start(unsigned seconds, struct tw_metrics *metrics, struct tw_watch **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_watch *tw_watch_stop(struct tw_watch *w); /* NULL is fine; returns NULL */
/* For libmicrohttpd, with the watch as cls: a connection begins or ends. */
void tw_watch_connection(void *cls, struct MHD_Connection *connection, void **context,
        enum MHD_ConnectionNotificationCode what);
/* Its headers are awaited from now on, or are in. */
void tw_watch_waits(struct tw_watch *w, struct MHD_Connection *connection, bool waits);

/* Sets r->route, and r->method where a header says it; refused in words where there is none. */
enum tw_status tw_req_find_route(struct tw_req *r, struct tw_err *err) TW_MUST_USE;

/* What of the request line and headers is ours to refuse; the reply then closes the connection. */
enum tw_status tw_req_judge_headers(
        struct tw_req *r, const char *version, struct tw_err *err) TW_MUST_USE;
/* Takes from a trusted proxy, and from nobody else, what it says of its client. */
enum tw_status tw_req_hear_proxy(struct tw_req *r, struct tw_err *err) TW_MUST_USE;
/* A change that comes without a key may only come from our own page: what the browser says of where
 * it was made is believed when it is a no. */
enum tw_status tw_req_judge_origin(const struct tw_req *r, struct tw_err *err) TW_MUST_USE;
/* The caller's key may send that request (quota.h), or TW_RATE. */
enum tw_status tw_req_take_quota(struct tw_req *r, struct tw_err *err) TW_MUST_USE;
void tw_req_settle_quota(struct tw_req *r);
/* Has the client closed its sending side, with nothing left to read? */
bool tw_req_client_left(const struct tw_req *r);
/* The connection ends after a second without a byte, or as configured again. */
void tw_req_hurry(const struct tw_req *r, bool hurry);

/* The reply that tells r->err; never fails but for memory, when there is none. */
void tw_reply_error(struct tw_req *r);

#endif
