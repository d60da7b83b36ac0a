/*
 * backup_time.h - time of the last backup: the modification time of a file in the data folder,
 * which `tracewell backup` touches when a copy is complete.  Thread: any.
 */
#ifndef TW_BACKUP_TIME_H
#define TW_BACKUP_TIME_H

#include <stdint.h>

#include "decoder/base/err.h"

/* Records a backup at the current time of the file system's clock. */
enum tw_status tw_backup_record_time(const char *data_dir, struct tw_err *err) TW_MUST_USE;
/* Unix ms of the last backup; 0: never. */
int64_t tw_backup_time_ms(const char *data_dir);

#endif
