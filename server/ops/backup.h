/*
 * backup.h - a copy of a data folder that is a data folder itself.
 *
 * The catalogue is copied as it stood at one moment; then every file that this
 * copy names, and last the copy takes its place.  Cut short anywhere, the backup
 * before is still whole.  Files are named by their content, so a later backup to
 * the same folder copies what is new and drops what is not named any more.
 * A copy whose projects are all unknown here is left alone: it is another server's,
 * or this one's from before its folder was lost, and may be the only one.
 * Works beside a running server and under load.
 * Thread: the caller's.
 */
#ifndef TW_BACKUP_H
#define TW_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/catalogue/catalogue.h"
#include "server/storage/blob.h"

struct tw_backup_sums {
	uint64_t uploads;       /* files that the backup names */
	uint64_t copied, bytes; /* files that were not there yet */
	uint64_t dropped;       /* files of earlier backups */
	uint64_t left_out;
};

struct tw_backup {
	struct tw_catalogue *catalogue;
	struct tw_blobs *from, *to;
	bool replace; /* also what is another server's copy; else that is TW_CONFLICT */
	bool decoded; /* decoded files too; without, a server on the backup decodes them again */
	/* Told of an upload or mapping (its trace or build) that cannot be copied because it is
	 * damaged or gone; the trace is in the backup all the same when its decoded file is. */
	void (*left_out)(void *arg, const char *id, const char *why);
	/* Told after each upload how far it is; NULL: nobody. */
	void (*step)(void *arg, const struct tw_backup_sums *so_far);
	void *arg;
};

enum tw_status tw_backup_run(
        const struct tw_backup *backup, struct tw_backup_sums *ret, struct tw_err *err) TW_MUST_USE;

#endif
