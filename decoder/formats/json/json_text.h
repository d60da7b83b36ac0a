/*
 * json_text.h - buffers and parses the text of JSON formats.
 *
 * JSON cannot be interpreted before its end, so the text is buffered up to a limit and parsed when
 * complete; several documents may follow each other (JSON lines).  A truncated or damaged document
 * is read up to its last complete value and its open brackets are closed (I2); that is counted as
 * input_truncated or input_corrupt.  Bytes that are not UTF-8 are replaced by '?' and counted.
 *
 * Memory: the text up to twice in the arena, and about 130 bytes per value while a document is
 * read, for at most TW_JSON_MAX_VALUES.
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
	const char *what; /* "Sentry profile": for error messages */
	char *data;
	size_t len;
	uint32_t cap;
	size_t at;  /* of the next document */
	bool clean; /* UTF-8 */
	struct tw_json_scan *scan;
};

void tw_json_text_init(
        struct tw_json_text *t, struct tw_arena *a, struct tw_sink *sink, const char *what);
/* TW_TOO_LARGE past TW_JSON_MAX_BYTES, TW_NOMEM. */
enum tw_status tw_json_text_push(
        struct tw_json_text *t, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
typedef enum tw_status (*tw_json_fn)(void *arg, json_t *root, struct tw_err *err);

/* Calls `each` with one document after another and frees each after the call.  `cut`: the input is
 * known to be truncated, which was already counted.  TW_CORRUPT if the first document has no
 * complete value; a later one like that is counted. */
enum tw_status tw_json_text_each(struct tw_json_text *t, bool cut, tw_json_fn each, void *arg,
        struct tw_err *err) TW_MUST_USE;

/* Is there an object key of this name, at this depth (1: of the outermost object or of the
 * objects in an outermost array's first level counted as 2), in the first bytes of a text? */
bool tw_json_head_has(const uint8_t *head, size_t len, unsigned depth, const char *key);
/* Whether the first byte after blanks and a byte order mark opens an object or an array. */
bool tw_json_head(const uint8_t *head, size_t len);

/* Accepts numbers and numbers in strings; truncates reals.  False: not a number, or out of
 * range. */
bool tw_json_i64(const json_t *v, int64_t *ret);
/* The member as text; "" if it is not a string.  Borrowed from o. */
struct tw_str tw_json_text_of(const json_t *o, const char *key);

#endif
