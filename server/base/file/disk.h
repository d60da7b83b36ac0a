/*
 * disk.h - how full the file system of a folder is.
 *
 * Counts as df does: blocks reserved for root are neither used nor available, so that the used and
 * free shares add up to 100 %, and --min-free and --max-disk-use refer to the same size. Thread:
 * any.
 */
#ifndef TW_DISK_H
#define TW_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct tw_disk {
	uint64_t size_bytes, used_bytes, free_bytes;
	uint64_t total_bytes; /* without the blocks reserved for root */
};

/* False, with errno and all fields 0, if it cannot be read. */
bool tw_disk_of(const char *folder, struct tw_disk *ret);
/* 0 to 100; 0 also for a disk without a size. */
double tw_disk_free_percent(const struct tw_disk *d);
/* Bytes in use above this share of its size. */
uint64_t tw_disk_over(const struct tw_disk *d, unsigned percent);

#endif
