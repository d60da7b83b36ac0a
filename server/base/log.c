#include "server/base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/base/str.h"
#include "server/base/log_sink.h"

enum { MAX_LINE = TW_LOG_LINE_BYTES, MAX_VALUE = 1024 };

static const char *const level_words[] = {"debug", "info", "warn", "error"};
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
		if (strcmp(level, level_words[i]) == 0) {
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
	size_t room = sizeof l->text - 3 - l->len; /* space for the closing brace and newline */

	if (n > room)
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
	put_text(l, "level", level_words[level]);
	put_text(l, "event", event);
}

static void end(struct line *l)
{
	if (l->json)
		l->text[l->len++] = '}';
	l->text[l->len++] = '\n';
}

static size_t write_lost(char out[TW_LOG_LINE_BYTES], uint64_t lost)
{
	struct line l;

	begin(&l, TW_LOG_WARN, "log_lost");
	put_number(&l, "lines", (int64_t)lost);
	put_text(&l, "reason", "log reader blocked");
	end(&l);
	memcpy(out, l.text, l.len);
	return l.len;
}

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
	tw_log_sink_put(l.text, l.len, write_lost);
}

void tw_log_err(
        enum tw_log_level level, const char *event, const char *what, const struct tw_err *err)
{
	tw_log(level, event, tw_log_text("what", what),
	        tw_log_text("status", tw_status_name(err->code)), tw_log_text("message", err->msg));
}
