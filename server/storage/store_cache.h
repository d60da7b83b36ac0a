/*
 * store_cache.h - a local cache of files in an object store.
 *
 * Limited in bytes and files; the least recently used file is removed first.  An open file stays
 * readable, as only its name is removed.  Concurrent requests for a file share one fetch.  A file
 * gets its name once it is complete and synced, so a crash leaves no truncated file, and the cache
 * survives restarts.  Names are chosen by the caller: plain, without a path.
 * Thread: any.
 */
#ifndef TW_STORE_CACHE_H
#define TW_STORE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_CACHE_NAME = 96, TW_CACHE_FILES = 1 << 17 };

struct tw_cache;

struct tw_cache_stats {
	uint64_t hits, misses, shared /* requests that waited for another's fetch */, evicted;
	uint64_t bytes, files;
};

/* Files are not cached while less than min_free_percent of the disk is free. */
enum tw_status tw_cache_open(const char *dir, uint64_t max_bytes, unsigned min_free_percent,
        struct tw_cache **ret, struct tw_err *err) TW_MUST_USE;
struct tw_cache *tw_cache_close(struct tw_cache *c); /* accepts NULL; returns NULL */

struct tw_cache_request {
	const char *name, *key; /* name: in the folder; key: for fill, also shorter than
	                         * TW_CACHE_NAME */
	/* Fetches into an empty file, in another thread.  arg must outlive the cache. */
	enum tw_status (*fill)(void *arg, const char *key, int fd, struct tw_err *err);
	void *arg;
	int64_t until_ms; /* monotonic; 0: no limit */
};
/* A separate descriptor at offset 0.  A missing file is fetched with `fill`; its failure is
 * returned to all who waited.  TW_BUSY if the time ends first: the fetch continues. */
enum tw_status tw_cache_get(struct tw_cache *c, const struct tw_cache_request *request, int *ret_fd,
        struct tw_err *err) TW_MUST_USE;
/* Evicts files until enough of the disk is free; false: all are evicted and it is not enough. */
bool tw_cache_yield(struct tw_cache *c);
/* Replaces the file `name` with the one at `path`, on the same disk and synced.  `path` is removed
 * in any case. */
void tw_cache_take(struct tw_cache *c, const char *name, const char *path);
/* Removes a file; one that is being fetched under that name is not kept either.  False: there was
 * none. */
bool tw_cache_drop(struct tw_cache *c, const char *name);
void tw_cache_stats(struct tw_cache *c, struct tw_cache_stats *ret);

#endif
