/*
 * http_judge.c - what libmicrohttpd would answer in HTML, or let pass, judged here first.
 *
 * The library has its own answers for a target or headers that do not fit its
 * memory, for a missing Host and for a space in the target.  So it gets more
 * memory than is allowed here, and is told not to be strict; what is left to it
 * is what has no request to answer: lines that are not HTTP, a Content-Length
 * that is no number, broken chunks, and headers beyond all measure.
 *
 * Where two readers of the same bytes could disagree on where a request ends
 * (a proxy in front and this server), the request is refused and the
 * connection closed.
 */
#include <ctype.h>
#include <errno.h>
#include <microhttpd.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "http_int.h"

enum { MAX_TARGET = 16 << 10, MAX_HEADER = 64 << 10, HURRY_S = 1 };

struct seen { /* while the headers are walked */
	const char *bad_name;
	unsigned hosts, lengths, codings;
	bool chunked;
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

	(void)kind;
	if (!is_token(name))
		s->bad_name = name;
	s->hosts += strcasecmp(name, "Host") == 0;
	s->lengths += strcasecmp(name, "Content-Length") == 0;
	if (strcasecmp(name, "Transfer-Encoding") == 0) {
		s->codings++;
		s->chunked = value && strcasecmp(value, "chunked") == 0;
	}
	return MHD_YES;
}

static enum tw_status judge_framing(const struct seen *s, const char *version, struct tw_err *err)
{
	bool may_lack_host = strcmp(version, "HTTP/1.0") == 0;

	if (s->bad_name)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "\"%.60s\" is no header's name",
		        s->bad_name);
	if (s->hosts > 1 || (s->hosts == 0 && !may_lack_host))
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "%s",
		        s->hosts ? "more than one Host header" : "the Host header is missing");
	if (s->lengths > 1 || s->codings > 1 || (s->lengths && s->codings))
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
		        "the body's length is told more than once");
	if (s->codings && !s->chunked)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
		        "a Transfer-Encoding other than chunked");
	return TW_OK;
}

static size_t header_bytes(const struct tw_req *r)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return i ? i->header_size : 0;
}

enum tw_status tw_req_judge_headers(struct tw_req *r, const char *version, struct tw_err *err)
{
	struct seen seen = {0};
	enum tw_status st = TW_OK;

	if (r->target_bytes > MAX_TARGET)
		st = tw_fail(err, TW_LONG_TARGET, TW_NO_OFFSET,
		        "the path and query are longer than %d bytes", MAX_TARGET);
	else if (header_bytes(r) > MAX_HEADER)
		st = tw_fail(err, TW_LONG_HEADER, TW_NO_OFFSET,
		        "the request's headers are larger than %d bytes", MAX_HEADER);
	if (st == TW_OK) {
		(void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, see, &seen);
		st = judge_framing(&seen, version, err);
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

void tw_req_hurry(const struct tw_req *r, bool hurry)
{
	unsigned seconds = hurry ? HURRY_S : r->http->app->config->connection_timeout_s;

	(void)MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}
