#include "server/storage/s3/s3_http.h"

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/storage/s3/s3_int.h"

enum {
	URL_BYTES = 2 * TW_S3_PATH,
	TEXT_MAX = 1 << 20,
	CONNECT_MS = 5000,
	BACKOFF_LEAST_MS = 100,
	BACKOFF_MOST_MS = 5000,
	NAP_MS = 50,
	SKEW_MS = 5 * 60 * 1000,
	BYTES_A_MS = 256, /* assumed minimum rate of a slow store, for time limits */
	TRY_LEAST_MS = 1000,
	MESSAGE_BYTES = 120,
	WRONG_MOST = 3,
	GIVE_UP_MS = 1000,
	MOVING_MS = 1000
};

/* One attempt of a request. */
struct
try {
	struct tw_s3 *s;
	const struct tw_s3_request *r;
	struct tw_s3_response *a;
	CURL *curl;
	struct curl_slist *headers;
	gnutls_hash_hd_t sha; /* of the bytes written to a file */
	uint64_t sent, got;
	int64_t retry_after_ms;
	bool no_space;    /* for the received bytes */
	curl_off_t moved; /* bytes, both directions */
	int64_t began_ms, moved_ms;
	int64_t skew_ms; /* the skew used for signing */
};

/* --- callbacks of libcurl --- */

static size_t read_body(char *out, size_t size, size_t n, void *arg)
{
	struct try *t = arg;
	const struct tw_s3_request *r = t->r;
	uint64_t left = r->from_bytes - t->sent;
	size_t want = size * n < left ? size * n : (size_t)left;
	ssize_t got;

	if (r->text.len) {
		if (want)
			memcpy(out, r->text.ptr + t->sent, want);
		t->sent += want;
		return want;
	}
	got = tw_pread_full(r->from_fd, out, want, r->from_at + t->sent);
	if (got < 0 || (got == 0 && want > 0))
		return CURL_READFUNC_ABORT;
	t->sent += (uint64_t)got;
	return (size_t)got;
}

/* libcurl rewinds the body when it resends it on a fresh connection. */
static int seek(void *arg, curl_off_t at, int origin)
{
	struct try *t = arg;

	if (origin != SEEK_SET || at < 0)
		return CURL_SEEKFUNC_FAIL;
	t->sent = (uint64_t)at;
	return CURL_SEEKFUNC_OK;
}

static bool to_file(struct try *t, const char *p, size_t n)
{
	if (!tw_pwrite_all(t->r->to_fd, p, n, t->got)) {
		t->no_space = true;
		return false;
	}
	t->got += n;
	return gnutls_hash(t->sha, p, n) == 0;
}

static size_t receive_body(char *p, size_t size, size_t n, void *arg)
{
	struct try *t = arg;
	long status = 0;

	(void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	if (t->sha && status / 100 == 2)
		return to_file(t, p, size * n) ? size * n : 0;
	if (t->a->text.len + size * n <= TEXT_MAX)
		(void)tw_buf_add(&t->a->text, p, size * n);
	return size * n;
}

static bool value_of(struct tw_str line, const char *name, struct tw_str *ret)
{
	size_t n = strlen(name);

	if (line.len <= n || line.ptr[n] != ':' || strncasecmp(line.ptr, name, n) != 0)
		return false;
	*ret = tw_str_trim(tw_str_from(line, n + 1));
	return true;
}

static int64_t date_of(struct tw_str value)
{
	char text[64];
	time_t at;

	(void)snprintf(
	        text, sizeof text, "%.*s", (int)(value.len < 63 ? value.len : 63), value.ptr);
	at = curl_getdate(text, NULL);
	return at < 0 ? 0 : (int64_t)at * 1000;
}

static void note_date(struct try *t, int64_t date_ms)
{
	t->a->date_ms = date_ms;
	if (date_ms)
		atomic_store(&t->s->ahead_ms, date_ms - tw_unix_ms());
}

/* The signature is libcurl's. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static size_t receive_header(char *p, size_t size, size_t n, void *arg)
{
	struct try *t = arg;
	struct tw_s3_response *a = t->a;
	struct tw_str line = {p, size * n};
	struct tw_str v;
	uint64_t seconds;

	if (value_of(line, "etag", &v) && v.len < sizeof a->etag)
		(void)snprintf(a->etag, sizeof a->etag, "%.*s", (int)v.len, v.ptr);
	else if (value_of(line, "x-amz-meta-sha256", &v) && v.len == TW_SHA256_HEX - 1)
		(void)snprintf(a->sha256, sizeof a->sha256, "%.64s", v.ptr);
	else if (value_of(line, "content-length", &v))
		(void)!tw_str_u64(v, INT64_MAX, &a->length);
	else if (value_of(line, "date", &v))
		note_date(t, date_of(v));
	else if (value_of(line, "last-modified", &v))
		a->modified_ms = date_of(v);
	else if (value_of(line, "retry-after", &v) && tw_str_u64(v, 3600, &seconds))
		t->retry_after_ms = (int64_t)seconds * 1000;
	return size * n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct try *t = arg;
	const int64_t now = tw_monotonic_ms();

	(void)a;
	(void)c;
	if (b + d != t->moved) {
		t->moved = b + d;
		t->moved_ms = now;
		/* the first bytes may only be in buffers or part of an error; otherwise a store
		 * that drops connections or fails would seem available with each attempt */
		if (now - t->began_ms > MOVING_MS)
			atomic_store(&t->s->answered_ms, now);
	}
	if (atomic_load(&t->s->given_up) && !t->r->timeout_s && now - t->moved_ms > GIVE_UP_MS)
		return 1;
	return atomic_load(&t->s->stopped);
}

/* --- signing --- */

static bool add_line(struct try *t, const char *name, const char *value)
{
	char line[TW_S3_TOKEN + 64];
	struct curl_slist *more;

	(void)snprintf(line, sizeof line, "%s: %s", name, value);
	more = curl_slist_append(t->headers, line);
	if (more)
		t->headers = more;
	return more != NULL;
}

static enum tw_status sign_lines(struct try *t, struct tw_s3_signed *g, struct tw_err *err)
{
	struct tw_buf text;
	bool ok = true;
	enum tw_status st;

	tw_s3_add_header(g, "x-amz-content-sha256", g->s.payload);
	tw_s3_add_header(g, "x-amz-date", g->time);
	if (g->key.token[0])
		tw_s3_add_header(g, "x-amz-security-token", g->key.token);
	tw_buf_init(&text, TEXT_MAX);
	st = tw_s3_authorize(&g->s, &text, err);
	(void)tw_buf_add_u8(&text, 0);
	for (size_t i = 0; i < g->s.n_headers; i++)
		ok = ok && add_line(t, g->headers[i].name, g->headers[i].value);
	if (st == TW_OK && (!ok || tw_buf_status(&text) != TW_OK ||
	                           !add_line(t, "authorization", (const char *)text.data) ||
	                           !add_line(t, "expect", "")))
		st = tw_oom(err);
	tw_buf_done(&text);
	return st;
}

/* --- one attempt --- */

static void set_limits(struct try *t, int64_t left_ms)
{
	CURL *c = t->curl;
	long stall_s = (long)(t->s->timeout_s / 3 ? t->s->timeout_s / 3 : 1);

	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)left_ms);
	(void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	(void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, t->r->silent ? 0L : stall_s);
	(void)curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	(void)curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	(void)curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
	if (t->s->ca_file[0])
		(void)curl_easy_setopt(c, CURLOPT_CAINFO, t->s->ca_file);
}

static void set_bodies(struct try *t)
{
	CURL *c = t->curl;
	const struct tw_s3_request *r = t->r;

	(void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
	(void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, receive_header);
	(void)curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, receive_body);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	if (strcmp(r->method, "HEAD") == 0) {
		(void)curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	} else if (strcmp(r->method, "PUT") == 0 || strcmp(r->method, "POST") == 0) {
		(void)curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(c, CURLOPT_READFUNCTION, read_body);
		(void)curl_easy_setopt(c, CURLOPT_READDATA, t);
		(void)curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, seek);
		(void)curl_easy_setopt(c, CURLOPT_SEEKDATA, t);
		(void)curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->from_bytes);
	}
	(void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
	/* libcurl repeats a request itself if a reused connection ends: for deletes we must know
	 * whether one was sent */
	(void)curl_easy_setopt(
	        c, CURLOPT_FRESH_CONNECT, strcmp(r->method, "DELETE") == 0 ? 1L : 0L);
}

static void forget(struct tw_s3_response *a)
{
	struct tw_buf text = a->text;

	tw_buf_clear(&text);
	*a = (struct tw_s3_response){.text = text};
}

static enum tw_status begin(struct try *t, struct tw_err *err)
{
	struct tw_s3_signed g = {.time = ""};
	char url[URL_BYTES];
	enum tw_status st = tw_s3_prepare(t->s, t->r, &g, err);

	if (st == TW_OK)
		st = sign_lines(t, &g, err);
	explicit_bzero(&g.key, sizeof g.key);
	if (st == TW_OK && t->r->to_fd >= 0)
		st = tw_sha256_begin(GNUTLS_DIG_SHA256, &t->sha, err);
	if (st == TW_OK && t->sha && ftruncate(t->r->to_fd, 0) != 0)
		st = tw_fail(err, TW_IO, "a file cannot be truncated");
	t->curl = st == TW_OK ? tw_curl_pool_take(&t->s->handles) : NULL;
	if (st == TW_OK && !t->curl)
		st = tw_oom(err);
	if (st != TW_OK)
		return st;
	(void)snprintf(
	        url, sizeof url, "%s%s%s%s", t->s->base, g.path, *g.s.query ? "?" : "", g.s.query);
	(void)curl_easy_setopt(t->curl, CURLOPT_URL, url);
	return TW_OK;
}

static void end(struct try *t)
{
	uint8_t hash[32];

	if (t->sha) {
		gnutls_hash_deinit(t->sha, hash);
		tw_sha256_hex(hash, t->a->got_sha256);
	}
	if (t->curl)
		tw_curl_pool_return(&t->s->handles, t->curl);
	curl_slist_free_all(t->headers);
}

static bool is_broken(const struct try *t)
{
	const struct tw_s3_response *a = t->a;

	if (!t->sha || a->status / 100 != 2)
		return false;
	return t->got != a->length || (a->sha256[0] && strcmp(a->sha256, a->got_sha256) != 0);
}

static bool has_code(const struct tw_s3_response *a, const char *code)
{
	char found[64] = "";

	tw_xml_text(tw_buf_str(&a->text), "Code", found, sizeof found);
	return strcmp(found, code) == 0;
}

/* A 404 without details may come from a proxy, or mean a missing bucket.  A HEAD has no text: s3.c
 * sends another request. */
static bool is_missing(const struct try *t)
{
	return strcmp(t->r->method, "HEAD") == 0 || has_code(t->a, "NoSuchKey") ||
	       has_code(t->a, "NoSuchUpload");
}

static enum tw_s3_outcome outcome_of(const struct try *t, CURLcode code)
{
	long status = t->a->status;

	if (code == CURLE_PARTIAL_FILE || (code == CURLE_OK && is_broken(t)))
		return TW_S3_BROKEN;
	if (code != CURLE_OK)
		return TW_S3_SILENT;
	if (status / 100 == 2)
		return TW_S3_OK;
	if (status == 404 && is_missing(t))
		return TW_S3_MISSING;
	if (status == 429 || status == 503)
		return TW_S3_SLOW;
	/* 501: the store does not implement the operation, so retrying is pointless */
	return status >= 500 && status != 501 ? TW_S3_FAILED : TW_S3_REFUSED;
}

/* --- results --- */

/* TW_DENIED: the store refuses, and will again. */
static enum tw_status fail_refused(
        const struct try *t, enum tw_s3_outcome outcome, struct tw_err *err)
{
	char code[64], message[MESSAGE_BYTES];
	const char *name = *t->r->key ? t->r->key : t->s->where;
	struct tw_str text = {(const char *)t->a->text.data, t->a->text.len};
	enum tw_status st = outcome == TW_S3_SLOW || outcome == TW_S3_FAILED ? TW_BUSY : TW_DENIED;

	tw_xml_text(text, "Code", code, sizeof code);
	tw_xml_text(text, "Message", message, sizeof message);
	if (strcmp(code, "NoSuchBucket") == 0)
		return tw_fail(err, TW_DENIED,
		        "the store returned %ld for %.100s: no bucket of that name", t->a->status,
		        t->s->where);
	return tw_fail(err, st, "the store returned %ld for %.90s%s%s %.60s", t->a->status, name,
	        code[0] ? ": " : "", code, message);
}

static enum tw_status fail_unanswered(const struct try *t, CURLcode code, struct tw_err *err)
{
	const char *name = *t->r->key ? t->r->key : t->s->where;

	if (t->no_space)
		return tw_fail(err, TW_FULL, "no space left for data from the store");
	if (atomic_load(&t->s->stopped))
		return tw_fail(err, TW_BUSY, "the server is shutting down");
	return tw_fail(err, TW_BUSY, "the store does not respond for %.90s: %.80s", name,
	        curl_easy_strerror(code));
}

/* The clocks differ: a request signed with the store's time may succeed. */
static bool read_skew(struct try *t, int64_t *ret_skew)
{
	int64_t ahead = t->a->date_ms - tw_unix_ms();

	if (t->a->status != 403 || !t->a->date_ms)
		return false;
	if (!has_code(t->a, "RequestTimeTooSkewed") && (t->a->text.len || llabs(ahead) < SKEW_MS))
		return false;
	*ret_skew = ahead;
	return llabs(ahead - t->skew_ms) > 1000; /* another request may have set it since */
}

static bool is_permanent(const struct try *t, CURLcode code, enum tw_s3_outcome outcome)
{
	if (t->no_space || atomic_load(&t->s->stopped))
		return true;
	if (outcome == TW_S3_SILENT)
		return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
		       code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
		       code == CURLE_READ_ERROR;
	if (outcome == TW_S3_REFUSED) /* damaged or delayed on the way there */
		return t->a->status != 408 && !has_code(t->a, "RequestTimeout") &&
		       !has_code(t->a, "BadDigest") &&
		       !has_code(t->a, "XAmzContentSHA256Mismatch") &&
		       !has_code(t->a, "IncompleteBody");
	return outcome == TW_S3_MISSING;
}

struct exchange {
	struct tw_s3 *s;
	const struct tw_s3_request *r;
	int64_t until_ms; /* monotonic */
	unsigned tries;
	bool skew_adjusted;
	unsigned unanswered;
	unsigned wrong; /* consecutive complete bodies with the same wrong hash */
	char wrong_sha256[TW_SHA256_HEX];
};

/* False: the time limit has passed, or the server stops. */
static bool wait_a_while(const struct exchange *k, int64_t least_ms)
{
	int64_t most = (int64_t)BACKOFF_LEAST_MS << (k->tries < 8 ? k->tries : 8);
	int64_t until, now = tw_monotonic_ms();

	if (most > BACKOFF_MOST_MS)
		most = BACKOFF_MOST_MS;
	until = now + most / 2 + (int64_t)(randombytes_random() % (uint32_t)(most / 2 + 1));
	if (atomic_load(&k->s->given_up))
		return false;
	if (least_ms > BACKOFF_MOST_MS)
		least_ms = BACKOFF_MOST_MS;
	if (until < now + least_ms)
		until = now + least_ms;
	if (until >= k->until_ms)
		return false;
	while (!atomic_load(&k->s->stopped) && !atomic_load(&k->s->given_up) &&
	        (now = tw_monotonic_ms()) < until)
		tw_sleep_ms(until - now < NAP_MS ? until - now : NAP_MS);
	return !atomic_load(&k->s->stopped) && !atomic_load(&k->s->given_up);
}

/* A complete body that is the same each time but not what was stored is damaged in the store:
 * damage in transit would differ each time. */
static bool is_damaged(struct exchange *k, const struct tw_s3_response *a, const struct try *t)
{
	if (t->got != a->length) {
		k->wrong = 0;
		return false;
	}
	if (strcmp(k->wrong_sha256, a->got_sha256) != 0)
		k->wrong = 0;
	memcpy(k->wrong_sha256, a->got_sha256, sizeof k->wrong_sha256);
	return ++k->wrong == WRONG_MOST;
}

/* *ret_again: it can be retried. */
static enum tw_status check_outcome(
        struct exchange *k, struct try *t, CURLcode code, bool *ret_again, struct tw_err *err)
{
	enum tw_s3_outcome outcome = outcome_of(t, code);
	int64_t skew;

	*ret_again = false;
	k->unanswered += outcome == TW_S3_SILENT;
	if (outcome == TW_S3_OK)
		return TW_OK;
	if (!k->skew_adjusted && outcome == TW_S3_REFUSED && read_skew(t, &skew)) {
		atomic_store(&k->s->skew_ms, skew);
		k->skew_adjusted = *ret_again = true;
		return fail_refused(t, outcome, err);
	}
	if (outcome == TW_S3_BROKEN && code == CURLE_OK && is_damaged(k, t->a, t))
		return tw_fail(err, TW_CORRUPT,
		        "%.90s is damaged in the store: it differs from the uploaded content",
		        t->r->key);
	*ret_again = !k->r->once && !is_permanent(t, code, outcome) &&
	             wait_a_while(k, t->retry_after_ms);
	if (outcome == TW_S3_SILENT)
		return fail_unanswered(t, code, err);
	if (outcome == TW_S3_BROKEN)
		return tw_fail(
		        err, TW_BUSY, "the store returned %.90s truncated or changed", t->r->key);
	if (outcome == TW_S3_MISSING)
		return tw_fail(err, TW_NOT_FOUND,
		        "the store returned 404 for %.100s: it does not exist", t->r->key);
	return fail_refused(t, outcome, err);
}

static enum tw_status try_once(
        struct exchange *k, struct tw_s3_response *a, bool *ret_again, struct tw_err *err)
{
	const int64_t began = tw_monotonic_ms();
	struct try t = {.s = k->s,
	        .r = k->r,
	        .a = a,
	        .began_ms = began,
	        .moved_ms = began,
	        .skew_ms = atomic_load(&k->s->skew_ms)};
	CURLcode code = CURLE_OK;
	enum tw_status st;

	*ret_again = false;
	forget(a);
	st = begin(&t, err);
	if (st == TW_OK) {
		set_limits(&t,
		        k->until_ms - began > TRY_LEAST_MS ? k->until_ms - began : TRY_LEAST_MS);
		set_bodies(&t);
		code = curl_easy_perform(t.curl);
		(void)curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &a->status);
	}
	end(&t);
	if (st != TW_OK)
		return st;
	if (t.r->to_fd >= 0 && a->status / 100 == 2 && a->length == 0)
		a->length = t.got; /* absent: chunked */
	if (code == CURLE_OK && a->status && a->status < 500)
		atomic_store(&k->s->answered_ms, tw_monotonic_ms());
	if (k->s->count)
		k->s->count(k->s->arg, k->r->op, outcome_of(&t, code), tw_monotonic_ms() - began);
	return check_outcome(k, &t, code, ret_again, err);
}

enum tw_status tw_s3_send(struct tw_s3 *s, const struct tw_s3_request *r,
        struct tw_s3_response *ret, struct tw_err *err)
{
	struct exchange k = {.s = s, .r = r};
	struct tw_err why = {.msg = ""};
	bool again = true;
	enum tw_status st = TW_OK;

	*ret = (struct tw_s3_response){.status = 0};
	tw_buf_init(&ret->text, TEXT_MAX);
	k.until_ms = tw_monotonic_ms() + (int64_t)(r->bytes / BYTES_A_MS) +
	             (int64_t)(r->timeout_s && r->timeout_s < s->timeout_s ? r->timeout_s
	                                                                   : s->timeout_s) *
	                     1000;
	for (; again; k.tries++)
		st = try_once(&k, ret, &again, &why);
	ret->unanswered = k.unanswered;
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

void tw_s3_give_up(struct tw_s3 *s, bool give_up)
{
	atomic_store(&s->given_up, give_up);
}

bool tw_s3_given_up(const struct tw_s3 *s)
{
	return atomic_load(&s->given_up);
}

int64_t tw_s3_responded_ms(const struct tw_s3 *s)
{
	return atomic_load(&s->answered_ms);
}

int64_t tw_s3_ahead_ms(const struct tw_s3 *s)
{
	return atomic_load(&s->ahead_ms);
}

void tw_s3_response_done(struct tw_s3_response *a)
{
	tw_buf_done(&a->text);
}

/* --- XML of responses --- */

enum { TAG_BYTES = 64 };

bool tw_xml_next(struct tw_str *text, const char *tag, struct tw_str *ret)
{
	char open[TAG_BYTES], close[TAG_BYTES];
	size_t at, end;

	(void)snprintf(open, sizeof open, "<%.60s>", tag);
	(void)snprintf(close, sizeof close, "</%.60s>", tag);
	at = text->len ? tw_str_find(*text, tw_str_of(open)) : SIZE_MAX;
	if (at >= text->len)
		return false;
	*text = tw_str_from(*text, at + strlen(open));
	end = text->len ? tw_str_find(*text, tw_str_of(close)) : SIZE_MAX;
	if (end >= text->len)
		return false;
	*ret = (struct tw_str){text->ptr, end};
	*text = tw_str_from(*text, end + strlen(close));
	return true;
}

static size_t entity(struct tw_str s, char *ret)
{
	static const struct {
		const char *text;
		char is;
	} known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#34;", '"'},
	        {"&apos;", '\''}, {"&#39;", '\''}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (tw_str_starts(s, tw_str_of(known[i].text))) {
			*ret = known[i].is;
			return strlen(known[i].text);
		}
	*ret = s.ptr[0];
	return 1;
}

void tw_xml_text(struct tw_str text, const char *tag, char *out, size_t cap)
{
	struct tw_str found;
	size_t n = 0;

	out[0] = '\0';
	if (!tw_xml_next(&text, tag, &found))
		return;
	while (found.len && n + 1 < cap)
		found = tw_str_from(found, entity(found, &out[n++]));
	out[n] = '\0';
}
