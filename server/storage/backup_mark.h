/*
 * backup_mark.h - when a data folder was copied last: the time of a file in it, which `tracewell
 * backup` touches when a copy is whole.  Thread: any.
 */
#ifndef TW_BACKUP_MARK_H
#define TW_BACKUP_MARK_H

#include <stdint.h>

#include "decoder/base/err.h"

/* Copied now, by the clock of the file system. */
enum tw_status tw_backup_mark(const char *data_dir, struct tw_err *err) TW_MUST_USE;
/* Unix ms of it; 0: it never was. */
int64_t tw_backup_marked_ms(const char *data_dir);

#endif
