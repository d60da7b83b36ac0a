/* Sums of ANRs and locks: the same bytes in any order and grouping, how many different ones within
 * the stated error, nothing believed that is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/stats/anr_rollup.h"
#include "tests/unit/unit.h"

static uint64_t mixed(uint64_t x)
{
	x = (x + UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9);
	return x ^ (x >> 29);
}

static void add(struct tw_arena *a, struct tw_anr_rollup *t, uint64_t i, int64_t users)
{
	static const unsigned masks[][2] = {{1, 1}, {3, 1}, {3, 2}, {8, 8}};
	const uint64_t random = mixed(i);
	char monitor[32], holder[32];
	struct tw_anr_rollup_one one = {.mask = masks[random % 4][0],
	        .bit = masks[random % 4][1],
	        .owned = random % 7 == 0,
	        .sum = {1, random % 5, 1, (int64_t)(random % 1000), (int64_t)(random % 50),
	                (int64_t)(random % 900) + 1, (int64_t)(random % 900) + 5, "", holder},
	        .monitor = monitor};

	(void)snprintf(holder, sizeof holder, "pool-%u", (unsigned)(random % 3));
	(void)snprintf(monitor, sizeof monitor, "com.app.Lock%u", (unsigned)(random % 40));
	(void)snprintf(one.sum.worst, sizeof one.sum.worst, "01T%023llu", (unsigned long long)i);
	one.sets[TW_ANR_ROLLUP_USERS] = tw_distinct_mix((int64_t)(mixed(i) % (uint64_t)users) + 1);
	one.sets[TW_ANR_ROLLUP_VERSIONS] = tw_distinct_hash(i % 3 ? "1.0" : "");
	assert_true(tw_anr_rollup_add(a, t, &one));
}

static void merge(struct tw_arena *a, struct tw_anr_rollup *into, struct tw_anr_rollup *from)
{
	struct tw_buf b;

	tw_buf_init(&b, 4 << 20);
	tw_anr_rollup_write(a, from, &b);
	assert_int_equal(tw_buf_status(&b), TW_OK);
	assert_int_equal(tw_anr_rollup_merge(a, into, b.data, b.len, NULL), TW_OK);
	tw_buf_done(&b);
}

static void assert_alike(struct tw_arena *a, struct tw_anr_rollup *x, struct tw_anr_rollup *y)
{
	struct tw_buf b, c;

	tw_buf_init(&b, 4 << 20);
	tw_buf_init(&c, 4 << 20);
	tw_anr_rollup_write(a, x, &b);
	tw_anr_rollup_write(a, y, &c);
	assert_int_equal(b.len, c.len);
	assert_memory_equal(b.data, c.data, b.len);
	tw_buf_done(&b);
	tw_buf_done(&c);
}

/* Few and very many users: the sets are whole, and bounded. */
static void test_any_order(void **state)
{
	static const uint64_t sizes[] = {0, 1, 300, 30000};

	(void)state;
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		const uint64_t n = sizes[k];
		struct tw_arena *a = tw_arena_new((size_t)256 << 20);
		struct tw_anr_rollup whole = {0}, parts[3] = {{0}}, back = {0};

		for (uint64_t i = 0; i < n; i++) {
			add(a, &whole, i, 20000);
			add(a, &parts[mixed(i + 5) % 3], i, 20000);
		}
		for (int i = 0; i < 3; i++)
			merge(a, &back, &parts[(i + 1) % 3]);
		assert_alike(a, &whole, &back);
		for (int i = 2; i > 0; i--) /* and one into the other */
			merge(a, &parts[i - 1], &parts[i]);
		assert_alike(a, &whole, &parts[0]);
		tw_arena_free(a);
	}
}

static void test_how_many(void **state)
{
	(void)state;
	for (int64_t users = 1; users <= 200000; users *= 7) {
		struct tw_arena *a = tw_arena_new((size_t)256 << 20);
		struct tw_anr_rollup days[4] = {{0}}, kept = {0};
		uint64_t reported;
		double off;

		for (int64_t i = 0; i < 2 * users; i++) { /* each twice, on two days */
			struct tw_anr_rollup_one one = {.mask = 1,
			        .bit = 1,
			        .sum = {.traces = 1, .holder = ""},
			        .monitor = ""};

			one.sets[TW_ANR_ROLLUP_USERS] = tw_distinct_mix(i % users + 1);
			assert_true(tw_anr_rollup_add(a, &days[i % 4], &one));
		}
		for (int d = 0; d < 4; d++)
			merge(a, &kept, &days[d]);
		reported = tw_distinct_count(&kept.parts->sets[TW_ANR_ROLLUP_USERS]);
		off = ((double)reported - (double)users) / (double)users;
		assert_true(off < 0.09 && off > -0.09); /* three times the standard error */
		if (users <= TW_ANR_ROLLUP_DISTINCT)
			assert_int_equal(reported, users);
		assert_int_equal(kept.parts->sum.traces, 2 * users);
		tw_arena_free(a);
	}
}

static void test_kinds(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_anr_rollup t = {0};
	struct tw_anr_rollup_one one = {.sum = {1, 2, 1, 10, 10, 5, 5, "01T", "h"}, .monitor = "M"};
	const struct tw_anr_rollup_part *p;

	(void)state;
	one.mask = 1 | 2; /* a trace with waits of two kinds, and one with one */
	one.bit = 1;
	assert_true(tw_anr_rollup_add(a, &t, &one));
	one.bit = 2;
	assert_true(tw_anr_rollup_add(a, &t, &one));
	one.mask = 2;
	assert_true(tw_anr_rollup_add(a, &t, &one));
	assert_int_equal(tw_anr_rollup_traces(&t, 1), 1);
	assert_int_equal(tw_anr_rollup_traces(&t, 2), 2);
	assert_int_equal(tw_anr_rollup_traces(&t, 1 | 2), 2);
	assert_int_equal(tw_anr_rollup_traces(&t, 4), 0);
	p = tw_anr_rollup_select(a, &t, 1 | 2);
	assert_int_equal(p->sum.traces, 2);
	assert_int_equal(p->sum.waits, 6);
	p = tw_anr_rollup_select(a, &t, 2);
	assert_int_equal(p->sum.waits, 4);
	p = tw_anr_rollup_select(a, &t, 4);
	assert_int_equal(p->mask, 0);
	tw_arena_free(a);
}

static void test_damage(void **state)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_anr_rollup t = {0};
	struct tw_buf b;

	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		add(a, &t, i, 9);
	tw_buf_init(&b, 1 << 20);
	tw_anr_rollup_write(a, &t, &b);
	for (size_t at = 0; at < b.len * 8; at++) { /* no bit makes it read beyond */
		uint8_t *copy = malloc(b.len);
		struct tw_anr_rollup bent = {0};

		memcpy(copy, b.data, b.len);
		copy[at / 8] ^= (uint8_t)(1 << at % 8);
		(void)!tw_anr_rollup_merge(a, &bent, copy, b.len, NULL);
		(void)!tw_anr_rollup_merge(a, &bent, copy, at / 8, NULL);
		free(copy);
		if (at % 64 == 0) {
			tw_arena_reset(a);
		}
	}
	tw_buf_done(&b);
	tw_arena_free(a);
}

static void test_no_memory(void **state)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_anr_rollup t = {0}, into = {0};
	struct tw_arena *small = tw_arena_new(4096);
	struct tw_buf b;

	(void)state;
	for (uint64_t i = 0; i < 3000; i++)
		add(a, &t, i, 3000);
	tw_buf_init(&b, 1 << 20);
	tw_anr_rollup_write(a, &t, &b);
	assert_int_equal(tw_anr_rollup_merge(small, &into, b.data, b.len, NULL), TW_TOO_LARGE);
	tw_buf_done(&b);
	tw_arena_free(small);
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("anr_rollup", tests)
