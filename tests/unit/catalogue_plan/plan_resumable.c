#include "tests/unit/catalogue_plan/plan_resumable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_throttle.h"
#include "server/catalogue/traces/catalogue_resumable.h"

void plan_use_resumables(struct tw_catalogue *c, const char *project)
{
	static const char id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
	const struct tw_resumable_limits limits = {3, 1000, 60000};
	const struct tw_resumable_piece piece = {0, 10, "aa", "pieces/AV/x"};
	struct tw_resumable u = {.key = "k", .bytes = 10, .metadata = ""};
	struct tw_resumable_hold h = {.owner = "o"};
	struct tw_resumable_piece *pieces = NULL;
	struct tw_arena *a = tw_arena_new(4 << 20);
	uint64_t open = 0, bytes = 0;
	size_t n = 0;
	bool yes = false;
	const struct tw_throttle_cost query = {{{7, 10, 100}}, 1};
	int64_t wait_ms = 0;

	(void)snprintf(u.id, sizeof u.id, "%s", id);
	(void)snprintf(u.project_id, sizeof u.project_id, "%s", project);
	(void)snprintf(h.id, sizeof h.id, "%s", id);
	(void)snprintf(h.project_id, sizeof h.project_id, "%s", project);
	assert_int_equal(tw_catalogue_resumable_add(c, &u, &limits, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumable_hold(c, &h, 60000, a, &u, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumables_renew(c, &h, 1, 60000, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumable_append(c, &h, &piece, 60000, 60000, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumables_open(c, &open, &bytes, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumable_refers_to(c, "pieces/AV/x", &yes, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumable_done(c, &h, id, 60000, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumable_clean(c, &h, 60000, &yes, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_resumable_pieces(c, project, id, a, &pieces, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_resumable_cleaned(c, &h, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumable_clean(c, &h, 60000, &yes, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_resumable_release(c, &h, NULL), TW_OK);
	assert_int_equal(tw_catalogue_signin_use(c, "mark", 1, &yes, NULL), TW_OK);
	assert_int_equal(tw_catalogue_throttle(c, &query, true, &wait_ms, NULL), TW_OK);
	assert_int_equal(tw_catalogue_throttle_back(c, &query, NULL), TW_OK);
	tw_arena_free(a);
}
