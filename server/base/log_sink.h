/*
 * log_sink.h - lines put on stderr, which whoever reads it may stop doing.
 *
 * A line is put there whole or not at all, and is waited for shortly and seldom; those that were
 * lost are counted, and told of before the next that finds room.  What others share the descriptor
 * with is not changed.
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

/* Once, before there are threads: also others that write into the pipe cannot hold this process up
 * then.  Without, a line may be waited for when one of them took the room that was seen. */
void tw_log_sink_open(void);

/* Writes the line that tells how many were lost, with its newline; gives its length. */
typedef size_t (*tw_log_lost_fn)(char line[TW_LOG_LINE_BYTES], uint64_t lost);

/* At most TW_LOG_LINE_BYTES. */
void tw_log_sink_put(const char *line, size_t len, tw_log_lost_fn lost);

/* Lines that nobody took, since the start. */
uint64_t tw_log_sink_lost(void);

#endif
