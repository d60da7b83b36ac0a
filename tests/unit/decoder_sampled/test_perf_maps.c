/* Unit tests of the memory maps of perf.data: what a new map replaces, and how much work replacing
 * may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/formats/sampled/perf_maps.h"
#include "decoder/formats/sinks/null_sink.h"
#include "tests/unit/unit.h"

enum { PID = 4711, PAGE = 4096, MOST = 16382 };

struct fixture {
	struct tw_arena *arena;
	struct tw_sink sink;
	struct tw_perf_maps *maps;
};

static struct fixture begin(void)
{
	struct fixture f = {.arena = tw_arena_new(64 << 20), .sink = tw_null_sink()};

	assert_non_null(f.arena);
	return f;
}

static enum tw_perf_added add(
        struct fixture *f, uint64_t page, uint64_t pages, const char *path, bool is_jit)
{
	const struct tw_perf_map map = {PID, page * PAGE, pages * PAGE, 0, tw_str_of(path), is_jit};

	return tw_perf_map_add(f->maps, &map);
}

/* Files in the order of their first maps; UINT32_MAX - 1: none. */
static uint32_t file_at(struct fixture *f, uint64_t page)
{
	return tw_perf_find(f->maps, PID, page * PAGE + 8, false).file;
}

static void has_files(struct fixture *f, const int *files, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(file_at(f, i), files[i] < 0 ? UINT32_MAX - 1 : (uint32_t)files[i]);
}

#define HAS_FILES(f, ...)                                                                          \
	has_files(f, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void test_replaced(void **state)
{
	struct fixture f = begin();

	(void)state;
	f.maps = tw_perf_maps_new(f.arena, 1, &f.sink);
	assert_non_null(f.maps);
	assert_int_equal(add(&f, 1, 6, "/a", false), TW_PERF_ADDED);
	HAS_FILES(&f, -1, 0, 0, 0, 0, 0, 0, -1);
	assert_int_equal(add(&f, 3, 2, "/b", false), TW_PERF_ADDED); /* splits it */
	HAS_FILES(&f, -1, 0, 0, 1, 1, 0, 0, -1);
	assert_int_equal(add(&f, 3, 2, "/c", false), TW_PERF_ADDED); /* exactly one */
	HAS_FILES(&f, -1, 0, 0, 2, 2, 0, 0, -1);
	assert_int_equal(add(&f, 2, 2, "/d", false), TW_PERF_ADDED); /* an end and a begin */
	HAS_FILES(&f, -1, 0, 3, 3, 2, 0, 0, -1);
	assert_int_equal(add(&f, 0, 3, "/e", false), TW_PERF_ADDED); /* one, and a begin */
	HAS_FILES(&f, 4, 4, 4, 3, 2, 0, 0, -1);
	assert_int_equal(add(&f, 2, 4, "/f", false), TW_PERF_ADDED); /* an end, two, and a begin */
	HAS_FILES(&f, 4, 4, 5, 5, 5, 5, 0, -1);
	assert_int_equal(add(&f, 0, 9, "/g", false), TW_PERF_ADDED); /* all */
	HAS_FILES(&f, 6, 6, 6, 6, 6, 6, 6, 6, 6, -1);
	tw_arena_free(f.arena);
}

static void fill(struct fixture *f)
{
	f->maps = tw_perf_maps_new(f->arena, 1, &f->sink);
	assert_non_null(f->maps);
	for (uint64_t i = 0; i < MOST; i++)
		assert_int_equal(add(f, 2 * i, 2, "/a", false), TW_PERF_ADDED);
}

/* As a JIT does for hours: it moves no other map, so it is none of the work that is limited. */
static void test_one_for_one(void **state)
{
	struct fixture f = begin();

	(void)state;
	fill(&f);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(add(&f, 0, 2, i & 1 ? "/b" : "/c", true), TW_PERF_ADDED);
	HAS_FILES(&f, 2, 2, 0); /* the last was /b, the second file that came */
	tw_arena_free(f.arena);
}

/* Maps at the begin of a full list that become one and two again move all others each time. */
static void test_work_ends(void **state)
{
	struct fixture f = begin();
	unsigned n = 0;

	(void)state;
	fill(&f);
	assert_int_equal(add(&f, 0, 4, "/b", false), TW_PERF_ADDED);
	while (n < 40000 && add(&f, 0, n & 1 ? 4 : 2, "/b", false) == TW_PERF_ADDED)
		n++;
	assert_in_range(n, 16384, 16500); /* 2^28 moved maps, 16,381 at a time */
	assert_int_equal(add(&f, 0, 2, "/b", false), TW_PERF_FULL);
	HAS_FILES(&f, 1, 1, 1, 1, 0);
	tw_arena_free(f.arena);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_one_for_one),
        cmocka_unit_test(test_work_ends),
};

UNIT_TESTS("perf_maps", tests)
