/* http_request.c - a request: its target and route, checked parameters and other properties. */
#include "server/http/http.h"

#include <assert.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "decoder/base/lookup.h"
#include "server/base/role.h"
#include "server/base/text/find.h"
#include "server/base/text/members.h"
#include "server/http/http_int.h"

/* --- the target --- */

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

/* Decodes %xx, and + as `plus`.  False: an escape is invalid. */
static bool unescape(struct tw_str s, char plus, char *out, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '%') {
			int high = s.len - i > 2 ? hex(s.ptr[i + 1]) : -1;
			int low = s.len - i > 2 ? hex(s.ptr[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+') {
			c = plus;
		}
		out[n++] = c;
	}
	*ret_n = n;
	return true;
}

/* A decoded, NUL-terminated copy.  `what` names the text in an error. */
static enum tw_status decode(struct tw_arena *a, struct tw_str s, char plus, const char *what,
        const char **ret, struct tw_err *err)
{
	char *out = tw_arena_alloc(a, s.len + 1, 1);
	size_t n = 0;

	if (!out)
		return tw_oom(err);
	if (!unescape(s, plus, out, &n) || !is_text(out, n))
		return tw_fail(err, TW_BAD_REQUEST,
		        "%s contains NUL, an invalid %% escape or invalid UTF-8", what);
	out[n] = '\0';
	*ret = out;
	return TW_OK;
}

static enum tw_status parse_pieces(
        struct tw_arena *a, struct tw_str path, struct tw_target *t, struct tw_err *err)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return tw_fail(err, TW_BAD_REQUEST, "the path must begin with /");
	path = tw_str_from(path, 1);
	while (path.len) {
		bool more = memchr(path.ptr, '/', path.len);
		struct tw_str piece = tw_str_split(&path, '/');
		enum tw_status st;

		if (t->n_pieces == TW_MAX_PIECES)
			return tw_fail(err, TW_NOT_FOUND, "no such path");
		st = decode(a, piece, '+', "the path", &t->pieces[t->n_pieces], err);
		if (st != TW_OK)
			return st;
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
		enum tw_status st;

		if (name.len == 0)
			continue;
		if (t->n_pairs == TW_MAX_PAIRS)
			return tw_fail(
			        err, TW_BAD_REQUEST, "more than %d query parameters", TW_MAX_PAIRS);
		st = decode(a, name, ' ', "a query parameter's name", &pair->name, err);
		if (st == TW_OK)
			st = decode(a, value, ' ', pair->name, &pair->value, err);
		if (st != TW_OK)
			return st;
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
	const struct tw_pair *p = TW_LOOKUP(t->pairs, t->n_pairs, name, name);

	return p ? p->value : NULL;
}

/* --- names of parameters --- */

static const struct tw_param *find(const struct tw_route *route, const char *name)
{
	for (const struct tw_param *const *list = route->params; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++)
			if (strcmp(p->name, name) == 0)
				return p;
	return NULL;
}

/* The parameter with the most similar name; NULL: none. */
static const char *nearest(const struct tw_route *route, const char *name)
{
	struct tw_near_match near = {.best = NULL};

	for (const struct tw_param *const *list = route->params; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++)
			tw_near_match_try(&near, name, p->name);
	return near.best;
}

/* As many names as fit; the reply has a list of all. */
static void list_known(const struct tw_route *route, char *out, size_t cap)
{
	size_t len = 0;

	(void)snprintf(out, cap, "none");
	for (const struct tw_param *const *list = route->params; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++) {
			const bool fits =
			        len + strlen(", ") + strlen(p->name) + sizeof ", ..." <= cap;

			len += (size_t)snprintf(out + len, cap - len, "%s%s", len ? ", " : "",
			        fits ? p->name : "...");
			if (!fits)
				return;
		}
}

/* With an ignored parameter the response would be to a different query. */
static enum tw_status check_names(struct tw_req *r, struct tw_err *err)
{
	char all[120];
	const char *near;

	for (size_t i = 0; !r->route->any_params && i < r->target.n_pairs; i++) {
		const char *name = r->target.pairs[i].name;

		if (find(r->route, name) || strcmp(name, "project") == 0)
			continue;
		r->unknown_at = r->route;
		near = nearest(r->route, name);
		if (near)
			return tw_fail(err, TW_BAD_REQUEST,
			        "unknown parameter %.40s; did you mean %.64s?", name, near);
		list_known(r->route, all, sizeof all);
		return tw_fail(err, TW_BAD_REQUEST,
		        "unknown parameter %.40s; the parameters are: %s", name, all);
	}
	return TW_OK;
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
			return st == TW_OK ? check_names(r, err) : st;
		}
		add_allowed(route, allow, sizeof allow);
	}
	if (!allow[0])
		return tw_fail(err, TW_NOT_FOUND, "no such path; /api/reference lists the API");
	tw_req_set_header(r, "Allow", allow);
	return tw_fail(err, TW_NO_METHOD, "this path supports %s, not %s", allow, r->method);
}

/* --- values of parameters --- */

const char *const tw_orders[] = {"desc", "asc", NULL};

static bool parse_number(const char *text, int64_t *ret)
{
	struct tw_str s = tw_str_of(text);
	bool negative = s.len && s.ptr[0] == '-';
	uint64_t n;

	if (negative)
		s = tw_str_from(s, 1);
	if (!tw_str_u64(s, INT64_MAX, &n))
		return false;
	*ret = negative ? -(int64_t)n : (int64_t)n;
	return true;
}

static bool parse_flag(const char *text, bool *ret)
{
	*ret = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
	return *ret || strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
}

static enum tw_status check_value(const struct tw_param *p, const char *text, struct tw_err *err)
{
	unsigned choice;
	int64_t n;
	bool flag;

	if (p->kind != TW_PARAM_IS_TEXT && !*text)
		return TW_OK;
	switch (p->kind) {
	case TW_PARAM_IS_TEXT:
		if (p->max && strlen(text) > (size_t)p->max)
			return tw_fail(err, TW_BAD_REQUEST, "%s has at most %d bytes", p->name,
			        (int)p->max);
		return TW_OK;
	case TW_PARAM_IS_NUMBER:
		if (!parse_number(text, &n) || n < p->min || n > p->max)
			return tw_fail(err, TW_BAD_REQUEST,
			        "%s must be a number from %" PRId64 " to %" PRId64 ", not %.60s",
			        p->name, p->min, p->max, text);
		return TW_OK;
	case TW_PARAM_IS_FLAG:
		if (!parse_flag(text, &flag))
			return tw_fail(
			        err, TW_BAD_REQUEST, "%s must be 0 or 1, not %.60s", p->name, text);
		return TW_OK;
	case TW_PARAM_IS_ENUM:
		return tw_enum_of_name(p->name, text, p->names, &choice, err);
	}
	return TW_OK;
}

/* --- the request --- */

static enum tw_status check_required(const struct tw_req *r, struct tw_err *err)
{
	for (const struct tw_param *const *list = r->route->params; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++) {
			const char *text = p->required ? tw_target_query(&r->target, p->name) : "-";

			if (!text || !*text)
				return tw_fail(err, TW_BAD_REQUEST, "%s is required", p->name);
		}
	return TW_OK;
}

enum tw_status tw_req_check_values(const struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (r->route->any_params)
		return TW_OK;
	for (size_t i = 0; st == TW_OK && i < r->target.n_pairs; i++) {
		const struct tw_pair *pair = &r->target.pairs[i];
		const struct tw_param *p = find(r->route, pair->name);

		if (!(p && p->repeated) &&
		        TW_LOOKUP(r->target.pairs, i, name,
		                r->target.pairs[i].name)) /* "project" is in no list */
			st = tw_fail(err, TW_BAD_REQUEST, "%s is given more than once", pair->name);
		else if (p)
			st = check_value(p, pair->value, err);
	}
	return st == TW_OK ? check_required(r, err) : st;
}

static bool is_of_a_project(const struct tw_route *route)
{
	return route->knows_caller ||
	       (route->needs != TW_NEED_PUBLIC && route->needs != TW_NEED_USER &&
	               route->needs != TW_NEED_SERVER);
}

json_t *tw_params_known(const struct tw_route *route)
{
	json_t *names = json_array();

	for (const struct tw_param *const *list = route->params; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++)
			(void)json_array_append_new(names, json_string(p->name));
	if (is_of_a_project(route))
		(void)json_array_append_new(names, json_string("project"));
	return names;
}

/* --- reading --- */

const char *tw_req_text(const struct tw_req *r, const char *name)
{
	return find(r->route, name) ? tw_target_query(&r->target, name) : NULL;
}

const char *tw_req_text_or_empty(const struct tw_req *r, const char *name)
{
	const char *text = tw_req_text(r, name);

	return text ? text : "";
}

/* The value's text, NULL: the default applies. */
static const char *value_text(
        const struct tw_req *r, const char *name, enum tw_param_kind kind, int64_t *ret_dflt)
{
	const struct tw_param *p = find(r->route, name);
	const char *text = tw_target_query(&r->target, name);

	assert(p && p->kind == kind);
	*ret_dflt = p->dflt;
	return text && *text ? text : NULL;
}

int64_t tw_req_number(const struct tw_req *r, const char *name)
{
	int64_t n;
	const char *text = value_text(r, name, TW_PARAM_IS_NUMBER, &n);

	if (text)
		(void)parse_number(text, &n);
	return n;
}

bool tw_req_flag(const struct tw_req *r, const char *name)
{
	int64_t dflt;
	const char *text = value_text(r, name, TW_PARAM_IS_FLAG, &dflt);
	bool flag = dflt != 0;

	if (text)
		(void)parse_flag(text, &flag);
	return flag;
}

int tw_req_enum(const struct tw_req *r, const char *name)
{
	int64_t dflt;
	const struct tw_param *p = find(r->route, name);
	const char *text = value_text(r, name, TW_PARAM_IS_ENUM, &dflt);

	for (int i = 0; text && p->names[i]; i++)
		if (strcmp(p->names[i], text) == 0)
			return i;
	return p->optional ? -1 : 0;
}

int64_t tw_req_number_or(const struct tw_req *r, const char *name, int64_t dflt)
{
	const char *text = tw_req_text(r, name);

	return text && *text ? tw_req_number(r, name) : dflt;
}

/* --- properties --- */

uint64_t tw_http_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void tw_http_make_id(struct tw_http *h, char out[TW_REQ_ID])
{
	uint64_t z = atomic_fetch_add(&h->ids, 0x9E3779B97F4A7C15u); /* splitmix64 */

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	(void)snprintf(out, TW_REQ_ID, "%016llx", (unsigned long long)(z ^ z >> 31));
}

void *tw_req_context(const struct tw_req *r)
{
	return r->http->parts.context;
}

struct tw_arena *tw_req_arena(const struct tw_req *r)
{
	return r->arena;
}

const struct tw_caller *tw_req_caller(const struct tw_req *r)
{
	return &r->caller;
}

const struct tw_route *tw_req_route(const struct tw_req *r)
{
	return r->route;
}

bool tw_req_is_https(const struct tw_req *r)
{
	const struct tw_http_parts *parts = &r->http->parts;

	return parts->tls || r->proxy_https || strncmp(parts->config->public_url, "https:", 6) == 0;
}

const char *tw_req_address(const struct tw_req *r)
{
	return r->address;
}

const char *tw_req_id(const struct tw_req *r)
{
	return r->id;
}

const char *tw_req_path(const struct tw_req *r, const char *name)
{
	return tw_target_piece(&r->target, r->route->path, name, r->arena);
}

enum tw_status tw_req_each_query(const struct tw_req *r,
        enum tw_status (*fn)(void *arg, const char *name, const char *value, struct tw_err *err),
        void *arg, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < r->target.n_pairs && st == TW_OK; i++)
		st = fn(arg, r->target.pairs[i].name, r->target.pairs[i].value, err);
	return st;
}

const char *tw_req_header(const struct tw_req *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

uint64_t tw_req_content_length(const struct tw_req *r)
{
	return r->declared;
}

void tw_req_set_state(struct tw_req *r, void *state)
{
	r->state = state;
}

void *tw_req_state(const struct tw_req *r)
{
	return r->state;
}

bool tw_req_is_abandoned(const struct tw_req *r)
{
	return r->abandoned && atomic_load(r->abandoned);
}

uint64_t tw_req_ms_left(const struct tw_req *r)
{
	uint64_t now = tw_http_now_ns();

	if (tw_req_is_abandoned(r))
		return 0;
	return now < r->deadline_ns ? (r->deadline_ns - now + 999999) / 1000000 : 0;
}

unsigned tw_req_media_weight(const struct tw_req *r, const char *type)
{
	return tw_media_weight(tw_req_header(r, "Accept"), type);
}

bool tw_req_accepts(const struct tw_req *r, const char *coding)
{
	const char *accept = tw_req_header(r, "Accept-Encoding");

	for (enum tw_coding c = TW_CODING_IDENTITY; c <= TW_CODING_ZSTD; c++)
		if (strcmp(coding, tw_coding_name(c)) == 0)
			return tw_coding_accepted(accept, c);
	return false;
}
