/*
 * http.h - requests, replies and the routes table, without libmicrohttpd types.
 *
 * A request is begun once its headers are read (route and caller known, Content-Length checked),
 * fed its body in pieces, and ended.  `end` must reply or return an error, which http.c sends as
 * {"error":{"status","message","offset"}}.  `abort` is called instead of `end` if the client
 * disconnects, so that spool files are deleted.
 * JSON, text and stream replies are compressed here by Accept-Encoding (zstd, gzip).
 * Thread: the callbacks of a request run one after another, on different threads (`end` on
 * a pool unless the route says on_loop).
 */
#ifndef TW_HTTP_H
#define TW_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"
#include "server/base/role.h"

/* --- parameters --- */

/* The query parameters that a route declares: names, kinds, limits, defaults.  Requests are checked
 * against the declaration after their caller is known: a value of the wrong kind, an unknown name
 * or a missing required parameter is TW_BAD_REQUEST before `begin` and `end`.  Handlers therefore
 * read values without errors, and cannot read an undeclared name.  schema/openapi.py copies the
 * declarations to schema/openapi.json. */
struct tw_req;

enum tw_param_kind { TW_PARAM_IS_TEXT, TW_PARAM_IS_NUMBER, TW_PARAM_IS_FLAG, TW_PARAM_IS_ENUM };

struct tw_param {
	const char *name; /* NULL ends a list */
	enum tw_param_kind kind;
	bool optional;    /* NUMBER, FLAG, ENUM: has no default, or one that no value equals */
	bool required;    /* TEXT: present and not empty */
	bool repeated;    /* may be given several times */
	int64_t dflt;     /* NUMBER, FLAG */
	int64_t min, max; /* NUMBER; TEXT: max bytes, 0: no separate limit */
	const char *const *names; /* ENUM, ended by NULL; the default is the first */
	const char *about;        /* one description for schema/openapi.json; "": none */
};

/* Elements of a list of parameters, which ends with {0}. */
#define TW_PARAM_TEXT(name_, max_, about_)                                                         \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_TEXT, .max = (max_), .about = (about_)        \
	}
#define TW_PARAM_REQUIRED(name_, max_, about_)                                                     \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_TEXT, .required = true, .max = (max_),        \
		.about = (about_)                                                                  \
	}
#define TW_PARAM_NUMBER(name_, dflt_, min_, max_, about_)                                          \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_NUMBER, .dflt = (dflt_), .min = (min_),       \
		.max = (max_), .about = (about_)                                                   \
	}
#define TW_PARAM_OPTIONAL_NUMBER(name_, min_, max_, about_)                                        \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_NUMBER, .optional = true, .min = (min_),      \
		.max = (max_), .about = (about_)                                                   \
	}
#define TW_PARAM_FLAG(name_, dflt_, about_)                                                        \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_FLAG, .dflt = (dflt_), .about = (about_)      \
	}
#define TW_PARAM_ENUM(name_, names_, about_)                                                       \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_ENUM, .names = (names_), .about = (about_)    \
	}
#define TW_PARAM_OPTIONAL_ENUM(name_, names_, about_)                                              \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_ENUM, .optional = true, .names = (names_),    \
		.about = (about_)                                                                  \
	}

/* The parameters of a route: lists, one after the other. */
#define TW_PARAMS(...) ((const struct tw_param *const[]){__VA_ARGS__, NULL})

/* desc is the default. */
extern const char *const tw_orders[]; /* "desc", "asc" */

/* The text of the first value; NULL if it is absent or not declared. */
const char *tw_req_text(const struct tw_req *r, const char *name);
/* "" instead of NULL. */
const char *tw_req_text_or_empty(const struct tw_req *r, const char *name);
/* The value, or the declared default.  The parameter must be declared with this kind. */
int64_t tw_req_number(const struct tw_req *r, const char *name);
bool tw_req_flag(const struct tw_req *r, const char *name);
/* The index of the choice; -1 if the parameter is optional and absent. */
int tw_req_enum(const struct tw_req *r, const char *name);
/* Of an optional number: dflt if it is absent or not declared. */
int64_t tw_req_number_or(const struct tw_req *r, const char *name, int64_t dflt);

struct tw_config;
struct tw_fleet_request;
struct tw_req;
struct tw_trace_query;

struct tw_route {
	const char *method; /* "GET" also answers HEAD */
	const char *path;   /* "/api/v1/traces/{id}/flame"; one {name} per segment; a last segment
	                     * {*} takes the rest */
	enum tw_need needs; /* required permission */
	unsigned roles;     /* of servers that serve it (role.h); 0: TW_ROLE_QUERY */
	bool on_loop;       /* `end` runs on an event loop, as it neither computes nor waits; all
	                     * others run on a pool */
	bool knows_caller;  /* a PUBLIC route whose response depends on the caller */
	bool outbound;      /* waits for another server: runs on a separate pool */
	bool by_child;      /* waits for a child process: runs on a separate pool */
	bool metrics;       /* served only at config.metrics_listen if that is set */
	bool quiet;         /* logged at debug level on success: health checks */
	bool upload;    /* counts against config.max_in_flight until its reply is made; ends on the
	                 * uploads' pool */
	bool by_post;   /* also accepted as POST with X-HTTP-Method-Override, for clients without
	                 * PATCH */
	bool read_only; /* a POST that changes nothing: it ends with its client, like a GET */
	bool partial;   /* stores each piece of its body on arrival, so none is buffered until the
	                 * caller is known */
	uint64_t (*max_body)(const struct tw_config *);            /* NULL: a body is refused */
	enum tw_status (*begin)(struct tw_req *, struct tw_err *); /* may be NULL */
	/* repeated */
	enum tw_status (*body)(struct tw_req *, const void *, size_t, struct tw_err *);
	enum tw_status (*end)(struct tw_req *, struct tw_err *); /* must reply */
	/* Instead of max_body, begin, body and end: takes a small JSON object (api/api.h). */
	enum tw_status (*json)(struct tw_req *, const json_t *body, struct tw_err *);
	/* Instead of end: for a response about one trace (api/trace/trace_query.h), or about many
	 * (api/fleet/api_fleet.h). */
	enum tw_status (*trace_query)(struct tw_trace_query *, struct tw_err *);
	enum tw_status (*fleet_query)(struct tw_fleet_request *, struct tw_err *);
	void (*abort)(struct tw_req *); /* may be NULL; after any failure or if the client left */
	const char *summary;            /* one line of description */
	const struct tw_param *const *params; /* TW_PARAMS(...); NULL: none */
	bool any_params; /* does not check its query: uploads, as devices are not updated with the
	                  * server, and other programs' redirects */
};

/* An element of a list of routes: the members that each route has, then optional ones. */
#define TW_ROUTE(method_, path_, needs_, summary_, ...)                                            \
	{                                                                                          \
		.method = (method_), .path = (path_), .needs = (needs_), .summary = (summary_),    \
		__VA_ARGS__                                                                        \
	}

enum { TW_CHILD_WAITERS = 64 }; /* most concurrent requests that wait for a child process */

/* Properties of a request; strings are valid until its end. */
void *tw_req_context(const struct tw_req *r); /* of the server */
struct tw_arena *tw_req_arena(const struct tw_req *r);
const struct tw_caller *tw_req_caller(const struct tw_req *r); /* never NULL */
const struct tw_route *tw_req_route(const struct tw_req *r);
/* decoded path segment of the template; NULL */
const char *tw_req_path(const struct tw_req *r, const char *name);
/* Calls fn for each query pair in order until one fails. */
enum tw_status tw_req_each_query(const struct tw_req *r,
        enum tw_status (*fn)(void *arg, const char *name, const char *value, struct tw_err *err),
        void *arg, struct tw_err *err) TW_MUST_USE;
const char *tw_req_header(const struct tw_req *r, const char *name); /* NULL if absent */
uint64_t tw_req_content_length(const struct tw_req *r); /* UINT64_MAX: absent (chunked) */
/* The client's address in numeric form; "" if unknown. */
const char *tw_req_address(const struct tw_req *r);
/* Whether the client (a browser, through any proxy) uses https. */
bool tw_req_is_https(const struct tw_req *r);
/* "https://host" as the client reaches the server: config.public_url, otherwise from its headers;
 * valid as long as the request. */
const char *tw_req_base(const struct tw_req *r);
/* The name of a cookie.  Browsers send a host's cookies to all its ports, so the port is part of
 * the name; on https it is prefixed with TW_COOKIE_HOST. */
const char *tw_req_cookie_name(const struct tw_req *r, const char *name);
const char *tw_req_id(const struct tw_req *r); /* as in the log and X-Request-Id */
void tw_req_set_state(struct tw_req *r, void *state);
void *tw_req_state(const struct tw_req *r);
/* Milliseconds until the query deadline; 0 if it has passed or the client has left. */
uint64_t tw_req_ms_left(const struct tw_req *r);

/* Whether the client accepts this Content-Encoding ("zstd", "gzip"). */
bool tw_req_accepts(const struct tw_req *r, const char *coding);
/* Weight of a media type that Accept names, up to 1000; 0: it does not, or refuses it. */
unsigned tw_req_media_weight(const struct tw_req *r, const char *type);

/* Continues as a GET of another target (path and query) for another caller, in the `end` of a
 * slow route: the target's route replies.  `as` must be authenticated; its permission is still
 * checked. */
enum tw_status tw_req_forward(struct tw_req *r, const struct tw_caller *as, const char *target,
        struct tw_err *err) TW_MUST_USE;

/* The quota of a device (quota.h), once an upload has named it; NULL or "" is none.  TW_RATE if it
 * is used up.  Judging counts nothing, charging does; a charge for data that is not stored is
 * refunded. The remaining quota is sent in the reply's headers. */
enum tw_status tw_req_check_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_req_charge_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
/* Charges the request's key for data outside the request's body. */
enum tw_status tw_req_charge_key(struct tw_req *r, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
void tw_req_refund_device(struct tw_req *r, const char *device, uint64_t bytes);

/* Replies; one per request.  Headers set before apply to any reply. */
/* Copies the value and replaces an earlier one, except for cookies, which accumulate.  Ignores
 * values with control characters.  A reply with a Content-Encoding set this way is sent
 * unchanged. */
void tw_req_set_header(struct tw_req *r, const char *name, const char *value);
void tw_req_unset_header(struct tw_req *r, const char *name);
/* Appends to the header's value: "old, value". */
void tw_req_add_to_header(struct tw_req *r, const char *name, const char *value);
/* Sets ETag (and adds the quotes).  If it matches If-None-Match, replies 304 and returns true: the
 * route then returns TW_OK. */
bool tw_req_reply_unchanged(struct tw_req *r, const char *etag);
/* No body: 204, or the status `http`. */
enum tw_status tw_req_reply_empty(struct tw_req *r, int http, struct tw_err *err);
/* Replies with the cached response that tw_req_reply_and_cache stored for an equal request, if any,
 * and returns true.  Call after tw_req_reply_unchanged, whose ETag identifies the data. */
bool tw_req_reply_cached(struct tw_req *r, const char *type);
/* Like tw_req_reply_buf with status 200 and compression; caches responses that were slow to
 * compute. */
enum tw_status tw_req_reply_and_cache(
        struct tw_req *r, const char *type, struct tw_buf *buf, struct tw_err *err) TW_MUST_USE;
/* Takes the reference to json, even on failure; json NULL is TW_NOMEM (a failed json_pack). */
enum tw_status tw_req_reply_json(struct tw_req *r, int http, json_t *json, struct tw_err *err);
/* Takes buf's memory on success.  `type` is the Content-Type; compressed if `compressible` and
 * worthwhile. */
enum tw_status tw_req_reply_buf(struct tw_req *r, int http, const char *type, bool compressible,
        struct tw_buf *buf, struct tw_err *err);
/* Bytes that are valid as long as the process (embedded files). */
enum tw_status tw_req_reply_static(struct tw_req *r, int http, const char *type, const void *p,
        size_t len, struct tw_err *err);

/* A streamed reply: read fills up to cap bytes, *ret_n 0 ends it.  An error after the first byte
 * breaks the connection, so that the client notices the truncation. */
struct tw_stream_ops {
	enum tw_status (*read)(
	        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err);
	void (*free)(void *arg);
};
/* Takes arg, even on failure. */
enum tw_status tw_req_reply_stream(struct tw_req *r, const char *type, bool compressible,
        const struct tw_stream_ops *ops, void *arg, struct tw_err *err);

struct tw_http_parts { /* borrowed */
	const struct tw_config *config;
	const struct tw_route *routes;
	size_t n_routes;
	void *context;                  /* tw_req_context */
	struct tw_catalogue *catalogue; /* looks up callers */
	struct tw_metrics *metrics;     /* metrics.h */
	struct tw_tls *tls;             /* tls.h; NULL: plain HTTP */
	struct tw_quota *quota;         /* quota.h; NULL: no limits */
	struct tw_http_waits *waits;    /* http_wait.h; NULL: no request waits for a job */
	struct tw_response_cache *response_cache;   /* response_cache.h; NULL: no response cache */
	struct tw_response_memory *response_memory; /* response_memory.h; NULL: responses are not
	                                             * counted */
};

/* The server.  Listens and serves the routes from then on. */
struct tw_http;
enum tw_status tw_http_start(
        const struct tw_http_parts *parts, struct tw_http **ret, struct tw_err *err) TW_MUST_USE;
/* A second server at config.metrics_listen with /metrics only. */
enum tw_status tw_http_start_metrics(
        const struct tw_http_parts *parts, struct tw_http **ret, struct tw_err *err) TW_MUST_USE;
unsigned tw_http_port(const struct tw_http *h); /* the actual port if config said 0 */
/* Stops accepting connections, refuses new uploads, and waits for requests in progress, at most
 * `seconds`. */
void tw_http_drain(struct tw_http *h, unsigned seconds);
/* Ends remaining requests and frees.  Accepts NULL; returns NULL. */
struct tw_http *tw_http_stop(struct tw_http *h);

/* --- multipart/form-data bodies (http_form.c) --- */

/* Streaming parser of multipart/form-data bodies.
 *
 * Buffers only a small window.  A failure is sticky.
 * Thread: the request's. */

struct tw_form;

struct tw_form_ops {
	/* A part begins.  `name` is from the client: any bytes. */
	enum tw_status (*part)(void *arg, const char *name, struct tw_err *err);
	enum tw_status (*data)(void *arg, const void *p, size_t n, struct tw_err *err);
};

/* Whether the request has Content-Type: multipart/form-data. */
bool tw_form_is(const struct tw_req *r);
/* TW_BAD_REQUEST if the boundary is missing.  Free with tw_form_free. */
enum tw_status tw_form_new(const struct tw_req *r, const struct tw_form_ops *ops, void *arg,
        struct tw_form **ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_form_push(
        struct tw_form *f, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* TW_BAD_REQUEST if the closing boundary is missing. */
enum tw_status tw_form_finish(struct tw_form *f, struct tw_err *err) TW_MUST_USE;
/* Accepts NULL; returns NULL. */
struct tw_form *tw_form_free(struct tw_form *f);

#endif
