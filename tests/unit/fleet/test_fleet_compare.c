/* Simulated versions whose truth is known: another mix of scenarios and devices is not a change,
 * and a change in one scenario is found with its size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/fleet/fleet_compare.h"
#include "tests/unit/unit.h"

enum { SCENARIOS = 4, CLASSES = 3, METHODS = 12, RUNS = 200, SLOWED = 2 };

static const char *const scenarios[SCENARIOS] = {"cold_start", "feed_scroll", "search", "checkout"};
static const char *const classes[CLASSES] = {"low", "mid", "high"};

struct sim {
	unsigned traces[TW_SIDES][SCENARIOS][CLASSES];
	double slower;  /* 0.3: method SLOWED takes 30 % longer in B */
	int only;       /* in this scenario; -1: in all */
	double present; /* share of the traces of a scenario that have a method */
	double spread;  /* of the logarithm */
};

static uint64_t seed;
static struct tw_arena *arena;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)((seed >> 11) + 1) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Scenarios differ by up to eight times and devices by up to two; every third method exists in one
 * scenario only. */
static double level(unsigned method, unsigned scenario, unsigned class)
{
	if (method % 3 == 0 && scenario != method / 3 % SCENARIOS)
		return 0;
	return 1e6 * (1 + method) * (double)(1U << scenario) * (2 - 0.5 * class);
}

static struct tw_str trace_of(const struct sim *s, int side, unsigned scenario, unsigned class)
{
	struct tw_rollup_fact facts[METHODS];
	struct tw_str ret;
	struct tw_buf buf;
	size_t n = 0;

	tw_buf_init(&buf, 4096);
	for (unsigned m = 0; m < METHODS; m++) {
		const bool slowed = side == TW_SIDE_B && m == SLOWED &&
		                    (s->only < 0 || s->only == (int)scenario);
		const double at = level(m, scenario, class) * (slowed ? 1 + s->slower : 1) *
		                  exp(s->spread * normal());

		if (at > 0 && uniform() <= s->present)
			facts[n++] = (struct tw_rollup_fact){.method = m + 1,
			        .count = 1,
			        .total_ns = (int64_t)at,
			        .self_ns = (int64_t)at,
			        .sum_ns = (int64_t)at,
			        .cpu_ns = -1};
	}
	tw_rollup_write_facts(facts, n, &buf);
	ret = (struct tw_str){
	        tw_arena_str(arena, (struct tw_str){(const char *)buf.data, buf.len}), buf.len};
	tw_buf_done(&buf);
	return ret;
}

static const struct tw_rollup_naming *names_of(const struct tw_rollup *r)
{
	struct tw_rollup_naming *names = tw_arena_zalloc(arena, r->n + 1, sizeof *names);

	for (uint32_t i = 0; i < r->n; i++)
		names[i] = (struct tw_rollup_naming){.id = r->methods[i].id,
		        .name = tw_arena_printf(arena, "m%02u", (unsigned)r->methods[i].id - 1),
		        .build_id = "",
		        .mapping_id = "",
		        .raw = "",
		        .descriptor = "",
		        .named = true};
	return names;
}

struct made {
	struct tw_fleet_cells sides[TW_SIDES];
	struct tw_rollup rollups[TW_SIDES][SCENARIOS][CLASSES];
};

static struct made make(const struct sim *s)
{
	struct made made = {0};

	tw_arena_reset(arena);
	for (int side = 0; side < TW_SIDES; side++) {
		struct tw_fleet_cells *to = &made.sides[side];

		to->list = tw_arena_alloc(arena, SCENARIOS * CLASSES, sizeof *to->list);
		for (unsigned k = 0; k < SCENARIOS * CLASSES; k++) {
			const unsigned scenario = k / CLASSES, class = k % CLASSES;
			struct tw_rollup_cell *cell = tw_arena_zalloc(arena, 1, sizeof *cell);
			struct tw_rollup *r = &made.rollups[side][scenario][class];

			*r = (struct tw_rollup){.arena = arena,
			        .metrics = 1U << TW_ROLLUP_SELF | 1U << TW_ROLLUP_WALL |
			                   1U << TW_ROLLUP_CALLS};
			cell->traces = s->traces[side][scenario][class];
			cell->dims = (struct tw_rollup_dims){
			        .scenario = scenarios[scenario], .device_class = classes[class]};
			for (unsigned i = 0; i < cell->traces; i++) {
				const struct tw_str facts = trace_of(s, side, scenario, class);

				assert_int_equal(
				        tw_rollup_add_facts(r, "01JD0000000000000000000000",
				                (const uint8_t *)facts.ptr, facts.len, NULL),
				        TW_OK);
			}
			if (cell->traces)
				to->list[to->n++] = cell;
			to->traces += cell->traces;
		}
	}
	return made;
}

static size_t index_of(const char *const *list, const char *text)
{
	size_t i = 0;

	while (strcmp(list[i], text) != 0)
		i++;
	return i;
}

struct result {
	struct tw_mix mix;
	struct tw_compared_method *methods;
	size_t n;
};

static enum tw_status compare_methods(const struct made *made, struct result *io)
{
	struct tw_stratum_rollup *r = tw_arena_zalloc(arena, io->mix.n + 1, sizeof *r);

	for (size_t k = 0; k < TW_SIDES * io->mix.n; k++) {
		const struct tw_stratum *s = &io->mix.strata[k / TW_SIDES];
		struct tw_stratum_rollup *to = &r[k / TW_SIDES];

		to->of[k % TW_SIDES] = made->rollups[k % TW_SIDES][index_of(scenarios, s->scenario)]
		                                    [index_of(classes, s->device_class)];
		to->names[k % TW_SIDES] = names_of(&to->of[k % TW_SIDES]);
	}
	return tw_fleet_compare_methods(&io->mix, r, arena, &io->methods, &io->n, NULL);
}

static struct result compare(const struct made *made, const char *scenario)
{
	struct result ret = {0};

	assert_int_equal(tw_fleet_mix(made->sides, scenario, true, arena, &ret.mix, NULL), TW_OK);
	assert_int_equal(compare_methods(made, &ret), TW_OK);
	return ret;
}

static const struct tw_compared_method *find(const struct result *r, unsigned method)
{
	char name[8];

	(void)snprintf(name, sizeof name, "m%02u", method);
	for (size_t i = 0; i < r->n; i++)
		if (tw_str_eq(r->methods[i].name, tw_str_of(name)))
			return &r->methods[i];
	return NULL;
}

/* A has mostly the first scenario and slow devices, B mostly the last and fast devices. */
static struct sim another_mix(unsigned least, unsigned step)
{
	struct sim s = {.only = -1, .present = 1, .spread = 0.4};

	for (unsigned i = 0; i < SCENARIOS; i++)
		for (unsigned k = 0; k < CLASSES; k++) {
			s.traces[TW_SIDE_A][i][k] =
			        least + step * (SCENARIOS - 1 - i) + step * (CLASSES - 1 - k);
			s.traces[TW_SIDE_B][i][k] = least + step * i + step * k;
		}
	return s;
}

/* Shares of methods with p < 0.05, and of comparisons that call a change significant. */
struct rates {
	double below, any;
};

static struct rates false_positives(const struct sim *s)
{
	size_t tests = 0, below = 0, any = 0;

	for (unsigned run = 0; run < RUNS; run++) {
		const struct made made = make(s);
		const struct result r = compare(&made, NULL);
		bool sure = false;

		for (size_t i = 0; i < r.n; i++) {
			tests++;
			below += r.methods[i].p < 0.05;
			sure = sure || r.methods[i].sure;
		}
		any += sure;
	}
	return (struct rates){(double)below / (double)tests, (double)any / RUNS};
}

/* Simpson's paradox, with many and few traces, rare methods, and a wide spread. */
static void test_another_mix_is_not_a_change(void **state)
{
	static const struct {
		unsigned least, step;
		double present, spread;
	} cases[] = {{20, 20, 1, 0.4}, {3, 5, 1, 0.4}, {1, 1, 1, 0.4}, {20, 20, 0.1, 0.4},
	        {3, 5, 0.1, 0.4}, {1, 2, 0.2, 0.4}, {3, 5, 1, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sim s = another_mix(cases[i].least, cases[i].step);
		struct rates rates;

		s.present = cases[i].present;
		s.spread = cases[i].spread;
		seed = 7 + i;
		rates = false_positives(&s);
		assert_true(rates.below <= 0.055);
		assert_true(rates.any <= 0.07);
	}
}

/* The same traces, each side with its own mix. */
static void test_without_weights_it_looks_like_one(void **state)
{
	const struct sim s = another_mix(20, 20);
	unsigned any = 0;

	(void)state;
	seed = 7;
	for (unsigned run = 0; run < RUNS / 10; run++) {
		const struct made made = make(&s);
		struct result r = compare(&made, NULL);

		for (int side = 0; side < TW_SIDES; side++)
			for (size_t k = 0; k < r.mix.n; k++)
				r.mix.strata[k].weight[side] =
				        (double)r.mix.strata[k].of[side].traces /
				        (double)r.mix.traces[side];
		assert_int_equal(compare_methods(&made, &r), TW_OK);
		any += find(&r, 1)->sure;
	}
	assert_int_equal(any, RUNS / 10);
}

/* Found among the other scenarios about as often as in its own, and named with its size. */
static void test_a_change_in_one_scenario(void **state)
{
	struct sim s = another_mix(60, 0);
	unsigned mixed = 0, alone = 0, named = 0;
	double change = 0;

	(void)state;
	s.only = 1;
	s.slower = 0.3;
	seed = 99;
	for (unsigned run = 0; run < RUNS; run++) {
		const struct made made = make(&s);
		const struct result all = compare(&made, NULL), one = compare(&made, scenarios[1]);
		const struct tw_compared_method *a = find(&all, SLOWED), *b = find(&one, SLOWED);

		mixed += a->sure;
		alone += b->sure;
		if (!a->scenario || strcmp(a->scenario, scenarios[1]) != 0)
			continue;
		named++;
		change += a->in.of[TW_SIDE_B] / a->in.of[TW_SIDE_A] - 1;
		assert_true(fabs(a->in.of[TW_SIDE_A] / b->self.of[TW_SIDE_A] - 1) < 1e-9);
		assert_true(fabs(a->in.error / b->self.error - 1) < 1e-9);
	}
	assert_true(alone >= RUNS * 95 / 100);
	assert_true(mixed >= RUNS * 90 / 100);
	assert_true(named >= RUNS * 95 / 100);
	assert_true(fabs(change / named - 0.3) < 0.03);
}

/* A method of one scenario has the same p and the same relative change as in that scenario alone.
 */
static void test_a_method_of_one_scenario(void **state)
{
	const struct sim s = another_mix(10, 10);
	struct made made;
	struct result all, one;
	const struct tw_compared_method *a, *b;

	(void)state;
	seed = 5;
	made = make(&s);
	all = compare(&made, NULL);
	one = compare(&made, scenarios[1]);
	a = find(&all, 3);
	b = find(&one, 3);
	assert_string_equal(a->scenario, scenarios[1]);
	assert_null(b->scenario);
	assert_true(fabs(a->p - b->p) < 1e-9);
	assert_true(fabs(a->self.of[TW_SIDE_B] / a->self.of[TW_SIDE_A] -
	                    b->self.of[TW_SIDE_B] / b->self.of[TW_SIDE_A]) < 1e-9);
}

/* A change in all scenarios belongs to none of them. */
static void test_a_change_in_all_scenarios(void **state)
{
	struct sim s = another_mix(30, 5);
	struct made made;
	struct result all;

	(void)state;
	s.slower = 0.3;
	seed = 3;
	made = make(&s);
	all = compare(&made, NULL);
	assert_true(find(&all, SLOWED)->sure);
	assert_null(find(&all, SLOWED)->scenario);
}

static struct tw_mix mix_of(const struct sim *s)
{
	const struct made made = make(s);
	struct tw_mix mix;

	assert_int_equal(tw_fleet_mix(made.sides, NULL, true, arena, &mix, NULL), TW_OK);
	return mix;
}

static void test_what_is_on_one_side_is_left_out(void **state)
{
	struct sim s = {.only = -1, .present = 1, .spread = 0.1};
	struct tw_mix mix;

	(void)state;
	seed = 1;
	s.traces[TW_SIDE_A][0][0] = 30;
	s.traces[TW_SIDE_A][1][0] = 10;
	s.traces[TW_SIDE_A][2][0] = 7;
	s.traces[TW_SIDE_B][0][0] = 5;
	s.traces[TW_SIDE_B][1][0] = 50;
	s.traces[TW_SIDE_B][1][2] = 3;
	mix = mix_of(&s);
	assert_true(mix.corrected);
	assert_int_equal(mix.n, 4);
	assert_int_equal(mix.all[TW_SIDE_A], 47);
	assert_int_equal(mix.traces[TW_SIDE_A], 40);
	assert_int_equal(mix.traces[TW_SIDE_B], 55);
	assert_string_equal(mix.note,
	        "7 traces of A and 3 of B are excluded: their scenarios and device "
	        "classes are not on both sides.");
	for (size_t k = 0; k < mix.n; k++) {
		const struct tw_stratum *one = &mix.strata[k];
		const double weight = one->left_out                              ? 0
		                      : strcmp(one->scenario, scenarios[0]) == 0 ? 0.75
		                                                                 : 0.25;

		assert_true(one->weight[TW_SIDE_A] == weight && one->weight[TW_SIDE_B] == weight);
	}
}

static void test_strata_beyond_the_limit_are_left_out(void **state)
{
	enum { MANY = TW_STRATA_MAX + 2 };
	const struct tw_rollup_cell *lists[TW_SIDES][MANY];
	struct tw_fleet_cells sides[TW_SIDES];
	struct tw_mix mix;
	struct tw_err err;

	(void)state;
	tw_arena_reset(arena);
	for (int side = 0; side < TW_SIDES; side++) {
		for (unsigned i = 0; i < MANY; i++) {
			struct tw_rollup_cell *cell = tw_arena_zalloc(arena, 1, sizeof *cell);

			cell->traces = 10 + i;
			cell->dims.scenario = tw_arena_printf(arena, "s%03u", i);
			cell->dims.device_class = "low";
			lists[side][i] = cell;
		}
		sides[side] = (struct tw_fleet_cells){.list = lists[side], .n = MANY};
	}
	assert_int_equal(tw_fleet_mix(sides, NULL, true, arena, &mix, &err), TW_OK);
	assert_string_equal(mix.note,
	        "21 traces of A and 21 of B are excluded: their scenarios and device classes are "
	        "not on both sides, or not among the 100 with the most traces on both.");
}

static void test_nothing_in_common(void **state)
{
	struct sim s = {.only = -1, .present = 1, .spread = 0.1};
	struct tw_mix mix;

	(void)state;
	seed = 1;
	s.traces[TW_SIDE_A][0][0] = s.traces[TW_SIDE_B][0][1] = 20;
	mix = mix_of(&s);
	assert_true(mix.corrected);
	assert_null(mix.strata[0].device_class);
	assert_non_null(strstr(mix.note, "no device class in common"));
	s.traces[TW_SIDE_B][0][1] = 0;
	s.traces[TW_SIDE_B][1][0] = 20;
	mix = mix_of(&s);
	assert_true(mix.corrected);
	assert_null(mix.strata[0].scenario);
	assert_non_null(strstr(mix.note, "no scenario in common"));
	s.traces[TW_SIDE_B][1][0] = 0;
	s.traces[TW_SIDE_B][1][1] = 20;
	mix = mix_of(&s);
	assert_false(mix.corrected);
	assert_int_equal(mix.traces[TW_SIDE_A] + mix.traces[TW_SIDE_B], 40);
	assert_non_null(strstr(mix.note, "neither"));
}

/* The first stratum, on one side only, has far larger values. */
static void test_values_of_a_method(void **state)
{
	struct sim s = {.only = -1, .present = 1, .spread = 0};
	struct tw_compared_stat stats[TW_COMPARE_STATS];
	struct tw_stratum_values *values;
	struct made made;
	struct result r;

	(void)state;
	seed = 1;
	s.traces[TW_SIDE_A][3][0] = 50;
	s.traces[TW_SIDE_A][0][0] = s.traces[TW_SIDE_B][0][0] = 30;
	s.traces[TW_SIDE_A][2][1] = s.traces[TW_SIDE_B][2][1] = 20;
	made = make(&s);
	r = compare(&made, NULL);
	assert_true(r.mix.strata[0].left_out);
	assert_int_equal(r.mix.compared, 2);
	values = tw_arena_zalloc(arena, r.mix.compared, sizeof *values);
	assert_int_equal(tw_compared_values(&r.mix, find(&r, 1), values, NULL), TW_OK);
	assert_int_equal(tw_fleet_compare_stats(&r.mix, values, arena, stats, NULL), TW_OK);
	for (int side = 0; side < TW_SIDES; side++) {
		const double want = 0.6 * level(1, 0, 0) + 0.4 * level(1, 2, 1);

		assert_true(fabs(stats[TW_COMPARE_MEAN].of[side] / want - 1) < 0.02);
	}
	tw_work_limit_set((struct tw_work_limit){.until_ms = 1});
	assert_int_equal(tw_fleet_compare_stats(&r.mix, values, arena, stats, NULL), TW_DEADLINE);
	assert_int_equal(compare_methods(&made, &r), TW_DEADLINE);
	tw_work_limit_set((struct tw_work_limit){0});
}

static int set_up(void **state)
{
	(void)state;
	arena = tw_arena_new((size_t)256 << 20);
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	arena = tw_arena_free(arena);
	return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_mix_is_not_a_change),
        cmocka_unit_test(test_without_weights_it_looks_like_one),
        cmocka_unit_test(test_a_change_in_one_scenario),
        cmocka_unit_test(test_a_method_of_one_scenario),
        cmocka_unit_test(test_a_change_in_all_scenarios),
        cmocka_unit_test(test_what_is_on_one_side_is_left_out),
        cmocka_unit_test(test_strata_beyond_the_limit_are_left_out),
        cmocka_unit_test(test_nothing_in_common),
        cmocka_unit_test(test_values_of_a_method),
};
UNIT_TESTS_WITH("fleet_compare", tests, set_up, tear_down)
