/*
 * cli_term.h - output for terminals: colours, progress, columns.
 *
 * Colours are used only if the stream is a terminal that supports them and NO_COLOR is not set;
 * progress only on stderr, and only if that is a terminal.  Names in traces are data: control
 * characters in them, which a terminal would interpret, become U+FFFD.  Thread: one.
 */
#ifndef TW_CLI_TERM_H
#define TW_CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decoder/base/buf.h"

enum tw_paint { TW_PLAIN, TW_RED, TW_GREEN, TW_YELLOW, TW_DIM, TW_BOLD };

/* Returns whether f is a terminal with cursor movement and colours.  Ignores NO_COLOR. */
bool tw_term_is(FILE *f);
/* The sequence that begins a colour on this stream, "" without colours; TW_PLAIN ends all. */
const char *tw_term_paint(FILE *f, enum tw_paint paint);

struct tw_term_size {
	unsigned columns, rows;
};
/* 80 by 24 if unknown. */
struct tw_term_size tw_term_size(FILE *f);

/* Appends text without control characters, padded with spaces to `columns`, or truncated there with
 * an ellipsis; 0 columns: unchanged length.  Each code point counts as one column. */
void tw_term_text(struct tw_buf *out, struct tw_str text, unsigned columns);
/* Prints text of devices and users without control characters. */
void tw_term_print(const char *text);

/* Formats nanoseconds: "1.2 s", "34 ms", "560 us"; 16 bytes are sufficient. */
const char *tw_term_time(char *out, size_t cap, int64_t ns);

/* --- progress --- */

struct tw_progress {
	const char *what; /* "checking"; NULL: not shown */
	uint64_t total;   /* set it if it is known; 0: unknown */
	int64_t begun_ms; /* 0: no progress yet */
	int64_t next_ms;  /* earliest time of the next redraw */
	bool drawn;
};

/* Shows nothing if stderr is not a terminal. */
struct tw_progress tw_progress_of(const char *what);
/* `done` of total, and the bytes so far (0: unknown), after one second also bytes per second; drawn
 * at most ten times a second. */
void tw_progress_at(struct tw_progress *p, uint64_t done, uint64_t bytes);
/* Removes the line so that others can be printed; the next step draws it again. */
void tw_progress_clear(struct tw_progress *p);

#endif
