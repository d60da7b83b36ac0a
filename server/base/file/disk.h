/*
 * disk.h - how full a disk is, and space reserved on it for deletes, retention and restarts when
 * it is full.
 *
 * Sizes count as df does: blocks reserved for root are neither used nor available, so that the used
 * and free shares add up to 100 %, and --min-free and --max-disk-use refer to the same size.
 *
 * SQLite needs space to delete rows.  So the server allocates DATA/reserve at its start.  When a
 * write of the catalogue fails with ENOSPC, the file is shortened by one step and the write is
 * repeated.  While the file is shorter than it should be, uploads are refused and nothing is
 * decoded, so that the space remains available to operations that free space.  tw_reserve_fill
 * allocates it again.
 *
 * The file's size is the only state: concurrent commands, and servers that share a data folder,
 * need no other coordination.
 * Thread: any.
 */
#ifndef TW_DISK_H
#define TW_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

struct tw_disk {
	uint64_t size_bytes, used_bytes, free_bytes;
	uint64_t total_bytes; /* without the blocks reserved for root */
};

/* False, with errno and all fields 0, if it cannot be read. */
bool tw_disk_of(const char *folder, struct tw_disk *ret);
/* 0 to 100; 0 also for a disk without a size. */
double tw_disk_free_percent(const struct tw_disk *d);
/* Bytes in use above this share of its size. */
uint64_t tw_disk_bytes_above(const struct tw_disk *d, unsigned percent);

enum { TW_RESERVE_STEPS = 8, TW_RESERVE_MIN = 4096 };

/* The size to reserve in this folder: `bytes`, at most a twentieth of its disk, at least
 * TW_RESERVE_MIN. */
uint64_t tw_reserve_size(const char *dir, uint64_t bytes);
/* Extends the file to `size` bytes, and allocates the blocks that it lacks.  TW_FULL unless the
 * disk has space for the missing bytes and for `size` more. */
enum tw_status tw_reserve_fill(const char *dir, uint64_t size, struct tw_err *err);
/* False: the file was deleted. */
bool tw_reserve_exists(const char *dir);
/* At the start of a server: releases one step if the disk has less than that free. */
void tw_reserve_release_if_low(const char *dir);
/* Releases one step in the folder that contains the file `path`: bytes, 0 if none are left. */
uint64_t tw_reserve_release(const char *path);
/* The same, and allocates the bytes to the file from `at` on before another program takes them.
 * This process must hold no POSIX locks on the file. */
bool tw_reserve_release_to(const char *path, uint64_t at);
/* Releases steps until `bytes` are free or no step is left. */
void tw_reserve_ensure(const char *path, uint64_t bytes);
/* TW_FULL while the file is shorter than `size`, or the disk has less than a step of it free; 0:
 * always TW_OK. */
enum tw_status tw_reserve_check(const char *dir, uint64_t size, struct tw_err *err);
/* Writes one block of the file and syncs it, to test whether the folder is writable; needs no
 * space.  TW_OK if the file was deleted. */
enum tw_status tw_reserve_probe(const char *dir, struct tw_err *err);

#endif
