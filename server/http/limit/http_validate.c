/*
 * http_validate.c - validates requests that libmicrohttpd would refuse in HTML, or accept.
 *
 * The library has its own responses for a target or headers that do not fit its memory, for a
 * missing Host and for a space in the target.  So it gets more memory than is allowed here, and its
 * strict mode is off; it still answers itself if there is no request to answer: lines that are not
 * HTTP, an invalid Content-Length, broken chunks, and oversized headers.
 *
 * If two parsers of the same bytes (a proxy in front and this server) could disagree on the end of
 * a request, the request is refused and the connection closed.
 */
#include <ctype.h>
#include <microhttpd.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "server/http/http_int.h"

enum { MAX_TARGET = 16 << 10, MAX_HEADER = 64 << 10, LINE_END = 2, HURRY_S = 1 };

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
		return tw_fail(err, TW_BAD_REQUEST, "HTTP/1.0 does not know Transfer-Encoding");
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

void tw_req_shorten_timeout(const struct tw_req *r, bool hurry)
{
	unsigned seconds = hurry ? HURRY_S : r->http->parts.config->connection_timeout_s;

	(void)MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}
