#include "retire.h"

#include <unistd.h>

#include "api.h"
#include "blob.h"
#include "catalogue.h"

enum { PATH_BYTES = 1500 };

enum tw_status tw_retire_trace(struct tw_app *app, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_err *err)
{
	char path[PATH_BYTES];
	const char **blobs = NULL;
	size_t n = 0;
	enum tw_status st;

	(void)pthread_rwlock_wrlock(&app->blob_use);
	st = tw_catalogue_trace_delete(app->catalogue, project_id, trace_id, a, &blobs, &n, err);
	if (st == TW_OK)
		tw_api_drop_blobs(app, blobs, n);
	(void)pthread_rwlock_unlock(&app->blob_use);
	if (st == TW_OK && tw_trace_path(app->blobs, trace_id, path, sizeof path, NULL) == TW_OK)
		(void)unlink(path);
	return st;
}

/* Where the trace was asked for and decoded again between the two, its new file goes too: who reads
 * it next finds that and has it made once more. */
enum tw_status tw_retire_decoded(
        struct tw_app *app, const char *project_id, const char *trace_id, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st = tw_catalogue_decoded_drop(app->catalogue, project_id, trace_id, err);

	if (st == TW_OK && tw_trace_path(app->blobs, trace_id, path, sizeof path, NULL) == TW_OK)
		(void)unlink(path);
	return st;
}

enum tw_status tw_retire_upload(struct tw_app *app, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_err *err)
{
	struct tw_blob_list unused = {0};
	enum tw_status st;

	(void)pthread_rwlock_wrlock(&app->blob_use);
	st = tw_catalogue_upload_drop(app->catalogue, project_id, trace_id, a, &unused, err);
	if (st == TW_OK)
		tw_api_drop_blobs(app, unused.sha256, unused.n);
	(void)pthread_rwlock_unlock(&app->blob_use);
	return st;
}
