/*
 * jobs_system.c - the device's system trace, if it was in the archive of a recording.
 *
 * The decoder's child writes it to a separate file while it reads the archive. After the child has
 * succeeded it is stored as part `system` of the trace, as if it had been uploaded in a form, but
 * is not passed to decoders again.
 */
#include <stdio.h>
#include <unistd.h>

#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/shared_files.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/jobs_store.h"
#include "server/storage/blob.h"

enum { PATH_BYTES = 1500 };

enum tw_status tw_jobs_open_system(
        const struct tw_decode_parts *parts, const char *trace_id, int *ret, struct tw_err *err)
{
	char name[64];
	char path[PATH_BYTES];
	enum tw_status st;

	(void)snprintf(name, sizeof name, "%s-system", trace_id);
	tw_spool_path(parts->blobs, name, path, sizeof path);
	st = tw_jobs_open_output(path, ret, err);
	if (st == TW_OK)
		(void)unlink(path); /* the file exists as long as it is open */
	return st;
}

/* From its start: the child has moved the shared position. */
static enum tw_status copy_from_start(int fd, struct tw_blob_writer *w, struct tw_err *err)
{
	if (lseek(fd, 0, SEEK_SET) != 0)
		return tw_fail_errno(err, TW_IO, "the decoded file cannot be read");
	return tw_blob_write_fd(w, fd, err);
}

/* Call between tw_blob_use_begin and tw_blob_use_end. */
static enum tw_status store(const struct tw_decode_parts *parts, const struct tw_job_row *job,
        int fd, char sha256[TW_SHA256_HEX], struct tw_err *err)
{
	struct tw_blob_writer *w = NULL;
	struct tw_part part = {.part = "system", .sha256 = sha256, .format = ""};
	struct tw_needed_blobs needed;
	enum tw_status st = tw_blob_begin(parts->blobs, UINT64_MAX, &w, err);

	if (st == TW_OK)
		st = copy_from_start(fd, w, err);
	if (st == TW_OK) {
		part.bytes = tw_blob_bytes(w);
		st = tw_blob_commit(w, sha256, err);
	}
	if (st != TW_OK) {
		tw_blob_discard(w);
		return st;
	}
	needed = (struct tw_needed_blobs){parts->catalogue, parts->blobs, {sha256, NULL}, false};
	tw_need_blobs(&needed);
	st = tw_catalogue_part_found(parts->catalogue, job->project_id, job->trace_id, &part, err);
	return tw_end_need_blobs(&needed, st, err);
}

enum tw_status tw_jobs_store_system(const struct tw_decode_parts *parts,
        const struct tw_job_row *job, int fd, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX] = "";
	enum tw_status st;

	tw_blob_use_begin(parts->blobs);
	st = store(parts, job, fd, sha256, err);
	tw_blob_use_end(parts->blobs);
	if (st == TW_NOT_FOUND) /* the trace was deleted: nothing references the file */
		tw_store_drop_orphan_blob(parts->store_job, sha256);
	return st;
}
