/*
 * backup_s3.h - copies a data folder to an S3-compatible store.
 *
 * Names are the same as in the folder, so that a download of the store is a data folder again.  The
 * catalogue is uploaded last and replaces the previous one.  Existing contents are not sent again;
 * unreferenced ones remain until the store's own rules delete them.  Decoded files are omitted if
 * the upload exists: a server decodes them again. Thread: the caller's.
 */
#ifndef TW_BACKUP_S3_H
#define TW_BACKUP_S3_H

#include "server/ops/backup.h"
#include "server/storage/s3/s3.h"

/* `to` and `decoded` of `backup` are ignored. */
enum tw_status tw_backup_s3_run(const struct tw_backup *backup, struct tw_s3 *to,
        struct tw_backup_sums *ret, struct tw_err *err) TW_MUST_USE;

#endif
