/*
 * What detectors found in traces: as bytes and back, damaged bytes, and sums that do not depend on
 * the order in which traces come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/fleet/found.h"
#include "tests/unit/unit.h"

enum { TRACES = 300, CAUSES = 40 };

static struct tw_found_rule rules[TW_DETECT_RULES_MAX];

static void make(struct tw_found *f, uint32_t seed)
{
	*f = (struct tw_found){seed % 7 == 0, seed % 3, rules, seed % 5, seed % 4, seed % 2,
	        seed % 3 ? 1000 * (int64_t)seed : 0, seed % 2 ? INT64_MAX : 0};
	for (uint32_t i = 0; i < f->n; i++) {
		rules[i] = (struct tw_found_rule){tw_str_of(i ? "json" : "io"), seed + 1,
		        1000 * (int64_t)seed, 900 * (int64_t)seed, 500 * (int64_t)seed,
		        1 + seed % TW_FOUND_CALLERS, {{0}}};
		for (uint32_t k = 0; k < rules[i].n; k++)
			rules[i].callers[k] = (struct tw_found_caller){
			        (uint64_t)(seed + k) % CAUSES * 0x100000001U, 1, seed, seed / 2};
	}
}

static void bytes_and_back(void **state)
{
	struct tw_found_rule room[TW_DETECT_RULES_MAX];
	struct tw_found was, is = {.rules = room};
	struct tw_buf out;

	(void)state;
	tw_buf_init(&out, 1 << 20);
	for (uint32_t seed = 0; seed < 50; seed++) {
		tw_buf_clear(&out);
		make(&was, seed);
		tw_found_write(&was, &out);
		assert_int_equal(tw_found_read(out.data, out.len, &is, NULL), TW_OK);
		assert_int_equal(is.n, was.n);
		assert_int_equal(is.partial, was.partial);
		assert_int_equal(is.frames, was.frames);
		assert_int_equal(is.slow_frames,
		        was.frames || was.initial_ns || was.full_ns ? was.slow_frames : 0);
		assert_int_equal(is.frozen_frames,
		        was.frames || was.initial_ns || was.full_ns ? was.frozen_frames : 0);
		assert_int_equal(is.initial_ns, was.initial_ns);
		assert_int_equal(is.full_ns, was.full_ns);
		for (uint32_t i = 0; i < is.n; i++) {
			assert_true(tw_str_eq(is.rules[i].id, was.rules[i].id));
			assert_int_equal(is.rules[i].main_ns, was.rules[i].main_ns);
			assert_int_equal(is.rules[i].n, was.rules[i].n);
			assert_memory_equal(is.rules[i].callers, was.rules[i].callers,
			        is.rules[i].n * sizeof *is.rules[i].callers);
		}
	}
	tw_buf_done(&out);
}

/* Cut anywhere or changed anywhere: refused, or other numbers; never read beyond. */
static void damage_is_refused(void **state)
{
	struct tw_found_rule room[TW_DETECT_RULES_MAX];
	struct tw_found f = {.rules = room};
	unsigned refused = 0;
	struct tw_buf out;

	(void)state;
	tw_buf_init(&out, 1 << 20);
	make(&f, 23);
	tw_found_write(&f, &out);
	f.rules = room;
	for (size_t cut = 0; cut < out.len; cut++) {
		uint8_t *copy = malloc(cut + 1);

		assert_non_null(copy);
		memcpy(copy, out.data, cut);
		refused += tw_found_read(copy, cut, &f, NULL) == TW_CORRUPT;
		free(copy);
	}
	assert_true(refused > out.len - 4);
	for (size_t i = 0; i < out.len; i++) {
		out.data[i] ^= 0xFF;
		(void)!tw_found_read(out.data, out.len, &f, NULL);
		assert_true(f.n <= TW_DETECT_RULES_MAX);
		out.data[i] ^= 0xFF;
	}
	tw_buf_done(&out);
}

static struct tw_found_sums *sums_of(
        struct tw_arena *a, const struct tw_detect_rules *of, uint32_t from, uint32_t step)
{
	struct tw_found_sums *s = tw_arena_zalloc(a, 1, sizeof *s);
	struct tw_found f;
	char id[TW_ROLLUP_ID + 1];

	assert_non_null(s);
	s->arena = a;
	s->of = of;
	for (uint32_t i = 0; i < TRACES; i++) {
		uint32_t seed = (from + i * step) % TRACES;

		make(&f, seed);
		(void)snprintf(id, sizeof id, "%026u", seed);
		assert_int_equal(tw_found_add(s, id, &f, NULL), TW_OK);
	}
	return s;
}

static struct tw_found_sum cause(const struct tw_found_sums *s, uint32_t rule, uint64_t method)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->causes[i].rule == rule && s->causes[i].method == method)
			return s->causes[i].sum;
	return (struct tw_found_sum){.traces = 0};
}

static void sums_are_of_the_traces(void **state)
{
	struct tw_detect_rules *of = calloc(1, sizeof *of + 2 * sizeof *of->rules);
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_found_sums *s, *other;
	int64_t ns = 0, found = 0;

	(void)state;
	assert_non_null(of);
	of->n = 1;
	of->rules[0].id = "json"; /* the findings of io are from a rule that was removed */
	s = sums_of(a, of, 0, 1);
	other = sums_of(a, of, 77, 7);
	for (int64_t seed = 2; seed < TRACES; seed += 3) {
		ns += 1000 * seed;
		found += seed + 1;
	}
	assert_int_equal(s->traces, TRACES);
	assert_int_equal(s->partial, (TRACES + 6) / 7);
	assert_int_equal(s->rules[0].traces, TRACES / 3);
	assert_int_equal(s->rules[0].ns, ns);
	assert_int_equal(s->rules[0].found, found);
	assert_int_equal(s->rules[0].worst[0].ns, 299000);
	assert_string_equal(s->rules[0].worst[1].trace_id, "00000000000000000000000296");
	assert_int_equal(s->rules[1].traces, 0);
	assert_int_equal(s->n, CAUSES);
	assert_memory_equal(&s->rules[0], &other->rules[0], sizeof s->rules[0]);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct tw_found_sum one = cause(other, 0, s->causes[i].method);

		assert_int_equal(s->causes[i].sum.traces, one.traces);
		assert_int_equal(s->causes[i].sum.ns, one.ns);
		assert_int_equal(s->causes[i].sum.worst[0].ns, one.worst[0].ns);
	}
	tw_arena_free(a);
	free(of);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_back),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(sums_are_of_the_traces),
};

UNIT_TESTS("found", tests)
