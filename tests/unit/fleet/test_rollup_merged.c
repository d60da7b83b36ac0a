/* Parts of a day's cells in one: the same to the byte as those of the cells, whatever was counted
 * since, and never those of cells that changed or were deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/fleet/fleet.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { TRACES = 200, DAY0 = 20000, LAST = DAY0 + SIM_DAYS - 1 };

static struct session {
	char dir[64], project[TW_ID_BYTES];
	struct tw_catalogue *c;
	struct tw_db *db;
	struct tw_arena *arena;
	struct tw_rollup_worker *folder;
} s;

static const struct tw_rollup_filter everything = {"", "", "", "", "", "", "", DAY0, LAST};

static void count(uint64_t from, uint64_t to)
{
	assert_true(sim_load(s.c, s.db, s.project, from, to, DAY0));
}

static void add_up(void)
{
	for (bool more = true; more;)
		assert_int_equal(tw_rollup_worker_add(s.folder, 1, 0, &more, NULL), TW_OK);
}

/* Of days before the last one. */
static void make(void)
{
	for (bool more = true; more;)
		assert_int_equal(tw_rollup_merged_add(s.c, LAST, &more, NULL), TW_OK);
}

struct read { /* the response to a query by day or another grouping, and its number of cells */
	struct tw_buf bytes;
	size_t with_parts;
};

/* Two of the six. */
enum { METRICS = 1 << TW_ROLLUP_SELF | 1 << TW_ROLLUP_CALLS };

static void write_group(const struct tw_fleet_group *g, struct tw_buf *out)
{
	static struct tw_sketch sketch;

	for (unsigned m = TW_ROLLUP_SELF; m < TW_ROLLUP_METRICS; m += 3) {
		struct tw_rollup r = {.arena = s.arena, .metrics = 1U << m};

		assert_int_equal(tw_fleet_collect(g->cells, g->n, &r, NULL), TW_OK);
		assert_int_equal(tw_rollup_write_part(&r, m, &sketch, out, NULL), TW_OK);
	}
}

static struct read query(const struct tw_rollup_filter *f, enum tw_fleet_by by, unsigned merged)
{
	struct tw_fleet_group *groups;
	struct tw_rollup_cell *cells;
	struct read ret = {.with_parts = 0};
	size_t n, n_groups;

	tw_arena_reset(s.arena);
	tw_buf_init(&ret.bytes, (size_t)64 << 20);
	assert_int_equal(tw_catalogue_rollup_read(
	                         s.c, s.project, f, METRICS | merged, s.arena, &cells, &n, NULL),
	        TW_OK);
	for (size_t i = 0; i < n; i++)
		ret.with_parts += cells[i].parts[TW_ROLLUP_SELF].len > 0;
	assert_int_equal(
	        tw_fleet_groups(cells, n, by, false, s.arena, &groups, &n_groups, NULL), TW_OK);
	for (size_t i = 0; i < n_groups; i++)
		write_group(&groups[i], &ret.bytes);
	return ret;
}

/* Returns how many cells had parts. */
static size_t check(const struct tw_rollup_filter *f)
{
	static const enum tw_fleet_by bys[] = {TW_FLEET_DAY, TW_FLEET_VERSION};
	size_t with_parts = 0;

	for (size_t i = 0; i < sizeof bys / sizeof *bys; i++) {
		struct read cells = query(f, bys[i], 0),
		            merged = query(f, bys[i], TW_ROLLUP_MERGED);

		assert_true(cells.bytes.len > 0);
		assert_int_equal(cells.bytes.len, merged.bytes.len);
		assert_memory_equal(cells.bytes.data, merged.bytes.data, cells.bytes.len);
		assert_true(merged.with_parts <= cells.with_parts);
		with_parts = merged.with_parts;
		tw_buf_done(&cells.bytes);
		tw_buf_done(&merged.bytes);
	}
	return with_parts;
}

static int64_t number(const char *sql)
{
	return catalogue_number(s.db, sql);
}

#define CELLS "SELECT count(*) FROM rollup_cell WHERE version>0"
/* Of days before the last one; of some there is but one cell, which needs no other. */
#define GROUPS                                                                                     \
	"SELECT count(*) FROM (SELECT DISTINCT day, version_name FROM rollup_cell WHERE version>0" \
	" AND day<20013) t"
#define CELLS_TODAY "SELECT count(*) FROM rollup_cell WHERE version>0 AND day=20013"

static void test_the_same(void **state)
{
	const struct tw_rollup_filter version = {"", "8.3.1", "", "", "", "", "", DAY0, LAST};
	const struct tw_rollup_filter class = {"", "", "", "", "mid", "", "", DAY0, LAST};
	struct read some;

	(void)state;
	count(0, TRACES / 2);
	(void)check(&everything); /* deltas alone */
	add_up();
	assert_int_equal(check(&everything), number(CELLS));
	make();
	assert_true(number("SELECT count(*) FROM rollup_merged WHERE signature<>0") > SIM_DAYS);
	assert_int_equal(number("SELECT count(*) FROM rollup_merged WHERE due>0 AND day<20013"), 0);
	assert_int_equal(number("SELECT count(*) FROM rollup_merged_part WHERE day=20013"), 0);
	assert_int_equal(check(&everything), number(GROUPS) + number(CELLS_TODAY));
	assert_true(check(&version) < check(&everything));
	some = query(&class, TW_FLEET_ALL, TW_ROLLUP_MERGED); /* each cell for itself */
	assert_int_equal(some.with_parts,
	        number("SELECT count(*) FROM rollup_cell WHERE version>0 AND device_class='mid'"));
	tw_buf_done(&some.bytes);
}

static void test_what_comes_late(void **state)
{
	const int64_t made = number(GROUPS);

	(void)state;
	count(TRACES / 2, TRACES / 2 + 40);
	assert_int_equal(check(&everything), made + number(CELLS_TODAY)); /* and its deltas */
	add_up();
	assert_true((int64_t)check(&everything) > made + number(CELLS_TODAY));
	make();
	assert_int_equal(check(&everything), number(GROUPS) + number(CELLS_TODAY));
}

static void test_what_is_emptied(void **state)
{
	struct tw_rollup_reset sums;
	struct read before = query(&everything, TW_FLEET_DAY, TW_ROLLUP_MERGED), after;

	(void)state;
	assert_int_equal(tw_catalogue_rollup_reset(s.c, s.project, &sums, NULL), TW_OK);
	assert_int_equal(number("SELECT count(*) FROM rollup_merged"), 0);
	assert_int_equal(number("SELECT count(*) FROM rollup_merged_part"), 0);
	assert_true(sim_fold(s.c, s.project, 0, TRACES / 2 + 40, DAY0));
	(void)check(&everything);
	add_up();
	(void)check(&everything);
	make();
	(void)check(&everything);
	after = query(&everything, TW_FLEET_DAY, TW_ROLLUP_MERGED);
	assert_int_equal(before.bytes.len, after.bytes.len);
	assert_memory_equal(before.bytes.data, after.bytes.data, before.bytes.len);
	tw_buf_done(&before.bytes);
	tw_buf_done(&after.bytes);
}

static void test_what_is_too_old(void **state)
{
	bool more = true;

	(void)state;
	while (more)
		assert_int_equal(tw_catalogue_rollup_expire(s.c, DAY0 + 5, &more, NULL), TW_OK);
	assert_int_equal(number("SELECT min(day) FROM rollup_merged"), DAY0 + 5);
	assert_int_equal(number("SELECT min(day) FROM rollup_merged_part"), DAY0 + 5);
	(void)check(&everything);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	struct tw_derive_parts parts = {0};
	bool is_new;

	(void)state;
	s = (struct session){.dir = "/dev/shm/tw-merged-XXXXXX"};
	if (!mkdtemp(s.dir)) {
		(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-merged-XXXXXX");
		assert_non_null(mkdtemp(s.dir));
	}
	s.c = catalogue_in(s.dir);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.project, &is_new, NULL), TW_OK);
	s.db = catalogue_connect(s.dir);
	s.arena = tw_arena_new((size_t)512 << 20);
	parts.catalogue = s.c; /* adding up needs no files */
	s.folder = tw_rollup_worker_new(&parts);
	assert_non_null(s.folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)tw_rollup_worker_free(s.folder);
	tw_db_close(s.db);
	s.c = tw_catalogue_close(s.c);
	tw_arena_free(s.arena);
	(void)nftw(s.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_what_comes_late),
        cmocka_unit_test(test_what_is_emptied),
        cmocka_unit_test(test_what_is_too_old),
};

UNIT_TESTS_WITH("rollup_merged", tests, setup, teardown)
