/*
 * disk.h - how full the file system of a folder is.
 *
 * As df counts: what is reserved for root is neither used nor available.  Thread: any.
 */
#ifndef TW_DISK_H
#define TW_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct tw_disk {
	uint64_t size_bytes, used_bytes;
};

/* False, and all 0, if it cannot be read. */
bool tw_disk_of(const char *folder, struct tw_disk *ret);
/* Bytes in use beyond so many percent of its size. */
uint64_t tw_disk_over(const struct tw_disk *d, unsigned percent);

#endif
