/*
 * spans.h - asynchronous spans: begun and ended by key, on any thread.
 *
 * A key is process, track ("" if the span has none), name and cookie.  Spans without a track do not
 * nest: a begin whose key is already open is ignored, and the first end closes the span, as in
 * Perfetto.  On a track the innermost span ends first; by_name restricts that to spans of the key's
 * name.
 * Memory: at most TW_SPANS_MAX open at a time; names are deduplicated.
 */
#ifndef TW_SPANS_H
#define TW_SPANS_H

#include <stdbool.h>

#include "decoder/base/arena.h"

enum { TW_SPANS_MAX = 1 << 16, TW_SPAN_NAMES_MAX_BYTES = 16 << 20 };

struct tw_span_key {
	uint32_t pid;
	struct tw_str track, name;
	int64_t cookie;
	bool by_name; /* spans of a track are distinguished by name; always true without a track */
};

struct tw_span {
	struct tw_span_key key; /* strings are copies */
	int64_t start_ns;
	uint64_t offset;
	uint32_t sink_track;
	uint32_t next; /* in its chain or the free list; 0 ends it */
	bool open;
};

struct tw_spans {
	struct tw_arena *arena;
	struct tw_span *list; /* NULL until the first is begun */
	uint32_t *chains;
	uint32_t used, free_list;
	struct tw_str *names;
	uint32_t n_names;
	size_t name_bytes;
	uint64_t salt; /* of hashes */
};

enum tw_span_outcome { TW_SPAN_OK, TW_SPAN_FULL, TW_SPAN_NO_MEMORY };

/* `at` supplies start_ns, offset and sink_track. */
enum tw_span_outcome tw_spans_begin(
        struct tw_spans *s, const struct tw_span_key *key, const struct tw_span *at);
/* The span that ends, valid until the next begin; NULL if none is open. */
const struct tw_span *tw_spans_end(struct tw_spans *s, const struct tw_span_key *key);
/* An open span at or after index *at, which is advanced past it; NULL if there are no more. */
const struct tw_span *tw_spans_next_open(const struct tw_spans *s, uint32_t *at);

#endif
