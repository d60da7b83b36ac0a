/*
 * lines.h - splits pushed bytes into lines, for text formats.
 *
 * A line that is complete within one push is passed on without a copy; a split one is assembled
 * first, so that splits change nothing (I3).  A line longer than the limit is passed on truncated
 * and flagged.
 *
 * All writers of these formats end every line.  A last line without its end was truncated, because
 * the file was fetched too early or the upload broke off, and may read like something else: a
 * number with fewer digits, a different name.  So it is ignored (tw_line_is_cut), unless the text's
 * container confirms that it ends there.
 */
#ifndef TW_LINES_H
#define TW_LINES_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "decoder/formats/sink.h"

struct tw_line {
	struct tw_str text; /* without its end, "\n" or "\r\n"; valid during the call */
	uint64_t offset;    /* of its first byte in the input */
	bool too_long;      /* text is its first max_bytes bytes */
	bool ended;         /* false: the input ended before the line did */
	bool counted;       /* !ended: the truncation is already counted */
};

typedef enum tw_status (*tw_line_fn)(void *arg, const struct tw_line *line, struct tw_err *err);

struct tw_lines {
	tw_line_fn each;
	void *arg;
	char *held; /* the beginning of an incomplete line */
	size_t n_held, max_bytes;
	uint64_t offset, start; /* of the next byte; of the line */
	bool too_long;
};

/* False: out of memory. */
bool tw_lines_init(
        struct tw_lines *l, struct tw_arena *a, size_t max_bytes, tw_line_fn each, void *arg);
enum tw_status tw_lines_push(
        struct tw_lines *l, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_lines_end {
	TW_LINES_OPEN, /* unknown whether the text is complete */
	TW_LINES_CUT,  /* the text is truncated, which is already counted */
	TW_LINES_WHOLE /* the container ends the text here */
};
/* Delivers the last line if it has no end. */
enum tw_status tw_lines_finish(
        struct tw_lines *l, enum tw_lines_end how, struct tw_err *err) TW_MUST_USE;
/* Whether this is a last line to be ignored.  Counts it. */
bool tw_line_is_cut(const struct tw_line *line, struct tw_sink *sink);

#endif
