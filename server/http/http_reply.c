/*
 * http_reply.c - replies: common headers, errors as JSON, streams.
 *
 * A stream's bytes are produced on the query pool, never on an event loop: once the available ones
 * are sent, the connection is suspended, a task produces the next, and the connection continues.
 * The first bytes are produced before the status line, so that an early error is still a regular
 * reply.
 */
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "decoder/base/str.h"
#include "server/base/log.h"
#include "server/base/text/json.h"
#include "server/http/http_int.h"
#include "server/http/limit/response_memory.h"
#include "server/http/response_cache.h"

enum {
	WORTH_COMPRESSING = 860,
	WORTH_KEEPING_NS = 10 * 1000 * 1000,
	STREAM_READ = 64 << 10,
	STREAM_READY = 128 << 10,
	STREAM_OTHER = 1 << 20, /* SQLite's memory, which is not counted otherwise */
	MAX_ETAG = 200,
	MAX_KEY = 4096
};
static const size_t max_reply = (size_t)1 << 30;

/* The page opens windows of the Perfetto UI and sends them messages, which plain same-origin would
 * prevent. */
static const struct tw_pair security[] = {
        {"Content-Security-Policy",
                "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: "
                "blob:; "
                "worker-src 'self' blob:; connect-src 'self'; object-src 'none'; "
                "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin-allow-popups"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
};

void tw_req_set_header(struct tw_req *r, const char *name, const char *value)
{
	const struct tw_str text = tw_str_of(value);
	const char *copy = tw_str_has_control(text) ? NULL : tw_arena_str(r->arena, text);
	bool several = strcasecmp(name, "Set-Cookie") == 0;
	size_t at = 0;

	if (!copy)
		return;
	while (at < r->n_headers && (several || strcasecmp(r->headers[at].name, name) != 0))
		at++;
	if (at == TW_MAX_HEADERS)
		return;
	r->headers[at].name = tw_arena_str(r->arena, tw_str_of(name));
	r->headers[at].value = copy;
	if (r->headers[at].name && at == r->n_headers)
		r->n_headers++;
	if (strcasecmp(name, "Content-Encoding") == 0)
		r->own_encoding = true;
}

void tw_req_unset_header(struct tw_req *r, const char *name)
{
	size_t kept = 0;

	for (size_t at = 0; at < r->n_headers; at++)
		if (strcasecmp(r->headers[at].name, name) != 0)
			r->headers[kept++] = r->headers[at];
	r->n_headers = kept;
}

static const char *header_set(const struct tw_req *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (strcasecmp(r->headers[i].name, name) == 0)
			return r->headers[i].value;
	return NULL;
}

void tw_req_add_to_header(struct tw_req *r, const char *name, const char *value)
{
	const char *old = header_set(r, name);
	const char *both = old ? tw_arena_printf(r->arena, "%s, %s", old, value) : value;

	if (both)
		tw_req_set_header(r, name, both);
}

/* False: out of memory.  Values that the library refuses in any case (empty, or with line breaks)
 * are skipped. */
static bool add(struct MHD_Response *response, const char *name, const char *value)
{
	return !*value || strpbrk(value, "\t\r\n") ||
	       MHD_add_response_header(response, name, value) == MHD_YES;
}

/* A reply must not lack one of these headers, such as its type or policy. */
static bool add_all(const struct tw_req *r, const char *type, enum tw_coding coding,
        struct MHD_Response *response)
{
	bool ok = add(response, "X-Request-Id", r->id);

	for (size_t i = 0; i < sizeof security / sizeof *security; i++)
		ok = ok && add(response, security[i].name, security[i].value);
	if (tw_req_is_https(r)) /* on plain HTTP it would lock out all other clients */
		ok = ok && add(response, "Strict-Transport-Security", "max-age=31536000");
	if (type)
		ok = ok && add(response, "Content-Type", type);
	if (coding != TW_CODING_IDENTITY)
		ok = ok && add(response, "Content-Encoding", tw_coding_name(coding));
	if (!header_set(r, "Cache-Control"))
		ok = ok && add(response, "Cache-Control",
		                   header_set(r, "ETag") ? "private, no-cache" : "no-store");
	for (size_t i = 0; i < r->n_headers; i++)
		ok = ok && add(response, r->headers[i].name, r->headers[i].value);
	return ok;
}

/* Sets `response` as the reply; the request takes the reference. */
static enum tw_status set_response(struct tw_req *r, int http, const char *type,
        enum tw_coding coding, struct MHD_Response *response, struct tw_err *err)
{
	if (!response)
		return tw_oom(err);
	if (!add_all(r, type, coding, response)) {
		MHD_destroy_response(response);
		return tw_oom(err);
	}
	if (r->response)
		MHD_destroy_response(r->response);
	r->response = response;
	r->http_code = http;
	return TW_OK;
}

static enum tw_coding choose(struct tw_req *r, bool compressible)
{
	if (r->own_encoding || compressible)
		tw_req_set_header(r, "Vary", "Accept-Encoding");
	if (r->own_encoding || !compressible)
		return TW_CODING_IDENTITY;
	return tw_coding_choose(tw_req_header(r, "Accept-Encoding"));
}

static enum tw_status encode_all(
        enum tw_coding coding, const struct tw_buf *in, struct tw_buf *ret, struct tw_err *err)
{
	struct tw_encoder *e = tw_encoder_new(coding);
	enum tw_status st;

	if (!e)
		return tw_oom(err);
	tw_buf_init(ret, max_reply);
	st = tw_encoder_push(e, in->data, in->len, true, ret, err);
	(void)tw_encoder_free(e);
	if (st != TW_OK)
		tw_buf_done(ret);
	return st;
}

/* Encodes the body; takes buf's memory on success. */
static enum tw_status encode(
        enum tw_coding coding, struct tw_buf *buf, struct tw_buf *ret, struct tw_err *err)
{
	enum tw_status st = tw_buf_status(buf);

	if (st != TW_OK)
		return tw_fail(err, st, "the response is too large");
	if (coding == TW_CODING_IDENTITY) {
		*ret = *buf;
		tw_buf_init(buf, buf->max);
		return TW_OK;
	}
	st = encode_all(coding, buf, ret, err);
	if (st == TW_OK)
		tw_buf_done(buf);
	return st;
}

/* Takes the memory of the encoded body. */
static enum tw_status reply_encoded(struct tw_req *r, int http, const char *type,
        enum tw_coding coding, struct tw_buf *encoded, struct tw_err *err)
{
	size_t len = encoded->len;
	struct MHD_Response *response =
	        MHD_create_response_from_buffer_with_free_callback(len, encoded->data, tw_mem_free);

	if (!response) {
		tw_buf_done(encoded);
		return tw_oom(err);
	}
	tw_metrics_bytes_out(r->http->parts.metrics, len);
	r->body = (struct tw_str){(const char *)encoded->data, len};
	return set_response(r, http, type, coding, response, err);
}

enum tw_status tw_req_reply_buf(struct tw_req *r, int http, const char *type, bool compressible,
        struct tw_buf *buf, struct tw_err *err)
{
	enum tw_coding coding = choose(r, compressible && buf->len >= WORTH_COMPRESSING);
	struct tw_buf encoded = *buf;
	enum tw_status st = encode(coding, buf, &encoded, err);

	return st == TW_OK ? reply_encoded(r, http, type, coding, &encoded, err) : st;
}

/* --- response cache --- */

static void put_key_part(struct tw_buf *key, const char *text)
{
	tw_buf_printf(key, "%zu:%s", strlen(text), text);
}

/* A key of everything that determines the response; false: it cannot be determined, or is too
 * long. */
static bool key_of(const struct tw_req *r, enum tw_coding coding, struct tw_buf *key)
{
	const char *etag = header_set(r, "ETag");

	tw_buf_init(key, MAX_KEY);
	if (!etag)
		return false;
	put_key_part(key, r->caller.project_id);
	put_key_part(key, etag);
	put_key_part(key, r->target.path);
	for (size_t i = 0; i < r->target.n_pairs; i++) {
		put_key_part(key, r->target.pairs[i].name);
		put_key_part(key, r->target.pairs[i].value);
	}
	put_key_part(key, tw_coding_name(coding));
	return tw_buf_add(key, "", 1) == TW_OK;
}

bool tw_req_reply_cached(struct tw_req *r, const char *type)
{
	struct tw_response_cache *cache = r->http->parts.response_cache;
	enum tw_coding coding = choose(r, true);
	struct tw_buf key, bytes;
	bool there;

	if (!cache)
		return false;
	tw_buf_init(&bytes, max_reply);
	there = key_of(r, coding, &key) &&
	        tw_response_cache_get(cache, (const char *)key.data, &bytes) &&
	        reply_encoded(r, MHD_HTTP_OK, type, coding, &bytes, NULL) == TW_OK;
	tw_buf_done(&key);
	return there;
}

static void keep(const struct tw_req *r, enum tw_coding coding, const struct tw_buf *bytes)
{
	struct tw_response_cache *cache = r->http->parts.response_cache;
	struct tw_mem_account *account;
	struct tw_buf key;

	if (!cache || tw_http_now_ns() - r->started_ns < WORTH_KEEPING_NS)
		return;
	account = tw_mem_count_for(NULL); /* the cache has its own limit */
	if (key_of(r, coding, &key))
		tw_response_cache_put(cache, (const char *)key.data, tw_buf_str(bytes));
	tw_buf_done(&key);
	(void)tw_mem_count_for(account);
}

enum tw_status tw_req_reply_and_cache(
        struct tw_req *r, const char *type, struct tw_buf *buf, struct tw_err *err)
{
	bool large = buf->len >= WORTH_COMPRESSING; /* small bodies are not compressed */
	enum tw_coding coding = choose(r, large);
	struct tw_buf encoded = *buf;
	enum tw_status st = encode(coding, buf, &encoded, err);

	if (st != TW_OK)
		return st;
	if (large)
		keep(r, coding, &encoded);
	return reply_encoded(r, MHD_HTTP_OK, type, coding, &encoded, err);
}

static int put_json(const char *p, size_t n, void *arg)
{
	return tw_buf_add(arg, p, n) == TW_OK ? 0 : -1;
}

enum tw_status tw_req_reply_json(struct tw_req *r, int http, json_t *json, struct tw_err *err)
{
	struct tw_buf text;
	enum tw_status st;

	tw_buf_init(&text, max_reply);
	if (tw_json_oom() || !json ||
	        json_dump_callback(json, put_json, &text, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		st = tw_oom(err);
	else
		st = tw_req_reply_buf(r, http, "application/json", true, &text, err);
	json_decref(json);
	tw_buf_done(&text);
	return st;
}

enum tw_status tw_req_reply_static(
        struct tw_req *r, int http, const char *type, const void *p, size_t len, struct tw_err *err)
{
	void *bytes;

	(void)choose(r, false);
	memcpy(&bytes, &p, sizeof bytes); /* the library takes a non-const pointer and only reads */
	tw_metrics_bytes_out(r->http->parts.metrics, len);
	return set_response(r, http, type, TW_CODING_IDENTITY,
	        MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_PERSISTENT), err);
}

enum tw_status tw_req_reply_empty(struct tw_req *r, int http, struct tw_err *err)
{
	return set_response(r, http, NULL, TW_CODING_IDENTITY,
	        MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT), err);
}

bool tw_req_reply_unchanged(struct tw_req *r, const char *etag)
{
	const char *given = tw_req_header(r, "If-None-Match");
	char quoted[MAX_ETAG + 3];
	struct tw_str rest = tw_str_of(given);
	int len = snprintf(quoted, sizeof quoted, "\"%s\"", etag);

	if (len < 0 || (size_t)len >= sizeof quoted)
		return false;
	tw_req_set_header(r, "ETag", quoted);
	while (rest.len) {
		struct tw_str one = tw_str_trim(tw_str_split(&rest, ','));

		if (one.len > 2 && one.ptr[0] == 'W' && one.ptr[1] == '/')
			one = tw_str_from(one, 2);
		if (tw_str_eq(one, tw_str_of(quoted)) || tw_str_eq(one, TW_STR("*")))
			return tw_req_reply_empty(r, MHD_HTTP_NOT_MODIFIED, NULL) == TW_OK;
	}
	return false;
}

/* --- streams --- */

struct stream {
	struct tw_pool_task task; /* first member: the pool returns it */
	struct tw_http *http;
	struct MHD_Connection *connection;
	const struct tw_stream_ops *ops;
	void *arg;
	struct tw_encoder *encoder;
	uint8_t *raw; /* STREAM_READ bytes */
	struct tw_buf ready;
	size_t sent; /* of ready */
	bool ended, failed;
	/* shared with its request, which ends before a helper thread may */
	struct tw_reservation *reservation;
	struct tw_outflow outflow;
	char id[TW_REQ_ID];
	char owner[TW_ID_BYTES]; /* of its tasks, as the request may be freed by then */
};

static void free_stream(void *cls)
{
	struct stream *s = cls;

	tw_outflow_end(s->http, &s->outflow);
	if (s->ops->free)
		s->ops->free(s->arg);
	(void)tw_encoder_free(s->encoder);
	tw_mem_free(s->raw);
	tw_buf_done(&s->ready);
	(void)tw_reservation_close(s->reservation);
	tw_mem_free(s);
}

/* Produces the next bytes, at least one unless the stream ends. */
static enum tw_status fill(struct stream *s, struct tw_err *err)
{
	tw_buf_clear(&s->ready);
	s->sent = 0;
	while (!s->ended && s->ready.len < STREAM_READY) {
		size_t n = 0;
		enum tw_status st = s->ops->read(s->arg, s->raw, STREAM_READ, &n, err);

		if (st == TW_OK)
			st = tw_encoder_push(s->encoder, s->raw, n, n == 0, &s->ready, err);
		if (st != TW_OK)
			return st;
		s->ended = n == 0;
	}
	return TW_OK;
}

static void run_fill(struct tw_pool_task *task, bool stopping)
{
	struct stream *s = (struct stream *)task;
	struct tw_err err;

	if (s->reservation)
		(void)tw_mem_count_for(&s->reservation->account);
	if (stopping) {
		tw_buf_clear(&s->ready);
		s->sent = 0;
		s->failed = true;
	} else if (fill(s, &err) != TW_OK) {
		s->failed = true;
		tw_log_err(TW_LOG_WARN, "stream_aborted", s->id, &err);
	}
	(void)tw_mem_count_for(NULL);
	if (s->reservation)
		tw_reservation_trim(s->reservation);
	atomic_store(&s->outflow.ready, true);
	(void)MHD_resume_connection(s->connection);
}

static ssize_t pull(void *cls, uint64_t pos, char *out, size_t max)
{
	struct stream *s = cls;
	size_t n = s->ready.len - s->sent;

	(void)pos;
	if (s->failed)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n) {
		n = n < max ? n : max;
		memcpy(out, s->ready.data + s->sent, n);
		s->sent += n;
		(void)atomic_fetch_add(&s->outflow.sent, n);
		tw_metrics_bytes_out(s->http->parts.metrics, n);
		return (ssize_t)n;
	}
	if (s->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	atomic_store(&s->outflow.ready, false);
	MHD_suspend_connection(s->connection);
	if (!tw_pool_submit(s->http->pool, &s->task))
		run_fill(&s->task, true);
	return 0;
}

static struct stream *new_stream(
        struct tw_req *r, enum tw_coding coding, const struct tw_stream_ops *ops, void *arg)
{
	struct stream *s = tw_mem_zalloc(1, sizeof *s);

	if (!s) {
		if (ops->free)
			ops->free(arg);
		return NULL;
	}
	*s = (struct stream){.task.run = run_fill,
	        .http = r->http,
	        .connection = r->connection,
	        .ops = ops,
	        .arg = arg,
	        .reservation = tw_reservation_share(r->reservation),
	        .outflow.ready = true};
	memcpy(s->id, r->id, sizeof s->id);
	(void)snprintf(s->owner, sizeof s->owner, "%s", tw_http_owner_of(r));
	s->task.owner = s->owner;
	tw_buf_init(&s->ready, max_reply);
	s->encoder = tw_encoder_new(coding);
	s->raw = tw_mem_alloc(STREAM_READ, 1);
	if (s->encoder && s->raw)
		return s;
	free_stream(s);
	return NULL;
}

enum tw_status tw_req_reply_stream(struct tw_req *r, const char *type, bool compressible,
        const struct tw_stream_ops *ops, void *arg, struct tw_err *err)
{
	enum tw_coding coding = choose(r, compressible);
	struct stream *s = new_stream(r, coding, ops, arg);
	struct MHD_Response *response;
	enum tw_status st;

	if (!s)
		return tw_oom(err);
	st = tw_mem_charge(STREAM_OTHER) ? fill(s, err) : tw_oom(err);
	if (st != TW_OK) {
		free_stream(s);
		return st;
	}
	if (s->reservation)
		s->reservation->begun = true;
	tw_outflow_begin(r->http, &s->outflow, r->connection);
	/* libmicrohttpd 0.9.75 ends a reply without a body with an empty chunk, which a client that
	 * reuses the connection would take for the next response */
	if (strcmp(r->method, "HEAD") == 0)
		tw_req_set_header(r, "Connection", "close");
	response = MHD_create_response_from_callback(
	        MHD_SIZE_UNKNOWN, STREAM_READ, pull, s, free_stream);
	if (!response)
		free_stream(s);
	return set_response(r, 200, type, coding, response, err);
}

/* --- errors --- */

/* Failures of the server's own parts and bugs go to the log; the client gets the request id to look
 * them up. */
static const char *public_message(const struct tw_req *r, char *out, size_t cap)
{
	if (r->err.code == TW_IO)
		(void)snprintf(out, cap,
		        "the disk, the database or a service that the server needs failed: retry "
		        "later; see request %s in the server log",
		        r->id);
	else if (r->err.code == TW_BUG)
		(void)snprintf(out, cap, "internal error; see request %s in the server log", r->id);
	else
		return r->err.msg;
	return out;
}

void tw_reply_error(struct tw_req *r)
{
	static const char last_resort[] = "{\"error\":{\"status\":\"out_of_memory\",\"message\":"
	                                  "\"out of memory\",\"offset\":null}}";
	char text[160];
	struct tw_err err;
	json_t *offset;
	json_t *json;

	if ((r->refused == TW_BUSY || r->refused == TW_RATE || r->refused == TW_NOMEM) &&
	        !header_set(r, "Retry-After"))
		tw_req_set_header(r, "Retry-After", "1");
	if (r->refused == TW_FULL || r->refused == TW_IO) /* until an operator acts */
		tw_req_set_header(r, "Retry-After", "60");
	if (r->refused == TW_NO_TOKEN)
		tw_req_set_header(r, "WWW-Authenticate", "Bearer realm=\"tracewell\"");
	tw_req_unset_header(r, "Content-Disposition"); /* a browser would save the error */
	r->own_encoding = false;
	offset = r->err.offset == TW_NO_OFFSET ? json_null()
	                                       : json_integer((json_int_t)r->err.offset);
	json = json_pack("{s{sssssO}}", "error", "status", tw_status_name(r->refused), "message",
	        public_message(r, text, sizeof text), "offset", offset);
	json_decref(offset);
	if (r->unknown_at)
		(void)json_object_set_new(
		        json_object_get(json, "error"), "known", tw_params_known(r->unknown_at));
	if (tw_req_reply_json(r, tw_status_http(r->refused), json, &err) != TW_OK)
		(void)tw_req_reply_static(
		        r, 503, "application/json", last_resort, sizeof last_resort - 1, &err);
}

/* --- an error in the middle of a body --- */

enum { MAX_HEAD = 16 << 10 };

static enum MHD_Result put_header(
        void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	if (strcasecmp(name, "Connection") != 0)
		(void)tw_buf_printf(arg, "%s: %s\r\n", name, value);
	return MHD_YES;
}

/* A few KB fit the socket's buffer, as at most a "100 Continue" was sent before. */
static void write_now(const struct tw_req *r, const struct tw_buf *text)
{
	const union MHD_ConnectionInfo *tls =
	        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	const union MHD_ConnectionInfo *fd =
	        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (r->http->parts.tls && tls)
		(void)gnutls_record_send(tls->tls_session, text->data, text->len);
	else if (fd)
		(void)!send(fd->connect_fd, text->data, text->len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void tw_reply_error_now(struct tw_req *r)
{
	struct tw_buf text;

	r->body = (struct tw_str){NULL, 0};
	tw_reply_error(r);
	if (!r->response)
		return;
	tw_buf_init(&text, MAX_HEAD + r->body.len);
	(void)tw_buf_printf(&text, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n",
	        r->http_code, MHD_get_reason_phrase_for((unsigned)r->http_code), r->body.len);
	(void)MHD_get_response_headers(r->response, put_header, &text);
	(void)tw_buf_add(&text, "\r\n", 2);
	(void)tw_buf_add(&text, r->body.ptr, r->body.len);
	if (tw_buf_status(&text) == TW_OK)
		write_now(r, &text);
	tw_buf_done(&text);
	MHD_destroy_response(r->response);
	r->response = NULL;
}
