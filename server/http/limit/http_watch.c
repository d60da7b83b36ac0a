/*
 * http_watch.c - closes connections that wait too long for their client, or that make way for
 * others.
 *
 * libmicrohttpd closes silent connections, but restarts its timer with every byte: a client that
 * sends one now and then keeps a connection forever.  So each connection's phase and its start are
 * recorded here.  Once a second, connections whose headers are late or whose body is too slow are
 * shut down, as are idle ones closed by their client; requests whose client left are marked as
 * abandoned; and if there are more connections than allowed, the longest idle one gives way to a
 * new one.  The library then finds the connection at its end and cleans up; a descriptor leaves
 * this list before the library closes it.
 */
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "decoder/base/arena.h"
#include "server/base/thread/periodic.h"
#include "server/http/http_int.h"

/* Headers are late only after the library has closed the silent connections, which are not counted:
 * browsers open connections in advance.  A body may be slow at first.  Then it needs a minimum
 * rate, and earlier a higher one while upload slots are scarce. */
enum {
	SILENT_GRACE_S = 2,
	GRACE_S = 60,
	BYTES_PER_S = 256,
	SCARCE_GRACE_S = 10,
	SCARCE_BYTES_PER_S = 1024,
	HALF_CLOSED_S = 5
};

struct tw_watched {
	int fd;
	enum tw_wait wait;
	bool is_closed; /* no longer counted */
	bool surplus;   /* accepted when none could give way */
	bool lingers;   /* its reply was sent before its request was read */
	unsigned ended; /* consecutive sweeps that found the client's side closed */
	_Atomic bool abandoned;
	uint64_t since_ns;
	_Atomic uint64_t got; /* of a body */
	struct tw_watched *next;
	struct tw_watched **at; /* the pointer to this one */
};

struct tw_watch {
	pthread_mutex_t lock;
	struct tw_watched *all;
	unsigned open, most;
	uint64_t limit_ns;
	struct tw_metrics *metrics;
	struct tw_slots *slots;
	struct tw_linger *linger;
	struct tw_periodic *sweeper;
};

static void close_socket(struct tw_watch *w, struct tw_watched *c)
{
	c->is_closed = true;
	w->open--;
	(void)shutdown(c->fd, SHUT_RDWR);
}

static bool is_late(const struct tw_watch *w, const struct tw_watched *c, uint64_t now, bool scarce)
{
	const uint64_t ns = now - c->since_ns;
	const uint64_t s = ns / 1000000000;

	if (c->wait == TW_WAIT_IDLE)
		return ns > w->limit_ns + SILENT_GRACE_S * UINT64_C(1000000000);
	return c->wait != TW_WAIT_SERVER && s > (scarce ? SCARCE_GRACE_S : GRACE_S) &&
	       atomic_load(&c->got) / s < (scarce ? SCARCE_BYTES_PER_S : BYTES_PER_S);
}

/* Whether an idle client had closed its side one sweep ago and left nothing unread.  The library
 * may read part of a request together with the end of the stream, and epoll does not report that
 * end again.  The second sweep spares a complete request that is just being read: it must be
 * answered. */
static bool has_ended(struct tw_watched *c, short events)
{
	char byte;
	const bool ended =
	        (events & POLLRDHUP) && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;

	c->ended = ended ? c->ended + 1 : 0;
	return c->ended > 1;
}

/* Whether the client of a request in progress has left.  A reset connection has no reader.  A
 * closed sending side does not show whether the client closed the connection or still waits for the
 * reply: nginx assumes the former immediately, here fast requests are still answered. */
static bool has_left(struct tw_watched *c, short events)
{
	c->ended = (events & POLLRDHUP) ? c->ended + 1 : 0;
	return (events & (POLLHUP | POLLERR)) || c->ended > HALF_CLOSED_S;
}

static short events_of(const struct tw_watched *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

	if (poll(&p, 1, 0) != 1)
		return 0;
	return p.revents;
}

static void cut_late(struct tw_periodic *p, void *arg)
{
	struct tw_watch *w = arg;
	const bool scarce = w->slots && tw_slots_scarce(w->slots);
	uint64_t now;

	(void)p;
	(void)pthread_mutex_lock(&w->lock);
	now = tw_http_now_ns(); /* read under the lock, so that no connection is younger */
	for (struct tw_watched *c = w->all; c; c = c->next) {
		if (c->is_closed)
			continue;
		if (is_late(w, c, now, scarce)) {
			if (c->wait == TW_WAIT_IDLE)
				tw_metrics_connection_late(w->metrics);
			else
				tw_metrics_body_slow(w->metrics);
			close_socket(w, c);
		} else if (c->wait == TW_WAIT_IDLE && has_ended(c, events_of(c))) {
			close_socket(w, c);
		} else if (c->wait == TW_WAIT_SERVER && has_left(c, events_of(c))) {
			atomic_store(&c->abandoned, true);
		}
	}
	(void)pthread_mutex_unlock(&w->lock);
}

enum tw_status tw_watch_start(const struct tw_config *config, struct tw_metrics *metrics,
        struct tw_slots *slots, struct tw_watch **ret, struct tw_err *err)
{
	struct tw_watch *w = tw_mem_zalloc(1, sizeof *w);
	enum tw_status st;

	if (!w)
		return tw_oom(err);
	(void)pthread_mutex_init(&w->lock, NULL);
	w->limit_ns = config->connection_timeout_s * UINT64_C(1000000000);
	w->most = config->connections;
	w->metrics = metrics;
	w->slots = slots;
	st = tw_linger_start(&w->linger, err);
	if (st == TW_OK)
		st = tw_periodic_start(&(struct tw_periodic_task){"connections", cut_late, 1000}, w,
		        &w->sweeper, err);
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
	w->linger = tw_linger_stop(w->linger);
	(void)pthread_mutex_destroy(&w->lock);
	tw_mem_free(w);
	return NULL;
}

/* Idle ones first, then those without a valid key; each kind by age. */
static bool is_evicted_before(const struct tw_watched *a, const struct tw_watched *b)
{
	if (a->is_closed || (a->wait != TW_WAIT_IDLE && a->wait != TW_WAIT_HELD))
		return false;
	return !b || a->wait < b->wait || (a->wait == b->wait && a->since_ns < b->since_ns);
}

static void evict_idle(struct tw_watch *w, struct tw_watched *new)
{
	struct tw_watched *oldest = NULL;

	for (struct tw_watched *c = w->all; c; c = c->next)
		if (c != new &&is_evicted_before(c, oldest))
			oldest = c;
	new->surplus = !oldest;
	if (oldest) {
		close_socket(w, oldest);
		tw_metrics_connection_evicted(w->metrics);
	}
}

/* Without memory the connection is not watched. */
static struct tw_watched *begin(struct tw_watch *w, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct tw_watched *c = i ? tw_mem_zalloc(1, sizeof *c) : NULL;

	if (!c)
		return NULL;
	c->fd = i->connect_fd;
	c->since_ns = tw_http_now_ns();
	(void)pthread_mutex_lock(&w->lock);
	c->next = w->all;
	c->at = &w->all;
	if (c->next)
		c->next->at = &c->next;
	w->all = c;
	if (++w->open > w->most)
		evict_idle(w, c);
	(void)pthread_mutex_unlock(&w->lock);
	return c;
}

static void end(struct tw_watch *w, struct tw_watched *c)
{
	(void)pthread_mutex_lock(&w->lock);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	if (!c->is_closed)
		w->open--;
	(void)pthread_mutex_unlock(&w->lock);
	if (c->lingers && !c->is_closed)
		tw_linger_take(w->linger, c->fd);
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

static struct tw_watched *watched(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

void tw_watch_wait(struct tw_watch *w, struct MHD_Connection *connection, enum tw_wait wait)
{
	struct tw_watched *c = watched(connection);

	if (!c)
		return;
	(void)pthread_mutex_lock(&w->lock);
	c->wait = wait;
	c->ended = 0;
	atomic_store(&c->abandoned, false);
	c->since_ns = tw_http_now_ns();
	atomic_store(&c->got, 0);
	(void)pthread_mutex_unlock(&w->lock);
}

void tw_watch_got(struct MHD_Connection *connection, size_t bytes)
{
	struct tw_watched *c = watched(connection);

	if (c)
		(void)atomic_fetch_add(&c->got, bytes);
}

const _Atomic bool *tw_watch_abandoned(struct MHD_Connection *connection)
{
	const struct tw_watched *c = watched(connection);

	return c ? &c->abandoned : NULL;
}

void tw_watch_linger(struct MHD_Connection *connection)
{
	struct tw_watched *c = watched(connection);

	if (c)
		c->lingers = true; /* read by the same thread */
}

bool tw_watch_is_surplus(struct MHD_Connection *connection)
{
	const struct tw_watched *c = watched(connection);

	return c && c->surplus;
}
