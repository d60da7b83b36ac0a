/*
 * http_int.h - shared by the files of this folder only.
 *
 * Life of a request, one arrow per callback of libmicrohttpd.  Looking up a caller needs the
 * catalogue and is done on a pool, with the connection suspended:
 *
 *   NEW ──no lookup──▶ BODY ──pieces──▶ BODY ──end──▶ DONE ──reply queued──▶ freed
 *    │                                     └──▶ LAST ─▶ POOLED (suspended) ──resumed──▶ DONE
 *    ├──large body──▶ CALLER (suspended) ──▶ BODY
 *    ├──small body or none──▶ HELD ──pieces buffered──▶ HELD ──end──▶ LAST
 *    └──refused──▶ DONE; or the rest of a small body is discarded first
 */
#ifndef TW_HTTP_INT_H
#define TW_HTTP_INT_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/base/config.h"
#include "server/base/thread/pool.h"
#include "server/http/http.h"
#include "server/http/metrics.h"

/* --- request targets: decoding, path templates, query pairs --- */

/* A target in absolute form (http://host/path) is accepted as RFC 9112 requires; its authority
 * then replaces the Host header. The target is split at / before it is decoded, so that %2f
 * stays inside its segment; NUL, broken escapes and invalid UTF-8 are refused everywhere. */
enum { TW_MAX_PIECES = 12, TW_MAX_PAIRS = 64 };

struct tw_pair {
	const char *name, *value;
};

struct tw_target {
	const char *path;      /* as sent, without authority and query */
	const char *authority; /* host and port of a target in absolute form, or NULL */
	const char *pieces[TW_MAX_PIECES];
	size_t n_pieces;
	struct tw_pair pairs[TW_MAX_PAIRS]; /* of the query */
	size_t n_pairs;
};

/* Texts are in the arena.  TW_BAD_REQUEST with a message. */
enum tw_status tw_target_parse(
        struct tw_arena *a, const char *raw, struct tw_target *ret, struct tw_err *err) TW_MUST_USE;
/* Whether the path matches "/api/v1/traces/{id}/flame"; {*} as the last segment matches the
 * rest. */
bool tw_target_matches(const struct tw_target *t, const char *template);
/* The segment for {name}; for "*" the rest, joined by / in the arena.  NULL: no such segment. */
const char *tw_target_piece(
        const struct tw_target *t, const char *template, const char *name, struct tw_arena *a);

/* The value of the first query pair of that name; NULL if there is none. */
const char *tw_target_query(const struct tw_target *t, const char *name);

/* --- content codings (http_coding.c) --- */

/* Thread: a stream one at a time. */
enum tw_coding { TW_CODING_IDENTITY, TW_CODING_GZIP, TW_CODING_ZSTD };

/* "identity", "gzip", "zstd". */
const char *tw_coding_name(enum tw_coding c);

/* The coding of an Accept-Encoding header (NULL: absent) with the highest weight; for equal weights
 * zstd, then gzip, then identity.  Parts that do not parse are ignored. */
enum tw_coding tw_coding_choose(const char *accept);
/* Whether this coding is acceptable (weight above 0, by name or by *). */
bool tw_coding_accepted(const char *accept, enum tw_coding c);
/* Weight of a media type in an Accept header (NULL: absent), up to 1000; 0: not named. */
unsigned tw_media_weight(const char *accept, const char *type);

struct tw_encoder;
/* NULL if memory is short. */
struct tw_encoder *tw_encoder_new(enum tw_coding c);
struct tw_encoder *tw_encoder_free(struct tw_encoder *e);
/* Consumes p; appends available output to *out.  `end`: the last input. */
enum tw_status tw_encoder_push(struct tw_encoder *e, const void *p, size_t n, bool end,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* --- upload slots --- */

/* Shared so that no key or address takes them all: a key may have three times as many slots as are
 * free: alone 3/4 of all, with a second one 3/7 each. An address may have seven times as many,
 * because many keys may come from one proxy. So a new caller always finds free slots, however many
 * the others hold. */
struct tw_slots;

struct tw_slot { /* zeroed: none is held */
	bool held;
	unsigned counters[2]; /* of the key and of the address */
};

enum tw_status tw_slots_new(unsigned limit, struct tw_slots **ret, struct tw_err *err) TW_MUST_USE;
struct tw_slots *tw_slots_free(struct tw_slots *s); /* accepts NULL; returns NULL */
/* `key`: id of the key or person, "" if none.  TW_BUSY if all slots or the caller's share are in
 * use. */
enum tw_status tw_slots_take(struct tw_slots *s, const char *key, const char *address,
        struct tw_slot *ret, struct tw_err *err) TW_MUST_USE;
void tw_slots_release(struct tw_slots *s, struct tw_slot *slot);
/* Whether more than half of the slots are taken. */
bool tw_slots_scarce(const struct tw_slots *s);

struct tw_reservation;
struct tw_watch;

/* Unsent bytes of a stream. */
struct tw_outflow {
	struct tw_outflow *next;
	struct tw_outflow **at; /* the pointer to this one; NULL: not in the list */
	int fd;
	_Atomic bool ready; /* bytes are waiting for the client */
	_Atomic uint64_t sent;
	uint64_t seen, since_ns; /* `sent` at the start of the window */
};

struct tw_http {
	struct tw_http_parts parts;
	struct MHD_Daemon *daemon;
	struct tw_pool *pool;
	struct tw_pool *arrivals; /* for uploads; NULL: none */
	struct tw_pool *outbound; /* for routes that wait for other servers; NULL: none */
	struct tw_pool *by_child; /* for routes that wait for child processes; NULL: none */
	struct tw_pool *callers;  /* looks up callers */
	struct tw_watch *watch;
	struct tw_periodic *memory;
	pthread_mutex_t outflow_lock;
	struct tw_outflow *outflows;
	int listen_fd;
	bool for_metrics;      /* serves only routes marked `metrics` */
	_Atomic int requests;  /* in progress */
	_Atomic bool stopping; /* tw_http_drain was called */
	struct tw_slots *slots;
	_Atomic uint64_t ids;
};

enum tw_phase {
	TW_PHASE_NEW,
	TW_PHASE_CALLER,
	TW_PHASE_HELD,
	TW_PHASE_BODY,
	TW_PHASE_LAST,
	TW_PHASE_POOLED,
	TW_PHASE_DONE
};

enum { TW_MAX_HEADERS = 16, TW_REQ_ID = 17 };

struct tw_req {
	struct tw_pool_task task; /* first member: the pool returns it */
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
	bool proxy_https;               /* from a trusted proxy; otherwise false, empty and NULL */
	struct tw_str proxy_host;
	const char *proxy_user;
	enum tw_phase phase;
	enum tw_status refused; /* TW_OK, or why the rest of the body is discarded */
	struct tw_err err;
	const struct tw_route *unknown_at; /* that does not declare a parameter of it; or NULL */
	struct tw_slot slot;
	const _Atomic bool *abandoned; /* cancels its work; NULL: it continues */
	struct tw_buf early;           /* body received before the caller is known */
	bool lookup_pending;           /* its caller must be looked up, on the pool */
	bool body_complete;            /* its body was received completely */
	bool came_during_shutdown;     /* its headers arrived after the server began to stop */
	bool begun;   /* route->begin was called and neither end nor abort finished the request */
	bool expects; /* Expect: 100-continue: the client has sent no body byte yet */
	bool timeout_shortened; /* see tw_req_shorten_timeout */
	bool took_quota;        /* of the key; corrected at the end by the bytes received */
	uint64_t declared;      /* Content-Length; UINT64_MAX: chunked */
	uint64_t got;           /* body bytes */
	uint64_t max_body;
	uint64_t started_ns, deadline_ns;
	void *state;                        /* for the route */
	struct tw_reservation *reservation; /* the memory of its response; NULL: not counted */
	struct tw_pair headers[TW_MAX_HEADERS];
	size_t n_headers;
	/* For http_wait.c: `end` requested another call; it is in the list; its route is not being
	 * called. */
	bool waits, is_waiting, is_idle;
	struct tw_req *next_waiting, *next_called;
	bool own_encoding; /* the route set Content-Encoding */
	int http_code;     /* of the reply */
	struct MHD_Response *response;
	struct tw_str body; /* of the response, if it was passed as bytes; owned by the response */
};

uint64_t tw_http_now_ns(void);
/* The next request's id. */
void tw_http_make_id(struct tw_http *h, char out[TW_REQ_ID]);
/* The client's numeric address; IPv4-mapped IPv6 as IPv4. */
void tw_http_address(struct MHD_Connection *connection, char ret[INET6_ADDRSTRLEN]);

/* A separate server at that address; `for_metrics`: serves only /metrics. */
enum tw_status tw_http_start_at(const char *where, bool for_metrics,
        const struct tw_http_parts *parts, struct tw_http **ret, struct tw_err *err) TW_MUST_USE;

/* The pool for the end of this request's route. */
struct tw_pool *tw_http_pool_of(const struct tw_req *r);
/* The owner of a request's tasks (pool.h): its project, or the client's address if the route needs
 * no key. */
const char *tw_http_owner_of(const struct tw_req *r);

/* A listening socket on "ADDRESS:PORT". */
enum tw_status tw_http_listen(const char *where, int *ret_fd, struct tw_err *err) TW_MUST_USE;

/* Raises the limit of descriptors for this many connections and other files, as far as permitted;
 * logs if that is not enough. */
void tw_http_need_descriptors(unsigned connections);

/* Closes connections whose headers are late (config->connection_timeout_s) or whose body is too
 * slow, and above config->connections the longest idle one.  Stop it when there are no connections
 * left. */
enum tw_status tw_watch_start(const struct tw_config *config, struct tw_metrics *metrics,
        struct tw_slots *slots, struct tw_watch **ret, struct tw_err *err) TW_MUST_USE;
struct tw_watch *tw_watch_stop(struct tw_watch *w); /* accepts NULL; returns NULL */
/* For libmicrohttpd, with the watch as cls: a connection begins or ends. */
void tw_watch_connection(void *cls, struct MHD_Connection *connection, void **context,
        enum MHD_ConnectionNotificationCode what);
enum tw_wait {
	TW_WAIT_IDLE,  /* for headers, or for the end of a refused body */
	TW_WAIT_HELD,  /* for a small body of an unknown caller, at a minimum rate */
	TW_WAIT_BODY,  /* for a body, at a minimum rate */
	TW_WAIT_SERVER /* the client waits for the server */
};
/* Sets the current phase of a connection. */
void tw_watch_wait(struct tw_watch *w, struct MHD_Connection *connection, enum tw_wait wait);
void tw_watch_got(struct MHD_Connection *connection, size_t bytes);
/* Set if the client closes the connection during TW_WAIT_SERVER; valid as long as the connection.
 * NULL: not watched. */
const _Atomic bool *tw_watch_abandoned(struct MHD_Connection *connection);
/* Keeps its socket half open after it is closed (http_linger.c). */
void tw_watch_linger(struct MHD_Connection *connection);
/* Whether it was accepted above the limit, with no idle connection to close. */
bool tw_watch_is_surplus(struct MHD_Connection *connection);

/* Sets r->route, and r->method if a header overrides it; fails with a message if there is none. */
enum tw_status tw_req_find_route(struct tw_req *r, struct tw_err *err) TW_MUST_USE;

/* Query parameters: values, and that required ones are present.  That all names are declared is
 * checked when the route is found, as it needs no caller. */
enum tw_status tw_req_check_values(const struct tw_req *r, struct tw_err *err) TW_MUST_USE;
json_t *tw_params_known(const struct tw_route *route); /* their names */

/* Validates the request line and headers; the reply to a refusal closes the connection.  `method`
 * and `version` are the library's own pointers into the received bytes. */
enum tw_status tw_req_validate_headers(
        struct tw_req *r, const char *method, const char *version, struct tw_err *err) TW_MUST_USE;
/* Reads forwarding headers, only from a trusted proxy. */
enum tw_status tw_req_read_proxy(struct tw_req *r, struct tw_err *err) TW_MUST_USE;
/* Cross-site check: a change without a key must come from our own page.  The browser's origin
 * headers can only refuse it. */
enum tw_status tw_req_check_origin(const struct tw_req *r, struct tw_err *err) TW_MUST_USE;
/* Charges the request to the quota of the caller's key (quota.h), or TW_RATE. */
enum tw_status tw_req_take_quota(struct tw_req *r, struct tw_err *err) TW_MUST_USE;
void tw_req_finalize_quota(struct tw_req *r);
/* After `end` of a request with is_waiting: whether it will be called again; if so, another thread
 * now owns it. */
bool tw_req_keeps_waiting(struct tw_req *r);
/* Calls waiting requests a last time; none can wait after that. */
void tw_http_waits_end(struct tw_http_waits *w); /* accepts NULL */
/* Whether the client has closed its sending side, with nothing left to read. */
bool tw_req_client_left(const struct tw_req *r);
/* Whether the client closed the connection of a read-only request. */
bool tw_req_is_abandoned(const struct tw_req *r);
/* Closes the connection after one second without a byte, or resets that to the configured time. */
void tw_req_shorten_timeout(const struct tw_req *r, bool shorten);

/* Memory of responses (response_memory.c): counted from tw_req_hold on, after tw_req_hold_for for
 * another caller; tw_req_held returns st, or TW_BUSY if memory was refused in between. */
enum tw_status tw_req_hold(struct tw_req *r, struct tw_err *err) TW_MUST_USE;
void tw_req_hold_for(struct tw_req *r, const struct tw_caller *as);
enum tw_status tw_req_held(struct tw_req *r, enum tw_status st, struct tw_err *err) TW_MUST_USE;
void tw_req_release(struct tw_req *r);
void tw_outflow_begin(struct tw_http *h, struct tw_outflow *o, struct MHD_Connection *c);
void tw_outflow_end(struct tw_http *h, struct tw_outflow *o);
void tw_http_memory_tick(struct tw_http *h);

/* Replies with r->err; sends nothing only if memory is short. */
void tw_reply_error(struct tw_req *r);
/* Writes the same reply directly to the socket, in the middle of a body, where the library accepts
 * none.  The caller then closes the connection. */
void tw_reply_error_now(struct tw_req *r);

struct tw_tls;

enum { TW_HTTP_TLS_OPTIONS = 3 };

/* Options for MHD_OPTION_ARRAY: none if t is NULL. */
void tw_http_tls_options(struct tw_tls *t, struct MHD_OptionItem ret[TW_HTTP_TLS_OPTIONS]);

/* --- sockets whose client is still sending --- */

/* Closing a socket with unread data resets the connection, and the client may lose the response. So
 * the socket stays half closed and its data is discarded until the client closes it, limited in
 * time and bytes.  Thread: any may call take. */
struct tw_linger;

enum tw_status tw_linger_start(struct tw_linger **ret, struct tw_err *err) TW_MUST_USE;
/* Keeps a duplicate of `fd`, which the caller closes as usual. */
void tw_linger_take(struct tw_linger *l, int fd);
/* Closes all sockets.  Accepts NULL; returns NULL. */
struct tw_linger *tw_linger_stop(struct tw_linger *l);

#endif
