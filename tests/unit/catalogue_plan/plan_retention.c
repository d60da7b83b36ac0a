#include "tests/unit/catalogue_plan/plan_retention.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_retention.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void plan_use_retention(struct tw_catalogue *c, const char *project, const char *id)
{
	const struct tw_old_query of = {project, INT64_MAX, 10, true, 0};
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_old_trace *old;
	struct tw_blob_list unused;
	struct tw_use use;
	int64_t since_ms;
	size_t n;

	assert_non_null(a);
	assert_int_equal(tw_catalogue_use(c, project, &use, NULL), TW_OK);
	assert_int_equal(use.traces, 2);
	for (enum tw_old_which w = TW_OLD_ALL; w < TW_OLD_KINDS; w++)
		assert_int_equal(tw_catalogue_oldest(c, w, &of, a, &old, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_firsts_since(c, &of, 1 << 20, a, &since_ms, NULL), TW_OK);
	assert_true(since_ms == INT64_MAX); /* there are no ANRs */
	assert_int_equal(tw_catalogue_decoded_drop(c, project, id, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_upload_drop(c, project, id, a, &unused, NULL),
	        TW_NOT_FOUND); /* it is queued again */
	tw_arena_free(a);
}

void plan_use_project_delete(struct tw_catalogue *c)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_blob_list unused;
	char id[TW_ID_BYTES], deleted[TW_ID_BYTES];
	bool is_new, is_there;
	const char **ids;
	size_t n;

	assert_non_null(a);
	assert_int_equal(tw_catalogue_project(c, "to be deleted", id, &is_new, NULL), TW_OK);
	assert_int_equal(tw_catalogue_commit_set(c, id, "b", "0123abc", NULL), TW_OK);
	assert_int_equal(tw_catalogue_project_delete(c, "to be deleted", NULL), TW_OK);
	assert_int_equal(tw_catalogue_project_exists(c, id, &is_there, NULL), TW_OK);
	assert_false(is_there);
	assert_int_equal(tw_catalogue_project_deleted(c, "", deleted, NULL), TW_OK);
	assert_string_equal(deleted, id);
	for (int part = TW_PROJECT_TRACES; part <= TW_PROJECT_BUILDS; part++)
		assert_int_equal(tw_catalogue_project_ids(
		                         c, id, (enum tw_project_part)part, 9, a, &ids, &n, NULL),
		        TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_project_forget(c, id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project_deleted(c, "", deleted, NULL), TW_OK);
	assert_string_equal(deleted, id); /* it has a build */
	assert_int_equal(tw_catalogue_build_delete(c, id, "b", a, &unused, NULL), TW_OK);
	assert_int_equal(tw_catalogue_build_delete(c, id, "b", a, &unused, NULL), TW_NOT_FOUND);
	do
		assert_int_equal(tw_catalogue_project_rows_delete(c, id, &is_there, NULL), TW_OK);
	while (is_there);
	assert_int_equal(tw_catalogue_project_forget(c, id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project_deleted(c, "", deleted, NULL), TW_OK);
	assert_string_equal(deleted, "");
	tw_arena_free(a);
}
