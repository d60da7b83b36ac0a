/*
 * backup_s3.h - a copy of a data folder in an S3-compatible store.
 *
 * The same names as in the folder, so that what is fetched from there is a data
 * folder again.  The catalogue is put last and takes the place of the one
 * before.  Contents that are there already are not sent again; those that no
 * catalogue names any more stay until the store's own rules delete them.  Decoded
 * files are left out where the upload is there: a server decodes them again.
 * Thread: the caller's.
 */
#ifndef TW_BACKUP_S3_H
#define TW_BACKUP_S3_H

#include "server/ops/backup.h"
#include "server/storage/s3/s3.h"

/* Of `backup`, `to` and `decoded` are not looked at. */
enum tw_status tw_backup_s3_run(const struct tw_backup *backup, struct tw_s3 *to,
        struct tw_backup_sums *ret, struct tw_err *err) TW_MUST_USE;

#endif
