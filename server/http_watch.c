/*
 * http_watch.c - connections that take too long to say what they want.
 *
 * libmicrohttpd ends a connection that is silent, and starts its clock anew
 * with every byte; who sends one now and then keeps a connection for ever.  So
 * each is known here by the time since which a request's headers are awaited,
 * from its start or its last answer, and once a second those that wait longer
 * than a silent one may are shut down.  The library then finds them at their
 * end and cleans up; a descriptor leaves this list before the library closes it.
 */
#include <microhttpd.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "http_int.h"
#include "periodic.h"

struct tw_watched {
	int fd;
	bool waits; /* for headers */
	uint64_t since_ns;
	struct tw_watched *next;
	struct tw_watched **at; /* what points here */
};

struct tw_watch {
	pthread_mutex_t lock;
	struct tw_watched *all;
	uint64_t limit_ns;
	struct tw_metrics *metrics;
	struct tw_periodic *sweeper;
};

static void cut_late(struct tw_periodic *p, void *arg)
{
	struct tw_watch *w = arg;
	uint64_t now;

	(void)p;
	(void)pthread_mutex_lock(&w->lock);
	now = tw_http_now_ns(); /* no connection that has the lock first is younger */
	for (struct tw_watched *c = w->all; c; c = c->next) {
		if (!c->waits || now - c->since_ns <= w->limit_ns)
			continue;
		c->waits = false;
		(void)shutdown(c->fd, SHUT_RDWR);
		tw_metrics_connection_late(w->metrics);
	}
	(void)pthread_mutex_unlock(&w->lock);
}

enum tw_status tw_watch_start(
        unsigned seconds, struct tw_metrics *metrics, struct tw_watch **ret, struct tw_err *err)
{
	struct tw_watch *w = tw_mem_zalloc(1, sizeof *w);
	enum tw_status st;

	if (!w)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	(void)pthread_mutex_init(&w->lock, NULL);
	w->limit_ns = seconds * UINT64_C(1000000000);
	w->metrics = metrics;
	st = tw_periodic_start(cut_late, w, 1, &w->sweeper, err);
	if (st == TW_OK)
		*ret = w;
	else
		(void)tw_watch_stop(w);
	return st;
}

struct tw_watch *tw_watch_stop(struct tw_watch *w)
{
	if (!w)
		return NULL;
	(void)tw_periodic_stop(w->sweeper);
	(void)pthread_mutex_destroy(&w->lock);
	tw_mem_free(w);
	return NULL;
}

/* One that there is no memory for is not watched. */
static struct tw_watched *begin(struct tw_watch *w, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct tw_watched *c = i ? tw_mem_zalloc(1, sizeof *c) : NULL;

	if (!c)
		return NULL;
	c->fd = i->connect_fd;
	c->waits = true;
	c->since_ns = tw_http_now_ns();
	(void)pthread_mutex_lock(&w->lock);
	c->next = w->all;
	c->at = &w->all;
	if (c->next)
		c->next->at = &c->next;
	w->all = c;
	(void)pthread_mutex_unlock(&w->lock);
	return c;
}

static void end(struct tw_watch *w, struct tw_watched *c)
{
	(void)pthread_mutex_lock(&w->lock);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	(void)pthread_mutex_unlock(&w->lock);
	tw_mem_free(c);
}

void tw_watch_connection(void *cls, struct MHD_Connection *connection, void **context,
        enum MHD_ConnectionNotificationCode what)
{
	struct tw_watch *w = cls;
	struct tw_watched *c = *context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = begin(w, connection);
		tw_metrics_connections_open(w->metrics, 1);
		return;
	}
	tw_metrics_connections_open(w->metrics, -1);
	if (c)
		end(w, c);
	*context = NULL;
}

void tw_watch_waits(struct tw_watch *w, struct MHD_Connection *connection, bool waits)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct tw_watched *c = i ? i->socket_context : NULL;

	if (!c)
		return;
	(void)pthread_mutex_lock(&w->lock);
	c->waits = waits;
	c->since_ns = tw_http_now_ns();
	(void)pthread_mutex_unlock(&w->lock);
}
