/*
 * json_text.h - formats that are JSON: their text, whole, and what is read from it.
 *
 * JSON tells nothing before its end, so the text is kept, up to a bound, and
 * parsed when it is all there; documents may follow each other (JSON lines).
 * A document that is cut or broken is read up to the last value that is whole:
 * what is open there is closed (I2), and that is counted as input_truncated or
 * input_corrupt.  Bytes that are not UTF-8 are replaced by '?', counted too.
 *
 * Memory: the text up to twice in the arena, and up to about 130 bytes a
 * value while a document is read, of TW_JSON_MAX_VALUES.
 */
#ifndef TW_JSON_TEXT_H
#define TW_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"

enum { TW_JSON_MAX_BYTES = 64 << 20, TW_JSON_MAX_VALUES = 8 << 20 };

struct tw_json_scan;

struct tw_json_text {
	struct tw_arena *arena;
	struct tw_sink *sink;
	const char *what; /* "Sentry profile": for the words of refusals */
	size_t max_bytes;
	char *data;
	size_t len, cap;
	size_t at;  /* of the next document */
	bool clean; /* UTF-8 */
	struct tw_json_scan *scan;
};

/* max_bytes 0: TW_JSON_MAX_BYTES. */
void tw_json_text_init(struct tw_json_text *t, struct tw_arena *a, struct tw_sink *sink,
        const char *what, size_t max_bytes);
/* TW_TOO_LARGE past the bound, TW_NOMEM. */
enum tw_status tw_json_text_push(
        struct tw_json_text *t, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
typedef enum tw_status (*tw_json_fn)(void *arg, json_t *root, struct tw_err *err);

/* Calls `each` with one document after another; they are freed behind it.  `cut`: the input is
 * known to end early, which was counted already.  TW_CORRUPT when the first has not one whole
 * value; a later one like that is counted. */
enum tw_status tw_json_text_each(struct tw_json_text *t, bool cut, tw_json_fn each, void *arg,
        struct tw_err *err) TW_MUST_USE;

/* Is there an object key of this name, at this depth (1: of the outermost object or of the
 * objects in an outermost array's first level counted as 2), in the first bytes of a text? */
bool tw_json_head_has(const uint8_t *head, size_t len, unsigned depth, const char *key);
/* Does the first byte that is no blank (nor byte order mark) open an object or an array? */
bool tw_json_head(const uint8_t *head, size_t len);

/* Numbers come as numbers or as strings; a real is cut to its whole part.  False: neither, or out
 * of range. */
bool tw_json_i64(const json_t *v, int64_t *ret);
/* The member as text, "" when it is none.  Borrowed from o. */
struct tw_str tw_json_word(const json_t *o, const char *key);

#endif
