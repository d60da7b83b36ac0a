/*
 * store_cache.h - files that are kept elsewhere, once more in a folder of this machine.
 *
 * Bounded in bytes and files, the one unused for longest goes first; one that is open stays
 * readable, because its name alone goes.  What several ask for at once is fetched once.  A file has
 * its name when it is whole and on disk, so a crash leaves none that is cut; what was there before
 * a restart is there after it.  The names are the caller's: plain, and no path. Thread: any.
 */
#ifndef TW_STORE_CACHE_H
#define TW_STORE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_CACHE_NAME = 96, TW_CACHE_FILES = 1 << 17 };

struct tw_cache;

struct tw_cache_stats {
	uint64_t hits, misses, shared /* fetches that were waited for */, evicted;
	uint64_t bytes, files;
};

/* Files are left out when less than min_free_percent of the disk is free. */
enum tw_status tw_cache_open(const char *dir, uint64_t max_bytes, unsigned min_free_percent,
        struct tw_cache **ret, struct tw_err *err) TW_MUST_USE;
struct tw_cache *tw_cache_close(struct tw_cache *c); /* NULL is fine; returns NULL */

struct tw_cache_ask {
	const char *name, *key; /* in the folder; for fill, below TW_CACHE_NAME too */
	/* Into an empty file, on another thread. arg lives as long as the cache. */
	enum tw_status (*fill)(void *arg, const char *key, int fd, struct tw_err *err);
	void *arg;
	int64_t until_ms; /* monotonic; 0: as long as it takes */
};
/* A descriptor of its own, at 0.  What is not there is made by `fill`; its failure is that of all
 * who waited for it.  TW_BUSY when the time is over before: it is fetched all the same. */
enum tw_status tw_cache_get(struct tw_cache *c, const struct tw_cache_ask *ask, int *ret_fd,
        struct tw_err *err) TW_MUST_USE;
/* Files go until as much of the disk is free as should be; false: all are gone, and it is not. */
bool tw_cache_yield(struct tw_cache *c);
/* Takes the file at `path`, which is on the same disk and synced, in place of one of that name. The
 * path is gone then in any case. */
void tw_cache_take(struct tw_cache *c, const char *name, const char *path);
/* What is being fetched under that name is not kept either.  False: there was none. */
bool tw_cache_drop(struct tw_cache *c, const char *name);
void tw_cache_stats(struct tw_cache *c, struct tw_cache_stats *ret);

#endif
