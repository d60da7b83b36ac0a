#include "server/http/http_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"

/* MAX_BYTES is twice the largest default upload in one piece; a device on a slow network needs
 * about MAX_MS for it. */
enum {
	MAX_SOCKETS = 256,
	MAX_MS = 60000,
	MAX_IDLE_MS = 5000,
	BUFFER_BYTES = 64 << 10,
	CHECK_MS = 1000,
	EVENTS = 64
};
static const uint64_t max_bytes = 128 << 20;

struct lingering {
	int fd; /* -1: the slot is free */
	int64_t since_ms, received_ms;
	uint64_t bytes;
};

struct tw_linger {
	pthread_mutex_t lock;
	pthread_t thread;
	bool running;
	_Atomic bool stopping;
	int epoll, wake;
	struct lingering slots[MAX_SOCKETS];
	char buffer[BUFFER_BYTES];
};

static void release(struct lingering *s)
{
	if (s->fd >= 0)
		(void)close(s->fd); /* also removes it from the epoll set */
	s->fd = -1;
}

/* The slot may have been reused for another socket since its event: reading that one is
 * harmless. */
static void discard(struct tw_linger *l, struct lingering *s, int64_t now)
{
	ssize_t n;

	if (s->fd < 0)
		return;
	n = recv(s->fd, l->buffer, sizeof l->buffer, MSG_DONTWAIT);
	if (n > 0) {
		s->bytes += (uint64_t)n;
		s->received_ms = now;
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || s->bytes >= max_bytes)
		release(s);
}

static void release_late(struct tw_linger *l, int64_t now)
{
	for (size_t i = 0; i < MAX_SOCKETS; i++) {
		struct lingering *s = &l->slots[i];

		if (s->fd >= 0 &&
		        (now - s->since_ms > MAX_MS || now - s->received_ms > MAX_IDLE_MS))
			release(s);
	}
}

static void *run(void *arg)
{
	struct tw_linger *l = arg;
	struct epoll_event events[EVENTS];

	while (!atomic_load(&l->stopping)) {
		const int n = epoll_wait(l->epoll, events, EVENTS, CHECK_MS);
		const int64_t now = tw_monotonic_ms();

		(void)pthread_mutex_lock(&l->lock);
		for (int i = 0; i < n; i++)
			if (events[i].data.u32 < MAX_SOCKETS)
				discard(l, &l->slots[events[i].data.u32], now);
		release_late(l, now);
		(void)pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

enum tw_status tw_linger_start(struct tw_linger **ret, struct tw_err *err)
{
	struct tw_linger *l = tw_mem_zalloc(1, sizeof *l);
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = MAX_SOCKETS};
	bool ok;

	if (!l)
		return tw_oom(err);
	(void)pthread_mutex_init(&l->lock, NULL);
	for (size_t i = 0; i < MAX_SOCKETS; i++)
		l->slots[i].fd = -1;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ok = l->epoll >= 0 && l->wake >= 0 &&
	     epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wake, &event) == 0;
	l->running = ok && pthread_create(&l->thread, NULL, run, l) == 0;
	if (l->running) {
		*ret = l;
		return TW_OK;
	}
	(void)tw_linger_stop(l);
	return tw_fail(err, TW_IO, "the thread that closes connections could not be started");
}

/* A free slot, or that of the oldest socket. */
static size_t slot_for_one(const struct tw_linger *l)
{
	size_t oldest = 0;

	for (size_t i = 0; i < MAX_SOCKETS; i++) {
		if (l->slots[i].fd < 0)
			return i;
		if (l->slots[i].since_ms < l->slots[oldest].since_ms)
			oldest = i;
	}
	return oldest;
}

void tw_linger_take(struct tw_linger *l, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct lingering new = {.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
	size_t at;

	if (new.fd < 0)
		return;
	/* after TLS the library has only sent its own close */
	(void)shutdown(new.fd, SHUT_WR);
	new.since_ms = new.received_ms = tw_monotonic_ms();
	(void)pthread_mutex_lock(&l->lock);
	at = slot_for_one(l);
	release(&l->slots[at]);
	event.data.u32 = (uint32_t)at;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, new.fd, &event) == 0)
		l->slots[at] = new;
	else
		(void)close(new.fd);
	(void)pthread_mutex_unlock(&l->lock);
}

struct tw_linger *tw_linger_stop(struct tw_linger *l)
{
	const uint64_t one = 1;

	if (!l)
		return NULL;
	atomic_store(&l->stopping, true);
	if (l->wake >= 0)
		(void)!write(l->wake, &one, sizeof one);
	if (l->running)
		(void)pthread_join(l->thread, NULL);
	for (size_t i = 0; i < MAX_SOCKETS; i++)
		release(&l->slots[i]);
	if (l->epoll >= 0)
		(void)close(l->epoll);
	if (l->wake >= 0)
		(void)close(l->wake);
	(void)pthread_mutex_destroy(&l->lock);
	tw_mem_free(l);
	return NULL;
}
