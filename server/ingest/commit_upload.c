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
enum { BESIDE_COMMIT_BYTES = 1 << 20, PARTS_MAX = 16 };

struct placing {
	const struct tw_commit_parts *to;
	struct tw_upload *up;
};

static enum tw_status wait_for_files(void *arg, struct tw_err *err)
{
	const struct tw_upload *up = ((const struct placing *)arg)->up;
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < up->n_parts && st == TW_OK; i++)
		st = tw_blob_wait(up->parts[i].writer, err);
	return st;
}

/* Called with the file's name in the transaction. If the file is missing, the client repeats the
 * upload, which stores it again. */
static enum tw_status is_present(void *arg, const char *sha256, struct tw_err *err)
{
	const struct placing *p = arg;
	uint64_t bytes;
	enum tw_status st = tw_blob_stat(p->to->blobs, sha256, &bytes, err);

	if (st != TW_NOT_FOUND)
		return st;
	return tw_fail(err, TW_BUSY,
	        "the same content was deleted at another server just now: send it again");
}

static enum tw_status place(struct placing *p, struct tw_part *rows, struct tw_err *err)
{
	const struct tw_upload *up = p->up;
	uint64_t bytes = 0;
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < up->n_parts && st == TW_OK; i++) {
		const struct tw_upload_part *one = &up->parts[i];

		st = tw_blob_place(one->writer, err);
		rows[i] = (struct tw_part){one->name, tw_blob_sha256(one->writer), one->format,
		        tw_blob_bytes(one->writer)};
		bytes += rows[i].bytes;
	}
	return st == TW_OK && bytes > BESIDE_COMMIT_BYTES ? wait_for_files(p, err) : st;
}

/* Call between tw_blob_use_begin and tw_blob_use_end. */
static enum tw_status store_and_record(const struct tw_commit_parts *to, struct tw_upload *up,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct placing placing = {to, up};
	bool shared = tw_catalogue_is_shared(to->catalogue) && !tw_blobs_remote(to->blobs);
	struct tw_part rows[PARTS_MAX];
	const struct tw_arrival arrival = {.caller = up->caller,
	        .key = up->key,
	        .meta = up->meta,
	        .parts = rows,
	        .n_parts = up->n_parts,
	        .durable = wait_for_files,
	        .present = shared ? is_present : NULL,
	        .arg = &placing};
	enum tw_status st = place(&placing, rows, err);

	return st == TW_OK ? tw_catalogue_trace_add(to->catalogue, &arrival, ret_id, ret_new, err)
	                   : st;
}

enum tw_status tw_commit_upload(const struct tw_commit_parts *to, const struct tw_upload *up,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct tw_upload mine = *up;
	uint64_t bytes = 0;
	enum tw_status st;

	if (up->n_parts > PARTS_MAX)
		return tw_fail(err, TW_BUG, "an upload of too many parts");
	tw_blob_use_begin(to->blobs);
	st = store_and_record(to, &mine, ret_id, ret_new, err);
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
		tw_record_new_trace(to->recorder, up->caller->project_id, ret_id);
		if (up->meta->commit && up->meta->commit[0])
			tw_record_new_build(
			        to->recorder, up->caller->project_id, up->meta->build_id);
	}
	if (*ret_new && to->jobs)
		tw_jobs_wake(to->jobs);
	return TW_OK;
}
