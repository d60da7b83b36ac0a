/*
 * Unit tests of server/http*.c over real sockets: a routes table of our own, raw bytes in, raw
 * bytes out.
 */
#include "tests/unit/http/http_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "decoder/base/arena.h"
#include "server/base/thread/parallel.h"
#include "server/http/limit/response_memory.h"
#include "server/http/metrics.h"
#include "tests/unit/unit.h"

enum { LIMIT = 100000 };

static _Atomic int begun, aborted;
static _Atomic int ended;

static uint64_t limit_of(const struct tw_config *config)
{
	(void)config;
	return LIMIT;
}

struct sum {
	uint64_t bytes, sum;
};

static enum tw_status sum_begin(struct tw_req *r, struct tw_err *err)
{
	(void)err;
	tw_req_set_state(r, tw_arena_zalloc(tw_req_arena(r), 1, sizeof(struct sum)));
	begun++;
	return TW_OK;
}

static enum tw_status sum_body(struct tw_req *r, const void *p, size_t n, struct tw_err *err)
{
	struct sum *s = tw_req_state(r);

	for (size_t i = 0; i < n; i++)
		s->sum += ((const uint8_t *)p)[i];
	s->bytes += n;
	if (memchr(p, '!', n))
		return tw_fail_at(err, TW_CORRUPT, s->bytes, "an exclamation mark");
	return TW_OK;
}

static enum tw_status sum_end(struct tw_req *r, struct tw_err *err)
{
	const struct sum *s = tw_req_state(r);

	ended++;
	return tw_req_reply_json(r, 200,
	        json_pack("{sI sI}", "bytes", (json_int_t)s->bytes, "sum", (json_int_t)s->sum),
	        err);
}

/* Responds once the test allows it. */
static _Atomic bool held;
static _Atomic int working;

static enum tw_status slow_end(struct tw_req *r, struct tw_err *err)
{
	working++;
	while (held)
		(void)usleep(1000);
	return sum_end(r, err);
}

static void sum_abort(struct tw_req *r)
{
	(void)r;
	aborted++;
}

static enum tw_status echo(struct tw_req *r, struct tw_err *err)
{
	return tw_req_reply_json(r, 200,
	        json_pack("{ss ss}", "id", tw_req_path(r, "id"), "q", tw_req_text_or_empty(r, "q")),
	        err);
}

static enum tw_status big(struct tw_req *r, struct tw_err *err)
{
	struct tw_buf b;
	enum tw_status st;

	if (tw_req_reply_unchanged(r, "v1"))
		return TW_OK;
	tw_buf_init(&b, 1 << 20);
	for (int i = 0; i < 5000; i++)
		tw_buf_printf(&b, "line %d\n", i);
	st = tw_req_reply_buf(r, 200, "text/plain", true, &b, err);
	tw_buf_done(&b);
	return st;
}

struct counting {
	unsigned at, end;
	bool fails;
};

static enum tw_status count_read(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct counting *c = arg;
	size_t n = 0;

	while (c->at < c->end && n + 8 <= cap)
		n += (size_t)snprintf((char *)out + n, cap - n, "%06u\n", c->at++);
	if (c->at >= c->end && c->fails)
		return tw_fail(err, TW_IO, "the disk went");
	*ret_n = n;
	return TW_OK;
}

static void count_free(void *arg)
{
	free(arg);
}

static enum tw_status stream(struct tw_req *r, struct tw_err *err)
{
	static const struct tw_stream_ops ops = {count_read, count_free};
	struct counting *c = calloc(1, sizeof *c);

	c->end = (unsigned)tw_req_number(r, "n");
	c->fails = tw_req_flag(r, "fail");
	return tw_req_reply_stream(r, "text/plain", true, &ops, c, err);
}

/* A stream without end, whose helper thread continues after the client has disconnected. */
static _Atomic bool client_disconnected;

static void take_memory(void *arg)
{
	(void)arg;
	while (!client_disconnected)
		(void)usleep(1000);
	tw_mem_free(tw_mem_alloc(8 << 20, 1));
}

static enum tw_status endless_read(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	(void)arg;
	(void)err;
	memset(out, 'x', cap);
	*ret_n = cap;
	return TW_OK;
}

static void endless_free(void *arg)
{
	(void)tw_parallel_join(arg);
}

static enum tw_status endless(struct tw_req *r, struct tw_err *err)
{
	static const struct tw_stream_ops ops = {endless_read, endless_free};
	struct tw_helper *helper = tw_parallel_start(take_memory, NULL);

	assert_non_null(helper);
	return tw_req_reply_stream(r, "text/plain", false, &ops, helper, err);
}

static enum tw_status silent(struct tw_req *r, struct tw_err *err)
{
	(void)r;
	(void)err;
	return TW_OK;
}

static const struct tw_param echo_params[] = {TW_PARAM_TEXT("q", 20, ""), {0}};
static const struct tw_param stream_params[] = {
        TW_PARAM_NUMBER("n", 100000, 0, 10000000, ""), TW_PARAM_FLAG("fail", false, ""), {0}};

/* A route with a parameter of every kind replies with their values. */
static const char *const colours[] = {"red", "green", NULL};
static const struct tw_param read_params[] = {
        TW_PARAM_REQUIRED("name", 5, ""),
        TW_PARAM_NUMBER("n", 7, -3, 9, ""),
        TW_PARAM_OPTIONAL_NUMBER("m", 0, 9, ""),
        TW_PARAM_FLAG("f", true, ""),
        TW_PARAM_ENUM("w", colours, ""),
        TW_PARAM_OPTIONAL_ENUM("v", colours, ""),
        {.name = "many", .kind = TW_PARAM_IS_TEXT, .repeated = true, .about = ""},
        {0},
};
static const struct tw_param more_params[] = {TW_PARAM_TEXT("last", 0, ""), {0}};

static enum tw_status read_all(struct tw_req *r, struct tw_err *err)
{
	struct tw_buf b;
	enum tw_status st;

	tw_buf_init(&b, 1000);
	tw_buf_printf(&b, "[%s %lld %lld %d %d %d %s %s]", tw_req_text(r, "name"),
	        (long long)tw_req_number(r, "n"), (long long)tw_req_number_or(r, "m", 42),
	        tw_req_flag(r, "f"), tw_req_enum(r, "w"), tw_req_enum(r, "v"),
	        tw_req_text_or_empty(r, "last"), tw_req_text(r, "hidden") ? "read" : "unread");
	st = tw_req_reply_buf(r, 200, "text/plain", false, &b, err);
	tw_buf_done(&b);
	return st;
}

static struct tw_route routes[] = {
        {.method = "GET",
                .path = "/read",
                .needs = TW_NEED_PUBLIC,
                .on_loop = true,
                .params = TW_PARAMS(read_params, more_params),
                .end = read_all},
        {.method = "GET",
                .path = "/any",
                .needs = TW_NEED_PUBLIC,
                .on_loop = true,
                .params = TW_PARAMS(read_params),
                .any_params = true,
                .end = read_all},
        {.method = "GET",
                .path = "/read/key",
                .needs = TW_NEED_READ,
                .on_loop = true,
                .params = TW_PARAMS(read_params),
                .end = read_all},
        {.method = "POST",
                .path = "/sum",
                .needs = TW_NEED_INGEST,
                .on_loop = true,
                .upload = true,
                .max_body = limit_of,
                .begin = sum_begin,
                .body = sum_body,
                .end = sum_end,
                .abort = sum_abort},
        {.method = "POST",
                .path = "/slow",
                .needs = TW_NEED_INGEST,
                .max_body = limit_of,
                .begin = sum_begin,
                .body = sum_body,
                .end = slow_end,
                .abort = sum_abort},
        {.method = "GET",
                .path = "/echo/{id}",
                .needs = TW_NEED_PUBLIC,
                .on_loop = true,
                .params = TW_PARAMS(echo_params),
                .end = echo},
        {.method = "GET", .path = "/big", .needs = TW_NEED_PUBLIC, .end = big},
        {.method = "GET",
                .path = "/stream",
                .needs = TW_NEED_PUBLIC,
                .params = TW_PARAMS(stream_params),
                .end = stream},
        {.method = "GET", .path = "/endless", .needs = TW_NEED_PUBLIC, .end = endless},
        {.method = "GET",
                .path = "/silent",
                .needs = TW_NEED_PUBLIC,
                .on_loop = true,
                .end = silent},
};

static int start(void **state)
{
	fixture_routes(routes, sizeof routes / sizeof *routes);
	return fixture_start(state);
}

static const char *body_of(const struct fixture *f, size_t *ret_len)
{
	const char *at = strstr(f->reply, "\r\n\r\n");

	assert_non_null(at);
	*ret_len = f->len - (size_t)(at + 4 - f->reply);
	return at + 4;
}

/* Undoes chunked coding in place; false when the last chunk is missing. */
static bool dechunk(char *p, size_t *len)
{
	char *from = p;
	char *to = p;
	char *end = p + *len;

	while (from < end) {
		char *after;
		size_t n = strtoul(from, &after, 16);

		from = after + 2;
		if (n == 0) {
			*len = (size_t)(to - p);
			return true;
		}
		if (from + n + 2 > end)
			return false;
		memmove(to, from, n);
		to += n;
		from += n + 2;
	}
	return false;
}

/* --- tests --- */

static void test_paths_and_queries(void **state)
{
	struct fixture *f = *state;

	assert_has(ask(f, "GET /echo/a%2Fb%20c?q=1%2B1+x HTTP/1.1\r\n" HOST "\r\n"),
	        "{\"id\":\"a/b c\",\"q\":\"1+1 x\"}");
	assert_has(ask(f, "GET /echo/a%00b HTTP/1.1\r\n" HOST "\r\n"), "400 Bad Request");
	assert_has(ask(f, "GET /echo/a?q=%ff HTTP/1.1\r\n" HOST "\r\n"), "400 Bad Request");
	assert_has(ask(f, "GET /echo/a?q=%2 HTTP/1.1\r\n" HOST "\r\n"), "400 Bad Request");
	assert_has(ask(f, "GET /echo/ HTTP/1.1\r\n" HOST "\r\n"), "404 Not Found");
	assert_has(ask(f, "GET /echo/a/ HTTP/1.1\r\n" HOST "\r\n"), "404 Not Found");
	assert_has(ask(f, "GET /echo/../sum HTTP/1.1\r\n" HOST "\r\n"), "404 Not Found");
}

static void test_methods(void **state)
{
	struct fixture *f = *state;
	const char *text = ask(f, "OPTIONS /sum HTTP/1.1\r\n" HOST "\r\n");

	assert_has(text, "405 Method Not Allowed");
	assert_has(text, "Allow: POST\r\n");
	assert_has(ask(f, "DELETE /big HTTP/1.1\r\n" HOST "\r\n"), "Allow: GET, HEAD\r\n");
	text = ask(f, "HEAD /echo/a HTTP/1.1\r\n" HOST "\r\n");
	assert_has(text, "200 OK");
	assert_has(text, "Content-Length: 17");
	assert_null(strchr(text, '{'));
	assert_has(ask(f, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n"), "\"status\":\"not_found\"");
}

static void test_every_reply_is_guarded(void **state)
{
	struct fixture *f = *state;
	static const char *const targets[] = {"/echo/a", "/nowhere", "/sum", "/big"};

	for (size_t i = 0; i < 4; i++) {
		char text[128];

		(void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", targets[i]);
		(void)ask(f, text);
		assert_has(f->reply, "Content-Security-Policy: default-src 'self'");
		assert_has(f->reply, "X-Content-Type-Options: nosniff");
		assert_has(f->reply, "Referrer-Policy: no-referrer");
		assert_has(f->reply, "Cross-Origin-Opener-Policy: same-origin-allow-popups");
		assert_has(f->reply, "X-Request-Id: ");
	}
}

static void test_callers(void **state)
{
	struct fixture *f = *state;
	const char *text = ask(f, "POST /sum HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");

	assert_has(text, "401 Unauthorized");
	assert_has(text, "WWW-Authenticate: Bearer");
	assert_has(ask(f, "POST /sum HTTP/1.1\r\n" HOST
	                  "Authorization: Bearer bad\r\nContent-Length: 3\r\n\r\nabc"),
	        "\"status\":\"no_token\"");
}

static void test_bodies(void **state)
{
	struct fixture *f = *state;

	for (int slow = 0; slow < 2; slow++) {
		char text[512];
		const char *target = slow ? "/slow" : "/sum";

		(void)snprintf(text, sizeof text,
		        "POST %s HTTP/1.1\r\n" GOOD "Content-Length: 3\r\n\r\nabc", target);
		assert_has(ask(f, text), "{\"bytes\":3,\"sum\":294}");
		(void)snprintf(text, sizeof text,
		        "POST %s HTTP/1.1\r\n" GOOD
		        "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n"
		        "0\r\n\r\n",
		        target);
		assert_has(ask(f, text), "{\"bytes\":3,\"sum\":294}");
		(void)snprintf(text, sizeof text,
		        "POST %s HTTP/1.1\r\n" GOOD "Content-Length: 4\r\n\r\nab!c", target);
		assert_has(ask(f, text),
		        "\"status\":\"malformed\",\"message\":\"an exclamation mark\"");
	}
	assert_has(ask(f, "GET /echo/a HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx"), "413 ");
}

/* A declared 5 GiB is answered before a byte of it is sent. */
static void test_declared_too_large(void **state)
{
	struct fixture *f = *state;
	const char *text =
	        ask(f, "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 5368709120\r\n\r\n");

	assert_has(text, "HTTP/1.1 413 ");
	assert_has(text, "\"status\":\"too_large\"");
	assert_has(text, "100000 bytes");
	text = ask(f, "POST /sum HTTP/1.1\r\n" GOOD
	              "Content-Length: 100001\r\nExpect: 100-continue\r\n\r\n");
	assert_has(text, "HTTP/1.1 413 ");
	assert_null(strstr(text, "100 Continue"));
}

static void send_chunks(int fd, size_t chunks)
{
	static char chunk[10000 + 16];

	(void)snprintf(chunk, sizeof chunk, "2710\r\n");
	memset(chunk + 6, 'a', 10000);
	memcpy(chunk + 10006, "\r\n", 3);
	for (size_t i = 0; i < chunks; i++)
		say(fd, chunk);
}

static void test_chunked_over_the_limit(void **state)
{
	struct fixture *f = *state;
	int before = aborted;
	int fd = dial(f);

	say(fd, "POST /sum HTTP/1.1\r\n" GOOD "Transfer-Encoding: chunked\r\n\r\n");
	send_chunks(fd, 10); /* at the limit */
	say(fd, "0\r\n\r\n");
	assert_has(receive(f, fd), "{\"bytes\":100000,");
	fd = dial(f);
	say(fd, "POST /sum HTTP/1.1\r\n" GOOD "Transfer-Encoding: chunked\r\n\r\n");
	send_chunks(fd, 10);
	say(fd, "1\r\na\r\n0\r\n\r\n"); /* one more */
	assert_has(receive(f, fd), "HTTP/1.1 413 ");
	assert_int_equal(aborted, before + 1);
	fd = dial(f);
	say(fd, "POST /sum HTTP/1.1\r\n" GOOD "Transfer-Encoding: chunked\r\n\r\n");
	send_chunks(fd, 400); /* far beyond: not read to its end */
	assert_has(receive(f, fd), "HTTP/1.1 413 ");
	assert_int_equal(aborted, before + 2);
}

static void wait_for(_Atomic int *n, int want)
{
	const struct timespec step = {.tv_nsec = 10000000};

	for (int i = 0; i < 12000 && *n != want; i++)
		(void)nanosleep(&step, NULL);
	assert_int_equal(*n, want);
}

static void test_client_disconnects_half_way(void **state)
{
	struct fixture *f = *state;
	int before = aborted, first = begun;
	int fd = dial(f);

	say(fd, "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 90000\r\n\r\nhalf");
	wait_for(&begun, first + 1);
	close(fd);
	wait_for(&aborted, before + 1);
	/* a client that falls silent is let go after the timeout */
	fd = dial(f);
	say(fd, "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 90000\r\n\r\nhalf");
	wait_for(&aborted, before + 2);
	close(fd);
	/* a small body is not handed on before it is whole */
	fd = dial(f);
	say(fd, "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 1000\r\n\r\nhalf");
	close(fd);
	assert_has(ask(f, "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 3\r\n\r\nabc"), "200 OK");
	assert_int_equal(aborted, before + 2);
}

/* A client that shuts its sending side down, with the last byte or while it waits, is answered. */
static void test_half_closed_client(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 8; i++) {
		const int before = working;
		const bool waits = i % 2;
		int fd = dial(f);

		held = waits;
		say(fd, "POST /slow HTTP/1.1\r\n" GOOD "Content-Length: 3\r\n\r\nabc");
		if (waits)
			wait_for(&working, before + 1);
		(void)shutdown(fd, SHUT_WR);
		if (waits) /* a later request of another connection */
			(void)ask(f, "GET /echo/a HTTP/1.1\r\n" HOST "\r\n");
		held = false;
		assert_has(receive(f, fd), "{\"bytes\":3,\"sum\":294}");
	}
}

static void test_uploads_are_bounded(void **state)
{
	struct fixture *f = *state;
	int before = aborted, first = begun;
	int fds[2];
	const char *text;

	for (int i = 0; i < 2; i++) {
		fds[i] = dial(f);
		say(fds[i], "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 90000\r\n\r\nhalf");
	}
	wait_for(&begun, first + 2);
	text = ask(f, "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 3\r\n\r\nabc");
	assert_has(text, "503 Service Unavailable");
	assert_has(text, "Retry-After: ");
	close(fds[0]);
	close(fds[1]);
	wait_for(&aborted, before + 2);
	assert_has(ask(f, "POST /sum HTTP/1.1\r\n" GOOD "Content-Length: 3\r\n\r\nabc"), "200 OK");
}

static void test_compressed_replies(void **state)
{
	struct fixture *f = *state;
	static uint8_t plain[1 << 20];
	const char *text;
	size_t plain_len;
	size_t len;
	z_stream z = {0};

	text = ask(f, "GET /big HTTP/1.1\r\n" HOST "\r\n");
	assert_null(strstr(text, "Content-Encoding"));
	assert_has(text, "Vary: Accept-Encoding");
	text = body_of(f, &plain_len);
	assert_has(text, "line 4999\n");

	text = ask(f, "GET /big HTTP/1.1\r\n" HOST "Accept-Encoding: gzip, zstd\r\n\r\n");
	assert_has(text, "Content-Encoding: zstd");
	text = body_of(f, &len);
	assert_int_equal(ZSTD_decompress(plain, sizeof plain, text, len), plain_len);

	text = ask(f, "GET /big HTTP/1.1\r\n" HOST "Accept-Encoding: gzip, zstd;q=0\r\n\r\n");
	assert_has(text, "Content-Encoding: gzip");
	text = body_of(f, &len);
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)text;
	z.avail_in = (uInt)len;
	z.next_out = plain;
	z.avail_out = sizeof plain;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, plain_len);
	inflateEnd(&z);

	text = ask(f, "GET /echo/a HTTP/1.1\r\n" HOST "Accept-Encoding: zstd\r\n\r\n");
	assert_null(strstr(text, "Content-Encoding")); /* not worth it */
}

static void test_etags(void **state)
{
	struct fixture *f = *state;

	assert_has(ask(f, "GET /big HTTP/1.1\r\n" HOST "\r\n"), "ETag: \"v1\"");
	assert_has(ask(f, "GET /big HTTP/1.1\r\n" HOST "If-None-Match: \"v0\", W/\"v1\"\r\n\r\n"),
	        "304 Not Modified");
	assert_has(ask(f, "GET /big HTTP/1.1\r\n" HOST "If-None-Match: \"v0\"\r\n\r\n"), "200 OK");
}

static void test_streams(void **state)
{
	struct fixture *f = *state;
	static char plain[1 << 20];
	const char *text;
	char *body;
	size_t len;

	text = ask(f, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	assert_has(text, "Transfer-Encoding: chunked");
	body = f->reply + (body_of(f, &len) - f->reply);
	assert_true(dechunk(body, &len));
	assert_int_equal(len, 700000);
	assert_memory_equal(body, "000000\n000001\n", 14);
	assert_memory_equal(body + 699993, "099999\n", 7);

	text = ask(f, "GET /stream HTTP/1.1\r\n" HOST "Accept-Encoding: zstd\r\n\r\n");
	assert_has(text, "Content-Encoding: zstd");
	body = f->reply + (body_of(f, &len) - f->reply);
	assert_true(dechunk(body, &len));
	{
		ZSTD_DCtx *d = ZSTD_createDCtx();
		ZSTD_inBuffer in = {body, len, 0};
		ZSTD_outBuffer out = {plain, sizeof plain, 0};

		assert_int_equal(ZSTD_decompressStream(d, &out, &in), 0);
		assert_int_equal(out.pos, 700000);
		ZSTD_freeDCtx(d);
	}
	assert_has(ask(f, "GET /stream?n=x HTTP/1.1\r\n" HOST "\r\n"), "400 Bad Request");
	/* bytes that libmicrohttpd sends after it are not a response to the next request */
	assert_has(ask(f, "HEAD /stream HTTP/1.1\r\n" HOST "\r\n"), "Connection: close\r\n");
	assert_has(ask(f, "GET /stream?n=0 HTTP/1.1\r\n" HOST "\r\n"), "200 OK");
}

/* An error before the first byte is an answer; later it cuts the stream so that it is seen. */
static void test_streams_that_fail(void **state)
{
	struct fixture *f = *state;
	const char *text = ask(f, "GET /stream?n=10&fail=1 HTTP/1.1\r\n" HOST "\r\n");
	char *body;
	size_t len;

	assert_has(text, "503 Service Unavailable");
	assert_null(strstr(text, "the disk went")); /* for the log only */
	assert_has(ask(f, "GET /stream?n=200000&fail=1 HTTP/1.1\r\n" HOST "\r\n"), "200 OK");
	body = f->reply + (body_of(f, &len) - f->reply);
	assert_false(dechunk(body, &len));
}

static void wait_for_metric(const struct fixture *f, const char *metric)
{
	bool found = false;

	for (int i = 0; i < 120000 && !found; i++) {
		struct tw_buf b;

		tw_buf_init(&b, 1 << 20);
		tw_metrics_write(f->parts.metrics, &b);
		tw_response_memory_metrics(f->parts.response_memory, &b);
		assert_int_equal(tw_buf_add(&b, "", 1), TW_OK);
		found = strstr((const char *)b.data, metric) != NULL;
		tw_buf_done(&b);
		if (!found)
			(void)usleep(1000);
	}
	if (!found)
		fail_msg("not in the metrics: %s", metric);
}

static void test_helper_outlives_its_request(void **state)
{
	struct fixture *f = *state;
	char c;
	int fd;

	tw_parallel_set_cores(2);
	client_disconnected = false;
	fd = dial(f);
	say(fd, "GET /endless HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(recv(fd, &c, 1, 0), 1);
	(void)close(fd);
	wait_for_metric(f, "tracewell_requests_open 0\n");
	client_disconnected = true;
	wait_for_metric(f, "tracewell_response_memory_bytes 0\n");
	tw_parallel_set_cores(0);
}

static void test_no_response_is_a_reported_bug(void **state)
{
	struct fixture *f = *state;

	assert_has(ask(f, "GET /silent HTTP/1.1\r\n" HOST "\r\n"), "\"status\":\"internal\"");
}

static void test_nothing_stays_open(void **state)
{
	struct fixture *f = *state;

	(void)ask(f, "BROKEN\r\n\r\n");
	(void)ask(f, "GET /echo/a HTTP/1.1\r\n\r\n"); /* no Host */
	(void)ask(f, "GET /echo/a HTTP/1.1\r\nContent-Length: x\r\n" HOST "\r\n");
	wait_for_metric(f, "tracewell_requests_open 0\n");
	wait_for_metric(f, "tracewell_uploads_open 0\n");
	wait_for_metric(f, "tracewell_request_seconds_bucket{method=\"GET\",route=\"/big\",");
}

/* Each allocation in turn fails, and all after it: a response, a reported failure or a closed
 * connection, never a crash, a leak or a request that stays open. */
static void test_memory_that_fails(void **state)
{
	struct fixture *f = *state;
	static const char *const requests[] = {
	        "GET /big HTTP/1.1\r\n" HOST "Accept-Encoding: zstd\r\n\r\n",
	        "GET /stream?n=30000 HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n",
	        "POST /slow HTTP/1.1\r\n" GOOD "Content-Length: 3\r\n\r\nabc",
	};

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		bool whole = false;

		for (uint64_t n = 1; !whole; n++) {
			assert_true(n < 200);
			tw_mem_fail_at(n);
			(void)ask(f, requests[i]);
			whole = tw_mem_count() < n;
			tw_mem_fail_at(0);
			if (f->len)
				assert_memory_equal(f->reply, "HTTP/1.1 ", 9);
			if (whole)
				assert_has(f->reply, " 200 OK");
		}
	}
}

static void test_keep_alive_after_refusal(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);

	say(fd, "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	        "GET /echo/z HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	(void)receive(f, fd);
	assert_has(f->reply, "401 Unauthorized");
	assert_has(f->reply, "\"id\":\"z\"");
}

static void asked_for(struct fixture *f, const char *target, const char *reply)
{
	char request[300];

	(void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "\r\n", target);
	assert_has(ask(f, request), reply);
}

static void test_parameters(void **state)
{
	struct fixture *f = *state;

	/* defaults, the ends of ranges, words */
	asked_for(f, "/read?name=x", "[x 7 42 1 0 -1  unread]");
	asked_for(f, "/read?name=x&n=-3&m=0&f=false&w=green&v=red&last=y&project=p",
	        "[x -3 0 0 1 0 y unread]");
	asked_for(f, "/read?name=x&n=9&m=9&f=1&many=1&many=2", "[x 9 9 1 0 -1  unread]");
	asked_for(f, "/read?name=x&n=&m=&f=&w=&v=", "[x 7 42 1 0 -1  unread]"); /* as if absent */
	/* one refusal for each rule */
	asked_for(f, "/read", "name is required");
	asked_for(f, "/read?name=", "name is required");
	asked_for(f, "/read?name=abcdef", "name has at most 5 bytes");
	asked_for(f, "/read?name=x&n=-4", "n must be a number from -3 to 9, not -4");
	asked_for(f, "/read?name=x&n=10", "n must be a number from -3 to 9, not 10");
	asked_for(f, "/read?name=x&n=1x", "n must be a number from -3 to 9, not 1x");
	asked_for(f, "/read?name=x&n=99999999999999999999", "n must be a number from");
	asked_for(f, "/read?name=x&f=yes", "f must be 0 or 1, not yes");
	asked_for(f, "/read?name=x&w=blue", "w must be red or green, not blue");
	asked_for(f, "/read?name=x&n=1&n=2", "n is given more than once");
	asked_for(f, "/read?name=x&project=a&project=b", "project is given more than once");
	asked_for(f, "/read?name=x&hidden=1",
	        "unknown parameter hidden; the parameters are: name, n, m, f, w, v, many, last");
	asked_for(f, "/read?name=x&hidden=1", "\"known\":");
	asked_for(f, "/read?name=x&mnay=1", "unknown parameter mnay; did you mean many?");
	asked_for(f, "/read?name=x&mnay=1", "\"known\":");
	/* a route that accepts any parameter reads only declared ones */
	asked_for(f, "/any?name=x&hidden=1&last=z", "[x 7 42 1 0 -1  unread]");
	/* names before the caller is known, values after */
	asked_for(f, "/read/key?n=99", "401 ");
	asked_for(f, "/read/key?hidden=1", "400 ");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_paths_and_queries),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_every_reply_is_guarded),
        cmocka_unit_test(test_callers),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_declared_too_large),
        cmocka_unit_test(test_chunked_over_the_limit),
        cmocka_unit_test(test_client_disconnects_half_way),
        cmocka_unit_test(test_half_closed_client),
        cmocka_unit_test(test_uploads_are_bounded),
        cmocka_unit_test(test_compressed_replies),
        cmocka_unit_test(test_etags),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_streams_that_fail),
        cmocka_unit_test(test_helper_outlives_its_request),
        cmocka_unit_test(test_no_response_is_a_reported_bug),
        cmocka_unit_test(test_keep_alive_after_refusal),
        cmocka_unit_test(test_memory_that_fails),
        cmocka_unit_test(test_nothing_stays_open),
};

UNIT_TESTS_WITH("http", tests, start, fixture_stop)
