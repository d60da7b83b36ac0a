/*
 * reserve.h - disk space that is set aside for deletes, retention and restarts on a full disk.
 *
 * SQLite needs space to delete rows.  So the server allocates DATA/reserve at its start.  When a
 * write of the catalogue fails with ENOSPC, the file is shortened by one step and the write is
 * repeated.  While the file is shorter than it should be, uploads are refused and nothing is
 * decoded, so that the space remains available to operations that free space.  tw_reserve_fill
 * allocates it again.
 *
 * The file's size is the whole state: commands that run at the same time, and servers that share
 * a data folder, need no other coordination.  Thread: any.
 */
#ifndef TW_RESERVE_H
#define TW_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_RESERVE_STEPS = 8, TW_RESERVE_LEAST = 4096 };

/* The size to reserve in this folder: `bytes`, at most a twentieth of its disk, at least
 * TW_RESERVE_LEAST. */
uint64_t tw_reserve_size(const char *dir, uint64_t bytes);
/* Extends the file to `size` bytes, and allocates the blocks that it lacks.  TW_FULL unless the
 * disk has space for the missing bytes and for `size` more. */
enum tw_status tw_reserve_fill(const char *dir, uint64_t size, struct tw_err *err);
/* False: the file was deleted. */
bool tw_reserve_is_there(const char *dir);
/* Gives up one step if the disk has less than that free: for the start of a server. */
void tw_reserve_ease(const char *dir);
/* Gives up one step of the folder that contains the file `path`: bytes, 0 if none are left. */
uint64_t tw_reserve_give(const char *path);
/* The same, and allocates the bytes to the file from `at` on before another program takes them.
 * The file must have no POSIX locks of this process. */
bool tw_reserve_give_to(const char *path, uint64_t at);
/* Gives up steps until `bytes` are free or no step is left. */
void tw_reserve_ensure(const char *path, uint64_t bytes);
/* TW_FULL while the file is shorter than `size`, or the disk has less than a step of it free; 0:
 * always TW_OK. */
enum tw_status tw_reserve_check(const char *dir, uint64_t size, struct tw_err *err);
/* Writes one block of the file and syncs it, to find out whether the folder can be written; needs
 * no space.  TW_OK if the file was deleted. */
enum tw_status tw_reserve_probe(const char *dir, struct tw_err *err);

#endif
