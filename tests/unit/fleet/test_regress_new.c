/*
 * Methods that a version has and none before it: reported when that is certain, and not when it
 * only looks so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "server/stats/regress.h"
#include "tests/unit/unit.h"

enum { DAYS = 5, VERSIONS = 3, PARTS = DAYS * VERSIONS, EACH = 20, MS = 1000000 };

/* Each version has EACH traces on each of its days, all of one class: 1.0 on days 0 to 4, 1.1 on 3
 * to 7, 1.2 on 6 to 10.  A trace is 100 ms. */
struct world {
	struct tw_arena *arena;
	const char *versions[VERSIONS];
	struct tw_sketch sketches[PARTS];
	struct tw_regress_part parts[PARTS];
	struct tw_regress_total totals[PARTS];
	struct tw_regress_series s;
	struct tw_regress_totals of;
	struct tw_regress_list found;
};
static struct world w;

static void make(const unsigned have[VERSIONS], int64_t ns)
{
	tw_arena_free(w.arena);
	memset(&w, 0, sizeof w);
	w.arena = tw_arena_new(1 << 20);
	w.versions[0] = "1.0", w.versions[1] = "1.1", w.versions[2] = "1.2";
	w.s = (struct tw_regress_series){
	        "a", "cold_start", "m", "", w.versions, VERSIONS, w.parts, 0, 0};
	w.of = (struct tw_regress_totals){w.totals, PARTS, 100 * MS, {0}};
	w.found = (struct tw_regress_list){w.arena, NULL, 0, 0};
	for (uint32_t v = 0; v < VERSIONS; v++)
		for (uint32_t d = 0; d < DAYS; d++) {
			const uint32_t at = v * DAYS + d;

			w.totals[at] = (struct tw_regress_total){20000 + 3 * v + d, v, 0, EACH};
			for (unsigned i = 0; i < have[v]; i++)
				tw_sketch_add(&w.sketches[at], ns + (int64_t)i * 1000);
			if (have[v])
				w.parts[w.s.n_parts++] = (struct tw_regress_part){
				        20000 + 3 * v + d, v, 0, &w.sketches[at], "01A"};
		}
}

/* The number of reported ones: 0 or 1. */
static size_t find(void)
{
	w.found.n = 0;
	assert_int_equal(
	        tw_regress_find_new(&w.s, &w.of, &tw_regress_defaults, &w.found, NULL), TW_OK);
	assert_true(w.found.n <= 1);
	return w.found.n;
}

static struct tw_regress_found find_one(void)
{
	assert_int_equal(find(), 1);
	return w.found.of[0];
}

static void a_new_method_is_reported(void **state)
{
	struct tw_regress_found r;

	(void)state;
	make((const unsigned[]){0, 18, 18}, 12 * MS);
	r = find_one();
	assert_int_equal(r.kind, TW_REGRESS_NEW);
	assert_string_equal(r.base, "1.0");
	assert_string_equal(r.head, "1.1");
	assert_int_equal(r.day, 20003);
	assert_true(fabs(r.share - 0.9) < 1e-9);
	assert_true(r.before_ns == 0 && llabs(r.after_ns - 12 * MS) < MS / 4);
	assert_true(fabs(r.shift.change - 0.108) < 0.001);
	assert_true(r.shift.low < r.shift.change && r.shift.change < r.shift.high);
	assert_int_equal(r.shift.n_before, 100);
	assert_int_equal(r.shift.n_after, 100);
	assert_string_equal(r.fixed_in, "");
	assert_string_equal(r.after_trace, "01A");
}

static void a_later_version_without_it_fixes_it(void **state)
{
	struct tw_regress_found r;

	(void)state;
	make((const unsigned[]){0, 18, 2}, 12 * MS);
	r = find_one();
	assert_string_equal(r.fixed_in, "1.2");
	assert_int_equal(r.fixed_from, 20006);
	w.of.hidden_ns[2] = 6 * MS; /* its methods have no names: who knows */
	assert_string_equal(find_one().fixed_in, "");
}

static void what_is_old_is_not_new(void **state)
{
	(void)state;
	make((const unsigned[]){1, 18, 18}, 12 * MS); /* rare before: slower, not new */
	assert_int_equal(find(), 0);
	make((const unsigned[]){18, 18, 18}, 12 * MS);
	assert_int_equal(find(), 0);
	make((const unsigned[]){18, 0, 18}, 12 * MS); /* it came back */
	assert_int_equal(find(), 0);
	make((const unsigned[]){0, 0, 0}, 12 * MS);
	assert_int_equal(find(), 0);
}

static void small_methods_are_not_reported(void **state)
{
	(void)state;
	make((const unsigned[]){0, 18, 18}, MS / 2); /* half a per cent */
	assert_int_equal(find(), 0);
	make((const unsigned[]){0, 5, 5}, 12 * MS); /* 25 traces are fewer than 30 */
	assert_int_equal(find(), 0);
	make((const unsigned[]){0, 18, 18}, 12 * MS); /* on one day alone */
	for (uint32_t i = 1; i < w.s.n_parts; i++)
		if (w.parts[i].version == 1)
			w.parts[i].of = &w.sketches[0];
	assert_int_equal(find(), 0);
}

/* Where the version before may have it without anybody knowing. */
static void unknown_changes_are_not_reported(void **state)
{
	(void)state;
	make((const unsigned[]){0, 18, 18}, 12 * MS);
	w.of.hidden_ns[0] = 6 * MS; /* its methods have no names */
	assert_int_equal(find(), 0);
	w.of.hidden_ns[0] = 0;
	assert_int_equal(find(), 1);
	for (uint32_t d = 0; d < DAYS; d++)
		w.totals[d].cls = 2; /* other devices had it */
	assert_int_equal(find(), 0);
	make((const unsigned[]){0, 18, 18}, 12 * MS);
	for (uint32_t d = 0; d < DAYS; d++)
		w.totals[d].n = 5; /* 25 traces before */
	assert_int_equal(find(), 0);
}

static struct tw_regress_found one(const char *head, double change)
{
	return (struct tw_regress_found){
	        .kind = TW_REGRESS_NEW, .head = head, .fixed_in = "", .shift = {.change = change}};
}

static void most_of_a_version_is_something_else(void **state)
{
	(void)state;
	make((const unsigned[]){0, 0, 0}, MS);
	for (int i = 0; i < 8; i++) {
		const struct tw_regress_found few = one("1.1", 0.01 * (i + 1)),
		                              many = one("1.2", 0.1);

		assert_int_equal(tw_regress_add(&w.found, &few, NULL), TW_OK);
		assert_int_equal(tw_regress_add(&w.found, &many, NULL), TW_OK);
	}
	tw_regress_limit_new(&w.found);
	assert_int_equal(w.found.n, TW_REGRESS_NEW_MAX);
	assert_string_equal(w.found.of[0].head, "1.1");
	assert_true(fabs(w.found.of[0].shift.change - 0.08) < 1e-9);
	w.found.n = 0;
	tw_regress_limit_new(&w.found);
	assert_int_equal(w.found.n, 0);
	w.arena = tw_arena_free(w.arena);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_method_is_reported),
        cmocka_unit_test(a_later_version_without_it_fixes_it),
        cmocka_unit_test(what_is_old_is_not_new),
        cmocka_unit_test(small_methods_are_not_reported),
        cmocka_unit_test(unknown_changes_are_not_reported),
        cmocka_unit_test(most_of_a_version_is_something_else),
};

UNIT_TESTS("regress_new", tests)
