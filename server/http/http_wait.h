/*
 * http_wait.h - requests that wait for the end of a job, without a thread.
 *
 * The connection is suspended.  Once a second, and when a job ended, the route's `end` is called
 * again on its pool, until it replies.  A project has at most TW_WAITS_PER_PROJECT such requests,
 * so that no project uses up all connections.  Thread: any.
 */
#ifndef TW_HTTP_WAIT_H
#define TW_HTTP_WAIT_H

#include "server/http/http.h"

enum { TW_WAITS_PER_PROJECT = 32 };

struct tw_http_waits;

enum tw_status tw_http_waits_start(struct tw_http_waits **ret, struct tw_err *err) TW_MUST_USE;
/* Call when no request is left.  Accepts NULL; returns NULL. */
struct tw_http_waits *tw_http_waits_stop(struct tw_http_waits *w);
void tw_http_waits_wake(struct tw_http_waits *w); /* a job ended */

/* Call in the `end` of a slow route, which then returns TW_OK without a reply: it is called again.
 * False: it must reply now, because the client has disconnected, the server is shutting down, or
 * too many requests of the project are waiting. */
bool tw_req_wait(struct tw_req *r);

#endif
