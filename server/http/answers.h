/*
 * answers.h - the response cache, for responses that were slow to compute.
 *
 * A key contains everything that determines the response: project and trace, decoder, names, query,
 * compression.  The least recently used entry is evicted first.
 * Thread: any.
 */
#ifndef TW_ANSWERS_H
#define TW_ANSWERS_H

#include <stdbool.h>

#include "decoder/base/buf.h"

struct tw_answers;

/* max_bytes 0: no cache.  NULL: out of memory. */
struct tw_answers *tw_answers_new(uint64_t max_bytes);
struct tw_answers *tw_answers_free(struct tw_answers *a); /* accepts NULL; returns NULL */

/* Appends a copy; false, with nothing appended: no such entry, or out of memory. */
bool tw_answers_take(struct tw_answers *a, const char *key, struct tw_buf *out);

/* Stores a copy, unless it is too large a part of the cache. */
void tw_answers_keep(struct tw_answers *a, const char *key, struct tw_str bytes);

void tw_answers_metrics(struct tw_answers *a, struct tw_buf *out);

#endif
