/*
 * http_int.h - what http.c, http_judge.c, http_request.c and http_reply.c share; nobody else
 * includes it.
 *
 * Life of a request, one arrow a callback of libmicrohttpd:
 *
 *   NEW ──headers──▶ BODY ──pieces──▶ BODY ──end──▶ DONE ──reply queued──▶ freed
 *    │ refused           │ refused: the rest        └▶ LAST ─▶ POOLED (suspended) ──resumed──▶ DONE
 *    └──────▶ DONE       ▼ is swallowed within limits
 */
#ifndef TW_HTTP_INT_H
#define TW_HTTP_INT_H

#include <stdatomic.h>

#include "app.h"
#include "http.h"
#include "http_encode.h"
#include "http_path.h"
#include "http_pool.h"
#include "metrics.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

struct tw_http {
	struct tw_app *app;
	struct MHD_Daemon *daemon;
	struct tw_pool *pool;
	const struct tw_route *routes;
	size_t n_routes;
	int listen_fd;
	_Atomic int requests; /* under way */
	_Atomic int uploads;
	_Atomic uint64_t ids;
};

enum tw_phase { TW_PHASE_NEW, TW_PHASE_BODY, TW_PHASE_LAST, TW_PHASE_POOLED, TW_PHASE_DONE };

enum { TW_MAX_HEADERS = 12, TW_REQ_ID = 17 };

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
	enum tw_phase phase;
	enum tw_status refused; /* TW_OK, or why the rest of the body is only swallowed */
	struct tw_err err;
	bool counted_upload;
	bool begun;   /* route->begin was called and neither end nor abort finished the request */
	bool expects; /* Expect: 100-continue: no body byte is on its way yet */
	bool hurried; /* tw_req_hurry */
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

/* What of the request line and headers is ours to refuse; the reply then closes the connection. */
enum tw_status tw_req_judge_headers(
        struct tw_req *r, const char *version, struct tw_err *err) TW_MUST_USE;
/* Has the client closed its sending side, with nothing left to read? */
bool tw_req_client_left(const struct tw_req *r);
/* The connection ends after a second without a byte, or as configured again. */
void tw_req_hurry(const struct tw_req *r, bool hurry);

/* The reply that tells r->err; never fails but for memory, when there is none. */
void tw_reply_error(struct tw_req *r);

#endif
