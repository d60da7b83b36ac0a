/*
 * oidc_fetch.h - sends one request to the provider, limited in time and size, without redirects.
 *
 * Only https, or http to this machine if a setting allows it.
 * Thread: any; blocks.
 */
#ifndef TW_OIDC_FETCH_H
#define TW_OIDC_FETCH_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum { TW_FETCH_MAX_BYTES = 256 << 10, TW_FETCH_MS = 10000 };

struct tw_fetch {
	const char *url;
	const char *form; /* sent by POST, application/x-www-form-urlencoded; NULL: GET */
	const char *user, *password; /* Basic; NULL: none */
	const char *bearer;          /* NULL: none */
	const char *ca_file;         /* PEM, "": the system's */
	bool loopback_http;          /* http is allowed there */
	uint64_t ms;                 /* time limit, at most TW_FETCH_MS */
};

/* Whether this URL may be requested. */
bool tw_fetch_allows(const char *url, bool loopback_http);
/* *ret is the response's JSON object (free with json_decref), or NULL if it is not one.  TW_IO if
 * there was no response in time, or it was too large.  Messages contain nothing of the request. */
enum tw_status tw_oidc_fetch(
        const struct tw_fetch *f, long *ret_http, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* Call once, before other threads run. */
enum tw_status tw_fetch_prepare(struct tw_err *err) TW_MUST_USE;

/* Forms and queries (application/x-www-form-urlencoded). */
enum { TW_FORM_MAX_BYTES = 64 << 10 };

struct tw_form_pair {
	const char *name, *value; /* value NULL: omitted; name NULL: the end */
};

/* `before`, then name=value of each pair, separated by &; NULL if out of memory. */
const char *tw_form_text(struct tw_arena *a, const char *before, const struct tw_form_pair *pairs);
/* One value, escaped; NULL if out of memory. */
const char *tw_form_escaped(struct tw_arena *a, const char *value);

#endif
