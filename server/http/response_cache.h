/*
 * response_cache.h - the response cache, for responses that were slow to compute.
 *
 * A key contains everything that determines the response: project and trace, decoder, names, query,
 * compression.  The least recently used entry is evicted first.
 * Thread: any.
 */
#ifndef TW_RESPONSE_CACHE_H
#define TW_RESPONSE_CACHE_H

#include <stdbool.h>

#include "decoder/base/buf.h"

struct tw_response_cache;

/* max_bytes 0: no cache.  NULL: out of memory. */
struct tw_response_cache *tw_response_cache_new(uint64_t max_bytes);
/* accepts NULL; returns NULL */
struct tw_response_cache *tw_response_cache_free(struct tw_response_cache *a);

/* Appends a copy; false, with nothing appended: no such entry, or out of memory. */
bool tw_response_cache_get(struct tw_response_cache *a, const char *key, struct tw_buf *out);

/* Stores a copy, unless it is too large a part of the cache. */
void tw_response_cache_put(struct tw_response_cache *a, const char *key, struct tw_str bytes);

void tw_response_cache_metrics(struct tw_response_cache *a, struct tw_buf *out);

#endif
