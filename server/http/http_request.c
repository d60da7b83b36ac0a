/* http_request.c - a request as its route sees it: checked parameters and other properties. */
#include "server/http/http.h"

#include <assert.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/http/http_int.h"

const char *const tw_orders[] = {"desc", "asc", NULL};

static const struct tw_param *find(const struct tw_route *route, const char *name)
{
	for (const struct tw_param *const *list = route->params; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++)
			if (strcmp(p->name, name) == 0)
				return p;
	return NULL;
}

/* --- values --- */

static bool parse_number(const char *text, int64_t *ret)
{
	struct tw_str s = tw_str_of(text);
	bool negative = s.len && s.ptr[0] == '-';
	uint64_t n;

	if (negative)
		s = (struct tw_str){s.ptr + 1, s.len - 1};
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

enum tw_status tw_enum_of_name(const char *name, const char *text, const char *const *names,
        unsigned *ret, struct tw_err *err)
{
	char all[160] = "";
	size_t len = 0;

	for (unsigned i = 0; names[i]; i++) {
		const char *before = i == 0 ? "" : names[i + 1] ? ", " : " or ";
		int n = snprintf(all + len, sizeof all - len, "%s%s", before, names[i]);

		if (strcmp(names[i], text) == 0) {
			*ret = i;
			return TW_OK;
		}
		if (n > 0 && (size_t)n < sizeof all - len)
			len += (size_t)n;
	}
	return tw_fail(err, TW_BAD_REQUEST, "%s is %s, not %.60s", name, all, text);
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
enum tw_status tw_req_check_names(struct tw_req *r, struct tw_err *err)
{
	char all[120];

	for (size_t i = 0; !r->route->any_params && i < r->target.n_pairs; i++) {
		const char *name = r->target.pairs[i].name;

		if (find(r->route, name) || strcmp(name, "project") == 0)
			continue;
		list_known(r->route, all, sizeof all);
		r->unknown_at = r->route;
		return tw_fail(err, TW_BAD_REQUEST,
		        "unknown parameter %.40s; the parameters are: %s", name, all);
	}
	return TW_OK;
}

static bool is_repeated(const struct tw_req *r, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(r->target.pairs[i].name, r->target.pairs[at].name) == 0)
			return true;
	return false;
}

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

		if (p && !p->repeated && is_repeated(r, i))
			st = tw_fail(err, TW_BAD_REQUEST, "%s is given more than once", p->name);
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
