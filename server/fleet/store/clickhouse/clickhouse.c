#include "server/fleet/store/clickhouse/clickhouse.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/curl_pool.h"
#include "server/base/file/io.h"

enum {
	HOSTS_MAX = 8,
	HOST_BYTES = 256,
	NAME_BYTES = 64,
	PASSWORD_BYTES = 512,
	URL_BYTES = 1024,
	IDLE_MAX = 8,
	CONNECT_MS = 3000,
	GRACE_MS = 2000, /* from the limit of a query to closing its connection */
	MESSAGE_BYTES = 4096,
	QUERY_BYTES = 4 << 20
};

struct tw_clickhouse {
	char hosts[HOSTS_MAX][HOST_BYTES]; /* with their ports */
	unsigned n_hosts;
	_Atomic unsigned host; /* the last one that responded */
	bool tls;
	char database[NAME_BYTES + 1], user[NAME_BYTES + 1];
	char *password_file, *ca_file;
	struct tw_curl_pool handles;
	_Atomic uint64_t answered, refused, unanswered;
};

/* --- address --- */

static bool is_name(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isalnum((unsigned char)s.ptr[i]) && s.ptr[i] != '_')
			return false;
	return s.len > 0 && s.len <= NAME_BYTES;
}

static bool is_host(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isalnum((unsigned char)s.ptr[i]) && !strchr(".-_:[]", s.ptr[i]))
			return false;
	return s.len > 0 && s.len < HOST_BYTES - 8;
}

static bool has_port(struct tw_str s)
{
	for (size_t i = s.len; i-- > 0 && s.ptr[i] != ']';)
		if (s.ptr[i] == ':')
			return true;
	return false;
}

static bool take_host(struct tw_clickhouse *c, struct tw_str host)
{
	if (c->n_hosts == HOSTS_MAX || !is_host(host))
		return false;
	(void)snprintf(c->hosts[c->n_hosts++], HOST_BYTES, "%.*s%s", (int)host.len, host.ptr,
	        has_port(host) ? ""
	        : c->tls       ? ":8443"
	                       : ":8123");
	return true;
}

static enum tw_status bad_url(struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST,
	        "--analytics is clickhouse://HOST:8123/DATABASE, with several hosts as"
	        " HOST,HOST, and clickhouse+https:// with TLS; a database is named by letters,"
	        " digits and _");
}

static enum tw_status take_url(struct tw_clickhouse *c, const char *url, struct tw_err *err)
{
	static const char plain[] = "clickhouse://", secure[] = "clickhouse+https://";
	struct tw_str hosts, rest;

	c->tls = strncmp(url, secure, sizeof secure - 1) == 0;
	if (!c->tls && strncmp(url, plain, sizeof plain - 1) != 0)
		return bad_url(err);
	rest = tw_str_of(url + (c->tls ? sizeof secure : sizeof plain) - 1);
	hosts = tw_str_split(&rest, '/');
	while (hosts.len)
		if (!take_host(c, tw_str_split(&hosts, ',')))
			return bad_url(err);
	if (!c->n_hosts || !is_name(rest))
		return bad_url(err);
	(void)snprintf(c->database, sizeof c->database, "%.*s", (int)rest.len, rest.ptr);
	return TW_OK;
}

static char *copy_of(const char *text)
{
	char *copy = tw_mem_alloc(strlen(text) + 1, 1);

	if (copy)
		memcpy(copy, text, strlen(text) + 1);
	return copy;
}

/* Read for each request, so that it may be replaced while the server runs. */
static enum tw_status read_password(
        const struct tw_clickhouse *c, char out[PASSWORD_BYTES], struct tw_err *err)
{
	out[0] = '\0';
	if (c->password_file[0] && !tw_file_text(c->password_file, out, PASSWORD_BYTES))
		return tw_fail_errno(err, TW_IO, "cannot read %s", c->password_file);
	out[strcspn(out, "\r\n")] = '\0';
	return TW_OK;
}

enum tw_status tw_clickhouse_new(
        const struct tw_clickhouse_at *at, struct tw_clickhouse **ret, struct tw_err *err)
{
	struct tw_clickhouse *c = tw_mem_zalloc(1, sizeof *c);
	char password[PASSWORD_BYTES];
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		tw_mem_free(c);
		return tw_oom(err);
	}
	tw_curl_pool_init(&c->handles, IDLE_MAX);
	(void)snprintf(c->user, sizeof c->user, "%s", at->user);
	c->password_file = copy_of(at->password_file);
	c->ca_file = copy_of(at->ca_file);
	st = c->password_file && c->ca_file ? take_url(c, at->url, err) : tw_oom(err);
	if (st == TW_OK && at->user[0] && !is_name(tw_str_of(at->user)))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "--analytics-user is up to %d letters, digits and _", NAME_BYTES);
	if (st == TW_OK)
		st = read_password(c, password, err);
	explicit_bzero(password, sizeof password);
	if (st == TW_OK)
		*ret = c;
	else
		(void)tw_clickhouse_free(c);
	return st;
}

struct tw_clickhouse *tw_clickhouse_free(struct tw_clickhouse *c)
{
	if (!c)
		return NULL;
	tw_curl_pool_done(&c->handles);
	tw_mem_free(c->password_file);
	tw_mem_free(c->ca_file);
	tw_mem_free(c);
	curl_global_cleanup();
	return NULL;
}

const char *tw_clickhouse_database(const struct tw_clickhouse *c)
{
	return c->database;
}

struct tw_clickhouse_counts tw_clickhouse_counts(const struct tw_clickhouse *c)
{
	return (struct tw_clickhouse_counts){
	        atomic_load(&c->answered), atomic_load(&c->refused), atomic_load(&c->unanswered)};
}

/* --- one request --- */

struct request {
	struct tw_clickhouse *c;
	const struct tw_clickhouse_query *q;
	CURL *curl;
	struct tw_buf *out;
	char message[MESSAGE_BYTES]; /* the beginning of an error message */
	size_t n_message;
	bool too_large;
	int64_t until_ms;
};

/* The signature is libcurl's. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static size_t receive(char *p, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	long status = 0;

	n *= size;
	(void)curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status / 100 != 2) {
		const size_t rest = MESSAGE_BYTES - 1 - r->n_message, more = n < rest ? n : rest;

		memcpy(r->message + r->n_message, p, more);
		r->n_message += more;
		r->message[r->n_message] = '\0';
		return n;
	}
	r->too_large = r->out && tw_buf_add(r->out, p, n) != TW_OK;
	return r->too_large ? 0 : n;
}

/* Settings of every query. With wait_end_of_query, a query that fails half way has an error
 * status. */
static enum tw_status write_url(struct request *r, unsigned host, char out[URL_BYTES],
        char *escaped_sql, struct tw_buf *url, struct tw_err *err)
{
	const struct tw_clickhouse *c = r->c;
	const int64_t left = r->until_ms - tw_monotonic_ms();

	(void)snprintf(out, URL_BYTES,
	        "%s://%s/?%s%s%smax_execution_time=%lld&default_format=RowBinary"
	        "&wait_end_of_query=1&max_query_size=%d&distributed_product_mode=local"
	        "&insert_distributed_sync=1",
	        c->tls ? "https" : "http", c->hosts[host],
	        r->q->without_database ? "" : "database=",
	        r->q->without_database ? "" : c->database, r->q->without_database ? "" : "&",
	        (long long)(left / 1000 + 1), QUERY_BYTES);
	(void)tw_buf_add_str(url, tw_str_of(out));
	if (escaped_sql) {
		(void)tw_buf_add_str(url, TW_STR("&query="));
		(void)tw_buf_add_str(url, tw_str_of(escaped_sql));
	}
	(void)tw_buf_add_u8(url, 0);
	return tw_buf_status(url) == TW_OK ? TW_OK : tw_oom(err);
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
	char line[PASSWORD_BYTES + 64];
	struct curl_slist *more;

	(void)snprintf(line, sizeof line, "%s: %s", name, value);
	more = curl_slist_append(list, line);
	explicit_bzero(line, sizeof line);
	return more ? more : list;
}

static struct curl_slist *make_headers(const struct tw_clickhouse *c, const char *password)
{
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	list = add_header(list, "Content-Type", "application/octet-stream");
	if (c->user[0])
		list = add_header(list, "X-ClickHouse-User", c->user);
	if (password[0])
		list = add_header(list, "X-ClickHouse-Key", password);
	return list;
}

static CURLcode send_to(struct request *r, const char *url, const struct curl_slist *headers)
{
	const struct tw_str body = r->q->rows.len ? r->q->rows : r->q->sql;
	const int64_t left = r->until_ms - tw_monotonic_ms();
	CURL *curl = r->curl;

	(void)curl_easy_setopt(curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, r->c->tls ? "https" : "http");
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)((left > 0 ? left : 1) + GRACE_MS));
	/* libcurl sends again what a connection that it kept did not respond to */
	(void)curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, r->q->rows.len ? 1L : 0L);
	(void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.ptr);
	(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
	if (r->c->ca_file[0])
		(void)curl_easy_setopt(curl, CURLOPT_CAINFO, r->c->ca_file);
	return curl_easy_perform(curl);
}

/* "Code: 159, e.displayText() = ..." */
static enum tw_status refused(const struct request *r, long status, struct tw_err *err)
{
	enum {
		TOO_MANY_ROWS = 158,
		TIMEOUT = 159,
		TOO_MUCH = 241,
		TOO_MANY_BYTES = 307,
		TOO_BIG = 396
	};
	const char *at = strstr(r->message, "Code: ");
	struct tw_str rest = tw_str_of(at ? at + 6 : "");
	uint64_t code = 0;

	(void)tw_str_u64(tw_str_split(&rest, ','), INT32_MAX, &code);
	if (code == TIMEOUT)
		return tw_fail(err, TW_DEADLINE,
		        "ClickHouse did not respond in time; narrow the filter or the time range");
	if (code == TOO_MANY_ROWS || code == TOO_MUCH || code == TOO_MANY_BYTES || code == TOO_BIG)
		return tw_fail(err, TW_TOO_LARGE,
		        "too many rows for one response of ClickHouse; narrow the filter or the "
		        "time range");
	if (status == 502 || status == 503 || status == 504)
		return tw_fail(err, TW_BUSY, "ClickHouse returned HTTP %ld", status);
	return tw_fail(
	        err, TW_IO, "ClickHouse refused a query: HTTP %ld, %.140s", status, r->message);
}

static enum tw_status end_of(struct request *r, CURLcode code, struct tw_err *err)
{
	struct tw_clickhouse *c = r->c;
	long status = 0;

	(void)curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
	if (r->too_large) {
		(void)atomic_fetch_add(&c->answered, 1);
		return tw_fail(err, TW_TOO_LARGE,
		        "too many rows for one response; narrow the filter or the time range");
	}
	if (code == CURLE_OK && status / 100 == 2) {
		(void)atomic_fetch_add(&c->answered, 1);
		return TW_OK;
	}
	if (code == CURLE_OK) {
		(void)atomic_fetch_add(&c->refused, 1);
		return refused(r, status, err);
	}
	(void)atomic_fetch_add(&c->unanswered, 1);
	return tw_fail(err, TW_BUSY, "ClickHouse does not respond: %s", curl_easy_strerror(code));
}

/* Nothing was sent, so another host may be tried. */
static bool is_unsent(CURLcode code)
{
	return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
}

static bool is_silent(const struct request *r, CURLcode code)
{
	double connected = 0;

	if (code != CURLE_OPERATION_TIMEDOUT)
		return false;
	(void)curl_easy_getinfo(r->curl, CURLINFO_PRETRANSFER_TIME, &connected);
	return connected <= 0; /* no connection within CONNECT_MS */
}

static enum tw_status query_hosts(struct request *r, const char *password, struct tw_err *err)
{
	struct tw_clickhouse *c = r->c;
	char *sql = r->q->rows.len ? curl_easy_escape(r->curl, r->q->sql.ptr, (int)r->q->sql.len)
	                           : NULL;
	struct curl_slist *headers = make_headers(c, password);
	const unsigned first = atomic_load(&c->host);
	enum tw_status st = TW_BUSY;

	for (unsigned i = 0; i < c->n_hosts; i++) {
		const unsigned host = (first + i) % c->n_hosts;
		char begin[URL_BYTES];
		struct tw_buf url;
		CURLcode code = CURLE_OUT_OF_MEMORY;

		tw_buf_init(&url, QUERY_BYTES);
		st = write_url(r, host, begin, sql, &url, err);
		if (st == TW_OK)
			code = send_to(r, (const char *)url.data, headers);
		if (st == TW_OK)
			st = end_of(r, code, err);
		tw_buf_done(&url);
		if (!is_unsent(code) && !is_silent(r, code)) {
			atomic_store(&c->host, host);
			break;
		}
	}
	curl_slist_free_all(headers);
	curl_free(sql);
	return st;
}

enum tw_status tw_clickhouse_request(struct tw_clickhouse *c, const struct tw_clickhouse_query *q,
        struct tw_buf *out, struct tw_err *err)
{
	struct request r = {.c = c, .q = q, .out = out, .until_ms = tw_monotonic_ms() + q->ms};
	char password[PASSWORD_BYTES];
	enum tw_status st = read_password(c, password, err);

	if (st != TW_OK)
		return st;
	r.curl = tw_curl_pool_take(&c->handles);
	st = r.curl ? query_hosts(&r, password, err) : tw_oom(err);
	explicit_bzero(password, sizeof password);
	if (r.curl)
		tw_curl_pool_return(&c->handles, r.curl);
	return st;
}

/* --- escaping --- */

void tw_clickhouse_quote(struct tw_buf *out, const char *text)
{
	(void)tw_buf_add_u8(out, '\'');
	for (const char *p = text; *p; p++) {
		const unsigned char b = (unsigned char)*p;

		if (b < ' ' || b == '\'' || b == '\\' || b == 0x7f)
			(void)tw_buf_printf(out, "\\x%02X", b);
		else
			(void)tw_buf_add_u8(out, b);
	}
	(void)tw_buf_add_u8(out, '\'');
}

void tw_clickhouse_put_text(struct tw_buf *out, const char *text)
{
	const struct tw_str s = tw_str_of(text);

	(void)tw_buf_add_varint(out, s.len);
	(void)tw_buf_add_str(out, s);
}

/* --- results --- */

enum tw_status tw_clickhouse_damaged(struct tw_err *err)
{
	return tw_fail(err, TW_IO, "ClickHouse returned a result of an unexpected form");
}

enum tw_status tw_clickhouse_read(struct tw_clickhouse *c, const struct tw_clickhouse_query *q,
        size_t max_bytes, struct tw_clickhouse_reader *ret, struct tw_err *err)
{
	enum tw_status st;

	tw_buf_init(&ret->result, max_bytes);
	st = tw_clickhouse_request(c, q, &ret->result, err);
	ret->p = ret->result.data;
	ret->end = st == TW_OK && ret->p ? ret->p + ret->result.len : ret->p;
	ret->damaged = false;
	return st;
}

enum tw_status tw_clickhouse_end(
        struct tw_clickhouse_reader *r, enum tw_status st, struct tw_err *err)
{
	tw_buf_done(&r->result);
	return st == TW_OK && r->damaged ? tw_clickhouse_damaged(err) : st;
}

bool tw_clickhouse_more(const struct tw_clickhouse_reader *r)
{
	return !r->damaged && r->p != r->end;
}

struct tw_str tw_clickhouse_fixed(struct tw_clickhouse_reader *r, size_t n)
{
	struct tw_str s = {(const char *)r->p, n};

	if (r->damaged || (size_t)(r->end - r->p) < n) {
		r->damaged = true;
		return (struct tw_str){"", 0};
	}
	r->p += n;
	return s;
}

static uint64_t number(struct tw_clickhouse_reader *r, size_t bytes)
{
	const struct tw_str s = tw_clickhouse_fixed(r, bytes);
	uint64_t v = 0;

	for (size_t i = s.len; i-- > 0;)
		v = v << 8 | (unsigned char)s.ptr[i];
	return v;
}

uint8_t tw_clickhouse_u8(struct tw_clickhouse_reader *r)
{
	return (uint8_t)number(r, 1);
}

uint16_t tw_clickhouse_u16(struct tw_clickhouse_reader *r)
{
	return (uint16_t)number(r, 2);
}

uint64_t tw_clickhouse_u64(struct tw_clickhouse_reader *r)
{
	return number(r, 8);
}

int64_t tw_clickhouse_i64(struct tw_clickhouse_reader *r)
{
	const uint64_t v = number(r, 8);

	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

double tw_clickhouse_double(struct tw_clickhouse_reader *r)
{
	const uint64_t bits = number(r, 8);
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

uint64_t tw_clickhouse_n(struct tw_clickhouse_reader *r)
{
	uint64_t n = 0;

	if (r->damaged || !tw_get_varint(&r->p, r->end, &n) || n > (uint64_t)(r->end - r->p)) {
		r->damaged = true; /* an element takes at least one byte */
		return 0;
	}
	return n;
}

struct tw_str tw_clickhouse_text(struct tw_clickhouse_reader *r)
{
	return tw_clickhouse_fixed(r, tw_clickhouse_n(r));
}
