/*
 * disk.h - how full the file system of a folder is.
 *
 * As df counts: what is reserved for root is neither used nor available, so used and free share add
 * up to the size, and --min-free and --max-disk-use mean the same disk.  Thread: any.
 */
#ifndef TW_DISK_H
#define TW_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct tw_disk {
	uint64_t size_bytes, used_bytes, free_bytes;
	uint64_t total_bytes; /* with what is reserved for root: does not depend on use */
};

/* False, with errno, and all 0, if it cannot be read. */
bool tw_disk_of(const char *folder, struct tw_disk *ret);
/* 0 to 100; 0 also for a disk without a size. */
double tw_disk_free_percent(const struct tw_disk *d);
/* Bytes in use beyond so many percent of its size. */
uint64_t tw_disk_over(const struct tw_disk *d, unsigned percent);

#endif
