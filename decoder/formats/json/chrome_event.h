/*
 * chrome_event.h - events of Chrome's JSON traces, as publicly documented.
 *
 *   B E X         calls of a thread, with its CPU clock (tts, tdur) if present
 *   i I R         instants
 *   C             counters, one per member of args
 *   b e, S F      spans by id; n T p are instants of theirs
 *   s t f         flows, and bind_id with flow_out and flow_in
 *   M             names of processes and threads
 *   P             a sample's name
 *   N O D v V c   objects, memory dumps, clock sync markers: ignored
 *
 * Times are microseconds of a clock that "metadata" may name.  B and E are paired in time order,
 * which can differ from file order: a window of TW_CHROME_WINDOW of them is sorted, and emitted
 * from the earliest on once it is full.  A kernel trace may accompany them, in one page or as
 * "systemTraceEvents"; both then share one zero.
 */
#ifndef TW_CHROME_EVENT_H
#define TW_CHROME_EVENT_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/str.h"
#include "decoder/formats/ftrace/ftrace.h"
#include "decoder/formats/json/chrome_text.h"
#include "decoder/formats/markers/flows.h"

enum { TW_CHROME_WINDOW = 1 << 18 };

/* --- fields --- */

/* The members of an event that its kinds use.  An event of the usual shape is read in one pass over
 * its text, without a tree of values.  One with an escape, an exponent, a number of more digits
 * than a double holds, deep nesting or an error is not plain: it is parsed into a tree, and the
 * same members are taken from there. */
enum tw_chrome_field { /* by the length of their names */
	TW_CHROME_S,
	TW_CHROME_PH,
	TW_CHROME_TS,
	TW_CHROME_ID,
	TW_CHROME_CAT,
	TW_CHROME_DUR,
	TW_CHROME_TTS,
	TW_CHROME_PID,
	TW_CHROME_TID,
	TW_CHROME_NAME,
	TW_CHROME_TDUR,
	TW_CHROME_BIND_ID,
	TW_CHROME_FLOW_IN,
	TW_CHROME_FLOW_OUT,
	TW_CHROME_FIELDS
};

struct tw_chrome_value {
	enum tw_chrome_kind {
		TW_CHROME_ABSENT,
		TW_CHROME_INTEGER,
		TW_CHROME_REAL,
		TW_CHROME_TEXT,
		TW_CHROME_TRUE,
		TW_CHROME_OTHER
	} kind;
	uint32_t len; /* TEXT */
	union {
		int64_t integer;
		double real;
		const char *text; /* borrowed */
	};
};

struct tw_chrome_fields {
	struct tw_chrome_value of[TW_CHROME_FIELDS];
};

/* Caches the keys of earlier events by position: most events of a file have the same members in the
 * same order. */
enum { TW_CHROME_CACHED_KEYS = 16, TW_CHROME_KEY_BYTES = 16 };

struct tw_chrome_key_cache {
	struct tw_chrome_key { /* from its quote to its value, ASCII */
		uint64_t low, high, low_mask, high_mask;
		uint8_t len; /* 0: none */
		uint8_t field;
	} keys[TW_CHROME_CACHED_KEYS];
};

/* --- events --- */

struct tw_chrome_edge;

struct tw_chrome {
	struct tw_ftrace *trace; /* supplies markers, zero and clock */
	struct tw_chrome_text text;
	struct tw_chrome_key_cache key_cache;
	struct tw_lines kernel; /* of systemTraceEvents */
	struct tw_flows flows;
	struct tw_chrome_edge *edges; /* B and E not emitted yet */
	uint32_t n_edges, cap_edges;
	uint32_t seq;     /* of the next */
	bool unsorted;    /* the edges are not in order of time */
	int64_t first_ns; /* of these events */
	uint32_t pid;     /* of the only process with calls so far; 0 none yet */
	bool many_pids, monotonic, own_zero;
	uint64_t events; /* of known kinds */
};

/* False: out of memory. */
bool tw_chrome_init(struct tw_chrome *c, struct tw_arena *a, struct tw_ftrace *trace);
/* Emits the remaining calls and the clock.  Call it after the end of the JSON (which is pushed to
 * c->text, chrome_text.h) and before tw_ftrace_finish. */
enum tw_status tw_chrome_finish(struct tw_chrome *c, struct tw_err *err) TW_MUST_USE;
/* Whether these first bytes, from the opening bracket on, are such a trace: 0 no ... 100
 * certain. */
int tw_chrome_probe(const uint8_t *head, size_t len);

/* Parses the object at the start of a text.  Returns the object's length, or 0 if it is not plain,
 * not UTF-8 or incomplete.  The cache affects only speed. */
size_t tw_chrome_fields_read(
        struct tw_str text, struct tw_chrome_key_cache *cache, struct tw_chrome_fields *ret);
void tw_chrome_fields_of(const json_t *root, struct tw_chrome_fields *ret);
struct tw_chrome_value tw_chrome_value_of(const json_t *v);

/* Numbers and numbers in texts; truncates reals.  False: not a number, or out of range. */
bool tw_chrome_i64(const struct tw_chrome_value *v, int64_t *ret);

/* "" if it is not a text. */
static inline struct tw_str tw_chrome_text_of(const struct tw_chrome_value *v)
{
	return v->kind == TW_CHROME_TEXT ? (struct tw_str){v->text, v->len} : TW_STR("");
}

#endif
