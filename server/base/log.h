/*
 * log.h - one line per event on stderr, as logfmt or JSON.
 *
 *   time=2026-03-01T09:00:00.123Z level=info event=request id=4f… method=GET status=200
 *
 * Values may be hostile: they are quoted and escaped here.  Callers never pass secrets. A line is
 * one write, so lines of several threads and processes do not mix: it is written completely or not
 * at all.  A pipe that is not read does not block the caller: waiting is short and rare, and
 * dropped lines are counted and reported before the next line that fits.  Flags of the descriptor,
 * which other processes share, are not changed.
 * Thread: any.
 */
#ifndef TW_LOG_H
#define TW_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"

enum tw_log_level { TW_LOG_DEBUG, TW_LOG_INFO, TW_LOG_WARN, TW_LOG_ERROR };

/* Words as in config.h; false, without any change, if either is unknown. */
bool tw_log_setup(const char *level, const char *format);

/* Adds the name of this server to each line; NULL: none.  The text must stay valid. */
void tw_log_node(const char *node);

struct tw_log_field {
	const char *key;
	const char *text; /* NULL: a number */
	int64_t number;
};

static inline struct tw_log_field tw_log_text(const char *key, const char *text)
{
	return (struct tw_log_field){key, text ? text : "", 0};
}

static inline struct tw_log_field tw_log_number(const char *key, int64_t number)
{
	return (struct tw_log_field){key, NULL, number};
}

void tw_log_fields(
        enum tw_log_level level, const char *event, const struct tw_log_field *fields, size_t n);

/* tw_log(TW_LOG_INFO, "listening", tw_log_text("address", a), tw_log_number("port", 80)); at least
 * one field. */
#define tw_log(level, event, ...)                                                                  \
	tw_log_fields((level), (event), (const struct tw_log_field[]){__VA_ARGS__},                \
	        sizeof((const struct tw_log_field[]){__VA_ARGS__}) / sizeof(struct tw_log_field))

/* An error with its status word and message; `what` is the operation that failed. */
void tw_log_err(
        enum tw_log_level level, const char *event, const char *what, const struct tw_err *err);

/* Call once, before threads exist.  Then other writers to the same pipe cannot block this process
 * either; without it, a line may block if another process filled the pipe after the check. */
void tw_log_sink_open(void);
/* Lines dropped since the start. */
uint64_t tw_log_sink_lost(void);

#endif
