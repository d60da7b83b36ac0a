/*
 * lines.h - pushed bytes to lines, for the formats that are text.
 *
 * A line that lies whole in one push is handed on where it is; one that is cut
 * is put together first, so that cuts change nothing (I3).  A line longer than
 * the bound is handed on cut, and told to be.
 *
 * All who write these texts end every line.  A last line without its end is one that was cut, by a
 * fetch too early or an upload that broke off, and a part may read like something else: a number
 * with fewer digits, another name.  So it is not believed (tw_line_is_cut), unless what holds the
 * text says that it ended there.
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
	bool told;          /* !ended: that the input was cut is counted already */
};

typedef enum tw_status (*tw_line_fn)(void *arg, const struct tw_line *line, struct tw_err *err);

struct tw_lines {
	tw_line_fn each;
	void *arg;
	char *held; /* the beginning of a line that is not yet whole */
	size_t n_held, max_bytes;
	uint64_t offset, start; /* of the next byte; of the line */
	bool too_long;
};

/* False: no memory. */
bool tw_lines_init(
        struct tw_lines *l, struct tw_arena *a, size_t max_bytes, tw_line_fn each, void *arg);
enum tw_status tw_lines_push(
        struct tw_lines *l, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_lines_end {
	TW_LINES_OPEN, /* nothing says whether it is all of the text */
	TW_LINES_CUT,  /* it is not, which is counted already */
	TW_LINES_WHOLE /* what holds the text ends it here */
};
/* The last line, when it has no end. */
enum tw_status tw_lines_finish(
        struct tw_lines *l, enum tw_lines_end how, struct tw_err *err) TW_MUST_USE;
/* Is this a last line that is not to be believed?  Counts it. */
bool tw_line_is_cut(const struct tw_line *line, struct tw_sink *sink);

#endif
