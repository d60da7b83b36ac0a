/* http_request.c - properties of a request for routes. */
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/http/http_int.h"

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

const char *tw_req_method(const struct tw_req *r)
{
	return r->method;
}

const char *tw_req_url(const struct tw_req *r)
{
	return r->target.path;
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

uint64_t tw_req_ms_left(const struct tw_req *r)
{
	uint64_t now = tw_http_now_ns();

	if (tw_req_is_abandoned(r))
		return 0;
	return now < r->deadline_ns ? (r->deadline_ns - now + 999999) / 1000000 : 0;
}

bool tw_req_accepts(const struct tw_req *r, const char *coding)
{
	const char *accept = tw_req_header(r, "Accept-Encoding");

	for (enum tw_coding c = TW_CODING_IDENTITY; c <= TW_CODING_ZSTD; c++)
		if (strcmp(coding, tw_coding_name(c)) == 0)
			return tw_coding_accepted(accept, c);
	return false;
}
