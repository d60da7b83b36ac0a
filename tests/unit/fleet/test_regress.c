/* Changes in series of many traces: real changes are found, with their size; no others are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures/shift_sim.h"
#include "tests/unit/unit.h"

static struct tw_regress_scratch *scratch;
static struct sim_made *made;
static struct tw_arena *arena;

static int set_up(void **state)
{
	(void)state;
	scratch = tw_regress_scratch_new();
	made = calloc(1, sizeof *made);
	arena = tw_arena_new((size_t)16 << 20);
	return scratch && made && arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	scratch = tw_regress_scratch_free(scratch);
	free(made);
	tw_arena_free(arena);
	return 0;
}

static const struct sim_series usual = {
        .seed = 7, .days = 42, .traces_a_day = 200, .spread = 0.4, .day_noise = 0.03};

static struct tw_regress_list find(const struct sim_series *s, const struct tw_regress_rules *rules)
{
	struct tw_regress_list l = {arena, NULL, 0, 0};

	tw_arena_reset(arena);
	sim_series_make(s, made);
	assert_int_equal(tw_regress_find(scratch, &made->series, rules, &l, NULL), TW_OK);
	return l;
}

static void test_nothing_changed(void **state)
{
	struct sim_series s = usual;

	(void)state;
	for (s.seed = 1; s.seed <= 20; s.seed++)
		assert_int_equal(find(&s, &tw_regress_defaults).n, 0);
}

static void test_a_version(void **state)
{
	struct sim_series s = usual;
	struct tw_regress_list l;

	(void)state;
	s.by_version = 0.3;
	s.version = 2;
	l = find(&s, &tw_regress_defaults);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.of[0].base, "1.1");
	assert_string_equal(l.of[0].head, "1.2");
	assert_string_equal(l.of[0].fixed_in, "");
	assert_int_equal(l.of[0].percentile, 50);
	assert_true(l.of[0].shift.low <= 0.3 && l.of[0].shift.high >= 0.3);
	assert_true(fabs((double)l.of[0].after_ns / (double)l.of[0].before_ns - 1.3) < 0.06);
	assert_true(l.of[0].before_ns > 500000000 && l.of[0].before_ns < 700000000);
	assert_non_null(l.of[0].after_trace);
	assert_in_range(l.of[0].day, 20028, 20030);
}

static void test_a_version_that_is_mended(void **state)
{
	struct sim_series s = usual;
	struct tw_regress_list l;

	(void)state;
	s.days = 56;
	s.by_version = 0.3;
	s.version = 2;
	s.fixed_in_version = 3;
	l = find(&s, &tw_regress_defaults);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.of[0].head, "1.2");
	assert_string_equal(l.of[0].fixed_in, "1.3");
}

/* Less than half is left, and it would still be reported. */
static void test_a_version_that_is_half_mended(void **state)
{
	struct sim_series s = usual;
	struct tw_regress_list l;

	(void)state;
	s.days = 56;
	s.by_version = 0.8;
	s.version = 2;
	s.fixed_in_version = 3;
	s.left = 0.3;
	l = find(&s, &tw_regress_defaults);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.of[0].fixed_in, "");
	s.left = 0.05;
	l = find(&s, &tw_regress_defaults);
	assert_string_equal(l.of[0].fixed_in, "1.3");
}

enum { SERIES = 150 };

/* Number of series in which it is reported as fixed, of those in which it is found. */
static size_t reported_fixed(struct sim_series s, size_t *ret_found)
{
	size_t fixed = 0;

	*ret_found = 0;
	for (s.seed = 1; s.seed <= SERIES; s.seed++) {
		const struct tw_regress_list l = find(&s, &tw_regress_defaults);

		for (size_t i = 0; i < l.n; i++) {
			if (strcmp(l.of[i].head, "1.2") != 0)
				continue;
			++*ret_found;
			fixed += l.of[i].fixed_in[0] != 0;
		}
	}
	return fixed;
}

/* As slow as the one before: some 30 traces on two days, a week of it, and three versions on. */
static void test_later_versions_that_are_as_slow(void **state)
{
	static const unsigned days[] = {44, 49, 84};
	static const double changes[] = {0.2, 0.3, 0.6};
	struct sim_series s = usual;

	(void)state;
	s.version = 2;
	s.traces_a_day = 100;
	for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
		size_t all = 0, fixed = 0, found;

		s.days = days[i];
		for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
			s.by_version = changes[k];
			fixed += reported_fixed(s, &found);
			all += found;
		}
		print_message("%u days: %zu of %zu are said to be fixed\n", days[i], fixed, all);
		assert_true(all > 2 * SERIES);
		assert_true(100 * fixed < all);
	}
}

/* The cost of such certainty: how many fixed ones are reported by then. */
static void test_a_fix_is_reported_in_time(void **state)
{
	static const unsigned traces[] = {100, 200};
	struct sim_series s = usual;

	(void)state;
	s.version = 2;
	s.fixed_in_version = 3;
	s.by_version = 0.3;
	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		size_t found, fixed;

		s.traces_a_day = traces[i];
		for (s.days = 46; s.days <= 52; s.days += 6) {
			fixed = reported_fixed(s, &found);
			print_message("%u a day, %u days of it: %zu of %zu\n", traces[i],
			        s.days - 42, fixed, found);
		}
		assert_true(10 * fixed > (traces[i] > 100 ? 8 : 6) * found);
	}
}

static void test_a_day(void **state)
{
	struct sim_series s = usual;
	struct tw_regress_list l;

	(void)state;
	s.by_day = 0.25;
	s.day = 20;
	l = find(&s, &tw_regress_defaults);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.of[0].head, "");
	assert_in_range(l.of[0].day, 20019, 20021);
	assert_int_equal(l.of[0].fixed_day, 0);
	assert_true(l.of[0].shift.low < 0.25 && l.of[0].shift.high > 0.2);
}

static void test_thresholds(void **state)
{
	struct tw_regress_rules rules = tw_regress_defaults;
	struct sim_series s = usual;

	(void)state;
	s.by_version = 0.3;
	s.version = 2;
	rules.shift.min_change = 0.5;
	assert_int_equal(find(&s, &rules).n, 0);
	rules = tw_regress_defaults;
	rules.shift.min_traces = 100000;
	assert_int_equal(find(&s, &rules).n, 0);
	rules = tw_regress_defaults;
	rules.shift.certainty = 20;
	assert_int_equal(find(&s, &rules).n, 0);
}

static void test_too_small_to_matter(void **state)
{
	struct sim_series s = usual;
	struct tw_regress_list l = {arena, NULL, 0, 0};

	(void)state;
	s.by_version = 0.3;
	s.version = 2;
	sim_series_make(&s, made);
	made->series.least_ns = 1000000000;
	assert_int_equal(
	        tw_regress_find(scratch, &made->series, &tw_regress_defaults, &l, NULL), TW_OK);
	assert_int_equal(l.n, 0);
}

/* A search over points alone: a step up, and down again. */
static void test_up_and_down(void **state)
{
	struct tw_change_point p[30];
	struct tw_change_found shifts[TW_CHANGES_MAX];

	(void)state;
	for (int i = 0; i < 30; i++)
		p[i] = (struct tw_change_point){.day = i,
		        .n = 100,
		        .at = (i >= 10 && i < 20 ? 0.4 : 0) + 0.01 * (i % 3),
		        .var = 0.0005};
	assert_int_equal(tw_change_search(p, 30, &tw_regress_defaults.shift, shifts), 2);
	assert_int_equal(shifts[0].day, 10);
	assert_int_equal(shifts[1].day, 20);
	assert_true(shifts[0].change > 0.4 && shifts[0].change < 0.6);
	assert_true(shifts[1].change < -0.25);
	for (size_t n = 0; n < 4; n++)
		assert_int_equal(tw_change_search(p + 8, n, &tw_regress_defaults.shift, shifts), 0);
}

static void test_few_traces_are_no_point(void **state)
{
	static struct tw_sketch some;
	const struct tw_sketch *days[2] = {&some, NULL};
	struct tw_change_level levels[2];
	struct tw_change_point p;

	(void)state;
	levels[0] = levels[1] = tw_change_level(&some, 50);
	assert_false(levels[0].known);
	assert_false(tw_change_point(days, levels, 2, 50, &p));
	for (int i = 0; i < 4; i++)
		tw_sketch_add(&some, 1000 + i);
	levels[0] = tw_change_level(&some, 50);
	assert_false(tw_change_point(days, levels, 2, 50, &p));
	tw_sketch_add(&some, 1000);
	assert_true(tw_change_point(days, levels, 2, 50, &p));
	assert_int_equal(p.n, 5);
	assert_false(tw_change_point(days, levels, 2, 95, &p));
}

static void refused(const char *text, const char *says)
{
	struct tw_regress_rules rules = tw_regress_defaults;
	json_t *doc = json_loads(text, JSON_DECODE_ANY, NULL);
	struct tw_err err;

	assert_int_equal(tw_regress_rules_read(doc, &rules, &err), TW_BAD_REQUEST);
	assert_non_null(strstr(err.msg, says));
	json_decref(doc);
}

static void test_rules(void **state)
{
	struct tw_regress_rules rules = tw_regress_defaults;
	json_t *doc = json_loads("{\"min_change\": 0.05, \"min_days\": 3}", 0, NULL);

	(void)state;
	assert_int_equal(tw_regress_rules_read(doc, &rules, NULL), TW_OK);
	assert_true(rules.shift.min_change == 0.05 && rules.shift.certainty == 4);
	assert_int_equal(rules.shift.min_days, 3);
	json_decref(doc);
	doc = tw_regress_rules_json(&rules);
	assert_int_equal(json_object_size(doc), 6);
	assert_int_equal(json_integer_value(json_object_get(doc, "window_days")), 28);
	json_decref(doc);
	refused("[]", "JSON object");
	refused("{\"speed\": 1}", "unknown rule speed");
	refused("{\"certainty\": 1}", "certainty is standard errors");
	refused("{\"min_days\": 1.5}", "whole number");
	refused("{\"min_change\": \"1\"}", "min_change");
	refused("{\"window_days\": 4, \"min_days\": 3}", "at least twice");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changed),
        cmocka_unit_test(test_a_version),
        cmocka_unit_test(test_a_version_that_is_mended),
        cmocka_unit_test(test_a_version_that_is_half_mended),
        cmocka_unit_test(test_later_versions_that_are_as_slow),
        cmocka_unit_test(test_a_fix_is_reported_in_time),
        cmocka_unit_test(test_a_day),
        cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_too_small_to_matter),
        cmocka_unit_test(test_up_and_down),
        cmocka_unit_test(test_few_traces_are_no_point),
        cmocka_unit_test(test_rules),
};

UNIT_TESTS_WITH("regress", tests, set_up, tear_down)
