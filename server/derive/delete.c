#include "server/derive/delete.h"

#include <string.h>

#include "server/base/file/crash_point.h"
#include "server/base/log.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_retention.h"
#include "server/catalogue/storage/catalogue_files.h"

#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs_store.h"
#include "server/derive/pipeline.h"
#include "server/storage/blob.h"

/* Before the rows are deleted: a record would be taken as proof that its row was lost. */
static void drop_records(const struct tw_deleter *d, const char *const *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tw_record_drop(d->recorder, ids[i]);
}

/* After the rows were deleted; a decoder may have written a record again. */
static void drop_files(const struct tw_deleter *d, const char *const *ids, size_t n,
        const struct tw_blob_list *unused)
{
	tw_crash_point("row_deleted");
	tw_store_drop_blobs(d->store_job, unused);
	for (size_t i = 0; i < n; i++)
		tw_store_drop_trace(d->store_job, ids[i]);
	drop_records(d, ids, n);
}

enum tw_status tw_delete_trace(const struct tw_deleter *d, const char *project_id,
        const char *trace_id, enum tw_delete_sums sums, struct tw_arena *a, struct tw_err *err)
{
	struct tw_blob_list unused = {0};
	enum tw_status st;

	drop_records(d, &trace_id, 1);
	if (sums == TW_DELETE_WITH_SUMS)
		st = tw_catalogue_trace_erase(d->catalogue, project_id, trace_id, a, &unused, err);
	else
		st = tw_catalogue_trace_delete(d->catalogue, project_id, trace_id, a, &unused, err);
	if (st == TW_OK) {
		drop_files(d, &trace_id, 1, &unused);
		if (sums == TW_DELETE_WITH_SUMS)
			tw_pipeline_wake(d->pipeline, TW_RAISED_BY_DECODER);
	} else if (st != TW_NOT_FOUND) {
		tw_record_trace(d->recorder, project_id, trace_id);
	}
	return st;
}

/* If the trace was opened and decoded again in between, its new file is deleted too; the next
 * reader has it decoded again. */
enum tw_status tw_delete_decoded(const struct tw_deleter *d, const char *project_id,
        const char *trace_id, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_decoded_drop(d->catalogue, project_id, trace_id, err);

	if (st == TW_OK)
		tw_store_drop_trace(d->store_job, trace_id);
	return st;
}

/* Only the upload of the trace is left.  Returns TW_NOT_FOUND. */
static enum tw_status decode_again(const struct tw_deleter *d, const char *project_id,
        const char *trace_id, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_trace_requeue(d->catalogue, project_id, trace_id, err);

	if (st != TW_OK)
		return st;
	tw_log(TW_LOG_WARN, "trace_file_missing", tw_log_text("trace", trace_id),
	        tw_log_text("action", "decoding it again"));
	return TW_NOT_FOUND; /* with the message of tw_trace_stat */
}

enum tw_status tw_delete_upload(const struct tw_deleter *d, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_err *err)
{
	struct tw_blob_list unused = {0};
	uint64_t bytes = 0;
	enum tw_status st = tw_trace_stat(d->blobs, trace_id, &bytes, err);

	if (st == TW_NOT_FOUND)
		return decode_again(d, project_id, trace_id, err);
	if (st == TW_OK)
		st = tw_catalogue_upload_drop(d->catalogue, project_id, trace_id, a, &unused, err);
	if (st == TW_OK)
		tw_store_drop_blobs(d->store_job, &unused);
	return st;
}

/* --- a project --- */

enum { AT_ONCE = 64, TRACES_IN_TRANSACTION = 16 };

static enum tw_status delete_build(const struct tw_deleter *d, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_err *err)
{
	struct tw_blob_list unused = {0};
	enum tw_status st =
	        tw_catalogue_build_delete(d->catalogue, project_id, build_id, a, &unused, err);

	if (st == TW_OK) {
		tw_store_drop_blobs(d->store_job, &unused);
		tw_record_drop_build(d->recorder, project_id, build_id);
	}
	return st;
}

static enum tw_status delete_together(const struct tw_deleter *d, const char *project_id,
        const char *const *ids, size_t n, struct tw_arena *a, struct tw_err *err)
{
	struct tw_blob_list unused = {0};
	enum tw_status st;

	drop_records(d, ids, n);
	st = tw_catalogue_traces_delete(d->catalogue, project_id, ids, n, a, &unused, err);
	if (st == TW_OK)
		drop_files(d, ids, n, &unused);
	for (size_t i = 0; st != TW_OK && i < n; i++)
		tw_record_trace(d->recorder, project_id, ids[i]);
	return st;
}

/* In SQLite a commit takes longer than deleting the rows of a trace, so several traces share a
 * transaction.  In PostgreSQL each trace takes one statement per table, and uploads wait for the
 * transaction: for the only writer or, with several servers, for its locks. */
static enum tw_status delete_traces(const struct tw_deleter *d, const char *project_id,
        const char *const *ids, size_t n, struct tw_arena *a, struct tw_err *err)
{
	const bool sqlite = strcmp(tw_catalogue_engine(d->catalogue), "sqlite") == 0;
	const size_t most = sqlite ? TRACES_IN_TRANSACTION : 1;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i += most)
		st = delete_together(d, project_id, ids + i, n - i < most ? n - i : most, a, err);
	return st;
}

static enum tw_status delete_builds(const struct tw_deleter *d, const char *project_id,
        const char *const *ids, size_t n, struct tw_arena *a, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		st = delete_build(d, project_id, ids[i], a, err);
		if (st == TW_NOT_FOUND)
			st = TW_OK;
	}
	return st;
}

static enum tw_status delete_some(const struct tw_deleter *d, const char *project_id,
        enum tw_project_part part, struct tw_arena *a, bool *ret_any, struct tw_err *err)
{
	const char **ids = NULL;
	size_t n = 0;
	enum tw_status st =
	        tw_catalogue_project_ids(d->catalogue, project_id, part, AT_ONCE, a, &ids, &n, err);

	*ret_any = n > 0;
	if (st != TW_OK || n == 0)
		return st;
	return (part == TW_PROJECT_TRACES ? delete_traces : delete_builds)(
	        d, project_id, ids, n, a, err);
}

enum tw_status tw_delete_project_part(const struct tw_deleter *d, const char *project_id,
        struct tw_arena *a, bool *ret_any, struct tw_err *err)
{
	enum tw_status st = delete_some(d, project_id, TW_PROJECT_TRACES, a, ret_any, err);

	if (st == TW_OK && !*ret_any)
		st = delete_some(d, project_id, TW_PROJECT_BUILDS, a, ret_any, err);
	if (st == TW_OK && !*ret_any)
		st = tw_catalogue_project_rows_delete(d->catalogue, project_id, ret_any, err);
	if (st == TW_OK && *ret_any)
		tw_crash_point("project_part_deleted");
	return st;
}
