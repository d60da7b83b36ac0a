/*
 * http_head.c - the head of a request: its syntax, the client's address, the address and user that
 * a trusted proxy reports, and the page that sent it.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <microhttpd.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "server/auth/auth.h"
#include "server/http/http_int.h"

void tw_http_address(struct MHD_Connection *connection, char ret[INET6_ADDRSTRLEN])
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	ret[0] = '\0';
	if (!i || !i->client_addr)
		return;
	if (i->client_addr->sa_family == AF_INET) {
		memcpy(&four, i->client_addr, sizeof four);
		(void)inet_ntop(AF_INET, &four.sin_addr, ret, INET6_ADDRSTRLEN);
		return;
	}
	memcpy(&six, i->client_addr, sizeof six);
	if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		(void)inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, ret, INET6_ADDRSTRLEN);
	else
		(void)inet_ntop(AF_INET6, &six.sin6_addr, ret, INET6_ADDRSTRLEN);
}

/* --- forwarding headers of a trusted proxy: address, https, host, user ---
 *
 * A proxy may append to the client's header line or add its own line after it, so lines and their
 * values are read from the end. */

enum { MAX_LINES = 8 };

struct lines { /* the last lines of one header */
	const char *name;
	const char *values[MAX_LINES];
	size_t n;
};

static enum MHD_Result collect(
        void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct lines *l = arg;

	(void)kind;
	if (strcasecmp(name, l->name) != 0 || !value)
		return MHD_YES;
	if (l->n == MAX_LINES)
		memmove(l->values, l->values + 1, (MAX_LINES - 1) * sizeof *l->values);
	else
		l->n++;
	l->values[l->n - 1] = value;
	return MHD_YES;
}

static struct lines lines_of(const struct tw_req *r, const char *name)
{
	struct lines l = {.name = name};

	(void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, collect, &l);
	return l;
}

/* The value of the nearest proxy. */
static struct tw_str last_word(const struct tw_req *r, const char *name)
{
	struct lines l = lines_of(r, name);
	const char *value = l.n ? l.values[l.n - 1] : "";
	const char *comma = strrchr(value, ',');

	return tw_str_trim(tw_str_of(comma ? comma + 1 : value));
}

static void take_address(struct tw_req *r, const struct tw_proxies *p)
{
	struct lines l = lines_of(r, "X-Forwarded-For");
	bool trusted = true;

	while (trusted && l.n)
		if (!tw_proxies_client(p, l.values[--l.n], r->address, &trusted))
			return;
}

static enum tw_status take_user(struct tw_req *r, struct tw_err *err)
{
	const char *name = r->http->parts.config->proxy_user_header;
	struct lines l;

	if (!*name)
		return TW_OK;
	l = lines_of(r, name);
	if (l.n > 1)
		return tw_fail(err, TW_BAD_REQUEST,
		        "header %.40s was sent twice: configure the proxy to remove it from client "
		        "requests",
		        name);
	if (l.n && *l.values[0])
		r->proxy_user = l.values[0];
	return TW_OK;
}

enum tw_status tw_req_read_proxy(struct tw_req *r, struct tw_err *err)
{
	const struct tw_proxies *p = &r->http->parts.config->proxies;

	if (p->n == 0 || !tw_proxies_trust(p, r->address))
		return TW_OK;
	take_address(r, p);
	r->proxy_https = tw_str_eq(last_word(r, "X-Forwarded-Proto"), TW_STR("https"));
	r->proxy_host = last_word(r, "X-Forwarded-Host");
	return take_user(r, err);
}

/* --- the page --- */

/* scheme://authority of a URL. */
static struct tw_str origin_of(const char *url)
{
	const char *authority = strstr(url, "://");

	if (!authority)
		return (struct tw_str){url, 0};
	return (struct tw_str){url, (size_t)(authority - url) + 3 + strcspn(authority + 3, "/?#")};
}

/* The authority of a target in absolute form takes precedence over Host (RFC 9112, 3.2.2). */
static const char *host_of(const struct tw_req *r)
{
	return r->target.authority ? r->target.authority : tw_req_header(r, "Host");
}

static bool is_ours(const struct tw_req *r, const char *origin)
{
	const char *host = host_of(r);
	const char *authority = strstr(origin, "://");
	struct tw_str public = origin_of(r->http->parts.config->public_url);

	if (host && authority && strcasecmp(authority + 3, host) == 0)
		return true;
	if (authority && r->proxy_host.len && strlen(authority + 3) == r->proxy_host.len &&
	        strncasecmp(authority + 3, r->proxy_host.ptr, r->proxy_host.len) == 0)
		return true;
	return public.len && strlen(origin) == public.len &&
	       strncasecmp(origin, public.ptr, public.len) == 0;
}

enum tw_status tw_req_check_origin(const struct tw_req *r, struct tw_err *err)
{
	const char *site = tw_req_header(r, "Sec-Fetch-Site");
	const char *origin = tw_req_header(r, "Origin");

	if (tw_req_header(r, "Authorization")) /* browsers do not add that themselves */
		return TW_OK;
	if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
		return tw_fail(err, TW_DENIED,
		        "a change requested by a page of another site (%.20s)", site);
	if (origin && !is_ours(r, origin))
		return tw_fail(err, TW_DENIED,
		        "a change requested by a page of %.100s, which is not this server; set "
		        "--public-url if a proxy serves it under another name",
		        origin);
	return TW_OK;
}

static struct tw_str without_slashes(struct tw_str url)
{
	while (url.len && url.ptr[url.len - 1] == '/')
		url.len--;
	return url;
}

const char *tw_req_base(const struct tw_req *r)
{
	struct tw_str public = without_slashes(tw_str_of(r->http->parts.config->public_url));
	struct tw_str host = tw_str_of(host_of(r));
	const char *base;

	if (r->proxy_host.len)
		host = r->proxy_host;
	base = public.len ? tw_arena_str(r->arena, public)
	                  : tw_arena_printf(r->arena, "%s://%.*s",
	                            tw_req_is_https(r) ? "https" : "http",
	                            (int)(host.len < 256 ? host.len : 256), host.ptr);
	return base ? base : "";
}

/* The digits after the authority's last colon; "" if none. */
static struct tw_str port_of(const char *base)
{
	struct tw_str authority = origin_of(base);
	size_t at = authority.len;

	while (at && isdigit((unsigned char)authority.ptr[at - 1]))
		at--;
	if (at == 0 || authority.ptr[at - 1] != ':')
		at = authority.len;
	return tw_str_from(authority, at);
}

const char *tw_req_cookie_name(const struct tw_req *r, const char *name)
{
	struct tw_str port = port_of(tw_req_base(r));
	const char *full =
	        tw_arena_printf(r->arena, "%s%s%s%.*s", tw_req_is_https(r) ? TW_COOKIE_HOST : "",
	                name, port.len ? "_" : "", (int)port.len, port.len ? port.ptr : "");

	return full ? full : name;
}

/* --- syntax ---
 *
 * libmicrohttpd would refuse some requests in HTML, and accept others.
 *
 * The library has its own responses for a target or headers that do not fit its memory, for a
 * missing Host and for a space in the target.  So it gets more memory than is allowed here, and its
 * strict mode is off; it still answers itself if there is no request to answer: lines that are not
 * HTTP, an invalid Content-Length, broken chunks, and oversized headers.
 *
 * If two parsers of the same bytes (a proxy in front and this server) could disagree on the end of
 * a request, the request is refused and the connection closed.
 */

enum { MAX_TARGET = 16 << 10, MAX_HEADER = 64 << 10, LINE_END = 2, SHORT_TIMEOUT_S = 1 };

struct seen { /* state while iterating over the headers */
	const char *bad_name;
	const char *next; /* where the next line begins if the previous one ended with CRLF */
	unsigned hosts, lengths, codings;
	bool chunked, bad_length, torn;
};

static bool is_token(const char *name)
{
	const char *p = name;

	while (isalnum((unsigned char)*p) || (*p && strchr("!#$%&'*+-.^_`|~", *p)))
		p++;
	return p != name && *p == '\0';
}

static enum MHD_Result see(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct seen *s = arg;

	uint64_t length;

	(void)kind;
	value = value ? value : "";
	if (!is_token(name))
		s->bad_name = name;
	s->torn = s->torn || name != s->next || strchr(value, '\r');
	s->next = value + strlen(value) + LINE_END;
	s->hosts += strcasecmp(name, "Host") == 0;
	if (strcasecmp(name, "Content-Length") == 0) {
		s->lengths++;
		s->bad_length = !tw_str_u64(tw_str_of(value), UINT64_MAX - 1, &length);
	}
	if (strcasecmp(name, "Transfer-Encoding") == 0) {
		s->codings++;
		s->chunked = strcasecmp(value, "chunked") == 0;
	}
	return MHD_YES;
}

static enum tw_status validate_framing(
        const struct seen *s, const char *version, struct tw_err *err)
{
	bool may_lack_host = strcmp(version, "HTTP/1.0") == 0;

	if (s->torn)
		return tw_fail(err, TW_BAD_REQUEST,
		        "a line of the request's head contains NUL or CR, is folded or does not "
		        "end with CRLF");
	if (s->bad_length)
		return tw_fail(err, TW_BAD_REQUEST, "Content-Length is not a number below 2^64-1");
	if (s->codings && strcmp(version, "HTTP/1.0") == 0)
		return tw_fail(err, TW_BAD_REQUEST, "HTTP/1.0 does not support Transfer-Encoding");
	if (s->bad_name)
		return tw_fail(err, TW_BAD_REQUEST, "\"%.60s\" is not a header name", s->bad_name);
	if (s->hosts > 1 || (s->hosts == 0 && !may_lack_host))
		return tw_fail(err, TW_BAD_REQUEST, "%s",
		        s->hosts ? "more than one Host header" : "the Host header is missing");
	if (s->lengths > 1 || s->codings > 1 || (s->lengths && s->codings))
		return tw_fail(err, TW_BAD_REQUEST, "the body's length is given more than once");
	if (s->codings && !s->chunked)
		return tw_fail(err, TW_BAD_REQUEST, "a Transfer-Encoding other than chunked");
	return TW_OK;
}

static size_t header_bytes(const struct tw_req *r)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return i ? i->header_size : 0;
}

/* The library overwrites CR LF with two NULs and passes the part before the first NUL of a name or
 * value: lines torn in any other way are not adjacent. */
static bool is_torn(
        const struct tw_req *r, const char *method, const char *version, const struct seen *s)
{
	const char *target = method + strlen(method) + 1;

	return s->torn || version - target != (ptrdiff_t)r->target_bytes + 1 ||
	       s->next + LINE_END != method + header_bytes(r);
}

enum tw_status tw_req_validate_headers(
        struct tw_req *r, const char *method, const char *version, struct tw_err *err)
{
	struct seen seen = {.next = version + strlen(version) + LINE_END};
	enum tw_status st = TW_OK;

	if (r->target_bytes > MAX_TARGET)
		st = tw_fail(err, TW_LONG_TARGET, "the path and query are longer than %d bytes",
		        MAX_TARGET);
	else if (header_bytes(r) > MAX_HEADER)
		st = tw_fail(err, TW_LONG_HEADER, "the request's headers are larger than %d bytes",
		        MAX_HEADER);
	if (st == TW_OK) {
		(void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, see, &seen);
		seen.torn = is_torn(r, method, version, &seen);
		st = validate_framing(&seen, version, err);
	}
	if (st != TW_OK)
		tw_req_set_header(r, "Connection", "close");
	return st;
}

bool tw_req_client_left(const struct tw_req *r)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	char byte;

	return i && recv(i->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void tw_req_shorten_timeout(const struct tw_req *r, bool shorten)
{
	unsigned seconds = shorten ? SHORT_TIMEOUT_S : r->http->parts.config->connection_timeout_s;

	(void)MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}
