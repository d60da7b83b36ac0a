/*
 * log_sink.c - writes lines to stderr (log_sink.h).
 *
 * A pipe is opened again, so that writes can fail instead of block.  Setting O_NONBLOCK on the
 * inherited descriptor would affect every process that shares it.
 */
#include "server/base/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Limits the time that threads lose to a slow reader to a tenth. */
enum { WAIT_MS = 100, WAIT_AGAIN_MS = 1000 };

static struct {
	pthread_mutex_t lock;
	int fd;
	bool is_socket;
	uint64_t dropped_since; /* dropped since the last line written */
	int64_t no_wait_till;   /* ms */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = STDERR_FILENO};

static _Atomic uint64_t lost_lines;

void tw_log_sink_open(void)
{
	struct stat st;
	int fd = -1;

	if (fstat(STDERR_FILENO, &st) != 0)
		return;
	sink.is_socket = S_ISSOCK(st.st_mode);
	if (S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO))
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		sink.fd = fd;
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits for space, unless it has recently waited. */
static bool has_room(void)
{
	struct pollfd p = {.fd = sink.fd, .events = POLLOUT};
	int rc = poll(&p, 1, 0);

	if (rc == 0 && now_ms() >= sink.no_wait_till) {
		rc = poll(&p, 1, WAIT_MS);
		sink.no_wait_till = now_ms() + WAIT_AGAIN_MS;
	}
	return rc > 0 && p.revents & POLLOUT;
}

static bool put(const char *line, size_t len)
{
	ssize_t n;

	if (!has_room())
		return false;
	do
		n = sink.is_socket ? send(sink.fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL)
		                   : write(sink.fd, line, len);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

static bool write_lost_count(tw_log_lost_fn lost)
{
	char line[TW_LOG_LINE_BYTES];

	if (sink.dropped_since == 0)
		return true;
	if (!put(line, lost(line, sink.dropped_since)))
		return false;
	sink.dropped_since = 0;
	return true;
}

void tw_log_sink_put(const char *line, size_t len, tw_log_lost_fn lost)
{
	(void)pthread_mutex_lock(&sink.lock);
	if (!write_lost_count(lost) || !put(line, len)) {
		sink.dropped_since++;
		(void)atomic_fetch_add(&lost_lines, 1);
	}
	(void)pthread_mutex_unlock(&sink.lock);
}

uint64_t tw_log_sink_lost(void)
{
	return atomic_load(&lost_lines);
}
