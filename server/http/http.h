/*
 * http.h - requests, replies and the routes table; no libmicrohttpd type shows here.
 *
 * A request is begun when its headers are in (route known, caller known,
 * Content-Length judged), fed its body piece by piece, and ended; `end` must
 * reply or return an error, which http.c turns into
 * {"error":{"status","message","offset"}}.  `abort` is called instead of `end`
 * when the client went away, so that spool files go too.
 * JSON, text and stream replies are compressed by Accept-Encoding (zstd, gzip)
 * here, in one place.
 * Thread: all callbacks of one request run one after another, not always on the
 * same thread (routes marked slow end on a pool).
 */
#ifndef TW_HTTP_H
#define TW_HTTP_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"

struct tw_app;
struct tw_req;

struct tw_route {
	const char *method; /* "GET" also answers HEAD */
	const char *path;   /* "/api/v1/traces/{id}/flame"; one {name} per segment; a last segment
	                     * {*} takes the rest */
	enum tw_need needs; /* what the caller must hold; filled in from routes.def */
	unsigned roles;     /* of whom it is answered (role.h); filled in likewise */
	bool slow;          /* `end` runs on a pool, not on an event loop */
	bool knows_caller;  /* a PUBLIC route that answers by who asks */
	bool outbound;      /* a slow one that waits for another server: on a pool of its own */
	bool by_child;      /* a slow one that waits for a child of the server: likewise */
	bool metrics;       /* answered by config.metrics_listen alone when that is set */
	bool quiet;         /* logged only at debug when all went well: health checks */
	bool upload;  /* counts against config.max_in_flight until its reply is made, and ends on
	               * the uploads' pool */
	bool by_post; /* also by a POST with X-HTTP-Method-Override: not all clients can send PATCH
	               */
	bool partial; /* stores each piece of its body on arrival, so none is held until the caller
	               * is known */
	uint64_t (*max_body)(const struct tw_app *);               /* NULL: a body is refused */
	enum tw_status (*begin)(struct tw_req *, struct tw_err *); /* may be NULL */
	enum tw_status (*body)(
	        struct tw_req *, const void *, size_t, struct tw_err *); /* repeated */
	enum tw_status (*end)(struct tw_req *, struct tw_err *);         /* must reply */
	void (*abort)(struct tw_req *); /* may be NULL; after any failure or when the client left */
	const char *summary;            /* one line for people */
	const char *const
	        *parameters; /* of the query, ended by NULL; NULL: any.  routes.c sets it */
};

enum { TW_CHILD_ASKERS = 64 }; /* requests that wait for a child of the server at once */

/* What is known of a request; all strings live until its end. */
struct tw_app *tw_req_app(const struct tw_req *r);
struct tw_arena *tw_req_arena(const struct tw_req *r);
const struct tw_caller *tw_req_caller(const struct tw_req *r); /* never NULL */
const char *tw_req_method(const struct tw_req *r);
const char *tw_req_url(const struct tw_req *r); /* path without query */
const char *tw_req_path(
        const struct tw_req *r, const char *name); /* template piece, decoded; NULL */
const char *tw_req_query(const struct tw_req *r, const char *name); /* first value, NULL absent */
/* Calls fn for each query pair in order until one fails. */
enum tw_status tw_req_each_query(const struct tw_req *r,
        enum tw_status (*fn)(void *arg, const char *name, const char *value, struct tw_err *err),
        void *arg, struct tw_err *err) TW_MUST_USE;
const char *tw_req_header(const struct tw_req *r, const char *name); /* NULL absent */
uint64_t tw_req_content_length(const struct tw_req *r); /* UINT64_MAX: not told (chunked) */
/* Where the request comes from, as a number; "" when that is not known. */
const char *tw_req_address(const struct tw_req *r);
/* Does the client (a browser, behind any proxy) reach the server by https? */
bool tw_req_is_https(const struct tw_req *r);
/* "https://host", as the client reaches the server: config.public_url, else by what it sent; lives
 * as long as the request. */
const char *tw_req_base(const struct tw_req *r);
/* What a cookie is called there.  Browsers send a host's cookies to all its ports, so the port is
 * part of the name; on https TW_COOKIE_HOST precedes it. */
const char *tw_req_cookie_name(const struct tw_req *r, const char *name);
const char *tw_req_id(const struct tw_req *r); /* as in the log and X-Request-Id */
void tw_req_set_state(struct tw_req *r, void *state);
void *tw_req_state(const struct tw_req *r);
/* Milliseconds left until the query deadline; 0 when it has passed or the client has left. */
uint64_t tw_req_ms_left(const struct tw_req *r);

/* Query numbers: absent gives dflt; malformed or outside min..max is TW_BAD_REQUEST naming it. */
enum tw_status tw_req_query_i64(const struct tw_req *r, const char *name, int64_t dflt, int64_t min,
        int64_t max, int64_t *ret, struct tw_err *err) TW_MUST_USE;

/* Flags: absent gives dflt; 1, true, 0 or false, anything else is TW_BAD_REQUEST. */
enum tw_status tw_req_query_bool(const struct tw_req *r, const char *name, bool dflt, bool *ret,
        struct tw_err *err) TW_MUST_USE;
/* Would the client take this Content-Encoding ("zstd", "gzip")? */
bool tw_req_accepts(const struct tw_req *r, const char *coding);

/* Goes on as a GET of another target (path and query) for another caller, in the `end` of a slow
 * route: the target's route replies.  The caller must have been judged; its scope still is. */
enum tw_status tw_req_forward(struct tw_req *r, const struct tw_caller *as, const char *target,
        struct tw_err *err) TW_MUST_USE;

/* What a device may send (quota.h), once an upload said which it is; NULL or "" is none.  TW_RATE
 * where there is no room; judging counts nothing, charging does, and what is charged and then not
 * kept is refunded.  What is left is told in the reply's headers. */
enum tw_status tw_req_judge_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_req_charge_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
/* Of the request's key, for what comes another way than as its body. */
enum tw_status tw_req_charge_key(struct tw_req *r, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
void tw_req_refund_device(struct tw_req *r, const char *device, uint64_t bytes);

/* Replies; one per request.  Headers set before count for whichever reply follows. */
/* The value is copied; control characters are refused (the header is left out).  It replaces the
 * one before, but cookies stand beside each other.  A reply that was given a Content-Encoding this
 * way is sent as it is. */
void tw_req_set_header(struct tw_req *r, const char *name, const char *value);
void tw_req_unset_header(struct tw_req *r, const char *name);
/* Sets, behind what the header has already: "old, value". */
void tw_req_add_to_header(struct tw_req *r, const char *name, const char *value);
/* Sets ETag (the quotes are added here); when If-None-Match has it, replies 304 and says true: the
 * route then returns TW_OK at once. */
bool tw_req_reply_unchanged(struct tw_req *r, const char *etag);
/* No body: 204, or what `http` says. */
enum tw_status tw_req_reply_empty(struct tw_req *r, int http, struct tw_err *err);
/* Replies with what an equal request got by tw_req_reply_and_keep, when that is still there, and
 * says true.  Behind tw_req_reply_unchanged, whose ETag says on what the answer depends. */
bool tw_req_reply_again(struct tw_req *r, const char *type);
/* As tw_req_reply_buf of what is compressible, with 200; kept when it took long to make. */
enum tw_status tw_req_reply_and_keep(
        struct tw_req *r, const char *type, struct tw_buf *buf, struct tw_err *err) TW_MUST_USE;
/* Takes the reference to json, also on failure; json NULL is TW_NOMEM (a json_pack that failed). */
enum tw_status tw_req_reply_json(struct tw_req *r, int http, json_t *json, struct tw_err *err);
/* Takes buf's memory on success. `type` is the Content-Type; compressed when worth it and
 * `compressible`. */
enum tw_status tw_req_reply_buf(struct tw_req *r, int http, const char *type, bool compressible,
        struct tw_buf *buf, struct tw_err *err);
/* Bytes that live as long as the process (embedded files). */
enum tw_status tw_req_reply_static(struct tw_req *r, int http, const char *type, const void *p,
        size_t len, struct tw_err *err);

/* A reply of unknown length, pulled: read fills up to cap bytes, *ret_n 0 ends it; an error after
 * the first byte breaks the connection, so that a cut answer is seen as one. */
struct tw_stream_ops {
	enum tw_status (*read)(
	        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err);
	void (*free)(void *arg);
};
/* Takes arg, also on failure. */
enum tw_status tw_req_reply_stream(struct tw_req *r, int http, const char *type, bool compressible,
        const struct tw_stream_ops *ops, void *arg, struct tw_err *err);

/* The server itself.  Listens and answers by app->routes from then on; app outlives it. */
struct tw_http;
enum tw_status tw_http_start(
        struct tw_app *app, struct tw_http **ret, struct tw_err *err) TW_MUST_USE;
/* The same, at config.metrics_listen, and answers /metrics only. */
enum tw_status tw_http_start_metrics(
        struct tw_app *app, struct tw_http **ret, struct tw_err *err) TW_MUST_USE;
unsigned tw_http_port(const struct tw_http *h); /* the one in use when config said 0 */
/* Takes no new connection and waits until no request is under way, at most seconds. */
void tw_http_drain(struct tw_http *h, unsigned seconds);
/* Ends what is left and frees.  NULL is fine; returns NULL. */
struct tw_http *tw_http_stop(struct tw_http *h);

#endif
