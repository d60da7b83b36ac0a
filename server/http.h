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
 * same thread (routes marked slow end on the query pool).
 */
#ifndef TW_HTTP_H
#define TW_HTTP_H

#include <jansson.h>

#include "auth.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct tw_app;
struct tw_req;

struct tw_route {
	const char *method;  /* "GET" also answers HEAD */
	const char *path;    /* "/api/v1/traces/{id}/flame"; one {name} per segment; a last segment
	                      * {*} takes the rest */
	enum tw_scope scope; /* what the caller must hold (auth.h) */
	bool slow;           /* `end` runs on the query pool, not on an event loop */
	uint64_t (*max_body)(const struct tw_app *);               /* NULL: a body is refused */
	enum tw_status (*begin)(struct tw_req *, struct tw_err *); /* may be NULL */
	enum tw_status (*body)(
	        struct tw_req *, const void *, size_t, struct tw_err *); /* repeated */
	enum tw_status (*end)(struct tw_req *, struct tw_err *);         /* must reply */
	void (*abort)(struct tw_req *); /* may be NULL; after any failure or when the client left */
	const char *summary;            /* one line for people */
};

/* What is known of a request; all strings live until its end. */
struct tw_app *tw_req_app(const struct tw_req *r);
struct tw_arena *tw_req_arena(const struct tw_req *r);
const struct tw_caller *tw_req_caller(const struct tw_req *r); /* never NULL */
const char *tw_req_method(const struct tw_req *r);
const char *tw_req_url(const struct tw_req *r); /* path without query */
const char *tw_req_path(
        const struct tw_req *r, const char *name); /* template piece, decoded; NULL */
const char *tw_req_query(const struct tw_req *r, const char *name);  /* first value, NULL absent */
const char *tw_req_header(const struct tw_req *r, const char *name); /* NULL absent */
uint64_t tw_req_content_length(const struct tw_req *r); /* UINT64_MAX: not told (chunked) */
void tw_req_set_state(struct tw_req *r, void *state);
void *tw_req_state(const struct tw_req *r);
/* Milliseconds left until the query deadline; 0 when it has passed. */
uint64_t tw_req_ms_left(const struct tw_req *r);

/* Query numbers: absent gives dflt; malformed or outside min..max is TW_BAD_REQUEST naming it. */
enum tw_status tw_req_query_i64(const struct tw_req *r, const char *name, int64_t dflt, int64_t min,
        int64_t max, int64_t *ret, struct tw_err *err) TW_MUST_USE;

/* Replies; one per request.  Headers set before count for whichever reply follows. */
void tw_req_set_header(struct tw_req *r, const char *name, const char *value);
/* Takes the reference to json, also on failure. */
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

/* The routes of each area, in one list (routes.c). */
const struct tw_route *tw_routes(size_t *ret_n);

#endif
