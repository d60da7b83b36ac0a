/*
 * json_stream.h - reads JSON of any size as it arrives, one value after another.
 *
 * A format gives each container that it reads a tag; the contents of all others are
 * skipped.  Memory is that of the longest text, which is limited; longer texts are truncated.
 * A damaged text ends at the damage, counted as input_corrupt, a truncated one as input_truncated;
 * open containers are then closed, so that a format always sees their ends.
 */
#ifndef TW_JSON_STREAM_H
#define TW_JSON_STREAM_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"

enum { TW_JSON_DEPTH = 64, TW_JSON_KEY_BYTES = 48, TW_JSON_TEXT_BYTES = 16 << 10 };

enum tw_json_kind {
	TW_JSON_OBJECT, /* begins */
	TW_JSON_ARRAY,  /* begins */
	TW_JSON_END,    /* of a container */
	TW_JSON_STRING,
	TW_JSON_NUMBER,
	TW_JSON_OTHER /* true, false, null */
};

struct tw_json_value {
	enum tw_json_kind kind;
	unsigned in;        /* tag of its container; 0 for the outermost value.  END: its own */
	struct tw_str key;  /* in an object: its name, "" if that is longer than the limit */
	uint64_t index;     /* in an array */
	struct tw_str text; /* STRING unescaped, NUMBER, OTHER; valid during the call */
	uint64_t offset;
	unsigned tag; /* OBJECT, ARRAY: set it to read the contents */
};

typedef enum tw_status (*tw_json_value_fn)(
        void *arg, struct tw_json_value *value, struct tw_err *err);

enum tw_json_part {
	TW_JSON_AT_VALUE,
	TW_JSON_AT_FIRST, /* of an array: a value or its end */
	TW_JSON_AT_NAME,  /* of an object's first member, or its end */
	TW_JSON_AT_NEXT_NAME,
	TW_JSON_AT_COLON,
	TW_JSON_AFTER, /* a value: a comma or the container's end */
	TW_JSON_IN_TEXT,
	TW_JSON_IN_NAME,
	TW_JSON_IN_NUMBER,
	TW_JSON_IN_WORD,
	TW_JSON_COMPLETE,
	TW_JSON_DAMAGED
};

struct tw_json_stream {
	struct tw_sink *sink;
	tw_json_value_fn each;
	void *arg;
	uint64_t offset, start; /* of the next byte; of the value */
	enum tw_json_part part;
	uint32_t depth;
	struct tw_json_open {
		uint64_t index;
		unsigned tag;
		bool object;
	} open[TW_JSON_DEPTH];
	char key[TW_JSON_KEY_BYTES];
	size_t n_key;
	bool escaped, long_key, trailing;
	unsigned n_code;     /* hexadecimal digits still missing of a \u escape */
	uint32_t code, high; /* of it; the first half of a surrogate pair */
	char *text;          /* of TW_JSON_TEXT_BYTES */
	size_t n_text;
};

/* False: out of memory. */
bool tw_json_stream_init(struct tw_json_stream *s, struct tw_arena *a, struct tw_sink *sink,
        tw_json_value_fn each, void *arg);
enum tw_status tw_json_stream_push(
        struct tw_json_stream *s, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* The text ended; `cut`: it is known to be truncated, which was already counted. */
enum tw_status tw_json_stream_finish(
        struct tw_json_stream *s, bool cut, struct tw_err *err) TW_MUST_USE;

/* The containers that a format reads, by their path. */
struct tw_json_container {
	unsigned in, tag;
	const char *key; /* NULL: an element of an array, or the outermost value */
	enum tw_json_kind kind;
};
/* The tag of a container; 0: it is not among them. */
unsigned tw_json_tag(
        const struct tw_json_container *containers, size_t n, const struct tw_json_value *v);

/* A NUMBER; false: another kind of value, or not finite. */
bool tw_json_real(const struct tw_json_value *v, double *ret);

#endif
