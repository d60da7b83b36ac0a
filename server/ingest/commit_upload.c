#include "server/ingest/commit_upload.h"

#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/ingest/backlog.h"
#include "server/storage/blob.h"

/* Files up to this size are synced while the catalogue commits; it does not wait for larger ones,
 * because the next commit would wait too. */
enum { DURING_COMMIT_BYTES = 1 << 20, PARTS_MAX = 16 };

struct storing {
	const struct tw_commit_parts *to;
	struct tw_upload *up;
	char *contents; /* of its parts, which are stored with the rows; NULL: in files */
};

static enum tw_status wait_for_files(void *arg, struct tw_err *err)
{
	const struct tw_upload *up = ((const struct storing *)arg)->up;
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < up->n_parts && st == TW_OK; i++)
		st = tw_blob_wait(up->parts[i].writer, err);
	return st;
}

/* Called with the file's name in the transaction. If the file is missing, the client repeats the
 * upload, which stores it again. */
static enum tw_status is_present(void *arg, const char *sha256, struct tw_err *err)
{
	const struct storing *p = arg;
	uint64_t bytes;
	enum tw_status st = tw_blob_stat(p->to->blobs, sha256, &bytes, err);

	if (st != TW_NOT_FOUND)
		return st;
	return tw_fail(
	        err, TW_BUSY, "another server has just deleted the same content: send it again");
}

/* hex NULL: its file is stored; otherwise its content becomes part of the row. */
static enum tw_status store_part(
        const struct tw_upload_part *one, char *hex, struct tw_part *ret, struct tw_err *err)
{
	const uint64_t bytes = tw_blob_bytes(one->writer);
	enum tw_status st = hex ? tw_blob_take_content(one->writer, hex, 2 * bytes + 1, err)
	                        : tw_blob_store(one->writer, err);

	*ret = (struct tw_part){.part = one->name,
	        .sha256 = tw_blob_sha256(one->writer),
	        .format = one->format,
	        .bytes = bytes,
	        .hex = hex};
	return st;
}

static enum tw_status store_parts(struct storing *p, struct tw_part *rows, struct tw_err *err)
{
	const struct tw_upload *up = p->up;
	uint64_t bytes = 0;
	char *at;
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < up->n_parts; i++)
		bytes += tw_blob_bytes(up->parts[i].writer);
	if (bytes <= tw_blobs_row_bytes(p->to->blobs)) {
		p->contents = tw_mem_alloc(2 * bytes + up->n_parts, 1);
		if (!p->contents)
			return tw_oom(err);
	}
	at = p->contents;
	for (size_t i = 0; i < up->n_parts && st == TW_OK; i++) {
		st = store_part(&up->parts[i], at, &rows[i], err);
		if (at)
			at += 2 * rows[i].bytes + 1;
	}
	return st == TW_OK && bytes > DURING_COMMIT_BYTES ? wait_for_files(p, err) : st;
}

/* Call between tw_blob_use_begin and tw_blob_use_end. */
static enum tw_status store_and_record(const struct tw_commit_parts *to, struct tw_upload *up,
        char ret_id[TW_ID_BYTES], bool *ret_new, bool *ret_small, struct tw_err *err)
{
	struct storing storing = {to, up, NULL};
	bool shared = tw_catalogue_is_shared(to->catalogue) && !tw_blobs_remote(to->blobs);
	struct tw_part rows[PARTS_MAX];
	const struct tw_arrival arrival = {.caller = up->caller,
	        .key = up->key,
	        .meta = up->meta,
	        .parts = rows,
	        .n_parts = up->n_parts,
	        .durable = wait_for_files,
	        .present = shared ? is_present : NULL,
	        .arg = &storing};
	enum tw_status st = store_parts(&storing, rows, err);

	if (st == TW_OK)
		st = tw_catalogue_trace_add(to->catalogue, &arrival, ret_id, ret_new, err);
	*ret_small = storing.contents != NULL;
	tw_mem_free(storing.contents);
	return st;
}

enum tw_status tw_commit_upload(const struct tw_commit_parts *to, const struct tw_upload *up,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct tw_upload mine = *up;
	uint64_t bytes = 0;
	bool small = false;
	enum tw_status st;

	if (up->n_parts > PARTS_MAX)
		return tw_fail(err, TW_BUG, "an upload with too many parts");
	tw_blob_use_begin(to->blobs);
	st = store_and_record(to, &mine, ret_id, ret_new, &small, err);
	tw_blob_use_end(to->blobs);
	if (st != TW_OK)
		return st;
	for (size_t i = 0; i < up->n_parts; i++) {
		bytes += tw_blob_bytes(up->parts[i].writer);
		(void)tw_blob_end(up->parts[i].writer);
	}
	if (*ret_new && to->backlog)
		tw_backlog_added(to->backlog, up->caller->project_id, bytes);
	if (*ret_new) {
		if (!small) /* it has no record (catalogue_record.c) */
			tw_record_new_trace(to->recorder, up->caller->project_id, ret_id);
		if (up->meta->commit && up->meta->commit[0])
			tw_record_new_build(
			        to->recorder, up->caller->project_id, up->meta->build_id);
	}
	if (*ret_new && to->jobs)
		tw_jobs_wake(to->jobs);
	return TW_OK;
}
