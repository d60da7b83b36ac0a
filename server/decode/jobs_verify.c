/*
 * jobs_verify.c - at start: deletes rows whose files did not survive a power failure.
 *
 * A row and its files become durable concurrently, and the row becomes visible and the upload is
 * acknowledged after both have (catalogue_commit_upload.c). A power failure in between can leave
 * only the row: it was never acknowledged, so it is deleted. Only rows of the last transaction of
 * uploads can be affected. Their files are read and hashed before anything else uses them.
 * A file in lost/ is moved back first: with an older catalogue the folder had no row for it.
 */
#include "server/decode/jobs_internal.h"

#include "server/base/log.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/storage/blob_store.h"
#include "server/storage/lost.h"

enum { ARENA_BYTES = 16 << 20 };

/* An incomplete file is set aside: its bytes may be all that is left of the upload. */
static enum tw_status drop_blob(
        const struct tw_decode_parts *parts, const char *sha256, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	return tw_blob_key(sha256, key) ? tw_lost_take(tw_blobs_dir(parts->blobs), key, err)
	                                : TW_OK;
}

static enum tw_status drop_trace(const struct tw_decode_parts *parts, const struct tw_unverified *u,
        const struct tw_err *why, struct tw_arena *a, struct tw_err *err)
{
	struct tw_blob_list unused = {0};
	enum tw_status st;

	tw_record_drop(parts->recorder, u->trace_id);
	st = tw_catalogue_trace_delete(
	        parts->catalogue, u->project_id, u->trace_id, a, &unused, err);
	if (st == TW_NOT_FOUND) /* another part of this trace was missing: it is already deleted */
		return TW_OK;
	for (size_t i = 0; i < unused.n && st == TW_OK; i++)
		st = drop_blob(parts, unused.sha256[i], err);
	tw_log(TW_LOG_WARN, "upload_incomplete", tw_log_text("trace", u->trace_id),
	        tw_log_text("reason", why->msg),
	        tw_log_text("action", "removed: its upload was never acknowledged"));
	return st;
}

static enum tw_status check_blob(
        const struct tw_decode_parts *parts, const struct tw_unverified *u, struct tw_err *err)
{
	char key[TW_STORE_KEY];
	enum tw_status st = tw_blob_check(parts->blobs, u->sha256, u->bytes, err);

	if (st != TW_NOT_FOUND || !tw_blob_key(u->sha256, key))
		return st;
	st = tw_lost_return_key(tw_blobs_dir(parts->blobs), key, err);
	return st == TW_OK ? tw_blob_check(parts->blobs, u->sha256, u->bytes, err) : st;
}

static enum tw_status prove(const struct tw_decode_parts *parts, const struct tw_unverified *u,
        struct tw_arena *a, struct tw_err *err)
{
	struct tw_err why;
	enum tw_status st = check_blob(parts, u, &why);

	if (st == TW_NOT_FOUND || st == TW_CORRUPT)
		return drop_trace(parts, u, &why, a, err);
	if (st != TW_OK) /* an unreadable disk does not show that the file is missing */
		tw_log_err(TW_LOG_ERROR, "upload_not_checked", u->trace_id, &why);
	return TW_OK;
}

enum tw_status tw_jobs_verify_uploads(const struct tw_decode_parts *parts, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_unverified *all = NULL;
	size_t n = 0;
	enum tw_status st;

	if (tw_blobs_remote(parts->blobs)) { /* files in object storage were verified before their
		                              row was written */
		tw_arena_free(a);
		return TW_OK;
	}
	if (!a)
		return tw_oom(err);
	st = tw_catalogue_unverified(parts->catalogue, a, &all, &n, err);
	for (size_t i = 0; i < n && st == TW_OK; i++)
		st = prove(parts, &all[i], a, err);
	tw_arena_free(a);
	return st;
}
