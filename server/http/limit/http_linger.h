/*
 * http_linger.h - sockets whose response was sent while the client is still sending.
 *
 * Closing a socket with unread data resets the connection, and the client may lose the response.
 * So the socket stays half closed and its data is discarded until the client closes it, limited in
 * time and bytes.
 * Thread: any may call take.
 */
#ifndef TW_HTTP_LINGER_H
#define TW_HTTP_LINGER_H

#include "decoder/base/err.h"

struct tw_linger;

enum tw_status tw_linger_start(struct tw_linger **ret, struct tw_err *err) TW_MUST_USE;
/* Keeps a duplicate of `fd`, which the caller closes as usual. */
void tw_linger_take(struct tw_linger *l, int fd);
/* Closes all sockets.  Accepts NULL; returns NULL. */
struct tw_linger *tw_linger_stop(struct tw_linger *l);

#endif
