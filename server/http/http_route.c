/* http_route.c - finds the route of a request. */
#include <stdio.h>
#include <string.h>

#include "server/base/config.h"
#include "server/base/role.h"
#include "server/http/http_int.h"

static bool is_method(const struct tw_route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* The header triggers a CORS preflight for requests of other sites, as the real method does. */
static bool is_override(const struct tw_req *r, const struct tw_route *route)
{
	const char *override = route->by_post && strcmp(r->method, "POST") == 0
	                               ? tw_req_header(r, "X-HTTP-Method-Override")
	                               : NULL;

	return override && strcmp(override, route->method) == 0;
}

static void add_allowed(const struct tw_route *route, char *allow, size_t cap)
{
	size_t len = strlen(allow);

	if (!strstr(allow, route->method))
		(void)snprintf(allow + len, cap - len, "%s%s%s", len ? ", " : "", route->method,
		        strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
}

/* A catch-all route ({*} at the top) does not make paths exist for other methods. */
static bool is_catch_all(const struct tw_route *route)
{
	return strcmp(route->path, "/{*}") == 0;
}

static bool is_on_metrics_address(const struct tw_http *h, const struct tw_route *route)
{
	return route->metrics && !h->for_metrics && h->parts.config->metrics_listen[0];
}

/* A server without the required role refuses with a retryable status, so that clients do not drop
 * an upload. */
static enum tw_status check_role(const struct tw_req *r, struct tw_err *err)
{
	const unsigned own_roles = r->http->parts.config->roles;
	char text[64];

	if (r->route->roles & own_roles)
		return TW_OK;
	tw_roles_write(own_roles, text, sizeof text);
	return tw_fail(err, TW_BUSY,
	        "this server does not serve this path (--role %s): send the request to another "
	        "server",
	        text);
}

static bool is_literal(const struct tw_route *route)
{
	return !strchr(route->path, '{');
}

/* Whether a route of exactly this path exists.  Then templates do not match: "direct" is not an
 * upload's id. */
static bool has_literal(const struct tw_req *r)
{
	for (size_t i = 0; i < r->http->parts.n_routes; i++)
		if (is_literal(&r->http->parts.routes[i]) &&
		        tw_target_matches(&r->target, r->http->parts.routes[i].path))
			return true;
	return false;
}

static bool is_skipped(const struct tw_route *route, bool literal, bool no_catch_all)
{
	return (literal && !is_literal(route)) || (no_catch_all && is_catch_all(route));
}

enum tw_status tw_req_find_route(struct tw_req *r, struct tw_err *err)
{
	char allow[64] = "";
	bool literal = has_literal(r);
	bool is_read = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
	enum tw_status st;

	for (size_t i = 0; i < r->http->parts.n_routes; i++) {
		const struct tw_route *route = &r->http->parts.routes[i];

		if (is_skipped(route, literal, allow[0] || !is_read))
			continue;
		if (!tw_target_matches(&r->target, route->path) ||
		        (r->http->for_metrics && !route->metrics))
			continue;
		if (is_on_metrics_address(r->http, route))
			return tw_fail(err, TW_NOT_FOUND,
			        "this path is served at another address: --metrics-listen");
		if (is_method(route, r->method) || is_override(r, route)) {
			r->route = route;
			r->method = route->by_post ? route->method : r->method;
			st = check_role(r, err);
			return st == TW_OK ? tw_req_check_names(r, err) : st;
		}
		add_allowed(route, allow, sizeof allow);
	}
	if (!allow[0])
		return tw_fail(err, TW_NOT_FOUND, "no such path");
	tw_req_set_header(r, "Allow", allow);
	return tw_fail(err, TW_NO_METHOD, "this path supports %s, not %s", allow, r->method);
}
