/*
 * http_proxy.c - forwarding headers of a trusted proxy: address, https, host, user.
 *
 * A proxy may append to the client's header line or add its own line after it, so lines and their
 * values are read from the end.
 */
#include <microhttpd.h>
#include <string.h>
#include <strings.h>

#include "server/http/http_int.h"

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
		        "%.40s was sent twice: the proxy must remove the header from requests of "
		        "clients",
		        name);
	if (l.n && *l.values[0])
		r->proxy_user = l.values[0];
	return TW_OK;
}

enum tw_status tw_req_read_proxy(struct tw_req *r, struct tw_err *err)
{
	const struct tw_proxies *p = &r->http->parts.config->proxies;

	if (!tw_proxies_trust(p, r->address))
		return TW_OK;
	take_address(r, p);
	r->proxy_https = tw_str_eq(last_word(r, "X-Forwarded-Proto"), TW_STR("https"));
	r->proxy_host = last_word(r, "X-Forwarded-Host");
	return take_user(r, err);
}
