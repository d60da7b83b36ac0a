/*
 * push_client.h - HTTP client of a tracewell server, for subcommands.
 *
 * Requests are retried on temporary failures of the network or the server (no response, 429, 5xx),
 * with growing waits and jitter; Retry-After is honoured. Thread: one.
 */
#ifndef TW_PUSH_CLIENT_H
#define TW_PUSH_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/err.h"

struct tw_push_client;

/* `progress`: shows the progress of each upload on stderr. */
enum tw_status tw_push_client_new(const char *server, const char *key, bool progress,
        struct tw_push_client **ret, struct tw_err *err) TW_MUST_USE;
/* Accepts NULL; returns NULL. */
struct tw_push_client *tw_push_client_free(struct tw_push_client *c);

struct tw_push_part { /* of a form, in addition to the trace */
	const char *name, *file;
};

enum { TW_PUSH_RESPONSE = 1 << 20 };

struct tw_push_request {
	const char *method;
	const char *path;  /* with query, already escaped */
	const char *file;  /* body, or part `trace` if there are other parts; NULL none */
	const char *label; /* of file, for progress and errors */
	const struct tw_push_part *parts;
	size_t n_parts;
	const char *idempotency; /* NULL: none */
	size_t max_response;     /* bytes; 0: TW_PUSH_RESPONSE */
	bool once;               /* a user waits at a terminal: do not retry */
};
/* The response's JSON object; the caller frees with json_decref.  A rejection returns the status
 * and the server's message, a transport failure TW_IO. */
enum tw_status tw_push_client_send(struct tw_push_client *c, const struct tw_push_request *request,
        json_t **ret, struct tw_err *err) TW_MUST_USE;

/* Appends name=value, escaped, to a query. */
struct tw_buf;
enum tw_status tw_push_client_query(struct tw_push_client *c, struct tw_buf *out, const char *name,
        const char *value, struct tw_err *err) TW_MUST_USE;

#endif
