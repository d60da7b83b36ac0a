/*
 * backup.h - copies a data folder to another data folder, or to an S3-compatible store.
 *
 * The catalogue is copied as of one moment, then every file that this copy references; last, the
 * catalogue's copy replaces the previous one.  If interrupted, the previous backup is intact.
 * Files are named by their content, so a later backup to the same folder copies only new ones and
 * deletes unreferenced ones.  A target that may be the only copy of its data is refused: its
 * projects are all unknown here, a server has used it since the last backup, or it has uploads but
 * no catalogue.  A target in use, or whose catalogue is in PostgreSQL, is always refused.  Works
 * with a running server and under load.
 *
 * Objects in a store have the names of files in a folder, so a download of them is a data folder.
 * The previous catalogue is downloaded to verify that it shares a project; TW_BUSY if another
 * backup replaced it during this one.  Unreferenced objects remain until the store's own rules
 * delete them.
 * Thread: the caller's.
 */
#ifndef TW_BACKUP_H
#define TW_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/storage/blob.h"
#include "server/storage/s3/s3.h"

struct tw_catalogue;

struct tw_backup_sums {
	uint64_t uploads;       /* number of files that the backup references */
	uint64_t copied, bytes; /* new files */
	uint64_t dropped;       /* files of earlier backups */
	uint64_t left_out;
};

struct tw_backup {
	struct tw_catalogue *catalogue;
	struct tw_blobs *from;
	struct tw_blobs *to; /* a folder, or */
	struct tw_s3 *s3;    /* a store; NULL: `to` */
	/* Overwrite a refused target unless it is in use or its catalogue is in PostgreSQL. */
	bool replace;
	/* Also copies decoded files.  Otherwise copies only those of traces whose upload has
	 * expired; a server on the backup decodes the others again. */
	bool decoded;
	/* Called for an upload or mapping (its trace or build) that cannot be copied because it is
	 * damaged or gone; the trace is still in the backup if its decoded file is. */
	void (*left_out)(void *arg, const char *id, const char *why);
	/* Called after each upload with the progress; may be NULL. */
	void (*step)(void *arg, const struct tw_backup_sums *so_far);
	void *arg;
};

enum tw_status tw_backup_run(
        const struct tw_backup *backup, struct tw_backup_sums *ret, struct tw_err *err) TW_MUST_USE;

#endif
