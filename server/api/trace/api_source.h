/*
 * api_source.h - the last change of a method, for other endpoints.
 *
 * Waits for a child process: only from routes with by_child.
 */
#ifndef TW_API_SOURCE_H
#define TW_API_SOURCE_H

#include <jansson.h>

#include "decoder/base/err.h"

struct tw_req;

struct tw_blame_query { /* "" where unknown */
	const char *method, *app;
	const char *base, *head; /* versions */
};

/* The response of GET /api/v1/source/blame, with why instead of commits where they cannot be found
 * out.  Contains email addresses, which people may not be shown.  The caller frees it with
 * json_decref; NULL on failure. */
enum tw_status tw_api_blame(struct tw_req *r, const struct tw_blame_query *query, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

#endif
