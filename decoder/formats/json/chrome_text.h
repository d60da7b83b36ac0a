/*
 * chrome_text.h - streaming splitter of Chrome's JSON traces.
 *
 *   [ EVENT, EVENT ...                        an array, whose end may be missing
 *   {"traceEvents": [ EVENT ... ],            an object, its members in any order
 *    "systemTraceEvents": "...",              a kernel trace, as a string
 *    "metadata": {...}, ...}
 *
 * An event that is complete in the pushed bytes and plain (chrome_event.h) is read where it is. For
 * any other, brackets and strings are tracked byte by byte and one event is buffered at a time, so
 * a trace of any size needs the memory of its largest event, which is limited.  Other values are
 * skipped; an event that is too long is counted.
 */
#ifndef TW_CHROME_TEXT_H
#define TW_CHROME_TEXT_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"

enum { TW_CHROME_EVENT_MAX_BYTES = 1 << 20 };

enum tw_chrome_piece {
	TW_CHROME_EVENT,    /* an object, as JSON */
	TW_CHROME_METADATA, /* an object, as JSON */
	TW_CHROME_KERNEL    /* a piece of the kernel's text, unescaped; "" at its end */
};

typedef enum tw_status (*tw_chrome_fn)(void *arg, enum tw_chrome_piece what, struct tw_str text,
        uint64_t offset, struct tw_err *err);

/* Reads the event at the start of these bytes, which may be incomplete.  *ret_used: its length, or
 * 0 if it must be buffered. */
typedef enum tw_status (*tw_chrome_plain_fn)(
        void *arg, struct tw_str text, uint64_t offset, size_t *ret_used, struct tw_err *err);

enum tw_chrome_part {
	TW_CHROME_START,
	TW_CHROME_MEMBERS, /* of the outermost object: a key is expected */
	TW_CHROME_KEY,
	TW_CHROME_COLON,
	TW_CHROME_VALUE,
	TW_CHROME_PASS, /* an ignored value */
	TW_CHROME_EVENTS,
	TW_CHROME_HOLD, /* an object that is buffered */
	TW_CHROME_STRING,
	TW_CHROME_OVER
};

struct tw_chrome_text {
	struct tw_sink *sink;
	tw_chrome_fn each;
	tw_chrome_plain_fn plain;
	void *arg;
	uint64_t offset, start;          /* of the next byte; of the buffered value */
	enum tw_chrome_part part, after; /* after: the part that contains the buffered object */
	enum tw_chrome_piece what;
	bool bare;     /* the outermost value is an array */
	bool found;    /* a list of events or a kernel trace was found */
	bool strange;  /* another value between two events was counted */
	bool trailing; /* so were bytes after the end */
	bool in_string, escaped;
	uint32_t depth;
	char key[24]; /* longer keys are ignored */
	size_t n_key;
	char *held; /* of TW_CHROME_EVENT_MAX_BYTES */
	size_t n_held;
	uint32_t code; /* a \u escape so far */
	unsigned n_code;
};

/* False: out of memory. */
bool tw_chrome_text_init(struct tw_chrome_text *t, struct tw_arena *a, struct tw_sink *sink,
        tw_chrome_fn each, tw_chrome_plain_fn plain, void *arg);
/* Starts another text, whose first byte is at `offset`. */
void tw_chrome_text_restart(struct tw_chrome_text *t, uint64_t offset);
enum tw_status tw_chrome_text_push(
        struct tw_chrome_text *t, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* The text ended; `cut`: it is known to be truncated, which was already counted. */
enum tw_status tw_chrome_text_finish(
        struct tw_chrome_text *t, bool cut, struct tw_err *err) TW_MUST_USE;

#endif
