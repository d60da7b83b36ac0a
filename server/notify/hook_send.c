#include "server/notify/hook_send.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/catalogue/notify/hook.h"
#include "server/notify/hook_mail.h"

struct transfer {
	CURL *curl;
	struct curl_slist *headers, *to;
	struct tw_str unsent; /* the rest of a mail */
	size_t received;
	struct tw_buf *response; /* NULL: the response is not stored */
	int64_t began_ms;
	const struct tw_proxies *allowed;
	char refused[INET6_ADDRSTRLEN]; /* the private address that was refused */
	bool is_mail;
	void *arg;
};

enum { ACTIVE_MAX = 16, STEP_MS = 250 };

struct tw_sender {
	CURLM *multi;
	const struct tw_proxies *allowed;
	struct transfer *active[ACTIVE_MAX];
	size_t n;
};

enum tw_status tw_sender_new(
        const struct tw_proxies *allowed, struct tw_sender **ret, struct tw_err *err)
{
	struct tw_sender *s;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return tw_fail(err, TW_NOMEM, "libcurl cannot be initialised");
	s = tw_mem_zalloc(1, sizeof *s);
	if (!s)
		return tw_oom(err);
	s->allowed = allowed;
	s->multi = curl_multi_init();
	if (!s->multi) {
		tw_mem_free(s);
		return tw_oom(err);
	}
	/* one connection per delivery: the name may resolve to another address next time */
	(void)curl_multi_setopt(s->multi, CURLMOPT_MAXCONNECTS, 1L);
	*ret = s;
	return TW_OK;
}

static void end(struct tw_sender *s, struct transfer *one)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->active[i] == one)
			s->active[i--] = s->active[--s->n];
	if (one->curl) {
		(void)curl_multi_remove_handle(s->multi, one->curl);
		curl_easy_cleanup(one->curl);
	}
	curl_slist_free_all(one->headers);
	curl_slist_free_all(one->to);
	tw_mem_free(one);
}

struct tw_sender *tw_sender_free(struct tw_sender *s)
{
	if (!s)
		return NULL;
	while (s->n)
		end(s, s->active[0]);
	(void)curl_multi_cleanup(s->multi);
	tw_mem_free(s);
	return NULL;
}

/* --- callbacks of libcurl --- */

static bool text_of(const struct sockaddr *a, char out[INET6_ADDRSTRLEN])
{
	if (a->sa_family == AF_INET)
		return inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr,
		               out, INET6_ADDRSTRLEN) != NULL;
	return a->sa_family == AF_INET6 &&
	       inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, out,
	               INET6_ADDRSTRLEN) != NULL;
}

static curl_socket_t connect_to(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct transfer *one = arg;
	char address[INET6_ADDRSTRLEN];

	if (purpose != CURLSOCKTYPE_IPCXN || !text_of(&to->addr, address))
		return CURL_SOCKET_BAD;
	if (!one->is_mail && tw_hook_is_private(address) &&
	        !tw_proxies_trust(one->allowed, address)) {
		memcpy(one->refused, address, sizeof address);
		return CURL_SOCKET_BAD;
	}
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* Ends the transfer of an endless response.  libcurl defines the signature. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static size_t on_response(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *one = arg;

	one->received += size * n;
	if (one->response)
		return tw_buf_add(one->response, p, size * n) == TW_OK ? size * n : 0;
	return one->received <= TW_SEND_RESPONSE_BYTES ? size * n : 0;
}

static size_t on_read(char *out, size_t size, size_t n, void *arg)
{
	struct transfer *one = arg;
	const size_t most = size * n < one->unsent.len ? size * n : one->unsent.len;

	if (most)
		memcpy(out, one->unsent.ptr, most);
	one->unsent.ptr += most;
	one->unsent.len -= most;
	return most;
}

/* Reads a mail server's replies. libcurl waits for the reply to QUIT beyond the total time limit,
 * so the time limit per reply is shortened once QUIT may be next. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static size_t on_reply(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *one = arg;
	const bool no = size * n > 3 && (p[0] == '4' || p[0] == '5');
	const long wait = no                     ? TW_SEND_REFUSED_S
	                  : one->unsent.len == 0 ? TW_SEND_BYE_S
	                                         : TW_SEND_MAIL_S;

	(void)curl_easy_setopt(one->curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, wait);
	return size * n;
}

/* --- begin --- */

/* NULL: out of memory. */
static struct transfer *begin(const struct tw_sender *s, void *arg)
{
	struct transfer *one = tw_mem_zalloc(1, sizeof *one);

	if (one)
		one->curl = curl_easy_init();
	if (!one || !one->curl) {
		tw_mem_free(one);
		return NULL;
	}
	one->arg = arg;
	one->allowed = s->allowed;
	one->began_ms = tw_monotonic_ms();
	(void)curl_easy_setopt(one->curl, CURLOPT_PRIVATE, one);
	(void)curl_easy_setopt(one->curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(one->curl, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(one->curl, CURLOPT_QUICK_EXIT, 1L);
	(void)curl_easy_setopt(one->curl, CURLOPT_FRESH_CONNECT, 1L);
	(void)curl_easy_setopt(one->curl, CURLOPT_FORBID_REUSE, 1L);
	(void)curl_easy_setopt(one->curl, CURLOPT_CONNECTTIMEOUT, (long)TW_SEND_CONNECT_S);
	(void)curl_easy_setopt(one->curl, CURLOPT_OPENSOCKETFUNCTION, connect_to);
	(void)curl_easy_setopt(one->curl, CURLOPT_OPENSOCKETDATA, one);
	(void)curl_easy_setopt(one->curl, CURLOPT_WRITEFUNCTION, on_response);
	(void)curl_easy_setopt(one->curl, CURLOPT_WRITEDATA, one);
	return one;
}

static enum tw_status start_transfer(
        struct tw_sender *s, struct transfer *one, bool complete, struct tw_err *err)
{
	if (complete && s->n < ACTIVE_MAX &&
	        curl_multi_add_handle(s->multi, one->curl) == CURLM_OK) {
		s->active[s->n++] = one;
		return TW_OK;
	}
	end(s, one);
	return tw_oom(err);
}

static bool add_line(struct curl_slist **io, const char *name, const char *value)
{
	char line[1400];
	struct curl_slist *more;

	(void)snprintf(line, sizeof line, "%s%s", name, value);
	more = curl_slist_append(*io, line);
	*io = more ? more : *io;
	return more != NULL;
}

static void set_http(struct transfer *one, const char *url, struct tw_str body)
{
	(void)curl_easy_setopt(one->curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(one->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(one->curl, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(one->curl, CURLOPT_TIMEOUT, (long)TW_SEND_TOTAL_S);
	(void)curl_easy_setopt(one->curl, CURLOPT_USERAGENT, "tracewell");
	(void)curl_easy_setopt(one->curl, CURLOPT_HTTPHEADER, one->headers);
	if (body.len == 0)
		return;
	(void)curl_easy_setopt(one->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	(void)curl_easy_setopt(one->curl, CURLOPT_POSTFIELDS, body.ptr);
}

enum tw_status tw_sender_post(
        struct tw_sender *s, const struct tw_hook_post *what, struct tw_err *err)
{
	struct transfer *one = begin(s, what->arg);
	bool complete;

	if (!one)
		return tw_oom(err);
	complete = add_line(&one->headers, "Content-Type: ", "application/json") &&
	           add_line(&one->headers, "Tracewell-Event: ", what->event) &&
	           add_line(&one->headers, "Tracewell-Event-Id: ", what->event_id) &&
	           add_line(&one->headers, "Tracewell-Signature: ", what->signature) &&
	           add_line(&one->headers, "Expect:", "");
	set_http(one, what->url, what->body);
	return start_transfer(s, one, complete, err);
}

enum tw_status tw_sender_request(
        struct tw_sender *s, const struct tw_send_request *what, struct tw_err *err)
{
	struct transfer *one = begin(s, what->arg);
	bool complete;

	if (!one)
		return tw_oom(err);
	one->response = what->response;
	complete = add_line(&one->headers, "Expect:", "") &&
	           (what->body.len == 0 ||
	                   add_line(&one->headers, "Content-Type: ", "application/json"));
	for (size_t i = 0; complete && i < what->n_headers; i++)
		complete = add_line(&one->headers, what->headers[i], "");
	set_http(one, what->url, what->body);
	(void)curl_easy_setopt(one->curl, CURLOPT_CUSTOMREQUEST, what->method);
	return start_transfer(s, one, complete, err);
}

#if LIBCURL_VERSION_NUM < 0x080200
#define CURLOPT_MAIL_RCPT_ALLOWFAILS CURLOPT_MAIL_RCPT_ALLLOWFAILS
#endif

static void sign_in(CURL *curl, const struct tw_smtp *by)
{
	const bool secret = *by->user != '\0';

	if (*by->ca_file)
		(void)curl_easy_setopt(curl, CURLOPT_CAINFO, by->ca_file);
	if (secret) {
		(void)curl_easy_setopt(curl, CURLOPT_USERNAME, by->user);
		(void)curl_easy_setopt(curl, CURLOPT_PASSWORD, by->password);
	}
	/* a password is never sent without TLS */
	(void)curl_easy_setopt(
	        curl, CURLOPT_USE_SSL, secret ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_TRY);
}

static void set_smtp(struct transfer *one, const struct tw_smtp *by)
{
	one->is_mail = true;
	(void)curl_easy_setopt(one->curl, CURLOPT_URL, by->url);
	(void)curl_easy_setopt(one->curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	(void)curl_easy_setopt(one->curl, CURLOPT_TIMEOUT, (long)TW_SEND_MAIL_S);
	(void)curl_easy_setopt(one->curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)TW_SEND_MAIL_S);
	(void)curl_easy_setopt(one->curl, CURLOPT_HEADERFUNCTION, on_reply);
	(void)curl_easy_setopt(one->curl, CURLOPT_HEADERDATA, one);
	sign_in(one->curl, by);
}

enum tw_status tw_sender_greet(struct tw_sender *s, const struct tw_smtp *by, struct tw_err *err)
{
	struct transfer *one = begin(s, NULL);

	if (!one)
		return tw_oom(err);
	set_smtp(one, by);
	(void)curl_easy_setopt(one->curl, CURLOPT_CUSTOMREQUEST, "NOOP");
	(void)curl_easy_setopt(one->curl, CURLOPT_NOBODY, 1L);
	return start_transfer(s, one, true, err);
}

enum tw_status tw_sender_mail(struct tw_sender *s, const struct tw_mail *what, struct tw_err *err)
{
	char from[300];
	struct transfer *one = begin(s, what->arg);
	bool complete;

	if (!one)
		return tw_oom(err);
	set_smtp(one, what->by);
	one->unsent = what->message;
	complete = add_line(&one->to, what->to, "");
	(void)snprintf(from, sizeof from, "<%s>", what->by->from);
	(void)curl_easy_setopt(one->curl, CURLOPT_MAIL_FROM, from);
	(void)curl_easy_setopt(one->curl, CURLOPT_MAIL_RCPT, one->to);
	(void)curl_easy_setopt(one->curl, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(one->curl, CURLOPT_READFUNCTION, on_read);
	(void)curl_easy_setopt(one->curl, CURLOPT_READDATA, one);
	return start_transfer(s, one, complete, err);
}

/* --- end --- */

static void explain_no_response(const struct transfer *one, CURLcode code, char *out, size_t cap)
{
	double connected = 0;

	(void)curl_easy_getinfo(one->curl, CURLINFO_PRETRANSFER_TIME, &connected);
	if (one->refused[0] && code == CURLE_COULDNT_CONNECT)
		(void)snprintf(out, cap,
		        "its name resolves to %s, a private address, which --webhook-private does "
		        "not allow",
		        one->refused);
	else if (code == CURLE_OPERATION_TIMEDOUT && connected <= 0)
		(void)snprintf(out, cap, "no connection within %d seconds", TW_SEND_CONNECT_S);
	else if (code == CURLE_OPERATION_TIMEDOUT)
		(void)snprintf(out, cap, "no response within %d seconds",
		        one->is_mail ? TW_SEND_MAIL_S : TW_SEND_TOTAL_S);
	else if (code == CURLE_GOT_NOTHING)
		(void)snprintf(out, cap, "the connection was closed without a response");
	else if (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR)
		(void)snprintf(out, cap, "the connection was closed during the response");
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		(void)snprintf(out, cap,
		        "its certificate has another name, has expired or is not signed by a "
		        "trusted CA%s",
		        one->is_mail ? " (--smtp-ca-file)" : "");
	else if (code == CURLE_USE_SSL_FAILED)
		(void)snprintf(out, cap,
		        "the mail server offers no TLS, and the password is sent only over TLS");
	else if (code == CURLE_LOGIN_DENIED)
		(void)snprintf(out, cap,
		        "the mail server refuses the login: check --smtp-user and its password");
	else if (code == CURLE_COULDNT_RESOLVE_HOST)
		(void)snprintf(out, cap, "its host name does not resolve");
	else
		(void)snprintf(out, cap, "%s", curl_easy_strerror(code));
}

static void explain_status(const struct transfer *one, long http, char *out, size_t cap)
{
	if (one->is_mail)
		(void)snprintf(out, cap, "the mail server returned %ld", http);
	else if (http >= 300 && http < 400)
		(void)snprintf(out, cap,
		        "it returned %ld, a redirect, which is not followed: set the final address",
		        http);
	else
		(void)snprintf(out, cap, "it returned %ld", http);
}

static bool is_success(const struct transfer *one, CURLcode code, long http)
{
	if (one->is_mail)
		return code == CURLE_OK;
	if (http < 200 || http >= 300)
		return false;
	/* the status is known; the rest of a long response is not needed */
	return code == CURLE_OK || (code == CURLE_WRITE_ERROR && !one->response &&
	                                   one->received > TW_SEND_RESPONSE_BYTES);
}

/* -1: absent, or not a number. */
static int64_t header(CURL *curl, const char *name)
{
	struct curl_header *h = NULL;
	int64_t n;

	return curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK &&
	                       tw_str_i64(tw_str_of(h->value), &n)
	               ? n
	               : -1;
}

/* Seconds until an exhausted rate limit resets, as GitHub and GitLab report it; 0: not
 * exhausted. */
static int64_t until_reset(CURL *curl)
{
	static const char *const names[][2] = {{"x-ratelimit-remaining", "x-ratelimit-reset"},
	        {"ratelimit-remaining", "ratelimit-reset"}};

	for (size_t i = 0; i < 2; i++)
		if (header(curl, names[i][0]) == 0) {
			const int64_t left = header(curl, names[i][1]) - tw_unix_ms() / 1000;

			return left > 0 ? left : 1;
		}
	return 0;
}

static void report(const struct transfer *one, CURLcode code, struct tw_sent *ret)
{
	const bool cut = code == CURLE_WRITE_ERROR &&
	                 (one->response || one->received > TW_SEND_RESPONSE_BYTES);
	curl_off_t after = 0;
	const char *location = NULL;
	long http = 0;

	(void)curl_easy_getinfo(one->curl, CURLINFO_RESPONSE_CODE, &http);
	(void)curl_easy_getinfo(one->curl, CURLINFO_RETRY_AFTER, &after);
	(void)curl_easy_getinfo(one->curl, CURLINFO_REDIRECT_URL, &location);
	if (after == 0 && (http == 403 || http == 429))
		after = until_reset(one->curl);
	*ret = (struct tw_sent){.arg = one->arg,
	        .http = one->is_mail ? 0 : http,
	        .took_ms = tw_monotonic_ms() - one->began_ms,
	        .retry_after_s = after,
	        .truncated = cut};
	if (location && strlen(location) < sizeof ret->location)
		(void)snprintf(ret->location, sizeof ret->location, "%s", location);
	if (is_success(one, code, http))
		return;
	/* a wrong password can be corrected */
	ret->permanent = one->is_mail && http >= 500 && code != CURLE_LOGIN_DENIED;
	if (code == CURLE_OK || cut || (one->is_mail && http >= 400 && code != CURLE_LOGIN_DENIED))
		explain_status(one, http, ret->error, sizeof ret->error);
	else
		explain_no_response(one, code, ret->error, sizeof ret->error);
}

static bool collect_ended(struct tw_sender *s, struct tw_sent *ret)
{
	int left;
	const CURLMsg *m = curl_multi_info_read(s->multi, &left);
	struct transfer *one = NULL;

	while (m && m->msg != CURLMSG_DONE)
		m = curl_multi_info_read(s->multi, &left);
	if (!m)
		return false;
	(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&one);
	report(one, m->data.result, ret);
	end(s, one);
	return true;
}

bool tw_sender_step(struct tw_sender *s, struct tw_sent *ret)
{
	int running = 0;

	(void)curl_multi_perform(s->multi, &running);
	if (collect_ended(s, ret))
		return true;
	(void)curl_multi_poll(s->multi, NULL, 0, STEP_MS, NULL);
	(void)curl_multi_perform(s->multi, &running);
	return collect_ended(s, ret);
}

static enum tw_status read_password(
        const char *path, char ret[TW_SMTP_PASSWORD_BYTES], struct tw_err *err)
{
	if (!tw_file_text(path, ret, TW_SMTP_PASSWORD_BYTES))
		return tw_fail_errno(err, TW_BAD_REQUEST, "smtp-password-file: %.100s", path);
	ret[strcspn(ret, "\r\n")] = '\0';
	return TW_OK;
}

static enum tw_status check(const struct tw_smtp_settings *c, struct tw_err *err)
{
	if (*c->url && strncmp(c->url, "smtp://", 7) != 0 && strncmp(c->url, "smtps://", 8) != 0)
		return tw_fail(err, TW_BAD_REQUEST, "smtp-url is neither smtp:// nor smtps://");
	if (strchr(c->url, '@')) /* a password in the URL would be sent without TLS too */
		return tw_fail(err, TW_BAD_REQUEST,
		        "smtp-url must not contain a name or password: set --smtp-user and "
		        "--smtp-password-file");
	if (*c->url && !tw_mail_address(c->from))
		return tw_fail(
		        err, TW_BAD_REQUEST, "--smtp-url needs --mail-from, the sender of mails");
	if (*c->ca_file && access(c->ca_file, R_OK) != 0)
		return tw_fail_errno(err, TW_BAD_REQUEST, "smtp-ca-file: %.100s", c->ca_file);
	if (*c->user && !*c->password_file)
		return tw_fail(err, TW_BAD_REQUEST, "--smtp-user needs --smtp-password-file");
	return TW_OK;
}

enum tw_status tw_smtp_read(const struct tw_smtp_settings *c, char password[TW_SMTP_PASSWORD_BYTES],
        struct tw_smtp *ret, struct tw_err *err)
{
	enum tw_status st = check(c, err);

	password[0] = '\0';
	if (st == TW_OK && *c->password_file)
		st = read_password(c->password_file, password, err);
	*ret = (struct tw_smtp){c->url, c->user, password, c->from, c->ca_file};
	return st;
}
