/* http_route.c - the target of a request, and the route that it has. */
#include "server/http/http_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/base/config.h"
#include "server/base/role.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(const char *s, size_t len)
{
	for (size_t i = 0, step; i < len; i += step) {
		step = tw_utf8_len(s + i, len - i);
		if (step == 0 || s[i] == '\0')
			return false;
	}
	return true;
}

/* Decodes %xx (and + in queries) into a NUL-terminated copy; NULL if the bytes are not text. */
static const char *decode(struct tw_arena *a, struct tw_str s, bool plus, bool *ret_nomem)
{
	char *out = tw_arena_alloc(a, s.len + 1, 1);
	size_t n = 0;

	*ret_nomem = !out;
	for (size_t i = 0; out && i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '%') {
			int high = s.len - i > 2 ? hex(s.ptr[i + 1]) : -1;
			int low = s.len - i > 2 ? hex(s.ptr[i + 2]) : -1;

			if (high < 0 || low < 0)
				return NULL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		out[n++] = c;
	}
	if (!out || !is_text(out, n))
		return NULL;
	out[n] = '\0';
	return out;
}

static enum tw_status refuse(bool nomem, const char *what, struct tw_err *err)
{
	if (nomem)
		return tw_oom(err);
	return tw_fail(err, TW_BAD_REQUEST,
	        "%s contains NUL, an invalid %% escape or invalid UTF-8", what);
}

static enum tw_status parse_pieces(
        struct tw_arena *a, struct tw_str path, struct tw_target *t, struct tw_err *err)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return tw_fail(err, TW_BAD_REQUEST, "the path must begin with /");
	path = (struct tw_str){path.ptr + 1, path.len - 1};
	while (path.len) {
		bool more = memchr(path.ptr, '/', path.len);
		struct tw_str piece = tw_str_split(&path, '/');
		bool nomem;

		if (t->n_pieces == TW_MAX_PIECES)
			return tw_fail(err, TW_NOT_FOUND, "no such path");
		t->pieces[t->n_pieces] = decode(a, piece, false, &nomem);
		if (!t->pieces[t->n_pieces])
			return refuse(nomem, "the path", err);
		t->n_pieces++;
		if (!more || path.len)
			continue;
		if (t->n_pieces == TW_MAX_PIECES)
			return tw_fail(err, TW_NOT_FOUND, "no such path");
		t->pieces[t->n_pieces++] = ""; /* a trailing / makes a different path */
	}
	return TW_OK;
}

static enum tw_status parse_pairs(
        struct tw_arena *a, struct tw_str query, struct tw_target *t, struct tw_err *err)
{
	while (query.len) {
		struct tw_str value = tw_str_split(&query, '&');
		struct tw_str name = tw_str_split(&value, '=');
		struct tw_pair *pair = &t->pairs[t->n_pairs];
		bool nomem;

		if (name.len == 0)
			continue;
		if (t->n_pairs == TW_MAX_PAIRS)
			return tw_fail(
			        err, TW_BAD_REQUEST, "more than %d query parameters", TW_MAX_PAIRS);
		pair->name = decode(a, name, true, &nomem);
		if (!pair->name)
			return refuse(nomem, "a query parameter's name", err);
		pair->value = decode(a, value, true, &nomem);
		if (!pair->value)
			return refuse(nomem, pair->name, err);
		t->n_pairs++;
	}
	return TW_OK;
}

static bool has_blanks(const char *raw)
{
	for (; *raw; raw++)
		if ((unsigned char)*raw <= ' ' || *raw == 0x7f)
			return true;
	return false;
}

/* Length of "http://authority"; 0: the target is not in absolute form. */
static size_t absolute_bytes(const char *raw, size_t *ret_scheme)
{
	*ret_scheme = strncasecmp(raw, "http://", 7) == 0    ? 7
	              : strncasecmp(raw, "https://", 8) == 0 ? 8
	                                                     : 0;
	return *ret_scheme ? *ret_scheme + strcspn(raw + *ret_scheme, "/?#") : 0;
}

enum tw_status tw_target_parse(
        struct tw_arena *a, const char *raw, struct tw_target *ret, struct tw_err *err)
{
	size_t scheme;
	const size_t absolute = absolute_bytes(raw, &scheme);
	const struct tw_str authority = {raw + scheme, absolute - scheme};
	struct tw_str query = tw_str_of(raw + absolute);
	struct tw_str path = tw_str_split(&query, '?');
	enum tw_status st;

	if (absolute && path.len == 0)
		path = TW_STR("/");
	*ret = (struct tw_target){.path = tw_arena_str(a, path),
	        .authority = absolute ? tw_arena_str(a, authority) : NULL};
	if (!ret->path || (absolute && !ret->authority))
		return tw_oom(err);
	if (has_blanks(raw))
		return tw_fail(err, TW_BAD_REQUEST,
		        "the path contains a space or a control character: percent-encode it");
	if (absolute && (authority.len == 0 || strchr(ret->authority, '@')))
		return tw_fail(
		        err, TW_BAD_REQUEST, "the target's host is empty or has a user name");
	st = parse_pieces(a, path, ret, err);
	return st == TW_OK ? parse_pairs(a, query, ret, err) : st;
}

static bool is_variable(struct tw_str piece)
{
	return piece.len >= 2 && piece.ptr[0] == '{' && piece.ptr[piece.len - 1] == '}';
}

bool tw_target_matches(const struct tw_target *t, const char *template)
{
	struct tw_str rest = tw_str_of(template + 1);
	size_t at = 0;

	while (rest.len) {
		struct tw_str piece = tw_str_split(&rest, '/');

		if (tw_str_eq(piece, TW_STR("{*}")))
			return true;
		if (at == t->n_pieces)
			return false;
		if (is_variable(piece) ? !*t->pieces[at]
		                       : !tw_str_eq(piece, tw_str_of(t->pieces[at])))
			return false;
		at++;
	}
	return at == t->n_pieces;
}

static const char *join(const struct tw_target *t, size_t from, struct tw_arena *a)
{
	const char *all = from < t->n_pieces ? t->pieces[from] : "";

	for (size_t i = from + 1; all && i < t->n_pieces; i++)
		all = tw_arena_printf(a, "%s/%s", all, t->pieces[i]);
	return all;
}

const char *tw_target_piece(
        const struct tw_target *t, const char *template, const char *name, struct tw_arena *a)
{
	struct tw_str rest = tw_str_of(template + 1);

	for (size_t at = 0; rest.len; at++) {
		struct tw_str piece = tw_str_split(&rest, '/');

		if (!is_variable(piece))
			continue;
		piece = (struct tw_str){piece.ptr + 1, piece.len - 2};
		if (!tw_str_eq(piece, tw_str_of(name)))
			continue;
		if (tw_str_eq(piece, TW_STR("*")))
			return join(t, at, a);
		return at < t->n_pieces ? t->pieces[at] : NULL;
	}
	return NULL;
}

const char *tw_target_query(const struct tw_target *t, const char *name)
{
	for (size_t i = 0; i < t->n_pairs; i++)
		if (strcmp(t->pairs[i].name, name) == 0)
			return t->pairs[i].value;
	return NULL;
}

/* --- the route --- */

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
