/*
 * cli_term.h - what a terminal gets that a pipe does not: colours, progress, columns.
 *
 * Colours only where the stream is a terminal that can show them and NO_COLOR is not set; progress
 * only on stderr, and only where that is a terminal.  Names that traces bring are data: control
 * characters in them, which a terminal would obey, become U+FFFD.  Thread: one.
 */
#ifndef TW_CLI_TERM_H
#define TW_CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decoder/base/buf.h"

enum tw_paint { TW_PLAIN, TW_RED, TW_GREEN, TW_YELLOW, TW_DIM, TW_BOLD };

/* A terminal that moves its cursor and shows colours?  NO_COLOR is not asked. */
bool tw_term_is(FILE *f);
/* The sequence that begins a colour on this stream, "" where it has none; TW_PLAIN ends all. */
const char *tw_term_paint(FILE *f, enum tw_paint paint);

struct tw_term_size {
	unsigned columns, rows;
};
/* 80 by 24 where it cannot be told. */
struct tw_term_size tw_term_size(FILE *f);

/* Appends text without control characters, filled up with blanks to `columns`, or cut there with an
 * ellipsis; 0 columns: as long as it is.  Each code point counts as one column. */
void tw_term_text(struct tw_buf *out, const char *text, unsigned columns);

/* "1.2 s", "34 ms", "560 us" of nanoseconds; 16 bytes do. */
const char *tw_term_time(char *out, size_t cap, int64_t ns);

/* --- progress --- */

struct tw_progress {
	const char *what; /* "checking"; NULL: not shown */
	uint64_t total;   /* 0: not known */
	int64_t begun_ms; /* 0: nothing came yet */
	int64_t next_ms;  /* not drawn again before */
	bool drawn;
};

/* Shows nothing where stderr is no terminal. */
struct tw_progress tw_progress_of(const char *what, uint64_t total);
/* `done` of total, and how many bytes that was (0: not said), after a second also how many a
 * second; drawn ten times a second at most. */
void tw_progress_at(struct tw_progress *p, uint64_t done, uint64_t bytes);
/* Takes the line away, for others to be printed; it comes back with the next step. */
void tw_progress_clear(struct tw_progress *p);

#endif
