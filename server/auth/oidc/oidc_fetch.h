/*
 * oidc_fetch.h - asks the provider: one request, bounded in time and size, never redirected.
 *
 * Only https, and http to this machine where a setting allows that.
 * Thread: any; blocks.
 */
#ifndef TW_OIDC_FETCH_H
#define TW_OIDC_FETCH_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/err.h"

enum { TW_FETCH_MAX_BYTES = 256 << 10, TW_FETCH_MS = 10000 };

struct tw_fetch {
	const char *url;
	const char *form; /* sent by POST, application/x-www-form-urlencoded; NULL: GET */
	const char *user, *password; /* Basic; NULL: none */
	const char *bearer;          /* NULL: none */
	const char *ca_file;         /* PEM, "": the system's */
	bool loopback_http;          /* http is fine there */
	uint64_t ms;                 /* at most, and never more than TW_FETCH_MS */
};

/* May that be asked at all? */
bool tw_fetch_allows(const char *url, bool loopback_http);
/* *ret is the answer's JSON object, owed to json_decref, or NULL when it was none.  TW_IO when
 * nobody answered in time or at length.  No message has anything of what was sent. */
enum tw_status tw_oidc_fetch(
        const struct tw_fetch *f, long *ret_http, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* Once, before other threads run. */
enum tw_status tw_fetch_prepare(struct tw_err *err) TW_MUST_USE;

#endif
