/* Sketches and their sums: quantiles within the stated error, the same bytes in any order and
 * grouping, damaged input refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/stats/rollup.h"
#include "tests/unit/unit.h"

static struct tw_sketch one, two, three;

static uint64_t mixed(uint64_t x)
{
	x += UINT64_C(0x9E3779B97F4A7C15);
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	return x ^ (x >> 27);
}

static int by_value(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

	return a < b ? -1 : a > b;
}

static bool written_alike(const struct tw_sketch *a, const struct tw_sketch *b)
{
	struct tw_buf x, y;
	bool same;

	tw_buf_init(&x, 1 << 20);
	tw_buf_init(&y, 1 << 20);
	tw_sketch_write(a, &x);
	tw_sketch_write(b, &y);
	same = x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
	tw_buf_done(&x);
	tw_buf_done(&y);
	return same;
}

static void test_quantiles(void **state)
{
	enum { N = 5000 };
	static int64_t values[N];
	static const unsigned percents[] = {1, 50, 75, 95, 99, 100};

	(void)state;
	for (unsigned spread = 1; spread < 60; spread += 7) {
		tw_sketch_clear(&one);
		for (uint64_t i = 0; i < N; i++) {
			values[i] = (int64_t)(mixed(i + spread) >> (63 - mixed(i) % (spread + 1)));
			tw_sketch_add(&one, values[i]);
		}
		qsort(values, N, sizeof *values, by_value);
		for (size_t k = 0; k < sizeof percents / sizeof *percents; k++) {
			int64_t truth = values[(N * percents[k] + 99) / 100 - 1];
			int64_t reported = tw_sketch_quantile(&one, percents[k]);
			double off = truth ? ((double)reported - (double)truth) / (double)truth : 0;

			assert_true(off <= TW_SKETCH_ERROR && off >= -TW_SKETCH_ERROR);
		}
		assert_int_equal(one.min, values[0]);
		assert_int_equal(one.max, values[N - 1]);
	}
}

static void test_few(void **state)
{
	(void)state;
	tw_sketch_clear(&one);
	assert_int_equal(tw_sketch_quantile(&one, 50), 0);
	assert_int_equal(tw_sketch_mean(&one), 0);
	tw_sketch_add(&one, -5); /* counts as 0 */
	tw_sketch_add(&one, 1000003);
	assert_int_equal(tw_sketch_quantile(&one, 50), 0);
	assert_int_equal(tw_sketch_quantile(&one, 51), 1000003); /* not beyond the greatest */
	assert_int_equal(one.sum, 1000003);
	tw_sketch_clear(&one);
	tw_sketch_add(&one, INT64_MAX);
	tw_sketch_add(&one, INT64_MAX);
	assert_int_equal(one.sum, INT64_MAX);
	assert_int_equal(tw_sketch_quantile(&one, 100), INT64_MAX);
}

static void add_range(struct tw_sketch *s, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		tw_sketch_add(s, (int64_t)(mixed(i) >> (20 + i % 40)));
}

static void merge(struct tw_sketch *into, const struct tw_sketch *s)
{
	struct tw_buf b;
	const uint8_t *p;

	tw_buf_init(&b, 1 << 20);
	tw_sketch_write(s, &b);
	p = b.data;
	assert_true(tw_sketch_merge(into, &p, b.data + b.len));
	assert_ptr_equal(p, b.data + b.len);
	tw_buf_done(&b);
}

static void test_any_order(void **state)
{
	(void)state;
	for (uint64_t cut = 0; cut <= 300; cut += 50) {
		tw_sketch_clear(&one);
		tw_sketch_clear(&two);
		tw_sketch_clear(&three);
		add_range(&one, 0, 300);
		add_range(&three, 0, cut);
		merge(&two, &three); /* one of nothing, too */
		tw_sketch_clear(&three);
		add_range(&three, cut, 300);
		merge(&two, &three);
		assert_true(written_alike(&one, &two));
		tw_sketch_clear(&two);
		merge(&two, &three);
		tw_sketch_clear(&three);
		add_range(&three, 0, cut);
		merge(&two, &three);
		assert_true(written_alike(&one, &two));
	}
}

/* Counts of each width, with stretches between them; and as it was written before. */
static void test_many_of_one_size(void **state)
{
	static const unsigned doubled[] = {0, 3, 9, 20, 40, 62};
	struct tw_buf b;
	const uint8_t *p;

	(void)state;
	for (size_t k = 0; k < sizeof doubled / sizeof *doubled; k++) {
		tw_sketch_clear(&one);
		for (int64_t i = 0; i < 60; i++)
			tw_sketch_add(&one, (i % 3 + 1) * (INT64_C(1) << i % 40));
		for (unsigned i = 0; i < doubled[k] && one.n < UINT64_MAX / 2; i++) {
			memcpy(&three, &one, sizeof one);
			tw_sketch_add_all(&one, &three);
			if (i % 2)
				tw_sketch_add(&one, 1 << 30);
		}
		tw_sketch_clear(&two);
		merge(&two, &one);
		assert_memory_equal(one.counts, two.counts, sizeof one.counts);
		assert_int_equal(one.first, two.first);
		assert_int_equal(one.last, two.last);
		assert_true(one.n == two.n && one.sum == two.sum && one.max == two.max);
		tw_buf_init(&b, 1 << 20);
		tw_sketch_write_pairs(&one, &b);
		tw_sketch_clear(&two);
		p = b.data;
		assert_true(tw_sketch_merge(&two, &p, b.data + b.len));
		assert_true(written_alike(&one, &two));
		tw_buf_done(&b);
	}
}

static void test_damage(void **state)
{
	struct tw_buf b;
	const uint8_t *p;
	uint8_t *copy;

	(void)state;
	tw_sketch_clear(&one);
	add_range(&one, 0, 100);
	tw_buf_init(&b, 1 << 20);
	tw_sketch_write(&one, &b);
	for (size_t n = 0; n < b.len; n++) { /* cut anywhere */
		copy = malloc(n ? n : 1);
		memcpy(copy, b.data, n);
		p = copy;
		memset(&two, 0, sizeof two);
		assert_false(tw_sketch_merge(&two, &p, copy + n));
		free(copy);
	}
	for (size_t at = 0; at < b.len * 8; at++) { /* no bit makes it read beyond */
		copy = malloc(b.len);
		memcpy(copy, b.data, b.len);
		copy[at / 8] ^= (uint8_t)(1 << at % 8);
		p = copy;
		memset(&two, 0, sizeof two);
		(void)!tw_sketch_merge(&two, &p, copy + b.len);
		free(copy);
	}
	tw_buf_done(&b);
}

/* --- methods of traces --- */

enum { TRACES = 40, METHODS = 30 };

static void make_facts(uint64_t trace, struct tw_buf *out)
{
	struct tw_rollup_fact facts[METHODS];
	size_t n = 0;

	for (uint64_t m = 0; m < METHODS; m++) {
		int64_t self = (int64_t)(mixed(trace * 100 + m) % 1000000);

		if (mixed(trace + m * 7) % 4)
			facts[n++] = (struct tw_rollup_fact){
			        mixed(m), 1 + m, self * 2, self, self * 2, m % 3 ? self : -1, 0};
	}
	n = tw_rollup_bound(facts, n);
	tw_buf_init(out, 1 << 16);
	tw_rollup_write_facts(facts, n, out);
}

static void write_parts(struct tw_rollup *r, struct tw_buf parts[TW_ROLLUP_METRICS])
{
	for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++) {
		tw_buf_init(&parts[m], 1 << 20);
		assert_int_equal(tw_rollup_write_part(r, m, &one, &parts[m], NULL), TW_OK);
	}
}

static void add_trace(struct tw_rollup *r, const struct tw_buf *facts, uint64_t trace)
{
	const char *id = tw_arena_printf(r->arena, "01T%023llu", (unsigned long long)trace);

	assert_int_equal(tw_rollup_add_facts(r, id, facts->data, facts->len, NULL), TW_OK);
}

static void test_parts_in_any_grouping(void **state)
{
	struct tw_buf facts[TRACES], whole[TW_ROLLUP_METRICS], first[TW_ROLLUP_METRICS],
	        again[TW_ROLLUP_METRICS];

	(void)state;
	for (uint64_t i = 0; i < TRACES; i++)
		make_facts(i, &facts[i]);
	tw_sketch_clear(&one);
	for (unsigned cut = 0; cut <= TRACES; cut += 8) {
		struct tw_arena *a = tw_arena_new(64 << 20);
		struct tw_rollup all = {.arena = a, .metrics = TW_ROLLUP_ALL};
		struct tw_rollup some = all, rest = all;

		for (unsigned i = 0; i < TRACES; i++)
			add_trace(&all, &facts[i], i);
		write_parts(&all, whole);
		for (unsigned i = 0; i < cut; i++)
			add_trace(&some, &facts[i], i);
		write_parts(&some, first);
		for (unsigned i = TRACES; i-- > cut;) /* backwards, and the parts last */
			add_trace(&rest, &facts[i], i);
		for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++)
			assert_int_equal(
			        tw_rollup_add_part(&rest, m, first[m].data, first[m].len, NULL),
			        TW_OK);
		write_parts(&rest, again);
		for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++) {
			assert_int_equal(whole[m].len, again[m].len);
			assert_memory_equal(whole[m].data, again[m].data, whole[m].len);
			tw_buf_done(&whole[m]);
			tw_buf_done(&first[m]);
			tw_buf_done(&again[m]);
		}
		tw_arena_free(a);
	}
	for (unsigned i = 0; i < TRACES; i++)
		tw_buf_done(&facts[i]);
}

static void test_many_methods(void **state)
{
	enum { N = TW_ROLLUP_METHODS_MAX + 100 };
	struct tw_rollup_fact *facts = calloc(N, sizeof *facts);
	int64_t before = 0, after = 0;
	size_t n;

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		facts[i] = (struct tw_rollup_fact){mixed(i), 1, 10 + i, 5 + i, 10 + i, -1, i};
		before += facts[i].self_ns;
	}
	assert_int_equal(tw_rollup_bound(facts, TW_ROLLUP_METHODS_MAX), TW_ROLLUP_METHODS_MAX);
	n = tw_rollup_bound(facts, N);
	assert_int_equal(n, TW_ROLLUP_METHODS_MAX);
	for (size_t i = 0; i < n; i++)
		after += facts[i].self_ns;
	assert_int_equal(before, after); /* nothing is lost */
	assert_int_equal(facts[0].method, TW_ROLLUP_OTHER);
	assert_int_equal(facts[0].count, 101);
	free(facts);
}

static void test_damaged_parts(void **state)
{
	struct tw_buf facts, parts[TW_ROLLUP_METRICS];
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_rollup r = {.arena = a, .metrics = TW_ROLLUP_ALL};

	(void)state;
	make_facts(1, &facts);
	add_trace(&r, &facts, 1);
	write_parts(&r, parts);
	for (size_t n = 0; n < facts.len; n++) {
		struct tw_rollup cut = {.arena = a, .metrics = TW_ROLLUP_ALL};

		assert_int_equal(tw_rollup_add_facts(
		                         &cut, "01T00000000000000000000000", facts.data, n, NULL),
		        TW_CORRUPT);
		tw_arena_reset(a);
	}
	for (size_t at = 0; at < parts[0].len * 8; at++) {
		struct tw_rollup bent = {.arena = a, .metrics = TW_ROLLUP_ALL};
		struct tw_buf out;

		parts[0].data[at / 8] ^= (uint8_t)(1 << at % 8);
		tw_buf_init(&out, 1 << 20);
		if (tw_rollup_add_part(&bent, 0, parts[0].data, parts[0].len, NULL) == TW_OK)
			(void)!tw_rollup_write_part(&bent, 0, &one, &out, NULL);
		memset(&one, 0, sizeof one);
		tw_buf_done(&out);
		parts[0].data[at / 8] ^= (uint8_t)(1 << at % 8);
		tw_arena_reset(a);
	}
	tw_buf_done(&facts);
	for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++)
		tw_buf_done(&parts[m]);
	tw_arena_free(a);
}

static void test_exemplars(void **state)
{
	static struct tw_rollup_head h, g;
	struct tw_buf b;

	(void)state;
	assert_null(tw_rollup_head_exemplar(&h, 5));
	for (int i = 1; i <= 100; i++) {
		char id[TW_ROLLUP_ID + 1];

		(void)snprintf(id, sizeof id, "01L%023d", i);
		tw_rollup_head_add(&h, id, (int64_t)i * 1000000);
	}
	tw_buf_init(&b, 1 << 20);
	tw_rollup_head_write(&h, &b);
	assert_int_equal(tw_rollup_head_merge(&g, b.data, b.len, NULL), TW_OK);
	assert_memory_equal(tw_rollup_head_exemplar(&g, g.lengths.max),
	        tw_rollup_head_exemplar(&h, h.lengths.max), TW_ROLLUP_ID);
	/* 50 ms: its bucket reaches from 49.8 to 50.9 */
	assert_memory_equal(tw_rollup_head_exemplar(&g, tw_sketch_quantile(&g.lengths, 50)),
	        "01L00000000000000000000050", TW_ROLLUP_ID);
	for (size_t n = 1; n < b.len; n++) {
		memset(&g, 0, sizeof g);
		assert_int_equal(tw_rollup_head_merge(&g, b.data, n, NULL), TW_CORRUPT);
	}
	tw_buf_done(&b);
}

/* Times that an input chose may be as large as there are: they are read back, not taken for damage.
 */
static void test_the_largest_facts(void **state)
{
	struct tw_rollup_fact fact = {.method = 7,
	        .count = UINT64_MAX,
	        .total_ns = INT64_MAX,
	        .self_ns = INT64_MAX,
	        .sum_ns = INT64_MAX,
	        .cpu_ns = INT64_MAX};
	struct tw_rollup r = {.arena = tw_arena_new(1 << 20), .metrics = ~0U};
	struct tw_buf out;

	(void)state;
	tw_buf_init(&out, 1 << 16);
	tw_rollup_write_facts(&fact, 1, &out);
	assert_int_equal(
	        tw_rollup_add_facts(&r, "01J00000000000000000000000", out.data, out.len, NULL),
	        TW_OK);
	assert_int_equal(r.n, 1);
	tw_buf_done(&out);
	tw_arena_free(r.arena);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_many_of_one_size),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_parts_in_any_grouping),
        cmocka_unit_test(test_many_methods),
        cmocka_unit_test(test_damaged_parts),
        cmocka_unit_test(test_exemplars),
        cmocka_unit_test(test_the_largest_facts),
};

UNIT_TESTS("sketch", tests)
