/* Keys of objects that are to be deleted: each is taken by one server at a time, and one that was
 * added again during an attempt remains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "server/catalogue/storage/file_drop.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

struct session {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_arena *arena;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct session s;

	s = (struct session){.dir = "/tmp/tw-drop-XXXXXX", .arena = tw_arena_new(1 << 20)};
	assert_non_null(mkdtemp(s.dir));
	s.c = catalogue_in(s.dir);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	return nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct tw_file_drop *take(struct session *s, size_t want)
{
	struct tw_file_drop *of = NULL;
	size_t n = 0;

	assert_int_equal(tw_catalogue_file_drops_take(s->c, s->arena, &of, &n, NULL), TW_OK);
	assert_int_equal(n, want);
	return of;
}

static void drop(struct session *s, const char *key)
{
	assert_int_equal(tw_catalogue_file_drop(s->c, key, NULL), TW_OK);
}

static void test_taken_once(void **state)
{
	struct session *s = *state;
	struct tw_file_drop *of;

	drop(s, "traces/a");
	drop(s, "traces/b");
	drop(s, "traces/a");
	of = take(s, 2);
	take(s, 0);
	assert_int_equal(of[0].attempts, 1);
	assert_int_equal(tw_catalogue_file_drops_done(s->c, of, 1, NULL), TW_OK);
	assert_int_equal(tw_catalogue_file_drop_later(s->c, &of[1], 0, NULL), TW_OK);
	of = take(s, 1);
	assert_int_equal(of[0].attempts, 2);
	assert_int_equal(tw_catalogue_file_drops_done(s->c, of, 1, NULL), TW_OK);
	take(s, 0);
}

/* Its object was stored and lost its rows again, after it was deleted. */
static void test_added_during_an_attempt(void **state)
{
	struct session *s = *state;
	struct tw_file_drop *of;

	drop(s, "blobs/a");
	of = take(s, 1);
	drop(s, "blobs/a");
	assert_int_equal(tw_catalogue_file_drops_done(s->c, of, 1, NULL), TW_OK);
	assert_int_equal(tw_catalogue_file_drop_later(s->c, of, 60000, NULL), TW_OK);
	of = take(s, 1);
	assert_string_equal(of[0].key, "blobs/a");
}

static void test_many(void **state)
{
	struct session *s = *state;
	char key[32];

	for (int i = 0; i < TW_FILE_DROPS + 1; i++) {
		(void)snprintf(key, sizeof key, "traces/%d", i);
		drop(s, key);
	}
	assert_int_equal(
	        tw_catalogue_file_drops_done(s->c, take(s, TW_FILE_DROPS), TW_FILE_DROPS, NULL),
	        TW_OK);
	take(s, 1);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_taken_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_added_during_an_attempt, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
};

UNIT_TESTS("file_drop", tests)
