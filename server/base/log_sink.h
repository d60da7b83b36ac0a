/*
 * log_sink.h - writes lines to stderr without depending on its reader.
 *
 * A line is written completely or not at all; waiting for a full pipe is short and rare.  Dropped
 * lines are counted and reported before the next line that fits.  Flags of the descriptor, which
 * other processes share, are not changed.
 * Thread: any.
 */
#ifndef TW_LOG_SINK_H
#define TW_LOG_SINK_H

#include <linux/limits.h> /* limits.h beside this file is another */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_LOG_LINE_BYTES = 4096 };
_Static_assert(TW_LOG_LINE_BYTES <= PIPE_BUF, "a pipe takes a line whole or not at all");

/* Call once, before threads exist.  Then other writers to the same pipe cannot block this process
 * either; without it, a line may block if another process filled the pipe after the check. */
void tw_log_sink_open(void);

/* Writes the line that reports the number of dropped lines, with its newline; returns its
 * length. */
typedef size_t (*tw_log_lost_fn)(char line[TW_LOG_LINE_BYTES], uint64_t lost);

/* At most TW_LOG_LINE_BYTES. */
void tw_log_sink_put(const char *line, size_t len, tw_log_lost_fn lost);

/* Lines dropped since the start. */
uint64_t tw_log_sink_lost(void);

#endif
