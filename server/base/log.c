#include "server/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "decoder/base/str.h"

enum { MAX_LINE = 4096, MAX_VALUE = 1024 };
_Static_assert(MAX_LINE <= PIPE_BUF, "a pipe takes a line whole or not at all");

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static _Atomic int threshold = TW_LOG_INFO; /* the log's settings are the server's only global
                                             * state */
static _Atomic bool as_json;
static const char *_Atomic node_name;

bool tw_log_setup(const char *level, const char *format)
{
	bool json = strcmp(format, "json") == 0;

	if (!json && strcmp(format, "logfmt") != 0)
		return false;
	for (int i = TW_LOG_DEBUG; i <= TW_LOG_ERROR; i++)
		if (strcmp(level, level_names[i]) == 0) {
			threshold = i;
			as_json = json;
			return true;
		}
	return false;
}

void tw_log_node(const char *node)
{
	node_name = node;
}

struct line {
	char text[MAX_LINE];
	size_t len;
	bool json;
};

static void put(struct line *l, const char *p, size_t n)
{
	size_t space = sizeof l->text - 3 - l->len; /* space for the closing brace and newline */

	if (n > space)
		return; /* written completely or not at all: a truncated escape would break the
		         * line */
	memcpy(l->text + l->len, p, n);
	l->len += n;
}

static void put_str(struct line *l, const char *s)
{
	put(l, s, strlen(s));
}

static bool is_plain(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == '\\' || *s == 0x7f)
			return false;
	return true;
}

/* As a JSON string, which is also logfmt's quoting. */
static void put_quoted(struct line *l, const char *s)
{
	char clean[MAX_VALUE];
	size_t n = tw_utf8_clean(clean, sizeof clean, tw_str_of(s));

	put(l, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)clean[i];
		char escape[8];

		if (c == '"' || c == '\\') {
			put(l, (const char[]){'\\', (char)c}, 2);
		} else if (c < 0x20 || c == 0x7f) {
			(void)snprintf(escape, sizeof escape, "\\u%04x", c);
			put_str(l, escape);
		} else {
			put(l, clean + i, 1);
		}
	}
	put(l, "\"", 1);
}

static void put_text(struct line *l, const char *key, const char *value)
{
	put_str(l, l->json ? (l->len > 1 ? ",\"" : "\"") : (l->len ? " " : ""));
	put_str(l, key);
	put_str(l, l->json ? "\":" : "=");
	if (!l->json && is_plain(value) && strlen(value) < MAX_VALUE)
		put_str(l, value);
	else
		put_quoted(l, value);
}

static void put_number(struct line *l, const char *key, int64_t value)
{
	char text[64];

	(void)snprintf(
	        text, sizeof text, l->json ? ",\"%s\":%lld" : " %s=%lld", key, (long long)value);
	put_str(l, text);
}

static void put_time(struct line *l)
{
	char text[48];
	struct timespec now;
	struct tm tm;
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + n, sizeof text - n, ".%03ldZ", now.tv_nsec / 1000000);
	put_text(l, "time", text);
}

static void begin(struct line *l, enum tw_log_level level, const char *event)
{
	*l = (struct line){.json = as_json};
	if (l->json)
		put(l, "{", 1);
	put_time(l);
	if (node_name)
		put_text(l, "node", node_name);
	put_text(l, "level", level_names[level]);
	put_text(l, "event", event);
}

static void end(struct line *l)
{
	if (l->json)
		l->text[l->len++] = '}';
	l->text[l->len++] = '\n';
}

/* --- writing to stderr ---
 *
 * A pipe is opened again, so that writes can fail instead of block.  Setting O_NONBLOCK on the
 * inherited descriptor would affect every process that shares it.
 */

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
static bool has_space(void)
{
	struct pollfd p = {.fd = sink.fd, .events = POLLOUT};
	int rc = poll(&p, 1, 0);

	if (rc == 0 && now_ms() >= sink.no_wait_till) {
		rc = poll(&p, 1, WAIT_MS);
		sink.no_wait_till = now_ms() + WAIT_AGAIN_MS;
	}
	return rc > 0 && p.revents & POLLOUT;
}

static bool write_line(const char *line, size_t len)
{
	ssize_t n;

	if (!has_space())
		return false;
	do
		n = sink.is_socket ? send(sink.fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL)
		                   : write(sink.fd, line, len);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

static bool write_lost_count(void)
{
	struct line l;

	if (sink.dropped_since == 0)
		return true;
	begin(&l, TW_LOG_WARN, "log_lost");
	put_number(&l, "lines", (int64_t)sink.dropped_since);
	put_text(&l, "reason", "log reader blocked");
	end(&l);
	if (!write_line(l.text, l.len))
		return false;
	sink.dropped_since = 0;
	return true;
}

static void write_or_drop(const struct line *l)
{
	(void)pthread_mutex_lock(&sink.lock);
	if (!write_lost_count() || !write_line(l->text, l->len)) {
		sink.dropped_since++;
		(void)atomic_fetch_add(&lost_lines, 1);
	}
	(void)pthread_mutex_unlock(&sink.lock);
}

uint64_t tw_log_sink_lost(void)
{
	return atomic_load(&lost_lines);
}

/* --- an event --- */

void tw_log_fields(
        enum tw_log_level level, const char *event, const struct tw_log_field *fields, size_t n)
{
	struct line l;

	if ((int)level < threshold)
		return;
	begin(&l, level, event);
	for (size_t i = 0; i < n; i++)
		if (fields[i].text)
			put_text(&l, fields[i].key, fields[i].text);
		else
			put_number(&l, fields[i].key, fields[i].number);
	end(&l);
	write_or_drop(&l);
}

void tw_log_err(
        enum tw_log_level level, const char *event, const char *what, const struct tw_err *err)
{
	tw_log(level, event, tw_log_text("what", what),
	        tw_log_text("status", tw_status_name(err->code)), tw_log_text("message", err->msg));
}
