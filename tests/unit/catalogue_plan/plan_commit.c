#include "tests/unit/catalogue_plan/plan_commit.h"
#include "server/catalogue/traces/catalogue_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void plan_use_commits(struct tw_catalogue *c, const char *project)
{
	struct tw_arena *a = tw_arena_new(1 << 16);
	const char *commit = "";

	assert_non_null(a);
	assert_int_equal(tw_catalogue_commit_set(c, project, "b-commit", "0123abc", NULL), TW_OK);
	assert_int_equal(tw_catalogue_commit_of(c, project,
	                         &(struct tw_release){"", "", "b-commit"}, a, &commit, NULL),
	        TW_OK);
	assert_string_equal(commit, "0123abc");
	assert_int_equal(tw_catalogue_commit_of(c, project, &(struct tw_release){"shop", "1.0", ""},
	                         a, &commit, NULL),
	        TW_OK);
	tw_arena_free(a);
}
